//! Closed loads that nothing which is known has limited.

use weir_model::owners::{Owners, RoleCpus};
use weir_model::record::{Finding, Role, Severity};
use weir_model::text::list;

use super::{Evidence, finding, percent, role_name};

/// Share of the time that has to be explained.
const EXPLAINED: f64 = 0.7;
/// Requests in flight.
const LEAST_IN_FLIGHT: f64 = 4.0;
/// Responses, so that ticks do not matter.
const LEAST_RESPONSES: u64 = 200;
/// How long a thread takes to wake, seconds.
const WAKING_S: f64 = 100e-6;
/// Some connection over loopback is made in less, seconds: most of it is waking up.
const LOOPBACK_S: f64 = 500e-6;
/// Share of errors beyond which other checks say what happened.
const ERRORS: f64 = 0.01;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let waits_s = e.waits_s.filter(|_| is_judged(e))?;
    let [machine] = e.owners else { return None };
    let busiest = busiest(e, machine)?;
    let open = if e.load.most_open == 0 { e.connections } else { e.load.most_open.min(e.connections) };
    let in_flight = f64::from(open) * f64::from(e.load.streams.max(1));
    if in_flight < LEAST_IN_FLIGHT {
        return None;
    }
    let used: f64 = machine.roles.iter().map(|role| role.used).sum();
    let waiting = e.load.rate * (waits_s + on_the_way_s(e) + connecting_s(e)) + waking(e);
    let explained = ((in_flight - 1.0) * busiest.share + used + waiting) / in_flight + disk_share(e);
    if explained >= EXPLAINED {
        return None;
    }
    let message = format!(
        "in {:.0} % of their time the {in_flight:.0} requests in flight waited for nothing that is known: {} was busy {:.0} % of the \
         window, and everything else less; {}",
        (1.0 - explained) * 100.0,
        busiest.name,
        busiest.share * 100.0,
        suspects(machine)
    );
    finding("no-bottleneck", Severity::Warning, message)
}

/// A closed load on one machine, without errors that explain more.
fn is_judged(e: &Evidence<'_>) -> bool {
    let l = e.load;
    let closed = l.offered_rate.is_none() && e.search.is_none() && l.bursts.is_none() && !l.cut_short;
    let fine = l.window.successful_in_window >= LEAST_RESPONSES
        && (l.window.error_count() as f64) < ERRORS * l.window.due as f64;
    let writes = e.role(Role::Proxy).and_then(|usage| usage.disk_written_bytes) != Some(0);
    // Switches that a kernel does not count may have been many.
    let switches = e.usage.iter().all(|usage| usage.switches.is_some());
    closed && fine && switches && e.hosts.len() < 2 && !((e.store || e.replicates) && writes)
}

/// The busiest place, as far as it is known.
struct Busiest {
    name: String,
    share: f64,
}

/// `None` where threads or CPUs cannot be seen.
fn busiest(e: &Evidence<'_>, machine: &Owners) -> Option<Busiest> {
    let client = e.load.thread_busy.iter().copied().fold(0.0, f64::max);
    let mut all = vec![Busiest { name: "the client's busiest thread".to_owned(), share: client }];
    for cpu in &machine.cpus {
        all.push(Busiest { name: format!("CPU {}", cpu.cpu), share: 1.0 - cpu.idle? });
    }
    for role in &machine.roles {
        // On several CPUs a thread may be full although none of them is.
        let thread = match role.busiest_thread {
            Some(thread) => thread,
            None if role.cpus.len() == 1 => 0.0,
            None => return None,
        };
        all.push(Busiest { name: format!("the busiest thread of the {}", role_name(role.role)), share: thread });
    }
    all.into_iter().max_by(|a, b| a.share.total_cmp(&b.share)).filter(|_| !machine.cpus.is_empty())
}

/// Requests that waited for a thread to wake, at most, in the mean.
fn waking(e: &Evidence<'_>) -> f64 {
    let switches: u64 = e.usage.iter().filter_map(|usage| usage.switches).map(|(voluntary, _)| voluntary).sum();
    switches as f64 / e.load.window_s.max(f64::EPSILON) * WAKING_S
}

