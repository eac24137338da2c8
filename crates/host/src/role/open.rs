//! How many connections an origin has open, asked over its standard input and answered on its standard output, from a thread
//! of its own.
//!
//! Does not know when it is asked, nor what for.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_vitals::Connections;

use super::{Line, OriginWord, locked};

/// The line by which an origin is asked how many connections it has open.
pub const HOW_MANY: &str = "how many connections";

/// How long an origin may take to say how many connections it has. It takes less than a millisecond; what comes later is of no
/// use to the second that asked.
const COUNTS_WITHIN: Duration = Duration::from_millis(200);

/// Asks an origin how many connections it has open.
#[derive(Debug)]
pub struct OpenCounter(Arc<Mutex<Line<OriginWord>>>);

impl OpenCounter {
    /// Of the origin at the end of this line.
    pub(super) fn new(line: &Arc<Mutex<Line<OriginWord>>>) -> OpenCounter {
        OpenCounter(Arc::clone(line))
    }
}

impl Connections for OpenCounter {
    fn request(&mut self) {
        let mut line = locked(&self.0);
        if line.say(HOW_MANY).is_ok() {
            line.owed += 1;
        }
    }

    fn receive(&mut self) -> Option<u64> {
        let mut line = locked(&self.0);
        let deadline = Instant::now() + COUNTS_WITHIN;
        // Answers that came too late for those who asked come first.
        while line.owed > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if let OriginWord::Open { connections_open } = line.words.recv_timeout(left).ok()? {
                line.owed -= 1;
                if line.owed == 0 {
                    return Some(connections_open);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::GOES_WITHIN;
    use super::super::tests::shell;
    use super::*;

    /// Asks an origin that is a few lines of shell, as often as there are answers wanted.
    fn counted(script: &str, times: usize) -> Vec<Option<u64>> {
        let (_scratch, speaker) = shell(script);
        let mut counter = OpenCounter::new(&speaker.line);
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
        assert_eq!(counted("read line; exec sleep 300", 1), [None], "it is not waited for longer than is of use");
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_the_next_ones() {
        // Both are answered when the second is asked.
        let late = r#"read line; read line; for i in 1 2; do echo "{\"connections_open\":$i}"; done; read line"#;
        assert_eq!(counted(late, 2), [None, Some(2)]);
    }

    #[test]
    fn who_asks_does_not_keep_an_origin_from_ending() {
        let (_scratch, speaker) = shell("read line; exit 0");
        let mut counter = OpenCounter::new(&speaker.line);
        let begun = Instant::now();
        drop(speaker);
        assert!(begun.elapsed() < GOES_WITHIN, "not killed: {:?}", begun.elapsed());
        counter.request();
        assert_eq!(counter.receive(), None);
    }
}
