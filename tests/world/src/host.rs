//! A host of the world, on which the lab runs its trials: origins, clients and products are tasks, processes are numbers, and whoever
//! waits runs the world. Files are those of this machine.
//!
//! It does not know suites or trials.

mod network;
mod process;
mod vitals;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use weir_host::files::FileError;
use weir_host::ports::NoPort;
use weir_host::role::RoleError;
use weir_host::supervisor::StartError;
use weir_host::{Clock, Host, HostError, HostFacts, Process, ProgramSpec, RoleProcess, RoleSpec, Sampler, Storage};
use weir_lab::hosts::Reach;
use weir_model::At;
use weir_model::clock::ClockReading;
use weir_model::product::Product;
use weir_model::record::Role;
use weir_net::Address;
use weir_net::sim::{NodeOptions, World};
use weir_vitals::Plan;

pub use process::Entry;
pub use vitals::Neighbour;

/// The monotonic clock of the machine where weir runs is so far ahead of the world's.
const BOOTED: u64 = 1_000_000_000_000;

/// The CPU time of an event, a send or a connect, nanoseconds.
const CPU_PER_EVENT: u64 = 2_000;

/// The first port that hosts give out.
const FIRST_PORT: u16 = 10_000;

/// What all hosts of a run share: the world, its processes, and the machine where weir runs.
#[derive(Debug)]
pub struct Realm {
    /// The world.
    pub world: World,
    entries: Mutex<BTreeMap<u32, Entry>>,
    counters: Mutex<(u32, u16)>,
    storage: Arc<dyn Storage>,
    neighbours: Mutex<Vec<Neighbour>>,
    /// Samplers do nothing until then.
    samplers_frozen_until: Mutex<u64>,
    /// When loads started.
    load_starts: Mutex<Vec<u64>>,
}

impl Realm {
    /// A world without processes, whose run folder is written through `storage`.
    pub fn new(seed: u64, storage: Arc<dyn Storage>) -> Arc<Realm> {
        Arc::new(Realm {
            world: World::new(seed),
            entries: Mutex::default(),
            counters: Mutex::new((100, FIRST_PORT)),
            storage,
            neighbours: Mutex::default(),
            samplers_frozen_until: Mutex::new(0),
            load_starts: Mutex::default(),
        })
    }

