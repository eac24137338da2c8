//! The schemas that editors read are the ones that weir checks files against.

use std::path::Path;

use serde_json::Value;
use weir_model::file::{product_schema, suite_schema, topology_schema};
use weir_model::load::{load_result_schema, search_result_schema};

#[test]
fn the_checked_in_schemas_are_up_to_date() {
    for (name, schema) in [
        ("suite", suite_schema()),
        ("product", product_schema()),
        ("topology", topology_schema()),
        ("load-result", load_result_schema()),
        ("search-result", search_result_schema()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.schema.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            text == format!("{schema:#}\n"),
            "docs/schema/{name}.schema.json is out of date; `cargo run -p weir-model --example schema` writes it again"
        );
    }
}

/// Calls `visit` with every key of a schema object below `schema`, its value, and the object.
fn keywords(schema: &Value, visit: &mut impl FnMut(&str, &Value, &Value)) {
    let Some(object) = schema.as_object() else { return };
    for (key, value) in object {
        visit(key, value, schema);
        match key.as_str() {
            "properties" => value.as_object().into_iter().flatten().for_each(|(_, schema)| keywords(schema, visit)),
            "anyOf" | "oneOf" => value.as_array().into_iter().flatten().for_each(|schema| keywords(schema, visit)),
            "items" | "additionalProperties" => keywords(value, visit),
            _ => {}
        }
    }
}

#[test]
fn the_schemas_say_nothing_that_weir_does_not_check() {
    let checked = "type properties required additionalProperties items minItems uniqueItems minProperties minLength \
        pattern enum const anyOf oneOf minimum maximum exclusiveMinimum format x-weir-unit x-weir-positive \
        x-weir-wanted x-weir-one-of x-weir-control";
    let checked: Vec<&str> = checked.split(' ').collect();
    let remarks = ["$schema", "title", "description", "default", "examples"];
    for schema in [suite_schema(), product_schema(), topology_schema()] {
        keywords(&schema, &mut |key, value, object| {
            assert!(checked.contains(&key) || remarks.contains(&key), "{key} is not checked: {object:#}");
            if key == "pattern" {
                let pattern = value.as_str().expect("a pattern is a text");
                assert!(regex::Regex::new(pattern).is_ok(), "{pattern}");
            }
            if key == "type" && value == "object" {
                let closed = ["additionalProperties", "oneOf"].iter().any(|key| object.get(*key).is_some());
                assert!(closed, "unknown keys would pass: {object:#}");
            }
            assert_ne!(value, "null", "TOML has no null: {object:#}");
        });
    }
}

#[test]
fn a_duration_is_a_text_with_a_pattern() {
    let schema = suite_schema();
    let warmup = &schema["properties"]["load"]["items"]["oneOf"][0]["properties"]["warmup"];
    assert_eq!(warmup["type"], "string");
    let pattern = regex::Regex::new(warmup["pattern"].as_str().expect("a pattern")).expect("valid");
    for (text, right) in
        [("10ms", true), ("1.5s", true), ("500us", true), ("10", false), ("2 sec", false), ("ms", false)]
    {
        assert_eq!(pattern.is_match(text), right, "{text}");
        assert_eq!(text.parse::<weir_model::units::HumanDuration>().is_ok(), right, "{text}");
    }
}

#[test]
fn shipped_files_name_their_schema_on_the_first_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let suite = std::fs::read_to_string(root.join("suites/quick.toml")).expect("there");
    assert!(suite.starts_with("#:schema ../docs/schema/suite.schema.json\n"));
    let direct = std::fs::read_to_string(root.join("products/direct/product.toml")).expect("there");
    assert!(direct.starts_with("#:schema ../../docs/schema/product.schema.json\n"));
}
