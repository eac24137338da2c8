//! Looking and installing with made-up products: a shell script for a binary, wheels and releases made on the spot, no
//! network. Building is tested from outside (tests/install_build.rs), where there is a supervisor.

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
use weir_model::product::{Install, Part, ProcessSpec, Product, ProductKind, Program, Signal, VersionProbe};

/// A product with these ways to be installed, that says `thing 1.2.3` to `--version`.
fn product(installs: Vec<Install>) -> Product {
    let program = Program {
        installs,
        version: VersionProbe {
            command: vec!["{{ binary }}".to_owned(), "--version".to_owned()],
            pattern: r"thing (\d+(?:\.\d+)*)".to_owned(),
            at_least: None,
        },
        parts: vec![Part {
            name: "thing".to_owned(),
            ports: Vec::new(),
            cpu_share: None,
            process: ProcessSpec {
                command: vec!["{{ binary }}".to_owned()],
                check: Vec::new(),
                env: BTreeMap::new(),
                ready_within: Duration::from_secs(1),
                stop_within: Duration::from_secs(1),
                graceful: Signal::Term,
                reload: None,
                scratch: Vec::new(),
            },
        }],
    };
    Product {
        name: "thing".to_owned(),
        title: "Thing".to_owned(),
        about: String::new(),
        home: String::new(),
        speaks: Vec::new(),
        caches: false,
        notes: Vec::new(),
        kind: ProductKind::Proxy(Box::new(program)),
        profiles: BTreeMap::new(),
        templates: BTreeMap::new(),
        files: BTreeMap::new(),
    }
}

fn program_of(product: &mut Product) -> &mut Program {
    match &mut product.kind {
        ProductKind::Proxy(program) => program,
        ProductKind::Direct => panic!("it has a program"),
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
