//! Hosts that are reached again in mid-run, pods that are made anew because they are gone or because the next product comes in
//! another image, and the products on them: the same as before, or it is an error.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use weir_host::kubernetes::CGROUPS;
use weir_host::placement::restrict_to;
use weir_host::stop::Stop;
use weir_host::threads::on_thread;
use weir_host::{Host, HostError};
use weir_install::{Installed, Installer, Inventory, RemoteInstaller, Want};
use weir_lab::hosts::{Hosts, Reach, is_same_host};
use weir_model::product::{Product, Served};
use weir_model::record::Role;
use weir_vitals::Watched;

use super::{ConnectResult, Place, Reached, spec};
use crate::exit::Failure;
use crate::verbs::products::{Order, provide};

/// Products that a host had when the run began.
#[derive(Debug)]
pub(super) struct Kept {
    host: String,
    /// The image of the pod in which they were found.
    image: Option<String>,
    products: Vec<Product>,
    libraries: Vec<PathBuf>,
    installed: BTreeMap<String, Installed>,
}

impl Reach for Reached {
    fn again(&mut self, name: &str) -> ConnectResult {
        self.with_image(name, self.image(name))
    }

    fn for_product(&mut self, name: &str, product: &Product) -> Result<Option<Arc<dyn Host>>, HostError> {
        let is_there = product.program().is_none() || self.image(name) == product.image;
        if is_there || !matches!(self.made, Place::Pods(_)) {
            return Ok(None);
        }
        self.with_image(name, product.image.clone()).map(Some)
    }

    fn watched(&self, product: &Product) -> Result<Option<Watched>, HostError> {
        let (Some(node), Place::Pods(pods)) = (&self.watcher, &self.made) else { return Ok(None) };
        let Some((namespace, labels)) = product.served().and_then(Served::pods) else { return Ok(None) };
        let failed = |error: String| HostError::Failed(error);
        let found = pods.cluster().served(namespace, labels).map_err(|error| failed(error.to_string()))?;
        if found.node != *node {
            return Err(failed(format!("they are on {}, and weir watches {node}", found.node)));
        }
        Ok(Some(Watched::cgroups(Role::Proxy, PathBuf::from(CGROUPS), found.uids)))
    }
}

impl Reached {
    /// The products of a run on the proxy's host; of pods, on one for each image that they come in.
    ///
    /// # Errors
    /// As [`provide`].
    pub fn install(
        &mut self,
        hosts: &mut Hosts,
        products: &[&Product],
        order: Order<'_>,
    ) -> Result<Inventory, Failure> {
        let mut by_image: BTreeMap<Option<&str>, Vec<&Product>> = BTreeMap::new();
        for product in products {
            let image = product.image.as_deref().filter(|_| matches!(self.made, Place::Pods(_)));
            by_image.entry(image).or_default().push(product);
        }
        let mut all = Inventory::default();
        for products in by_image.values() {
            if let Some(other) = self.for_product(&hosts.proxy.facts().name, products[0]).map_err(Failure::missing)? {
                hosts.proxy = other;
            }
            let has = self.install_on(&hosts.proxy, products, order)?;
            all.here.extend(has.here);
            all.missing.extend(has.missing);
        }
        Ok(all)
    }

