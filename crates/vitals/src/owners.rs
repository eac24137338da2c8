//! Who used the roles' CPUs in a window: put together from samples of the roles, of all other processes, and of the CPUs.
//!
//! [`crate::watch`] calls it. It does not judge.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use weir_model::owners::{CpuUse, Holder, Owners, RoleCpus, RoleProcess, Strays};
use weir_model::record::Role;

use crate::account::TICK_NS;
use crate::file::Reader;
use crate::holders;
use crate::others::Others;
use crate::parse::host::CpuTicks;
use crate::parse::process::children;
use crate::source::Source;
use crate::task::StrayThreads;
use crate::tree::Watched;
use crate::watch::Served;
use crate::window::{Moment, cpus_of, role_sample, roles};

/// What is of no role.
#[derive(Debug)]
pub(crate) struct Outsiders {
    /// `None` where the roles have no CPUs of their own, or processes cannot be listed.
    others: Option<Others>,
    /// Roots of roles that are watched by another.
    elsewhere: Vec<u32>,
    /// How the product's connections are known.
    served: Option<Served>,
}

impl Outsiders {
    /// Begins to look.
    pub fn open(watched: &[Watched], elsewhere: Vec<u32>, served: Option<Served>) -> Outsiders {
        let cpus: BTreeSet<u32> = watched.iter().flat_map(|watched| watched.cpus.iter().copied()).collect();
        let others = if cpus.is_empty() { None } else { Others::open(cpus.into_iter().collect()).ok() };
        Outsiders { others, elsewhere, served }
    }

    /// Before a window: it reads files of all processes. Returns who holds the product's connections.
    pub fn prepare(&mut self, trees: &[Source], reader: &mut Reader) -> Vec<Holder> {
        let own = self.own(trees);
        if let Some(others) = &mut self.others {
            others.prepare(&own, reader);
        }
        self.holders(reader)
    }

    /// As [`Outsiders::sample`], of a window that begins now.
    pub fn begin(&mut self, trees: &[Source], reader: &mut Reader) -> Option<BTreeMap<u32, u64>> {
        let own = self.own(trees);
        let others = self.others.as_mut()?;
        others.begin(&own, reader);
        Some(others.by_cpu())
    }

    /// What was used of each of the roles' CPUs since the window's begin, ns. The trees were sampled just before.
    pub fn sample(&mut self, trees: &[Source], reader: &mut Reader) -> Option<BTreeMap<u32, u64>> {
        let own = self.own(trees);
        Some(self.others.as_mut()?.sample(&own, reader))
    }

    /// How many processes there were at the last sample, those of the roles among them; `None` where they are not listed.
    pub fn processes(&self) -> Option<u64> {
        self.others.as_ref().and_then(Others::alive)
    }

    /// After a window: it reads files of all processes. Returns who held the product's connections, then or before.
    pub fn finish(&mut self, before: Vec<Holder>, reader: &mut Reader) -> Vec<Holder> {
        let holders = holders::joined(before, self.holders(reader));
        if let Some(others) = &mut self.others {
            others.finish(reader);
        }
        holders
    }

    /// The account of a window that is over; `None` where the roles have no CPUs of their own.
    pub fn account(
        &self,
        watched: &[Watched],
        trees: &[Source],
        ticks: [&BTreeMap<u32, CpuTicks>; 2],
        last: &Moment,
        holders: Vec<Holder>,
        length_s: f64,
    ) -> Option<Owners> {
        let others = self.others.as_ref()?;
        let strays = watched.iter().zip(trees);
        let strays: Vec<_> =
            strays.filter_map(|(watched, source)| Some((watched.role, source.tree()?.strays().clone()))).collect();
        let account = account(watched, ticks, Some(&others.by_cpu()), last, &strays, length_s);
        let used = |pid| others.used_ns(pid).map(|ns| ns as f64 / 1e9 / length_s);
        let holders = holders.into_iter().map(|holder| Holder { used: used(holder.pid), ..holder }).collect();
        Some(Owners { others: others.busiest(length_s), holders, ..account })
    }

