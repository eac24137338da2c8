//! Who else uses the machine: the hypervisor's other guests, and other processes.

use std::collections::HashMap;
use std::time::Duration;

use procfs::process::all_processes;

use super::{Check, judge};
use crate::parse::host::{CpuTicks, cpu_ticks};
use crate::sys::{online_cpus, text};

/// How long to watch. CPU time comes in ticks of 10 ms, so half a second of one CPU has fifty: enough for a share of 5 %.
const LOOK: Duration = Duration::from_millis(500);

pub(super) fn checks() -> Vec<Check> {
    let (ticks, processes) = (read_ticks(), process_times());
    std::thread::sleep(LOOK);
    let steal = ticks.zip(read_ticks()).and_then(|(before, after)| steal_share(before, after));
    let others = busiest(&processes, &process_times());
    vec![
        judge_steal(steal),
        judge_others(&others),
        judge_load(load_average(), online_cpus().map(|cpus| cpus.len())),
        judge_pressure("cpu", pressure("cpu")),
        judge_pressure("memory", pressure("memory")),
        judge_pressure("io", pressure("io")),
    ]
}

fn read_ticks() -> Option<CpuTicks> {
    cpu_ticks(&std::fs::read("/proc/stat").ok()?)
}

/// Stolen time as a share of all time.
pub(super) fn steal_share(before: CpuTicks, after: CpuTicks) -> Option<f64> {
    let all = |t: CpuTicks| t.user + t.system + t.idle + t.iowait + t.irq + t.steal;
    let passed = all(after).checked_sub(all(before)).filter(|&ticks| ticks > 0)?;
    Some(after.steal.saturating_sub(before.steal) as f64 / passed as f64)
}

pub(super) fn judge_steal(share: Option<f64>) -> Check {
    judge("steal", share.map(|share| (share, format!("{:.1} % in the last half second", share * 100.0))))
}

/// Name and CPU ticks by process number; this process is not among them.
fn process_times() -> HashMap<i32, (String, u64)> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let Ok(all) = all_processes() else { return HashMap::new() };
    let stats = all.filter_map(|process| process.ok()?.stat().ok()).filter(|stat| stat.pid != own);
    stats.map(|stat| (stat.pid, (stat.comm, stat.utime + stat.stime))).collect()
}

/// The three that used most, with cores used; those below 1 % of a CPU are left out.
fn busiest(before: &HashMap<i32, (String, u64)>, after: &HashMap<i32, (String, u64)>) -> Vec<(String, f64)> {
    let used = |(pid, (name, ticks)): (&i32, &(String, u64))| {
        let earlier = before.get(pid).map_or(0, |(_, ticks)| *ticks);
        (name.clone(), ticks.saturating_sub(earlier) as f64 / 100.0 / LOOK.as_secs_f64())
    };
    let mut all: Vec<(String, f64)> = after.iter().map(used).filter(|(_, cores)| *cores >= 0.01).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.truncate(3);
    all
}

pub(super) fn judge_others(busiest: &[(String, f64)]) -> Check {
    let total: f64 = busiest.iter().map(|(_, cores)| cores).sum();
    let list: Vec<String> = busiest.iter().map(|(name, cores)| format!("{name} {:.0} %", cores * 100.0)).collect();
    let seen = if list.is_empty() { "nothing else runs".to_owned() } else { format!("{} of a CPU", list.join(", ")) };
    judge("other-processes", Some((total, seen)))
}

fn load_average() -> Option<f64> {
    text("/proc/loadavg")?.split(' ').next()?.parse().ok()
}

pub(super) fn judge_load(one_minute: Option<f64>, cpus: Option<usize>) -> Check {
    let value = one_minute.zip(cpus).map(|(load, cpus)| {
        let seen = format!("{load:.2} over the last minute on {cpus} CPUs");
        (load / cpus as f64, seen)
    });
    judge("load-average", value)
}

/// `avg10` of the line `some`.
fn pressure(kind: &str) -> Option<f64> {
    let text = text(format!("/proc/pressure/{kind}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split(' ').find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

pub(super) fn judge_pressure(kind: &str, avg10: Option<f64>) -> Check {
    let value = avg10.map(|percent| (percent, format!("tasks waited in {percent:.1} % of the last 10 seconds")));
    judge(&format!("pressure-{kind}"), value)
}
