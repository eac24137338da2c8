//! When requests of an open load are due: pure iterators of nanoseconds since the load's start. `plan` makes the timetable,
//! and `backlog` walks the schedules.
//!
//! A [`Timetable`] is made once from the specification, and gives each thread its [`Schedule`]. Schedules depend only on the
//! specification (rates, spacing, seed) and on the thread's index and the number of threads, never on the clock or on the
//! responses. So they are the same in every run and can be walked twice (see the module `backlog`).
//!
//! - *Constant arrivals*: request k (from 0) is due when the integral of the rate over time reaches k. The time is
//!   computed from k, never from the previous time, so errors do not accumulate. Thread i of n takes every n-th request,
//!   starting with the i-th: all threads together produce the same requests as a single thread.
//! - *Poisson arrivals*: a unit Poisson process whose time is the integral of the rate (time change; Çinlar,
//!   Introduction to Stochastic Processes, 1975, section 4.7). Each thread has a process of its own with 1/n of the
//!   rate; the sum of independent Poisson processes is the Poisson process of the whole rate.
//! - *Replay*: a list of times, of which thread i of n takes every n-th. Where each time has a request of its own, no two times are
//!   the same nanosecond, so that the time says which request it is wherever a request waits or is given back.
//!
//! A load in bursts ([`Bursts`]) has these times while it is on: what falls due later waits for the next burst, at the same distance
//! from its begin.
//!
//! Rates change only inside the window. The warm-up before it uses the first rate, and the time after the profile the last
//! one. A pause is a rate of 0.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_model::load::{OfferedRate, Step};
use weir_model::suite::{Arrivals, LoadKind};

use crate::clock::{MILLI, NEVER, from_secs};
use curve::{Curve, Segment};

mod check;
mod curve;
#[cfg(test)]
mod tests;

pub(crate) use check::{check, check_arrivals};

/// When a load is on and off, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bursts {
    on: u64,
    off: u64,
}

impl From<weir_model::load::Bursts> for Bursts {
    fn from(bursts: weir_model::load::Bursts) -> Bursts {
        Bursts { on: from_secs(bursts.on_s).max(MILLI), off: from_secs(bursts.off_s) }
    }
}

impl Bursts {
    /// When the load has been on for so long; both since its start.
    pub(crate) fn after(self, on_for: u64) -> u64 {
        on_for.saturating_add((on_for / self.on).saturating_mul(self.off))
    }

    /// How long the load has been on at this time, both since its start; where it is off, up to the burst's last nanosecond.
    fn on_for(self, at: u64) -> u64 {
        let (bursts, since) = (at / (self.on + self.off), at % (self.on + self.off));
        bursts * self.on + since.min(self.on - 1)
    }

    /// When the next burst begins if the load is off at this time; both since its start.
    pub(crate) fn next(self, at: u64) -> Option<u64> {
        let each = self.on + self.off;
        (at % each >= self.on).then(|| at - at % each + each)
    }
}

/// The due times of an open load, for all threads together.
#[derive(Debug, Clone)]
pub(crate) enum Timetable {
    /// A constant rate, requests a second.
    Rate(f64, Arrivals),
    /// A rate that changes.
    Curve(Arc<[Segment]>, Arrivals),
    /// Times, nanoseconds since the start, ascending.
    Replay(Arc<[u64]>),
    /// The same, each with its request; all times differ.
    Recorded(Arc<[(u64, u32)]>),
}

