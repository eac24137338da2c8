//! Every protocol through real products: the accounts of client and origin agree, TLS is as meant, nothing secret is shown,
//! and what a product does not speak is left out and named.

use crate::common;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{
    copy_product, csv_rows, made_up, measurements, nothing_left, run_within, scratch, shop, text, weir, words,
};
use serde_json::Value;

/// Workloads by protocol.
const WORKLOADS: [(&str, &str); 4] =
    [("plain", "http/1.1"), ("secure", "https/1.1"), ("two", "h2c"), ("two-secure", "h2")];

/// A library with a suite of one small response in every protocol, and a proxy that is said to speak HTTP/1.1 alone.
fn library(folder: &Path) -> PathBuf {
    let library = folder.join("library");
    let modest = library.join("products/modest");
    copy_product("haproxy", &modest);
    let toml = std::fs::read_to_string(modest.join("product.toml")).expect("copied");
    let spoken = toml.lines().find(|line| line.starts_with("speaks = ")).expect("it says what it speaks");
    // Of the product alone; a profile may speak less.
    std::fs::write(modest.join("product.toml"), toml.replacen(spoken, "speaks = [\"http/1.1\"]", 1)).expect("written");

    let mut suite = String::from(
        "[suite]\ntitle = \"t\"\nquestion = \"q\"\nblocks = 1\nprofile = \"tuned\"\nproducts = [\"direct\", \"nginx\", \
         \"haproxy\", \"modest\"]\n\n[tls]\nkey = \"rsa2048\"\nversions = [\"1.3\"]\n",
    );
    for (name, protocol) in WORKLOADS {
        suite.push_str(&format!(
            "\n[[workload]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\npath = \"/bytes/1000\"\n"
        ));
    }
    suite.push_str(
        "\n[[load]]\nname = \"capacity\"\nkind = \"closed\"\nconnections = 8\nstreams = 4\nwarmup = \"100ms\"\nduration = \"400ms\"\n",
    );
    std::fs::create_dir_all(library.join("suites")).expect("made");
    std::fs::write(library.join("suites/protocols.toml"), suite).expect("written");
    library
}

#[test]
fn the_accounts_agree_in_every_protocol() {
    let scratch = scratch();
    let (library, out) = (library(scratch.path()), scratch.path().join("run"));
    let mut run = weir(&words("run protocols --yes --seed 3"));
    let ended = run_within(run.arg("--library").arg(&library).arg("--out").arg(&out), Duration::from_secs(300));
    let said = ended.expect(0);
    assert!(said.contains("modest (tuned) does not speak h2: left out of two-secure"), "{said}");
    nothing_left(&out, Duration::from_secs(2));

    let measured = measurements(&out);
    // Three products in four protocols, and one in one.
    assert_eq!(measured.len(), 3 * 4 + 1, "{said}");
    for (folder, m) in &measured {
        one_trial(folder, m);
    }
    rows_carry_the_protocol(&out);
    report_says_what_was_spoken(&out);
}

fn one_trial(folder: &Path, m: &Value) {
    let at = folder.display();
    assert!(m["error"].is_null(), "{at}: {}", m["error"]);
    let workload = m["case"]["workload"].as_str().expect("a name");
    let (_, protocol) = WORKLOADS.iter().find(|(name, _)| *name == workload).expect("one of them");
    let (two, tls) = (protocol.starts_with("h2"), ["https/1.1", "h2"].contains(protocol));
    let direct = m["case"]["product"] == "direct";
    let (load, origin) = (&m["load"], &m["origin"]);

    assert_eq!(m["protocol"], *protocol, "{at}");
    assert_eq!(load["protocol"], if two { "h2" } else { "http/1.1" }, "{at}");
    assert_eq!(load["streams"], if two { 4 } else { 1 }, "{at}");
    assert!(load["rate"].as_f64().expect("a rate") > 10.0, "{at}");
    assert_eq!(load["window"]["errors"], serde_json::json!({}), "{at}");
    assert_eq!(load["total"]["sent"], origin["requests"], "{at}: requests are conserved");
    assert_eq!(load["total"]["body_bytes"], origin["body_bytes_out"], "{at}: bytes are conserved");

    // What the origin was asked in: by a product always in HTTP/1.1, by the client in what the workload says.
    let version = if direct && two { "HTTP/2" } else { "HTTP/1.1" };
    assert_eq!(origin["versions"], serde_json::json!({ version: origin["requests"] }), "{at}");
    assert_eq!(load["tls"].is_null(), !tls, "{at}");
    if tls {
        let handshakes = &load["tls"]["handshakes"];
        assert_eq!(load["tls"]["versions"], serde_json::json!({ "TLS 1.3": handshakes }), "{at}");
        assert_eq!(load["tls"]["suites"], serde_json::json!({ "TLS_AES_128_GCM_SHA256": handshakes }), "{at}");
        if direct {
            assert_eq!(origin["tls"]["handshakes"], *handshakes, "{at}: handshakes are conserved");
        }
        let key = folder.join(if direct { "origin" } else { "product" }).join("key.pem");
        let mode = key.metadata().unwrap_or_else(|e| panic!("{}: {e}", key.display())).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{at}");
    }
    let findings = m["findings"].as_array().expect("findings");
    assert!(findings.iter().all(|f| f["check"] != "tls" || f["severity"] == "note"), "{at}: {findings:?}");
    assert_eq!(findings.iter().any(|f| f["check"] == "tls"), tls, "{at}: what was spoken is said");
}

