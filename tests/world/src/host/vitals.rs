//! What is read of the processes of a host of the world: the CPU time that events and requests cost, memory, connections. It is sampled
//! as the real vitals are: at a window's begin, each second, and at its end. Of several parts on one host nothing is summed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, Weak};

use weir_host::Sampler;
use weir_model::At;
use weir_model::owners::{CpuQuota, CpuUse, Holder, OtherProcess, Owners, RoleCpus, Strays};
use weir_model::record::{ResourceSecond, Role, RoleUsage};
use weir_net::sim::World;
use weir_vitals::{Plan, Watched, Window};

use super::{Realm, SimHost, locked};
use crate::product::Spent;

const SECOND: u64 = 1_000_000_000;

/// A shorter row is added to the one before.
const LEAST_ROW: u64 = 200_000_000;

/// A process that is no role's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The CPU that it uses.
    pub cpu: u32,
    /// How much of it.
    pub share: f64,
    /// From when until when, nanoseconds of the world.
    pub from: u64,
    /// See `from`.
    pub to: u64,
}

impl Neighbour {
    /// CPU time that it uses in a span of the world, nanoseconds.
    fn used(&self, from: u64, to: u64) -> f64 {
        self.to.min(to).saturating_sub(self.from.max(from)) as f64 * self.share
    }
}

/// What was sampled at one moment.
#[derive(Debug, Clone)]
struct Sample {
    /// By the world's time.
    at: u64,
    unix_ms: u64,
    /// By tree.
    spent: Vec<Spent>,
    /// How often a quota has stopped each, and for how long.
    throttled: Vec<(u64, u64)>,
    connections: Vec<Option<u64>>,
}

#[derive(Debug, Default)]
struct State {
    samples: Vec<Sample>,
    /// The window's end, if it is planned.
    to: Option<u64>,
    /// How late a sample was at most, nanoseconds.
    late: u64,
    open: bool,
}

/// What watches a host.
#[derive(Debug)]
struct SimSampler {
    host: SimHost,
    trees: Vec<Watched>,
    counted: Vec<(Role, u32)>,
    state: Arc<Mutex<State>>,
}

/// Watches processes of a host.
pub(super) fn watch(host: &SimHost, plan: Plan, counted: Vec<(Role, u32)>) -> io::Result<Box<dyn Sampler>> {
    let entries = host.realm.entries();
    let lives = |tree: &Watched| tree.root().is_some_and(|pid| entries.get(&pid).is_some_and(|entry| !entry.ended));
    if host.is_lost() || !plan.trees.iter().all(lives) {
        return Err(io::Error::other("a process that is to be watched has ended"));
    }
    drop(entries);
    Ok(Box::new(SimSampler { host: host.clone(), trees: plan.trees, counted, state: Arc::default() }))
}

impl SimSampler {
    fn sample(&self) -> Sample {
        take_sample(&self.host.realm, &self.trees, &self.counted)
    }
}

fn take_sample(realm: &Realm, trees: &[Watched], counted: &[(Role, u32)]) -> Sample {
    let entries = realm.entries();
    let entry = |tree: &Watched| tree.root().and_then(|pid| entries.get(&pid));
    let is_counted = |tree: &Watched| counted.iter().any(|(_, pid)| tree.root() == Some(*pid));
    Sample {
        at: realm.world.now(),
        unix_ms: realm.world.unix_now() / 1_000_000,
        spent: trees.iter().map(|tree| entry(tree).map(|entry| entry.spent(realm)).unwrap_or_default()).collect(),
        throttled: trees.iter().map(|tree| entry(tree).map(|entry| entry.throttled).unwrap_or_default()).collect(),
        connections: trees
            .iter()
            .map(|tree| entry(tree).filter(|_| is_counted(tree)).and_then(|entry| entry.connections()))
            .collect(),
    }
}

/// Plans the sample of a moment, and of the seconds after it.
fn plan_sample(
    world: &World,
    due: u64,
    at: u64,
    realm: Weak<Realm>,
    trees: Vec<Watched>,
    counted: Vec<(Role, u32)>,
    state: Arc<Mutex<State>>,
) {
    world.at(at, move |world| {
        let Some(alive) = realm.upgrade() else { return };
        let frozen_until = *locked(&alive.samplers_frozen_until);
        if frozen_until > world.now() {
            return plan_sample(world, due, frozen_until, realm, trees, counted, state);
        }
        let sample = take_sample(&alive, &trees, &counted);
        let mut now = locked(&state);
        if !now.open {
            return;
        }
        now.late = now.late.max(sample.at - due);
        now.samples.push(sample);
        let next = match now.to {
            Some(to) if due >= to => return,
            Some(to) if due + SECOND + LEAST_ROW > to => to,
            _ => due + SECOND,
        };
        drop(now);
        plan_sample(world, next, next, realm, trees, counted, state);
    });
}

