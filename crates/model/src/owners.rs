//! Who used the CPUs of the roles in a window. Vitals measure it, the lab records it, the audit judges it.
//!
//! Use of CPU is in CPUs: 0.3 is 30 % of one over the window. What could not be read is `None`, and never 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::Role;

/// Of one machine, the CPUs that its roles were given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Owners {
    /// The first of its hosts.
    pub host: String,
    /// Each CPU of the roles, ascending.
    pub cpus: Vec<CpuUse>,
    /// The roles on it.
    pub roles: Vec<RoleCpus>,
    /// Roles of another load that was measured at the same time, in turns with this one.
    pub beside: Vec<RoleCpus>,
    /// Other processes that used these CPUs, the busiest first; few.
    pub others: Vec<OtherProcess>,
    /// Who held the product's connections, as far as somebody else did.
    pub holders: Vec<Holder>,
    /// Control groups that limit the CPU time of roles' processes.
    pub quotas: Vec<CpuQuota>,
}

/// A control group with a limit of CPU time that holds for processes of roles: their own group, or one above it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuQuota {
    /// Its folder below `/sys/fs/cgroup`, such as `/system.slice/docker-1.scope`; `/` is the outermost one that is seen.
    pub group: String,
    /// The roles whose processes it holds.
    pub roles: Vec<Role>,
    /// CPUs that it allows in the mean; `None`: there was no limit any more when the window ended.
    pub cpus: Option<f64>,
    /// Periods of the window in which its processes had used their time up and had to wait.
    pub throttled_periods: u64,
    /// The time for which its CPUs were withheld in the window, seconds; of several CPUs the sum.
    pub throttled_s: f64,
}

/// One CPU, by the kernel's ticks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Its number.
    pub cpu: u32,
    /// Processes, the roles' among them.
    pub processes: Option<f64>,
    /// The part of it in user mode, niced processes left out.
    pub user: Option<f64>,
    /// The part of it that niced processes were in user mode.
    pub nice: Option<f64>,
    /// Hard and soft interrupts. Some kernels charge them to the process that they interrupt, too.
    pub irq: Option<f64>,
    /// The part of it that is soft ones.
    pub softirq: Option<f64>,
    /// Taken by the hypervisor.
    pub steal: Option<f64>,
    /// Nobody.
    pub idle: Option<f64>,
    /// The part of it with I/O outstanding.
    pub iowait: Option<f64>,
    /// Processes that are no role's, by their own clocks.
    pub others: Option<f64>,
}

/// A role's part in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleCpus {
    /// Which.
    pub role: Role,
    /// Its CPUs, ascending; empty: it was given none of its own.
    pub cpus: Vec<u32>,
    /// What it used, on whatever CPU.
    pub used: f64,
    /// How many of its threads waited for a CPU, in the mean.
    pub run_delay: Option<f64>,
    /// The CPU that its busiest thread used; `None` where threads cannot be seen.
    pub busiest_thread: Option<f64>,
    /// Share of the samples in which a process of it was stopped (state T).
    pub stopped: f64,
    /// Its threads that might run on other CPUs and did run.
    pub strays: Option<Strays>,
    /// Its processes at the window's end, the busiest first; few. Empty where they cannot be seen.
    pub processes: Vec<RoleProcess>,
}

/// A process of a role, as the kernel showed it when the window had ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleProcess {
    /// As the kernel names it.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// What it used in the window, on whatever CPU.
    pub used: f64,
    /// CPU time since it began, seconds.
    pub cpu_s: f64,
    /// The kernel's priority.
    pub priority: i64,
    /// Its niceness.
    pub nice: i64,
    /// Address space, bytes.
    pub virtual_bytes: u64,
    /// Resident set, bytes.
    pub resident_bytes: u64,
    /// The part of it that files and shared memory back, bytes.
    pub shared_bytes: u64,
}

/// Threads of a role that might run on CPUs which are not its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Strays {
    /// How many.
    pub threads: u32,
    /// The name of one.
    pub name: String,
    /// The other CPUs on which they might run, ascending.
    pub may_use: Vec<u32>,
    /// What they used, on whatever CPU.
    pub used: f64,
    /// What they used on others' CPUs, by CPU: each second's is taken to be of the CPU on which the thread was last.
    pub outside: BTreeMap<u32, f64>,
}

/// A process that is no role's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// As the kernel names it.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// It is a thread of the kernel's own.
    pub kernel: bool,
    /// What it used of each of the roles' CPUs.
    pub used: BTreeMap<u32, f64>,
    /// The most that it used of them from one look to the next, a second later, in seconds of CPU.
    pub peak: f64,
    /// The part of it that was children's which had ended: they have no name any more.
    pub ended_children: Option<f64>,
}

/// A process outside of the product's tree that held connections of its clients, or to its origins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// As the kernel names it.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// How many of the connections that were looked at.
    pub connections: u32,
    /// How many were looked at.
    pub of: u32,
    /// CPUs that it used in the window, wherever it ran; `None` where not known.
    pub used: Option<f64>,
}

impl Owners {
    /// The roles on its CPUs, with those of a load that was measured at the same time.
    pub fn all_roles(&self) -> impl Iterator<Item = &RoleCpus> {
        self.roles.iter().chain(&self.beside)
    }
}

impl OtherProcess {
    /// What it used of these CPUs.
    pub fn on(&self, cpus: &[u32]) -> f64 {
        cpus.iter().filter_map(|cpu| self.used.get(cpu)).sum()
    }
}

impl Owners {
    /// One account of two hosts on one machine.
    pub fn join(&mut self, other: Owners) {
        for cpu in other.cpus {
            match self.cpus.iter_mut().find(|own| own.cpu == cpu.cpu) {
                // Both looked at the same CPU: what one could not see, the other may have.
                Some(own) => own.others = own.others.or(cpu.others),
                None => self.cpus.push(cpu),
            }
        }
        self.cpus.sort_by_key(|cpu| cpu.cpu);
        self.roles.extend(other.roles);
        self.beside.extend(other.beside);
        for process in other.others {
            match self.others.iter_mut().find(|own| (own.pid, &own.name) == (process.pid, &process.name)) {
                Some(own) => own.used.extend(process.used),
                None => self.others.push(process),
            }
        }
        self.holders.extend(other.holders);
        for quota in other.quotas {
            // Both read one counter, each over its own window.
            match self.quotas.iter_mut().find(|own| own.group == quota.group) {
                Some(own) => own.roles.extend(quota.roles),
                None => self.quotas.push(quota),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_machine_have_one_account() {
        let cpu = |cpu, others| CpuUse { cpu, others, ..CpuUse::default() };
        let used = |cpu, used| BTreeMap::from([(cpu, used)]);
        let other = |cpu| OtherProcess {
            name: "cc".into(),
            pid: 7,
            kernel: false,
            used: used(cpu, 0.5),
            peak: 0.5,
            ended_children: None,
        };
        let mut one = Owners { cpus: vec![cpu(1, Some(0.5))], others: vec![other(1)], ..Owners::default() };
        one.join(Owners { cpus: vec![cpu(0, Some(0.5)), cpu(1, None)], others: vec![other(0)], ..Owners::default() });
        assert_eq!(one.cpus, [cpu(0, Some(0.5)), cpu(1, Some(0.5))]);
        assert_eq!((one.others.len(), one.others[0].on(&[0]), one.others[0].on(&[0, 1])), (1, 0.5, 1.0));
    }
}