    /// The products of a run where their parts run, as far as that is another disk than the proxy's host has; `front` are those there.
    /// Returns those that are missing somewhere or have another version, by name, each with the reason.
    ///
    /// # Errors
    /// As [`provide`].
    pub fn install_parts(
        &mut self,
        hosts: &mut Hosts,
        products: &[&Product],
        front: &BTreeMap<String, Installed>,
        order: Order<'_>,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let mut missing = BTreeMap::new();
        for host in hosts.clone().each() {
            let facts = host.facts();
            if hosts.parts_on(host).next().is_none() || (facts.work.is_none() && hosts.proxy.facts().work.is_none()) {
                continue;
            }
            let has_part = |product: &&&Product| {
                let mut others = hosts.parts_elsewhere(product);
                front.contains_key(&product.name) && others.any(|(_, part)| is_same_host(&part.host, host))
            };
            let products: Vec<&Product> = products.iter().filter(has_part).copied().collect();
            let has = self.install_on(host, &products, order)?;
            missing.extend(has.missing.into_iter().map(|(name, why)| (name, format!("on {}: {why}", facts.name))));
            for (name, installed) in &has.here {
                let wanted = &front[name].version;
                if installed.version != *wanted {
                    let why =
                        format!("version {} on {}, and {wanted} on the proxy's host", installed.version, facts.name);
                    missing.insert(name.clone(), why);
                }
            }
            for part in hosts.parts.values_mut().filter(|part| is_same_host(&part.host, host)) {
                part.installed = Some(has.here.clone());
            }
        }
        Ok(missing)
    }

    /// Products on a host with a disk of its own, now and whenever it is reached again.
    ///
    /// # Errors
    /// As [`provide`].
    pub fn install_on(
        &mut self,
        host: &Arc<dyn Host>,
        products: &[&Product],
        order: Order<'_>,
    ) -> Result<Inventory, Failure> {
        let installer = RemoteInstaller::new(host, products, order.libraries).map_err(Failure::missing)?;
        let has = provide(&installer, products, Want::Present, order)?;
        let host = host.facts().name.clone();
        self.kept.push(Kept {
            image: self.image(&host),
            host,
            products: products.iter().filter(|p| has.here.contains_key(&p.name)).map(|p| (*p).clone()).collect(),
            libraries: order.libraries.to_vec(),
            installed: has.here.clone(),
        });
        Ok(has)
    }

    fn image(&self, host: &str) -> Option<String> {
        let Place::Pods(pods) = &self.made else { return None };
        pods.image(host).map(str::to_owned)
    }

    /// Reaches a host, with this image where it is a pod that weir makes, and with the products that it had.
    fn with_image(&mut self, name: &str, image: Option<String>) -> ConnectResult {
        let failed = |error: &dyn std::fmt::Display| HostError::Failed(error.to_string());
        let at = self.specs.iter().position(|spec| spec.name == name);
        let at = at.ok_or_else(|| failed(&format!("the topology has no host {name}")))?;
        if let Place::Pods(pods) = &mut self.made {
            pods.ensure(name, image.as_deref()).map_err(|error| failed(&error))?;
            self.specs[at] = spec(&self.specs[at], &self.made);
        }
        // From a thread that may use all CPUs, as weir could at first: an agent says which it may use.
        let wide = || {
            let _ = restrict_to(&self.cpus);
            self.connect(&self.specs[at])
        };
        let host = on_thread(wide).map_err(|error| failed(&error))??;
        if let Some(error) = self.shared_cpus(host.as_ref()) {
            return Err(failed(&error));
        }
        for kept in self.kept.iter().filter(|kept| kept.host == name && kept.image == image) {
            let products: Vec<&Product> = kept.products.iter().collect();
            let installer = RemoteInstaller::new(&host, &products, &kept.libraries).map_err(|error| failed(&error))?;
            for product in products {
                let now = installer.install(product, Want::Present, &Stop::new(), &mut |_| {});
                let now =
                    now.map_err(|why| failed(&format!("{} is no longer on the host {name}: {why}", product.name)))?;
                check_same(product, &kept.installed[&product.name], &now, name).map_err(|error| failed(&error))?;
            }
        }
        Ok(host)
    }
}

/// True if a product is what it was.
fn check_same(product: &Product, was: &Installed, is: &Installed, host: &str) -> Result<(), String> {
    if (&is.binary, &is.sha256) == (&was.binary, &was.sha256) {
        return Ok(());
    }
    let was = format!("{} ({})", was.version, was.binary.display());
    let is = format!("{} ({}) or another build", is.version, is.binary.display());
    Err(format!("{} on the host {host} was {was} when the run began, and is now {is}", product.name))
}