impl Sampler for SimSampler {
    fn begin_window(&self, from: At, to: Option<At>) -> io::Result<()> {
        let world = &self.host.realm.world;
        let from = self.host.world_time(from).max(world.now());
        let to = to.map(|to| self.host.world_time(to));
        *locked(&self.state) = State { to, open: true, ..State::default() };
        let realm = Arc::downgrade(&self.host.realm);
        plan_sample(world, from, from, realm, self.trees.clone(), self.counted.clone(), Arc::clone(&self.state));
        Ok(())
    }

    fn end_window(&self) -> io::Result<Window> {
        let realm = &self.host.realm;
        if self.host.is_lost() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // The window's last sample may be due at this instant.
        let to = locked(&self.state).to;
        if to == Some(realm.world.now()) {
            let last = || locked(&self.state).samples.last().is_some_and(|sample| Some(sample.at) == to);
            realm.world.run_until(realm.world.now(), last);
        }
        let end = self.sample();
        let mut state = locked(&self.state);
        if !std::mem::take(&mut state.open) {
            return Err(io::Error::other("no window is open"));
        }
        if state.to.is_none_or(|to| end.at < to) || state.samples.len() < 2 {
            state.samples.push(end);
        }
        Ok(self.window(&state))
    }

    fn stop(self: Box<Self>) {}
}

impl SimSampler {
    fn window(&self, state: &State) -> Window {
        let (Some(first), Some(last)) = (state.samples.first(), state.samples.last()) else {
            return Window::default();
        };
        let length_s = seconds(last.at - first.at);
        let usage = self.trees.iter().enumerate().map(|(nth, tree)| usage(tree, nth, state, length_s)).collect();
        let series = state.samples.windows(2).flat_map(|pair| self.rows(&pair[0], &pair[1])).collect();
        let owners = vec![self.owners(first, last, &state.samples)];
        Window { usage, series, owners, length_s, own_cpu_us: 0, late_s: seconds(state.late) }
    }

    fn neighbours(&self) -> Vec<Neighbour> {
        locked(&self.host.realm.neighbours).clone()
    }

    fn rows(&self, from: &Sample, to: &Sample) -> Vec<ResourceSecond> {
        let length_s = seconds(to.at - from.at);
        let neighbours = self.neighbours();
        let mut rows: Vec<ResourceSecond> = (0..self.trees.len())
            .flat_map(|nth| {
                let cpu = seconds(to.spent[nth].cpu_ns - from.spent[nth].cpu_ns) / length_s;
                let on = |one: &&Neighbour| self.trees[nth].cpus.contains(&one.cpu);
                let others: f64 = neighbours.iter().filter(on).map(|one| one.used(from.at, to.at)).sum();
                let role = self.trees[nth].role.as_str();
                let of_role = ResourceSecond {
                    time_ms: to.unix_ms,
                    length_s,
                    who: role.to_owned(),
                    cpu_user: Some(cpu / 2.0),
                    cpu_system: Some(cpu / 2.0),
                    cpu_others: Some(others / 1e9 / length_s),
                    rss_bytes: Some(to.spent[nth].memory),
                    threads: Some(1),
                    processes: Some(1),
                    connections_open: to.connections[nth],
                    ..ResourceSecond::default()
                };
                let part = self.trees[nth].part.as_ref();
                let of_part = part.map(|part| {
                    let who = ResourceSecond::who_of_part(self.trees[nth].role, part);
                    ResourceSecond { who, ..of_role.clone() }
                });
                [of_role].into_iter().chain(of_part)
            })
            .collect();
        rows.push(ResourceSecond {
            time_ms: to.unix_ms,
            length_s,
            who: "host".to_owned(),
            cpu_steal: Some(0.0),
            tcp_retransmits: Some(0),
            listen_overflows: Some(0),
            ..ResourceSecond::default()
        });
        rows
    }

    /// The quota of a process that [`super::Realm::throttle`] has stopped: half of a CPU.
    fn quota(&self, nth: usize, first: &Sample, last: &Sample) -> Option<CpuQuota> {
        let ((before, since), (now, until)) = (first.throttled[nth], last.throttled[nth]);
        (now > 0).then(|| CpuQuota {
            group: "/limited".to_owned(),
            roles: vec![self.trees[nth].role],
            cpus: Some(0.5),
            throttled_periods: now - before,
            throttled_s: seconds(until - since),
        })
    }

