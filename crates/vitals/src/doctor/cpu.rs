//! How many CPUs, and how evenly they run.

use super::{Check, judge, judge_word};
use crate::quota::own_limit;
use crate::sys::{cpu_list, online_cpus, text};

pub(super) fn checks() -> Vec<Check> {
    let cpus = online_cpus();
    vec![
        judge_count(cpus.as_ref().map(Vec::len)),
        judge_quota(own_limit(), cpus.as_ref().map_or(0, Vec::len)),
        judge_governor(&governors(cpus.as_deref().unwrap_or_default())),
        judge_boost(boost()),
        judge_siblings(siblings(cpus.as_deref().unwrap_or_default()), cpus.as_ref().map_or(0, Vec::len)),
    ]
}

pub(super) fn judge_count(cpus: Option<usize>) -> Check {
    judge("cpus", cpus.map(|n| (n as f64, format!("{n} CPU{}", if n == 1 { "" } else { "s" }))))
}

/// The tightest limit of CPU time: CPUs in the mean, and whose it is. One that allows all CPUs never stops anybody.
pub(super) fn judge_quota(limit: Option<(f64, String)>, cpus: usize) -> Check {
    let (share, seen) = match limit {
        Some((limit, group)) => {
            (limit / cpus.max(1) as f64, format!("the control group {group} allows {limit:.2} of {cpus} CPUs"))
        }
        None => (1.0, "no control group limits CPU time".to_owned()),
    };
    judge("cpu-quota", Some((share, seen)))
}

fn governors(cpus: &[u32]) -> Vec<String> {
    let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    cpus.iter().filter_map(|cpu| text(path(cpu))).collect()
}

pub(super) fn judge_governor(governors: &[String]) -> Check {
    let mut others: Vec<&str> = governors.iter().map(String::as_str).filter(|g| *g != "performance").collect();
    others.sort_unstable();
    others.dedup();
    let shown = if others.is_empty() { "performance".to_owned() } else { others.join(", ") };
    judge_word("cpu-governor", (!governors.is_empty()).then_some(shown.as_str()))
}

fn boost() -> Option<bool> {
    let amd = text("/sys/devices/system/cpu/cpufreq/boost").map(|value| value == "1");
    amd.or_else(|| text("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|value| value == "0"))
}

pub(super) fn judge_boost(on: Option<bool>) -> Check {
    judge_word("cpu-boost", on.map(|on| if on { "on" } else { "off" }))
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
