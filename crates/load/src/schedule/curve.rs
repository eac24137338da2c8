//! A rate over time, in straight pieces, and the inverse of its integral.

use std::sync::Arc;

use crate::clock::{NEVER, to_secs};

/// A piece in which the rate is a straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Segment {
    /// Nanoseconds since the start: its begin, and its end, which the next piece begins at.
    begin: u64,
    end: u64,
    /// Requests due before it, and before its end.
    before: f64,
    until: f64,
    /// Requests a second at its begin, and by how much that grows in a second.
    rate: f64,
    slope: f64,
}

/// How near a count must be to a whole number to be taken for it: far more than sums of products of some hundred steps
/// can be off, far less than anybody could notice. So the first request after a pause is due at its end, and not
/// at its begin because of the last binary digit.
const WHOLE: f64 = 1e-6;

/// Pieces from lengths (nanoseconds) and rates at their begins and ends; after the last the rate stays `then`.
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

/// Requests due before a time, of the whole load.
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

/// Goes through the pieces once, forward.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    segments: Arc<[Segment]>,
    /// The piece that the last count lay in, kept here so that the next is found without a look into the list.
    now: Option<Segment>,
    next: usize,
}

impl Curve {
    pub(super) fn new(segments: Arc<[Segment]>) -> Curve {
        Curve { now: segments.first().copied(), segments, next: 1 }
    }

    /// When the integral of the rate reaches `count`: nanoseconds since the start, [`NEVER`] if it does not. Counts must
    /// not go back from call to call. Where the integral stands still, it is the end of the pause.
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
            // The smaller root of slope/2 t^2 + rate t = more, in the form that does not cancel. Where the rate falls
            // to 0, rounding can make the radicand less than 0 by a trifle.
            2.0 * more / (self.rate + (self.rate * self.rate + 2.0 * self.slope * more).max(0.0).sqrt())
        };
        // `as` saturates: what would be due after the end of time is due at the piece's end.
        self.begin.saturating_add((seconds * 1e9).round() as u64).min(self.end)
    }
}
