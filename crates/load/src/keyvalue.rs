//! What a load asks of a key-value server, and whether the responses are right. The protocols of key-value servers
//! (`protocol`) encode what [`Requests::next`] returns, and tell [`Requests::finish`] what the server said.
//!
//! A connection goes through the mix of operations in turn. Its keys are its own ([`keys`]), so that it knows what each read
//! has to return, and values tell whose they are ([`value`]). Keys survive a lost connection: the slot's next one has them.
//! With `share` all connections use all keys, and nothing is known of them. This module does not know bytes on the wire.
//!
//! A key is a number. Those of a known set, and those that are written before the load, count from 0. Fresh ones have a part
//! that differs from load to load in their upper bits, so that a load never finds the keys of another.

pub(crate) mod keys;
pub(crate) mod value;

use std::sync::Arc;
use std::time::Duration;

use rand::RngCore;
use rand_distr::{Distribution, Zipf};
use weir_model::keyvalue::{KeyChoice, Operation, Resolution, ValueSize, below};
use weir_model::load::{ErrorKind, LoadSpec};

use crate::clock::MILLI;
use crate::error::SpecError;
use crate::generator::Fields;
use crate::protocol::Instance;
use keys::{InFlight, Keys, Lives, Outcome, Times};
use value::Values;

/// Bits of a key's number that count keys; those above them differ from load to load.
pub(crate) const COUNT_BITS: u32 = 36;

/// Bytes of a response beside its value.
const AROUND: usize = 64 * 1024;

/// What a protocol does with lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Where the load names none, values live so long at least, seconds; `u32::MAX`: for ever.
    pub ttl: u32,
    /// A read lets a value live as long again, where the load names a life.
    pub extended_by_reads: bool,
}

/// The requests of a key-value load. Each worker has a clone.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub values: Values,
    /// The longest message that a server may send, bytes.
    pub longest_response: usize,
    order: Arc<Order>,
    lives: Lives,
    /// The time to live that requests ask for.
    ttl: Option<Duration>,
    /// How long before its begin the first of the load's keys may have been written, ms.
    preloaded: u32,
}

/// What does not change.
#[derive(Debug)]
struct Order {
    /// The operations, each with how often it comes in a row; their index is the kind of request.
    mix: Vec<(Operation, u32)>,
    /// The sum of these.
    turns: u64,
    size: ValueSize,
    choice: KeyChoice,
    /// How many keys the known set has.
    known: u64,
    /// How many were written before the load.
    preload: u64,
    /// Other clients wrote some of them, at times that this one does not know.
    preloaded_elsewhere: bool,
    /// When the load began, and keys that were written before it were all there, by the run's clock.
    begun: u64,
    share: bool,
    /// A set makes a fresh key, because nothing else does.
    sets_make_keys: bool,
    /// Connections at most.
    connections: u64,
    first_fresh: u64,
    /// Picks ranks from 1 among the keys of a connection that has most, or among all where they are shared.
    zipf: Option<Zipf<f64>>,
}

/// What is known on one connection, and on the slot's later ones.
#[derive(Debug, Default)]
pub(crate) struct State {
    keys: Keys,
    /// The operation that is next, and how often it has come in this row.
    kind: u32,
    done: u32,
    /// The key that is next of a known set that is used one after the other.
    cursor: u32,
    /// The place of the next request's key, drawn one request ahead so that the key is in the cache by then.
    drawn: Option<u32>,
}

/// A request to be encoded.
#[derive(Debug)]
pub(crate) struct Next {
    pub key: InFlight,
    /// Length of the value, bytes; 0: it has none.
    pub length: usize,
}

