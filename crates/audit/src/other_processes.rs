//! Other processes on the machine.

use weir_model::cpu_time::{CROWDED, CpuTime, roles_on};
use weir_model::record::{Finding, HostRecord, ResourceSecond, Severity};

use super::{Check, Evidence, Kind, named};

pub const CHECK: Check = Check {
    kind: Kind::Noise,
    names: &["other-processes"],
    sees: "other processes (neither client, product nor origin) that used a machine's CPUs during the window. The \
         finding reports a lower bound. `weir compare` leaves such trials out",
    threshold: "5 % of the machine (`CROWDED`). A proxy has half of the machine's CPUs unless `--cpus` says \
         otherwise, so up to a tenth of its CPUs may have been taken",
    source: "371 quiet windows of at least 2 s on a virtual machine of 2 CPUs (three published suites and `quick`, at \
         capacity and below): at most -0.8 %. weir's own sampling is counted as another process; it took at most 0.2 \
         % of the machine (`observer.json`)",
    remedy: "end what runs beside weir (`top` and `ps` show it, and `weir doctor` names the busiest), and run again",
    blind: "what interrupts hide. Some kernels charge them to the interrupted process: the time of the roles then \
         includes them, that of the host's processes does not, and others may go unseen up to the time of the \
         interrupts (2 to 38 % of that machine; adding them all would have reported up to 5.9 % that did not exist). \
         Of 14 trials beside compilers, 13 were found; in the other, compilers had up to 20 %. Windows of less than a \
         second, because the host's CPU time has a resolution of 10 ms a CPU",
    provoked: false,
    run: Some(check),
};

/// A second, less what a window's ends are late.
const LEAST_S: f64 = 0.9;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let machines = match e.machines() {
        none if none.is_empty() => vec![("the machine".to_owned(), CpuTime::of(e.series)?)],
        machines => machines.iter().filter_map(|(hosts, rows)| of_machine(e, hosts, rows)).collect(),
    };
    let judged = machines.into_iter().filter(|(_, time)| time.length >= LEAST_S);
    let (name, time) = judged.max_by(|a, b| a.1.others_at_least().total_cmp(&b.1.others_at_least()))?;
    let share = time.others_at_least();
    if share <= CROWDED {
        return None;
    }
    let message = format!(
        "other processes used at least {:.0} % of {name}'s CPU during the window: {:.2} of {:.0} CPUs",
        share * 100.0,
        share * time.cpus(),
        time.cpus()
    );
    CHECK.finding(Severity::Warning, message)
}

fn of_machine(e: &Evidence<'_>, hosts: &[&HostRecord], rows: &[&ResourceSecond]) -> Option<(String, CpuTime)> {
    let roles = roles_on(e.hosts, &hosts.first()?.machine);
    let time = CpuTime::of_machine(e.series, &rows.first()?.who, &roles)?;
    Some((named(hosts), time))
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::record::ResourceSecond;

    use crate::fixture::{good, three_hosts};

    /// Seconds of a machine with two CPUs on which the roles used 1.2, and the host's processes so much more; of which interrupts
    /// took 0.2.
    pub fn beside(others: f64, seconds: &[f64]) -> Vec<ResourceSecond> {
        let used = |who: &str, length_s: f64, user: f64, system: f64| ResourceSecond {
            length_s,
            who: who.to_owned(),
            cpu_user: Some(user),
            cpu_system: Some(system),
            ..ResourceSecond::default()
        };
        let row = |length_s: f64| {
            let host = used("host", length_s, 0.5 + others, 0.7);
            let rest = Some(0.6 - others);
            let host = ResourceSecond { cpu_irq: Some(0.2), cpu_idle: rest, cpu_steal: Some(0.0), ..host };
            let role = |who, user, system| used(who, length_s, user, system);
            [role("client", 0.1, 0.2), role("proxy", 0.3, 0.4), role("origin", 0.1, 0.1), host]
        };
        seconds.iter().flat_map(|length_s| row(*length_s)).collect()
    }

    #[test]
    fn fires_where_others_used_more_than_a_twentieth_of_the_machine() {
        let mut trial = good();
        trial.series = beside(0.09, &[1.0, 1.0, 1.0]);
        assert_eq!(trial.check(super::check), None);
        trial.series = beside(0.5, &[1.0, 1.0, 1.0]);
        let found = trial.check(super::check).expect("fires");
        assert!(
            found.message.contains("at least 25 % of the machine's CPU") && found.message.contains("0.50 of 2 CPUs"),
            "{found:?}"
        );
    }

    #[test]
    fn each_machine_is_compared_with_the_roles_on_it() {
        let row = |who: &str, used: f64| ResourceSecond {
            length_s: 1.0,
            who: who.to_owned(),
            cpu_user: Some(used),
            cpu_idle: Some(2.0 - used),
            ..ResourceSecond::default()
        };
        let roles = || vec![row("client", 1.0), row("proxy", 0.9), row("origin", 0.5)];
        let mut trial = three_hosts();
        trial.series = roles();
        trial.series.extend([row("host", 0.9), row("host/client-1", 1.05), row("host/origin-1", 0.5)]);
        assert_eq!(trial.check(super::check), None, "the client's and the origin's are elsewhere");
        trial.series = roles();
        trial.series.extend([row("host", 1.3), row("host/client-1", 1.0), row("host/origin-1", 0.5)]);
        let message = trial.check(super::check).expect("fires").message;
        assert!(message.starts_with("other processes used at least 20 % of proxy's CPU"), "{message}");
    }

    /// The roles used 0.2 CPUs more than the processes of the host, theirs included: they were charged for interrupts.
    #[test]
    fn interrupts_charged_to_the_roles_are_nobody_elses() {
        let mut trial = good();
        trial.series = beside(-0.2, &[1.0, 1.0, 1.0]);
        for row in trial.series.iter_mut().filter(|row| row.who == "host") {
            (row.cpu_irq, row.cpu_idle) = (Some(0.6), Some(0.4));
        }
        assert_eq!(trial.check(super::check), None);
    }

    #[test]
    fn what_the_hypervisor_took_is_told_by_another_check() {
        let mut trial = good();
        trial.series = beside(0.0, &[1.0, 1.0, 1.0]);
        for row in trial.series.iter_mut().filter(|row| row.who == "host") {
            (row.cpu_steal, row.cpu_idle) = (Some(0.5), Some(0.1));
        }
        assert_eq!(trial.check(super::check), None);
        assert!(trial.check(crate::steal::check).is_some());
    }

    #[test]
    fn a_short_window_and_one_of_which_the_kernel_says_nothing_are_not_judged() {
        let mut trial = good();
        trial.series = beside(0.5, &[0.5]);
        assert_eq!(trial.check(super::check), None);
        // A window of a second whose look came early.
        trial.series = beside(0.5, &[0.99]);
        assert!(trial.check(super::check).is_some());
        trial.series.retain(|row| row.who != "host");
        assert_eq!(trial.check(super::check), None);
    }
}
