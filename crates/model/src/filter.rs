//! Parses `--only` filters, and makes the errors of flags that list names.
//! `weir run`, `weir report` and `weir compare` use the filters. [`Suite::select`](crate::suite::Suite::select) applies
//! them to a suite.

use strum::IntoStaticStr;

use crate::InputError;
use crate::text::suggestion;

/// One `--only key=value,value`. Several filters all have to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Which name of a case it looks at.
    pub key: FilterKey,
    /// The names that pass, at least one. A `*` in one stands for anything.
    pub values: Vec<String>,
    /// The last part of a name is enough: `tiny` for `http-tiny`.
    pub tail: bool,
}

/// Which name of a case a [`Filter`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum FilterKey {
    /// The product's.
    Product,
    /// The profile's.
    Profile,
    /// The workload's; `payload` in a filter means it, too, by the last part of its name.
    Workload,
    /// The load's.
    Load,
}

impl FilterKey {
    /// The name used in flags.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Filter {
    /// Reads `workload=tiny,medium`, `workload=https-*`, and `payload=tiny`, which means `http-tiny` as well.
    ///
    /// # Errors
    /// An unknown key, no `=`, no value.
    pub fn parse(text: &str) -> Result<Filter, InputError> {
        const KEYS: [&str; 5] = ["product", "profile", "workload", "payload", "load"];
        let wanted = "key=name,name with a key of product, profile, workload (or payload) or load, such as \
                      workload=tiny,medium";
        let Some((key, values)) = text.split_once('=') else {
            return Err(InputError::of("--only", format!("{text:?} has no ="), wanted));
        };
        let tail = key.trim() == "payload";
        let key = match key.trim() {
            "product" => FilterKey::Product,
            "profile" => FilterKey::Profile,
            "workload" | "payload" => FilterKey::Workload,
            "load" => FilterKey::Load,
            other => {
                let near = suggestion(other, KEYS);
                return Err(InputError::of("--only", format!("{text:?} has the unknown key {other:?}{near}"), wanted));
            }
        };
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return Err(InputError::of("--only", format!("{text:?} has an empty name"), wanted));
        }
        Ok(Filter { key, values, tail })
    }

    /// Whether a name passes.
    pub fn passes(&self, name: &str) -> bool {
        self.values.iter().any(|value| self.means(value, name))
    }

    /// Whether one of the filter's values means a name.
    pub fn means(&self, value: &str, name: &str) -> bool {
        let last_part = || self.tail && name.rsplit_once('-').is_some_and(|(_, last)| fits(value, last));
        fits(value, name) || last_part()
    }
}

/// Whether a name is what a pattern says, in which `*` is anything.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(after) = name.strip_prefix(head) else {
        return false;
    };
    // What follows the first `*` may begin anywhere in what follows the head.
    after.char_indices().map(|(at, _)| at).chain([after.len()]).any(|at| fits(rest, &after[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_passes_whole_by_pattern_or_by_its_last_part() {
        let passes = |text: &str, name: &str| Filter::parse(text).expect(text).passes(name);
        for (text, name) in [
            ("workload=tiny,large", "large"),
            ("workload=https-*", "https-tiny"),
            ("workload=*-tiny", "http-tiny"),
            ("workload=h*s-*y", "https-tiny"),
            ("load=*", "capacity"),
            ("payload=tiny", "tiny"),
            ("payload=tiny", "https-tiny"),
            ("profile=as-published*", "as-published-loggly"),
        ] {
            assert!(passes(text, name), "{text} {name}");
        }
        for (text, name) in [
            ("workload=tiny", "http-tiny"),
            ("workload=http-*", "https-tiny"),
            ("workload=*-tin", "http-tiny"),
            ("payload=tiny", "not-so-tiny-one"),
            ("payload=tiny", "tinytiny"),
        ] {
            assert!(!passes(text, name), "{text} {name}");
        }
    }

    #[test]
    fn a_filter_reads_only_what_it_knows() {
        let right = "\n  expected: key=name,name with a key of product, profile, workload (or payload) or load, \
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
