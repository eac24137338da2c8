//! `weir products test` with real products.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{
    add_product, copy_product, nothing_left, run_within, scratch, signal, until, wait_within, weir, words,
};
use rustix::process::Signal;
use serde_json::Value;

const LONG: Duration = Duration::from_secs(300);

fn cell<'a>(record: &'a Value, product: &str, check: &str) -> &'a Value {
    let tested = record["tested"].as_array().expect("tested");
    let of =
        tested.iter().find(|tested| tested["product"] == product).unwrap_or_else(|| panic!("{product}: {record:#}"));
    let cells = of["cells"].as_array().expect("cells");
    let found = cells.iter().find(|cell| cell[0] == check);
    &found.unwrap_or_else(|| panic!("{product} has no cell {check}: {of:#}"))[1]
}

#[test]
fn nginx_and_haproxy_answer_every_question() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name).to_str().expect("UTF-8").to_owned();
    let (page, kept) = (path("docs/products.md"), path("kept"));
    let args =
        ["products", "test", "nginx", "haproxy", "--install", "--yes", "--json", "--write", &page, "--keep", &kept];
    let ended = run_within(&mut weir(&args), LONG);
    ended.expect(0);
    nothing_left(scratch.path(), Duration::from_secs(5));
    let record = ended.json();
    let says = |product: &str, check: &str| cell(&record, product, check)["says"].as_str().expect("says").to_owned();
    let verdict = |product: &str, check: &str| cell(&record, product, check)["verdict"].clone();

    for product in ["nginx", "haproxy"] {
        for check in
            ["get", "head", "chunked", "no-body", "errors", "pipelined", "keep-alive", "slow-origin", "graceful-stop"]
        {
            assert!(
                says(product, check).starts_with("yes") || check == "keep-alive",
                "{product} {check}: {}",
                cell(&record, product, check)
            );
        }
        assert_eq!(verdict(product, "keep-alive"), "yes", "{product}: {}", cell(&record, product, "keep-alive"));
        assert_eq!(verdict(product, "memory-idle"), "reading", "{product}");
        assert_eq!(verdict(product, "memory-1000"), "reading", "{product}: {}", cell(&record, product, "memory-1000"));
        assert!(says(product, "origin-gone").starts_with("50"), "{product}: {}", says(product, "origin-gone"));
        assert!(verdict(product, "origin-back") == "yes" || verdict(product, "origin-back") == "reading", "{product}");
        let cores: f64 = says(product, "cores").parse().expect("a figure");
        assert!(cores > 0.1 && cores < 1.2, "{product}: {cores}");
        let unknown: Vec<&Value> = record["tested"]
            .as_array()
            .expect("tested")
            .iter()
            .flat_map(|t| t["cells"].as_array().expect("cells"))
            .filter(|cell| cell[1]["verdict"] == "unknown")
            .collect();
        assert!(unknown.is_empty(), "{unknown:#?}");
    }
    // nginx takes request bodies of 1 MiB and no byte more, and keeps each whole before it asks the origin.
    assert_eq!(says("nginx", "post"), "yes");
    assert_eq!(says("nginx", "100-continue"), "product");
    assert_eq!(says("nginx", "processes"), "2 / 2", "a master and a worker");
    assert_eq!(says("nginx", "origin-gone").split(' ').next(), Some("502"));
    assert_eq!(says("haproxy", "origin-gone").split(' ').next(), Some("503"));
    assert_eq!(says("haproxy", "100-continue"), "origin");
    assert_eq!([says("nginx", "request-body"), says("haproxy", "request-body")], ["buffers", "streams"]);
    // Upgrades need two lines in nginx's configuration, which only workloads with WebSocket have.
    assert_eq!([says("nginx", "websocket"), says("haproxy", "websocket")], ["426", "yes"]);
    assert_eq!([says("nginx", "stream"), says("haproxy", "stream")], ["yes", "yes"]);
    assert_eq!([says("nginx", "client-gone"), says("haproxy", "client-gone")], ["yes", "yes"]);

    let page = std::fs::read_to_string(page).expect("written");
    for words in ["| | nginx | haproxy |", "| GET | yes | yes |", "## Profile `tuned`", "weir products test"] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
    assert!(scratch.path().join("kept/nginx-tuned").is_dir());
    assert!(scratch.path().join("kept/haproxy-tuned").is_dir());
}

