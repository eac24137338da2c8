//! Starting a product: it renders the configuration on each host that has a part, lets the product check it, and starts each part under a
//! supervisor, in order. A part starts once the ports of the parts before it accept connections. `weir-lab` and `weir-conformance` call it.
//!
//! This module does not know what the product is used for.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_host::stop::Stop;
use weir_host::transport::command_line;
use weir_host::{Confined, Disk, Host, ProgramSpec};
use weir_model::fault::{Fault, FaultKind};
use weir_model::gateway::Gateway;
use weir_model::load::{REQUEST_ID_HEADER, StreamKind};
use weir_model::product::{Part, Product, ProductKind, Program};
use weir_model::suite::{Protocol, Tls};

use crate::client::WireProtocol;
use crate::failure::Failure;
use crate::render::{self, RenderError, Rendered, Vars};
use crate::running::{CommandError, Running, RunningPart, run_to_end};
use crate::tls::RunTls;

/// What to do when a supervisor was lost.
pub(crate) const ENDED_FROM_OUTSIDE: &str =
    "see what ended weir's supervisor, such as the kernel for want of memory (its log says so), and run again";

/// Lines of output quoted as evidence.
pub(crate) const EVIDENCE_LINES: usize = 8;

/// How long a product's check of its own configuration may take. Checks take tens of milliseconds; one that takes this long hangs.
const CHECK_WITHIN: Duration = Duration::from_secs(30);

/// A product's program as it is on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The program.
    pub binary: PathBuf,
    /// The version that it reports.
    pub version: String,
    /// SHA-256 of the program, lower-case hexadecimal.
    pub sha256: String,
    /// Where it comes from, for the record: `system`, `apt <package> <version>`, `wheel <package> <version>`,
    /// `crate <package> <version>` and the like, `own <path>`.
    pub from: String,
}

/// What is needed to start any product.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// Where products run.
    pub host: Arc<dyn Host>,
    /// The certificate and the TLS settings.
    pub tls: RunTls,
    /// The installed programs by product name; none for `direct`.
    pub installed: BTreeMap<String, Installed>,
}

impl Launcher {
    /// The protocol of weir's own requests, with TLS if it needs it.
    ///
    /// # Errors
    /// When the TLS options cannot be used.
    pub fn wire_protocol(&self, protocol: Protocol) -> Result<WireProtocol, Failure> {
        self.tls.wire_protocol(protocol).map_err(|e| Failure::at("start", e, "", "see the suite's [tls]"))
    }
}

/// Where a part runs.
#[derive(Debug, Clone)]
pub struct Place {
    /// The host.
    pub host: Arc<dyn Host>,
    /// The product's program there.
    pub binary: PathBuf,
    /// The product's folder there, for configuration and output.
    pub folder: PathBuf,
    /// The CPUs there of all parts that are on that host; none: all.
    pub cpus: Vec<u32>,
}

/// How to start a product.
#[derive(Debug)]
pub struct LaunchSpec<'a> {
    /// Name of the profile.
    pub profile: &'a str,
    /// Its folder on the launcher's host, for its configuration and its output.
    pub folder: PathBuf,
    /// Places of the parts that are not on the launcher's host, by the part's name. The part that clients talk to is none of them.
    pub elsewhere: &'a BTreeMap<String, Place>,
    /// Where it listens for `protocol`.
    pub listen: SocketAddr,
    /// Where it listens for other protocols beside it, as a profile with `listeners` can.
    pub others: &'a [(Protocol, SocketAddr)],
    /// Where it sends requests on to; empty for a product that holds the data itself.
    pub origins: &'a [SocketAddr],
    /// Its CPUs on the launcher's host.
    pub cpus: &'a [u32],
    /// Connections that the load opens.
    pub connections: u32,
    /// Their protocol.
    pub protocol: Protocol,
    /// Streams that each of them may have open.
    pub streams: u32,
    /// Their responses are such streams, of which messages are to be passed on as they come.
    pub stream: Option<StreamKind>,
    /// The paths of their requests, or empty where they have none; queries are ignored.
    pub targets: &'a [&'a str],
    /// What is asked of it beyond sending requests on.
    pub gateway: &'a Gateway,
    /// The protocol between it and the origins.
    pub upstream: Protocol,
    /// How it speaks TLS; `None`: as the launcher's run does.
    pub tls: Option<Tls>,
    /// The header with the IDs of the requests; `None`: the usual one.
    pub request_id_header: Option<String>,
    /// Faults that will be provoked in it: some need a disk of the part's own.
    pub faults: &'a [Fault],
    /// How often its route will change; 0: never.
    pub changes: u32,
}

