//! How fast CPUs were, by a fixed calculation. Vitals measure it, the lab records it around a trial's windows, the audit compares.

use serde::{Deserialize, Serialize};

/// The speeds of a host's CPUs at one time, while weir's roles and the product were idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostSpeed {
    /// Its name.
    pub host: String,
    /// Each CPU of the roles, ascending.
    pub cpus: Vec<CpuSpeed>,
}

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuSpeed {
    /// Its number.
    pub cpu: u32,
    /// While the roles' other CPUs calculated nothing.
    pub alone: Speed,
    /// While all of them calculated: less where CPUs share a core, a cache or a frequency.
    pub together: Speed,
}

/// Calculations a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Of CPU time: what the CPU did when it had it.
    pub by_cpu: f64,
    /// Of wall time: less where others had the CPU meanwhile.
    pub by_wall: f64,
}

/// The largest change of a CPU alone from one reading to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<'a> {
    /// The host.
    pub host: &'a str,
    /// The CPU.
    pub cpu: u32,
    /// Speed in the second reading over that in the first.
    pub ratio: f64,
}

/// The largest change, up or down, of a CPU alone, by CPU time; `None` where no CPU is in both.
pub fn largest_change<'a>(from: &'a [HostSpeed], to: &[HostSpeed]) -> Option<Change<'a>> {
    let of = |host: &str, cpu: u32| {
        let host = to.iter().find(|one| one.host == host)?;
        host.cpus.iter().find(|one| one.cpu == cpu).map(|one| one.alone.by_cpu)
    };
    let each = from.iter().flat_map(|host| host.cpus.iter().map(move |cpu| (host, cpu)));
    let changes = each.filter_map(|(host, before)| {
        let ratio = of(&host.host, before.cpu)? / before.alone.by_cpu;
        (ratio.is_finite() && ratio > 0.0).then_some(Change { host: &host.host, cpu: before.cpu, ratio })
    });
    changes.max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, speeds: &[(u32, f64)]) -> HostSpeed {
        let speed = |by_cpu| Speed { by_cpu, by_wall: by_cpu };
        let cpu = |&(cpu, of): &(u32, f64)| CpuSpeed { cpu, alone: speed(of), together: speed(of / 2.0) };
        HostSpeed { host: name.to_owned(), cpus: speeds.iter().map(cpu).collect() }
    }

    #[test]
    fn the_largest_change_is_found_by_host_and_cpu() {
        let before = [host("a", &[(0, 100.0), (1, 100.0)]), host("b", &[(0, 200.0)])];
        let after = [host("b", &[(0, 160.0)]), host("a", &[(0, 110.0), (2, 1.0)])];
        let change = largest_change(&before, &after).expect("two CPUs are in both");
        assert_eq!((change.host, change.cpu, change.ratio), ("b", 0, 0.8));
        assert_eq!(largest_change(&before, &[host("c", &[(0, 1.0)])]), None);
        assert_eq!(largest_change(&[host("a", &[(0, 0.0)])], &after), None, "no number");
    }
}
