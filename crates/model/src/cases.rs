//! Lists the cases of a suite that run under a load, without the skipped ones, and estimates how long they take.
//! `lab::plan`, `weir run`, `weir suites list` and `fit` call these methods of [`Suite`](crate::suite::Suite).
//! The module does not know the order of the trials.

use std::time::Duration;

use crate::record::{CaseId, Skipped};
use crate::suite::{Entry, Load, Suite, Workload};

impl Suite {
    /// Every workload and entry that a load runs with, workload by workload, without those left out.
    pub fn cases<'a>(&'a self, load: &Load, skipped: &[Skipped]) -> Vec<(&'a Workload, &'a Entry)> {
        let mut cases = Vec::new();
        for workload in &self.workloads {
            let asked = |entry: &&Entry| {
                workload.runs(&load.name, &entry.product, &entry.profile)
                    && load.has_rate(&workload.name, &entry.product)
                    && !skipped.iter().any(|one| one.covers(&entry.product, &entry.profile, &workload.name))
            };
            cases.extend(self.entries.iter().filter(asked).map(|entry| (workload, entry)));
        }
        cases
    }

    /// The names of those cases.
    pub fn case_ids(&self, load: &Load, skipped: &[Skipped]) -> Vec<CaseId> {
        let cases = self.cases(load, skipped).into_iter();
        cases.map(|(workload, entry)| CaseId::of(entry, workload, &load.name)).collect()
    }

    /// The number of trials of a run, over all blocks.
    pub fn trials(&self, skipped: &[Skipped]) -> usize {
        let one_block: usize = self.loads.iter().map(|load| self.cases(load, skipped).len()).sum();
        one_block.saturating_mul(self.blocks as usize)
    }

    /// How long a run takes: the time of its loads, plus `overhead` for each trial, in which the entry is started, checked
    /// and stopped.
    pub fn takes(&self, skipped: &[Skipped], overhead: &dyn Fn(&Entry) -> Duration) -> Duration {
        self.loads
            .iter()
            .map(|load| self.takes_under(load, skipped, overhead))
            .fold(Duration::ZERO, Duration::saturating_add)
    }

    /// How long the trials of one load take.
    pub fn takes_under(&self, load: &Load, skipped: &[Skipped], overhead: &dyn Fn(&Entry) -> Duration) -> Duration {
        let starts = |entry: &Entry| overhead(entry).saturating_mul(load.starts());
        let trial = |(_, entry): (_, &Entry)| load.estimated().saturating_add(starts(entry));
        let one_block = self.cases(load, skipped).into_iter().map(trial).fold(Duration::ZERO, Duration::saturating_add);
        one_block.saturating_mul(self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::suite;
    use crate::suite::EntryPattern;

    fn skipped(product: &str, workload: Option<&str>) -> Skipped {
        Skipped {
            product: product.into(),
            profile: String::new(),
            workload: workload.map(str::to_owned),
            why: "is not here".into(),
        }
    }

    #[test]
    fn a_run_takes_what_its_loads_say_and_what_its_entries_take_beside_them() {
        let suite = suite();
        // 3 blocks of 2 workloads and 3 products, under loads of 2.2 s and 3 s.
        assert_eq!(suite.trials(&[]), 36);
        let overhead = |entry: &Entry| Duration::from_millis(if entry.product == "nginx" { 1000 } else { 100 });
        assert_eq!(suite.takes(&[], &overhead), Duration::from_millis(18 * 5200 + 2 * (6 * 1000 + 12 * 100)));
        assert_eq!(suite.trials(&[skipped("nginx", None)]), 24);
        assert_eq!(suite.trials(&[skipped("nginx", Some("tiny"))]), 30);
    }

    #[test]
    fn workloads_are_asked_of_their_products_and_under_their_loads_alone() {
        let mut suite = suite();
        suite.workloads[1].products = Some(vec![EntryPattern::of("direct")]);
        suite.workloads[1].loads = Some(vec!["capacity".to_owned()]);
        let names = |load: &str| -> Vec<String> {
            let load = suite.load(load).expect("there");
            suite.cases(load, &[]).iter().map(|(w, e)| format!("{} {}", w.name, e.product)).collect()
        };
        assert_eq!(names("capacity"), ["tiny direct", "tiny nginx", "tiny haproxy", "medium direct"]);
        assert_eq!(names("latency"), ["tiny direct", "tiny nginx", "tiny haproxy"]);
    }

    #[test]
    fn no_length_overflows() {
        let mut suite = suite();
        suite.blocks = u32::MAX;
        suite.loads[0].duration = Duration::from_secs(u64::MAX / 4);
        assert_eq!(suite.takes(&[], &|_| Duration::MAX), Duration::MAX);
    }
}
