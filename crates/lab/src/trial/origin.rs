//! The origin of a trial: weir's own, or a product that serves the same bytes from files. [`super::run`] starts it.
//!
//! Published benchmarks had a web server behind the proxy. With one of weir's products in that place, they can be repeated as
//! published. Such an origin has no counters, so the audit can check less, and says so. Behind a product that holds the data
//! itself there is no origin at all.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_model::At;
use weir_model::counters::OriginCounters;
use weir_model::fault::Fault;
use weir_model::gateway::Gateway;
use weir_model::load::REQUEST_ID_HEADER;
use weir_model::origin::{OriginSpec, OriginTls};
use weir_model::product::{Product, ProductKind};
use weir_model::record::{Finding, Role};
use weir_model::suite::{Entry, Protocol, Tls, Workload};
use weir_vitals::Watched;

use super::spec::is_real_time;
use super::stack::targets;
use super::{Trial, request_timeout, requester};
use crate::hosts::{is_same_host, path_on_host};
use weir_host::Host;
use weir_host::role::{OriginProcess, RoleError};
use weir_product::failure::Failure;
use weir_product::launch::{LaunchSpec, launch};
use weir_product::render::{CERT, CLIENT_CA, KEY};
use weir_product::requester::{Requester, Server};
use weir_product::running::Running;

/// The folder, beside the configuration, that a product serves as the origin.
const FILES: &str = "files";

/// A running origin.
#[derive(Debug)]
pub struct RunningOrigin {
    kind: OriginKind,
    /// Where. Empty where there is none.
    pub addrs: Vec<SocketAddr>,
}

#[derive(Debug)]
enum OriginKind {
    /// weir's own: one on each host that has addresses.
    Own(Vec<OwnOrigin>),
    /// None: the product holds the data itself.
    Absent,
    /// A product.
    Product { running: Box<Running>, product: Box<Product> },
}

/// weir's own origin on one host.
#[derive(Debug)]
struct OwnOrigin {
    host: Arc<dyn Host>,
    process: OriginProcess,
}

/// Starts the origin that the suite asks for, and waits until it serves. weir's own speaks `protocol`; over plain TCP it speaks
/// both HTTP/1.1 and HTTP/2. A product as the origin speaks HTTP/1.1.
pub fn start(
    trial: &Trial<'_>,
    addrs: &[SocketAddr],
    protocol: Protocol,
    requester: &Requester,
) -> Result<RunningOrigin, Failure> {
    let Trial { context, stop, .. } = *trial;
    let own = own(trial, addrs, protocol)?;
    let Some(Entry { product: name, profile }) = &context.origin else {
        return Ok(RunningOrigin { addrs: addrs.to_vec(), kind: OriginKind::Own(own) });
    };
    let listen = addrs[0];
    let product = context.product(name, "origin")?;
    let folder = path_on_host(context.hosts.origin().as_ref(), trial.spec.folder, &trial.spec.folder.join("origin"));
    let from = Server { addr: listen, protocol: Protocol::default(), timeout: request_timeout(trial.spec.load) };
    for workload in trial.spec.workloads() {
        write_response(trial, workload, from, &folder.join(FILES))?;
    }
    // The product listens on the same port.
    drop(own);
    let spec = LaunchSpec {
        profile,
        folder,
        elsewhere: &BTreeMap::new(),
        listen,
        others: &[],
        origins: &[listen],
        cpus: &context.placement.origin,
        connections: trial.spec.load.connections,
        protocol: trial.spec.workload.upstream(),
        streams: 1,
        stream: None,
        targets: &targets(&trial.spec.workloads()),
        gateway: &Gateway::default(),
        upstream: Protocol::default(),
        tls: None,
        request_id_header: None,
        faults: &[],
        changes: 0,
    };
    let mut running = launch(&context.origin_launcher, product, spec, stop)?;
    if let ProductKind::Proxy(program) = &product.kind {
        running.wait_ready(requester, program.front().process.ready_within, stop)?;
    }
    running.verify_listener()?;
    let kind = OriginKind::Product { running: Box::new(running), product: Box::new(product.clone()) };
    Ok(RunningOrigin { kind, addrs: vec![listen] })
}

