//! Applies a scale (`smoke`, `fit`, `full`) to a suite, and lists what the scale changed.
//! `weir run` and `weir suites list` call it, and the first screen of the report shows the list.

use std::time::Duration;

use crate::suite::{Load, LoadKind, Scale, ScaleOverride, Suite};
use crate::units::HumanDuration;

impl Suite {
    /// The suite at `scale`, and one line for each thing that the scale changed; no lines when it runs as written.
    ///
    /// The result has neither scales of its own nor a document: it is what runs, and running its file again must not scale it again.
    pub fn at_scale(&self, scale: Scale) -> (Suite, Vec<String>) {
        let mut suite = Suite { as_published: None, ..self.clone() };
        let Some(change) = std::mem::take(&mut suite.scales).remove(&scale) else {
            return (suite, Vec::new());
        };
        suite.blocks = change.blocks.unwrap_or(suite.blocks);
        if let Some(products) = &change.products {
            suite.entries.retain(|entry| products.contains(&entry.product));
        }
        if let Some(workloads) = &change.workloads {
            suite.workloads.retain(|workload| workloads.contains(&workload.name));
        }
        if let Some(loads) = &change.loads {
            suite.loads.retain(|load| loads.contains(&load.name));
        }
        suite.forget_loads_that_are_gone();
        for load in &mut suite.loads {
            rescale(load, &change);
        }
        let words = suite.changed_from(self);
        (suite, words)
    }

    /// The suite without the loads that ask for more CPUs than products have here, and a line for each of them.
    pub fn on_cores(&self, cores: u32) -> (Suite, Vec<String>) {
        let mut suite = self.clone();
        let mut words = Vec::new();
        suite.loads.retain(|load| {
            let missing = load.least_cores.filter(|least| *least > cores);
            if let Some(least) = missing {
                let here = if cores == 1 { "1 CPU".to_owned() } else { format!("{cores} CPUs") };
                words.push(format!(
                    "load {} is left out: it asks for {least} CPUs for products, and here they have {here}",
                    load.name
                ));
            }
            missing.is_none()
        });
        suite.forget_loads_that_are_gone();
        (suite, words)
    }

    /// What was removed or shortened in this suite compared with `before`, one line for each change.
    pub fn changed_from(&self, before: &Suite) -> Vec<String> {
        let mut words = Vec::new();
        if self.blocks != before.blocks {
            words.push(format!("blocks: {} instead of {}", self.blocks, before.blocks));
        }
        let entries: Vec<&str> = self.entries.iter().map(|entry| entry.product.as_str()).collect();
        skipped(&mut words, "products", entries, before.entries.len());
        let workloads: Vec<&str> = self.workloads.iter().map(|workload| workload.name.as_str()).collect();
        skipped(&mut words, "workloads", workloads, before.workloads.len());
        let loads: Vec<&str> = self.loads.iter().map(|load| load.name.as_str()).collect();
        skipped(&mut words, "loads", loads, before.loads.len());
        for load in &self.loads {
            if let Some(old) = before.load(&load.name) {
                changed(&mut words, load, old);
            }
        }
        words
    }
}

/// A load without a warm-up stays without one, because it measures the start. A load with a fixed number of requests has no
/// window: its duration is a limit and does not say how long the load takes.
fn rescale(load: &mut Load, change: &ScaleOverride) {
    if let LoadKind::Count { requests } = &mut load.kind {
        // Never more than the suite itself asks for: a load may already be smaller than the scale.
        *requests = change.requests.map_or(*requests, |new| new.min(*requests));
        return;
    }
    load.duration = change.duration.unwrap_or(load.duration);
    if !load.warmup.is_zero() {
        load.warmup = change.warmup.unwrap_or(load.warmup);
    }
}

fn changed(words: &mut Vec<String>, load: &Load, old: &Load) {
    let name = &load.name;
    if let (LoadKind::Count { requests }, LoadKind::Count { requests: before }) = (&load.kind, &old.kind)
        && requests != before
    {
        words.push(format!("requests of {name}: {requests} instead of {before}"));
    }
    let mut time = |what: &str, now: Duration, before: Duration| {
        if now != before {
            words.push(format!("{what} of {name}: {} instead of {}", brief(now), brief(before)));
        }
    };
    time("longest warm-up", load.steady.unwrap_or_default(), old.steady.unwrap_or_default());
    time("warm-up", load.warmup, old.warmup);
    time("measured window", load.duration, old.duration);
}

/// `300ms`, `2.1s`, `60s`, `5m`.
fn brief(time: Duration) -> String {
    if time < Duration::from_secs(1) || time > Duration::from_secs(100) {
        return HumanDuration(time).to_string();
    }
    let tenths = format!("{:.1}", time.as_secs_f64());
    format!("{}s", tenths.trim_end_matches(".0"))
}

fn skipped(words: &mut Vec<String>, what: &str, mut left: Vec<&str>, before: usize) {
    let number = left.len();
    if number < before {
        // A product under two profiles is two entries and one name.
        left.dedup();
        words.push(format!("{what}: only {} ({number} of {before})", left.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::suite;

    #[test]
    fn what_changed_is_said_and_nothing_else() {
        let (small, words) = suite().at_scale(Scale::Smoke);
        let wanted = "blocks: 1 instead of 3; products: only direct, nginx (2 of 3); \
                      workloads: only tiny (1 of 2); measured window of capacity: 500ms instead of 2s; \
                      warm-up of latency: 200ms instead of 1s; measured window of latency: 500ms instead of 2s";
        assert_eq!(words.join("; "), wanted);
        assert_eq!((small.blocks, small.entries.len(), small.workloads.len()), (1, 2, 1));
        assert_eq!(small.loads[0].duration, Duration::from_millis(500));
        assert!(small.scales.is_empty());
    }

    #[test]
    fn a_scale_that_changes_nothing_says_nothing() {
        for scale in [Scale::Fit, Scale::Full] {
            let (same, words) = suite().at_scale(scale);
            assert_eq!(words, Vec::<String>::new());
            assert_eq!(Suite { scales: suite().scales, ..same }, suite());
        }
    }

    #[test]
    fn what_has_no_warm_up_or_no_window_gets_none_from_a_scale() {
        let mut suite = suite();
        suite.loads[0].warmup = Duration::ZERO;
        suite.loads[1].kind = LoadKind::Count { requests: 900 };
        suite.scales.insert(
            Scale::Fit,
            ScaleOverride {
                requests: Some(1000),
                warmup: Some(Duration::from_millis(300)),
                duration: Some(Duration::from_millis(700)),
                ..ScaleOverride::default()
            },
        );
        assert_eq!(suite.at_scale(Scale::Fit).1, ["measured window of capacity: 700ms instead of 2s"]);
        suite.scales.entry(Scale::Fit).or_default().requests = Some(100);
        assert_eq!(suite.at_scale(Scale::Fit).1[1], "requests of latency: 100 instead of 900");
    }

    #[test]
    fn loads_for_more_cpus_than_there_are_go_with_a_line() {
        let mut suite = suite();
        suite.loads[1].least_cores = Some(16);
        let (small, words) = suite.on_cores(4);
        assert_eq!(small.loads.len(), 1);
        assert_eq!(words, ["load latency is left out: it asks for 16 CPUs for products, and here they have 4 CPUs"]);
        assert_eq!(suite.on_cores(16), (suite.clone(), Vec::new()));
    }
}
