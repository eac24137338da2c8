//! Summarises over blocks what the searches for the highest rate under an objective found. Called by `row`.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_model::load::{SearchLimit, SearchResult};
use weir_stats::{Estimate, median_interval};

use super::row::Cases;
use super::{LEVEL, SEED};

/// What the searches of one product found. Rates in requests a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchSummary {
    /// The highest rate that met the objective in all its trials.
    pub met_up_to: Option<Estimate>,
    /// The lowest that failed.
    pub failed_from: Option<Estimate>,
    /// Searches whose rate met the objective in a trial of full length too.
    pub confirmed: usize,
    /// Searches.
    pub of: usize,
    /// How they ended, each sentence with how many did.
    pub ends: BTreeMap<String, usize>,
    /// Who could not do more: `product`, `client`, `nobody`, each with how many searches.
    pub limits: BTreeMap<&'static str, usize>,
}

/// `None` where nothing was searched.
pub(super) fn searched(cases: &Cases<'_>, blocks: &[u32]) -> Option<SearchSummary> {
    let estimate = |value: fn(&SearchResult) -> Option<f64>| {
        let values = cases.of_measurements(blocks, |measurement| value(measurement.search.as_ref()?));
        median_interval(&values, LEVEL, SEED)
    };
    let all: Vec<&SearchResult> = cases.displayed().filter_map(|trial| trial.measurement.search.as_ref()).collect();
    if all.is_empty() {
        return None;
    }
    let mut searched = SearchSummary {
        met_up_to: estimate(|search| search.met_up_to),
        failed_from: estimate(|search| search.failed_from),
        confirmed: all.iter().filter(|search| search.confirmed).count(),
        of: all.len(),
        ends: BTreeMap::new(),
        limits: BTreeMap::new(),
    };
    for search in all {
        *searched.ends.entry(search.sentence()).or_default() += 1;
        let limit = match search.limit {
            Some(SearchLimit::Target) => "product",
            Some(SearchLimit::Client) => "client",
            None => "nobody",
        };
        *searched.limits.entry(limit).or_default() += 1;
    }
    Some(searched)
}
