//! What a trial starts: the origin and the product, ready and listening. [`super::run`] starts it, or goes on with what an earlier
//! trial of its [`SharedStart`] has kept.
//!
//! Whatever is dropped is ended. This module does not know what is measured.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weir_host::ports::NoPort;
use weir_host::{Clock, Host};
use weir_model::change::VERIFIED;
use weir_model::product::{Product, ProductKind};
use weir_model::record::{Finding, Kept, Role};
use weir_model::suite::{Expect, Protocol, Workload};
use weir_model::text::unique;
use weir_product::failure::Failure;
use weir_product::launch::{LaunchSpec, Place, launch};
use weir_product::requester::{Requester, Server};
use weir_product::running::Running;

use super::origin::RunningOrigin;
use super::{Trial, changes, client_folder, origin, request_timeout, requester, served};
use crate::hosts::{self, Hosts, path_on_host};
use crate::progress::{Observer, RunEvent};

/// How long it takes at most, on a machine with little time, until the supervisor tells of the end of what it watches.
const TOLD_WITHIN: Duration = Duration::from_millis(300);

/// How long weir waits for a change of the route before it asks again.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The cases that one start of a product is for, of which a trial is one.
#[derive(Debug, Clone)]
pub struct SharedStart {
    /// Their workloads, in order.
    pub workloads: Vec<Workload>,
    /// The trial's place among them, from 1.
    pub place: u32,
    /// The highest of their rates, requests a second.
    pub most_rate: Option<f64>,
}

impl SharedStart {
    /// Whether other cases come after the trial's.
    pub fn goes_on(&self) -> bool {
        (self.place as usize) < self.workloads.len()
    }
}

/// Origin and product, ready.
#[derive(Debug)]
pub struct Stack {
    /// The product's process; `None` for `direct` and where others have started it. What is dropped ends in this order.
    pub running: Option<Running>,
    /// The origin.
    pub origin: RunningOrigin,
    /// Sends weir's own requests.
    pub requester: Requester,
    /// Where clients go, by what they speak.
    fronts: Vec<(Protocol, SocketAddr)>,
    /// Number of the trial that started it.
    since: u32,
    /// The folder of that trial.
    pub folder: PathBuf,
}

impl Stack {
    /// Starts origin and product of a trial, and waits until the origin answers through the product.
    pub fn start(trial: &Trial<'_>) -> Result<Stack, Failure> {
        let Trial { context, product, .. } = *trial;
        let hosts = &context.hosts;
        let protocols = protocols(trial);
        let origins = trial.spec.workload.origin_count() as usize;
        let no_port =
            |e: NoPort| Failure::at("start", e.to_string(), "", "end what holds the ports, or use another machine");
        let (fronts, origin_addrs) = match &product.kind {
            ProductKind::Direct => ports(hosts, 1, 1).map_err(no_port)?,
            ProductKind::Proxy(_) if product.store => ports(hosts, protocols.len(), 0).map_err(no_port)?,
            ProductKind::Proxy(_) => ports(hosts, protocols.len(), origins).map_err(no_port)?,
            ProductKind::Served(served) => {
                (vec![served::reached(hosts, served)?], served::origins(hosts, served, trial.spec.workload)?)
            }
        };
        let requester = requester(hosts.client(), trial)?;
        let origin = match product.store {
            true => RunningOrigin::absent(),
            false => {
                let protocol = at_origin(trial.spec.workload, product);
                origin::start(trial, &origin_addrs, protocol, &requester)?
            }
        };
        let fronts: Vec<(Protocol, SocketAddr)> = match (&product.kind, origin.addrs.first()) {
            (ProductKind::Direct, Some(addr)) => vec![(trial.spec.workload.protocol, *addr)],
            _ => protocols.into_iter().zip(fronts).collect(),
        };
        let running = start_product(trial, &origin.addrs, &fronts)?;
        Ok(Stack {
            origin,
            running,
            requester,
            fronts,
            since: trial.spec.planned.trial,
            folder: trial.spec.folder.to_owned(),
        })
    }

    /// Waits until the product answers what the trial's clients speak.
    fn wait_ready(&mut self, trial: &Trial<'_>, to: SocketAddr) -> Result<(), Failure> {
        let Trial { product, stop, .. } = *trial;
        let protocol = trial.spec.workload.protocol;
        match (&product.kind, &mut self.running) {
            (ProductKind::Proxy(program), Some(running)) => {
                running.turn_to(protocol, to);
                running.wait_ready(&self.requester, program.front().process.ready_within, stop)
            }
            (ProductKind::Served(served), _) => {
                served::wait_ready(served, &product.title, (to, protocol), &self.requester, stop)
            }
            _ => Ok(()),
        }
    }

