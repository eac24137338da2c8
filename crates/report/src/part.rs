//! Narrows a run to the part that `weir report --products --profile --only` selects. Called by `weir report`.
//! Tables, ranks, means and charts then cover only that part.

use weir_model::InputError;
use weir_model::filter::{Filter, FilterKey};
use weir_model::record::CaseId;
use weir_model::suite::{Entry, EntryPattern};
use weir_model::text::unique;

use crate::run::{BASELINE, Run};

/// The part of a run to show; the default is the whole run. Products are compared with the direct path, so only a filter that
/// names products without it leaves it out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Only these products: `name` or `name:profile`.
    pub products: Vec<String>,
    /// Only these profiles.
    pub profiles: Vec<String>,
    /// Only cases that all of these let pass.
    pub only: Vec<Filter>,
}

impl Part {
    /// The part of `run`, which says so.
    ///
    /// # Errors
    /// A name that the run does not have, with those that it has; a part in which there is nothing.
    pub fn of(&self, mut run: Run) -> Result<Run, InputError> {
        self.check(&run)?;
        let before = run.trials.len();
        run.trials.retain(|trial| self.passes(&trial.measurement.case));
        let entry_passes = |entry: &Entry| {
            self.passes_entry(&entry.product, &entry.profile)
                && self.passes_filters(FilterKey::Product, &entry.product)
                && (entry.product == BASELINE || self.passes_filters(FilterKey::Profile, &entry.profile))
        };
        run.suite.entries.retain(entry_passes);
        run.suite.workloads.retain(|workload| self.passes_filters(FilterKey::Workload, &workload.name));
        run.suite.loads.retain(|load| self.passes_filters(FilterKey::Load, &load.name));
        if before > 0 && run.trials.is_empty() {
            return Err(wrong("--products, --profile, --only", "they leave no trial of this run", "fewer of them"));
        }
        run.part = self.text();
        Ok(run)
    }

    fn passes(&self, case: &CaseId) -> bool {
        self.passes_entry(&case.product, &case.profile)
            && self.passes_filters(FilterKey::Product, &case.product)
            && (case.product == BASELINE || self.passes_filters(FilterKey::Profile, &case.profile))
            && self.passes_filters(FilterKey::Workload, &case.workload)
            && self.passes_filters(FilterKey::Load, &case.load)
    }

    fn passes_entry(&self, product: &str, profile: &str) -> bool {
        let named = |text: &String| EntryPattern::of(text).fits(product, profile);
        product == BASELINE
            || ((self.products.is_empty() || self.products.iter().any(named))
                && (self.profiles.is_empty() || self.profiles.iter().any(|own| own == profile)))
    }

    fn passes_filters(&self, key: FilterKey, name: &str) -> bool {
        self.only.iter().filter(|filter| filter.key == key).all(|filter| filter.passes(name))
    }

    /// Checks that every name occurs in this run.
    fn check(&self, run: &Run) -> Result<(), InputError> {
        let entries = &run.suite.entries;
        let names = |key: FilterKey| -> Vec<&str> {
            match key {
                FilterKey::Product => entries.iter().map(|entry| entry.product.as_str()).collect(),
                FilterKey::Profile => entries.iter().map(|entry| entry.profile.as_str()).collect(),
                FilterKey::Workload => run.suite.workloads.iter().map(|workload| workload.name.as_str()).collect(),
                FilterKey::Load => run.suite.loads.iter().map(|load| load.name.as_str()).collect(),
            }
        };
        for text in &self.products {
            let pattern = EntryPattern::of(text);
            if !entries.iter().any(|entry| pattern.fits(&entry.product, &entry.profile)) {
                return Err(wrong(
                    "--products",
                    &format!("this run has no {text:?}"),
                    &unique(names(FilterKey::Product)),
                ));
            }
        }
        for profile in &self.profiles {
            if !entries.iter().any(|entry| entry.profile == *profile) {
                let found = format!("this run has no profile {profile:?}");
                return Err(wrong("--profile", &found, &unique(names(FilterKey::Profile))));
            }
        }
        for filter in &self.only {
            let there = names(filter.key);
            let unknown = filter.values.iter().find(|value| !there.iter().any(|name| filter.means(value, name)));
            if let Some(value) = unknown {
                let found = format!("this run has no {} {value:?}", filter.key.as_str());
                return Err(wrong("--only", &found, &unique(there)));
            }
        }
        Ok(())
    }

    /// "products nginx, haproxy; workload tiny"; empty when all is shown.
    fn text(&self) -> String {
        let mut parts = Vec::new();
        if !self.products.is_empty() {
            parts.push(format!("products {}", self.products.join(", ")));
        }
        if !self.profiles.is_empty() {
            parts.push(format!("profile {}", self.profiles.join(", ")));
        }
        parts.extend(self.only.iter().map(|filter| format!("{} {}", filter.key.as_str(), filter.values.join(", "))));
        parts.join("; ")
    }
}

fn wrong(flag: &str, found: &str, wanted: &str) -> InputError {
    InputError { source: flag.to_owned(), line: None, key: None, found: found.to_owned(), wanted: wanted.to_owned() }
}
