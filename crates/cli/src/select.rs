//! The flags that select a part of a suite. Shared by `weir run` and `weir suites show`.

use weir_model::filter::FilterKey;
use weir_model::{Filter, InputError};

/// `--products`, `--profile` and `--only`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Select {
    /// Only these products, in this order: name, name:profile, or all (every product that is or can be installed).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub products: Option<Vec<String>>,
    /// Profiles (configurations) to run every product under, such as stock,tuned.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub profile: Option<Vec<String>>,
    /// Only cases that match: product=, profile=, workload= (or payload=) or load=, with values separated by commas; * matches
    /// anything. May be repeated.
    #[arg(long, value_name = "KEY=VALUES")]
    only: Vec<String>,
}

impl Select {
    /// What `--only` says.
    ///
    /// # Errors
    /// What is wrong in one of them.
    pub fn filters(&self) -> Result<Vec<Filter>, InputError> {
        self.only.iter().map(|text| Filter::parse(text)).collect()
    }

    /// Whether a load is asked for by name.
    pub fn names_loads(&self) -> bool {
        self.filters().is_ok_and(|filters| filters.iter().any(|filter| filter.key == FilterKey::Load))
    }
}