/// Renders, checks and starts a product. On return all its parts are started, and those with ports listen.
///
/// # Errors
/// Which step failed, and why.
pub fn launch(launcher: &Launcher, product: &Product, wanted: LaunchSpec<'_>, stop: &Stop) -> Result<Running, Failure> {
    let LaunchSpec { listen, protocol, .. } = wanted;
    let installed = launcher.installed.get(&product.name).ok_or_else(|| {
        let remedy = format!("weir products install {}", product.name);
        Failure::at("start", format!("{} is not installed", product.title), "", remedy)
    })?;
    let ProductKind::Proxy(program) = &product.kind else {
        return Err(Failure::at("start", format!("{} is no program", product.title), "", "choose a proxy"));
    };
    let (host, binary) = (Arc::clone(&launcher.host), installed.binary.clone());
    let front = Place { host, binary, folder: wanted.folder, cpus: wanted.cpus.to_vec() };
    let place_of = |part: &Part| wanted.elsewhere.get(&part.name).unwrap_or(&front);
    let places: Vec<&Place> = program.parts.iter().map(place_of).collect();
    let cpu_sets = cpu_sets(program, &places);
    let others = wanted.others.iter().map(|(_, addr)| *addr);
    let taken: Vec<SocketAddr> = others.chain(wanted.origins.iter().copied()).chain([listen]).collect();
    let ports = part_ports(program, &places, &taken)?;
    let cores = |cpus: &[u32]| cpus.len().max(1);
    let of_run = launcher.tls.of_workload(wanted.tls).map_err(no_certificate)?;
    let vars = Vars {
        binary: PathBuf::new(),
        listen_host: listen.ip().to_string(),
        listen_port: listen.port(),
        origins: wanted.origins.to_vec(),
        change: None,
        cores: 0,
        connections: wanted.connections,
        protocol,
        others: wanted.others.to_vec(),
        streams: wanted.streams,
        stream: wanted.stream,
        tls: of_run.settings(),
        paths: wanted.targets.iter().map(|target| target.split('?').next().unwrap_or_default().to_owned()).collect(),
        gateway: wanted.gateway.clone(),
        upstream: wanted.upstream,
        request_id_header: wanted.request_id_header.unwrap_or_else(|| REQUEST_ID_HEADER.to_owned()),
        ports: ports.clone(),
        part_cores: program.parts.iter().zip(&cpu_sets).map(|(part, set)| (part.name.clone(), cores(set))).collect(),
    };
    let changed = |vars: &Vars, number| {
        let origins = wanted.origins.iter().cycle().skip(number as usize).take(1).copied().collect();
        Vars { change: Some(number), origins, ..vars.clone() }
    };
    let vars = if wanted.changes > 0 { changed(&vars, 0) } else { vars };
    let tls = protocol.is_tls() || wanted.others.iter().any(|(protocol, _)| protocol.is_tls());
    // Each host has files of its own: their folder, the program and the CPUs differ.
    let mut rendered: BTreeMap<&str, Rendered> = BTreeMap::new();
    let mut changes = VecDeque::new();
    let refused = |e: RenderError| Failure::at("render", e.to_string(), "", "correct the product's templates");
    for place in &places {
        let Place { host, binary, folder, cpus } = place;
        let Entry::Vacant(entry) = rendered.entry(host.facts().name.as_str()) else { continue };
        host.create_dir(folder)?;
        if tls {
            of_run.write(host.as_ref(), folder)?;
        }
        let vars = Vars { binary: binary.clone(), cores: cores(cpus) as u32, ..vars.clone() };
        let files = render::render(host.as_ref(), product, wanted.profile, &vars, folder).map_err(refused)?;
        entry.insert(files);
        // The other hosts have parts that clients do not talk to.
        let last = if folder == &front.folder { wanted.changes } else { 0 };
        for number in 1..=last {
            let vars = (&changed(&vars, number - 1), &changed(&vars, number));
            changes
                .push_back(render::differing(host.as_ref(), product, wanted.profile, vars, folder).map_err(refused)?);
        }
    }
    let mut running = Running {
        host: Arc::clone(&launcher.host),
        parts: Vec::new(),
        addr: listen,
        title: product.title.clone(),
        changes,
        log: product.profiles.get(wanted.profile).and_then(|profile| profile.log.clone()),
        protocol,
    };
    for (index, ((part, place), cpus)) in program.parts.iter().zip(&places).zip(cpu_sets).enumerate() {
        let Place { host, binary, folder, .. } = place;
        let files = &rendered[host.facts().name.as_str()];
        let (rendered, nice) = (files.parts[index].clone(), files.nice);
        let name = program.has_parts().then(|| part.name.clone());
        let title =
            name.as_ref().map_or_else(|| product.title.clone(), |name| format!("{}'s part {name}", product.title));
        let file = |stem: &str, kind: &str| match &name {
            None => folder.join(format!("{stem}.{kind}")),
            Some(name) => folder.join(format!("{stem}-{name}.{kind}")),
        };
        let reads = vec![installed_folder(&product.name, binary)];
        let confined = Confined { reads, capabilities: part.process.capabilities.clone(), account: None };
        let base = ProgramSpec {
            env: environment(host.as_ref(), &rendered.env),
            dir: folder.clone(),
            confined: Some(confined),
            ..ProgramSpec::default()
        };
        let spec = |argv: &[String], output: PathBuf| ProgramSpec { argv: argv.to_vec(), output, ..base.clone() };
        if let Some(argv) = &rendered.check {
            run_check(host.as_ref(), &title, &spec(argv, file("check", "log")), stop)?;
        }
        if stop.is_requested() {
            return Err(Failure::Stopped);
        }
        let (output, exit) = (file("output", "log"), file("exit", "json"));
        let disk = disk(wanted.faults, program, index, folder);
        let keeps_output = running.log.as_ref().is_some_and(|log| output.ends_with(log));
        let spec = ProgramSpec { cpus, nice, disk, keeps_output, ..spec(&rendered.command, output.clone()) };
        let process = host.start(&spec).map_err(|e| {
            let command = command_line(&rendered.command);
            Failure::at("start", e.to_string(), command, "see that the binary is there and may run")
        })?;
        let stop_within = part.process.stop_within;
        let host = Arc::clone(host);
        running.parts.push(RunningPart { name, title, host, process, rendered, output, exit, stop_within, base });
        let own: Vec<SocketAddr> = part.ports.iter().filter_map(|name| ports.get(name).copied()).collect();
        running.wait_listening(&own, part.process.ready_within, stop)?;
    }
    Ok(running)
}

