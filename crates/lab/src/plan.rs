//! Which trials a run has, and in which order.
//!
//! A *phase* is one load of the suite; later phases may need what earlier ones found (an open load's rate). Within a
//! phase, block follows block, and each block has one trial of every case in random order, so that the machine's
//! moods hit every product alike. The plan is a pure function of the suite and the seed: a resumed run has the same.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use weir_model::record::CaseId;
use weir_model::suite::Suite;

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

/// All trials of a run, in order.
pub fn plan(suite: &Suite, seed: u64) -> Vec<Planned> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut trials = Vec::new();
    for load in &suite.loads {
        for block in 1..=suite.blocks {
            let mut cases: Vec<CaseId> = suite
                .workloads
                .iter()
                .flat_map(|workload| {
                    suite.entries.iter().map(|entry| CaseId {
                        product: entry.product.clone(),
                        profile: entry.profile.clone(),
                        workload: workload.name.clone(),
                        load: load.name.clone(),
                    })
                })
                .collect();
            cases.shuffle(&mut rng);
            for case in cases {
                trials.push(Planned { trial: trials.len() as u32 + 1, block, case });
            }
        }
    }
    trials
}