    /// The processes of roles: those that were sampled last, and those that are watched by another.
    fn own(&self, trees: &[Source]) -> HashSet<u32> {
        let mut own: HashSet<u32> = trees.iter().filter_map(Source::tree).flat_map(|tree| tree.pids()).collect();
        self.elsewhere.iter().for_each(|root| add_tree(*root, &mut own));
        own
    }

    fn holders(&self, reader: &mut Reader) -> Vec<Holder> {
        let (Some(served), Some(others)) = (&self.served, &self.others) else { return Vec::new() };
        holders::holders(served, others.pids(), reader)
    }
}

/// A process with all its descendants.
fn add_tree(root: u32, to: &mut HashSet<u32>) {
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        if !to.insert(pid) {
            continue;
        }
        // What has ended has no children.
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let text = |task: std::fs::DirEntry| std::fs::read(task.path().join("children")).unwrap_or_default();
        left.extend(tasks.flat_map(|task| children(&text(task)).collect::<Vec<u32>>()));
    }
}

/// So many processes of a role are listed.
const LISTED: usize = 8;

/// Adds each role's busiest thread, whether it was stopped, and its processes that used most in the window. It reads files of each: do
/// it after a window.
pub(crate) fn add_processes(
    to: &mut Owners,
    watched: &[Watched],
    trees: &[Source],
    reader: &mut Reader,
    length_s: f64,
) {
    for role in &mut to.roles {
        let own = watched.iter().zip(trees).filter(|(watched, _)| watched.role == role.role);
        let own: Vec<_> = own.filter_map(|(_, source)| source.tree()).collect();
        let busiest_ns = own.iter().map(|tree| tree.busiest_ns()).max();
        // Some kernels say nothing of threads.
        role.busiest_thread = busiest_ns.filter(|ns| *ns > 0 && length_s > 0.0).map(|ns| ns as f64 / 1e9 / length_s);
        role.stopped = own.iter().map(|tree| tree.stopped()).fold(0.0, f64::max);
        let mut all: Vec<RoleProcess> = own.iter().flat_map(|tree| tree.list(reader, length_s)).collect();
        all.sort_by(|a, b| b.used.total_cmp(&a.used));
        all.truncate(LISTED);
        role.processes = all;
    }
}

/// Who used the roles' CPUs, without the names of others: from their ticks at begin and end, what others had used, what the
/// roles used, how long these waited (ns), and what strayed.
fn account(
    watched: &[Watched],
    ticks: [&BTreeMap<u32, CpuTicks>; 2],
    others: Option<&BTreeMap<u32, u64>>,
    last: &Moment,
    strays: &[(Role, StrayThreads)],
    length_s: f64,
) -> Owners {
    let share = |ns: u64| if length_s > 0.0 { ns as f64 / 1e9 / length_s } else { 0.0 };
    let cpus: BTreeSet<u32> = watched.iter().flat_map(|watched| watched.cpus.iter().copied()).collect();
    let cpu = |cpu: u32| {
        let both = ticks[0].get(&cpu).zip(ticks[1].get(&cpu));
        let state = |of: fn(&CpuTicks) -> u64| {
            both.map(|(from, to)| share(of(to).saturating_sub(of(from)).saturating_mul(TICK_NS)))
        };
        let idle = state(|it| it.idle + it.iowait).map(|idle| idle.min(1.0));
        CpuUse {
            cpu,
            processes: state(|it| it.user + it.system),
            user: state(|it| it.user.saturating_sub(it.nice)),
            nice: state(|it| it.nice),
            irq: state(|it| it.irq),
            softirq: state(|it| it.softirq),
            steal: state(|it| it.steal),
            idle,
            iowait: state(|it| it.iowait),
            // A process that moves may be taken to have been here alone: nobody had more than there was.
            others: others.and_then(|others| others.get(&cpu)).map(|ns| share(*ns).min(1.0 - idle.unwrap_or(0.0))),
        }
    };
    let role = |role: Role| {
        let sample = role_sample(role, watched, last);
        let of_role: Vec<&StrayThreads> = strays.iter().filter(|(of, _)| *of == role).map(|(_, it)| it).collect();
        RoleCpus {
            role,
            cpus: cpus_of(role, watched),
            used: share(sample.cpu_ns),
            run_delay: sample.delay_ns.map(share),
            busiest_thread: None,
            stopped: 0.0,
            strays: joined(&of_role).map(|all| Strays {
                threads: all.threads.len() as u32,
                name: all.name,
                may_use: all.may_use.into_iter().collect(),
                used: share(all.ran_ns),
                outside: all.outside_ns.into_iter().map(|(cpu, ns)| (cpu, share(ns))).collect(),
            }),
            processes: Vec::new(),
        }
    };
    Owners {
        cpus: cpus.into_iter().map(cpu).collect(),
        roles: roles(watched).into_iter().map(role).collect(),
        ..Owners::default()
    }
}

