//! Narrows a suite to what `--products`, `--profile` and `--only` select. `weir run` and `weir suites show` call
//! [`Suite::select`]. The module knows names in a suite and in a catalogue, not what is done with the selected part.

use crate::InputError;
use crate::file::Catalogue;
use crate::filter::{Filter, FilterKey};
use crate::suite::{Entry, Load, LoadKind, RateBase, RateSpec, Suite};
use crate::text::{one_of, suggestion};

/// The name in `--products` that means every product of the catalogue.
pub const ALL: &str = "all";

impl Suite {
    /// The part of the suite that the flags leave.
    ///
    /// `products` (each `name` or `name:profile`) replaces the suite's, and may name any product of the catalogue;
    /// a name without a profile runs with `profiles` if given, else with those that the suite runs it with, else with
    /// the profile that most of the suite's entries have. [`ALL`] names every product of the catalogue that has such a
    /// profile. `profiles` runs each product under each of them. Then every
    /// one of `only` has to hold.
    ///
    /// Where a load's rate is a share of what the direct path carries, the direct path stays.
    ///
    /// The suite's scales are narrowed with it: what somebody asks for by name runs at every scale. The result
    /// no longer knows what its document ran: [`Suite::as_published`] comes first.
    ///
    /// # Errors
    /// A name that does not exist, with those that do; a selection that leaves a load whose rate is a share of
    /// another without that other.
    pub fn select(
        &self,
        products: Option<&[String]>,
        profiles: Option<&[String]>,
        only: &[Filter],
        catalogue: &dyn Catalogue,
    ) -> Result<Suite, InputError> {
        let mut suite = Suite { as_published: None, ..self.clone() };
        suite.entries = self.selected_entries(products, profiles, catalogue)?;
        for filter in only {
            suite.keep(filter)?;
        }
        suite.check_bases(only)?;
        suite.bring_direct(self, catalogue);
        suite.forget_loads_that_are_gone();
        suite.check_something_runs()?;
        suite.narrow_scales();
        Ok(suite)
    }

    /// Removes references to removed loads and workloads. A workload whose loads are all gone is removed too.
    pub(crate) fn forget_loads_that_are_gone(&mut self) {
        let there: Vec<String> = self.loads.iter().map(|load| load.name.clone()).collect();
        for workload in &mut self.workloads {
            if let Some(loads) = &mut workload.loads {
                loads.retain(|name| there.contains(name));
            }
        }
        let entries = &self.entries;
        self.workloads.retain(|workload| {
            workload.loads.as_ref().is_none_or(|loads| !loads.is_empty())
                && entries.iter().any(|entry| workload.asks(&entry.product, &entry.profile))
        });
        for workload in &mut self.workloads {
            if let Some(products) = &mut workload.products {
                products.retain(|one| entries.iter().any(|entry| one.fits(&entry.product, &entry.profile)));
            }
        }
        for load in &mut self.loads {
            if let LoadKind::Open { rate: RateSpec::Table(rows), .. } = &mut load.kind {
                rows.retain(|row| self.workloads.iter().any(|workload| workload.name == row.workload));
            }
        }
        let workloads = &self.workloads;
        let used = |load: &Load| {
            workloads.iter().any(|w| w.loads.as_ref().is_none_or(|loads| loads.contains(&load.name)))
                && !matches!(&load.kind, LoadKind::Open { rate: RateSpec::Table(rows), .. } if rows.is_empty())
        };
        self.loads.retain(used);
    }

    fn check_something_runs(&self) -> Result<(), InputError> {
        if !self.workloads.is_empty() && !self.loads.is_empty() {
            return Ok(());
        }
        Err(InputError::of(
            "--products, --only",
            "what is selected leaves no case: its workloads are asked of other products, or under other loads",
            format!("what `weir suites show {}` lists", self.name),
        ))
    }

