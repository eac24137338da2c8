//! The processes of a host of the world: origins, clients and requesters, which speak lines as weir's own do, and products.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_host::role::{
    ClientCommand, ClientReport, ClientSpec, CountersReport, OriginCommand, OriginReport, SPEC_FILE,
};
use weir_host::supervisor::StartError;
use weir_host::{Disturbance, Ended, Process, ProgramSpec, ReceiveError, RoleProcess, RoleSpec};
use weir_load::Outputs;
use weir_model::At;
use weir_model::origin::OriginSpec;
use weir_model::product::Signal;
use weir_model::protocol::Protocol;
use weir_net::sim::SimDriver;
use weir_net::{Driver, Task};
use weir_origin::{Faults, Options, ResponseOptions};
use weir_product::requester::Responder;

use super::network::SimNetwork;
use super::{Realm, SimHost, locked};
use crate::engine::{SimLoad, SimOrigin};
use crate::misbehaviour::Fault;
use crate::product::{PRODUCT_MEMORY, Product, ProductOptions, Route, SharedSpent, Spent};
use crate::relay::Relay;

/// A process of the world.
#[derive(Debug)]
pub struct Entry {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) ended: bool,
    pub(super) frozen_until: u64,
    /// How often a quota has stopped it, and for how long, nanoseconds.
    pub(super) throttled: (u64, u64),
    pub(super) listens: Vec<SocketAddr>,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Origin(SimOrigin),
    Client(SimLoad),
    Requester,
    Product { tasks: Vec<usize>, nodes: Vec<usize>, spent: SharedSpent },
}

impl Entry {
    fn new(host: &SimHost, name: &str, listens: Vec<SocketAddr>, work: Work) -> Entry {
        let host = host.facts.name.clone();
        Entry { name: name.to_owned(), host, ended: false, frozen_until: 0, throttled: (0, 0), listens, work }
    }

    /// Its tasks of the world.
    pub(super) fn tasks(&self) -> Vec<usize> {
        match &self.work {
            Work::Origin(origin) => origin.tasks.clone(),
            Work::Client(load) => load.tasks().into_iter().chain([load.controller()]).collect(),
            Work::Product { tasks, .. } => tasks.clone(),
            Work::Requester => Vec::new(),
        }
    }

    /// What it has spent so far.
    pub(super) fn spent(&self, realm: &Realm) -> Spent {
        let of_nodes = |nodes: &[usize]| nodes.iter().map(|node| realm.world.cpu_ns(*node)).sum();
        match &self.work {
            Work::Origin(origin) => Spent { cpu_ns: of_nodes(&origin.nodes), memory: 10_000_000, ..Spent::default() },
            Work::Client(load) => Spent { cpu_ns: of_nodes(&load.nodes()), memory: 10_000_000, ..Spent::default() },
            Work::Requester => Spent::default(),
            Work::Product { nodes, spent, .. } => {
                let spent = *locked(spent);
                // The time of a request is meant to have that of its events.
                Spent { cpu_ns: spent.cpu_ns.max(of_nodes(nodes)), memory: spent.memory.max(PRODUCT_MEMORY), ..spent }
            }
        }
    }

    /// Connections that it has open, if it can say so.
    pub(super) fn connections(&self) -> Option<u64> {
        match &self.work {
            Work::Origin(origin) => Some(origin.handle.connections_open()),
            Work::Client(_) | Work::Requester | Work::Product { .. } => None,
        }
    }
}

