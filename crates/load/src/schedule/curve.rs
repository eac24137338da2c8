//! A rate that changes over time, as pieces of straight lines, and the inverse of its integral. Used by `schedule`.

use std::sync::Arc;

use crate::clock::{NEVER, to_secs};

/// A piece in which the rate changes linearly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Segment {
    /// Its start and its end, nanoseconds since the load's start. The next piece starts at `end`.
    begin: u64,
    end: u64,
    /// The number of requests due before its start, and before its end.
    before: f64,
    until: f64,
    /// The rate at its start, requests a second, and the growth of the rate per second.
    rate: f64,
    slope: f64,
}

/// A count this close to a whole number is rounded to it. It is far above the rounding error of some hundred steps, and
/// far below what matters. It keeps the first request after a pause at the pause's end; without it, rounding could move
/// that request to the pause's start.
const WHOLE: f64 = 1e-6;

/// Makes pieces from lengths (nanoseconds) and the rates at their starts and ends. After the last the rate stays
/// `then`.
pub(super) fn segments(parts: &[(u64, f64, f64)], then: f64) -> Arc<[Segment]> {
    let (mut begin, mut before) = (0u64, 0f64);
    let mut segments = Vec::with_capacity(parts.len() + 1);
    for (length, from, to) in parts.iter().copied().filter(|(length, ..)| *length > 0) {
        let end = begin.saturating_add(length);
        let seconds = to_secs(length);
        let until = whole(before + (from + to) / 2.0 * seconds);
        segments.push(Segment { begin, end, before, until, rate: from, slope: (to - from) / seconds });
        (begin, before) = (end, until);
    }
    let until = if then > 0.0 { f64::INFINITY } else { before };
    segments.push(Segment { begin, end: NEVER, before, until, rate: then, slope: 0.0 });
    segments.into()
}

/// The number of requests of the whole load that are due before a time.
pub(super) fn count(segments: &[Segment], at: u64) -> f64 {
    let index = segments.partition_point(|segment| segment.end <= at).min(segments.len().saturating_sub(1));
    segments.get(index).map_or(0.0, |segment| {
        let seconds = to_secs(at.saturating_sub(segment.begin));
        segment.before + (segment.rate + segment.slope / 2.0 * seconds) * seconds
    })
}

fn whole(count: f64) -> f64 {
    if (count - count.round()).abs() < WHOLE { count.round() } else { count }
}

/// An iteration over the pieces, forward only.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    segments: Arc<[Segment]>,
    /// The piece of the last count, kept here so that the next count rarely needs the list.
    now: Option<Segment>,
    next: usize,
}

impl Curve {
    pub(super) fn new(segments: Arc<[Segment]>) -> Curve {
        Curve { now: segments.first().copied(), segments, next: 1 }
    }

    /// The number of requests of the whole load that are due before a time.
    pub(super) fn count(&self, at: u64) -> f64 {
        count(&self.segments, at)
    }

    /// The time when the integral of the rate reaches `count`, in nanoseconds since the start; [`NEVER`] if it does
    /// not. Counts must not decrease from call to call. Where the integral is constant, the result is the end of the
    /// pause.
    pub(super) fn due(&mut self, count: f64) -> u64 {
        while let Some(now) = self.now {
            if count < now.until {
                return now.due(count);
            }
            self.now = self.segments.get(self.next).copied();
            self.next += 1;
        }
        NEVER
    }
}

impl Segment {
    fn due(&self, count: f64) -> u64 {
        let more = (count - self.before).max(0.0);
        let seconds = if self.slope == 0.0 {
            more / self.rate
        } else if more == 0.0 {
            // The formula below is 0/0 where the rate begins at 0.
            0.0
        } else {
            // The smaller root of slope/2 t^2 + rate t = more, in the form without cancellation. Where the rate falls
            // to 0, rounding can make the radicand slightly negative.
            2.0 * more / (self.rate + (self.rate * self.rate + 2.0 * self.slope * more).max(0.0).sqrt())
        };
        // `as` saturates: a time beyond the range of u64 becomes the piece's end.
        self.begin.saturating_add((seconds * 1e9).round() as u64).min(self.end)
    }
}
