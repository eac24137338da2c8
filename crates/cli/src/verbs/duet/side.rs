//! One of the two products of a duet as the user names it, and the program that it is. Called by `verbs::duet`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use weir_install::home::Home;
use weir_install::{Installed, own_binary};
use weir_model::product::Product;

use crate::ask::Consent;
use crate::exit::{Failure, wrong_value};
use crate::verbs::products;
use crate::verbs::run::resolve::ResolvedSuite;

/// `name`, `name:profile`, `name=/path`, `name:profile=/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    pub product: String,
    /// `None`: tuned.
    pub profile: Option<String>,
    /// `None`: as installed.
    pub binary: Option<PathBuf>,
}

impl Side {
    /// Reads it.
    pub fn parse(text: &str) -> Result<Side, String> {
        let (entry, binary) = match text.split_once('=') {
            Some((entry, path)) => (entry, Some(path)),
            None => (text, None),
        };
        let (product, profile) = match entry.split_once(':') {
            Some((product, profile)) => (product, Some(profile)),
            None => (entry, None),
        };
        if product.is_empty() || profile == Some("") || binary == Some("") {
            let wanted = "name, name:profile, name=/path/to/its/binary or name:profile=/path";
            return Err(wrong_value(format!("{text:?} is no product"), wanted));
        }
        let binary = binary.map(PathBuf::from);
        Ok(Side { product: product.to_owned(), profile: profile.map(str::to_owned), binary })
    }

    /// As it was named.
    pub fn label(&self) -> String {
        let profile = self.profile.as_ref().map(|profile| format!(":{profile}")).unwrap_or_default();
        let binary = self.binary.as_ref().map(|path| format!("={}", path.display())).unwrap_or_default();
        format!("{}{profile}{binary}", self.product)
    }
}

/// The programs of both, by the names that the suite gives them. What is missing is installed, after a question.
///
/// # Errors
/// A binary that cannot be used; a product that cannot be installed.
pub fn installed(
    sides: [&Side; 2],
    resolved: &ResolvedSuite,
    consent: Consent,
) -> Result<BTreeMap<String, Installed>, Failure> {
    let home = Home::from_env().map_err(Failure::missing)?;
    let mut all = BTreeMap::new();
    for (side, entry) in sides.into_iter().zip(&resolved.suite.entries) {
        let Some(product) = resolved.products.get(&entry.product).filter(|product| product.program().is_some()) else {
            continue;
        };
        let found = match &side.binary {
            Some(binary) => own_binary(product, binary).map_err(Failure::input)?,
            None => {
                // Installed under its own name.
                let product = Product { name: side.product.clone(), ..product.clone() };
                let mut here = products::ensure(&[&product], &home, consent)?;
                let Some(found) = here.remove(&side.product) else { continue };
                found
            }
        };
        all.insert(entry.product.clone(), found);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_a_product_with_or_without_profile_and_binary() {
        for text in ["name", "name:stock", "name=/a/b", "name:stock=/a=b:c"] {
            assert_eq!(Side::parse(text).expect(text).label(), text);
        }
        let side = Side::parse("name:stock=/a/b").expect("read");
        assert_eq!((side.product.as_str(), side.profile.as_deref()), ("name", Some("stock")));
        for wrong in ["", ":stock", "name:", "name=", "=/a"] {
            assert!(Side::parse(wrong).expect_err(wrong).contains("name:profile"), "{wrong}");
        }
    }
}
