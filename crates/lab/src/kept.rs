//! Products that are kept over several cases: which trials of a plan one start is for, and what is kept between them. [`crate::run`]
//! asks it.
//!
//! An entry's cases in a block follow one another. One start is for all of them that can share product and origin: a product with one
//! listener is started anew where the protocol changes. This module does not know how anything is started.

use std::collections::BTreeMap;

use weir_model::product::{Product, ProductKind};
use weir_model::record::{Measurement, TrialError};
use weir_model::suite::{Suite, Workload};

use crate::plan::Planned;
use crate::trial::Stack;

/// The trials that one start of a product is for, in order: those with which `trial`, a trial of the plan, shares it, or it alone. Empty
/// when the plan has no such trial.
pub fn sharing<'p>(
    suite: &Suite,
    products: &BTreeMap<String, Product>,
    plan: &'p [Planned],
    trial: u32,
) -> &'p [Planned] {
    let Some(at) = plan.iter().position(|planned| planned.trial == trial) else { return &[] };
    let joined = |a: &Planned, b: &Planned| {
        let same_entry = (&a.case.product, &a.case.profile) == (&b.case.product, &b.case.profile);
        let keeps = suite.load(&a.case.load).is_some_and(|load| load.keep);
        keeps && same_entry && a.block == b.block && a.case.load == b.case.load && share(suite, products, a, b)
    };
    let mut groups = plan.chunk_by(joined);
    let mut before = 0;
    groups
        .find(|group| {
            before += group.len();
            at < before
        })
        .unwrap_or_default()
}

/// Whether product and origin that were started for one case can serve the other.
fn share(suite: &Suite, products: &BTreeMap<String, Product>, a: &Planned, b: &Planned) -> bool {
    let Some(product) = products.get(&a.case.product) else { return false };
    let Some((v, w)) = suite.workload(&a.case.workload).zip(suite.workload(&b.case.workload)) else { return false };
    let listeners = product.profiles.get(&a.case.profile).is_some_and(|profile| profile.listeners);
    matches!(product.kind, ProductKind::Proxy(_)) && (listeners || v.protocol == w.protocol) && same_origin(v, w)
}

/// Whether one origin can serve both.
fn same_origin(v: &Workload, w: &Workload) -> bool {
    v.upstream() == w.upstream()
        && v.stream == w.stream
        && v.origin_count() == w.origin_count()
        && v.gateway == w.gateway
        && v.tls == w.tls
        && v.request_id_header() == w.request_id_header()
        && v.origin_headers == w.origin_headers
        && v.keyvalue == w.keyvalue
}

/// What is kept between trials.
#[derive(Debug, Default)]
pub struct KeptProduct {
    /// Number of the first trial of those that share a start.
    first: u32,
    /// What runs.
    pub started: Option<Stack>,
    /// Why the rest is not tried.
    broken: Option<TrialError>,
}

impl KeptProduct {
    /// Begins a trial of those that share a start. What others have left is ended.
    pub fn begin(&mut self, sharing: &[Planned]) {
        let first = sharing.first().map_or(0, |planned| planned.trial);
        if first != self.first {
            *self = KeptProduct { first, ..KeptProduct::default() };
        }
    }

    /// Why a trial is not tried: the product of its start is gone.
    pub fn broken(&self) -> Option<TrialError> {
        self.broken.clone()
    }

