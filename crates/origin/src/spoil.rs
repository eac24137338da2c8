//! Answers that are not handed to the driver as they are: made, then cut short, or let out drop by drop.
//!
//! This module does not know which fault is to be done, nor how often.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::answer::Written;
use crate::line::Sink;

/// How often a drip lets something out, if it has that much to let out.
const DRIP_EVERY: Duration = Duration::from_millis(10);

/// An answer's bytes. Bodies that live for ever are not copied.
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

    /// Lets at most `most` bytes out; how many it were.
    pub(crate) fn let_out(&mut self, most: usize, to: &mut impl Sink) -> usize {
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

/// Up to where an answer that is cut short in its head is sent, and up to where one that is cut in its body: half
/// of the body. An answer without a body is cut in its head, for else nothing would be missing.
pub(crate) fn cuts(written: Written) -> (usize, usize) {
    let (all, head) = (written.bytes as usize, written.before_body as usize);
    if all == head { (head / 2, head / 2) } else { (head, head + (all - head) / 2) }
}

/// An answer that is let out slowly.
#[derive(Debug)]
pub(crate) struct Drip {
    /// The answer.
    pub(crate) rendered: Rendered,
    /// The connection closes behind it.
    pub(crate) close: bool,
    /// When the next bytes are due.
    pub(crate) next: Instant,
    step: usize,
    pause: Duration,
}

impl Drip {
    /// Begins now, at so many bytes a second.
    pub(crate) fn new(rendered: Rendered, close: bool, rate: u32) -> Drip {
        let step = (f64::from(rate) * DRIP_EVERY.as_secs_f64()).floor().max(1.0);
        let pause = Duration::from_secs_f64(step / f64::from(rate));
        Drip { rendered, close, next: Instant::now(), step: step as usize, pause }
    }

    /// Lets the next bytes out; how many it were.
    pub(crate) fn drop_out(&mut self, to: &mut impl Sink) -> usize {
        self.next += self.pause;
        self.rendered.let_out(self.step, to)
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
            assert!((1..=step).contains(&rendered.let_out(step, &mut out)));
        }
        assert_eq!(rendered.let_out(step, &mut out), 0);
        out.pieces.iter().flat_map(|piece| piece.rest().to_vec()).collect()
    }

    proptest! {
        #[test]
        fn comes_out_as_it_went_in(parts in proptest::collection::vec((0usize..50, 0usize..50), 0..8), step in 1usize..200) {
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
    fn something_is_always_missing() {
        for (head, body) in [(100, 0), (100, 1), (100, 2), (100, 1000)] {
            let (in_head, in_body) = cuts(Written { bytes: head + body, body, before_body: head });
            assert!(in_head <= in_body && in_body < (head + body) as usize);
        }
    }

    #[test]
    fn drips_have_their_rate() {
        for rate in [1, 7, 99, 100, 1000, 1_000_000] {
            let drip = Drip::new(Rendered::default(), false, rate);
            let per_second = drip.step as f64 / drip.pause.as_secs_f64();
            assert!((per_second / f64::from(rate) - 1.0).abs() < 0.001, "{per_second} for {rate}");
        }
    }
}
