//! Narrows a suite to what the document that it repeats ran. `weir run --as-published` and `weir suites show` call
//! [`Suite::as_published`]. The module knows names in a suite, and no document.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filter::fits;
use crate::suite::{EntryPattern, Suite};

/// The runs of the document that a suite repeats: each case once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AsPublished {
    /// The suite's products that it ran: `name`, or `name:profile`.
    #[schemars(length(min = 1))]
    pub products: Vec<EntryPattern>,
    /// The suite's loads that repeat it; a `*` in one stands for anything. Left out, all of them.
    #[schemars(length(min = 1))]
    pub loads: Option<Vec<String>>,
    /// The product that was the origin. Left out, it is the suite's.
    pub origin: Option<String>,
    /// The workloads of each product that it ran only some of them with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub only: BTreeMap<String, Vec<String>>,
}

impl Suite {
    /// The part of the suite that its document ran, in one block; `None` where it repeats no document. Scales are narrowed as by
    /// [`Suite::select`].
    pub fn as_published(&self) -> Option<Suite> {
        let mut suite = self.clone();
        let AsPublished { products, loads, origin, only } = suite.as_published.take()?;
        suite.blocks = 1;
        suite.origin = origin.or(suite.origin);
        suite.scales.values_mut().for_each(|scale| scale.blocks = None);
        suite.entries.retain(|entry| products.iter().any(|one| one.fits(&entry.product, &entry.profile)));
        if let Some(loads) = loads {
            suite.loads.retain(|load| loads.iter().any(|pattern| fits(pattern, &load.name)));
        }
        for workload in &mut suite.workloads {
            let skips = |product: &str| only.get(product).is_some_and(|some| !some.contains(&workload.name));
            if suite.entries.iter().any(|entry| skips(&entry.product)) {
                let asked = suite
                    .entries
                    .iter()
                    .filter(|entry| workload.asks(&entry.product, &entry.profile) && !skips(&entry.product));
                workload.products = Some(asked.map(EntryPattern::from).collect());
            }
        }
        suite.forget_loads_that_are_gone();
        suite.narrow_scales();
        Some(suite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::suite;
    use crate::suite::Scale;

    fn published(products: &[&str], loads: Option<&[&str]>, only: &[(&str, &[&str])]) -> Suite {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let as_published = AsPublished {
            products: products.iter().map(|name| EntryPattern::of(name)).collect(),
            loads: loads.map(owned),
            origin: Some("nginx".into()),
            only: only.iter().map(|(product, workloads)| ((*product).to_owned(), owned(workloads))).collect(),
        };
        Suite { as_published: Some(as_published), ..suite() }
    }

    fn cases(suite: &Suite) -> Vec<String> {
        let of = |load| suite.cases(load, &[]).into_iter().map(move |(workload, entry)| (workload, entry, load));
        let all = suite.loads.iter().flat_map(of);
        all.map(|(workload, entry, load)| format!("{} {} {}", entry.product, workload.name, load.name)).collect()
    }

    #[test]
    fn a_suite_that_repeats_no_document_has_none() {
        assert_eq!(suite().as_published(), None);
    }

    #[test]
    fn what_the_document_ran_is_left_once() {
        let ran = published(&["nginx:tuned"], Some(&["capacity"]), &[]).as_published().expect("there");
        assert_eq!(cases(&ran), ["nginx tiny capacity", "nginx medium capacity"]);
        assert_eq!((ran.blocks, ran.origin.as_deref(), &ran.as_published), (1, Some("nginx"), &None));
        // Without a list of loads, all of them.
        let ran = published(&["nginx", "haproxy"], None, &[]).as_published().expect("there");
        assert_eq!((ran.loads.len(), ran.entries.len()), (2, 2));
        let ran = published(&["nginx"], Some(&["*acity"]), &[]).as_published().expect("there");
        assert_eq!(cases(&ran).len(), 2);
    }

    #[test]
    fn a_product_that_ran_only_some_workloads_runs_those() {
        let ran = published(&["direct", "nginx"], Some(&["capacity"]), &[("direct", &["tiny"])]);
        let ran = ran.as_published().expect("there");
        assert_eq!(cases(&ran), ["direct tiny capacity", "nginx tiny capacity", "nginx medium capacity"]);
    }

    #[test]
    fn its_smoke_is_of_what_the_document_ran() {
        let ran = published(&["haproxy"], Some(&["capacity"]), &[]).as_published().expect("there");
        let (smoke, words) = ran.at_scale(Scale::Smoke);
        assert_eq!(cases(&smoke), ["haproxy tiny capacity"], "the scale's own products are none of these");
        assert!(words.iter().any(|line| line.contains("500ms")), "{words:?}");
    }
}
