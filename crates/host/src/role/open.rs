//! What an origin is asked over its standard input, and what it says on its standard output: its counters, and the number
//! of connections that it has open. The requests do not go over the network, do not appear in the counters, and are the same
//! for all protocols.
//!
//! The lab asks for the counters, and vitals for the connections once a second from their own thread.

use std::sync::Arc;
use std::time::Duration;

use weir_vitals::Connections;

use super::{LocalRole, OriginReport};

/// What an origin is told: a line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginCommand {
    /// It reports its number of open connections.
    Count,
    /// It reports its counters.
    Counters,
    /// It sends nothing for so long.
    Freeze(Duration),
    /// The times of the faults of its members count from this one, nanoseconds of its host's `CLOCK_MONOTONIC`.
    Faults(u64),
}

impl OriginCommand {
    /// Reads a line.
    pub fn parse(line: &str) -> Option<OriginCommand> {
        match line {
            "how many connections" => Some(OriginCommand::Count),
            "counters" => Some(OriginCommand::Counters),
            other if other.starts_with("faults ") => {
                Some(OriginCommand::Faults(other.strip_prefix("faults ")?.parse().ok()?))
            }
            other => {
                let ms = other.strip_prefix("freeze ")?.strip_suffix("ms")?.parse().ok()?;
                Some(OriginCommand::Freeze(Duration::from_millis(ms)))
            }
        }
    }

    /// The line.
    pub fn line(self) -> String {
        match self {
            OriginCommand::Count => "how many connections".to_owned(),
            OriginCommand::Counters => "counters".to_owned(),
            OriginCommand::Freeze(length) => format!("freeze {}ms", length.as_millis()),
            OriginCommand::Faults(at) => format!("faults {at}"),
        }
    }
}

/// How long an origin may take to report its number of connections. It usually takes less than a millisecond; a later response
/// is useless for the second that asked.
const COUNTS_WITHIN: Duration = Duration::from_millis(200);

/// How long an origin may take to report its counters, on a very busy machine.
pub(super) const COUNTERS_WITHIN: Duration = Duration::from_secs(5);

/// Asks an origin of this host how many connections it has open.
#[derive(Debug)]
pub(crate) struct OpenCount {
    origin: Arc<LocalRole>,
    asked: Option<u64>,
}

impl OpenCount {
    /// Asks this one.
    pub(crate) fn of(origin: Arc<LocalRole>) -> OpenCount {
        OpenCount { origin, asked: None }
    }
}

impl Connections for OpenCount {
    fn request(&mut self) {
        self.asked = self.origin.request(&OriginCommand::Count.line()).ok();
    }

    fn receive(&mut self) -> Option<u64> {
        let line = self.origin.response(self.asked.take()?, COUNTS_WITHIN).ok()?;
        match serde_json::from_str(&line).ok()? {
            OriginReport::Open { connections_open } => Some(connections_open),
            OriginReport::Listens { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::local::ENDS_WITHIN;
    use super::*;
    use crate::host::{ReceiveError, RoleProcess};

    /// A role that is a few lines of shell.
    fn shell(script: &str) -> (tempfile::TempDir, Arc<LocalRole>) {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let args = ["-c".to_owned(), script.to_owned()];
        let role = LocalRole::start("/bin/sh".as_ref(), &args, &scratch.path().join("origin.log")).expect("sh starts");
        (scratch, Arc::new(role))
    }

    /// Asks an origin that is a few lines of shell `times` times.
    fn counted(script: &str, times: usize) -> Vec<Option<u64>> {
        let (_scratch, origin) = shell(script);
        let mut count = OpenCount::of(origin);
        let mut ask = || {
            count.request();
            count.receive()
        };
        (0..times).map(|_| ask()).collect()
    }

    #[test]
    fn an_origin_says_how_many_connections_it_has_whenever_it_is_asked() {
        let willing = r#"i=0; while read line; do i=$((i+1)); echo "{\"connections_open\":$i}"; done"#;
        assert_eq!(counted(willing, 3), [Some(1), Some(2), Some(3)]);
        assert_eq!(counted("exit 0", 1), [None]);
        assert_eq!(counted("read line; exec sleep 300", 1), [None], "a late response is given up");
    }

    #[test]
    fn a_late_response_is_not_taken_for_the_next_one() {
        // Both requests are answered after the second one.
        let late = r#"read line; read line; for i in 1 2; do echo "{\"connections_open\":$i}"; done; read line"#;
        assert_eq!(counted(late, 2), [None, Some(2)]);
    }

    #[test]
    fn answers_to_two_that_ask_are_not_mixed_up() {
        let (_scratch, origin) =
            shell(r#"read line; echo '{"connections_open":7}'; read line; echo "{\"asked\":\"$line\"}"; read line"#);
        let mut count = OpenCount::of(Arc::clone(&origin));
        count.request();
        let long = Duration::from_secs(20);
        assert_eq!(origin.ask(&OriginCommand::Counters.line(), long).expect("a response"), r#"{"asked":"counters"}"#);
        assert_eq!(count.receive(), Some(7), "kept while another asked");
        assert_eq!(origin.ask(&OriginCommand::Counters.line(), long), Err(ReceiveError::Ended));
    }

    #[test]
    fn a_count_does_not_keep_an_origin_from_ending() {
        let (_scratch, origin) = shell("read line; exit 0");
        let mut count = OpenCount::of(Arc::clone(&origin));
        let begun = Instant::now();
        origin.end();
        assert!(begun.elapsed() < ENDS_WITHIN, "not killed: {:?}", begun.elapsed());
        count.request();
        assert_eq!(count.receive(), None);
    }
}
