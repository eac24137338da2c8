//! Finds the products that a document measured in another version than the run. `weir run` says so before it starts, and the
//! introduction of the published section repeats it.

use weir_model::version::is_below;

use super::figures::{self, PublishedProduct};

/// The products of a suite's document that are here in another version, each as `Nginx 1.18.0, here 1.22.1`. `here` returns the
/// version of a product of the run by its name; products that the run does not have, and those whose version the document does
/// not give, are not among them. Empty when nothing was published of the suite.
pub fn other_versions<'a>(suite: &str, here: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    figures::source(suite).map_or_else(Vec::new, |source| differing(&source.products, here))
}

/// The products and their versions as published, where the document gives them.
pub(super) fn published(products: &[PublishedProduct]) -> Vec<String> {
    let with_version = products.iter().filter(|product| !product.version.is_empty());
    with_version.map(|product| format!("{} {}", product.called, product.version)).collect()
}

pub(super) fn differing<'a>(products: &[PublishedProduct], here: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let differs = |product: &&PublishedProduct| !product.version.is_empty();
    let words = |product: &PublishedProduct| {
        let (published, here) = (product.version.as_str(), here(&product.product)?);
        let other = is_below(published, here) || is_below(here, published);
        other.then(|| format!("{} {published}, here {here}", product.called))
    };
    products.iter().filter(differs).filter_map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_versions_are_named() {
        let here = |product: &str| match product {
            "nginx" => Some("1.18.0"),
            "traefik" => Some("3.7.15"),
            _ => None,
        };
        assert_eq!(other_versions("easegress", here), ["Traefik 2.4.9, here 3.7.15"]);
        assert!(other_versions("easegress", |_| None).is_empty());
        assert!(other_versions("quick", here).is_empty(), "nothing was published of it");
    }

    #[test]
    fn a_version_that_the_document_does_not_give_is_no_other() {
        assert!(other_versions("monolake", |product| (product == "nginx").then_some("1.31.3")).is_empty());
    }
}
