//! A product that others have started: a real proxy at a port of its own, with a route to the port of weir's origin. It is measured as
//! it stands, verified as always, and left alone; what was not measured of it is said.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{measurements, nothing_left, run, run_within, scratch, suite, until, weir};
use serde_json::Value;

/// A proxy that the test has started, as its owner would.
struct Gateway {
    child: Child,
    address: String,
    origin_port: u16,
}

impl Gateway {
    /// `more` goes into its backend.
    fn start(folder: &Path, more: &str) -> Gateway {
        // Both are free at this moment, and lower than those that the kernel gives to clients.
        let free = || TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let (port, origin_port) = (free(), free());
        let config = folder.join("gateway.cfg");
        let text = format!(
            "defaults\n  mode http\n  timeout client 30s\n  timeout server 30s\n  timeout connect 2s\n\
             frontend in\n  bind 127.0.0.1:{port}\n  default_backend out\n\
             backend out\n  {more}\n  server origin 127.0.0.1:{origin_port}\n"
        );
        std::fs::write(&config, text).expect("written");
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("haproxy starts");
        let address = format!("127.0.0.1:{port}");
        until("the gateway listens", Duration::from_secs(10), || std::net::TcpStream::connect(&address).is_ok());
        Gateway { child, address, origin_port }
    }

    fn product(&self, folder: &Path) {
        product(folder, &format!("localhost:{}", self.address.rsplit(':').next().expect("a port")), self.origin_port);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn product(folder: &Path, address: &str, origin_port: u16) {
    let toml = format!(
        r#"
[product]
title = "our gateway"
about = "What serves already."
home = "https://example.org/"
speaks = ["http/1.1"]

[served]
address = "{address}"
origin_port = {origin_port}
ready_within = "3s"

[profile.stock]
about = "As it stands."
"#
    );
    let of = folder.join("library/products/ours");
    std::fs::create_dir_all(&of).expect("made");
    std::fs::write(of.join("product.toml"), toml).expect("written");
}

const LOAD: &str = "name = \"capacity\"\nkind = \"closed\"\nconnections = 8\nwarmup = \"200ms\"\nduration = \"1s\"";

fn measured(folder: &Path, code: i32) -> (String, Vec<Value>) {
    let head = "title = \"Served\"\nproducts = [\"direct\", \"ours\"]\nprofile = \"stock\"\nblocks = 2";
    let (file, out) = (folder.join("suite.toml"), folder.join("run"));
    std::fs::write(&file, suite(head, LOAD)).expect("written");
    let mut command = weir(&["run", "--scale", "full", "--yes", "-q"]);
    command.arg(&file).arg("--out").arg(&out).arg("--library").arg(folder.join("library"));
    let said = run_within(&mut command, Duration::from_secs(60)).expect(code).to_owned();
    nothing_left(&out, Duration::from_secs(2));
    let rows = if out.join("trials").is_dir() { measurements(&out) } else { Vec::new() };
    (said, rows.into_iter().map(|(_, row)| row).collect())
}

fn of_ours(rows: &[Value]) -> Vec<&Value> {
    rows.iter().filter(|row| row["case"]["product"] == "ours").collect()
}

fn roles(row: &Value) -> Vec<&str> {
    row["usage"].as_array().expect("a list").iter().filter_map(|usage| usage["role"].as_str()).collect()
}

#[test]
fn what_serves_already_is_measured_as_it_stands_and_left_alone() {
    let scratch = scratch();
    let mut gateway = Gateway::start(scratch.path(), "");
    gateway.product(scratch.path());
    let (_, rows) = measured(scratch.path(), 0);
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert!(row["error"].is_null(), "{}", row["error"]);
        assert_eq!(row["load"]["total"]["sent"], row["origin"]["requests"], "all reached weir's origin");
        assert!(row["load"]["window"]["right"].as_u64() > Some(0));
    }
    for row in of_ours(&rows) {
        assert_eq!(roles(row), ["client", "origin"], "what was not measured is not there");
        let findings = row["findings"].as_array().expect("findings");
        assert!(findings.iter().any(|finding| finding["check"] == "unknown-usage"), "{findings:#?}");
    }
    let report = std::fs::read_to_string(scratch.path().join("run/report/report.md")).expect("a report");
    assert!(report.contains("CPU and memory of the product are unknown"), "{report}");
    let cell = report.lines().find(|line| line.contains("our gateway") && line.contains("| unknown |"));
    assert!(cell.is_some(), "beside its numbers:\n{report}");
    assert!(gateway.child.try_wait().expect("asked").is_none(), "it serves on");
}

#[test]
fn a_route_to_something_else_fails_verification() {
    let scratch = scratch();
    let gateway = Gateway::start(
        scratch.path(),
        "http-request return status 200 content-type text/plain string hello if { path_beg /bytes }",
    );
    gateway.product(scratch.path());
    let (_, rows) = measured(scratch.path(), 1);
    let ours = of_ours(&rows);
    assert_eq!(ours.len(), 2);
    for row in ours {
        assert_eq!(row["error"]["stage"], "verify", "{}", row["error"]);
        let remedy = row["error"]["remedy"].as_str().expect("a remedy");
        assert!(remedy.contains("the route of our gateway"), "{remedy}");
    }
}

#[test]
fn a_route_to_nowhere_says_which_port_it_should_lead_to() {
    let scratch = scratch();
    let gateway = Gateway::start(scratch.path(), "");
    product(scratch.path(), &gateway.address, gateway.origin_port + 1);
    let (_, rows) = measured(scratch.path(), 1);
    let error = &of_ours(&rows)[0]["error"];
    assert_eq!(error["stage"], "ready", "{error}");
    let (message, remedy) = (error["message"].as_str().expect("text"), error["remedy"].as_str().expect("text"));
    assert!(message.contains(&format!("through our gateway at {} within 3 s", gateway.address)), "{message}");
    assert!(remedy.contains(&format!("at port {}", gateway.origin_port + 1)), "{remedy}");
}

#[test]
fn an_address_where_nothing_serves_ends_it_before_anything_starts() {
    let scratch = scratch();
    product(scratch.path(), "127.0.0.1:9", 18_080);
    let (said, rows) = measured(scratch.path(), 3);
    assert!(rows.is_empty() && !scratch.path().join("run/plan.json").exists());
    assert!(said.contains("ours: 127.0.0.1:9 is not reached from local: 127.0.0.1:9: Connection refused"), "{said}");
    assert!(said.contains("correct `address` of [served] in its product.toml"), "{said}");
}

#[test]
fn it_is_listed_and_has_no_binary() {
    let scratch = scratch();
    product(scratch.path(), "gateway.ingress.svc:80", 8080);
    let library = scratch.path().join("library");
    let library = library.to_str().expect("UTF-8");
    let shown = run(&["products", "show", "ours", "--library", library]);
    shown.expect(0);
    assert!(shown.stdout.contains("gateway.ingress.svc:80"), "{}", shown.stdout);
    let path = run(&["products", "path", "ours", "--library", library]);
    assert!(path.expect(2).contains("ours is served already"), "{}", path.stderr);
}
