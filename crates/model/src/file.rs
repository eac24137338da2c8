//! Reads `suite.toml`, `product.toml` and `hosts.toml`: `locate` parses the TOML, `shape` checks it against the JSON schema, and
//! `suite`, `product` and `topology` turn the wire structs into valid types. They also check what a schema cannot say, such as
//! references. [`Suite::parse`](crate::suite::Suite::parse) and [`Product::parse`], called by `weir-product`, and
//! [`Topology::parse`](crate::Topology::parse) are the entry points. The author of a file sees all its errors at once, each with its line; Serde would stop at the first
//! one. The only function here that opens a file is `Suite::read_run`.

mod errors;
pub(crate) mod forms;
mod install;
mod locate;
mod product;
mod schema;
mod shape;
mod suite;
mod topology;

use std::collections::BTreeMap;

use errors::Errors;
use serde::de::DeserializeOwned;

pub use schema::{product_schema, suite_schema, topology_schema};

use crate::InputError;
use crate::coding::Coding;
use crate::product::{ORIGIN_PROFILE, Product};

/// Reads a file: TOML that fits `schema`, and that `check` finds right. Errors are as [`crate::suite::Suite::parse`] says.
fn read<T: DeserializeOwned, U>(
    source_name: &str,
    text: &str,
    schema: &serde_json::Value,
    check: impl FnOnce(T, &mut Errors<'_>) -> Option<U>,
) -> Result<U, Vec<InputError>> {
    let (root, lines) = locate::parse(source_name, text)?;
    let mut errors = Errors::new(source_name, &lines);
    let valid = match shape::check(&root, schema, &mut errors).map(serde_json::from_value) {
        Some(Ok(file)) => check(file, &mut errors),
        Some(Err(error)) => {
            // The schema is generated from the same types, so what passed it fits them.
            errors.add_about_file(format!("cannot be read: {error}"), "what the schema describes");
            None
        }
        None => None,
    };
    errors.into_result(valid)
}

/// Which products exist, and which profiles each has: what a suite's names are checked against.
pub trait Catalogue {
    /// Names of all products, in the order in which they should be listed to people.
    fn products(&self) -> Vec<String>;

    /// Names of the profiles with which a product can be measured; `None` when there is no such product.
    fn profiles(&self, product: &str) -> Option<Vec<String>>;

    /// Whether this is the direct path, on which the client talks to the origin. Filters by profile do not apply to it.
    fn is_direct(&self, _product: &str) -> bool {
        false
    }

    /// Names of the products that can be the origin.
    fn origins(&self) -> Vec<String> {
        Vec::new()
    }

    /// The content codings in which a product answers under a profile; `None` where nobody knows.
    fn codings(&self, _product: &str, _profile: &str) -> Option<Vec<Coding>> {
        None
    }
}

/// Profile names by product name.
impl Catalogue for BTreeMap<String, Vec<String>> {
    fn products(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }

    fn profiles(&self, product: &str) -> Option<Vec<String>> {
        Some(self.get(product)?.iter().filter(|profile| *profile != ORIGIN_PROFILE).cloned().collect())
    }

    fn origins(&self) -> Vec<String> {
        let can = |profiles: &Vec<String>| profiles.iter().any(|profile| profile == ORIGIN_PROFILE);
        self.iter().filter(|(_, profiles)| can(profiles)).map(|(name, _)| name.clone()).collect()
    }
}

/// Products by name.
impl Catalogue for BTreeMap<String, Product> {
    fn products(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }

    fn profiles(&self, product: &str) -> Option<Vec<String>> {
        Some(self.get(product)?.proxy_profiles().cloned().collect())
    }

    fn origins(&self) -> Vec<String> {
        self.values().filter(|product| product.can_be_origin()).map(|product| product.name.clone()).collect()
    }

    fn codings(&self, product: &str, profile: &str) -> Option<Vec<Coding>> {
        Some(self.get(product)?.profiles.get(profile)?.codings.clone())
    }
}

/// Whether `name` may name a product, profile, workload, load or suite: `[a-z0-9-]+`, not beginning with `-`,
/// because names become folder names and arguments, and so short that the four of a trial fit the name of a folder (255 bytes).
pub(crate) fn is_name(name: &str) -> bool {
    (1..=60).contains(&name.len())
        && !name.starts_with('-')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// [`is_name`] in words.
pub(crate) const NAME_WANTED: &str =
    "a name of small letters, digits and -, beginning with a letter or digit, at most 60";
