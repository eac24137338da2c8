//! A suite at a scale, and in words what the scale changed, for the report's first screen.

use std::time::Duration;

use crate::suite::{LoadKind, Scale, Suite};
use crate::units::HumanDuration;

impl Suite {
    /// The suite at `scale`, and one line for each thing that the scale changed; no lines when it runs as written.
    ///
    /// The result has no scales of its own: it is what runs, and running its file again must not scale it again.
    pub fn at_scale(&self, scale: Scale) -> (Suite, Vec<String>) {
        let mut suite = self.clone();
        let mut words = Vec::new();
        let Some(change) = std::mem::take(&mut suite.scales).remove(&scale) else {
            return (suite, words);
        };
        if let Some(blocks) = change.blocks.filter(|blocks| *blocks != suite.blocks) {
            words.push(format!("blocks: {blocks} instead of {}", suite.blocks));
            suite.blocks = blocks;
        }
        if let Some(products) = &change.products {
            let before = suite.entries.len();
            suite.entries.retain(|entry| products.contains(&entry.product));
            let left: Vec<&str> = suite.entries.iter().map(|entry| entry.product.as_str()).collect();
            left_out(&mut words, "products", &left, before);
        }
        if let Some(workloads) = &change.workloads {
            let before = suite.workloads.len();
            suite.workloads.retain(|workload| workloads.contains(&workload.name));
            let left: Vec<&str> = suite.workloads.iter().map(|workload| workload.name.as_str()).collect();
            left_out(&mut words, "workloads", &left, before);
        }
        if let Some(loads) = &change.loads {
            let before = suite.loads.len();
            suite.loads.retain(|load| loads.contains(&load.name));
            let left: Vec<&str> = suite.loads.iter().map(|load| load.name.as_str()).collect();
            left_out(&mut words, "loads", &left, before);
        }
        suite.forget_loads_that_are_gone();
        for load in &mut suite.loads {
            let name = &load.name;
            if let (LoadKind::Count { requests }, Some(new)) = (&mut load.kind, change.requests)
                && *requests != new
            {
                words.push(format!("requests of {name}: {new} instead of {requests}"));
                *requests = new;
            }
            set(&mut words, &format!("warm-up of {name}"), &mut load.warmup, change.warmup);
            set(&mut words, &format!("measured window of {name}"), &mut load.duration, change.duration);
        }
        (suite, words)
    }
}

fn left_out(words: &mut Vec<String>, what: &str, left: &[&str], before: usize) {
    if left.len() < before {
        words.push(format!("{what}: only {} ({} of {before})", left.join(", "), left.len()));
    }
}

fn set(words: &mut Vec<String>, what: &str, value: &mut Duration, new: Option<Duration>) {
    if let Some(new) = new.filter(|new| new != value) {
        words.push(format!("{what}: {} instead of {}", HumanDuration(new), HumanDuration(*value)));
        *value = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::suite;

    #[test]
    fn what_changed_is_said_and_nothing_else() {
        let (small, words) = suite().at_scale(Scale::Smoke);
        assert_eq!(
            words,
            [
                "blocks: 1 instead of 3",
                "products: only direct, nginx (2 of 3)",
                "workloads: only tiny (1 of 2)",
                "measured window of capacity: 500ms instead of 2s",
                "warm-up of latency: 200ms instead of 1s",
                "measured window of latency: 500ms instead of 2s",
            ]
        );
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
}
