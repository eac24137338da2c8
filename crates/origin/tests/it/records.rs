//! The page on records names every key of the counters.

use weir_model::counters::OriginCounters;

#[test]
fn every_key_of_the_counters_is_on_the_page() {
    let page = include_str!("../../../../docs/records.md");
    let (_, page) = page.split_once("## The origin's counters").expect("the chapter");
    let page = page.split("\n## ").next().unwrap_or_default();
    // All strings are keys.
    let counters = serde_json::to_string(&OriginCounters::default()).expect("counters are JSON");
    let keys: Vec<&str> = counters.split('"').skip(1).step_by(2).collect();
    assert!(keys.len() > 20 && keys.contains(&"handshakes"), "{keys:?}");
    let unnamed: Vec<_> = keys.iter().filter(|key| **key != "schema" && !page.contains(&format!("`{key}`"))).collect();
    assert!(unnamed.is_empty(), "docs/records.md does not name {unnamed:?}");
}
