//! Turns samples into rows and totals. [`crate::watch`] calls it when a window ends. It is pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weir_model::owners::Owners;
use weir_model::record::{ResourceSecond, Role, RoleUsage};

use crate::account::split;
use crate::host::HostSample;
use crate::tree::{TreeSample, Watched};

/// What was used in one measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// One entry per role, in the order in which they were given to the watch.
    pub usage: Vec<RoleUsage>,
    /// One row a second for every role and for the host. Only the window's last rows may be shorter than a second
    /// (down to 0.2 s; less is added to the row before).
    pub series: Vec<ResourceSecond>,
    /// Who used the roles' CPUs, of each machine.
    pub owners: Vec<Owners>,
    /// Length, seconds.
    pub length_s: f64,
    /// CPU time that watching took within the window, µs.
    pub own_cpu_us: u64,
    /// By how much the first or the last sample came too late, whichever was later, seconds. What was used before the first is not
    /// known, and what was used after the window is in the last.
    pub late_s: f64,
}

/// All samples of one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    /// Nanoseconds on a monotonic clock.
    pub at_ns: u64,
    /// Unix time, ms.
    pub unix_ms: u64,
    /// In the order of the watched trees.
    pub trees: Vec<TreeSample>,
    pub host: HostSample,
    /// What processes of no role had used of each of the roles' CPUs since the window's begin, ns; `None` where they cannot be seen.
    pub others: Option<BTreeMap<u32, u64>>,
}

/// A last row shorter than this is added to the one before: the host's CPU comes in ticks of 10 ms, and a row of a
/// few ticks is meaningless.
const SHORTEST_ROW_NS: u64 = 200_000_000;

/// Totals and rows of a window, from the moments of its begin, of each second, and of its end.
pub(crate) fn window(watched: &[Watched], mut moments: Vec<Moment>, own_cpu_us: u64) -> Window {
    drop_short_last(&mut moments);
    let (Some(first), Some(last)) = (moments.first(), moments.last()) else {
        return Window { own_cpu_us, ..Window::default() };
    };
    let length_s = seconds(first, last);
    let usage = roles(watched).into_iter().map(|role| role_usage(role, watched, &moments, length_s)).collect();
    let series = moments.windows(2).flat_map(|pair| rows(watched, &pair[0], &pair[1])).collect();
    Window { usage, series, length_s, own_cpu_us, ..Window::default() }
}

/// The CPUs of a role: those of all its trees.
pub(crate) fn cpus_of(role: Role, watched: &[Watched]) -> Vec<u32> {
    let trees = watched.iter().filter(|watched| watched.role == role);
    trees.flat_map(|watched| watched.cpus.iter().copied()).collect::<BTreeSet<u32>>().into_iter().collect()
}

fn drop_short_last(moments: &mut Vec<Moment>) {
    if let [_, .., before, last] = moments.as_mut_slice()
        && last.at_ns.saturating_sub(before.at_ns) < SHORTEST_ROW_NS
    {
        for (last, before) in last.trees.iter_mut().zip(&before.trees) {
            last.pss_bytes = last.pss_bytes.max(before.pss_bytes);
            last.peak_bytes = last.peak_bytes.max(before.peak_bytes);
        }
        moments.remove(moments.len() - 2);
    }
}

fn seconds(from: &Moment, to: &Moment) -> f64 {
    to.at_ns.saturating_sub(from.at_ns) as f64 / 1e9
}

/// The roles that are watched, in the order of their first trees.
pub(crate) fn roles(watched: &[Watched]) -> Vec<Role> {
    let mut roles = Vec::new();
    for Watched { role, .. } in watched {
        if !roles.contains(role) {
            roles.push(*role);
        }
    }
    roles
}

/// The trees of a role together.
pub(crate) fn role_sample(role: Role, watched: &[Watched], moment: &Moment) -> TreeSample {
    let trees = watched.iter().zip(&moment.trees).filter(|(watched, _)| watched.role == role).map(|(_, tree)| *tree);
    trees.reduce(|sum, tree| sum.plus(&tree)).unwrap_or_default()
}