/// Starts weir in a role.
pub(super) fn start_role(host: &SimHost, spec: &RoleSpec) -> io::Result<Arc<dyn RoleProcess>> {
    let realm = &host.realm;
    let mut lines = VecDeque::new();
    let entry = match spec.name.as_str() {
        "requester" => Entry::new(host, "requester", Vec::new(), Work::Requester),
        "origin" => {
            let text = spec.args.last().ok_or(io::ErrorKind::InvalidInput)?;
            let order: OriginSpec = serde_json::from_str(text)?;
            let options = Options::from_spec(&order, &|path: &Path| std::fs::read(path))?;
            let origin = SimOrigin::start(&realm.world, options, host.node()).map_err(io::Error::other)?;
            let (listening, also) = (origin.addresses[0], origin.addresses[1..].to_vec());
            lines.push_back(json(&OriginReport::Listens { listening, also, driver: "epoll".to_owned() }));
            Entry::new(host, "origin", origin.addresses.clone(), Work::Origin(origin))
        }
        _ => {
            let folder = Path::new(spec.args.last().ok_or(io::ErrorKind::InvalidInput)?);
            let order: ClientSpec = serde_json::from_slice(&std::fs::read(folder.join(SPEC_FILE))?)?;
            // A thread that may run anywhere takes the product's CPUs, which no world can show.
            assert!(!order.spec.cpus.is_empty(), "the client's threads are told their CPUs");
            let outputs = Outputs { hlog: Some(folder.join("latency.hlog")), series: Some(folder.join("load.csv")) };
            let load = SimLoad::start(&realm.world, &order.spec, &outputs, order.waits, host.node());
            Entry::new(host, "client", Vec::new(), Work::Client(load))
        }
    };
    let requester = Responder::over(Arc::new(SimNetwork { host: host.clone() }));
    let pid = realm.add(entry);
    Ok(Arc::new(SimRole { host: host.clone(), pid, lines: Mutex::new(lines), requester: Mutex::new(requester) }))
}

fn json(word: &impl serde::Serialize) -> String {
    serde_json::to_string(word).expect("reports can be written")
}

/// weir in a role.
struct SimRole {
    host: SimHost,
    pid: u32,
    lines: Mutex<VecDeque<String>>,
    requester: Mutex<Responder>,
}

impl fmt::Debug for SimRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimRole").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl SimRole {
    fn with<T>(&self, take: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.host.realm.entries().get_mut(&self.pid).map(take)
    }

    /// Takes what a client has reported since the last time.
    fn take_reports(&self) {
        let mut lines = locked(&self.lines);
        self.with(|entry| {
            let Work::Client(load) = &entry.work else { return };
            while let Some(news) = load.next_report() {
                lines.extend(weir_lab::trial::report(news).map(|report| json(&report)));
            }
            if let Some(result) = load.take_result() {
                entry.ended = true;
                lines.push_back(json(&match result {
                    Ok(result) => ClientReport::Done(Box::new(result)),
                    Err(error) => ClientReport::Failed(error.to_string()),
                }));
            }
        });
    }

    /// Waits until its process runs.
    fn wait_until_thawed(&self, within: Duration) -> bool {
        let realm = &self.host.realm;
        realm.wait(within, || self.with(|entry| entry.frozen_until).is_none_or(|until| until <= realm.world.now()))
    }
}

impl RoleProcess for SimRole {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn alive(&self) -> bool {
        self.with(|entry| !entry.ended).unwrap_or_default()
    }

    fn send(&self, line: &str) -> io::Result<()> {
        let realm = Arc::clone(&self.host.realm);
        let done = self.with(|entry| match &entry.work {
            _ if entry.ended => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
            Work::Client(load) => {
                match ClientCommand::parse(line) {
                    ClientCommand::Start(at) => {
                        locked(&realm.load_starts).push(at.mono_ns - super::BOOTED - self.host.offset);
                        load.start_at(at);
                    }
                    ClientCommand::End => load.stop(),
                    ClientCommand::Continue => {}
                }
                Ok(None)
            }
            Work::Origin(origin) => Ok(match OriginCommand::parse(line) {
                Some(OriginCommand::Freeze(length)) => Some(length),
                Some(OriginCommand::Faults(at)) => {
                    origin.handle.begin_faults(at);
                    None
                }
                _ => None,
            }),
            Work::Requester | Work::Product { .. } => Ok(None),
        });
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        if let Some(length) = done.unwrap_or_else(|| Err(gone()))? {
            realm.freeze(self.pid, length);
        }
        Ok(())
    }

    fn receive(&self, within: Duration) -> Result<String, ReceiveError> {
        let has_news = || {
            self.take_reports();
            !locked(&self.lines).is_empty() || !self.alive()
        };
        let came = self.host.realm.wait(within, has_news);
        match locked(&self.lines).pop_front() {
            Some(line) => Ok(line),
            None if came => Err(ReceiveError::Ended),
            None => Err(ReceiveError::Timeout),
        }
    }

