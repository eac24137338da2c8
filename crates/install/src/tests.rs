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
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use weir_host::LocalHost;
use weir_host::stop::Stop;
use weir_model::product::{Install, Product, ProductKind, Program};

use crate::download::{self, DownloadSource, DownloadStep, Means};
use crate::home::Home;
use crate::{InstallContext, InstallError, Installed, Progress, find};

/// A product with these ways to be installed, that says `thing 1.2.3` to `--version`.
fn product(installs: Vec<Install>) -> Product {
    let toml = include_str!("../../product/tests/thing.toml");
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

/// A home and nothing in it.
struct InstallFolder {
    dir: TempDir,
    stop: Stop,
}

impl InstallFolder {
    fn new() -> InstallFolder {
        InstallFolder { dir: tempfile::tempdir().unwrap(), stop: Stop::new() }
    }

    fn home(&self) -> Home {
        Home::at(self.dir.path().join("home"))
    }

    /// Installs, and returns the lines that weir prints meanwhile.
    fn carry_out(&self, step: &DownloadStep, means: Means) -> Result<Vec<String>, InstallError> {
        let (home, host) = (self.home(), no_host());
        let context = InstallContext { home: &home, host: &host, stop: &self.stop };
        let mut lines = Vec::new();
        let mut notify = |progress: Progress<'_>| match progress {
            Progress::Action(line) => lines.push(line.to_owned()),
            Progress::Bytes { done, of } if Some(done) == of => lines.push(format!("{done} bytes")),
            _ => {}
        };
        download::install(step, means, context, &mut notify)?;
        Ok(lines)
    }

    fn found(&self, install: &Install) -> Result<Installed, InstallError> {
        find(&product(vec![install.clone()]), &self.home())
    }

    /// What is in the product's folder of the home.
    fn kept(&self) -> Vec<PathBuf> {
        let folder = self.home().product("thing");
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }
}
