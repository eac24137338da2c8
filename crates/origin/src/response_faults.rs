//! Responses that are rendered first, and then cut short or sent in pieces.
//!
//! This module does not know which fault is chosen, or how often.

use std::collections::VecDeque;
use std::time::Duration;

use crate::response::{Echoed, Response, Role, Written};
use crate::transport::Sink;

/// How often a paced response sends something, if it has that much to send.
const DRIP_EVERY: Duration = Duration::from_millis(10);

/// The bytes of a response. Static bodies are not copied.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pieces: VecDeque<Piece>,
    left: usize,
}

#[derive(Debug)]
enum Piece {
    Own { bytes: Vec<u8>, at: usize },
    Static(&'static [u8]),
}

impl Piece {
    fn rest(&self) -> &[u8] {
        match self {
            Piece::Own { bytes, at } => &bytes[*at..],
            Piece::Static(bytes) => bytes,
        }
    }
}

impl Sink for Rendered {
    fn send(&mut self, bytes: &[u8]) {
        self.left += bytes.len();
        match self.pieces.back_mut() {
            Some(Piece::Own { bytes: last, .. }) => last.extend_from_slice(bytes),
            _ => self.pieces.push_back(Piece::Own { bytes: bytes.to_vec(), at: 0 }),
        }
    }

    fn send_with(&mut self, head: &[u8], body: &'static [u8]) {
        self.send(head);
        self.pieces.push_back(Piece::Static(body));
        self.left += body.len();
    }
}

impl Rendered {
    /// Bytes left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Sends at most `most` bytes; returns how many.
    pub(crate) fn write_up_to(&mut self, most: usize, to: &mut impl Sink) -> usize {
        let wanted = most.min(self.left);
        let mut left = wanted;
        while let Some(piece) = self.pieces.front_mut() {
            let size = piece.rest().len();
            let count = size.min(left);
            match piece {
                Piece::Own { bytes, at } => {
                    to.send(&bytes[*at..*at + count]);
                    *at += count;
                }
                Piece::Static(bytes) => {
                    let (first, rest) = bytes.split_at(count);
                    to.send_with(&[], first);
                    *bytes = rest;
                }
            }
            left -= count;
            if count < size {
                break;
            }
            self.pieces.pop_front();
        }
        self.left -= wanted;
        wanted
    }
}

/// Where a response is cut in its head, and where it is cut in its body: after half of the body. A response without a
/// body is cut in its head, because otherwise nothing would be missing.
pub(crate) fn cuts(written: Written) -> (usize, usize) {
    let (all, head) = (written.bytes as usize, written.before_body as usize);
    if all == head { (head / 2, head / 2) } else { (head, head + (all - head) / 2) }
}

/// A response that is sent in pieces: by the clock, or as room comes.
#[derive(Debug)]
pub(crate) struct PacedResponse {
    rendered: Rendered,
    /// The worker's room for what is repeated of the request.
    _room: Echoed,
    /// The connection closes after it.
    pub(crate) close: bool,
    /// How it is counted.
    role: Role,
    head_left: u64,
    body_left: u64,
    step: usize,
    /// The pace by the clock; `None`: as room comes.
    pace: Option<Pace>,
}

/// When the next bytes of a response are sent, to reach a rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    next: u64,
    pause: u64,
    step: usize,
}

impl Pace {
    /// Begins now, at this rate in bytes per second. Times are nanoseconds.
    pub(crate) fn new(rate: u32, now: u64) -> Pace {
        let step = (f64::from(rate) * DRIP_EVERY.as_secs_f64()).floor().max(1.0);
        let pause = (step / f64::from(rate) * 1e9) as u64;
        Pace { next: now, pause, step: step as usize }
    }

    /// When the next bytes are due.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The number of bytes due at a time.
    pub(crate) fn step(&self) -> usize {
        self.step
    }

    /// Records that they were sent.
    pub(crate) fn advance(&mut self) {
        self.next += self.pause;
    }
}

/// Bytes sent at a time while a response waits for room.
const PIECE: usize = 64 << 10;

impl PacedResponse {
    /// Begins now, at this pace.
    pub(crate) fn new(rendered: Rendered, written: Written, response: Response, pace: Pace) -> PacedResponse {
        let drip = PacedResponse::in_pieces(rendered, written, response);
        PacedResponse { step: pace.step(), pace: Some(pace), ..drip }
    }

    /// Sends as fast as room comes.
    pub(crate) fn in_pieces(rendered: Rendered, written: Written, mut response: Response) -> PacedResponse {
        let (close, role) = (response.close, response.role);
        let (head_left, body_left) = (written.before_body, written.body);
        response.echoed.forget_bytes();
        PacedResponse { rendered, _room: response.echoed, close, role, head_left, body_left, step: PIECE, pace: None }
    }

    /// When the next bytes are due; `None`: now.
    pub(crate) fn next(&self) -> Option<u64> {
        self.pace.as_ref().map(Pace::next)
    }

    /// Whether everything is sent.
    pub(crate) fn is_done(&self) -> bool {
        self.rendered.left() == 0
    }

    /// Sends the next bytes. Returns how many, and how they are counted.
    pub(crate) fn write_next(&mut self, to: &mut impl Sink) -> (Written, Role) {
        if let Some(pace) = &mut self.pace {
            pace.advance();
        }
        let bytes = self.rendered.write_up_to(self.step, to) as u64;
        let before_body = self.head_left.min(bytes);
        self.head_left -= before_body;
        let done = self.is_done();
        // Chunk framing is not body: the bytes counted too early are missing at the end.
        let body = if done { self.body_left } else { (bytes - before_body).min(self.body_left) };
        self.body_left -= body;
        let role = if done || self.role == Role::Own { self.role } else { Role::Part };
        (Written { bytes, body, before_body }, role)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::payload::payload;

    fn all(mut rendered: Rendered, step: usize) -> Vec<u8> {
        let mut out = Rendered::default();
        while rendered.left() > 0 {
            assert!((1..=step).contains(&rendered.write_up_to(step, &mut out)));
        }
        assert_eq!(rendered.write_up_to(step, &mut out), 0);
        out.pieces.iter().flat_map(|piece| piece.rest().to_vec()).collect()
    }

    proptest! {
        #[test]
        fn pieces_add_up_to_the_response(parts in proptest::collection::vec((0usize..50, 0usize..50), 0..8), step in 1usize..200) {
            let (mut rendered, mut wanted) = (Rendered::default(), Vec::new());
            for (head, body) in parts {
                rendered.send_with(payload(head), payload(body));
                wanted.extend_from_slice(payload(head));
                wanted.extend_from_slice(payload(body));
            }
            prop_assert_eq!(rendered.left(), wanted.len());
            prop_assert_eq!(all(rendered, step), wanted);
        }
    }

    #[test]
    fn a_cut_response_is_never_complete() {
        for (head, body) in [(100, 0), (100, 1), (100, 2), (100, 1000)] {
            let (in_head, in_body) = cuts(Written { bytes: head + body, body, before_body: head });
            assert!(in_head <= in_body && in_body < (head + body) as usize);
        }
    }
}
