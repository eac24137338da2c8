//! Noise: detects a hypervisor that gave the machine's CPUs to other guests during the window. Listed in `CHECKS`.
//!
//! Threshold: 2 % of one CPU on average. Products on one core are compared to a few per cent, so this is as large as the
//! differences of interest.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

const MEAN_CORES: f64 = 0.02;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let stolen: Vec<f64> = e.series.iter().filter(|row| row.who == "host").filter_map(|row| row.cpu_steal).collect();
    if stolen.is_empty() {
        return None;
    }
    let mean = stolen.iter().sum::<f64>() / stolen.len() as f64;
    if mean < MEAN_CORES {
        return None;
    }
    let message = format!("the hypervisor took {:.1} % of a CPU on average during the window", mean * 100.0);
    finding("steal", Severity::Warning, message, "measure on a quieter machine, or with more blocks")
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_from_two_per_cent_on() {
        let mut trial = good();
        trial.series[0].cpu_steal = Some(0.01);
        assert_eq!(trial.check(super::check), None);
        trial.series[0].cpu_steal = Some(0.05);
        assert!(trial.check(super::check).is_some());
    }
}
