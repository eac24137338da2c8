//! A product that writes to disk, such as an access log.

use weir_model::record::{Finding, Role, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["disk-writes"],
    sees: "a product that wrote files to disk during the window, such as an access log. The others do not do that work, \
         and the disk's other users slow it down",
    threshold: "64 KiB, and 1 byte a request. It is a note where the product stores or caches, and in a profile that leaves \
         it as its vendor has it",
    source: "an access log has some 100 bytes a request; the few lines of a start or a warning stay below",
    remedy: "turn off the product's access log, or put its files on a file system in memory",
    blind: "files in memory (tmpfs), and logs that are sent to another process. Traffic of others' processes, if the \
         kernel hides it. Shared memory in a mapped file counts like a log",
    provoked: true,
    run: Some(check),
};

const LEAST_BYTES: u64 = 64 << 10;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let written = e.role(Role::Proxy)?.disk_written_bytes?;
    if !e.proxied || written < LEAST_BYTES || written < e.load.window.right_in_window {
        return None;
    }
    let severity = if e.store || e.caches || !e.levelled { Severity::Note } else { Severity::Warning };
    CHECK.finding(severity, format!("the product wrote {:.1} MB to disk during the window", written as f64 / 1e6))
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
        trial.load.window.right_in_window = 2_000_000;
        assert_eq!(trial.check(super::check), None, "less than a byte a request");
    }
}
