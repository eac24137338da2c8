//! Finds the products of a run whose version is old. Called by `summary`.

use std::fmt;

use serde::{Serialize, Serializer};
use weir_model::product::is_levelled;
use weir_model::text::unique;

use super::Summary;
use crate::run::Run;

/// A product whose version is more than a year behind the newest that weir knows. In `--json` a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outdated {
    /// As a reader knows the product.
    pub title: String,
    /// Its version.
    pub version: String,
    /// When that was released.
    released: String,
    newest: String,
    newest_released: String,
}

impl fmt::Display for Outdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outdated { title, version, released, newest, newest_released } = self;
        write!(f, "{title} {version} of {released} ({newest} is of {newest_released})")
    }
}

impl Serialize for Outdated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The ranked products that are old, but for those that run as published, where the version of that time is meant.
pub(super) fn of(run: &Run, summary: &Summary) -> Vec<Outdated> {
    let rows = summary.sections.iter().flat_map(|section| &section.rows).filter(|row| row.rank.is_some());
    let ranked = unique(
        rows.filter(|row| is_levelled(&row.entry.profile) || row.entry.profile == "stock")
            .map(|row| row.entry.product.clone()),
    );
    let facts = run.environment.iter().flat_map(|environment| &environment.products);
    let old = facts.filter(|facts| ranked.contains(&facts.name)).filter_map(|facts| {
        let age = facts.age.as_ref().filter(|age| age.is_old())?;
        Some(Outdated {
            title: facts.title.clone(),
            version: facts.version.clone(),
            released: age.released.clone().unwrap_or_default(),
            newest: age.newest.clone(),
            newest_released: age.newest_released.clone(),
        })
    });
    old.collect()
}