    fn ask(&self, line: &str, within: Duration) -> Result<String, ReceiveError> {
        if !self.alive() {
            return Err(ReceiveError::Ended);
        }
        if !self.wait_until_thawed(within) {
            return Err(ReceiveError::Timeout);
        }
        let reply = self.with(|entry| match (&entry.work, OriginCommand::parse(line)) {
            (Work::Origin(origin), Some(OriginCommand::Counters)) => {
                Some(json(&CountersReport { counters: origin.handle.counters() }))
            }
            (Work::Origin(origin), Some(OriginCommand::Count)) => {
                Some(json(&OriginReport::Open { connections_open: origin.handle.connections_open() }))
            }
            _ => None,
        });
        // A requester's requests run the world, so nothing may be locked meanwhile.
        Ok(reply.flatten().unwrap_or_else(|| locked(&self.requester).to(line)))
    }

    fn end(&self) {
        self.host.realm.kill(self.pid);
    }
}

impl Drop for SimRole {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a product's process does.
#[derive(Debug, Clone)]
enum Service {
    Proxy(ProductOptions),
    /// It holds the keys itself, in memory, with these faults.
    Store(Protocol, Faults),
}

/// Starts a product: a proxy, `BINARY LISTEN ORIGINS FAULT SERVICE_US WORKERS`, its origins with commas between them; or a store, `BINARY
/// LISTEN PROTOCOL FAULTS`.
pub(super) fn start_program(host: &SimHost, spec: &ProgramSpec) -> Result<Box<dyn Process>, StartError> {
    let realm = &host.realm;
    let failed = |why: &str| StartError::Program {
        program: spec.argv.first().cloned().unwrap_or_default(),
        why: why.to_owned(),
    };
    if host.is_lost() {
        return Err(failed("its host is lost"));
    }
    let (listen, service) = match spec.argv.as_slice() {
        [_, listen, protocol, faults] => {
            let spoken = Protocol::ALL.iter().find(|one| one.as_str() == protocol);
            let faults = faults.parse().map_err(|_| failed("no such fault"))?;
            (listen, Service::Store(*spoken.ok_or_else(|| failed("no such protocol"))?, faults))
        }
        [_, listen, origins, fault, service, workers] => {
            let origins = origins.trim_end_matches(',').split(',').map(|addr| addr.parse::<SocketAddr>().ok());
            let origins: Option<Vec<SocketAddr>> = origins.collect();
            let options = ProductOptions {
                service: service.parse::<u64>().map_err(|_| failed("no service time"))? * 1_000,
                workers: workers.parse().map_err(|_| failed("no number of workers"))?,
                upstreams: 1_000,
                keep_alive: true,
                origins: origins.ok_or_else(|| failed("no origins"))?.into_iter().map(Into::into).collect(),
                fault: Fault::parse(fault).ok_or_else(|| failed("no such fault"))?,
                route: Arc::new(Mutex::new(route(&spec.dir))),
            };
            (listen, Service::Proxy(options))
        }
        _ => return Err(failed("it takes three or five arguments")),
    };
    let listen: SocketAddr = listen.parse().map_err(|_| failed("no address"))?;
    let spent = SharedSpent::default();
    let work = Work::Product { tasks: Vec::new(), nodes: Vec::new(), spent: Arc::clone(&spent) };
    let pid = realm.add(Entry::new(host, "product", vec![listen], work));
    let folder = spec.dir.clone();
    let program = Program { host: host.clone(), pid, listen, service, folder, spent, disturbed: Arc::default() };
    program.begin();
    Ok(Box::new(SimProcess(program)))
}

/// The route in a product's folder.
fn route(folder: &Path) -> Route {
    let text = std::fs::read_to_string(folder.join("route")).unwrap_or_default();
    let mut words = text.split(' ');
    let number = words.next().and_then(|number| number.parse().ok());
    let origin = words.next().and_then(|addr| addr.parse::<SocketAddr>().ok());
    Route { number, origin: origin.filter(|_| number.is_some()).map(Into::into), drops: 0 }
}

/// A product's process, which ends with this.
#[derive(Debug)]
struct SimProcess(Program);

impl Drop for SimProcess {
    fn drop(&mut self) {
        self.0.host.realm.kill(self.0.pid);
    }
}

/// What a product's process is.
#[derive(Debug, Clone)]
struct Program {
    host: SimHost,
    pid: u32,
    listen: SocketAddr,
    service: Service,
    folder: PathBuf,
    spent: SharedSpent,
    disturbed: Arc<Mutex<Vec<(Disturbance, At)>>>,
}

impl Program {
    /// Gives it its tasks. A port that is taken shows as a product that does not get ready.
    fn begin(&self) {
        let world = &self.host.realm.world;
        let (began, numbers) = match &self.service {
            Service::Proxy(options) => {
                let mut node = self.host.node();
                if options.fault == Fault::Block {
                    // The kernel takes no whole response of a slow reader.
                    node.send_buffer = 16 << 10;
                }
                let mut driver = world.driver_with("product", node);
                if let Ok(listener) = world.listen(self.listen, 65_535, false) {
                    let _ = driver.listen(listener);
                }
                let node = driver.node();
                let task: Box<dyn Task<SimDriver>> = match options.fault {
                    Fault::Relay(fault) => Box::new(Relay::new(options.origins[0].clone(), fault)),
                    _ => Box::new(Product::new(options.clone(), Arc::clone(&self.spent))),
                };
                (vec![world.add_task(driver, task)], vec![node])
            }
            Service::Store(protocol, faults) => {
                let responses = ResponseOptions { faults: faults.clone(), ..ResponseOptions::default() };
                let options = Options { listen: self.listen, protocol: *protocol, responses, ..Options::default() };
                let store = SimOrigin::start(world, options, self.host.node());
                store.map_or_else(|_| Default::default(), |store| (store.tasks, store.nodes))
            }
        };
        if let Some(Entry { work: Work::Product { tasks, nodes, .. }, .. }) =
            self.host.realm.entries().get_mut(&self.pid)
        {
            *tasks = began;
            nodes.extend(numbers);
        }
    }
}

impl Process for SimProcess {
    fn root(&self) -> u32 {
        self.0.pid
    }

