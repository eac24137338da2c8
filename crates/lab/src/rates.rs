//! The rates of open loads that are a share of a measured capacity. [`crate::run`] calls it.
//!
//! A pure function of the measurements of an earlier load. The run records the chosen rates (`rates-<load>.json`), so that a
//! resumed run offers the same.

use serde::{Deserialize, Serialize};

use weir_model::record::{CaseId, Measurement, Verdict};
use weir_model::suite::{Entry, Load, LoadKind, RateBase, RateSpec, Suite, table_rate};

/// A chosen rate and the capacity that it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChosenRate {
    /// The open load.
    pub load: String,
    /// The workload.
    pub workload: String,
    /// The entry that it is for; `None` when all entries get it.
    pub entry: Option<Entry>,
    /// Requests a second.
    pub rate: f64,
    /// Whose capacity it is a share of.
    pub basis: Entry,
    /// That capacity, requests a second: median over blocks.
    pub capacity: f64,
}

/// Every rate of `load`, from the measurements so far. Empty for closed loads and fixed rates. A workload without a valid
/// measurement has none.
pub fn choose(
    suite: &Suite,
    load: &Load,
    measured: &[Measurement],
    is_direct: &dyn Fn(&str) -> bool,
) -> Vec<ChosenRate> {
    let LoadKind::Open { rate: RateSpec::Share { share, of, load: base }, .. } = &load.kind else {
        return Vec::new();
    };
    let mut chosen = Vec::new();
    for workload in &suite.workloads {
        let case = |entry: &Entry| CaseId::of(entry, workload, base);
        let capacities: Vec<(&Entry, f64)> =
            suite.entries.iter().filter_map(|entry| Some((entry, capacity(measured, &case(entry))?))).collect();
        let made = |entry: Option<Entry>, basis: &Entry, capacity: f64| ChosenRate {
            load: load.name.clone(),
            workload: workload.name.clone(),
            entry,
            rate: three_digits(capacity * share),
            basis: basis.clone(),
            capacity,
        };
        match of {
            RateBase::Own => chosen.extend(capacities.iter().map(|(e, c)| made(Some((*e).clone()), e, *c))),
            RateBase::Direct => {
                let direct = capacities.iter().find(|(entry, _)| is_direct(&entry.product));
                chosen.extend(direct.map(|(entry, capacity)| made(None, entry, *capacity)));
            }
            RateBase::Slowest => {
                // The baseline sets the rate only when there is no product.
                let products = capacities.iter().filter(|(entry, _)| !is_direct(&entry.product));
                let slowest = products.min_by(|a, b| a.1.total_cmp(&b.1)).or(capacities.first());
                chosen.extend(slowest.map(|(entry, capacity)| made(None, entry, *capacity)));
            }
        }
    }
    chosen
}

/// The rate of a case, which runs under `load`.
pub fn rate_for(chosen: &[ChosenRate], load: &Load, case: &CaseId) -> Option<f64> {
    match &load.kind {
        LoadKind::Closed | LoadKind::Count { .. } | LoadKind::Search { .. } => None,
        LoadKind::Open { rate: RateSpec::Fixed(rate), .. } => Some(*rate),
        LoadKind::Open { rate: RateSpec::Table(table), .. } => table_rate(table, &case.workload, &case.product),
        LoadKind::Open { .. } => {
            let is_of = |entry: &Entry| entry.product == case.product && entry.profile == case.profile;
            let holds = |c: &&ChosenRate| c.load == load.name && c.workload == case.workload;
            chosen.iter().filter(holds).find(|c| c.entry.as_ref().is_none_or(is_of)).map(|c| c.rate)
        }
    }
}

/// Median rate over the blocks whose results may be ranked.
fn capacity(measured: &[Measurement], case: &CaseId) -> Option<f64> {
    let rates: Vec<f64> = measured
        .iter()
        .filter(|m| m.case == *case && matches!(m.verdict, Verdict::Valid | Verdict::Suspect))
        .filter_map(|m| Some(m.load.as_ref()?.rate))
        .filter(|rate| *rate > 0.0)
        .collect();
    weir_stats::median(&rates)
}