/// What a role used, and what each of its parts used, if it has parts.
fn role_usage(role: Role, watched: &[Watched], moments: &[Moment], length_s: f64) -> RoleUsage {
    let samples = moments.iter().map(|moment| role_sample(role, watched, moment));
    let parts =
        watched.iter().enumerate().filter(|(_, watched)| watched.role == role).filter_map(|(index, watched)| {
            let of_part = usage(role, moments.iter().map(|moment| moment.trees[index]), length_s);
            Some((watched.part.clone()?, of_part))
        });
    RoleUsage { parts: parts.collect(), ..usage(role, samples, length_s) }
}

fn usage(role: Role, samples: impl Iterator<Item = TreeSample>, length_s: f64) -> RoleUsage {
    let mut most = TreeSample { descriptors: None, ..TreeSample::default() };
    let mut last = TreeSample::default();
    // The resident set when the proportional one was largest.
    let mut rss_then = 0;
    for sample in samples {
        most.rss_bytes = most.rss_bytes.max(sample.rss_bytes).max(sample.peak_bytes.unwrap_or(0));
        if sample.pss_bytes > most.pss_bytes {
            (most.pss_bytes, rss_then) = (sample.pss_bytes, sample.rss_bytes);
        }
        most.threads = most.threads.max(sample.threads);
        most.processes = most.processes.max(sample.processes);
        most.descriptors = most.descriptors.max(sample.descriptors);
        last = sample;
    }
    let cpu_us = last.cpu_ns / 1000;
    let (cpu_user_us, cpu_system_us) = split(cpu_us, last.ticks.0, last.ticks.1);
    RoleUsage {
        role,
        cpu_user_us,
        cpu_system_us,
        cores_busy: if length_s > 0.0 { cpu_us as f64 / 1e6 / length_s } else { 0.0 },
        rss_max_bytes: most.rss_bytes,
        // It is read seldom. What came and went between belongs to one process, nearly always.
        pss_max_bytes: most.pss_bytes.map(|pss| pss + most.rss_bytes.saturating_sub(rss_then)),
        disk_read_bytes: last.disk.map(|disk| disk.read),
        disk_written_bytes: last.disk.map(|disk| disk.written),
        threads_max: most.threads,
        processes_max: most.processes,
        fds_max: most.descriptors,
        switches: last.switches,
        parts: BTreeMap::new(),
    }
}

/// The rows of one interval: roles as watched, each followed by its parts, then the host.
fn rows(watched: &[Watched], from: &Moment, to: &Moment) -> Vec<ResourceSecond> {
    let length_s = seconds(from, to);
    let row = |who: String| ResourceSecond { time_ms: to.unix_ms, length_s, who, ..Default::default() };
    let mut rows = Vec::new();
    for role in roles(watched) {
        let who = role.as_str().to_owned();
        let of_role = tree_row(row(who), &role_sample(role, watched, from), &role_sample(role, watched, to));
        rows.push(ResourceSecond { cpu_others: others(&cpus_of(role, watched), from, to), ..of_role });
        for (index, watched) in watched.iter().enumerate().filter(|(_, watched)| watched.role == role) {
            if let Some(part) = &watched.part {
                let of_part = row(ResourceSecond::who_of_part(role, part));
                rows.push(tree_row(of_part, &from.trees[index], &to.trees[index]));
            }
        }
    }
    rows.push(host_row(row("host".to_owned()), &from.host, &to.host));
    rows
}

/// What processes of no role used of these CPUs in an interval, in CPUs.
fn others(cpus: &[u32], from: &Moment, to: &Moment) -> Option<f64> {
    let sum = |moment: &Moment| {
        let others = moment.others.as_ref().filter(|_| !cpus.is_empty())?;
        Some(cpus.iter().filter_map(|cpu| others.get(cpu)).sum::<u64>())
    };
    grown(sum(from), sum(to)).map(|ns| ns as f64 / 1e9 / seconds(from, to))
}

fn tree_row(row: ResourceSecond, from: &TreeSample, to: &TreeSample) -> ResourceSecond {
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
        threads: to.threads,
        processes: to.processes,
        fds: to.descriptors,
        connections_open: to.connections,
        switches_voluntary: grown(from.switches.map(|it| it.0), to.switches.map(|it| it.0)),
        switches_involuntary: grown(from.switches.map(|it| it.1), to.switches.map(|it| it.1)),
        run_delay: grown(from.delay_ns, to.delay_ns).map(|ns| ns as f64 / 1e9 / row.length_s),
        ..row
    }
}