/// What belongs to a program: its version's folder among those that weir installed (`products/<name>/<version>`), else the folder that
/// it is in.
pub fn installed_folder(product: &str, binary: &Path) -> PathBuf {
    let of_product = Path::new("products").join(product);
    let is_version = |folder: &&Path| folder.parent().is_some_and(|above| above.ends_with(&of_product));
    binary.ancestors().find(is_version).or(binary.parent()).unwrap_or(binary).to_owned()
}

/// The disk of a part, for a fault that fills it: in place of its first scratch folder.
fn disk(faults: &[Fault], program: &Program, part: usize, folder: &Path) -> Option<Disk> {
    let filled =
        faults.iter().find(|fault| fault.what == FaultKind::DiskFull && fault.parts(program).contains(&part))?;
    let at = folder.join(program.parts[part].process.scratch.first()?);
    Some(Disk { at, size: filled.disk?.0 })
}

/// No certificate could be made.
pub fn no_certificate(error: weir_wire::tls::TlsError) -> Failure {
    Failure::at("start", error.to_string(), "", "see that the machine has random numbers (/dev/urandom)")
}

/// The parts on each host, by their index.
fn parts_by_host<'p>(places: &[&'p Place]) -> Vec<(&'p Place, Vec<usize>)> {
    let mut hosts: Vec<(&Place, Vec<usize>)> = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let name = &place.host.facts().name;
        match hosts.iter_mut().find(|(known, _)| known.host.facts().name == *name) {
            Some((_, parts)) => parts.push(index),
            None => hosts.push((*place, vec![index])),
        }
    }
    hosts
}

