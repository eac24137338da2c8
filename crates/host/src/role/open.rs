//! The number of connections that an origin has open, requested over its standard input and reported on its standard output.
//! Vitals ask for it once a second from their own thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_vitals::Connections;

use super::OriginReport;
use crate::host::RoleProcess;

/// The line that asks an origin for its number of open connections.
pub const COUNT_REQUEST: &str = "how many connections";

/// How long an origin may take to report its number of connections. It usually takes less than a millisecond; a later response
/// is useless for the second that asked.
const COUNTS_WITHIN: Duration = Duration::from_millis(200);

/// Asks an origin for its number of open connections.
#[derive(Debug, Clone)]
pub struct OpenCounter {
    origin: Arc<dyn RoleProcess>,
    /// Responses still expected, for all clones.
    pending: Arc<Mutex<u32>>,
}

impl OpenCounter {
    pub(super) fn new(origin: &Arc<dyn RoleProcess>) -> OpenCounter {
        OpenCounter { origin: Arc::clone(origin), pending: Arc::default() }
    }

    fn pending(&self) -> MutexGuard<'_, u32> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections for OpenCounter {
    fn request(&mut self) {
        let mut pending = self.pending();
        if self.origin.send(COUNT_REQUEST).is_ok() {
            *pending += 1;
        }
    }

    fn receive(&mut self) -> Option<u64> {
        let mut pending = self.pending();
        let deadline = Instant::now() + COUNTS_WITHIN;
        // Late responses to earlier requests come first.
        while *pending > 0 {
            let line = self.origin.receive(deadline.saturating_duration_since(Instant::now())).ok()?;
            if let Ok(OriginReport::Open { connections_open }) = serde_json::from_str(&line) {
                *pending -= 1;
                if *pending == 0 {
                    return Some(connections_open);
                }
            }
        }
        None
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