impl Timetable {
    /// The timetable of a load that passed [`check()`]; `None` for loads that are not open. Times are in nanoseconds.
    pub(crate) fn new(kind: &LoadKind<OfferedRate>, warmup: u64, duration: u64) -> Option<Timetable> {
        let LoadKind::Open { rate, arrivals } = kind else { return None };
        Some(match rate {
            OfferedRate::Constant(rate) => Timetable::Rate(*rate, *arrivals),
            OfferedRate::Ramp { from, to } => {
                let parts = [(warmup, *from, *from), (duration, *from, *to)];
                Timetable::Curve(curve::segments(&parts, *to), *arrivals)
            }
            OfferedRate::Steps(steps) => {
                let rate_of = |step: Option<&Step>| step.map_or(0.0, |step| step.rate);
                let (first, last) = (rate_of(steps.first()), rate_of(steps.last()));
                let part = |step: &Step| (from_secs(step.for_s), step.rate, step.rate);
                let parts: Vec<_> = [(warmup, first, first)].into_iter().chain(steps.iter().map(part)).collect();
                Timetable::Curve(curve::segments(&parts, last), *arrivals)
            }
            OfferedRate::Replay(due_s) => Timetable::Replay(due_s.iter().map(|s| from_secs(*s)).collect()),
            OfferedRate::Recorded(recorded) => {
                let mut next = 0;
                let apart = recorded.iter().map(|due| {
                    let at = from_secs(due.at_s).max(next);
                    next = at + 1;
                    (at, due.request)
                });
                Timetable::Recorded(apart.collect())
            }
        })
    }

    /// The share of `thread` (0-based) of `threads`. Only Poisson arrivals use `seed`; each thread has its own random
    /// stream.
    pub(crate) fn schedule(&self, seed: u64, thread: u32, threads: u32) -> Schedule {
        let threads = threads.max(1);
        let every = Every { next: u64::from(thread), step: u64::from(threads) };
        let walk = |arrivals| match arrivals {
            Arrivals::Constant => Walk::Even(every),
            Arrivals::Poisson => Walk::Poisson(Box::new(Unit::new(seed, thread, threads))),
        };
        let kind = match self {
            Timetable::Rate(rate, Arrivals::Constant) => Kind::Constant { rate: *rate, every },
            Timetable::Rate(rate, Arrivals::Poisson) => {
                Kind::Poisson { gap: 1e9 / rate, unit: Box::new(Unit::new(seed, thread, threads)) }
            }
            Timetable::Curve(segments, arrivals) => Kind::Curve(Curve::new(segments.clone()), walk(*arrivals)),
            Timetable::Replay(due) => Kind::Replay { due: due.clone(), every },
            Timetable::Recorded(due) => Kind::Recorded { due: due.clone(), every },
        };
        Schedule { kind, bursts: None }
    }

    /// The mean rate in the window, requests a second; with Poisson arrivals, the expected one. Times are in
    /// nanoseconds. The last request of a replay is due at its end.
    pub(crate) fn mean_rate(&self, warmup: u64, duration: u64) -> f64 {
        let end = warmup.saturating_add(duration);
        let count = match self {
            Timetable::Rate(rate, _) => return *rate,
            Timetable::Curve(segments, _) => curve::count(segments, end) - curve::count(segments, warmup),
            Timetable::Replay(due) => due.partition_point(|due| *due <= duration) as f64,
            // Requests that are due together are nanoseconds apart.
            Timetable::Recorded(due) => due.partition_point(|(due, _)| *due <= duration + MILLI) as f64,
        };
        if duration > 0 { count * 1e9 / duration as f64 } else { 0.0 }
    }
}

/// The due times of one thread's share of an open load, in order. After the last, every further one is [`NEVER`].
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    kind: Kind,
    bursts: Option<Bursts>,
}

#[derive(Debug, Clone)]
enum Kind {
    Constant { rate: f64, every: Every },
    Poisson { gap: f64, unit: Box<Unit> },
    Curve(Curve, Walk),
    Replay { due: Arc<[u64]>, every: Every },
    Recorded { due: Arc<[(u64, u32)]>, every: Every },
}

impl Schedule {
    /// The same in bursts.
    pub(crate) fn in_bursts(self, bursts: Option<Bursts>) -> Schedule {
        Schedule { bursts, ..self }
    }

    /// The next due time, nanoseconds since the load's start.
    pub(crate) fn next_due(&mut self) -> u64 {
        let due = self.next_on();
        self.bursts.filter(|_| due != NEVER).map_or(due, |bursts| bursts.after(due))
    }

