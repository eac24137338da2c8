//! Sums up how the CPU time of the machine was spent in a window, to see whether other processes used the machine.
//! `weir-compare` uses it on rows of `resources.csv`.
//!
//! Over loopback the load itself causes most interrupts. Some kernels charge them to the interrupted process, others
//! (`CONFIG_IRQ_TIME_ACCOUNTING`) to no process. If the roles used more CPU time than the host reports for all
//! processes, the kernel charges them ([`CpuTime::charges_interrupts`]). A window with few interrupts does not show
//! which is the case.

use crate::record::{HostRecord, ResourceSecond};

/// If other processes take at least this share of the machine's CPU time, a trial measures them more than the product. If all of
/// it is taken from the one CPU of a proxy on a machine with two CPUs, the proxy loses 10 % of its CPU. Source: 300 trials of one
/// product beside compilers on such a machine. The median rate was 63,000 requests/s below half of this share, 57,000 up to it,
/// 39,000 from four times of it on, and 29,000 from eight times of it on.
pub const CROWDED: f64 = 0.05;

/// If the roles used this much more CPU time than the host reports for all processes, they were charged for interrupts too.
/// A share of the machine; a smaller difference comes from the ticks of two clocks.
const CHARGED: f64 = 0.02;

/// `who` of the rows of the roles on a machine: a role that has several hosts has a row for each.
pub fn roles_on(hosts: &[HostRecord], machine: &str) -> Vec<String> {
    let here = hosts.iter().filter(|host| host.machine == machine);
    let rows = |host: &HostRecord| {
        let several = |role| hosts.iter().filter(|other| other.has(role)).count() > 1;
        let row = |role: &crate::record::Role| match several(*role) {
            true => format!("{}/{}", role.as_str(), host.name),
            false => role.as_str().to_owned(),
        };
        host.roles.iter().map(row).collect::<Vec<_>>()
    };
    here.flat_map(rows).collect()
}

/// CPU time of a window, seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct CpuTime {
    /// All processes.
    pub processes: f64,
    /// What the hypervisor took.
    pub stolen: f64,
    /// Interrupts.
    pub interrupts: f64,
    /// Client, product, origin.
    pub roles: f64,
    /// All there was: as many CPUs as the machine has, for the window's length.
    pub whole: f64,
}

