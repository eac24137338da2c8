//! What an origin is asked over its standard input, and what it says on its standard output: its counters, and the number
//! of connections that it has open. The requests do not go over the network, do not appear in the counters, and are the same
//! for all protocols.
//!
//! The lab asks for the counters, and vitals for the connections once a second from their own thread. Each may receive
//! what the other has asked for, and keeps it for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_model::counters::OriginCounters;
use weir_vitals::Connections;

use super::{CountersReport, OriginReport};
use crate::host::{ReceiveError, RoleProcess};

/// The line that asks an origin for its number of open connections.
pub const COUNT_REQUEST: &str = "how many connections";

/// The line that asks an origin for its counters.
pub const COUNTERS_REQUEST: &str = "counters";

/// The beginning of the line that makes an origin answer nothing for a while; the duration follows, such as `5s`.
pub const FREEZE_REQUEST: &str = "freeze ";

/// How long an origin may take to report its number of connections. It usually takes less than a millisecond; a later response
/// is useless for the second that asked.
const COUNTS_WITHIN: Duration = Duration::from_millis(200);

/// How long an origin may take to report its counters, on a very busy machine.
pub(super) const COUNTERS_WITHIN: Duration = Duration::from_secs(5);

/// Asks an origin. Clones share what was received.
#[derive(Debug, Clone)]
pub struct OpenCounter {
    origin: Arc<dyn RoleProcess>,
    inbox: Arc<Mutex<Inbox>>,
}

/// What was asked for and not received, and what was received and not taken.
#[derive(Debug, Default)]
struct Inbox {
    counts_pending: u32,
    count: Option<u64>,
    counters_pending: u32,
    counters: Option<OriginCounters>,
}

impl Inbox {
    /// Sorts in a report. The response to the last request is the one that counts.
    fn put(&mut self, line: &str) {
        if let Ok(OriginReport::Open { connections_open }) = serde_json::from_str(line) {
            self.counts_pending = self.counts_pending.saturating_sub(1);
            self.count = (self.counts_pending == 0).then_some(connections_open);
        } else if let Ok(CountersReport { counters }) = serde_json::from_str(line) {
            self.counters_pending = self.counters_pending.saturating_sub(1);
            self.counters = (self.counters_pending == 0).then_some(counters);
        }
    }
}

impl OpenCounter {
    pub(super) fn new(origin: &Arc<dyn RoleProcess>) -> OpenCounter {
        OpenCounter { origin: Arc::clone(origin), inbox: Arc::default() }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The origin's counters now.
    pub(super) fn counters(&self) -> Result<OriginCounters, ReceiveError> {
        let mut inbox = self.inbox();
        self.origin.send(COUNTERS_REQUEST).map_err(|_| ReceiveError::Ended)?;
        inbox.counters_pending += 1;
        inbox.counters = None;
        let deadline = Instant::now() + COUNTERS_WITHIN;
        loop {
            inbox.put(&self.origin.receive(deadline.saturating_duration_since(Instant::now()))?);
            if let Some(counters) = inbox.counters.take() {
                return Ok(counters);
            }
        }
    }
}

impl Connections for OpenCounter {
    fn request(&mut self) {
        let mut inbox = self.inbox();
        if self.origin.send(COUNT_REQUEST).is_ok() {
            inbox.counts_pending += 1;
            inbox.count = None;
        }
    }

    fn receive(&mut self) -> Option<u64> {
        let mut inbox = self.inbox();
        let deadline = Instant::now() + COUNTS_WITHIN;
        // Late responses to earlier requests come first.
        while inbox.counts_pending > 0 {
            let line = self.origin.receive(deadline.saturating_duration_since(Instant::now())).ok()?;
            inbox.put(&line);
        }
        inbox.count.take()
    }
}

#[cfg(test)]
mod tests {
    use super::super::local::ENDS_WITHIN;
    use super::super::tests::shell;
    use super::*;

    /// Asks an origin that is a few lines of shell `times` times.
    fn counted(script: &str, times: usize) -> Vec<Option<u64>> {
        let (_scratch, origin) = shell(script);
        let mut counter = OpenCounter::new(&origin.process);
        let mut ask = || {
            counter.request();
            counter.receive()
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
    fn counters_and_connections_are_not_mixed_up() {
        let script = r#"read line; echo '{"connections_open":7}'; read line; c=$(cat counters); echo "{\"counters\":$c}"; read line"#;
        let (scratch, origin) = shell("read line; exit 0");
        drop(origin);
        let counters =
            OriginCounters { requests: 5, connections_reaching: [(1, 1), (4, 1)].into(), ..OriginCounters::default() };
        let file = scratch.path().join("counters");
        std::fs::write(&file, serde_json::to_string(&counters).expect("JSON")).expect("written");
        let (_scratch, origin) = shell(&script.replace("cat counters", &format!("cat {}", file.display())));
        let mut counter = OpenCounter::new(&origin.process);
        counter.request();
        assert_eq!(counter.clone().counters().expect("counters"), counters);
        assert_eq!(counter.receive(), Some(7), "kept while another asked");
        assert!(counter.counters().is_err(), "it has ended");
    }

    #[test]
    fn a_counter_does_not_keep_an_origin_from_ending() {
        let (_scratch, origin) = shell("read line; exit 0");
        let mut counter = OpenCounter::new(&origin.process);
        let begun = Instant::now();
        drop(origin);
        assert!(begun.elapsed() < ENDS_WITHIN, "not killed: {:?}", begun.elapsed());
        counter.request();
        assert_eq!(counter.receive(), None);
    }
}
