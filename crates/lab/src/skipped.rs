//! The cases that a run skips: products that do not support the protocol of a workload, or a feature that it needs. `weir run` calls it before a run.
//!
//! Skipping is no error: the remaining products are still worth comparing. The plan, the terminal and the report list the
//! skipped cases.

use std::collections::BTreeMap;

use weir_model::InputError;
use weir_model::gateway::Feature;
use weir_model::product::{Product, ProductKind};
use weir_model::record::Skipped;
use weir_model::suite::{Entry, Load, Protocol, Suite, Workload};

/// Every pair of entry and workload that the entry does not support.
pub fn unsupported(suite: &Suite, products: &BTreeMap<String, Product>) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    for workload in &suite.workloads {
        for entry in suite.entries.iter().filter(|entry| workload.asks(&entry.product, &entry.profile)) {
            let Some(product) = products.get(&entry.product) else { continue };
            skipped.extend(why_not(suite, product, entry, workload).map(|why| Skipped {
                product: entry.product.clone(),
                profile: entry.profile.clone(),
                workload: Some(workload.name.clone()),
                why,
            }));
        }
    }
    skipped
}

fn why_not(suite: &Suite, product: &Product, entry: &Entry, workload: &Workload) -> Option<String> {
    let protocol = workload.protocol;
    if !product.spoken_under(&entry.profile).contains(&protocol) {
        return Some(format!("does not speak {}", protocol.as_str()));
    }
    if let (ProductKind::Direct, Some(filter)) = (&product.kind, workload.gateway.filter) {
        return Some(format!("has no {}: there is nothing between client and origin", filter.as_str()));
    }
    let runs = |load: &&Load| workload.runs(&load.name, &entry.product, &entry.profile);
    let changes = suite.loads.iter().filter(runs).any(|load| load.change_every.is_some());
    // What others have started is as they have made it, and a store has no origin.
    let has_files = matches!(product.kind, ProductKind::Proxy(_)) && !product.store;
    if changes && !has_files {
        return Some("has no route in weir's files that could change".to_owned());
    }
    let features = product.features_under(&entry.profile);
    let needs = workload.needs().into_iter().chain(changes.then_some(Feature::Reload));
    let lacks: Vec<&str> = needs.filter(|need| !features.contains(need)).map(Feature::as_str).collect();
    if has_files && !lacks.is_empty() {
        return Some(format!("cannot do {} with weir's files", lacks.join(", ")));
    }
    // A product that is the origin has one configuration, without TLS.
    match &suite.origin {
        Some(origin) if product.kind == ProductKind::Direct && protocol != workload.upstream() => Some(format!(
            "cannot speak {}, for the origin is {origin}, which speaks {}",
            protocol.as_str(),
            workload.upstream().as_str()
        )),
        Some(origin) if has_files && workload.upstream() != Protocol::default() => Some(format!(
            "is to speak {} to the origin, and the origin is {origin}, which speaks http/1.1",
            workload.upstream().as_str()
        )),
        _ => None,
    }
}

