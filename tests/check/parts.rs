//! A product of several parts, measured end to end: a relay, a side-car and a front that clients talk to. Each part has its
//! own process tree, output, accounting and readiness; together they are the proxy. `docs/add-a-product-of-parts.md` is their page.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::common::{add_product, run_suite, scratch, suite};
use serde_json::Value;

/// Passes TCP connections on, and writes its name down when it is asked to end. Without a port it only waits.
const RELAY: &str = include_str!("parts/relay.py.j2");

const PRODUCT: &str = include_str!("parts/product.toml");

const HEAD: &str = r#"title = "Parts"
products = ["chain"]
profile = "tuned"
blocks = 1"#;

const LOAD: &str = r#"name = "capacity"
kind = "closed"
connections = 4
warmup = "300ms"
duration = "1500ms""#;

/// Runs the suite with a product; its only measurement, with the folder of its trial.
fn measured(scratch: &Path, product: &str, status: i32) -> (std::path::PathBuf, Value) {
    add_product(scratch, "chain", product, ("relay.py.j2", RELAY));
    let mut all = run_suite(scratch, &suite(HEAD, LOAD), status, Duration::from_secs(120));
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn each_part_is_started_counted_and_ended_by_itself() {
    let scratch = scratch();
    let (folder, m) = measured(scratch.path(), &PRODUCT.replace("RELAY", "{{ ports.relay }}"), 0);
    assert!(m["error"].is_null(), "{}", m["error"]);
    assert_eq!(m["load"]["window"]["errors"], serde_json::json!({}));

    let usage = m["usage"].as_array().expect("usage");
    let proxy = usage.iter().find(|usage| usage["role"] == "proxy").expect("the proxy's usage");
    let parts = proxy["parts"].as_object().expect("by part");
    assert_eq!(parts.keys().collect::<Vec<_>>(), ["front", "relay", "side-car"]);
    let sum = |key: &str| parts.values().map(|part| part[key].as_u64().expect("a number")).sum::<u64>();
    let cpu = |usage: &Value| usage["cpu_user_us"].as_u64().unwrap() + usage["cpu_system_us"].as_u64().unwrap();
    // The sum is rounded once, each part's by itself.
    assert!(cpu(proxy).abs_diff(sum("cpu_user_us") + sum("cpu_system_us")) <= 3, "{proxy}");
    assert!(cpu(&parts["front"]) > 10 * cpu(&parts["side-car"]).max(1), "{proxy}");
    assert_eq!((proxy["processes_max"].as_u64(), sum("processes_max")), (Some(3), 3));
    for other in usage.iter().filter(|usage| usage["role"] != "proxy") {
        assert_eq!(other["parts"], serde_json::json!({}));
    }

    // resources.csv: the proxy's row is its parts' together.
    let mut rows = csv::Reader::from_path(folder.join("resources.csv")).expect("resources.csv");
    let rows: Vec<BTreeMap<String, String>> = rows.deserialize().map(|row| row.expect("a row")).collect();
    let threads = |who: &str| {
        let first = rows.iter().find(|row| row["who"] == who).unwrap_or_else(|| panic!("no row of {who}"));
        first["threads"].parse::<u64>().expect("a number")
    };
    assert_eq!(threads("proxy"), threads("proxy/relay") + threads("proxy/side-car") + threads("proxy/front"));

    // Output and end of each part, and the order in which they ended.
    let product = folder.join("product");
    for part in ["relay", "side-car", "front"] {
        let output = std::fs::read_to_string(product.join(format!("output-{part}.log"))).expect("its output");
        assert_eq!(output, format!("{part} is up\n"));
        assert!(product.join(format!("exit-{part}.json")).exists());
    }
    assert!(!product.join("output.log").exists());
    assert_eq!(std::fs::read_to_string(product.join("ends")).expect("written"), "front\nside-car\nrelay\n");
}

#[test]
fn a_part_that_does_not_listen_or_dies_is_named() {
    let one = scratch();
    let (_, m) = measured(one.path(), &PRODUCT.replace("RELAY", "1").replace("20s", "2s"), 1);
    // It may not listen on port 1 and dies of it, or (as root) does and nobody comes.
    let message = m["error"]["message"].as_str().expect("an error");
    assert!(message.starts_with("Chain's part relay ") && m["error"]["stage"] == "ready", "{}", m["error"]);

    let two = scratch();
    let dies =
        PRODUCT.replace("RELAY", "{{ ports.relay }}").replace("/relay.py\", \"side-car\"", "/none.py\", \"side-car\"");
    let (_, m) = measured(two.path(), &dies, 1);
    let message = m["error"]["message"].as_str().expect("an error");
    assert!(message.starts_with("Chain's part side-car ended by itself"), "{}", m["error"]);
    assert!(m["error"]["evidence"].as_str().expect("evidence").contains("output-side-car.log"), "{}", m["error"]);
}