    fn selected_entries(
        &self,
        products: Option<&[String]>,
        profiles: Option<&[String]>,
        catalogue: &dyn Catalogue,
    ) -> Result<Vec<Entry>, InputError> {
        let own: Vec<String>;
        let names = match (products, profiles) {
            (None, None) => return Ok(self.entries.clone()),
            (Some(names), _) => names,
            (None, Some(_)) => {
                own = self.entries.iter().map(|entry| entry.product.clone()).collect();
                &own
            }
        };
        let mut entries: Vec<Entry> = Vec::new();
        for name in names {
            let more = match name.as_str() {
                ALL => self.all_entries(profiles, catalogue),
                name => self.entries_of(name, profiles, catalogue)?,
            };
            for entry in more {
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
        }
        if entries.is_empty() {
            let flag = if products.is_some() { "--products" } else { "--profile" };
            return Err(InputError::of(flag, "no name is given", one_of(catalogue.products())));
        }
        Ok(entries)
    }

    /// Every product of the catalogue, those of the suite first, under those profiles asked for that it has.
    fn all_entries(&self, profiles: Option<&[String]>, catalogue: &dyn Catalogue) -> Vec<Entry> {
        let own = self.entries.iter().map(|entry| entry.product.clone());
        let mut names: Vec<String> = Vec::new();
        for name in own.chain(catalogue.products()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut entries = Vec::new();
        for product in names {
            let known = catalogue.profiles(&product).unwrap_or_default();
            let wanted = profiles.map_or_else(|| self.usual_profiles(&product), <[String]>::to_vec);
            let here = wanted.into_iter().filter(|profile| known.contains(profile));
            entries.extend(here.map(|profile| Entry { product: product.clone(), profile }));
        }
        entries
    }

    /// The entries that one name of `--products` selects.
    fn entries_of(
        &self,
        name: &str,
        profiles: Option<&[String]>,
        catalogue: &dyn Catalogue,
    ) -> Result<Vec<Entry>, InputError> {
        let (product, own) = match name.split_once(':') {
            Some((product, profile)) => (product, Some(profile.to_owned())),
            None => (name, None),
        };
        let Some(known) = catalogue.profiles(product) else {
            let products = catalogue.products();
            let near = suggestion(product, &products);
            let found = format!("there is no product {product:?}{near}");
            return Err(InputError::of("--products", found, one_of(&products)));
        };
        let (flag, wanted_profiles) = match (own, profiles) {
            (Some(own), _) => ("--products", vec![own]),
            // The baseline goes with every profile: it is the same under all.
            (None, Some(profiles)) if catalogue.is_direct(product) && !profiles.iter().any(|p| known.contains(p)) => {
                ("--profile", self.usual_profiles(product))
            }
            (None, Some(profiles)) => ("--profile", profiles.to_vec()),
            (None, None) => ("--products", self.usual_profiles(product)),
        };
        for profile in &wanted_profiles {
            if !known.contains(profile) {
                let near = suggestion(profile, &known);
                let found = format!("product {product:?} has no profile {profile:?}{near}");
                return Err(InputError::of(flag, found, one_of(&known)));
            }
        }
        let entry = |profile| Entry { product: product.to_owned(), profile };
        Ok(wanted_profiles.into_iter().map(entry).collect())
    }

    /// The profiles that the suite runs `product` with, else the one that most of its entries have.
    fn usual_profiles(&self, product: &str) -> Vec<String> {
        let of_product = self.entries.iter().filter(|entry| entry.product == product);
        let own: Vec<String> = of_product.map(|entry| entry.profile.clone()).collect();
        if !own.is_empty() {
            return own;
        }
        let count = |profile: &str| self.entries.iter().filter(|entry| entry.profile == profile).count();
        // Reversed, because of several most frequent ones `max_by_key` takes the last.
        let usual = self.entries.iter().rev().max_by_key(|entry| count(&entry.profile));
        usual.map(|entry| entry.profile.clone()).into_iter().collect()
    }

    fn keep(&mut self, filter: &Filter) -> Result<(), InputError> {
        let there: Vec<String> = match filter.key {
            FilterKey::Product => self.entries.iter().map(|entry| entry.product.clone()).collect(),
            FilterKey::Profile => self.entries.iter().map(|entry| entry.profile.clone()).collect(),
            FilterKey::Workload => self.workloads.iter().map(|workload| workload.name.clone()).collect(),
            FilterKey::Load => self.loads.iter().map(|load| load.name.clone()).collect(),
        };
        let is_there = |value: &&String| there.iter().any(|name| filter.means(value, name));
        if let Some(unknown) = filter.values.iter().find(|value| !is_there(value)) {
            let what = filter.key.as_str();
            let near = suggestion(unknown, &there);
            let mut shown: Vec<&String> = Vec::new();
            for name in &there {
                if !shown.contains(&name) {
                    shown.push(name);
                }
            }
            let found = format!("there is no {what} {unknown:?} in what is selected of suite {:?}{near}", self.name);
            return Err(InputError::of("--only", found, one_of(shown)));
        }
        match filter.key {
            FilterKey::Product => self.entries.retain(|entry| filter.passes(&entry.product)),
            FilterKey::Profile => self.entries.retain(|entry| filter.passes(&entry.profile)),
            FilterKey::Workload => self.workloads.retain(|workload| filter.passes(&workload.name)),
            FilterKey::Load => self.loads.retain(|load| filter.passes(&load.name)),
        }
        Ok(())
    }

    /// Every load that is a share of another still has that other.
    fn check_bases(&self, only: &[Filter]) -> Result<(), InputError> {
        for load in &self.loads {
            let Some(base) = load.base() else { continue };
            if self.load(base).is_none() {
                let name = &load.name;
                let mut kept: Vec<&str> = vec![base];
                kept.extend(
                    only.iter().filter(|f| f.key == FilterKey::Load).flat_map(|f| f.values.iter().map(String::as_str)),
                );
                kept.dedup();
                return Err(InputError::of(
                    "--only",
                    format!("load {name:?} runs at a share of what load {base:?} finds, and {base:?} is left out"),
                    format!("--only load={}, or --only load={base}", kept.join(",")),
                ));
            }
        }
        Ok(())
    }

    /// Keeps the direct path if the rate of a load is a share of what the direct path carries.
    fn bring_direct(&mut self, all: &Suite, catalogue: &dyn Catalogue) {
        let is_direct = |entry: &&Entry| catalogue.is_direct(&entry.product);
        if self.entries.iter().any(|entry| is_direct(&entry)) || !self.loads.iter().any(Load::is_of_direct) {
            return;
        }
        let own: Vec<Entry> = all.entries.iter().filter(is_direct).cloned().collect();
        self.entries.splice(0..0, own);
    }

    /// Removes the products and workloads that were not selected from the scales. If none remains, the scale no longer
    /// restricts them: the selection has already said what to run.
    pub(crate) fn narrow_scales(&mut self) {
        let narrowed = |names: &mut Option<Vec<String>>, there: &dyn Fn(&str) -> bool| {
            if let Some(some) = names {
                some.retain(|name| there(name));
                if some.is_empty() {
                    *names = None;
                }
            }
        };
        for scale in self.scales.values_mut() {
            narrowed(&mut scale.loads, &|name| self.loads.iter().any(|load| load.name == name));
            narrowed(&mut scale.products, &|name| self.entries.iter().any(|entry| entry.product == name));
            narrowed(&mut scale.workloads, &|name| self.workloads.iter().any(|workload| workload.name == name));
        }
    }

    /// The workload of that name.
    pub fn workload(&self, name: &str) -> Option<&crate::suite::Workload> {
        self.workloads.iter().find(|workload| workload.name == name)
    }

    /// The load of that name.
    pub fn load(&self, name: &str) -> Option<&Load> {
        self.loads.iter().find(|load| load.name == name)
    }
}

impl Load {
    /// Name of the load whose capacity this one's rate is a share of, if it is one.
    pub fn base(&self) -> Option<&str> {
        match &self.kind {
            LoadKind::Open { rate: RateSpec::Share { load, .. }, .. } => Some(load),
            _ => None,
        }
    }

    /// Its rate is a share of what the direct path carries.
    fn is_of_direct(&self) -> bool {
        matches!(&self.kind, LoadKind::Open { rate: RateSpec::Share { of: RateBase::Direct, .. }, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{catalogue, suite};
    use crate::suite::Scale;

    fn entries(suite: &Suite) -> Vec<String> {
        suite.entries.iter().map(|entry| format!("{}:{}", entry.product, entry.profile)).collect()
    }

    fn select(products: &[&str], profiles: &[&str], only: &[&str]) -> Result<Suite, String> {
        let owned = |names: &[&str]| -> Option<Vec<String>> {
            (!names.is_empty()).then(|| names.iter().map(|name| (*name).to_owned()).collect())
        };
        let only: Vec<Filter> =
            only.iter().map(|text| Filter::parse(text).map_err(|error| error.to_string())).collect::<Result<_, _>>()?;
        suite()
            .select(owned(products).as_deref(), owned(profiles).as_deref(), &only, &catalogue())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn no_flags_leave_the_suite_as_it_is() {
        assert_eq!(select(&[], &[], &[]), Ok(suite()));
    }

    #[test]
    fn what_is_written_of_a_part_of_a_suite_can_be_read() {
        let mut part = suite();
        part.workloads.truncate(1);
        let read =
            |part: &Suite| Suite::parse("quick.toml", &part.to_toml(), &catalogue()).map(|suite| suite.workloads);
        let plain = part.workloads.clone();
        for missing in ["plain", "plain:tuned"] {
            part.workloads[0].baseline = Some(missing.to_owned());
            assert_eq!(read(&part), Ok(plain.clone()), "its baseline does not run");
        }
    }

    #[test]
    fn products_replace_the_suites_own() {
        let chosen = select(&["varnish", "haproxy", "nginx:stock"], &[], &[]).expect("valid");
        assert_eq!(entries(&chosen), ["varnish:tuned", "haproxy:stock", "nginx:stock"]);
    }

    #[test]
    fn all_is_the_suites_own_and_then_every_other_that_has_the_profile() {
        let chosen = select(&["all"], &[], &[]).expect("valid");
        assert_eq!(entries(&chosen), ["direct:tuned", "nginx:tuned", "haproxy:stock", "varnish:tuned"]);
        let chosen = select(&["varnish:stock", "all"], &["tuned", "stock", "mine"], &[]).expect("valid");
        assert_eq!(entries(&chosen)[..3], ["varnish:stock", "direct:tuned", "direct:stock"]);
        assert_eq!(entries(&chosen).len(), 8, "a profile that none has is no error");
    }

    #[test]
    fn each_product_runs_under_each_profile() {
        let chosen = select(&["nginx", "direct:tuned"], &["stock", "tuned"], &[]).expect("valid");
        assert_eq!(entries(&chosen), ["nginx:stock", "nginx:tuned", "direct:tuned"]);
        let chosen = select(&[], &["stock"], &[]).expect("valid");
        assert_eq!(entries(&chosen), ["direct:stock", "nginx:stock", "haproxy:stock"]);
    }

    #[test]
    fn every_filter_has_to_hold() {
        let chosen = select(&[], &[], &["product=direct,nginx", "payload=tiny", "load=capacity"]).expect("valid");
        assert_eq!(entries(&chosen), ["direct:tuned", "nginx:tuned"]);
        assert!(chosen.workload("tiny").is_some() && chosen.workload("medium").is_none());
        assert!(chosen.load("capacity").is_some() && chosen.load("latency").is_none());
    }

    #[test]
    fn scales_follow_the_selection() {
        let chosen = select(&["nginx"], &[], &[]).expect("valid");
        assert_eq!(chosen.scales[&Scale::Smoke].products, Some(vec!["nginx".to_owned()]));
        let (chosen, _) = select(&["haproxy"], &[], &[]).expect("valid").at_scale(Scale::Smoke);
        assert_eq!(entries(&chosen), ["haproxy:stock"]);
    }

    #[test]
    fn unknown_names_are_errors_with_what_exists() {
        for (products, profiles, only, message) in [
            (
                &["ngnix"][..],
                &[][..],
                &[][..],
                "--products: there is no product \"ngnix\"; did you mean \"nginx\"?\n  expected: one of direct, \
                 haproxy, nginx, varnish",
            ),
            (
                &["nginx:best"],
                &[],
                &[],
                "--products: product \"nginx\" has no profile \"best\"\n  expected: one of stock, tuned",
            ),
            (
                &[],
                &["tunde"],
                &[],
                "--profile: product \"direct\" has no profile \"tunde\"; did you mean \"tuned\"?\n  expected: \
                 one of stock, tuned",
            ),
            (
                &[],
                &[],
                &["workload=tinny"],
                "--only: there is no workload \"tinny\" in what is selected of suite \"quick\"; did you mean \
                 \"tiny\"?\n  expected: one of tiny, medium",
            ),
            (
                &["nginx"],
                &[],
                &["product=haproxy"],
                "--only: there is no product \"haproxy\" in what is selected of suite \"quick\"\n  expected: \
                 nginx",
            ),
            (
                &[],
                &[],
                &["load=latency"],
                "--only: load \"latency\" runs at a share of what load \"capacity\" finds, and \"capacity\" is left \
                 out\n  expected: --only load=capacity,latency, or --only load=capacity",
            ),
        ] {
            assert_eq!(select(products, profiles, only), Err(message.to_owned()));
        }
    }

    /// The sample's products, of which one is known to be the direct path.
    struct WithDirect(std::collections::BTreeMap<String, Vec<String>>);

    impl Catalogue for WithDirect {
        fn products(&self) -> Vec<String> {
            self.0.products()
        }

        fn profiles(&self, product: &str) -> Option<Vec<String>> {
            self.0.profiles(product)
        }

        fn is_direct(&self, product: &str) -> bool {
            product == "direct"
        }
    }

    #[test]
    fn a_load_at_a_share_of_the_direct_path_brings_it() {
        let mut suite = suite();
        for load in &mut suite.loads {
            if let LoadKind::Open { rate: RateSpec::Share { of, .. }, .. } = &mut load.kind {
                *of = RateBase::Direct;
            }
        }
        let select = |products: Option<&[String]>, only: &[&str]| {
            let only: Vec<Filter> = only.iter().map(|text| Filter::parse(text).expect("a filter")).collect();
            entries(&suite.select(products, None, &only, &WithDirect(catalogue())).expect("valid"))
        };
        let nginx = ["nginx".to_owned()];
        assert_eq!(select(Some(&nginx), &[]), ["direct:tuned", "nginx:tuned"]);
        assert_eq!(select(None, &["product=nginx"]), ["direct:tuned", "nginx:tuned"]);
        assert_eq!(select(Some(&nginx), &["load=capacity"]), ["nginx:tuned"], "no load needs it");
    }
}
