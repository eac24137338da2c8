//! The part of a run that `--products`, `--profile` and `--only` select. `weir report` narrows a run to it, so that tables,
//! ranks, means and charts cover only that part; `weir-compare` compares only its cases.

use weir_model::InputError;
use weir_model::filter::{Filter, FilterKey};
use weir_model::record::CaseId;
use weir_model::select::ALL;
use weir_model::suite::EntryPattern;
use weir_model::text::{one_of, suggestion, unique};

use crate::run::{BASELINE, Run};

/// The part of a run to show; the default is the whole run. Products are compared with the direct path, so only a filter that
/// names products without it leaves it out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Only these products: `name` or `name:profile`; `all` means every product.
    pub products: Vec<String>,
    /// Only these profiles.
    pub profiles: Vec<String>,
    /// Only cases that all of these let pass.
    pub only: Vec<Filter>,
}

impl Part {
    /// The part of `run`, which says so.
    ///
    /// # Errors
    /// A name that the run does not have, with those that it has; a part in which there is nothing.
    pub fn of(&self, mut run: Run) -> Result<Run, InputError> {
        let cases: Vec<CaseId> = run.trials.iter().map(|trial| trial.measurement.case.clone()).collect();
        self.check(&cases, "this run has no")?;
        run.trials.retain(|trial| self.keeps(&trial.measurement.case));
        run.suite.entries.retain(|entry| self.keeps_entry(&entry.product, &entry.profile));
        run.suite.workloads.retain(|workload| self.passes(FilterKey::Workload, &workload.name));
        run.suite.loads.retain(|load| self.passes(FilterKey::Load, &load.name));
        if !cases.is_empty() && run.trials.is_empty() {
            let found = "they leave no trial of this run".to_owned();
            return Err(InputError::of("--products, --profile, --only", found, "fewer of them"));
        }
        run.part = self.text();
        Ok(run)
    }

    /// Whether a case belongs to the part.
    pub fn keeps(&self, case: &CaseId) -> bool {
        self.keeps_entry(&case.product, &case.profile)
            && self.passes(FilterKey::Workload, &case.workload)
            && self.passes(FilterKey::Load, &case.load)
    }

    fn keeps_entry(&self, product: &str, profile: &str) -> bool {
        let baseline = product == BASELINE;
        let own_profile = self.profiles.is_empty() || self.profiles.iter().any(|own| own == profile);
        (baseline || (self.names(product, profile) && own_profile && self.passes(FilterKey::Profile, profile)))
            && self.passes(FilterKey::Product, product)
    }

    /// Whether the products that are named include this one.
    pub fn names(&self, product: &str, profile: &str) -> bool {
        let named = |text: &String| text == ALL || EntryPattern::of(text).fits(product, profile);
        self.products.is_empty() || self.products.iter().any(named)
    }

    fn passes(&self, key: FilterKey, name: &str) -> bool {
        self.only.iter().filter(|filter| filter.key == key).all(|filter| filter.passes(name))
    }

    /// Refuses names that no case has: a filter that matches nothing leaves nothing. `none_has` begins the message.
    ///
    /// # Errors
    /// The first such name, with the names that exist.
    pub fn check(&self, cases: &[CaseId], none_has: &str) -> Result<(), InputError> {
        let known = |flag: &str, what: &str, wanted: &str, names: Vec<String>, means: &dyn Fn(&str) -> bool| {
            let names = unique(names);
            if names.iter().any(|name| means(name)) {
                return Ok(());
            }
            let found = format!("{none_has} {what} {wanted:?}{}", suggestion(wanted, &names));
            Err(InputError::of(flag, found, one_of(&names)))
        };
        let names = |of: &dyn Fn(&CaseId) -> String| cases.iter().map(of).collect::<Vec<String>>();
        for wanted in self.products.iter().filter(|name| *name != ALL) {
            let names = match wanted.contains(':') {
                true => names(&|case| format!("{}:{}", case.product, case.profile)),
                false => names(&|case| case.product.clone()),
            };
            known("--products", "product", wanted, names, &|name| name == wanted)?;
        }
        for wanted in &self.profiles {
            known("--profile", "profile", wanted, names(&|case| case.profile.clone()), &|name| name == wanted)?;
        }
        for (filter, wanted) in
            self.only.iter().flat_map(|filter| filter.values.iter().map(move |value| (filter, value)))
        {
            let name = |case: &CaseId| match filter.key {
                FilterKey::Product => case.product.clone(),
                FilterKey::Profile => case.profile.clone(),
                FilterKey::Workload => case.workload.clone(),
                FilterKey::Load => case.load.clone(),
            };
            known("--only", filter.key.as_str(), wanted, names(&name), &|name| filter.means(wanted, name))?;
        }
        Ok(())
    }

    /// "products nginx, haproxy; workload tiny"; empty when all is shown.
    fn text(&self) -> String {
        let names = [("products", &self.products), ("profile", &self.profiles)].into_iter();
        let filters = self.only.iter().map(|filter| (filter.key.as_str(), &filter.values));
        let parts = names.filter(|(_, names)| !names.is_empty()).chain(filters);
        parts.map(|(what, names)| format!("{what} {}", names.join(", "))).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(product: &str, profile: &str, workload: &str) -> CaseId {
        CaseId { product: product.into(), profile: profile.into(), workload: workload.into(), load: "max".into() }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn only(text: &str) -> Vec<Filter> {
        vec![Filter::parse(text).expect("a filter")]
    }

    #[test]
    fn every_filter_has_to_hold() {
        let cases = [case("alder", "tuned", "plain"), case("alder", "stock", "plain"), case("birch", "tuned", "json")];
        let kept = |part: Part| -> Vec<usize> {
            part.check(&cases, "this run has no").expect("names that are there");
            (0..cases.len()).filter(|i| part.keeps(&cases[*i])).collect()
        };
        assert_eq!(kept(Part::default()), [0, 1, 2]);
        assert_eq!(kept(Part { products: names(&["all"]), ..Part::default() }), [0, 1, 2]);
        assert_eq!(kept(Part { products: names(&["alder:stock", "birch"]), ..Part::default() }), [1, 2]);
        let both = Part { profiles: names(&["tuned"]), only: only("payload=plain"), ..Part::default() };
        assert_eq!(kept(both), [0]);
        assert_eq!(kept(Part { only: only("load=max"), ..Part::default() }), [0, 1, 2]);
        assert_eq!(kept(Part { only: only("workload=pl*"), ..Part::default() }), [0, 1]);
        assert!(Part { profiles: names(&["tuned"]), ..Part::default() }.keeps(&case("direct", "none", "plain")));
    }

    #[test]
    fn names_that_are_not_there_are_refused() {
        let cases = [case("alder", "tuned", "plain")];
        let refused = |part: Part| part.check(&cases, "neither run has a").expect_err("refused").to_string();
        assert_eq!(
            refused(Part { products: names(&["aldr"]), ..Part::default() }),
            "--products: neither run has a product \"aldr\"; did you mean \"alder\"?\n  expected: alder"
        );
        let profiles = refused(Part { profiles: names(&["stock"]), ..Part::default() });
        assert!(profiles.starts_with("--profile: neither run has a profile \"stock\""), "{profiles}");
        assert!(refused(Part { only: only("workload=json"), ..Part::default() }).contains("expected: plain"));
    }
}