fn rows_carry_the_protocol(out: &Path) {
    for row in csv_rows(out) {
        let (_, protocol) = WORKLOADS.iter().find(|(name, _)| *name == row["workload"]).expect("one of them");
        assert_eq!(row["protocol"], *protocol);
        assert_eq!(row["streams"], if protocol.starts_with("h2") { "4" } else { "1" });
        let tls = ["https/1.1", "h2"].contains(protocol);
        assert_eq!(row["tls_version"], if tls { "TLS1.3" } else { "" });
        assert_eq!(row["tls_suite"], if tls { "TLS_AES_128_GCM_SHA256" } else { "" });
    }
}

fn report_says_what_was_spoken(out: &Path) {
    let markdown = std::fs::read_to_string(out.join("report/report.md")).expect("a report");
    assert!(markdown.contains("HTTP/2 over TLS (TLS 1.3 with TLS"), "{markdown}");
    assert!(markdown.contains("modest (tuned) does not speak h2: left out of two-secure"), "{markdown}");
    for file in ["report.html", "report.md"] {
        let text = std::fs::read_to_string(out.join("report").join(file)).expect("a report");
        assert!(!text.contains("PRIVATE KEY"), "{file}");
    }
    let suite = std::fs::read_to_string(out.join("run.toml")).expect("a suite");
    assert!(suite.contains("key = \"rsa2048\"") && suite.contains("versions = [\"1.3\"]"), "{suite}");
}

#[test]
fn nothing_that_is_spoken_is_an_error_before_anything_starts() {
    let scratch = scratch();
    let (library, out) = (library(scratch.path()), scratch.path().join("run"));
    let line = "run protocols --products modest --only workload=two,two-secure --library";
    let ended = common::run(&[&words(line)[..], &[text(&library), "--out", text(&out)]].concat());
    let said = ended.expect(2);
    assert!(said.contains("nothing is left to run: modest (tuned) does not speak h2c: left out of two;"), "{said}");
    assert!(!out.exists(), "nothing was started");
}

/// Every product of the catalogue is planned, or named with the reason why not.
#[test]
fn all_products_are_planned_or_named() {
    let listed = common::run(&["products", "list", "--json"]);
    listed.expect(0);
    let ended = common::run(&["run", "quick", "--products", "all", "--dry-run", "--json"]);
    ended.expect(0);
    let dry = ended.json();
    let names = |list: &Value, name: fn(&Value) -> &Value| -> std::collections::BTreeSet<String> {
        list.as_array().expect("a list").iter().filter_map(|one| name(one).as_str().map(str::to_owned)).collect()
    };
    let planned = names(&dry["trials"], |trial| &trial["case"]["product"]);
    let skipped = names(&dry["skipped"], |one| &one["product"]);
    let all = names(&listed.json(), |product| &product["name"]);
    assert!(planned.contains("direct") && planned.is_disjoint(&skipped), "{planned:?} {skipped:?}");
    assert_eq!(planned.union(&skipped).cloned().collect::<std::collections::BTreeSet<_>>(), all);
    for one in dry["skipped"].as_array().expect("a list") {
        assert!(one["why"].as_str().is_some_and(|why| why.len() > 10), "{one}");
    }
}

/// Of all products, one that turns out not to be had does not keep the others from being measured; named alone, it does.
#[test]
fn of_all_products_one_that_cannot_be_installed_is_skipped() {
    let scratch = scratch();
    let (library, out) = (scratch.path().join("library"), scratch.path().join("run"));
    let broken = library.join("products/broken");
    std::fs::create_dir_all(&broken).expect("made");
    // Nothing listens on port 1.
    let toml = made_up("Broken", "tuned", &shop::release("http://127.0.0.1:1/x", &"0".repeat(64)));
    std::fs::write(broken.join("product.toml"), toml).expect("written");
    let (library, out_text) = (library.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    let run = |products: &str| {
        let mut args = vec!["run", "quick", "--library", library, "--out", out_text, "--yes", "--scale", "smoke"];
        args.extend(["--products", products, "--only", "workload=tiny", "--only", "load=capacity"]);
        args.extend(["--only", "product=direct,nginx,broken"].iter().filter(|_| products == "all"));
        run_within(&mut weir(&args), Duration::from_secs(120))
    };
    let named = run("direct,broken");
    assert_ne!(named.code(), Some(0), "{}", named.stderr);
    assert!(!out.exists(), "nothing was started");

    let all = run("all");
    let said = all.expect(0);
    assert!(said.contains("broken could not be installed: "), "{said}");
    assert_eq!(measurements(&out).len(), 2, "direct and nginx: {said}");
    assert!(all.stdout.contains("1 left out"), "the response says so too: {}", all.stdout);
    let report = std::fs::read_to_string(out.join("report/report.md")).expect("a report");
    assert!(report.contains("broken could not be installed: "), "and the report says why: {report}");
}
