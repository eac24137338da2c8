//! Generates the JSON schemas of the output of `weir load --json` from the result types.
//! The example `schema` of this crate writes them to `docs/schema`, for users who parse that output.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{LoadResult, SearchResult};

/// JSON schema (draft 2020-12) of a [`LoadResult`].
pub fn load_result_schema() -> Value {
    generate::<LoadResult>()
}

/// JSON schema (draft 2020-12) of a [`SearchResult`].
pub fn search_result_schema() -> Value {
    generate::<SearchResult>()
}

fn generate<T: JsonSchema>() -> Value {
    // As it is written: what has a default when read is there nevertheless.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