impl Requests {
    /// # Errors
    /// What is wrong with the load, as text for people.
    pub(crate) fn new(spec: &LoadSpec, rules: Rules, instance: Instance) -> Result<Requests, SpecError> {
        let keyvalue = spec.keyvalue.as_ref().ok_or("a load of keys and values does not say which")?;
        let connections = u64::from(spec.max_connections.unwrap_or(spec.connections));
        let mix = spec
            .requests
            .iter()
            .map(|request| Ok((request.request.method.parse()?, request.weight)))
            .collect::<Result<Vec<(Operation, u32)>, SpecError>>()?;
        let known = keyvalue.known();
        let of_one = if keyvalue.share { known } else { known.div_ceil(connections) };
        let zipf = match keyvalue.keys {
            KeyChoice::Zipf(power) => Some(Zipf::new(of_one as f64, power).map_err(|error| error.to_string())?),
            _ => None,
        };
        let application = spec.protocol.application();
        let ttl = keyvalue.ttl.map(|ttl| application.whole_ttl(ttl));
        let order = Order {
            turns: mix.iter().map(|(_, weight)| u64::from(*weight)).sum(),
            size: keyvalue.value.clone(),
            choice: keyvalue.keys,
            known,
            preload: keyvalue.preload,
            preloaded_elsewhere: spec.part.is_some(),
            begun: instance.now,
            share: keyvalue.share,
            sets_make_keys: mix.iter().all(|(operation, _)| *operation != Operation::Create),
            connections,
            first_fresh: (scramble(instance.nonce) | 1) << COUNT_BITS,
            zipf,
            mix,
        };
        let resolution = Resolution::of(application, ttl.unwrap_or_default());
        let lives = Lives {
            least: ttl
                .map_or(rules.ttl.saturating_mul(1_000), |ttl| u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX)),
            ends: ttl.is_some(),
            extended_by_reads: rules.extended_by_reads && ttl.is_some(),
            early: resolution.early.as_millis() as u32,
            late: resolution.late.as_millis() as u32,
        };
        let longest = keyvalue.value.range().1 as usize;
        let values = Values::new(longest, spec.seed);
        Ok(Requests { values, longest_response: longest + AROUND, order: Arc::new(order), lives, ttl, preloaded: 0 })
    }

    /// What the operations are, in the order of their kinds.
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation> {
        self.order.mix.iter().map(|(operation, _)| *operation)
    }

    /// The time to live that requests ask for, if they ask for one, in what the protocol counts.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// The length of all values, bytes, where they have one.
    #[inline]
    pub(crate) fn length(&self) -> Option<usize> {
        match self.order.size {
            ValueSize::Fixed(size) => Some(size as usize),
            _ => None,
        }
    }

    /// Keys were written before the load, and that took so long.
    pub(crate) fn preloaded(&mut self, took: Duration) {
        self.preloaded = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
    }

    /// A slot's first connection, number `connection` of all.
    pub(crate) fn start(&self, connection: u32) -> State {
        let order = &*self.order;
        let connection = u64::from(connection);
        let owned = |from: u64, to: u64| {
            // The first number from `from` on that is this connection's.
            let first = from + (connection + order.connections - from % order.connections) % order.connections;
            (first..to).step_by(order.connections as usize)
        };
        let mut keys = Keys::fresh(order.first_fresh + connection);
        if !order.share {
            let ends = (self.lives.least.saturating_sub(self.preloaded), self.lives.least);
            keys.add_known(owned(0, order.preload), Some(ends));
            if order.preloaded_elsewhere {
                keys.doubt_ends();
            }
            keys.add_known(owned(order.preload, order.known), None);
        }
        let mut state = State { keys, ..State::default() };
        if order.choice == KeyChoice::Fresh {
            state.keys.idle_all();
        }
        if order.preload > 0 && order.preload >= order.known {
            // All have keys from the beginning, and each begins elsewhere.
            self.begin_at(&mut state, connection % order.turns);
        }
        state
    }

    fn begin_at(&self, state: &mut State, mut turn: u64) {
        for (kind, (_, weight)) in (0..).zip(&self.order.mix) {
            if turn < u64::from(*weight) {
                (state.kind, state.done) = (kind, turn as u32);
                return;
            }
            turn -= u64::from(*weight);
        }
    }

    /// The kind of a connection's next request.
    #[inline]
    pub(crate) fn choose(&self, state: &mut State) -> u32 {
        let kind = state.kind;
        state.done += 1;
        if state.done >= self.order.mix[kind as usize].1 {
            state.done = 0;
            state.kind = if kind as usize + 1 == self.order.mix.len() { 0 } else { kind + 1 };
        }
        kind
    }

    /// A connection's next request, of this kind.
    #[inline]
    pub(crate) fn next(&self, state: &mut State, kind: u32, fields: &mut Fields<'_>) -> Next {
        let order = &*self.order;
        let operation = order.mix[kind as usize].0;
        let keys = &mut state.keys;
        let key = if order.share {
            let number = self.place(order.known, fields.number, fields.random);
            InFlight { number, version: 1, index: 0, operation }
        } else if order.choice == KeyChoice::Fresh {
            let makes = operation == Operation::Create || (operation == Operation::Set && order.sets_make_keys);
            match keys.idle() {
                // Where there is none, one that was never written has to be absent.
                0 => keys.make(order.connections, operation),
                _ if makes => keys.make(order.connections, operation),
                idle => {
                    // There may be fewer idle keys than when it was drawn.
                    let drawn = state.drawn.take().filter(|place| (*place as usize) < idle);
                    let place = drawn.unwrap_or_else(|| below(fields.random.next_u64(), idle as u64) as u32);
                    let key = keys.pick_idle(place as usize, operation);
                    state.drawn = (idle > 1).then(|| below(fields.random.next_u64(), idle as u64 - 1) as u32);
                    state.drawn.inspect(|place| keys.prefetch_idle(*place as usize));
                    key
                }
            }
        } else {
            let owned = keys.len() as u64;
            let draw = |cursor: &mut u32, random: &mut _| {
                let place = self.place(owned, u64::from(*cursor), random) as u32;
                *cursor = if u64::from(*cursor) + 1 == owned { 0 } else { *cursor + 1 };
                place
            };
            let place = state.drawn.unwrap_or_else(|| draw(&mut state.cursor, fields.random));
            let next = draw(&mut state.cursor, fields.random);
            keys.prefetch(next as usize);
            state.drawn = Some(next);
            keys.pick_at(place as usize, operation)
        };
        let length = match operation.writes() {
            true => match &order.size {
                ValueSize::Fixed(size) => *size,
                sizes => sizes.at(fields.random.next_u64()),
            },
            false => 0,
        };
        Next { key, length: length as usize }
    }

    /// A place among so many keys, of which the next in turn would be `turn`.
    #[inline]
    fn place(&self, keys: u64, turn: u64, random: &mut impl RngCore) -> u64 {
        match (&self.order.choice, &self.order.zipf) {
            (KeyChoice::Uniform, _) => below(random.next_u64(), keys),
            (KeyChoice::Zipf(_), Some(zipf)) => loop {
                // Some connections have one key less.
                let rank = zipf.sample(random) as u64;
                if (1..=keys).contains(&rank) {
                    return rank - 1;
                }
            },
            _ => turn % keys,
        }
    }

    /// The response to a request came at `now`; `sent` is when it was sent. Both are of the run's clock.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub(crate) fn finish(
        &self,
        state: &mut State,
        done: &InFlight,
        outcome: Outcome,
        sent: u64,
        now: u64,
    ) -> Result<(), ErrorKind> {
        if self.order.share {
            return if outcome == Outcome::Found(0) { Err(ErrorKind::WrongValue) } else { Ok(()) };
        }
        let since = |time: u64| u32::try_from(time.saturating_sub(self.order.begun) / MILLI).unwrap_or(u32::MAX);
        let times = Times { sent: since(sent), received: since(now) };
        let verdict = state.keys.finish(done, outcome, times, &self.lives);
        if self.order.choice == KeyChoice::Fresh {
            state.keys.keep_or_forget(done);
        }
        verdict
    }

    /// Has what is known of a key fetched from memory, because its response is next.
    #[inline]
    pub(crate) fn prefetch(&self, state: &State, next: &InFlight) {
        if !self.order.share {
            state.keys.prefetch(next.index as usize);
        }
    }

    /// A request ended without a response; whether it was carried out is not known.
    pub(crate) fn fail(&self, state: &mut State, done: &InFlight) {
        // A failure is never wrong, whenever it is.
        let _ = self.finish(state, done, Outcome::Failed, 0, 0);
    }
}

/// What differs from load to load, in as many bits as a key's number has for it.
pub(crate) fn scramble(nonce: u64) -> u64 {
    nonce.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> COUNT_BITS
}

/// The digits of a key's number: 16, hexadecimal.
#[inline]
pub(crate) fn digits(number: u64) -> [u8; 16] {
    let mut text = [0; 16];
    text[..8].copy_from_slice(&eight_digits(number >> 32));
    text[8..].copy_from_slice(&eight_digits(number & 0xFFFF_FFFF));
    text
}

/// The digits of a number below 2^32, all at once: a request would notice a loop.
#[inline]
fn eight_digits(mut number: u64) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // One digit in each byte.
    number = (number | number << 16) & 0x0000_FFFF_0000_FFFF;
    number = (number | number << 8) & 0x00FF_00FF_00FF_00FF;
    number = (number | number << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    // 1 in each byte that is 10 or more.
    let letters = (number + 6 * ONES) >> 4 & ONES;
    (number + u64::from(b'0') * ONES + u64::from(b'a' - b'0' - 10) * letters).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn digits_are_hexadecimal() {
        for number in [0, 9, 10, 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210, u64::MAX] {
            assert_eq!(digits(number), *format!("{number:016x}").as_bytes());
        }
    }
}