/// Rounded down to three significant digits, so that people can read and type the rate. A positive rate never becomes 0.
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

    use crate::fixture::{case, failed, load_share, measured, suite};

    fn entry(product: &str) -> Entry {
        Entry { product: product.into(), profile: "tuned".into() }
    }

    fn choose_for(of: RateBase, rows: &[Measurement]) -> Vec<ChosenRate> {
        let mut suite = suite(3, 1, 3);
        suite.loads[1] = load_share("half", of, 0.5, "capacity");
        choose(&suite, &suite.loads[1], rows, &|name| name == "p0")
    }

    fn with(verdict: Verdict, row: Measurement) -> Measurement {
        Measurement { verdict, ..row }
    }

    /// p0 is the baseline: 100/s. p1: 4,000, 2,000, 9,000. p2: 5,000 and rows that do not count, each of which alone
    /// would move the median.
    fn rows() -> Vec<Measurement> {
        let mut rows = vec![measured(1, "p0", "w0", 100.0)];
        for (trial, rate) in [(2, 4_000.0), (3, 2_000.0), (4, 9_000.0)] {
            rows.push(with(Verdict::Suspect, measured(trial, "p1", "w0", rate)));
        }
        rows.push(measured(5, "p2", "w0", 5_000.0));
        rows.push(with(Verdict::Invalid, measured(7, "p2", "w0", 1.0)));
        rows.push(measured(8, "p2", "w0", 0.0));
        rows.push(measured(9, "p2", "w1", 2.0));
        rows.push(failed(10, "p2", "w0", "start", "no"));
        let mut other_load = measured(11, "p2", "w0", 3.0);
        other_load.case.load = "half".into();
        let mut other_profile = measured(12, "p2", "w0", 4.0);
        other_profile.case.profile = "stock".into();
        rows.extend([other_load, other_profile]);
        rows
    }

    #[test]
    fn the_slowest_product_that_was_measured_rightly_sets_the_rate_for_all() {
        let chosen = choose_for(RateBase::Slowest, &rows());
        let expected = ChosenRate {
            load: "half".into(),
            workload: "w0".into(),
            entry: None,
            rate: 2_000.0,
            basis: entry("p1"),
            capacity: 4_000.0,
        };
        assert_eq!(chosen, [expected]);
    }

    #[test]
    fn each_product_may_have_its_own() {
        let chosen = choose_for(RateBase::Own, &rows());
        let seen: Vec<(&str, f64, f64)> =
            chosen.iter().map(|c| (c.basis.product.as_str(), c.capacity, c.rate)).collect();
        assert_eq!(seen, [("p0", 100.0, 50.0), ("p1", 4_000.0, 2_000.0), ("p2", 5_000.0, 2_500.0)]);
        assert!(chosen.iter().all(|c| c.entry.as_ref() == Some(&c.basis)));
    }

    #[test]
    fn the_baseline_sets_the_rate_only_when_it_is_all_there_is() {
        let chosen = choose_for(RateBase::Slowest, &rows()[..1]);
        assert_eq!((chosen[0].basis.product.as_str(), chosen[0].rate), ("p0", 50.0));
    }

    #[test]
    fn without_a_capacity_there_is_no_rate() {
        assert_eq!(choose_for(RateBase::Slowest, &[]), []);
        assert_eq!(choose_for(RateBase::Own, &[failed(1, "p1", "w0", "start", "no")]), []);
        let suite = suite(3, 1, 1);
        assert_eq!(choose(&suite, &suite.loads[0], &rows(), &|_| false), [], "closed loads have none");
    }

    #[test]
    fn the_rate_that_holds_is_that_of_load_workload_and_entry() {
        let slowest = load_share("half", RateBase::Slowest, 0.5, "capacity");
        let chosen = choose_for(RateBase::Slowest, &rows());
        assert_eq!(rate_for(&chosen, &slowest, &case("p2", "w0", "half")), Some(2_000.0));
        assert_eq!(rate_for(&chosen, &slowest, &case("p2", "w1", "half")), None);
        let other = Load { name: "other".into(), ..slowest.clone() };
        assert_eq!(rate_for(&chosen, &other, &case("p2", "w0", "half")), None);
        let own = choose_for(RateBase::Own, &rows());
        assert_eq!(rate_for(&own, &slowest, &case("p2", "w0", "half")), Some(2_500.0));
        assert_eq!(rate_for(&own, &slowest, &case("p3", "w0", "half")), None);
        let closed = Load { kind: LoadKind::Closed, ..slowest.clone() };
        assert_eq!(rate_for(&chosen, &closed, &case("p2", "w0", "half")), None);
        let LoadKind::Open { arrivals, .. } = slowest.kind else { unreachable!("open by construction") };
        let fixed = Load { kind: LoadKind::Open { rate: RateSpec::Fixed(7.0), arrivals }, ..slowest };
        assert_eq!(rate_for(&[], &fixed, &case("p9", "w9", "half")), Some(7.0));
    }

    /// Never more than the rate, at most 1 % less, and never 0.
    #[test]
    fn rounding_loses_less_than_a_hundredth() {
        for step in 0..4_000 {
            let rate = 1e-3 * 1.006_f64.powi(step);
            let rounded = three_digits(rate);
            assert!(rounded <= rate * (1.0 + 1e-12) && rounded > rate * 0.99 && rounded > 0.0, "{rate} {rounded}");
        }
    }
}
