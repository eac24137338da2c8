//! Tracks which bytes of which responses the kernel has taken.
//!
//! Responses are queued one behind the other. So one number, the bytes that are queued and not yet taken, says how far
//! the kernel is in all of them. This module does not know drivers or counters.

use std::collections::VecDeque;

use crate::response::{Role, Written};

/// What a connection has queued, response by response.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// Bytes ever queued.
    queued: u64,
    /// Bytes ever reported as taken.
    taken: u64,
    marks: VecDeque<Mark>,
}

/// The position of a response in the queued bytes.
#[derive(Debug)]
struct Mark {
    end: u64,
    body_at: u64,
    /// Body bytes not yet reported.
    body_left: u64,
    role: Role,
}

/// What the kernel has taken since the last call, without the lab's own responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// All bytes.
    pub(crate) bytes: u64,
    /// Bytes of bodies.
    pub(crate) body: u64,
    /// Complete responses to counted requests.
    pub(crate) answered: u64,
}

impl InFlight {
    /// Nothing is queued that the kernel has not taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// A response was queued.
    pub(crate) fn push(&mut self, written: Written, role: Role) {
        let body_at = self.queued + written.before_body;
        self.queued += written.bytes;
        self.marks.push_back(Mark { end: self.queued, body_at, body_left: written.body, role });
    }

    /// The driver still holds `unsent` bytes. Reports what was sent since the last call.
    pub(crate) fn account_sent(&mut self, unsent: usize) -> Progress {
        let taken = self.queued.saturating_sub(unsent as u64);
        let mut progress = Progress::default();
        while let Some(mark) = self.marks.front_mut() {
            let reached = taken.min(mark.end).max(self.taken);
            let mut body = reached.saturating_sub(self.taken.max(mark.body_at)).min(mark.body_left);
            let done = reached == mark.end;
            if done {
                body = mark.body_left;
            }
            mark.body_left -= body;
            if mark.role != Role::Own {
                progress.bytes += reached - self.taken;
                progress.body += body;
                progress.answered += u64::from(done && mark.role == Role::Counted);
            }
            self.taken = reached;
            if !done {
                break;
            }
            self.marks.pop_front();
        }
        progress
    }

    /// Clears everything, for the next connection.
    pub(crate) fn clear(&mut self) {
        self.marks.clear();
        self.marks.shrink_to(64);
        (self.queued, self.taken) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(head: u64, body: u64) -> Written {
        Written { bytes: head + body, body, before_body: head }
    }

    #[test]
    fn chunk_framing_is_no_body_when_the_response_is_complete() {
        let mut sends = InFlight::default();
        sends.push(Written { bytes: 130, body: 16, before_body: 100 }, Role::Counted);
        assert_eq!(sends.account_sent(25), Progress { bytes: 105, body: 5, answered: 0 });
        assert_eq!(sends.account_sent(0), Progress { bytes: 25, body: 11, answered: 1 });
    }

    proptest! {
        #[test]
        fn sums_do_not_depend_on_the_steps(
            responses in proptest::collection::vec((1u64..50, 0u64..50), 1..10),
            steps in proptest::collection::vec(0u64..60, 0..20),
        ) {
            let mut sends = InFlight::default();
            for (head, body) in &responses {
                sends.push(written(*head, *body), Role::Counted);
            }
            let all: u64 = responses.iter().map(|(head, body)| head + body).sum();
            let (mut unsent, mut sum) = (all, Progress::default());
            for step in steps.into_iter().chain([all]) {
                unsent = unsent.saturating_sub(step);
                let progress = sends.account_sent(unsent as usize);
                sum.bytes += progress.bytes;
                sum.body += progress.body;
                sum.answered += progress.answered;
                prop_assert_eq!(sum.bytes, all - unsent);
            }
            prop_assert_eq!(sum.body, responses.iter().map(|(_, body)| body).sum::<u64>());
            prop_assert_eq!(sum.answered, responses.len() as u64);
        }
    }
}
