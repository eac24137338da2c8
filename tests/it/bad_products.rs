//! Products that fail: one whose process ends, one whose configuration cannot be written, one that is not there. `make check` has every
//! other way.

use std::time::Duration;

use crate::common::library::{Library, assert_says};
use crate::common::run_within;

#[test]
fn a_product_that_does_not_start_says_its_last_words() {
    let library = Library::new("dies", "echo 'the flux capacitor is empty' >&2; exit 7", "", "300ms");
    assert_says(&library.error(), "ready", &["exit status 7", "flux capacitor"]);
}

#[test]
fn a_template_with_an_unknown_variable_is_named_with_its_line() {
    let library = Library::new("typo", "sleep 1000", "", "300ms");
    let template = library.scratch.path().join("library/products/typo/bad.conf.j2");
    std::fs::write(template, "# a port\nport {{ listen_prot }}\n").expect("written");
    let words = ["bad.conf.j2:2", "listen_prot", "listen_port"];
    assert_says(&library.error(), "render", &words);
}

#[test]
fn a_product_that_is_nowhere_is_refused_before_anything_starts() {
    let library = Library::new("absent", "true", "", "300ms");
    std::fs::remove_file(library.scratch.path().join("bin-absent")).expect("removed");
    let ended = run_within(&mut library.command(), Duration::from_secs(30));
    assert!(ended.expect(3).contains("absent"), "{}", ended.stderr);
    assert!(!library.out().exists());
}
