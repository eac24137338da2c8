//! CPUs that were not equally fast throughout the run.

use weir_model::record::{Finding, Severity};
use weir_model::speed::{Change, HostSpeed, largest_change};

use super::{Check, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Noise,
    names: &["cpu-speed"],
    sees: "a CPU of a role that is faster or slower than before the window, or than at the begin of the run, by a short calculation \
         that is always the same, timed by the CPU time it took. The lab judges it for a trial as a whole",
    threshold: "5 % is noted, 10 % is suspect",
    source: "430 readings of each CPU of a virtual machine with 2, over three minutes beside compilers: two readings up to 30 s apart \
         differed by 0.1 % in the median, by 2 to 4 % at the 90th percentile and by 3 to 12 % at the 95th. Products are compared to a few \
         per cent",
    remedy: "compare with trials of like speed (`speed` in measurement.json), or measure on a machine whose CPUs are not shared: see \
         its governor, and its other guests",
    blind: "changes within the window that are over at its end; memory that is slower beyond the caches",
    provoked: false,
    run: None,
};

const NOTED: f64 = 0.05;
const SUSPECT: f64 = 0.10;

/// `first`: before the run's first window; `readings`: before and after each window of the trial.
pub fn check(first: &[HostSpeed], readings: &[Vec<HostSpeed>]) -> Option<Finding> {
    let within = readings.windows(2).map(|pair| (largest_change(&pair[0], &pair[1]), "before"));
    let since = readings.iter().map(|now| (largest_change(first, now), "at the begin of the run"));
    let changes = within.chain(since).filter_map(|(change, when)| Some((change?, when)));
    let (Change { host, cpu, ratio }, when) = changes.max_by(|a, b| off(a.0.ratio).total_cmp(&off(b.0.ratio)))?;
    let severity = match off(ratio) {
        off if off >= SUSPECT => Severity::Warning,
        off if off >= NOTED => Severity::Note,
        _ => return None,
    };
    let of = if first.len() > 1 { format!(" of {host}") } else { String::new() };
    let message = format!("CPU {cpu}{of} calculated at {:.0} % of the speed that it had {when}", ratio * 100.0);
    CHECK.finding(severity, message)
}

/// How far from 1, alike for faster and slower.
fn off(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio) - 1.0
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use weir_model::speed::{CpuSpeed, Speed};

    /// A host with one CPU.
    pub fn at(by_cpu: f64) -> Vec<HostSpeed> {
        let speed = Speed { by_cpu, by_wall: by_cpu };
        vec![HostSpeed { host: "local".into(), cpus: vec![CpuSpeed { cpu: 1, alone: speed, together: speed }] }]
    }

    #[test]
    fn fires_when_windows_or_trials_differ() {
        let found =
            |readings: &[Vec<HostSpeed>]| check(&at(500.0), readings).map(|found| (found.severity, found.message));
        assert_eq!(found(&[at(500.0), at(485.0)]), None);
        assert_eq!(found(&[at(470.0), at(472.0)]).expect("since the begin").0, Severity::Note);
        let (severity, message) = found(&[at(450.0), at(600.0)]).expect("within the trial");
        assert_eq!(severity, Severity::Warning);
        assert_eq!(message, "CPU 1 calculated at 133 % of the speed that it had before");
        assert_eq!(found(&[at(440.0), at(445.0)]).expect("slow throughout").0, Severity::Warning);
        assert_eq!(check(&[], &[at(1.0), at(1.0)]), None, "no reading to compare with");
        assert_eq!(check(&at(500.0), &[]), None, "not known");
    }
}
