//! The document that a suite repeats, as `weir run --as-published --dry-run` prints it after the trials: its machines and versions, those
//! of this run, and the differences. It does not know how a trial runs.

use serde::Serialize;
use weir_install::home::Home;
use weir_install::versions;
use weir_model::Placement;
use weir_model::product::Product;
use weir_model::text::{counted, list};
use weir_model::topology::Topology;
use weir_published::{Document, document, other_versions};

use super::resolve::ResolvedSuite;
use crate::exit::Failure;
use crate::out;
use crate::verbs::topology::has_cpus_of_this_machine;

/// A document, and where it is repeated.
#[derive(Debug, Serialize)]
pub struct Repeated {
    #[serde(flatten)]
    document: Document,
    /// The hosts of this run, in words.
    here: String,
    /// Products that this machine has in another version, each with both.
    other_versions: Vec<String>,
}

impl Repeated {
    /// The document that a suite repeats; `None` where nothing was published of it.
    ///
    /// # Errors
    /// When weir's folder is not known.
    pub fn new(
        resolved: &ResolvedSuite,
        topology: &Topology,
        placement: &Placement,
    ) -> Result<Option<Repeated>, Failure> {
        let Some(document) = document(&resolved.suite.name) else { return Ok(None) };
        if !has_cpus_of_this_machine(topology) {
            let hosts: Vec<&str> = topology.hosts().iter().map(|host| host.name.as_str()).collect();
            let here =
                format!("{}; `weir hosts check` says what they are, and a run which versions they have", list(&hosts));
            return Ok(Some(Repeated { document, here, other_versions: Vec::new() }));
        }
        let home = Home::from_env().map_err(Failure::input)?;
        let runs_here = |product: &&Product| product.program().is_some() && product.unagreed.is_none();
        let products: Vec<&Product> = resolved.products.values().filter(runs_here).collect();
        let versions = versions(&products, &home);
        let cpus = counted(placement.proxy.len() as u64, "CPU");
        Ok(Some(Repeated {
            other_versions: other_versions(&resolved.suite.name, |name| versions.get(name).map(String::as_str)),
            here: format!("this machine, on which the proxy has {cpus}"),
            document,
        }))
    }

    /// Prints it.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print(&self) -> Result<(), Failure> {
        let Document { title, address, products, machines, differences } = &self.document;
        output!("\nThe document: {title}, {address}");
        let measured = (!products.is_empty()).then(|| ("measured", list(products)));
        let there = machines.iter().map(|machine| ("there", machine.clone()));
        let others = (!self.other_versions.is_empty()).then(|| ("versions", self.other_versions.join("; ")));
        let facts = measured.into_iter().chain(there).chain([("here", self.here.clone())]).chain(others);
        let rows: Vec<Vec<String>> = facts.map(|(name, words)| vec![String::new(), name.to_owned(), words]).collect();
        output!("{}", out::columns("lll", out::WIDTH, &rows));
        output!("Differences from it:");
        let rows: Vec<Vec<String>> = differences.iter().map(|one| vec!["  -".to_owned(), one.clone()]).collect();
        output!("{}", out::columns("ll", out::WIDTH, &rows));
        Ok(())
    }
}
