//! How many CPUs, and how evenly they run.

use super::Check;
use crate::sys::{cpu_list, online_cpus, text};

pub(super) fn checks() -> Vec<Check> {
    let cpus = online_cpus();
    vec![
        judge_count(cpus.as_ref().map(Vec::len)),
        judge_governor(&governors(cpus.as_deref().unwrap_or_default())),
        judge_boost(boost()),
        judge_siblings(siblings(cpus.as_deref().unwrap_or_default()), cpus.as_ref().map_or(0, Vec::len)),
    ]
}

/// Client, proxy and origin need a CPU each to stay out of each other's way.
pub(super) fn judge_count(cpus: Option<usize>) -> Check {
    let name = "cpus";
    match cpus {
        None => {
            Check::unknown(name, "the kernel does not list its CPUs", "Roles cannot be placed on CPUs of their own.")
        }
        Some(1) => Check::bad(
            name,
            "1 CPU",
            "Client, proxy and origin share it: what is measured is how the scheduler divides it.",
        ),
        Some(2) => Check::warn(
            name,
            "2 CPUs",
            "Client and origin share one, so that a fast product may be limited by them. Three or more give each role \
             its own.",
        ),
        Some(n) => Check::ok(name, format!("{n} CPUs"), "Each role can have its own."),
    }
}

fn governors(cpus: &[u32]) -> Vec<String> {
    let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    cpus.iter().filter_map(|cpu| text(path(cpu))).collect()
}

/// Any governor but `performance` lowers the clock while a CPU is partly idle, and so makes light load look slow.
pub(super) fn judge_governor(governors: &[String]) -> Check {
    let name = "cpu-governor";
    let mut others: Vec<&str> = governors.iter().map(String::as_str).filter(|g| *g != "performance").collect();
    others.sort_unstable();
    others.dedup();
    if governors.is_empty() {
        return Check::unknown(
            name,
            "the kernel shows no frequency scaling",
            "In a virtual machine the host decides, and the clock may change unseen.",
        );
    }
    if others.is_empty() {
        return Check::ok(name, "performance", "The clock does not follow the load.");
    }
    let why = "The clock follows the load: latency at light load looks worse than it is.";
    Check::warn(name, others.join(", "), why).mend("cpupower frequency-set -g performance")
}

fn boost() -> Option<bool> {
    let amd = text("/sys/devices/system/cpu/cpufreq/boost").map(|value| value == "1");
    amd.or_else(|| text("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|value| value == "0"))
}

/// Noted only: turning it off makes a machine steadier and slower, and unlike those that products run on.
pub(super) fn judge_boost(on: Option<bool>) -> Check {
    let name = "cpu-boost";
    match on {
        None => Check::unknown(name, "the kernel does not say", "The clock may depend on how many CPUs are busy."),
        Some(true) => Check::ok(
            name,
            "on",
            "Noted: the clock depends on how many CPUs are busy and how warm they are. Blocks in random order even it out.",
        ),
        Some(false) => Check::ok(name, "off", "The clock does not depend on other CPUs."),
    }
}

/// CPUs of the first core that has several; empty when no core has.
fn siblings(cpus: &[u32]) -> Option<Vec<u32>> {
    let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let lists: Vec<Vec<u32>> = cpus.iter().filter_map(|cpu| cpu_list(path(cpu))).collect();
    (!lists.is_empty()).then(|| lists.into_iter().find(|list| list.len() > 1).unwrap_or_default())
}

/// Two threads of one core share its units; together they do perhaps 1.2 to 1.3 times the work of one.
pub(super) fn judge_siblings(shared: Option<Vec<u32>>, cpus: usize) -> Check {
    let name = "cpu-siblings";
    match shared.as_deref() {
        None => Check::unknown(name, "the kernel does not say", "Two CPUs may be one core."),
        Some([]) => Check::ok(name, "each CPU is a core", "Roles do not share a core's units."),
        Some(list) => {
            let list = list.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let why = "They share the units of one core, so that a role on one of them slows a role on the other.";
            let check = Check::warn(name, format!("CPUs {list} are one core"), why);
            // Half of the CPUs go. Where fewer than one a role would be left, the cure is worse.
            if cpus >= 6 { check.mend("echo off > /sys/devices/system/cpu/smt/control") } else { check }
        }
    }
}
