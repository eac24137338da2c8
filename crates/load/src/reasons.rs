//! Why requests failed, in words: how a peer broke its protocol, or what it said when it refused. Protocols and `worker` record reasons
//! under the kind of the error; `result` lists them. This module does not know what they mean.
//!
//! A worker keeps the first few that differ, so that a server whose every refusal has other words costs no memory. One that is known
//! costs none either: a server that is full may refuse every request.

use std::fmt::{self, Display, Write};

use weir_model::load::{ErrorKind, ErrorReason};

use crate::clock::NEVER;

/// The longest reason that is kept, bytes.
const LONGEST: usize = 160;

/// The reasons of one worker.
#[derive(Debug, Clone)]
pub(crate) struct Reasons {
    /// When the window begins.
    window: u64,
    known: Vec<ErrorReason>,
}

impl Default for Reasons {
    fn default() -> Reasons {
        Reasons { window: NEVER, known: Vec::new() }
    }
}

impl Reasons {
    /// The window begins then, of the run's clock.
    pub(crate) fn begin_window(&mut self, window: u64) {
        self.window = window;
    }

    /// A request that became due then fails for this reason.
    #[cold]
    pub(crate) fn record(&mut self, kind: ErrorKind, reason: &dyn Display, due: u64) {
        let mut line = Line { bytes: [0; LONGEST], length: 0 };
        // It takes what there is room for.
        let _ = write!(line, "{reason}");
        let text = line.text();
        let at = self.known.iter().position(|known| known.kind == kind && known.reason == text);
        let known = match at {
            Some(at) => &mut self.known[at],
            None if self.known.len() == ErrorReason::MOST => return,
            None => {
                self.known.push(ErrorReason { kind, reason: text.to_owned(), window: 0, total: 0 });
                let last = self.known.len() - 1;
                &mut self.known[last]
            }
        };
        known.total += 1;
        known.window += u64::from(due >= self.window);
    }

    /// The reasons of several workers, most frequent first.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Reasons>) -> Vec<ErrorReason> {
        all.fold(Vec::new(), |mut sum, one| {
            ErrorReason::add(&mut sum, &one.known);
            sum
        })
    }
}

/// A line of text in a fixed place, without control characters.
struct Line {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Line {
    fn text(&self) -> &str {
        // Only whole characters were written.
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default().trim()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            let c = if c.is_control() { ' ' } else { c };
            let end = self.length + c.len_utf8();
            let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
            c.encode_utf8(place);
            self.length = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_line_and_counts_by_phase() {
        let mut reasons = Reasons::default();
        reasons.record(ErrorKind::Refused, &"ERR before any window", 5);
        reasons.begin_window(10);
        for due in [9, 10, 11] {
            reasons.record(ErrorKind::Refused, &"OOM\r\nfull\u{1b}[31m", due);
        }
        reasons.record(ErrorKind::Busy, &"OOM\r\nfull\u{1b}[31m", 10);
        reasons.record(ErrorKind::Protocol, &"ä".repeat(LONGEST), 10);
        let listed = Reasons::sum([&reasons, &reasons].into_iter());
        let words: Vec<_> = listed.iter().map(|one| (one.kind, one.reason.as_str(), one.window, one.total)).collect();
        let cut = "ä".repeat(LONGEST / 2);
        let expected = [
            (ErrorKind::Refused, "OOM  full [31m", 4, 6),
            (ErrorKind::Busy, "OOM  full [31m", 2, 2),
            (ErrorKind::Protocol, cut.as_str(), 2, 2),
            (ErrorKind::Refused, "ERR before any window", 0, 2),
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut reasons = Reasons::default();
        (0..1_000).for_each(|slot| reasons.record(ErrorKind::Redirected, &format!("MOVED {slot}"), 0));
        assert_eq!(Reasons::sum([&reasons].into_iter()).len(), ErrorReason::MOST);
    }
}