    /// The same as if the load were always on.
    fn next_on(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Constant { rate, every } => constant(every.next(), *rate),
            Kind::Poisson { gap, unit } => (unit.next() * *gap) as u64,
            Kind::Curve(curve, walk) => curve.due(match walk {
                Walk::Even(every) => every.next() as f64,
                Walk::Poisson(unit) => unit.next(),
            }),
            Kind::Replay { due, every } => every.of(due).copied().unwrap_or(NEVER),
            Kind::Recorded { due, every } => every.of(due).map_or(NEVER, |(due, _)| *due),
        }
    }

    /// Passes over the next times up to `until`, at most so many, and returns how many they were. Only times that are spaced evenly by
    /// the rate can be passed over; of others it passes over none.
    pub(crate) fn skip_until(&mut self, until: u64, most: u64) -> u64 {
        let until = self.bursts.map_or(until, |bursts| bursts.on_for(until));
        match &mut self.kind {
            Kind::Constant { rate, every } => {
                let rate = *rate;
                every.skip_while(until as f64 * rate / 1e9, most, |k| constant(k, rate) <= until)
            }
            Kind::Curve(curve, Walk::Even(every)) => {
                let before = curve.count(until);
                every.skip_while(before, most, |k| curve.clone().due(k as f64) <= until)
            }
            Kind::Poisson { .. } | Kind::Curve(_, Walk::Poisson(_)) | Kind::Replay { .. } | Kind::Recorded { .. } => 0,
        }
    }

    /// The request that is due then, nanoseconds since the load's start; `None` where the time does not say.
    #[inline]
    pub(crate) fn request_at(&self, at: u64) -> Option<u32> {
        let Kind::Recorded { due, .. } = &self.kind else { return None };
        due.binary_search_by_key(&at, |(due, _)| *due).ok().map(|index| due[index].1)
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(self.next_due()).filter(|due| *due != NEVER)
    }
}

/// When request k is due at a constant rate. Rounded to the nearest nanosecond, so that a window of whole seconds holds exactly its
/// share also for rates that a binary fraction cannot express.
#[inline]
fn constant(k: u64, rate: f64) -> u64 {
    (k as f64 * 1e9 / rate).round() as u64
}

/// The values of the rate's integral at which requests are due.
#[derive(Debug, Clone)]
enum Walk {
    Even(Every),
    Poisson(Box<Unit>),
}

/// Every n-th number.
#[derive(Debug, Clone, Copy)]
struct Every {
    next: u64,
    step: u64,
}

impl Every {
    fn next(&mut self) -> u64 {
        let next = self.next;
        self.next += self.step;
        next
    }

    /// Passes over the next numbers as long as they are due, at most so many. `about`: the last that is, but for rounding.
    fn skip_while(&mut self, about: f64, most: u64, due: impl Fn(u64) -> bool) -> u64 {
        let nth = |n: u64| self.next + n * self.step;
        let mut n = ((about as u64 + 1).saturating_sub(self.next).div_ceil(self.step)).min(most);
        while n > 0 && !due(nth(n - 1)) {
            n -= 1;
        }
        while n < most && due(nth(n)) {
            n += 1;
        }
        self.next = nth(n);
        n
    }

    /// The entry of the next number.
    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        usize::try_from(self.next()).ok().and_then(|index| all.get(index))
    }
}

/// A Poisson process with 1/n events per unit of time.
#[derive(Debug, Clone)]
struct Unit {
    at: f64,
    mean_gap: f64,
    random: ChaCha8Rng,
}

impl Unit {
    fn new(seed: u64, thread: u32, threads: u32) -> Unit {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(u64::from(thread));
        Unit { at: 0.0, mean_gap: f64::from(threads), random }
    }

    fn next(&mut self) -> f64 {
        // 1 - [0, 1) is (0, 1], whose logarithm is finite.
        let uniform = 1.0 - self.random.random::<f64>();
        self.at -= uniform.ln() * self.mean_gap;
        self.at
    }
}
