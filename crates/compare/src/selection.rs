//! Selects the cases to compare, with the same filters as `weir run`. `weir compare` builds it, and `lib`
//! applies it to the cases of both runs. It knows names only.

use weir_model::filter::FilterKey;
use weir_model::record::CaseId;
use weir_model::select::ALL;
use weir_model::text::{one_of, suggestion};
use weir_model::{Filter, InputError};

use weir_report::run::BASELINE;

/// `--products`, `--profile` and `--only`; a case must match all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names, or `name:profile`; `None` and `all` mean every product.
    pub products: Option<Vec<String>>,
    /// Names; `None` means every profile. The direct path belongs to each profile.
    pub profiles: Option<Vec<String>>,
    /// The filters of `--only`.
    pub only: Vec<Filter>,
}

impl Selection {
    /// True when a case is compared.
    pub fn keeps(&self, case: &CaseId) -> bool {
        let entry = format!("{}:{}", case.product, case.profile);
        let product = |name: &String| name == ALL || *name == case.product || *name == entry;
        self.products.as_ref().is_none_or(|names| names.iter().any(product))
            && self.profiles.as_ref().is_none_or(|names| case.product == BASELINE || names.contains(&case.profile))
            && self.only.iter().all(|filter| filter.passes(name(case, filter.key)))
    }

    /// Refuses names that no case has: with a filter that matches nothing, the comparison would be empty.
    ///
    /// # Errors
    /// The first such name, with the names that exist.
    pub fn check(&self, cases: &[CaseId]) -> Result<(), InputError> {
        for wanted in self.products.iter().flatten().filter(|name| *name != ALL) {
            let there = |case: &CaseId| match wanted.split_once(':') {
                Some(_) => format!("{}:{}", case.product, case.profile),
                None => case.product.clone(),
            };
            known("--products", "product", wanted, cases.iter().map(there), &|name| name == wanted)?;
        }
        for wanted in self.profiles.iter().flatten() {
            let there = cases.iter().map(|case| case.profile.clone());
            known("--profile", "profile", wanted, there, &|name| name == wanted)?;
        }
        for filter in &self.only {
            for wanted in &filter.values {
                let there = cases.iter().map(|case| name(case, filter.key).to_owned());
                known("--only", filter.key.as_str(), wanted, there, &|name| filter.means(wanted, name))?;
            }
        }
        Ok(())
    }
}

fn name(case: &CaseId, key: FilterKey) -> &str {
    match key {
        FilterKey::Product => &case.product,
        FilterKey::Profile => &case.profile,
        FilterKey::Workload => &case.workload,
        FilterKey::Load => &case.load,
    }
}

fn known(
    flag: &str,
    what: &str,
    wanted: &str,
    there: impl Iterator<Item = String>,
    means: &dyn Fn(&str) -> bool,
) -> Result<(), InputError> {
    let mut names: Vec<String> = Vec::new();
    for name in there {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.iter().any(|name| means(name)) {
        return Ok(());
    }
    let all = || names.iter().map(String::as_str);
    Err(InputError {
        source: flag.to_owned(),
        line: None,
        key: None,
        found: format!("neither run has a {what} {wanted:?}{}", suggestion(wanted, all())),
        wanted: one_of(all()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(product: &str, profile: &str, workload: &str) -> CaseId {
        CaseId { product: product.into(), profile: profile.into(), workload: workload.into(), load: "max".into() }
    }

    #[test]
    fn every_filter_has_to_hold() {
        let cases = [case("alder", "tuned", "plain"), case("alder", "stock", "plain"), case("birch", "tuned", "json")];
        let kept = |selection: Selection| -> Vec<usize> {
            selection.check(&cases).expect("names that are there");
            (0..cases.len()).filter(|i| selection.keeps(&cases[*i])).collect()
        };
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let only = |text: &str| vec![Filter::parse(text).expect("a filter")];
        assert_eq!(kept(Selection::default()), [0, 1, 2]);
        assert_eq!(kept(Selection { products: names(&["all"]), ..Selection::default() }), [0, 1, 2]);
        assert_eq!(kept(Selection { products: names(&["alder:stock", "birch"]), ..Selection::default() }), [1, 2]);
        assert_eq!(kept(Selection { profiles: names(&["tuned"]), only: only("payload=plain"), products: None }), [0]);
        assert_eq!(kept(Selection { only: only("load=max"), ..Selection::default() }), [0, 1, 2]);
        assert_eq!(kept(Selection { only: only("workload=pl*"), ..Selection::default() }), [0, 1]);
        let direct = case("direct", "none", "plain");
        assert!(Selection { profiles: names(&["tuned"]), ..Selection::default() }.keeps(&direct));
    }

    #[test]
    fn names_that_neither_run_has_are_refused() {
        let cases = [case("alder", "tuned", "plain")];
        let refused = |selection: Selection| selection.check(&cases).expect_err("refused").to_string();
        let products = Some(vec!["aldr".to_owned()]);
        assert_eq!(
            refused(Selection { products, ..Selection::default() }),
            "--products: neither run has a product \"aldr\"; did you mean \"alder\"?\n  expected: alder"
        );
        let profiles = Some(vec!["stock".to_owned()]);
        assert!(refused(Selection { profiles, ..Selection::default() }).starts_with("--profile: neither run has"));
        let only = vec![Filter::parse("workload=json").expect("a filter")];
        assert!(refused(Selection { only, ..Selection::default() }).contains("expected: plain"));
    }
}