/// Those of several trees; `None` where there are none.
fn joined(trees: &[&StrayThreads]) -> Option<StrayThreads> {
    let mut all = StrayThreads::default();
    for tree in trees.iter().filter(|tree| !tree.threads.is_empty()) {
        if all.threads.is_empty() {
            all.name.clone_from(&tree.name);
        }
        all.threads.extend(&tree.threads);
        all.may_use.extend(&tree.may_use);
        all.ran_ns += tree.ran_ns;
        tree.outside_ns.iter().for_each(|(cpu, ns)| *all.outside_ns.entry(*cpu).or_default() += ns);
    }
    (!all.threads.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostSample;
    use crate::tree::TreeSample;

    const MS: u64 = 1_000_000;

    #[test]
    fn each_cpu_of_a_role_has_owners() {
        let tree = |role, cpus| Watched { cpus, ..Watched::below(role, 1) };
        let watched = [tree(Role::Proxy, vec![1, 2]), tree(Role::Client, vec![0])];
        let proxy = TreeSample { cpu_ns: 1200 * MS, delay_ns: Some(300 * MS), ..TreeSample::default() };
        let last = Moment {
            at_ns: 0,
            unix_ms: 0,
            trees: vec![proxy, TreeSample::default()],
            host: HostSample::default(),
            others: None,
        };
        let others = BTreeMap::from([(0, 100 * MS), (1, 0), (2, 900 * MS)]);
        let ticks =
            |user, idle| CpuTicks { user, idle, nice: user / 5, softirq: idle, iowait: idle, ..CpuTicks::default() };
        let (from, to) = ([(2, ticks(5, 0))].into(), [(2, ticks(155, 25))].into());
        let stray = StrayThreads {
            threads: [7].into(),
            ran_ns: 600 * MS,
            may_use: [0].into(),
            outside_ns: [(0, 400 * MS)].into(),
            ..StrayThreads::default()
        };
        let strays = [(Role::Proxy, stray), (Role::Client, StrayThreads::default())];
        let account = account(&watched, [&from, &to], Some(&others), &last, &strays, 2.0);
        let seen: Vec<_> = account.cpus.iter().map(|cpu| (cpu.cpu, cpu.others)).collect();
        assert_eq!(seen, [(0, Some(0.05)), (1, Some(0.0)), (2, Some(0.45))]);
        let [none, _, cpu] = &account.cpus[..] else { panic!("{account:?}") };
        assert_eq!((cpu.processes, cpu.idle, none.idle), (Some(0.75), Some(0.25), None));
        assert_eq!((cpu.user, cpu.nice, cpu.softirq, cpu.iowait), (Some(0.6), Some(0.15), Some(0.125), Some(0.125)));
        let [proxy, client] = &account.roles[..] else { panic!("{account:?}") };
        assert_eq!((proxy.used, proxy.run_delay, &proxy.cpus[..]), (0.6, Some(0.15), &[1, 2][..]));
        let strays = proxy.strays.as_ref().expect("one");
        assert_eq!((strays.threads, strays.used, strays.outside[&0], client.strays.is_none()), (1, 0.3, 0.2, true));
    }
}
