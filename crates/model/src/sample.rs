//! A small suite and a catalogue for the unit tests of this crate.

use std::collections::BTreeMap;

use crate::suite::Suite;

const SUITE: &str = include_str!("../tests/quick.toml");

/// Four products, each with the profiles `stock` and `tuned`.
pub(crate) fn catalogue() -> BTreeMap<String, Vec<String>> {
    let both = || vec!["stock".to_owned(), "tuned".to_owned()];
    ["direct", "haproxy", "nginx", "varnish"].map(|name| (name.to_owned(), both())).into()
}

/// Three of them, two workloads, a load and another at a share of it, and two scales.
pub(crate) fn suite() -> Suite {
    Suite::parse("suites/quick.toml", SUITE, &catalogue()).expect("a valid suite")
}