#[test]
fn a_store_and_a_proxy_before_three_origins_keep_keys_and_values() {
    let scratch = scratch();
    let line = "products test redis redis-replicated memcached twemproxy --install --yes --json";
    let ended = run_within(&mut weir(&words(line)), LONG);
    ended.expect(0);
    nothing_left(scratch.path(), Duration::from_secs(5));
    let record = ended.json();
    for tested in record["tested"].as_array().expect("tested") {
        let cells = tested["cells"].as_array().expect("cells");
        assert!(cells.iter().all(|cell| cell[0].as_str().is_some_and(|name| name.starts_with("kv-"))), "{cells:?}");
        let product = tested["product"].as_str().expect("a name");
        for check in ["get", "create", "destroy", "expires", "pipelined", "shared", "malformed"] {
            let cell = cell(&record, product, &format!("kv-{check}"));
            assert_eq!(cell["verdict"], "yes", "{product} {check}: {cell}");
        }
        let largest = if product == "memcached" { "200 KiB" } else { "1.0 MiB" };
        assert_eq!(cell(&record, product, "kv-large")["says"], largest, "{product}");
    }
    let says = |product: &str, check: &str| cell(&record, product, check)["says"].as_str().expect("says").to_owned();
    assert_eq!([says("redis", "kv-tls"), says("memcached", "kv-tls")], ["yes", "yes"]);
    assert_eq!([says("redis", "kv-replicated"), says("redis-replicated", "kv-replicated")], ["no replica", "yes"]);
    assert_eq!([says("redis", "kv-spread"), says("redis", "kv-gone")], ["-", "-"]);
    let shares = says("twemproxy", "kv-spread");
    let counted: Vec<u32> = shares.split(" / ").map(|share| share.parse().expect("a count")).collect();
    assert!(counted.len() == 3 && counted.iter().sum::<u32>() == 600, "{shares}");
    let note = cell(&record, "twemproxy", "kv-spread")["note"].as_str().expect("a note");
    assert!(note.contains("over memcached's protocol: "), "it is asked in both that it speaks: {note}");
    assert!(says("twemproxy", "kv-gone").starts_with("error in "), "{}", cell(&record, "twemproxy", "kv-gone"));
}

#[test]
fn a_product_that_does_not_start_is_a_row_with_the_reason() {
    let scratch = scratch();
    let folder = scratch.path().join("products/nginx");
    copy_product("nginx", &folder);
    for entry in std::fs::read_dir(&folder).expect("nginx").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("text");
        // It listens, and asks an origin that nobody is.
        let text = text.replace("{{ origin_port }}", "1").replace("{{ origin.port }}", "1");
        std::fs::write(entry.path(), text).expect("written");
    }
    let toml = folder.join("product.toml");
    let text = std::fs::read_to_string(&toml).expect("text").replace("ready_within = \"10s\"", "ready_within = \"1s\"");
    std::fs::write(&toml, text).expect("written");
    let library = scratch.path().to_str().expect("UTF-8");
    let args = ["products", "test", "nginx", "haproxy", "--only", "get", "--library", library, "--yes", "--json"];
    let ended = run_within(&mut weir(&args), LONG);
    ended.expect(1);
    let record = ended.json();
    let error = record["tested"][0]["error"]["message"].as_str().expect("an error");
    assert!(error.contains("did not get ready within 1 s") && error.contains("502"), "{error}");
    assert_eq!(cell(&record, "haproxy", "get")["says"], "yes", "the others are tested all the same");
    assert!(ended.stderr.contains("did not get ready"), "{}", ended.stderr);
}

