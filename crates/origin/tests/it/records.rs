//! The page on records names every key of the counters.

use serde_json::Value;
use weir_model::counters::OriginCounters;

#[test]
fn every_key_of_the_counters_is_on_the_page() {
    let page = include_str!("../../../../docs/records.md");
    let (_, page) = page.split_once("## The origin's counters").expect("the chapter");
    let page = page.split("\n## ").next().unwrap_or_default();
    let counters = serde_json::to_value(OriginCounters::default()).expect("counters are JSON");
    let mut unnamed = Vec::new();
    collect(&counters, &mut |key| {
        if key != "schema" && !page.contains(&format!("`{key}`")) {
            unnamed.push(key.to_owned());
        }
    });
    assert!(unnamed.is_empty(), "docs/records.md does not name {unnamed:?}");
}

fn collect(value: &Value, see: &mut impl FnMut(&str)) {
    for (key, value) in value.as_object().into_iter().flatten() {
        see(key);
        collect(value, see);
    }
}