    /// When the loads of this world started, in this order.
    pub fn load_starts(&self) -> Vec<u64> {
        locked(&self.load_starts).clone()
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u32, Entry>> {
        locked(&self.entries)
    }

    /// The processes with this name that have not ended.
    pub fn running(&self, name: &str) -> Vec<u32> {
        let entries = self.entries();
        entries.iter().filter(|(_, entry)| entry.name == name && !entry.ended).map(|(pid, _)| *pid).collect()
    }

    fn new_pid(&self) -> u32 {
        let mut counters = locked(&self.counters);
        counters.0 += 1;
        counters.0
    }

    fn new_port(&self) -> u16 {
        let mut counters = locked(&self.counters);
        counters.1 += 1;
        counters.1
    }

    fn add(&self, entry: Entry) -> u32 {
        let pid = self.new_pid();
        self.entries().insert(pid, entry);
        pid
    }

    /// Lets a process do nothing for so long from now on.
    pub fn freeze(&self, pid: u32, length: Duration) {
        let until = self.world.now() + length.as_nanos() as u64;
        if let Some(entry) = self.entries().get_mut(&pid) {
            entry.frozen_until = until;
            entry.tasks().into_iter().for_each(|task| self.world.freeze(task, until));
        }
    }

    /// A quota of CPU time stops a process for so long from now on.
    pub fn throttle(&self, pid: u32, length: Duration) {
        self.freeze(pid, length);
        if let Some(entry) = self.entries().get_mut(&pid) {
            entry.throttled = (entry.throttled.0 + 1, entry.throttled.1 + length.as_nanos() as u64);
        }
    }

    /// Ends a process as SIGKILL does.
    pub fn kill(&self, pid: u32) {
        let mut entries = self.entries();
        if let Some(entry) = entries.get_mut(&pid) {
            entry.ended = true;
            let tasks = entry.tasks();
            drop(entries);
            tasks.into_iter().for_each(|task| self.world.kill(task));
        }
    }

    /// Lets a process of no role use CPU.
    pub fn add_neighbour(&self, neighbour: Neighbour) {
        locked(&self.neighbours).push(neighbour);
    }

    /// Lets all samplers do nothing for so long from now on.
    pub fn freeze_samplers(&self, length: Duration) {
        *locked(&self.samplers_frozen_until) = self.world.now() + length.as_nanos() as u64;
    }

    /// Runs the world until `done`, for at most so long. Returns whether it is.
    fn wait(&self, within: Duration, done: impl FnMut() -> bool) -> bool {
        let until = self.world.now().saturating_add(within.as_nanos() as u64);
        self.world.run_until(until, done)
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clock of the machine where weir runs.
#[derive(Debug)]
struct RealmClock(Arc<Realm>);

impl Clock for RealmClock {
    fn now(&self) -> At {
        At { mono_ns: self.0.world.now() + BOOTED, unix_ns: self.0.world.unix_now() }
    }

    fn sleep(&self, time: Duration) {
        self.0.world.run_to(self.0.world.now() + time.as_nanos() as u64);
    }
}

/// A host.
#[derive(Debug, Clone)]
pub struct SimHost {
    realm: Arc<Realm>,
    facts: HostFacts,
    /// Its monotonic clock is so far ahead of that of the machine where weir runs.
    offset: u64,
    /// When it is lost, and why.
    lost: Arc<Mutex<Option<(u64, String)>>>,
}

impl SimHost {
    /// A machine with four CPUs.
    pub fn new(realm: &Arc<Realm>, name: &str, offset: u64) -> SimHost {
        let facts = HostFacts {
            name: name.to_owned(),
            machine: name.to_owned(),
            cpus: vec![0, 1, 2, 3],
            ..HostFacts::default()
        };
        SimHost { realm: Arc::clone(realm), facts, offset, lost: Arc::default() }
    }

    /// The same, found again after it was lost.
    pub fn restored(&self) -> SimHost {
        SimHost { lost: Arc::default(), ..self.clone() }
    }

    /// Loses it at a time of the world: its processes end, and nobody can speak to it.
    pub fn lose_at(&self, at: u64) {
        *locked(&self.lost) = Some((at, "the machine is gone".to_owned()));
        let (realm, name) = (Arc::downgrade(&self.realm), self.facts.name.clone());
        self.realm.world.at(at, move |_| {
            let Some(realm) = realm.upgrade() else { return };
            let own = |entry: &Entry| entry.host == name && !entry.ended;
            let pids: Vec<u32> = realm.entries().iter().filter(|(_, entry)| own(entry)).map(|(pid, _)| *pid).collect();
            pids.into_iter().for_each(|pid| realm.kill(pid));
        });
    }

    fn is_lost(&self) -> bool {
        self.lost().is_some()
    }

    fn node(&self) -> NodeOptions {
        NodeOptions { clock_offset: BOOTED + self.offset, cpu_per_event: CPU_PER_EVENT, ..NodeOptions::default() }
    }

    /// A time of the host's clock as one of the world's.
    fn world_time(&self, at: At) -> u64 {
        at.mono_ns.saturating_sub(BOOTED + self.offset)
    }
}

impl Host for SimHost {
    fn facts(&self) -> &HostFacts {
        &self.facts
    }

    fn lost(&self) -> Option<String> {
        let lost = locked(&self.lost);
        lost.as_ref().filter(|(at, _)| *at <= self.realm.world.now()).map(|(_, why)| why.clone())
    }

    fn local_clock(&self) -> Arc<dyn Clock> {
        Arc::new(RealmClock(Arc::clone(&self.realm)))
    }

    fn local_storage(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.realm.storage)
    }

    fn random(&self) -> u64 {
        self.realm.world.random(u64::MAX)
    }

    fn at(&self, here: At) -> At {
        At { mono_ns: here.mono_ns + self.offset, ..here }
    }

    fn read_clock(&self) -> Result<ClockReading, HostError> {
        if let Some(why) = self.lost() {
            return Err(HostError::Lost { host: self.facts.name.clone(), why });
        }
        Ok(ClockReading { offset_ns: self.offset as i64, error_ns: 0 })
    }

    fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Process>, StartError> {
        process::start_program(self, spec)
    }

    fn start_role(&self, spec: &RoleSpec) -> Result<Arc<dyn RoleProcess>, RoleError> {
        let failed = |error| RoleError::Start { role: spec.name.clone(), error };
        if self.is_lost() {
            return Err(failed(io::ErrorKind::NotConnected.into()));
        }
        process::start_role(self, spec).map_err(failed)
    }

    fn watch(&self, plan: Plan, counted: Vec<(Role, u32)>) -> io::Result<Box<dyn Sampler>> {
        vitals::watch(self, plan, counted)
    }

    fn descendants(&self, root: u32) -> Vec<u32> {
        vec![root]
    }

    fn owns_listener(&self, root: u32, addr: SocketAddr) -> Result<(), String> {
        let entries = self.realm.entries();
        let owns = entries.get(&root).is_some_and(|entry| !entry.ended && entry.listens == [addr]);
        if owns { Ok(()) } else { Err(format!("nobody that weir started listens on {addr}")) }
    }

    fn accepts(&self, addr: SocketAddr, within: Duration) -> bool {
        let address = Address::from(addr);
        self.realm.wait(within, || self.realm.world.is_listening(&address))
    }

    fn free_ports(&self, at: IpAddr, count: usize) -> Result<Vec<SocketAddr>, NoPort> {
        Ok((0..count).map(|_| SocketAddr::new(at, self.realm.new_port())).collect())
    }

    fn create_dir(&self, folder: &Path) -> Result<(), FileError> {
        fs::create_dir_all(folder).map_err(FileError::at(folder))
    }

    fn write(&self, path: &Path, bytes: &[u8], _private: bool) -> Result<(), FileError> {
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(FileError::at(path))?;
        fs::write(path, bytes).map_err(FileError::at(path))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        fs::read(path).map_err(FileError::at(path))
    }

    fn read_part(&self, path: &Path, from: u64, most: usize) -> Result<Vec<u8>, FileError> {
        let whole = self.read(path)?;
        Ok(whole.into_iter().skip(from as usize).take(most).collect())
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileError> {
        let entries = fs::read_dir(folder).map_err(FileError::at(folder))?;
        Ok(entries.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name()))).collect())
    }