    /// After a trial that was tried. When others come after it and nothing runs any more, they are not tried.
    pub fn after(&mut self, measured: &Measurement, of: usize) {
        if self.started.is_some() || self.broken.is_some() {
            return;
        }
        let (case, trial) = (&measured.case, measured.trial);
        let (gone, evidence, remedy) = match &measured.error {
            Some(TrialError { stage, message, evidence, remedy }) => {
                (format!("failed at \"{stage}\": {message}"), evidence.as_str(), remedy.as_str())
            }
            None => (
                "was its last: product or origin ended by itself after it".to_owned(),
                "the output of the trial that started it",
                "see why it ended",
            ),
        };
        let started = format!("{} was started once for {of} workloads", case.product);
        let message = format!("{started}, and trial {trial} ({}) {gone}", case.workload);
        self.broken = Some(TrialError::new("not-tried", message, evidence, remedy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{direct, failed, measured, suite};
    use crate::plan::plan;
    use weir_model::suite::Protocol;

    /// The suite's products, of which `p0` has a listener for each protocol, and its plan under loads that keep them.
    fn kept() -> (Suite, BTreeMap<String, Product>, Vec<Planned>) {
        let mut suite = suite(3, 4, 2);
        suite.loads.iter_mut().for_each(|load| load.keep = true);
        suite.workloads[2].protocol = Protocol::Https11;
        suite.workloads[3].protocol = Protocol::Https11;
        let product = |name: &str, listeners: &str| {
            let text = format!(
                "[product]\ntitle = \"x\"\nabout = \"x\"\nhome = \"https://x.test/\"\nspeaks = [\"http/1.1\", \"https/1.1\"]\n\
                 [[install]]\nmethod = \"system\"\nbinary = \"x\"\n[version]\ncommand = [\"x\"]\npattern = '(1)'\n\
                 [process]\ncommand = [\"x\"]\nready_within = \"1s\"\nstop_within = \"1s\"\n\
                 [profile.tuned]\nabout = \"x\"\n{listeners}\n[profile.stock]\nabout = \"x\"\n"
            );
            Product::parse(name, name, &text, Default::default(), Default::default()).expect("valid")
        };
        let products = [("p0", product("p0", "listeners = true")), ("p1", product("p1", "")), ("p2", direct())];
        let plan = plan(&suite, 5, &[]);
        (suite, products.map(|(name, product)| (name.to_owned(), product)).into(), plan)
    }

    fn shared_by(product: &str, suite: &Suite, products: &BTreeMap<String, Product>, plan: &[Planned]) -> Vec<usize> {
        let own = plan.iter().filter(|planned| planned.case.product == product);
        own.map(|planned| {
            let sharing = sharing(suite, products, plan, planned.trial);
            assert!(sharing.iter().any(|one| one == planned), "it is one of them");
            assert!(sharing.iter().all(|one| one.block == planned.block && one.case.load == planned.case.load));
            sharing.len()
        })
        .collect()
    }

    #[test]
    fn a_start_is_for_all_workloads_that_origin_and_listeners_can_serve() {
        let (mut suite, products, plan) = kept();
        let of = |suite: &Suite, product: &str| shared_by(product, suite, &products, &plan);
        assert_eq!(of(&suite, "p0"), [4; 16], "two loads, two blocks, four workloads");
        assert_eq!(of(&suite, "p1"), [2; 16], "one listener, two protocols");
        assert_eq!(of(&suite, "p2"), [1; 16], "there is nothing to keep of the direct path");
        suite.workloads[1].origins = Some(2);
        assert_eq!(of(&suite, "p0")[..4], [1, 1, 2, 2], "another number of origins");
        suite.workloads[1].origins = None;
        suite.workloads[1].origin_headers = vec![("Server".into(), "x".into())];
        assert_eq!(of(&suite, "p0")[..4], [1, 1, 2, 2], "other headers");
        suite.loads.iter_mut().for_each(|load| load.keep = false);
        assert_eq!(of(&suite, "p0"), [1; 16]);
        assert_eq!(sharing(&suite, &products, &plan, 999), []);
    }

    #[test]
    fn the_rest_is_not_tried_when_nothing_runs_any_more_and_others_are() {
        let (suite, products, plan) = kept();
        let first = plan.iter().find(|planned| planned.case.product == "p0").expect("planned").trial;
        let mine = sharing(&suite, &products, &plan, first);
        let mut kept_product = KeptProduct::default();
        kept_product.begin(mine);
        assert_eq!(kept_product.broken(), None);
        kept_product.after(&failed(first, "p0", "w0", "load", "died"), 4);
        kept_product.begin(mine);
        let said = kept_product.broken().expect("nothing runs");
        assert_eq!(said.stage, "not-tried");
        let expected = format!("p0 was started once for 4 workloads, and trial {first} (w0) failed at \"load\": died");
        assert_eq!((said.message, said.remedy), (expected, "mend".to_owned()));
        kept_product.after(&measured(first + 1, "p0", "w1", 9.0), 4);
        assert!(kept_product.broken().expect("still").message.contains("died"), "the first cause");
        let others = plan.iter().find(|planned| planned.case.product == "p1").expect("planned").trial;
        kept_product.begin(sharing(&suite, &products, &plan, others));
        assert_eq!(kept_product.broken(), None, "another start");
    }

    #[test]
    fn a_start_in_the_midst_shows_in_the_record() {
        let kept = |since, place| weir_model::record::Kept { since, place, of: 4 };
        assert!(!kept(7, 3).is_anew(9));
        assert!(kept(9, 3).is_anew(9) && kept(9, 3).is_anew(10));
    }
}
