//! A product that writes to disk, such as an access log.

use weir_model::record::{Finding, Role, Severity};

use super::{Evidence, finding};

const LEAST_BYTES: u64 = 64 << 10;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    // It is told to write a log, and that is measured.
    if e.access_log.is_some() {
        return None;
    }
    let written = e.role(Role::Proxy)?.disk_written_bytes?;
    if !e.proxied || written < LEAST_BYTES || written < e.load.window.successful_in_window {
        return None;
    }
    let severity = if e.store || e.caches || !e.levelled { Severity::Note } else { Severity::Warning };
    finding(
        "disk-writes",
        severity,
        format!("the product wrote {:.1} MB to disk during the window", written as f64 / 1e6),
    )
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::record::Severity;

    #[test]
    fn fires_from_an_access_log_on() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None, "not known");
        trial.usage[1].disk_written_bytes = Some(20_000);
        assert_eq!(trial.check(super::check), None, "some lines");
        trial.usage[1].disk_written_bytes = Some(1_000_000);
        assert!(trial.check(super::check).is_some());
        trial.levelled = false;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Note, "as its vendor has it");
        trial.load.window.successful_in_window = 2_000_000;
        assert_eq!(trial.check(super::check), None, "less than a byte a request");
    }
}
