//! The rates of open loads that are a share of what was found before.
//!
//! A pure function of the measurements of an earlier load; the run writes what it chose down (`rates-<load>.json`), so that a
//! resumed run offers the same.

use serde::{Deserialize, Serialize};

use weir_model::record::{Measurement, Verdict};
use weir_model::suite::{Entry, Load, LoadKind, RateBase, RateSpec, Suite};

/// A rate that was chosen, and from what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// The open load.
    pub load: String,
    /// The workload.
    pub workload: String,
    /// Only for this entry; `None`: offered alike to all.
    pub entry: Option<Entry>,
    /// Requests a second.
    pub rate: f64,
    /// Whose capacity it is a share of.
    pub basis: Entry,
    /// That capacity, requests a second: median over blocks.
    pub capacity: f64,
}

/// Every rate of `load`, from the measurements so far. Empty for closed loads and fixed rates. A workload that no
/// entry carried rightly has none.
pub fn choose(suite: &Suite, load: &Load, measured: &[Measurement], is_direct: &dyn Fn(&str) -> bool) -> Vec<Chosen> {
    let LoadKind::Open { rate: RateSpec::Share { share, of, load: base }, .. } = &load.kind else {
        return Vec::new();
    };
    let mut chosen = Vec::new();
    for workload in &suite.workloads {
        let capacities: Vec<(&Entry, f64)> = suite
            .entries
            .iter()
            .filter_map(|entry| Some((entry, capacity(measured, entry, &workload.name, base)?)))
            .collect();
        let made = |entry: Option<Entry>, basis: &Entry, capacity: f64| Chosen {
            load: load.name.clone(),
            workload: workload.name.clone(),
            entry,
            rate: three_digits(capacity * share),
            basis: basis.clone(),
            capacity,
        };
        match of {
            RateBase::Own => chosen.extend(capacities.iter().map(|(e, c)| made(Some((*e).clone()), e, *c))),
            RateBase::Slowest => {
                // The baseline sets no rate, unless it is all there is.
                let products = capacities.iter().filter(|(entry, _)| !is_direct(&entry.product));
                let slowest = products.min_by(|a, b| a.1.total_cmp(&b.1)).or(capacities.first());
                chosen.extend(slowest.map(|(entry, capacity)| made(None, entry, *capacity)));
            }
        }
    }
    chosen
}

/// The rate that holds for one entry.
pub fn rate_for(chosen: &[Chosen], load: &Load, workload: &str, entry: &Entry) -> Option<f64> {
    match &load.kind {
        LoadKind::Closed => None,
        LoadKind::Open { rate: RateSpec::Fixed(rate), .. } => Some(*rate),
        LoadKind::Open { .. } => chosen
            .iter()
            .find(|c| c.load == load.name && c.workload == workload && c.entry.as_ref().is_none_or(|e| e == entry))
            .map(|c| c.rate),
    }
}

/// Median rate over the blocks that yielded a number that may be ranked.
fn capacity(measured: &[Measurement], entry: &Entry, workload: &str, load: &str) -> Option<f64> {
    let rates: Vec<f64> = measured
        .iter()
        .filter(|m| {
            m.case.product == entry.product
                && m.case.profile == entry.profile
                && m.case.workload == workload
                && m.case.load == load
                && matches!(m.verdict, Verdict::Valid | Verdict::Suspect)
        })
        .filter_map(|m| Some(m.load.as_ref()?.rate))
        .filter(|rate| *rate > 0.0)
        .collect();
    weir_stats::median(&rates)
}

/// Rounded down to three significant digits: a rate that people can read and type, and never 0 of something.
fn three_digits(rate: f64) -> f64 {
    if rate <= 0.0 {
        return 0.0;
    }
    let exponent = 2 - rate.log10().floor() as i32;
    // Whole powers of ten are exact: 7.9 stays 7.9, where a multiplication by 0.01 would make 7.9000000000000004.
    let (up, down) = (10f64.powi(exponent.max(0)), 10f64.powi((-exponent).max(0)));
    (rate * up / down).floor() * down / up
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded_down_to_three_digits() {
        assert_eq!(three_digits(31_987.6), 31_900.0);
        assert_eq!(three_digits(999.9), 999.0);
        assert_eq!(three_digits(7.9), 7.9);
        assert_eq!(three_digits(0.123_456), 0.123);
        assert_eq!(three_digits(0.0), 0.0);
    }
}