/// Checks that at least one case is left to be measured.
///
/// # Errors
/// When every case is skipped; the error says why.
pub fn check_not_empty(suite: &Suite, skipped: &[Skipped]) -> Result<(), InputError> {
    let covered = |entry: &Entry, workload: &Workload| {
        skipped.iter().any(|one| one.covers(&entry.product, &entry.profile, &workload.name))
    };
    let cases = suite.workloads.iter().flat_map(|workload| suite.entries.iter().map(move |entry| (entry, workload)));
    if cases.into_iter().any(|(entry, workload)| !covered(entry, workload)) {
        return Ok(());
    }
    let why = Skipped::sentences(skipped);
    let found = if why.is_empty() {
        "there is nothing to run".to_owned()
    } else {
        format!("nothing is left to run: {}", why.join("; "))
    };
    let wanted = "--products with one that speaks what the workloads ask for (see `weir products list`), or --only with \
                  other workloads";
    Err(InputError::of(format!("suite {}", suite.name), found, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use weir_model::gateway::{Balance, Filter, Gateway};
    use weir_model::product::Profile;
    use weir_model::suite::EntryPattern;

    fn product(name: &str, kind: ProductKind, speaks: &[Protocol], tuned: Option<&[Protocol]>) -> (String, Product) {
        let profile = Profile { name: "tuned".into(), speaks: tuned.map(<[_]>::to_vec), ..Profile::default() };
        let product = Product {
            name: name.into(),
            title: name.into(),
            speaks: speaks.to_vec(),
            kind,
            profiles: [("tuned".to_owned(), profile)].into(),
            ..fixture::direct()
        };
        (name.to_owned(), product)
    }

    fn suite() -> Suite {
        let mut suite = fixture::suite(3, 2, 1);
        suite.workloads[1].protocol = Protocol::H2;
        suite
    }

    fn products() -> BTreeMap<String, Product> {
        let both = [Protocol::Http11, Protocol::H2];
        [
            product("p0", ProductKind::Direct, &both, None),
            product("p1", ProductKind::Direct, &both, Some(&both[..1])),
            product("p2", ProductKind::Direct, &both[..1], None),
        ]
        .into()
    }

    #[test]
    fn what_a_product_or_its_profile_does_not_speak_is_skipped() {
        let skipped = unsupported(&suite(), &products());
        assert_eq!(
            Skipped::sentences(&skipped),
            ["p1 (tuned) does not speak h2: left out of w1", "p2 (tuned) does not speak h2: left out of w1"]
        );
        assert_eq!(check_not_empty(&suite(), &skipped), Ok(()));
    }

    #[test]
    fn a_product_without_a_needed_feature_is_skipped() {
        let text = include_str!("../tests/no-scratch.toml");
        let parsed = Product::parse("echo", "product.toml", text, BTreeMap::new(), BTreeMap::new()).expect("a product");
        let of = |features: &[Feature], store| {
            let product = Product { features: features.to_vec(), store, ..parsed.clone() };
            let mut suite = fixture::suite(1, 1, 1);
            suite.entries[0] = Entry { product: "echo".into(), profile: "stock".into() };
            suite.workloads[0].origins = Some(3);
            suite.workloads[0].gateway = Gateway { balance: Some(Balance::LeastConnections), ..Gateway::default() };
            Skipped::sentences(&unsupported(&suite, &[("echo".to_owned(), product)].into()))
        };
        let sentence = |lacks: &str| format!("echo (stock) cannot do {lacks} with weir's files: left out of w0");
        assert_eq!(of(&[], false), [sentence("pool, least-connections")]);
        assert_eq!(of(&[Feature::Pool, Feature::RoundRobin], false), [sentence("least-connections")]);
        assert_eq!(of(&[Feature::Pool, Feature::LeastConnections], false), [""; 0]);
        assert_eq!(of(&[], true), [""; 0], "a store has no origin");
    }

    #[test]
    fn the_direct_path_has_no_filter_and_what_is_not_asked_is_not_skipped() {
        let mut suite = suite();
        suite.workloads[0].gateway = Gateway { filter: Some(Filter::KeyAuth), ..Gateway::default() };
        let why = "has no key-auth: there is nothing between client and origin: left out of w0";
        let sentences = |suite: &Suite| Skipped::sentences(&unsupported(suite, &products()));
        let p0 = format!("p0 (tuned) {why}");
        assert!(sentences(&suite).contains(&p0), "{:?}", sentences(&suite));
        suite.workloads[0].products = Some(vec![EntryPattern::of("*:stock")]);
        assert!(!sentences(&suite).iter().any(|sentence| sentence.contains("key-auth")));
    }

    #[test]
    fn direct_cases_depend_on_the_protocols_of_the_origin() {
        let suite = Suite { origin: Some("nginx".into()), ..suite() };
        let skipped = unsupported(&suite, &products());
        assert_eq!(
            Skipped::sentences(&skipped)[0],
            "p0 (tuned) cannot speak h2, for the origin is nginx, which speaks http/1.1: left out of w1"
        );
    }

    #[test]
    fn nothing_left_is_an_error_that_says_why() {
        let mut suite = suite();
        suite.workloads.remove(0);
        suite.entries.remove(0);
        let error = check_not_empty(&suite, &unsupported(&suite, &products())).expect_err("nothing");
        assert!(
            error
                .to_string()
                .starts_with("suite suite: nothing is left to run: p1 (tuned) does not speak h2: left out of w1; p2"),
            "{error}"
        );
        suite.workloads.clear();
        assert!(check_not_empty(&suite, &[]).is_err());
    }
}