/// A product that asks the origin for what it is asked for, and does not outlive HEAD.
const STUB: &str = include_str!("conformance/stub.py.j2");

const STUB_FILE: &str = include_str!("conformance/product.toml");

#[test]
fn a_product_that_dies_of_a_question_is_started_again_for_the_next() {
    let scratch = scratch();
    add_product(scratch.path(), "stub", STUB_FILE, ("stub.py.j2", STUB));
    let path = |name: &str| scratch.path().join(name).to_str().expect("UTF-8").to_owned();
    let (library, kept) = (path("library"), path("kept"));
    let only = ["get", "head", "path", "reload", "graceful-stop"].map(|check| ["--only", check]).concat();
    let args =
        [&["products", "test", "stub", "--library", &library, "--yes", "--keep", &kept, "--json"], &only[..]].concat();
    let ended = run_within(&mut weir(&args), LONG);
    ended.expect(0);
    nothing_left(scratch.path(), Duration::from_secs(5));
    let record = ended.json();
    assert_eq!(cell(&record, "stub", "get")["says"], "yes");
    assert_eq!(cell(&record, "stub", "head")["says"], "closes");
    let note = cell(&record, "stub", "head")["note"].as_str().expect("a note");
    assert!(note.contains("the product ended (exit status 3), and was started again"), "{note}");
    assert_eq!(cell(&record, "stub", "path")["says"], "yes", "{}", cell(&record, "stub", "path"));
    assert_eq!(cell(&record, "stub", "graceful-stop")["says"], "cut off");
    assert_eq!(cell(&record, "stub", "reload")["says"], "0 lost");
    // Its first start ended with HEAD.
    let reloaded = std::fs::read_to_string(scratch.path().join("kept/stub-tuned/http-1-1/start-2/reloaded"));
    assert_eq!(reloaded.expect("the command was run"), "again again ");
}

#[test]
fn what_cannot_be_asked_is_said_before_anything_starts() {
    for (args, words) in [
        (&["nginx", "--only", "gett"][..], "there is no check \"gett\""),
        (&["ngin"][..], "ngin"),
        (&["direct"][..], "direct is not a proxy"),
        (&["redis", "--only", "get"][..], "no such check is for any of these products"),
        (&["nginx", "--profile", "tunde"][..], "none of these products has a profile \"tunde\""),
    ] {
        let ended = run_within(&mut weir(&[&["products", "test"], args].concat()), LONG);
        let said = ended.expect(2);
        assert!(said.contains(words) && said.contains("expected: "), "{said}");
    }
    let ended = run_within(&mut weir(&["products", "test", "--checks"]), LONG);
    ended.expect(0);
    assert!(ended.stdout.contains("100-continue") && ended.stdout.lines().count() > 40, "{}", ended.stdout);
}

#[test]
fn ctrl_c_prints_what_was_found_and_leaves_nothing() {
    let scratch = scratch();
    let kept = scratch.path().join("kept");
    let mut command =
        weir(&["products", "test", "nginx", "haproxy", "--json", "--keep", kept.to_str().expect("UTF-8")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let (mut stdout, mut stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let stderr = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    until("haproxy is tested, too", LONG, || kept.join("haproxy-tuned").is_dir());
    signal(child.id(), Signal::INT);
    let status = wait_within(&mut child, Duration::from_secs(30));
    let mut text = String::new();
    stdout.read_to_string(&mut text).expect("read");
    let said = stderr.join().expect("read");
    assert_eq!(status.code(), Some(130), "{said}");
    let record: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record["stopped"], true);
    assert_eq!(cell(&record, "nginx", "get")["says"], "yes");
    nothing_left(scratch.path(), Duration::from_secs(5));
}