    /// Verifies that a trial's requests are answered as they should be. Returns where its clients go, and what a successful response is.
    /// Where the origin has ended, that is why they are not, whatever the product says.
    pub fn verify(&mut self, trial: &Trial<'_>, observer: &mut dyn Observer) -> Result<(SocketAddr, Expect), Failure> {
        let verified = self.verify_responses(trial, observer);
        if let Err(Failure::Trial(_)) = verified {
            self.origin.still_runs()?;
        }
        verified
    }

    fn verify_responses(
        &mut self,
        trial: &Trial<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(SocketAddr, Expect), Failure> {
        let Trial { context, product, .. } = *trial;
        let protocol = trial.spec.workload.protocol;
        let to = self.fronts.iter().find(|(spoken, _)| *spoken == protocol).map(|(_, addr)| *addr);
        let to = to.ok_or_else(|| {
            let found = format!("{} has no listener for {}", product.title, protocol.title());
            Failure::at("verify", found, "", "leave out the load's `keep`")
        })?;
        for client in &context.hosts.clients {
            context.launcher.tls.write_client(client.as_ref(), &client_folder(client.as_ref(), trial.spec))?;
        }
        self.wait_ready(trial, to)?;
        observer.notify(RunEvent::Stage("verifying"));
        if let Some(running) = &self.running {
            running.verify_listener()?;
        }
        let at_origin =
            if context.origin.is_some() { Protocol::default() } else { at_origin(trial.spec.workload, product) };
        let timeout = request_timeout(trial.spec.load);
        let server = Server { addr: to, protocol, timeout };
        let to_origin = self.origin.addrs.first().filter(|_| !at_origin.is_keyvalue());
        let to_origin = to_origin.map(|addr| Server { addr: *addr, protocol: at_origin, timeout });
        let evidence = || self.running.as_ref().map_or_else(String::new, Running::evidence);
        let proxied = product.kind != ProductKind::Direct;
        let remedy = match product.served() {
            Some(_) => {
                format!(
                    "correct the route of {}: it has to send every request to weir's origin unchanged",
                    product.title
                )
            }
            None => format!("correct the templates of {}; they are in the trial's folder as rendered", product.title),
        };
        let wrong = |found: String| Failure::at("verify", found, evidence(), remedy.clone());
        let expect = self
            .requester
            .verify(trial.spec.workload, server, to_origin, proxied)
            .map_err(|e| Failure::at("verify", e, "the origin's own response", "correct the suite's `expect`"))?
            .map_err(wrong)?;
        if self.requester.serves_strangers(trial.spec.workload, server).map_err(wrong)? {
            let found = "a client without a certificate was served, and the suite's [tls] has client_certificates";
            return Err(wrong(found.to_owned()));
        }
        if trial.spec.load.change_every.is_some() {
            self.verify_change(trial, server)?;
        }
        Ok((to, expect))
    }

    /// Verifies that the product takes a change of its route.
    fn verify_change(&mut self, trial: &Trial<'_>, server: Server) -> Result<(), Failure> {
        let Some((running, program)) = self.running.as_mut().zip(trial.product.program()) else { return Ok(()) };
        let clock = trial.context.hosts.clock();
        for number in 0..=VERIFIED {
            if number > 0 {
                changes::make(running, trial.stop, "verify")?;
            }
            let deadline = clock.now().plus(program.front().process.ready_within);
            loop {
                let shown = self.requester.change_shown(trial.spec.workload, server);
                if shown == Ok(number) {
                    break;
                }
                running.still_runs("verify")?;
                if trial.stop.is_requested() {
                    return Err(Failure::Stopped);
                }
                if clock.left(deadline).is_zero() {
                    let why = shown.map_or_else(|why| why, |shown| format!("its response shows {shown}"));
                    let found = format!("{} did not take the change {number} of its route: {why}", trial.product.title);
                    let remedy = "see its output, its `reload`, and its templates for the variable `change`";
                    return Err(Failure::at("verify", found, running.evidence(), remedy));
                }
                clock.sleep(BETWEEN_TRIES);
            }
        }
        Ok(())
    }

    /// Whether both go on after a trial. One that failed may have done so because one of them has just ended: then this waits until
    /// that is known, by the clock `after_failure`.
    pub fn still_runs(&mut self, after_failure: Option<Arc<dyn Clock>>) -> bool {
        if let Some(clock) = after_failure {
            clock.sleep(TOLD_WITHIN);
        }
        let product = self.running.as_mut().is_none_or(|running| running.still_runs("load").is_ok());
        product && self.origin.still_runs().is_ok()
    }

    /// For the record of a trial: which start this is.
    pub fn kept(&self, chain: &SharedStart) -> Kept {
        Kept { since: self.since, place: chain.place, of: chain.workloads.len() as u32 }
    }

    /// Ends both. Returns what there is to say of how they ended.
    pub fn stop(&mut self, product: &Product) -> Vec<Finding> {
        let of_product = self.running.take().and_then(|running| running.stop(product));
        let origin = std::mem::replace(&mut self.origin, RunningOrigin::absent());
        of_product.into_iter().chain(origin.stop()).collect()
    }
}

/// What the origin speaks.
fn at_origin(workload: &Workload, product: &Product) -> Protocol {
    match &product.kind {
        ProductKind::Direct => workload.protocol,
        ProductKind::Proxy(_) | ProductKind::Served(_) => workload.upstream(),
    }
}

/// What clients speak with the product, the trial's own first.
fn protocols(trial: &Trial<'_>) -> Vec<Protocol> {
    let own = [trial.spec.workload].into_iter();
    unique(own.chain(trial.spec.workloads()).map(|workload| workload.protocol))
}

/// Free addresses for the product's listeners and for so many origins, which are dealt to the origins' hosts in turn. Those of one host
/// are asked for together, so that they differ.
fn ports(hosts: &Hosts, fronts: usize, origins: usize) -> Result<(Vec<SocketAddr>, Vec<SocketAddr>), NoPort> {
    let mut wanted: Vec<&Arc<dyn Host>> = hosts.origins.iter().cycle().take(origins).collect();
    wanted.extend(std::iter::repeat_n(&hosts.proxy, fronts));
    let mut found: Vec<Option<SocketAddr>> = vec![None; wanted.len()];
    for host in hosts.each() {
        let places: Vec<usize> = (0..wanted.len()).filter(|place| hosts::is_same_host(wanted[*place], host)).collect();
        for (place, addr) in places.iter().zip(host.free_ports(host.facts().traffic(), places.len())?) {
            found[*place] = Some(addr);
        }
    }
    let none = NoPort { at: hosts.proxy.facts().traffic(), top: 0 };
    let mut all = found.into_iter().collect::<Option<Vec<SocketAddr>>>().ok_or(none)?;
    let fronts = all.split_off(origins);
    Ok((fronts, all))
}

/// Starts the product of a case between client and origin; `None` for `direct`. It listens at each of `fronts`.
fn start_product(
    trial: &Trial<'_>,
    origins: &[SocketAddr],
    fronts: &[(Protocol, SocketAddr)],
) -> Result<Option<Running>, Failure> {
    let Trial { context, product, stop, .. } = *trial;
    let (ProductKind::Proxy(_), [(protocol, listen), others @ ..]) = (&product.kind, fronts) else {
        return Ok(None);
    };
    let (load, workloads) = (trial.spec.load, trial.spec.workloads());
    let elsewhere = parts_elsewhere(trial)?;
    let spec = LaunchSpec {
        profile: &trial.spec.planned.case.profile,
        folder: path_on_host(context.hosts.proxy.as_ref(), trial.spec.folder, &trial.spec.folder.join("product")),
        elsewhere: &elsewhere,
        listen: *listen,
        others,
        origins,
        cpus: &context.placement.proxy,
        connections: load.all_connections(),
        protocol: *protocol,
        streams: workloads.iter().map(|workload| load.streams_of(workload.protocol)).max().unwrap_or(1),
        stream: trial.spec.workload.stream,
        targets: &targets(&workloads),
        gateway: &trial.spec.workload.gateway,
        upstream: trial.spec.workload.upstream(),
        tls: trial.spec.workload.tls,
        request_id_header: trial.spec.workload.request_id_header(),
        faults: &load.faults,
        changes: load.last_change().unwrap_or(0),
    };
    Ok(Some(launch(&context.launcher, product, spec, stop)?))
}

/// The places of parts that have another host than the product's front. Their folders have the host's name: all come back into one.
fn parts_elsewhere(trial: &Trial<'_>) -> Result<BTreeMap<String, Place>, Failure> {
    let Trial { context, product, .. } = *trial;
    let hosts = &context.hosts;
    let mut places = BTreeMap::new();
    for (part, at) in hosts.parts_elsewhere(product) {
        let host = &at.host;
        let installed = at.installed.as_ref().unwrap_or(&context.launcher.installed).get(&product.name);
        let installed = installed.ok_or_else(|| {
            let found = format!("{} is not installed on {}", product.title, host.facts().name);
            Failure::at("start", found, "", "run again with it: it is installed there before the first trial")
        })?;
        let folder = trial.spec.folder.join(format!("product-{}", host.facts().name));
        let place = Place {
            host: Arc::clone(host),
            binary: installed.binary.clone(),
            folder: path_on_host(host.as_ref(), trial.spec.folder, &folder),
            cpus: hosts.cpus(Role::Proxy, host, &context.placement),
        };
        places.insert(part.clone(), place);
    }
    Ok(places)
}

/// The paths of the workloads, each once.
pub fn targets<'w>(workloads: &[&'w Workload]) -> Vec<&'w str> {
    unique(workloads.iter().map(|workload| workload.request.path.as_str()))
}
