//! Looking and installing with made-up products: a shell script for a binary, wheels and releases made on the spot, no
//! network. Building is tested from outside (tests/it/install_build.rs), where there is a supervisor.

mod children;
mod choosing;
mod finding;
mod planning;
mod releases;
mod server;
mod wheels;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use weir_host::LocalHost;
use weir_model::product::{Install, Product, ProductKind, Program};

/// A product with these ways to be installed, that says `thing 1.2.3` to `--version`.
fn product(installs: Vec<Install>) -> Product {
    let toml = include_str!("../../../product/tests/thing.toml");
    let mut product =
        Product::parse("thing", "thing.toml", toml, BTreeMap::new(), BTreeMap::new()).expect("it is right");
    program_of(&mut product).installs = installs;
    product
}

fn program_of(product: &mut Product) -> &mut Program {
    match &mut product.kind {
        ProductKind::Proxy(program) => program,
        ProductKind::Direct | ProductKind::Served(_) => panic!("it has a program"),
    }
}

/// A host that starts nothing.
fn no_host() -> LocalHost {
    LocalHost::new("/nonexistent".into())
}

/// An executable script.
pub(super) fn script(path: &Path, body: &str) {
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A binary that is named by its path.
fn system(binary: &Path) -> Install {
    Install::System { binary: binary.to_str().unwrap().to_owned() }
}
