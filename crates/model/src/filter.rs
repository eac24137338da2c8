//! What `--only` says, and how errors in flags that list names are told.
//!
//! Knows nothing of a suite: [`Suite::select`](crate::suite::Suite::select) applies filters to one.

use crate::InputError;
use crate::file::suggestion;

/// One `--only key=value,value`. Several filters all have to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Which name of a case it looks at.
    pub key: FilterKey,
    /// The names that pass, at least one.
    pub values: Vec<String>,
}

/// Which name of a case a [`Filter`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterKey {
    /// The product's.
    Product,
    /// The profile's.
    Profile,
    /// The workload's; `payload` in a filter means the same.
    Workload,
    /// The load's.
    Load,
}

impl FilterKey {
    /// The name used in flags.
    pub fn as_str(self) -> &'static str {
        match self {
            FilterKey::Product => "product",
            FilterKey::Profile => "profile",
            FilterKey::Workload => "workload",
            FilterKey::Load => "load",
        }
    }
}

impl Filter {
    /// Reads `workload=tiny,medium`.
    ///
    /// # Errors
    /// An unknown key, no `=`, no value.
    pub fn parse(text: &str) -> Result<Filter, InputError> {
        const KEYS: [&str; 5] = ["product", "profile", "workload", "payload", "load"];
        let wanted = "key=name,name with a key of product, profile, workload (or payload) or load, such as \
                      workload=tiny,medium";
        let Some((key, values)) = text.split_once('=') else {
            return Err(flag_error("--only", format!("{text:?} has no ="), wanted));
        };
        let key = match key.trim() {
            "product" => FilterKey::Product,
            "profile" => FilterKey::Profile,
            "workload" | "payload" => FilterKey::Workload,
            "load" => FilterKey::Load,
            other => {
                let near = suggestion(other, KEYS);
                return Err(flag_error("--only", format!("{text:?} has the unknown key {other:?}{near}"), wanted));
            }
        };
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return Err(flag_error("--only", format!("{text:?} has an empty name"), wanted));
        }
        Ok(Filter { key, values })
    }

    /// Whether a name passes.
    pub fn passes(&self, name: &str) -> bool {
        self.values.iter().any(|value| value == name)
    }
}

pub(crate) fn names_of(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}

pub(crate) fn flag_error(flag: &str, found: impl Into<String>, wanted: impl Into<String>) -> InputError {
    InputError { source: flag.to_owned(), line: None, key: None, found: found.into(), wanted: wanted.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_reads_only_what_it_knows() {
        let right = "\n  would be right: key=name,name with a key of product, profile, workload (or payload) or load, \
                     such as workload=tiny,medium";
        for (text, found) in [
            ("tiny", "\"tiny\" has no ="),
            ("worklaod=tiny", "\"worklaod=tiny\" has the unknown key \"worklaod\"; did you mean \"workload\"?"),
            ("load=", "\"load=\" has an empty name"),
            ("load=a,,b", "\"load=a,,b\" has an empty name"),
        ] {
            let error = Filter::parse(text).expect_err(text).to_string();
            assert_eq!(error, format!("--only: {found}{right}"));
        }
    }
}
