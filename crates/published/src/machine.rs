//! Reads from a trial what `top` shows of the proxy's machine: load averages, processes, memory, and each CPU by state. `run_cases`
//! asks for it. What is a level is that of the window's end, and what is a share is over the window.

use weir_model::owners::{CpuUse, Owners};
use weir_model::record::{ResourceSecond, Role};
use weir_report::run::{Run, Trial};
use weir_report::series;

/// `who` of the rows of the proxy's machine.
const MACHINE: &str = "host";

/// A metric of the machine, in bytes, as a share or as a count; `None` for other metrics, and for what was not recorded.
pub(super) fn value(run: &Run, trial: &Trial, metric: &str) -> Option<f64> {
    if let Some((place, state)) = cpu_state(metric) {
        return share(nth_cpu(&trial.measurement.owners, place)?, state);
    }
    if metric == "memory-total" {
        return memory_bytes(run);
    }
    let is_sampled = ["load-", "tasks-", "memory-", "swap-"].iter().any(|group| metric.starts_with(group));
    if !is_sampled {
        return None;
    }
    let rows = series::resource_seconds(run, trial).ok()?;
    let host: Vec<&ResourceSecond> = rows.iter().filter(|row| row.who == MACHINE).collect();
    let last = *host.last()?;
    let total = || memory_bytes(run).map(|bytes| bytes as u64);
    let bytes = match metric {
        "load-1m" => return last.load_1m,
        "load-5m" => return last.load_5m,
        "load-15m" => return last.load_15m,
        "tasks-running" => return mean(host.iter().filter_map(|row| row.threads_running)),
        "tasks-total" => last.processes,
        "memory-free" => last.memory_free_bytes,
        "memory-cache" => last.memory_cache_bytes,
        // As top counts it: what is neither free nor a cache.
        "memory-used" => total()?.checked_sub(last.memory_free_bytes?)?.checked_sub(last.memory_cache_bytes?),
        "memory-avail" => total()?.checked_sub(last.rss_bytes?),
        "swap-total" => last.swap_total_bytes,
        "swap-free" => last.swap_free_bytes,
        "swap-used" => last.swap_total_bytes?.checked_sub(last.swap_free_bytes?),
        _ => None,
    };
    bytes.map(|bytes| bytes as f64)
}

/// Memory of the proxy's machine.
pub(super) fn memory_bytes(run: &Run) -> Option<f64> {
    run.environment.as_ref().map(|environment| environment.memory_bytes as f64).filter(|bytes| *bytes > 0.0)
}

/// Whether a metric is of one of the proxy's CPUs.
pub(super) fn is_of_cpu(metric: &str) -> bool {
    cpu_state(metric).is_some()
}

/// Of `cpu2-idle` the place of the CPU among those that the proxy was given, and the state.
fn cpu_state(metric: &str) -> Option<(usize, &str)> {
    let (place, state) = metric.strip_prefix("cpu")?.split_once('-')?;
    Some((place.parse().ok()?, state))
}

fn nth_cpu(owners: &[Owners], place: usize) -> Option<&CpuUse> {
    owners.iter().find_map(|owners| {
        let role = owners.roles.iter().find(|role| role.role == Role::Proxy)?;
        let cpu = role.cpus.get(place)?;
        owners.cpus.iter().find(|of| of.cpu == *cpu)
    })
}

fn share(cpu: &CpuUse, state: &str) -> Option<f64> {
    let share = match state {
        "user" => cpu.user?,
        "nice" => cpu.nice?,
        "system" => cpu.processes? - cpu.user? - cpu.nice?,
        "idle" => cpu.idle? - cpu.iowait?,
        "iowait" => cpu.iowait?,
        "irq" => cpu.irq? - cpu.softirq?,
        "softirq" => cpu.softirq?,
        "steal" => cpu.steal?,
        _ => return None,
    };
    // A difference of rounded shares may be a little below nothing.
    Some(share.max(0.0))
}

fn mean(values: impl Iterator<Item = u64>) -> Option<f64> {
    let values: Vec<u64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64 / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::owners::RoleCpus;

    #[test]
    fn states_are_those_of_the_cpus_that_the_proxy_was_given() {
        let all = |processes| CpuUse {
            processes: Some(processes),
            user: Some(0.2),
            nice: Some(0.1),
            idle: Some(0.3),
            iowait: Some(0.05),
            irq: Some(0.04),
            softirq: Some(0.03),
            steal: Some(0.01),
            ..CpuUse::default()
        };
        let cpus =
            vec![CpuUse { cpu: 3, ..all(0.5) }, CpuUse { cpu: 5, ..all(0.65) }, CpuUse { cpu: 6, ..CpuUse::default() }];
        let role = |role, cpus| RoleCpus { role, cpus, ..RoleCpus::default() };
        let roles = vec![role(Role::Client, vec![3]), role(Role::Proxy, vec![5, 6])];
        let owners = [Owners { cpus, roles, ..Owners::default() }];
        let of = |metric: &str| {
            let (place, state) = cpu_state(metric)?;
            share(nth_cpu(&owners, place)?, state).map(|share| (share * 100.0).round())
        };
        let states = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
        let seen = states.map(|state| of(&format!("cpu0-{state}")));
        assert_eq!(seen, [20.0, 10.0, 35.0, 25.0, 5.0, 1.0, 3.0, 1.0].map(Some));
        assert_eq!([of("cpu1-user"), of("cpu2-user"), of("cpu0-x"), of("cpu-time"), of("cpu")], [None; 5]);
        assert!(is_of_cpu("cpu3-idle") && !is_of_cpu("cpu-time"));
    }
}