/// The CPUs of each part: those of its host, divided among the parts there.
fn cpu_sets(program: &Program, places: &[&Place]) -> Vec<Vec<u32>> {
    let mut sets = vec![Vec::new(); places.len()];
    for (place, parts) in parts_by_host(places) {
        let shares: Vec<Option<f64>> = parts.iter().map(|part| program.parts[*part].cpu_share).collect();
        for (part, set) in parts.into_iter().zip(weir_model::placement::divide(&place.cpus, &shares)) {
            sets[part] = set;
        }
    }
    sets
}

/// A free port for each port name of the parts, at the address for traffic of the part's host, where other parts and clients reach it. They
/// differ from those in `chosen`.
fn part_ports(
    program: &Program,
    places: &[&Place],
    chosen: &[SocketAddr],
) -> Result<BTreeMap<String, SocketAddr>, Failure> {
    let mut all = BTreeMap::new();
    for (Place { host, .. }, parts) in parts_by_host(places) {
        let names: Vec<&String> = parts.into_iter().flat_map(|part| &program.parts[part].ports).collect();
        let ports = host
            .free_ports(host.facts().traffic(), names.len() + chosen.len())
            .map_err(|e| Failure::at("start", e.to_string(), "", "see what listens with `ss -ltn`"))?;
        let others = ports.into_iter().filter(|port| !chosen.iter().any(|one| one.port() == port.port()));
        all.extend(names.into_iter().cloned().zip(others));
    }
    Ok(all)
}

/// Runs a part's check of its own configuration.
fn run_check(host: &dyn Host, title: &str, spec: &ProgramSpec, stop: &Stop) -> Result<(), Failure> {
    let message = match run_to_end(host, spec, CHECK_WITHIN, stop) {
        Ok(()) => return Ok(()),
        Err(CommandError::Stopped) => return Err(Failure::Stopped),
        Err(CommandError::Failed(ended)) if ended.lost => {
            let found =
                format!("the check of {title}'s configuration was ended from outside, with weir's supervisor of it");
            return Err(Failure::at("check", found, command_line(&spec.argv), ENDED_FROM_OUTSIDE));
        }
        Err(CommandError::Failed(ended)) => format!("{title} refuses its configuration ({ended})"),
        Err(other) => format!("the check of {title}'s configuration {other}"),
    };
    let evidence = format!("{}\n{}", command_line(&spec.argv), host.last_lines(&spec.output, EVIDENCE_LINES));
    let remedy = "correct the product's templates; they are in the trial's folder as rendered";
    Err(Failure::at("check", message, evidence, remedy))
}

/// The environment of every product: what its host lets it see, and nothing else of the user's session that could change its
/// behaviour from one machine to the next.
fn environment(host: &dyn Host, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env = host.facts().env.clone();
    env.extend(own.clone());
    env
}