fn own(trial: &Trial<'_>, listen: &[SocketAddr], protocol: Protocol) -> Result<Vec<OwnOrigin>, Failure> {
    let context = trial.context;
    let hosts = &context.hosts.origins;
    let several = hosts.len() > 1;
    let mut own = Vec::new();
    for (nth, host) in hosts.iter().enumerate().take(listen.len()) {
        // Addresses were dealt to the hosts in turn.
        let listen: Vec<SocketAddr> = listen.iter().skip(nth).step_by(hosts.len()).copied().collect();
        let at = |name: &str| path_on_host(host.as_ref(), trial.spec.folder, &trial.spec.folder.join(name));
        let log = if several { at(&format!("origin-{}.log", host.facts().name)) } else { at("origin.log") };
        host.create_dir(&at(""))?;
        let tls = protocol.is_tls().then(|| certified(trial, host, &at("origin"))).transpose()?;
        let mut cpus = context.hosts.cpus(Role::Origin, host, &context.placement);
        if trial.spec.workload.is_broadcast() {
            // A message goes to the connections of one thread.
            cpus.truncate(1);
        }
        let (connections, driver) = (trial.spec.load.all_connections(), context.driver);
        let real_time = is_real_time(trial);
        let names = trial.spec.workload.request_id_header();
        let spec = OriginSpec {
            listen,
            protocol,
            connections,
            cpus,
            real_time,
            driver,
            tls,
            request_id_header: names.filter(|names| names != REQUEST_ID_HEADER),
            response_key: context.response_key,
            headers: trial.spec.workload.origin_headers.clone(),
            faults: member_faults(trial, nth, hosts.len()),
        };
        let process = OriginProcess::start(host, &spec, &log).map_err(|e| {
            Failure::at("origin", e.to_string(), "origin.log in the trial's folder", "see what it says")
        })?;
        own.push(OwnOrigin { host: Arc::clone(host), process });
    }
    Ok(own)
}

/// The faults of the members that this host has: every so many of them are dealt to it.
fn member_faults(trial: &Trial<'_>, nth: usize, hosts: usize) -> Vec<Fault> {
    let proxied = trial.product.kind != ProductKind::Direct;
    let own = |fault: &&Fault| proxied && fault.member.is_some_and(|member| (member as usize - 1) % hosts == nth);
    let renumbered =
        |fault: &Fault| Fault { member: fault.member.map(|member| (member - 1) / hosts as u32 + 1), ..fault.clone() };
    trial.spec.load.faults.iter().filter(own).map(renumbered).collect()
}

/// Writes the run's certificate into a folder of the origin's own.
fn certified(trial: &Trial<'_>, host: &Arc<dyn Host>, folder: &Path) -> Result<OriginTls, Failure> {
    let of_trial = trial.tls()?;
    of_trial.write(host.as_ref(), folder)?;
    let tls = of_trial.settings();
    // Products have no certificate for the origin.
    let asks = tls.client_certificates && trial.product.kind == ProductKind::Direct;
    let client_ca = asks.then(|| folder.join(CLIENT_CA));
    let tls = Tls { client_certificates: asks, ..tls };
    Ok(OriginTls { cert: folder.join(CERT), key: folder.join(KEY), client_ca, tls })
}

/// Sends the request to weir's own origin, on its host, and writes the response's body as the file with which a web server answers
/// the same request.
fn write_response(trial: &Trial<'_>, workload: &Workload, own: Server, files: &Path) -> Result<(), Failure> {
    let request = &workload.request;
    let cannot = |why: &str| {
        let found = format!("the workload {} cannot be served from a file: {why}", workload.name);
        let remedy = "leave the workload out (--only), or take weir's own origin (no --origin)";
        Failure::at("origin", found, format!("{} {}", request.method, request.path), remedy)
    };
    if request.method != "GET" || !request.body.is_empty() {
        return Err(cannot("only GET without a body can"));
    }
    let path = file_of(&request.path).ok_or_else(|| cannot("its path is no plain path, such as /bytes/128"))?;
    requester(trial.context.hosts.origin(), trial)?.save(request, own, files.join(path)).map_err(|e| cannot(&e))
}

