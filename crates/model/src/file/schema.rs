//! Generates the JSON schemas of `suite.toml`, `product.toml` and `hosts.toml` from the types that are read.
//! Editors read them, and [`super::shape`] checks files against the same value, so both accept the same files.
//! `cargo run -p weir-model --example schema` writes them to `docs/schema`. A file names its schema in its first line
//! (`#:schema ../docs/schema/suite.schema.json`), a convention of taplo and Even Better TOML.

use std::borrow::Cow;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value as Json;

use super::product::ProductFile;
use super::suite::SuiteFile;
use super::topology::{RoleForm, TopologyFile};
use crate::units::{BitRate, ByteCount, HumanDuration, Rate, Share};

/// JSON schema (draft 7) of `suites/<name>.toml`.
pub fn suite_schema() -> Json {
    SUITE.clone()
}

/// JSON schema (draft 7) of `products/<name>/product.toml`.
pub fn product_schema() -> Json {
    PRODUCT.clone()
}

/// JSON schema (draft 7) of `hosts.toml`.
pub fn topology_schema() -> Json {
    TOPOLOGY.clone()
}

pub(super) static SUITE: LazyLock<Json> = LazyLock::new(generate::<SuiteFile>);
pub(super) static PRODUCT: LazyLock<Json> = LazyLock::new(generate::<ProductFile>);
pub(super) static TOPOLOGY: LazyLock<Json> = LazyLock::new(generate::<TopologyFile>);

fn generate<T: JsonSchema>() -> Json {
    // Draft 7 is what taplo reads. Everything inline: a walk over the schema needs no table of definitions, and the
    // structs are small.
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.transforms.push(Box::new(RecursiveTransform(without_null)));
        settings.transforms.push(Box::new(RecursiveTransform(whole_branches)));
        settings.transforms.push(Box::new(RecursiveTransform(closed)));
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// TOML has no null: a key is there or it is not. Schemars describes an `Option` as "or null".
fn without_null(schema: &mut Schema) {
    if let Some(Json::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Json::Array(names)) = schema.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    if schema.get("default").is_some_and(Json::is_null) {
        schema.remove("default");
    }
    let Some(Json::Array(branches)) = schema.get_mut("anyOf") else { return };
    branches.retain(|branch| branch["type"] != "null");
    if let [Json::Object(only)] = branches.as_slice() {
        let only = only.clone();
        schema.remove("anyOf");
        for (key, value) in only {
            // The key's own description is nearer to the matter than its type's.
            if schema.get(&key).is_none() {
                schema.insert(key, value);
            }
        }
        // What came out of the branch has not been visited.
        RecursiveTransform(without_null).transform(schema);
    }
}

/// A tagged enum that is flattened into a table stands as branches beside the table's own keys. Each branch gets these keys
/// too: it is then the whole table for one value of the tag, and no key of another branch is right in it.
fn whole_branches(schema: &mut Schema) {
    let Some(Json::Object(own)) = schema.get("properties").cloned() else { return };
    let required = schema.get("required").and_then(Json::as_array).cloned().unwrap_or_default();
    let Some(Json::Array(branches)) = schema.get_mut("oneOf") else { return };
    let mut shared: Option<Vec<Json>> = None;
    for branch in branches {
        let keys = branch["properties"].as_object().cloned().unwrap_or_default();
        let musts = branch["required"].as_array().cloned().unwrap_or_default();
        branch["properties"] = own.clone().into_iter().chain(keys).collect();
        shared.get_or_insert_with(|| musts.clone()).retain(|key| musts.contains(key));
        branch["required"] = required.iter().cloned().chain(musts).collect();
    }
    schema.remove("properties");
    schema.insert("required".to_owned(), required.into_iter().chain(shared.unwrap_or_default()).collect());
}

/// A key that is not named is an error.
fn closed(schema: &mut Schema) {
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

/// Types that stand in a file as a text or a number.
macro_rules! scalars {
    ($($type:ident: $schema:tt)+) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

scalars! {
    RoleForm: {
        "type": "string",
        "pattern": "^(client|origin|proxy(:[a-z0-9][a-z0-9-]*)?)$",
        "examples": ["client", "proxy", "origin", "proxy:store-1"],
        "x-weir-wanted": "client, proxy, origin, or a part of the proxy, such as \"proxy:store-1\"",
    }
    HumanDuration: {
        "type": "string",
        "pattern": r"^\s*(0\s*|([0-9]+(\.[0-9]+)?\s*(ns|us|µs|μs|ms|s|m|h|d)\s*)+)$",
        "examples": ["10ms", "1.5s", "2m"],
        "x-weir-unit": "duration",
    }
    ByteCount: {
        "type": ["integer", "string"],
        "minimum": 0,
        "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(B|kB|MB|GB|KiB|MiB|GiB)?\s*$",
        "examples": [11268, "16KiB"],
        "x-weir-unit": "bytes",
    }
    BitRate: {
        "type": "string",
        "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[kMG]?bit\s*(/s)?\s*$",
        "examples": ["100Mbit/s", "2.5Gbit/s"],
        "x-weir-unit": "bits",
    }
    Rate: {
        "type": ["number", "string"],
        "exclusiveMinimum": 0,
        "maximum": 1_000_000_000,
        "pattern": r"^\s*[0-9]+(\.[0-9]*)?\s*[kM]?\s*(/s)?\s*$",
        "examples": [5000, "20k/s"],
        "x-weir-unit": "rate",
    }
    Share: {
        "type": "string",
        "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$",
        "examples": ["0.1 %"],
        "x-weir-unit": "share",
    }
}
