//! A product that is served already, as the command line sees it. That it is measured as it stands is in the world
//! (`tests/world/tests/it/served.rs`) and on Kubernetes.

use std::path::Path;
use std::time::Duration;

use crate::common::{product_file, run, run_within, scratch, suite, weir};

fn product(folder: &Path, address: &str) {
    let served = format!("[served]\naddress = \"{address}\"\norigin_port = 18080\n");
    let toml = product_file("our gateway", &(served + "[profile.stock]\nabout = \"As it stands.\"\n"));
    let of = folder.join("library/products/ours");
    std::fs::create_dir_all(&of).expect("made");
    std::fs::write(of.join("product.toml"), toml).expect("written");
}

#[test]
fn an_address_where_nothing_serves_ends_it_before_anything_starts() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    product(scratch.path(), "127.0.0.1:9");
    let head = "title = \"Served\"\nproducts = [\"direct\", \"ours\"]\nprofile = \"stock\"\nblocks = 2";
    let load = "name = \"capacity\"\nkind = \"closed\"\nconnections = 8\nwarmup = \"200ms\"\nduration = \"1s\"";
    std::fs::write(path("suite.toml"), suite(head, load)).expect("written");
    let args = ["run", &path("suite.toml"), "--yes", "-q", "--out", &path("run"), "--library", &path("library")];
    let ended = run_within(&mut weir(&args), Duration::from_secs(60));
    let said = ended.expect(3);
    assert!(said.contains("ours: 127.0.0.1:9 is not reached from local: 127.0.0.1:9: Connection refused"), "{said}");
    assert!(said.contains("correct `address` of [served] in its product.toml"), "{said}");
    assert!(!scratch.path().join("run/plan.json").exists());
}

#[test]
fn it_is_listed_and_has_no_binary() {
    let scratch = scratch();
    product(scratch.path(), "gateway.ingress.svc:80");
    let library = scratch.path().join("library");
    let library = library.to_str().expect("UTF-8");
    let shown = run(&["products", "show", "ours", "--library", library]);
    shown.expect(0);
    assert!(shown.stdout.contains("gateway.ingress.svc:80"), "{}", shown.stdout);
    let path = run(&["products", "path", "ours", "--library", library]);
    assert!(path.expect(2).contains("ours is served already"), "{}", path.stderr);
}