    fn owners(&self, first: &Sample, last: &Sample, samples: &[Sample]) -> Owners {
        let length = (last.at - first.at).max(1) as f64;
        let neighbours = self.neighbours();
        let used = |nth: usize| (last.spent[nth].cpu_ns - first.spent[nth].cpu_ns) as f64 / length;
        let roles: Vec<RoleCpus> = self
            .trees
            .iter()
            .enumerate()
            .map(|(nth, tree)| RoleCpus {
                role: tree.role,
                cpus: tree.cpus.clone(),
                used: used(nth),
                run_delay: Some(0.0),
                busiest_thread: Some(used(nth) / tree.cpus.len().max(1) as f64),
                strays: strays(last.spent[nth], used(nth)),
                ..RoleCpus::default()
            })
            .collect();
        let others: Vec<OtherProcess> = (0u32..)
            .zip(&neighbours)
            .map(|(nth, one)| OtherProcess {
                name: "burner".to_owned(),
                pid: 90_000 + nth,
                kernel: false,
                used: BTreeMap::from([(one.cpu, one.used(first.at, last.at) / length)]),
                peak: peak(one, samples),
                ended_children: None,
            })
            .collect();
        let mut cpus: Vec<u32> = self.trees.iter().flat_map(|tree| tree.cpus.clone()).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let cpu_use = |cpu: u32| {
            let of_roles: f64 = roles
                .iter()
                .filter(|role| role.cpus.contains(&cpu))
                .map(|role| role.used / role.cpus.len() as f64)
                .sum();
            let of_others: f64 =
                neighbours.iter().filter(|one| one.cpu == cpu).map(|one| one.used(first.at, last.at) / length).sum();
            CpuUse {
                cpu,
                processes: Some(of_roles + of_others),
                irq: Some(0.0),
                steal: Some(0.0),
                idle: Some((1.0 - of_roles - of_others).max(0.0)),
                others: Some(of_others),
                ..CpuUse::default()
            }
        };
        let is_handed_over = last.spent.iter().any(|spent| spent.is_handed_over);
        let holder = Holder { name: "take-over".to_owned(), pid: 80_000, connections: 16, of: 16, used: None };
        let holders = is_handed_over.then_some(holder).into_iter().collect();
        let quotas = (0..self.trees.len()).filter_map(|nth| self.quota(nth, first, last)).collect();
        Owners { cpus: cpus.into_iter().map(cpu_use).collect(), roles, others, holders, quotas, ..Owners::default() }
    }
}

/// What a neighbour used at most in a second.
fn peak(one: &Neighbour, samples: &[Sample]) -> f64 {
    let share = |pair: &[Sample]| one.used(pair[0].at, pair[1].at) / (pair[1].at - pair[0].at).max(1) as f64;
    samples.windows(2).map(share).fold(0.0, f64::max)
}

/// Threads of a product that run on CPUs which are not its own.
fn strays(spent: Spent, used: f64) -> Option<Strays> {
    let may_use = spent.may_use?;
    let outside = spent.runs_on.map(|cpu| BTreeMap::from([(cpu, used)])).unwrap_or_default();
    Some(Strays { threads: 1, name: "product".to_owned(), may_use: vec![may_use], used, outside })
}

fn usage(tree: &Watched, nth: usize, state: &State, length_s: f64) -> RoleUsage {
    let (first, last) = (&state.samples[0].spent[nth], &state.samples[state.samples.len() - 1].spent[nth]);
    let us = (last.cpu_ns - first.cpu_ns) / 1_000;
    let usage = RoleUsage {
        role: tree.role,
        cpu_user_us: us / 2,
        cpu_system_us: us - us / 2,
        cores_busy: us as f64 / 1e6 / length_s,
        rss_max_bytes: state.samples.iter().map(|sample| sample.spent[nth].memory).max().unwrap_or_default(),
        pss_max_bytes: None,
        disk_read_bytes: Some(0),
        disk_written_bytes: Some(last.written - first.written),
        threads_max: Some(1),
        processes_max: Some(1),
        fds_max: None,
        switches: Some((0, 0)),
        parts: BTreeMap::new(),
    };
    let parts = tree.part.iter().map(|part| (part.clone(), usage.clone())).collect();
    RoleUsage { parts, ..usage }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND as f64
}