impl CpuTime {
    /// Adds up a window's rows. `None` without a row of the host.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a ResourceSecond>) -> Option<CpuTime> {
        CpuTime::sum(rows, "host", |row| !row.is_of_part())
    }

    /// The same of one of several machines: `host` names the machine's rows, and `roles` those of what runs on it.
    pub fn of_machine<'a>(
        rows: impl IntoIterator<Item = &'a ResourceSecond>,
        host: &str,
        roles: &[String],
    ) -> Option<CpuTime> {
        CpuTime::sum(rows, host, |row| roles.contains(&row.who))
    }

    fn sum<'a>(
        rows: impl IntoIterator<Item = &'a ResourceSecond>,
        host: &str,
        is_role: impl Fn(&ResourceSecond) -> bool,
    ) -> Option<CpuTime> {
        let mut all = CpuTime::default();
        for row in rows {
            let seconds = |cores: Option<f64>| cores.unwrap_or(0.0) * row.length_s;
            let used = seconds(row.cpu_user) + seconds(row.cpu_system);
            if row.who == host {
                let (stolen, interrupts) = (seconds(row.cpu_steal), seconds(row.cpu_irq));
                all.processes += used;
                all.stolen += stolen;
                all.interrupts += interrupts;
                all.whole += used + stolen + interrupts + seconds(row.cpu_idle) + seconds(row.cpu_iowait);
            } else if is_role(row) {
                all.roles += used;
            }
        }
        (all.whole > 0.0).then_some(all)
    }

    /// The window shows that the kernel charges interrupts to the processes that they interrupt.
    pub fn charges_interrupts(&self) -> bool {
        self.roles - self.processes - self.stolen > CHARGED * self.whole
    }

    /// Share of the whole, 0 to 1, that went to neither client, product nor origin: to other processes, or to other machines of
    /// the hypervisor.
    pub fn taken(&self, interrupts_are_charged: bool) -> f64 {
        let interrupts = if interrupts_are_charged { self.interrupts } else { 0.0 };
        ((self.processes + self.stolen + interrupts - self.roles) / self.whole).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(who: &str, used: f64, interrupts: f64, idle: f64, stolen: f64) -> ResourceSecond {
        ResourceSecond {
            length_s: 0.5,
            who: who.to_owned(),
            cpu_user: Some(used / 2.0),
            cpu_system: Some(used / 2.0),
            cpu_irq: Some(interrupts),
            cpu_idle: Some(idle),
            cpu_steal: Some(stolen),
            ..ResourceSecond::default()
        }
    }

    #[test]
    fn what_no_role_used_was_taken() {
        let roles = ["client", "proxy", "origin"].map(|who| row(who, 0.5, 0.0, 0.0, 0.0));
        let with = |host: ResourceSecond| CpuTime::of(roles.iter().chain([&host])).expect("recorded");
        // Interrupts charged to nobody: they are no role's, and nobody else's.
        let near = |taken: f64, wanted: f64| assert!((taken - wanted).abs() < 1e-9, "{taken} is not {wanted}");
        near(with(row("host", 1.5, 0.1, 0.4, 0.0)).taken(false), 0.0);
        near(with(row("host", 1.7, 0.1, 0.2, 0.0)).taken(false), 0.1);
        near(with(row("host", 1.5, 0.1, 0.2, 0.2)).taken(false), 0.1);
        // Charged to whom they interrupt: the roles have used more than all processes did.
        let charged = with(row("host", 1.2, 0.5, 0.3, 0.0));
        assert!(charged.charges_interrupts());
        near(charged.taken(true), 0.1);
        // Ticks of two clocks: no less than nothing was taken.
        near(charged.taken(false), 0.0);
        assert!(CpuTime::of(roles.iter()).is_none());
        // A part's time is in its role's.
        let parts = [row("proxy/store", 0.3, 0.0, 0.0, 0.0), row("host", 1.5, 0.1, 0.4, 0.0)];
        near(CpuTime::of(roles.iter().chain(&parts)).expect("recorded").roles, 0.75);
    }

    #[test]
    fn a_machine_has_only_the_roles_on_it() {
        use crate::record::Role;
        let host = |name: &str, machine: &str, roles: &[Role]| HostRecord {
            name: name.into(),
            machine: machine.into(),
            roles: roles.to_vec(),
            ..HostRecord::default()
        };
        let hosts = [
            host("p", "m1", &[Role::Proxy, Role::Client]),
            host("o", "m2", &[Role::Origin]),
            host("c", "m2", &[Role::Client]),
        ];
        assert_eq!(
            (roles_on(&hosts, "m1"), roles_on(&hosts, "m2")),
            (vec!["proxy".into(), "client/p".into()], vec!["origin".into(), "client/c".into()])
        );
        let used = |who: &str, used| row(who, used, 0.0, 2.0 - used, 0.0);
        let rows = [
            used("client", 0.9),
            used("client/p", 0.4),
            used("client/c", 0.5),
            used("proxy", 1.0),
            used("origin", 0.2),
            used("host", 1.4),
            used("host/o", 0.7),
        ];
        for (host, machine) in [("host", "m1"), ("host/o", "m2")] {
            let time = CpuTime::of_machine(&rows, host, &roles_on(&hosts, machine)).expect("recorded");
            assert!((time.roles - time.processes).abs() < 1e-9, "{time:?}");
        }
    }

    #[test]
    fn what_the_hypervisor_took_was_no_process() {
        let rows = [row("proxy", 1.0, 0.0, 0.0, 0.0), row("host", 1.2, 0.2, 0.2, 0.4), row("host", 0.0, 0.0, 2.0, 0.0)];
        let all = CpuTime::of(&rows).expect("recorded");
        let near = |is: f64, wanted: f64| assert!((is - wanted).abs() < 1e-9, "{is} is not {wanted}");
        near(all.taken(false), 0.15);
        assert!(!all.charges_interrupts());
    }
}
