//! Estimates how long a run takes, from the lengths of its loads and the times of its finished trials. [`crate::run`] and
//! `weir run --dry-run` call it.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_model::product::{Product, ProductKind};
use weir_model::record::Measurement;
use weir_model::suite::{Load, Suite};

use crate::plan::Planned;

/// Time of a trial beside its load and its product's start: origin and client start, counters are read. 0.3 s were measured; the
/// rest is a trial's part of what a run does before and after its trials.
const STARTED: Duration = Duration::from_millis(400);

/// Time of a trial beside warm-up and window, until trials were timed: start-up, verification and settling.
const OVERHEAD: Duration = Duration::from_millis(600);

/// How long most products' files allow them to get ready.
const USUALLY_ALLOWED: Duration = Duration::from_secs(10);

/// How long those take: nginx 0.05 s, Caddy and HAProxy 0.15 s.
const USUALLY_TAKEN: Duration = Duration::from_millis(100);

/// Estimated start-up, verification and settling of a trial with this product, before one was timed. Twenty products were ready
/// in about a fifteenth of the time that their file allows beyond the usual one.
pub fn overhead(product: &Product) -> Duration {
    match &product.kind {
        ProductKind::Direct | ProductKind::Served(_) => STARTED,
        ProductKind::Proxy(program) => {
            STARTED + USUALLY_TAKEN + program.ready_within().saturating_sub(USUALLY_ALLOWED) / 15
        }
    }
}

/// Estimated time of the trials of `plan` from `from_trial` on. A trial takes the median time of the trials of its load in this
/// run. For a load without a finished trial, it takes the load's own length plus the median overhead of the other loads.
pub fn left(suite: &Suite, plan: &[Planned], measured: &[Measurement], from_trial: u32) -> Duration {
    let length = |load: &str| suite.load(load).map_or(Duration::ZERO, Load::estimated);
    let mut took: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut over = Vec::new();
    for trial in measured.iter().filter(|trial| trial.error.is_none()) {
        let load = trial.case.load.as_str();
        took.entry(load).or_default().push(trial.took_s);
        over.push((trial.took_s - length(load).as_secs_f64()).max(0.0));
    }
    let seen: BTreeMap<&str, f64> =
        took.iter().filter_map(|(load, took)| Some((*load, weir_stats::median(took)?))).collect();
    let overhead = weir_stats::median(&over).map_or(OVERHEAD, Duration::from_secs_f64);
    let one = |load: &str| seen.get(load).map_or(length(load) + overhead, |took| Duration::from_secs_f64(*took));
    plan.iter().filter(|p| p.trial >= from_trial).map(|p| one(&p.case.load)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{failed, measured, suite};
    use crate::plan::plan;

    #[test]
    fn what_is_left_follows_what_trials_took() {
        let suite = suite(2, 1, 3);
        let plan = plan(&suite, 1, &[]);
        assert_eq!(
            left(&suite, &plan, &[], 1),
            (Duration::from_secs(1) + OVERHEAD) * 12,
            "2 loads, 2 products, 3 blocks"
        );
        assert_eq!(left(&suite, &plan, &[], 12), Duration::from_secs(1) + OVERHEAD, "the last alone");
        assert_eq!(left(&suite, &plan, &[], 13), Duration::ZERO);
        let mut seen = vec![measured(1, "p0", "w0", 9.0), measured(2, "p1", "w0", 9.0), measured(3, "p0", "w0", 9.0)];
        for (row, took_s) in seen.iter_mut().zip([1.5, 3.0, 31.0]) {
            row.took_s = took_s;
        }
        // Errors end early; they do not count.
        seen.extend((4..9).map(|trial| failed(trial, "p1", "w0", "start", "no")));
        assert_eq!(left(&suite, &plan, &seen, 12), Duration::from_secs(3), "1 s of load and the median of 0.5, 2, 30");
        for (row, took_s) in seen.iter_mut().zip([0.2, 0.4, 0.5]) {
            row.took_s = took_s;
        }
        assert_eq!(
            left(&suite, &plan, &seen, 6),
            Duration::from_millis(400) + Duration::from_secs(6),
            "a load that ends sooner than estimated does so again; of another nothing is known"
        );
    }
}
