//! The trials of a run and their order. [`crate::run`] and `weir run --dry-run` call it.
//!
//! A *phase* is one load of the suite; later phases may need what earlier ones found (an open load's rate). Within a
//! phase, block follows block, and each block has one trial of every case in random order, so that the machine's
//! drift hits every product alike. Under a load with `keep` the cases of an entry stay together, in the suite's order, and the
//! entries are in random order. The plan is a pure function of the suite and the seed: a resumed run has the same.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use weir_model::record::{CaseId, Skipped};
use weir_model::suite::Suite;
use weir_model::text::grouped;

/// One trial to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// 1-based number in the run.
    pub trial: u32,
    /// 1-based block.
    pub block: u32,
    /// What it runs.
    pub case: CaseId,
}

impl Planned {
    /// Name of the trial's folder.
    pub fn folder(&self) -> String {
        format!("{:03}-{}", self.trial, self.case.slug())
    }
}

/// All trials of a run in order, without the skipped ones.
pub fn plan(suite: &Suite, seed: u64, skipped: &[Skipped]) -> Vec<Planned> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut trials = Vec::new();
    for load in &suite.loads {
        for block in 1..=suite.blocks {
            let mut cases: Vec<Vec<CaseId>> = match load.keep {
                true => by_entry(suite.case_ids(load, skipped)),
                false => suite.case_ids(load, skipped).into_iter().map(|case| vec![case]).collect(),
            };
            cases.shuffle(&mut rng);
            for case in cases.into_iter().flatten() {
                trials.push(Planned { trial: trials.len() as u32 + 1, block, case });
            }
        }
    }
    trials
}

/// The cases of each entry, in the order in which they come.
fn by_entry(cases: Vec<CaseId>) -> Vec<Vec<CaseId>> {
    let keyed = cases.into_iter().map(|case| ((case.product.clone(), case.profile.clone()), case));
    grouped(keyed).into_iter().map(|(_, cases)| cases).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::suite;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_seed_plans_the_same_and_another_does_not() {
        let suite = suite(4, 3, 2);
        assert_eq!(plan(&suite, 7, &[]), plan(&suite, 7, &[]));
        assert_ne!(plan(&suite, 7, &[]), plan(&suite, 8, &[]));
    }

    /// A plan once written is read again by later versions of weir: the order must not depend on the version of a library.
    #[test]
    fn the_order_of_a_seed_is_what_it_was() {
        let order: Vec<String> = plan(&suite(3, 1, 2), 7, &[]).iter().map(Planned::folder).collect();
        let wanted = "001-p0-tuned-w0-capacity 002-p2-tuned-w0-capacity 003-p1-tuned-w0-capacity 004-p1-tuned-w0-capacity \
                      005-p2-tuned-w0-capacity 006-p0-tuned-w0-capacity 007-p0-tuned-w0-half 008-p2-tuned-w0-half \
                      009-p1-tuned-w0-half 010-p0-tuned-w0-half 011-p1-tuned-w0-half 012-p2-tuned-w0-half";
        assert_eq!(order.join(" "), wanted);
    }

    #[test]
    fn every_size_has_every_case_once_a_block_in_phases_and_blocks_in_order() {
        for products in 0..5 {
            for workloads in 0..4 {
                for blocks in 0..4 {
                    let suite = suite(products, workloads, blocks);
                    let trials = plan(&suite, u64::from(blocks) + 17, &[]);
                    let cases = products * workloads;
                    assert_eq!(trials.len(), cases * blocks as usize * suite.loads.len());
                    assert!(trials.iter().map(|t| t.trial).eq(1..=trials.len() as u32), "numbered from 1");
                    let groups: Vec<&[Planned]> = trials.chunks(cases.max(1)).collect();
                    let expected: Vec<(&str, u32)> =
                        suite.loads.iter().flat_map(|l| (1..=blocks).map(move |b| (l.name.as_str(), b))).collect();
                    assert_eq!(groups.len(), if cases == 0 { 0 } else { expected.len() });
                    for (group, (load, block)) in groups.into_iter().zip(expected) {
                        assert!(group.iter().all(|t| t.case.load == load && t.block == block));
                        let different: BTreeSet<&CaseId> = group.iter().map(|t| &t.case).collect();
                        assert_eq!(different.len(), cases, "every case once");
                    }
                }
            }
        }
    }

    #[test]
    fn under_a_load_that_keeps_products_an_entrys_cases_follow_one_another_in_the_suites_order() {
        let mut suite = suite(4, 3, 2);
        suite.loads[1].keep = true;
        let trials = plan(&suite, 7, &[]);
        let (mixed, kept) = trials.split_at(24);
        let workloads = |trials: &[Planned]| trials.iter().map(|t| t.case.workload.clone()).collect::<Vec<_>>();
        for entry in kept.chunks(3) {
            assert_eq!(workloads(entry), ["w0", "w1", "w2"]);
            assert!(entry.iter().all(|t| t.case.product == entry[0].case.product && t.block == entry[0].block));
        }
        assert!(mixed.chunks(3).any(|three| workloads(three) != ["w0", "w1", "w2"]), "the other load is as it was");
        let first = |seed| plan(&suite, seed, &[])[24].case.product.clone();
        assert!((1..=20).map(first).collect::<BTreeSet<_>>().len() > 1, "entries are in random order");
    }

    #[test]
    fn blocks_differ_in_order() {
        let trials = plan(&suite(6, 1, 8), 1, &[]);
        let orders: BTreeSet<Vec<&str>> =
            trials.chunks(6).map(|block| block.iter().map(|t| t.case.product.as_str()).collect()).collect();
        assert!(orders.len() > 8, "16 blocks of 720 possible orders: {orders:?}");
    }

    #[test]
    fn what_is_skipped_is_not_planned_and_the_others_are() {
        let suite = suite(3, 2, 2);
        let out = |profile: &str, workload: Option<&str>| Skipped {
            product: "p1".into(),
            profile: profile.into(),
            workload: workload.map(str::to_owned),
            why: "does not".into(),
        };
        let of = |skipped: &[Skipped]| plan(&suite, 3, skipped).len();
        assert_eq!(of(&[]), 24);
        assert_eq!(of(&[out("tuned", Some("w1"))]), 20);
        assert_eq!(of(&[out("stock", None)]), 24, "another profile");
        assert_eq!(of(&[out("", None)]), 16);
        let trials = plan(&suite, 3, &[out("tuned", Some("w1"))]);
        assert!(trials.iter().all(|t| t.case.product != "p1" || t.case.workload == "w0"));
        assert!(trials.iter().map(|t| t.trial).eq(1..=20), "numbered from 1");
    }
}
