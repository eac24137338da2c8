//! From looks to rows and totals. Pure.

use weir_model::record::{ResourceSecond, RoleUsage};

use crate::account::split;
use crate::host::HostLook;
use crate::tree::{TreeLook, Watched};

/// What one measured window used.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// One entry a role, in the order in which they were given to the watch.
    pub usage: Vec<RoleUsage>,
    /// One row a second for every role and for the host. Only the window's last rows may be shorter than a second
    /// (down to 0.2 s; less is added to the row before).
    pub series: Vec<ResourceSecond>,
    /// Length, seconds.
    pub length_s: f64,
    /// CPU time that watching took within the window, us.
    pub own_cpu_us: u64,
}

/// Everything as seen at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    /// Nanoseconds on a monotonic clock.
    pub at_ns: u64,
    /// Unix time, ms.
    pub unix_ms: u64,
    /// In the order of the watched.
    pub trees: Vec<TreeLook>,
    pub host: HostLook,
}

/// A last row shorter than this is added to the one before: the host's CPU comes in ticks of 10 ms, and a row of a
/// few ticks says nothing.
const SHORTEST_ROW_NS: u64 = 200_000_000;

/// Totals and rows of a window, from the moments of its begin, of each second, and of its end.
pub(crate) fn window(watched: &[Watched], mut moments: Vec<Moment>, own_cpu_us: u64) -> Window {
    drop_short_last(&mut moments);
    let (Some(first), Some(last)) = (moments.first(), moments.last()) else {
        return Window { usage: Vec::new(), series: Vec::new(), length_s: 0.0, own_cpu_us };
    };
    let length_s = seconds(first, last);
    let usage = (watched.iter().enumerate())
        .map(|(index, watched)| role_usage(watched, moments.iter().map(|m| &m.trees[index]), length_s))
        .collect();
    let series = moments.windows(2).flat_map(|pair| rows(watched, &pair[0], &pair[1])).collect();
    Window { usage, series, length_s, own_cpu_us }
}

fn drop_short_last(moments: &mut Vec<Moment>) {
    if let [_, .., before, last] = moments.as_mut_slice()
        && last.at_ns.saturating_sub(before.at_ns) < SHORTEST_ROW_NS
    {
        for (last, before) in last.trees.iter_mut().zip(&before.trees) {
            last.pss_bytes = last.pss_bytes.max(before.pss_bytes);
        }
        moments.remove(moments.len() - 2);
    }
}

fn seconds(from: &Moment, to: &Moment) -> f64 {
    to.at_ns.saturating_sub(from.at_ns) as f64 / 1e9
}

fn role_usage<'l>(watched: &Watched, looks: impl Iterator<Item = &'l TreeLook>, length_s: f64) -> RoleUsage {
    let mut most = TreeLook { descriptors: None, ..TreeLook::default() };
    let mut last = TreeLook::default();
    for look in looks {
        most.rss_bytes = most.rss_bytes.max(look.rss_bytes);
        most.pss_bytes = most.pss_bytes.max(look.pss_bytes);
        most.threads = most.threads.max(look.threads);
        most.processes = most.processes.max(look.processes);
        most.descriptors = most.descriptors.max(look.descriptors);
        last = *look;
    }
    let cpu_us = last.cpu_ns / 1000;
    let (cpu_user_us, cpu_system_us) = split(cpu_us, last.ticks.0, last.ticks.1);
    RoleUsage {
        role: watched.role,
        cpu_user_us,
        cpu_system_us,
        cores_busy: if length_s > 0.0 { cpu_us as f64 / 1e6 / length_s } else { 0.0 },
        rss_max_bytes: most.rss_bytes,
        pss_max_bytes: most.pss_bytes,
        threads_max: most.threads,
        processes_max: most.processes,
        fds_max: most.descriptors,
        switches: last.switches,
    }
}

/// The rows of one interval: roles as watched, then the host.
fn rows(watched: &[Watched], from: &Moment, to: &Moment) -> Vec<ResourceSecond> {
    let length_s = seconds(from, to);
    let row = |who: &str| ResourceSecond { time_ms: to.unix_ms, length_s, who: who.into(), ..Default::default() };
    let trees = from.trees.iter().zip(&to.trees);
    let mut rows: Vec<ResourceSecond> = (watched.iter().zip(trees))
        .map(|(watched, (from, to))| tree_row(row(watched.role.as_str()), from, to))
        .collect();
    rows.push(host_row(row("host"), &from.host, &to.host));
    rows
}

fn tree_row(row: ResourceSecond, from: &TreeLook, to: &TreeLook) -> ResourceSecond {
    let cores = to.cpu_ns.saturating_sub(from.cpu_ns) as f64 / 1e9 / row.length_s;
    let (user, system) = (to.ticks.0.saturating_sub(from.ticks.0), to.ticks.1.saturating_sub(from.ticks.1));
    // Within one second a process may get a tick or none; then the proportion so far is the better one.
    let (user, system) = if user + system < 2 { to.ticks } else { (user, system) };
    let share = if user + system == 0 { 0.0 } else { system as f64 / (user + system) as f64 };
    ResourceSecond {
        cpu_user: Some(cores * (1.0 - share)),
        cpu_system: Some(cores * share),
        rss_bytes: Some(to.rss_bytes),
        pss_bytes: to.pss_bytes,
        threads: Some(to.threads),
        processes: Some(to.processes),
        fds: to.descriptors,
        switches_voluntary: Some(to.switches.0.saturating_sub(from.switches.0)),
        switches_involuntary: Some(to.switches.1.saturating_sub(from.switches.1)),
        ..row
    }
}

/// Difference of a counter that both looks have.
fn grown(from: Option<u64>, to: Option<u64>) -> Option<u64> {
    Some(to?.saturating_sub(from?))
}

fn host_row(row: ResourceSecond, from: &HostLook, to: &HostLook) -> ResourceSecond {
    let ticks_a_core = row.length_s * 100.0;
    let cores = |of: fn(&crate::parse::host::CpuTicks) -> u64| {
        grown(from.cpu.as_ref().map(of), to.cpu.as_ref().map(of)).map(|ticks| ticks as f64 / ticks_a_core)
    };
    // The kernel adds up a stall when it ends or at its own pace, so that a row may get a little more than its own.
    let stalled =
        |kind: usize| grown(from.pressure[kind], to.pressure[kind]).map(|us| (us as f64 / 1e6 / row.length_s).min(1.0));
    let net = |of: fn(&(u64, u64)) -> u64| grown(from.net.as_ref().map(of), to.net.as_ref().map(of));
    ResourceSecond {
        cpu_user: cores(|c| c.user),
        cpu_system: cores(|c| c.system),
        cpu_idle: cores(|c| c.idle),
        cpu_iowait: cores(|c| c.iowait),
        cpu_irq: cores(|c| c.irq),
        cpu_steal: cores(|c| c.steal),
        rss_bytes: to.memory_used,
        psi_cpu: stalled(0),
        psi_memory: stalled(1),
        psi_io: stalled(2),
        tcp_established: to.established,
        tcp_time_wait: to.time_wait,
        tcp_retransmits: grown(from.retransmits, to.retransmits),
        listen_overflows: grown(from.listen_drops, to.listen_drops),
        net_in_bytes: net(|n| n.0),
        net_out_bytes: net(|n| n.1),
        ..row
    }
}
