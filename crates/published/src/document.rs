//! A document in short: its address, its products and machines, and the differences between it and the suite. `weir run --as-published
//! --dry-run` prints it. The module knows no run.

use serde::Serialize;

use super::differences::{Difference, differences};
use super::{figures, versions};

/// A document in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Document {
    /// Its title.
    pub title: String,
    /// The revision that was read.
    pub address: String,
    /// The products whose versions it gives, each as `Nginx 1.18.0`.
    pub products: Vec<String>,
    /// Its machines, each as `proxy (4c): c5a.xlarge (4 vCPUs, ...)`.
    pub machines: Vec<String>,
    /// The differences between the suite and the document, a few sentences each.
    pub differences: Vec<String>,
}

/// The document that a suite repeats; `None` where nothing was published of it.
pub fn document(suite: &str) -> Option<Document> {
    let source = figures::source(suite)?;
    let first = source.documents.first()?;
    Some(Document {
        title: first.title.clone(),
        address: first.address.clone(),
        products: versions::published(&source.products),
        machines: source.machines.iter().map(|one| format!("{}: {}", one.roles(), one.words())).collect(),
        differences: differences(suite).iter().map(Difference::plain).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_a_reader_needs_before_the_run() {
        let monolake = document("monolake").expect("published");
        assert!(monolake.address.starts_with("https://"), "{monolake:?}");
        assert_eq!(monolake.products, ["traefik 3.0.0-rc1", "envoy 1.31.0"]);
        assert_eq!(monolake.machines[2], "proxy (4c): c5a.xlarge (4 vCPUs, 8 GiB, up to 10 Gbit/s)");
        assert!(!monolake.differences.is_empty());
        assert_eq!(document("quick"), None);
    }
}
