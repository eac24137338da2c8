//! Prepares a run or a duet: reaches hosts, installs products of the right versions, finds CPUs and room on the disk. It does not know
//! the measurement.

use std::collections::BTreeMap;
use std::path::Path;

use weir_host::transport::Binary;
use weir_install::home::Home;
use weir_install::{Installed, Inventory, Want};
use weir_lab::hosts::Hosts;
use weir_lab::preflight;
use weir_lab::run::Setup;
use weir_model::Placement;
use weir_model::load::DriverChoice;
use weir_model::product::Product;
use weir_model::topology::Topology;
use weir_product::tls::RunTls;

use super::resolve::ResolvedSuite;
use super::{available, remote, versions};
use crate::exit::Failure;
use crate::verbs::doctor;
use crate::verbs::products::{Order, failure, local, provide};
use crate::verbs::topology::{self, Reached};

/// Programs by the product's name.
type Programs = BTreeMap<String, Installed>;

/// Under what a suite is measured.
pub struct Conditions<'a> {
    pub topology: &'a Topology,
    /// The weir that runs on the hosts.
    pub weir: Binary,
    /// Where the files go.
    pub folder: &'a Path,
    /// The CPUs of the roles on this machine.
    pub placement: Placement,
    pub driver: DriverChoice,
    pub order: Order<'a>,
}

impl Conditions<'_> {
    /// Checks what can be checked, reaches the hosts, has `install` see to the products, and looks at the machines.
    ///
    /// # Errors
    /// The first thing that is wrong, missing, or not wanted by the user.
    pub fn setup(
        self,
        resolved: ResolvedSuite,
        install: impl FnOnce(ResolvedSuite, &mut Reached, &mut Hosts) -> Result<(ResolvedSuite, Programs), Failure>,
    ) -> Result<Setup, Failure> {
        let Conditions { topology, weir, folder, placement, driver, order } = self;
        weir_net::raise_descriptor_limit();
        preflight::folder(folder).map_err(Failure::input)?;
        let (mut reached, mut hosts) = topology::reach(topology, weir, folder, &placement, &resolved.products)?;
        let limit = hosts.proxy.facts().environment.descriptors.1;
        preflight::descriptors(&resolved.suite, &resolved.products, limit).map_err(Failure::input)?;
        weir_load::probe(driver).map_err(Failure::missing)?;
        remote::check_served(&hosts, &resolved.products)?;
        let (resolved, installed) = install(resolved, &mut reached, &mut hosts)?;
        // Not before: a pod of a product's own image may have other CPUs.
        let placement = topology::placement(topology, &hosts, &placement)?;
        let resolved = resolved.on_cores(placement.proxy.len())?;
        let origin_installed = match &resolved.suite.origin {
            Some(name) if hosts.origin().facts().work.is_some() => {
                let product: Vec<&Product> = resolved.products.get(name).into_iter().collect();
                reached.install_on(hosts.origin(), &product, order.of_all())?.complete().map_err(failure)?
            }
            _ => installed.clone(),
        };
        let ResolvedSuite { suite, scaled, skipped, products, .. } = versions::fitting(resolved, &installed)?;
        let parent = folder.ancestors().skip(1).find(|path| path.is_dir()).unwrap_or(Path::new("."));
        let mut doctor = remote::findings(&hosts)?;
        if hosts.each().iter().any(|host| host.facts().work.is_none()) {
            doctor.extend(doctor::findings(&doctor::examine(parent)));
        }
        weir_host::files::disk_has_room(parent).map_err(Failure::missing)?;
        Ok(Setup {
            tls: RunTls::new(suite.tls).map_err(Failure::missing)?,
            suite,
            scaled,
            skipped,
            products,
            installed,
            origin_installed,
            placement,
            driver,
            topology: topology.to_toml(),
            weir_sha256: reached.weir_sha256(),
            hosts,
            reach: Box::new(reached),
            weir_version: env!("CARGO_PKG_VERSION").to_owned(),
            doctor,
        })
    }
}

/// The suite's products on the proxy's host and where their parts run, installed where they are missing. If the host's disk is this
/// machine's, they are this machine's, and are installed here: a namespace has no way out.
pub fn install(
    resolved: ResolvedSuite,
    order: Order<'_>,
    reached: &mut Reached,
    hosts: &mut Hosts,
) -> Result<(ResolvedSuite, Programs), Failure> {
    let home = Home::from_env().map_err(Failure::input)?;
    let products: Vec<&Product> = resolved.products.values().collect();
    let Inventory { here, mut missing } = match hosts.proxy.facts().work {
        Some(_) => reached.install(hosts, &products, order)?,
        None => provide(&local(&home)?, &products, Want::Present, order)?,
    };
    missing.extend(reached.install_parts(hosts, &products, &here, order)?);
    if resolved.lenient {
        return Ok((available::without(resolved, missing)?, here));
    }
    let here = Inventory { here, missing }.complete().map_err(failure)?;
    Ok((resolved, here))
}