/// The relative path of the file that a web server serves for a request path; `None` where it would serve none, or another.
fn file_of(path: &str) -> Option<PathBuf> {
    let relative = path.strip_prefix('/')?;
    let plain = relative.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/".contains(&b));
    let named = relative.split('/').all(|part| !matches!(part, "" | "." | ".."));
    (plain && named).then(|| PathBuf::from(relative))
}

impl RunningOrigin {
    /// None: the product holds the data itself.
    pub fn absent() -> RunningOrigin {
        RunningOrigin { kind: OriginKind::Absent, addrs: Vec::new() }
    }

    /// Its process trees on a host, for vitals.
    pub fn watched(&self, host: &Arc<dyn Host>) -> Vec<Watched> {
        match &self.kind {
            OriginKind::Own(own) => {
                let there = own.iter().filter(|one| is_same_host(&one.host, host));
                there.map(|one| Watched::process(Role::Origin, one.process.pid())).collect()
            }
            OriginKind::Product { running, .. } => running.watched(Role::Origin, host.as_ref()),
            OriginKind::Absent => Vec::new(),
        }
    }

    /// Those on a host that can say how many connections they have open, by pid: a product cannot.
    pub fn counted(&self, host: &Arc<dyn Host>) -> Vec<(Role, u32)> {
        let OriginKind::Own(own) = &self.kind else { return Vec::new() };
        let there = own.iter().filter(|one| is_same_host(&one.host, host));
        there.map(|one| (Role::Origin, one.process.pid())).collect()
    }

    /// Fails when it has ended.
    pub fn still_runs(&mut self) -> Result<(), Failure> {
        match &mut self.kind {
            OriginKind::Own(own) => match own.iter().find(|one| !one.process.alive()) {
                None => Ok(()),
                Some(gone) => {
                    let remedy = "see origin.log in the trial's folder; the kernel's log shows an OOM kill";
                    Err(Failure::at("load", "the origin went away in mid-trial", gone.process.last_lines(), remedy))
                }
            },
            OriginKind::Product { running, .. } => running.still_runs("load"),
            OriginKind::Absent => Ok(()),
        }
    }

    /// The times of the faults of its members count from this one.
    pub fn begin_faults(&self, at: At) -> Result<(), Failure> {
        let OriginKind::Own(own) = &self.kind else {
            let found = "the load has faults of the pool's members, which only weir's own origin can have";
            return Err(Failure::at("load", found, "", "no --origin, and no store"));
        };
        let failed = |one: &OwnOrigin, error: RoleError| {
            let found = format!("the faults of the pool could not be ordered: {error}");
            Failure::at("load", found, one.process.last_lines(), "see origin.log in the trial's folder")
        };
        own.iter().try_for_each(|one| one.process.begin_faults(at).map_err(|error| failed(one, error)))
    }

    /// Its counters now; `None` for a product, or where there is none.
    pub fn counters(&self) -> Result<Option<OriginCounters>, Failure> {
        let OriginKind::Own(own) = &self.kind else {
            return Ok(None);
        };
        let several = own.len() > 1;
        let mut all: Option<OriginCounters> = None;
        for OwnOrigin { process, .. } in own {
            let counters = process.counters().map_err(|e| {
                let found = format!("the origin's counters cannot be read: {e}");
                Failure::at("settle", found, process.last_lines(), "see origin.log in the trial's folder")
            })?;
            let address = process.addrs.first().map(ToString::to_string).unwrap_or_default();
            let counters = if several { counters.of_address(address) } else { counters };
            all = Some(all.map_or(counters.clone(), |all| all.plus(&counters)));
        }
        Ok(all)
    }

    /// Ends it. Returns a finding when it had to be killed.
    pub fn stop(self) -> Option<Finding> {
        match self.kind {
            OriginKind::Own(own) => {
                drop(own);
                None
            }
            OriginKind::Product { running, product } => running.stop(&product),
            OriginKind::Absent => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_become_files() {
        assert_eq!(file_of("/bytes/128"), Some(PathBuf::from("bytes/128")));
        assert_eq!(file_of("/a.b-c_d"), Some(PathBuf::from("a.b-c_d")));
        for path in ["", "/", "/a/", "//a", "/a//b", "/../a", "/a/./b", "/a?b=c", "/a%2fb", "/echo#x", "a"] {
            assert_eq!(file_of(path), None, "{path}");
        }
    }
}