    fn wait(&mut self, within: Duration) -> Option<Ended> {
        let realm = &self.0.host.realm;
        let ended = || realm.entries().get(&self.0.pid).is_none_or(|entry| entry.ended);
        realm.wait(within, ended).then_some(Ended::LOST)
    }

    /// Lets a proxy take the change of its route that its file has, if it was told one.
    fn signal(&mut self, _signal: Signal) -> io::Result<()> {
        let (realm, folder) = (&self.0.host.realm, self.0.folder.clone());
        let number = route(&folder).number.map(u64::from);
        let (Service::Proxy(options), Some(number)) = (&self.0.service, number) else { return Ok(()) };
        let (mut after, mut drops) = (0, 0);
        match options.fault {
            Fault::Reload(ms) => after = ms * 1_000_000,
            Fault::ReloadDrop(count) => drops = count,
            Fault::ReloadDie(at) if number == at => realm.kill(self.0.pid),
            Fault::ReloadIgnore(from) if number >= from => return Ok(()),
            _ => {}
        }
        let shared = Arc::clone(&options.route);
        realm.world.at(realm.world.now() + after, move |_| *locked(&shared) = Route { drops, ..route(&folder) });
        Ok(())
    }

    fn disturb(&mut self, what: Disturbance, at: Option<At>) -> io::Result<()> {
        let world = &self.0.host.realm.world;
        let due = at.map_or(world.now(), |at| self.0.host.world_time(at)).max(world.now());
        let own = self.0.clone();
        world.at(due, move |world| {
            let now = At { mono_ns: world.now() + super::BOOTED + own.host.offset, unix_ns: world.unix_now() };
            let tasks = own.host.realm.entries().get(&own.pid).map(Entry::tasks).unwrap_or_default();
            match what {
                Disturbance::Kill => tasks.into_iter().for_each(|task| world.kill(task)),
                Disturbance::Start => own.begin(),
                Disturbance::Freeze => tasks.into_iter().for_each(|task| world.freeze(task, u64::MAX)),
                Disturbance::Thaw => tasks.into_iter().for_each(|task| world.freeze(task, 0)),
                Disturbance::FillDisk | Disturbance::FreeDisk => {}
            }
            locked(&own.disturbed).push((what, now));
        });
        Ok(())
    }

    fn disturbed(&mut self) -> Vec<(Disturbance, At)> {
        locked(&self.0.disturbed).clone()
    }

    fn stop(self: Box<Self>, _grace: Duration) -> Ended {
        let gone = self.0.host.realm.entries().get(&self.0.pid).is_none_or(|entry| entry.ended);
        if gone { Ended::LOST } else { Ended { code: Some(0), signal: None, forced: false, left_over: 0, lost: false } }
    }
}
