//! A product as the origin, as benchmarks were published with: it serves what weir's own would have, has no counters, and
//! what it cannot serve is said.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{run, run_suite, scratch, suite};

const HEAD: &str = "title = \"Behind a web server\"\nproducts = [\"direct\", \"haproxy\"]\nprofile = \"tuned\"\norigin = \"nginx\"\nblocks = 1";

const LOAD: &str = "name = \"capacity\"\nkind = \"closed\"\nconnections = 8\nwarmup = \"200ms\"\nduration = \"500ms\"";

const LATE: &str = "[[workload]]\nname = \"late\"\npath = \"/bytes/128?delay=1ms\"\n";

#[test]
fn a_web_server_stands_in_for_the_origin_where_it_can() {
    let scratch = scratch();
    // The late one has its row, and the run its status.
    let measured = run_suite(scratch.path(), &format!("{}{LATE}", suite(HEAD, LOAD)), 1, Duration::from_secs(120));
    assert_eq!(measured.len(), 4);
    for (folder, m) in &measured {
        let at = folder.display();
        if m["case"]["workload"] == "late" {
            let message = m["error"]["message"].as_str().expect("an error");
            assert!(message.contains("cannot be served from a file"), "{at}: {message}");
            continue;
        }
        assert!(m["error"].is_null(), "{at}: {}", m["error"]);
        assert!(m["origin"].is_null(), "{at}: it has no counters");
        let findings = m["findings"].as_array().expect("findings");
        assert!(findings.iter().any(|f| f["check"] == "no-counters"), "{at}: {findings:?}");
        let mut rows = csv::Reader::from_path(folder.join("resources.csv")).expect("rows");
        let mut rows = rows.deserialize::<BTreeMap<String, String>>().map(|row| row.expect("a row"));
        let nobody_says = rows.all(|row| row["who"] == "client" || row["connections_open"].is_empty());
        assert!(nobody_says, "{at}: how many connections the origin has");
        assert_eq!(m["load"]["window"]["errors"], serde_json::json!({}), "{at}");
        let served = std::fs::read(folder.join("origin/files/bytes/128")).expect("the file it served");
        assert_eq!(served.len(), 128);
        let order: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("load-order.json")).expect("read")).expect("JSON");
        let hash = order["requests"][0]["expect"]["hash"].as_str();
        assert_eq!(hash.map(str::len), Some(16), "{at}: every body is held to the file's");
    }
    let out = scratch.path().join("run");
    let report = std::fs::read_to_string(out.join("report/report.md")).expect("a report");
    assert!(report.contains("no-counters"), "{report}");
    run(&["run", out.join("run.toml").to_str().expect("UTF-8"), "--dry-run"]).expect(0);
}

#[test]
fn a_product_that_cannot_be_the_origin_is_refused_before_anything_starts() {
    let ended = run(&["run", "quick", "--origin", "ngnix"]);
    ended.expect(2);
    assert!(ended.stderr.contains("did you mean \"nginx\"?"), "{}", ended.stderr);
}
