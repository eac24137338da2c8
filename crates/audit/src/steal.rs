//! A hypervisor that gave CPUs to other guests.

use weir_model::record::{Finding, ResourceSecond, Severity};
use weir_model::text::grouped;

use super::{Evidence, finding};

const MEAN_CORES: f64 = 0.02;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let of = |row: &'_ ResourceSecond| Some((row.who.strip_prefix("host").map(str::to_owned)?, row.cpu_steal?));
    let machines = grouped(e.series.iter().filter_map(of));
    let means = machines.iter().map(|(name, stolen)| (stolen.iter().sum::<f64>() / stolen.len() as f64, name));
    let (mean, name) = means.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(mean, _)| *mean >= MEAN_CORES)?;
    let at = name.strip_prefix('/').map(|name| format!(" of {name}")).unwrap_or_default();
    let message = format!("the hypervisor took {:.1} % of a CPU{at} on average during the window", mean * 100.0);
    finding("steal", Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::{good, three_hosts};

    #[test]
    fn fires_from_two_per_cent_on() {
        let mut trial = good();
        trial.series[0].cpu_steal = Some(0.01);
        assert_eq!(trial.check(super::check), None);
        trial.series[0].cpu_steal = Some(0.05);
        assert!(trial.check(super::check).is_some());
    }

    #[test]
    fn each_machine_is_looked_at() {
        let mut trial = three_hosts();
        assert_eq!(trial.check(super::check), None);
        trial.series[2].cpu_steal = Some(0.05);
        let message = trial.check(super::check).expect("fires").message;
        assert_eq!(message, "the hypervisor took 5.0 % of a CPU of origin-1 on average during the window");
    }
}