    fn fetch(&self, _from: &Path, _to: &Path) -> Result<(), FileError> {
        // The disk is that of the machine where weir runs.
        Ok(())
    }

    fn remove(&self, path: &Path) {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }

    fn last_lines(&self, path: &Path, lines: usize) -> String {
        let text = fs::read_to_string(path).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    fn call(&self, name: &str, argument: Value, _progress: &mut dyn FnMut(Value)) -> Result<Value, HostError> {
        let address = argument.as_str().unwrap_or_default();
        match (name, address.parse()) {
            ("resolve", Ok(addr)) if self.accepts(addr, Duration::ZERO) => Ok(argument),
            ("resolve", _) => Err(HostError::Failed(format!("{address}: Connection refused"))),
            _ => Err(HostError::Failed(format!("a host of the world has no {name}"))),
        }
    }
}

/// Finds lost hosts again.
#[derive(Debug)]
pub struct SimReach(pub Vec<SimHost>);

impl Reach for SimReach {
    fn again(&mut self, name: &str) -> Result<Arc<dyn Host>, HostError> {
        let host = self.0.iter().find(|host| host.facts.name == name);
        let missing = || HostError::Failed(format!("there is no host {name}"));
        Ok(Arc::new(host.ok_or_else(missing)?.restored()))
    }

    fn for_product(&mut self, _name: &str, _product: &Product) -> Result<Option<Arc<dyn Host>>, HostError> {
        Ok(None)
    }
}
