//! The page on records names every key of the books.

use serde_json::Value;
use weir_model::books::Books;

#[test]
fn every_key_of_the_books_is_on_the_page() {
    let page = include_str!("../../../docs/records.md");
    let (_, page) = page.split_once("## The origin's books").expect("the chapter");
    let page = page.split("\n## ").next().unwrap_or_default();
    let books = serde_json::to_value(Books::default()).expect("books are JSON");
    let mut unnamed = Vec::new();
    collect(&books, &mut |key| {
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
