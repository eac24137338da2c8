//! CPU that client and origin had left.

use weir_model::load::Bursts;
use weir_model::record::{Finding, Role, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Headroom,
    names: &["client-room"],
    sees: "a client thread near 100 % of a CPU, or client and origin that together fill the CPUs they share: weir \
         measured itself. For `direct` that is intended, and only noted",
    threshold: "90 % of a CPU",
    source: "the mean wait of a queue with constant service times (M/D/1, Pollaczek-Khinchine) is rho / 2(1 - rho) \
         service times. This is 0.5 at one half, 4.5 at 0.9, unbounded above. Beyond the threshold, the client's own \
         queue is a part of every latency, and its CPU limits every rate",
    remedy: "give client and origin more CPUs (`--cpus`), or run them on another host; the product may carry more",
    blind: "a client that was full for less than a window, such as a second",
    provoked: false,
    run: Some(check),
};

/// Share of a CPU from which it counts as full.
const FULL: f64 = 0.90;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let busiest = e.load.thread_busy.iter().copied().fold(0.0, f64::max) / on(e);
    let message = if busiest >= FULL {
        format!("the client's busiest thread used {:.0} % of a CPU", busiest * 100.0)
    } else {
        shared_full(e)?
    };
    let severity = if e.proxied { Severity::Warning } else { Severity::Note };
    CHECK.finding(severity, message)
}

fn shared_full(e: &Evidence<'_>) -> Option<String> {
    let (client, origin) = (e.role(Role::Client)?, e.role(Role::Origin)?);
    let cpus: std::collections::BTreeSet<_> = e.placement.client.iter().chain(&e.placement.origin).collect();
    // While the client busy-polls, it yields the CPU to other processes, so that time is headroom.
    let busy_poll = if e.load.window_s > 0.0 { e.load.busy_poll_us as f64 / 1e6 / e.load.window_s } else { 0.0 };
    let client_busy = (client.cores_busy - busy_poll).max(0.0) / on(e);
    let origin_busy = origin.cores_busy / on(e);
    let used = client_busy + origin_busy;
    if e.placement.shared(Role::Client, Role::Origin).is_empty() || used < FULL * cpus.len() as f64 {
        return None;
    }
    Some(format!(
        "client and origin together used {:.0} % of the {} they share ({:.0} % and {:.0} %)",
        used / cpus.len() as f64 * 100.0,
        if cpus.len() == 1 { "CPU".to_owned() } else { format!("{} CPUs", cpus.len()) },
        client_busy * 100.0,
        origin_busy * 100.0
    ))
}

/// The share of the window in which the load was on: what was used then is all that was used.
fn on(e: &Evidence<'_>) -> f64 {
    e.load.bursts.map_or(1.0, Bursts::share)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::record::{Role, Severity};

    #[test]
    fn a_full_thread_is_seen_and_only_noted_for_direct() {
        let mut trial = good();
        trial.load.thread_busy = vec![0.2, 0.97];
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Warning);
        trial.proxied = false;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Note);
    }

    #[test]
    fn a_shared_cpu_that_is_full_is_seen() {
        let mut trial = good();
        trial.usage[0].cores_busy = 0.5;
        trial.usage[2].cores_busy = 0.45;
        assert!(trial.check(super::check).is_some());
        trial.load.busy_poll_us = 200_000;
        assert_eq!(trial.check(super::check), None, "a client that only waits leaves the CPU to the origin");
        trial.load.busy_poll_us = 0;
        trial.placement.origin = vec![2];
        assert_eq!(trial.check(super::check), None, "each has a CPU of its own");
        trial.placement.origin = vec![0];
        assert!(trial.check(super::check).is_some());
        trial.placement.machines = [(Role::Client, "a".into()), (Role::Origin, "b".into())].into();
        assert_eq!(trial.check(super::check), None, "each has a machine of its own");
    }
}