/// Difference of a counter that both samples have.
fn grown(from: Option<u64>, to: Option<u64>) -> Option<u64> {
    Some(to?.saturating_sub(from?))
}

fn host_row(row: ResourceSecond, from: &HostSample, to: &HostSample) -> ResourceSecond {
    let ticks_a_core = row.length_s * 100.0;
    let cores = |of: fn(&crate::parse::host::CpuTicks) -> u64| {
        grown(from.cpu.as_ref().map(of), to.cpu.as_ref().map(of)).map(|ticks| ticks as f64 / ticks_a_core)
    };
    // The kernel adds up a stall when it ends or at its own pace, so that a row may get a little more than its own.
    let stalled =
        |kind: usize| grown(from.pressure[kind], to.pressure[kind]).map(|us| (us as f64 / 1e6 / row.length_s).min(1.0));
    let net = |of: fn(&(u64, u64)) -> u64| grown(from.net.as_ref().map(of), to.net.as_ref().map(of));
    let average = |over: usize| to.load.map(|load| load.hundredths[over] as f64 / 100.0);
    ResourceSecond {
        cpu_user: cores(|c| c.user),
        cpu_system: cores(|c| c.system),
        cpu_idle: cores(|c| c.idle),
        cpu_iowait: cores(|c| c.iowait),
        cpu_irq: cores(|c| c.irq),
        cpu_steal: cores(|c| c.steal),
        rss_bytes: to.memory_used,
        threads: to.load.map(|load| load.threads),
        processes: to.processes,
        threads_running: to.load.map(|load| load.running),
        load_1m: average(0),
        load_5m: average(1),
        load_15m: average(2),
        memory_free_bytes: to.memory.map(|memory| memory.free),
        memory_cache_bytes: to.memory.map(|memory| memory.cache),
        swap_total_bytes: to.memory.map(|memory| memory.swap_total),
        swap_free_bytes: to.memory.map(|memory| memory.swap_free),
        psi_cpu: stalled(0),
        psi_memory: stalled(1),
        psi_io: stalled(2),
        tcp_established: to.established,
        tcp_time_wait: to.time_wait,
        tcp_retransmits: grown(from.retransmits, to.retransmits),
        listen_overflows: grown(from.listen_drops, to.listen_drops),
        net_in_bytes: net(|n| n.0),
        net_out_bytes: net(|n| n.1),
        tcp_segments_sent: grown(from.segments_sent, to.segments_sent),
        net_drops: grown(from.net_drops, to.net_drops),
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::host::{CpuTicks, LoadAverage, Memory};
    use crate::tree::What;

    const PROXY: Watched =
        Watched { role: Role::Proxy, part: None, cpus: Vec::new(), what: What::Tree { root: 1, include_root: false } };
    const MS: u64 = 1_000_000;

    fn moment(at_ms: u64, tree: TreeSample, host: HostSample) -> Moment {
        Moment { at_ns: at_ms * MS, unix_ms: 1_000_000 + at_ms, trees: vec![tree], host, others: None }
    }

    fn tree(cpu_ms: u64, user: u64, system: u64) -> TreeSample {
        TreeSample { cpu_ns: cpu_ms * MS, ticks: (user, system), ..TreeSample::default() }
    }

    #[test]
    fn totals_and_rows_of_two_seconds() {
        let first = TreeSample { rss_bytes: 50, threads: Some(2), descriptors: Some(9), ..tree(0, 0, 0) };
        let second = TreeSample { rss_bytes: 90, pss_bytes: Some(70), switches: Some((5, 1)), ..tree(500, 30, 20) };
        let third = TreeSample { rss_bytes: 60, switches: Some((25, 2)), processes: Some(3), ..tree(1500, 105, 45) };
        let host = HostSample::default();
        let moments = vec![moment(0, first, host), moment(1000, second, host), moment(3000, third, host)];
        let window = window(&[PROXY], moments, 7);
        assert_eq!((window.length_s, window.own_cpu_us), (3.0, 7));
        let usage = &window.usage[0];
        assert_eq!((usage.cpu_user_us, usage.cpu_system_us, usage.cores_busy), (1_050_000, 450_000, 0.5));
        assert_eq!((usage.rss_max_bytes, usage.pss_max_bytes, usage.fds_max), (90, Some(70), Some(9)));
        assert_eq!((usage.threads_max, usage.processes_max, usage.switches), (Some(2), Some(3), Some((25, 2))));
        let rows: Vec<&ResourceSecond> = window.series.iter().filter(|row| row.who == "proxy").collect();
        assert_eq!((rows.len(), window.series.len()), (2, 4));
        assert_eq!((rows[0].cpu_user, rows[0].cpu_system, rows[0].time_ms), (Some(0.3), Some(0.2), 1_001_000));
        // 1 s of CPU in a row of 2 s, three quarters of it user.
        assert_eq!((rows[1].length_s, rows[1].cpu_user, rows[1].cpu_system), (2.0, Some(0.375), Some(0.125)));
        assert_eq!((rows[1].switches_voluntary, rows[1].switches_involuntary), (Some(20), Some(1)));
        assert_eq!((rows[0].pss_bytes, rows[1].pss_bytes, rows[1].fds), (Some(70), None, None));
        assert_eq!(rows[1].cpu_steal, None);
    }

    #[test]
    fn parts_are_counted_by_themselves_and_summed_for_their_role() {
        let part = |name: &str| Watched { part: Some(name.to_owned()), ..PROXY };
        let watched = [part("store"), Watched { role: Role::Origin, ..PROXY }, part("front")];
        let at = |at_ms, trees: [TreeSample; 3]| Moment {
            trees: trees.to_vec(),
            ..moment(at_ms, tree(0, 0, 0), HostSample::default())
        };
        let memory = |rss_bytes, tree| TreeSample { rss_bytes, threads: Some(2), pss_bytes: Some(rss_bytes), ..tree };
        let moments = vec![
            at(0, [memory(50, tree(0, 0, 0)), tree(0, 0, 0), memory(10, tree(0, 0, 0))]),
            at(1000, [memory(20, tree(300, 3, 1)), tree(100, 1, 0), memory(30, tree(200, 1, 1))]),
        ];
        let window = window(&watched, moments, 0);
        let names: Vec<&str> = window.series.iter().map(|row| row.who.as_str()).collect();
        assert_eq!(names, ["proxy", "proxy/store", "proxy/front", "origin", "host"]);
        let cpu: Vec<f64> = window.series.iter().filter_map(|row| Some(row.cpu_user? + row.cpu_system?)).collect();
        assert_eq!(cpu, [0.5, 0.3, 0.2, 0.1]);
        let [proxy, origin] = &window.usage[..] else { panic!("{:?}", window.usage) };
        assert_eq!(
            (proxy.role, proxy.cpu_user_us + proxy.cpu_system_us, proxy.threads_max),
            (Role::Proxy, 500_000, Some(4))
        );
        // The most at one time, which is less than the sum of what each had at most.
        assert_eq!((proxy.rss_max_bytes, proxy.pss_max_bytes), (60, Some(60)));
        assert_eq!(proxy.parts.keys().collect::<Vec<_>>(), ["front", "store"]);
        assert_eq!((proxy.parts["store"].rss_max_bytes, proxy.parts["front"].rss_max_bytes), (50, 30));
        assert!(origin.parts.is_empty());
    }

    #[test]
    fn rows_say_what_others_used_of_a_roles_cpus() {
        let watched = [Watched { cpus: vec![1, 2], ..PROXY }, Watched { role: Role::Client, cpus: vec![0], ..PROXY }];
        let at = |at_ms, cpu_ms, others: &[(u32, u64)]| {
            let tree = TreeSample { delay_ns: Some(cpu_ms * MS / 4), ..tree(cpu_ms, 0, 0) };
            let others = others.iter().map(|(cpu, ms)| (*cpu, ms * MS)).collect();
            Moment {
                trees: vec![tree, TreeSample::default()],
                others: Some(others),
                ..moment(at_ms, tree, HostSample::default())
            }
        };
        let last = at(2000, 1200, &[(0, 100), (1, 0), (2, 900)]);
        let moments = vec![at(0, 0, &[(0, 0), (1, 0), (2, 0)]), at(1000, 400, &[(0, 100), (1, 0), (2, 300)]), last];
        let rows = window(&watched, moments, 0).series;
        let others: Vec<_> = rows.iter().map(|row| (row.who.as_str(), row.cpu_others, row.run_delay)).collect();
        let host = ("host", None, None);
        let first = [("proxy", Some(0.3), Some(0.1)), ("client", Some(0.1), None), host];
        assert_eq!(others, [first, [("proxy", Some(0.6), Some(0.2)), ("client", Some(0.0), None), host]].concat());
    }

    #[test]
    fn a_last_row_of_a_few_ticks_is_added_to_the_one_before() {
        let host = HostSample::default();
        let with_pss = TreeSample { pss_bytes: Some(4), connections: Some(8), ..tree(300, 1, 1) };
        let moments = vec![
            moment(0, tree(0, 0, 0), host),
            moment(1000, tree(100, 1, 0), host),
            moment(2000, with_pss, host),
            moment(2199, TreeSample { connections: Some(6), ..tree(400, 1, 1) }, host),
        ];
        let joined = window(&[PROXY], moments.clone(), 0);
        let lengths: Vec<f64> = joined.series.iter().filter(|r| r.who == "host").map(|r| r.length_s).collect();
        assert_eq!(lengths, [1.0, 1.199]);
        let open: Vec<_> = joined.series.iter().map(|row| (row.who.as_str(), row.connections_open)).collect();
        assert_eq!(
            open,
            [("proxy", None), ("host", None), ("proxy", Some(6)), ("host", None)],
            "those at the row's end"
        );
        assert_eq!(joined.usage[0].pss_max_bytes, Some(4));
        assert_eq!(joined.usage[0].cpu_user_us + joined.usage[0].cpu_system_us, 400_000);
        // Two moments alone make a row, however short.
        let short = window(&[PROXY], vec![moments[2].clone(), moments[3].clone()], 0);
        assert_eq!(short.series.len(), 2);
    }

    #[test]
    fn host_rows_are_differences_and_levels() {
        let cpu = |user, idle, steal| Some(CpuTicks { user, idle, steal, ..CpuTicks::default() });
        let from = HostSample {
            cpu: cpu(100, 500, 0),
            pressure: [Some(1_000_000), None, Some(0)],
            established: Some(9),
            retransmits: Some(3),
            listen_drops: Some(10),
            net: Some((100, 200)),
            segments_sent: Some(50),
            net_drops: Some(2),
            ..HostSample::default()
        };
        let to = HostSample {
            cpu: cpu(150, 640, 10),
            pressure: [Some(1_250_000), None, Some(3_000_000)],
            memory_used: Some(77),
            memory: Some(Memory { free: 1, cache: 2, swap_total: 4, swap_free: 3 }),
            load: Some(LoadAverage { hundredths: [171, 83, 51], running: 3, threads: 245 }),
            processes: Some(130),
            established: Some(64),
            time_wait: Some(2),
            retransmits: Some(3),
            listen_drops: Some(14),
            net: Some((1100, 1200)),
            segments_sent: Some(90),
            net_drops: Some(2),
        };
        let window = window(
            &[],
            vec![
                Moment { trees: vec![], ..moment(0, tree(0, 0, 0), from) },
                Moment { trees: vec![], ..moment(1000, tree(0, 0, 0), to) },
            ],
            0,
        );
        let row = &window.series[0];
        assert_eq!(
            (row.cpu_user, row.cpu_idle, row.cpu_steal, row.cpu_irq),
            (Some(0.5), Some(1.4), Some(0.1), Some(0.0))
        );
        assert_eq!((row.psi_cpu, row.psi_memory, row.psi_io), (Some(0.25), None, Some(1.0)));
        assert_eq!((row.rss_bytes, row.tcp_established, row.tcp_time_wait), (Some(77), Some(64), Some(2)));
        assert_eq!((row.tcp_retransmits, row.listen_overflows), (Some(0), Some(4)));
        assert_eq!((row.net_in_bytes, row.net_out_bytes), (Some(1000), Some(1000)));
        assert_eq!((row.tcp_segments_sent, row.net_drops), (Some(40), Some(0)));
        assert_eq!((row.load_1m, row.load_5m, row.load_15m), (Some(1.71), Some(0.83), Some(0.51)));
        assert_eq!((row.processes, row.threads, row.threads_running), (Some(130), Some(245), Some(3)));
        assert_eq!((row.memory_free_bytes, row.memory_cache_bytes), (Some(1), Some(2)));
        assert_eq!((row.swap_total_bytes, row.swap_free_bytes), (Some(4), Some(3)));
    }
}