/// The mean share of the window in which anything on the host waited for a disk. It is 0 where no role used one, as far as is known.
fn disk_share(e: &Evidence<'_>) -> f64 {
    if e.usage.iter().all(|role| (role.disk_read_bytes, role.disk_written_bytes) == (Some(0), Some(0))) {
        return 0.0;
    }
    let shares: Vec<f64> = e.series.iter().filter(|row| row.who == "host").filter_map(|row| row.psi_io).collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// The time that a request and its response are on the way, seconds. It is a round trip to the product and one more to the origin, each as
/// long as the fastest connect. Connections that are made at once take longer than that, so the fastest response is a limit. Without a network
/// it is CPU time.
fn on_the_way_s(e: &Evidence<'_>) -> f64 {
    let round_trips = if e.proxied { 2.0 } else { 1.0 };
    let fastest_s = (e.load.connect.min_us).min(e.load.latency.min_us / round_trips) / 1e6;
    if fastest_s > LOOPBACK_S { fastest_s * round_trips } else { 0.0 }
}

/// The mean time that a request waits for its connection, where many of them make one, seconds.
fn connecting_s(e: &Evidence<'_>) -> f64 {
    let made = e.load.window.connections as f64 / e.load.window.successful_in_window.max(1) as f64;
    made * (e.load.connect.mean_us + e.load.handshake.mean_us) / 1e6
}

/// The roles that may have stood still.
fn suspects(machine: &Owners) -> String {
    let of = |seen: fn(&RoleCpus) -> bool| -> Vec<&str> {
        machine.roles.iter().filter(|role| seen(role)).map(|role| role_name(role.role)).collect()
    };
    let stopped = of(|role| role.stopped > 0.0);
    if !stopped.is_empty() {
        return format!("a process of the {} was stopped (state T) when it was looked at", list(&stopped));
    }
    let throttled = machine.quotas.iter().filter(|quota| quota.throttled_s > 0.0).flat_map(|quota| &quota.roles);
    let throttled: Vec<&str> = throttled.map(|role| role_name(*role)).collect();
    if !throttled.is_empty() {
        return format!("a quota of CPU time stopped the {}", list(&throttled));
    }
    let most = machine.roles.iter().filter_map(|role| Some((percent(role.run_delay?, 1.0), role)));
    match most.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(delay, _)| *delay >= 10.0) {
        Some((delay, role)) => format!(
            "threads of the {} were ready to run {delay:.0} % of the window and were not let, although there was CPU",
            role_name(role.role)
        ),
        None => "client, product and origin slept meanwhile".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::owners::CpuUse;
    use weir_model::record::ResourceSecond;

    use super::*;
    use crate::fixture::{Trial, good};

    /// Client and origin on CPU 0, the product on CPU 1; each used so much.
    pub fn used([client, product, origin]: [f64; 3]) -> Trial {
        let role = |role, cpu: u32, used| RoleCpus {
            role,
            cpus: vec![cpu],
            used,
            run_delay: Some(0.02),
            busiest_thread: Some(used),
            ..RoleCpus::default()
        };
        let cpu = |cpu, used: f64| CpuUse { cpu, idle: Some(1.0 - used), ..CpuUse::default() };
        let owners = Owners {
            cpus: vec![cpu(0, client + origin), cpu(1, product)],
            roles: vec![role(Role::Client, 0, client), role(Role::Proxy, 1, product), role(Role::Origin, 0, origin)],
            ..Owners::default()
        };
        let mut trial = Trial { owners: vec![owners], waits_s: Some(0.0), ..good() };
        trial.load.thread_busy = vec![client];
        trial
    }

    fn fires(trial: &Trial) -> bool {
        trial.check(check).is_some()
    }

    #[test]
    fn a_product_that_runs_half_of_the_time_is_seen() {
        assert!(!fires(&used([0.3, 0.97, 0.2])), "the product is the limit");
        assert!(!fires(&used([0.5, 0.6, 0.42])), "the CPU of client and origin is");
        let mut trial = used([0.15, 0.5, 0.1]);
        let message = trial.check(check).expect("fires").message;
        assert!(message.starts_with("in 50 % of their time the 64 requests in flight"), "{message}");
        assert!(message.contains("busy 50 %") && message.ends_with("slept meanwhile"), "{message}");
        let words = |trial: &Trial| trial.check(check).expect("fires").message;
        trial.owners[0].roles[1].run_delay = Some(0.45);
        assert!(words(&trial).contains("threads of the product were ready to run 45 %"), "{}", words(&trial));
        trial.owners[0].roles[2].stopped = 0.5;
        assert!(words(&trial).contains("a process of the origin was stopped"), "{}", words(&trial));
    }

    #[test]
    fn one_worker_on_many_cpus_is_the_limit_when_its_thread_is_full() {
        let mut trial = used([0.3, 0.97, 0.2]);
        trial.owners[0].cpus = (0..4).map(|cpu| CpuUse { cpu, idle: Some(0.7), ..CpuUse::default() }).collect();
        assert!(!fires(&trial), "it moves between CPUs");
        trial.owners[0].roles[1].busiest_thread = Some(0.5);
        assert!(fires(&trial));
        trial.owners[0].roles[1].busiest_thread = None;
        assert!(fires(&trial), "it has one CPU");
        trial.owners[0].roles[1].cpus = vec![1, 2, 3];
        assert!(!fires(&trial), "a thread that nobody sees may be full");
    }

    /// Round trips alternate between processes, and each has to be woken: nobody is ever busy.
    #[test]
    fn few_connections_need_no_busy_place() {
        for (in_flight, rate, [client, product, origin]) in
            [(1, 6_000.0, [0.1, 0.15, 0.1]), (4, 12_000.0, [0.12, 0.25, 0.1]), (8, 24_000.0, [0.2, 0.45, 0.2])]
        {
            let mut trial = used([client, product, origin]);
            (trial.load.most_open, trial.load.rate) = (in_flight, rate);
            trial.usage.iter_mut().for_each(|usage| usage.switches = Some(((rate * 4.0 / 3.0) as u64, 0)));
            assert!(!fires(&trial), "{in_flight}");
        }
    }

    #[test]
    fn waits_that_are_known_explain_the_time() {
        let mut trial = used([0.05, 0.1, 0.05]);
        (trial.load.rate, trial.load.window.successful_in_window) = (6_000.0, 6_000);
        assert!(fires(&trial));
        trial.waits_s = Some(0.010);
        assert!(!fires(&trial), "the origin waits 10 ms");
        trial.waits_s = None;
        assert!(!fires(&trial), "nobody knows how long");
        trial.waits_s = Some(0.0);
        let sample = trial.series[0].clone();
        trial.series = vec![ResourceSecond { psi_io: Some(0.7), ..sample.clone() }; 10];
        for role in &mut trial.usage {
            (role.disk_read_bytes, role.disk_written_bytes) = (Some(0), Some(0));
        }
        assert!(fires(&trial), "another's disk");
        trial.usage[1].disk_read_bytes = Some(4_096);
        assert!(!fires(&trial), "a disk");
        trial.series = vec![ResourceSecond { psi_io: Some(0.0), ..sample }; 10];
        trial.series[0].psi_io = Some(0.9);
        assert!(fires(&trial), "a disk in one sample of ten");
        trial.series[0].psi_io = Some(0.0);
        trial.load.connect.min_us = 400.0;
        assert!(fires(&trial), "loopback");
        trial.load.connect.min_us = 600.0;
        trial.load.latency.min_us = 240.0;
        assert!(fires(&trial), "loopback, and many that are made at once");
        (trial.load.connect.min_us, trial.load.latency.min_us) = (5_000.0, 10_000.0);
        assert!(!fires(&trial), "the network takes 5 ms");
        trial.load.connect.min_us = 0.0;
        trial.load.connect.mean_us = 9_000.0;
        trial.load.window.connections = 6_000;
        assert!(!fires(&trial), "each request makes a connection");
    }

    #[test]
    fn what_is_not_to_be_judged_is_not() {
        let silent: [fn(&mut Trial); 5] = [
            |t| t.load.offered_rate = Some(10_000.0),
            |t| t.load.most_open = 3,
            |t| t.usage[1].switches = None,
            |t| t.load.window.errors = [(weir_model::load::ErrorKind::Timeout, 200)].into(),
            |t| t.owners[0].cpus[0].idle = None,
        ];
        for (nth, inject) in silent.iter().enumerate() {
            let mut trial = used([0.15, 0.5, 0.1]);
            assert!(fires(&trial));
            inject(&mut trial);
            assert!(!fires(&trial), "{nth}");
        }
    }
}
