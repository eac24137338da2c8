//! Chooses the next kind of request, and supplies the values of its fields. `plan` makes the choices; each worker has a
//! generator, which the protocols use to encode a request.
//!
//! [`Choices`] are made once from the specification and shared: the kinds of requests of each target, with their
//! weights. A [`Generator`] belongs to one worker: it counts the numbers of `{{seq}}` and holds the buffers that
//! requests are rendered into. A target with one kind of request costs one list access. Several kinds cost a random
//! number: Walker's alias method (ACM TOMS 3 (1977), 253) in whole numbers, which is exact and as fast for many kinds
//! as for two. It does not know connections.

use std::sync::Arc;

use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_model::load::RequestSpec;
use weir_wire::request_id::{REQUEST_ID_LENGTH, RequestId};

/// Random streams with lower numbers are for arrivals, one per thread.
const STREAM: u64 = 1 << 40;

/// The kinds of requests by target. A kind is an index into the specification's requests.
#[derive(Debug)]
pub(crate) struct Choices {
    targets: Vec<Choice>,
    kinds: usize,
}

/// The kinds of requests to one target.
#[derive(Debug)]
enum Choice {
    One(u32),
    Several {
        columns: Vec<Column>,
        /// Units in a column: the sum of the weights.
        height: u64,
    },
}

/// A column of the alias table. All columns have the same height: up to `share` it is kind `own`, above it kind
/// `other`.
#[derive(Debug, Clone, Copy)]
struct Column {
    own: u32,
    other: u32,
    share: u64,
}

impl Choices {
    /// The choices of `targets` targets. Every target has at least one request, and every weight is at least 1.
    pub(crate) fn new(requests: &[RequestSpec], targets: usize) -> Choices {
        let of = |target: usize| {
            let kinds = (0u32..).zip(requests).filter(|(_, request)| request.target as usize == target);
            Choice::new(&kinds.map(|(kind, request)| (kind, request.weight)).collect::<Vec<_>>())
        };
        Choices { targets: (0..targets).map(of).collect(), kinds: requests.len() }
    }
}

impl Choice {
    fn new(kinds: &[(u32, u32)]) -> Choice {
        if let [(kind, _)] = kinds {
            return Choice::One(*kind);
        }
        let height: u64 = kinds.iter().map(|(_, weight)| u64::from(*weight)).sum();
        // There are as many columns as kinds, so each kind has its weight times the number of kinds.
        let columns = kinds.len() as u64;
        let all = kinds.iter().map(|(kind, weight)| (*kind, u64::from(*weight) * columns));
        let (mut low, mut high): (Vec<_>, Vec<_>) = all.partition(|(_, left)| *left < height);
        let mut stacked = Vec::with_capacity(kinds.len());
        while let Some((own, share)) = low.pop() {
            // Shares are whole and sum up to all columns, so a low share always has a high one to pair with.
            let Some((other, left)) = high.pop() else { break };
            stacked.push(Column { own, other, share });
            let left = left - (height - share);
            if left < height { low.push((other, left)) } else { high.push((other, left)) }
        }
        stacked.extend(high.iter().map(|(kind, _)| Column { own: *kind, other: *kind, share: height }));
        Choice::Several { columns: stacked, height }
    }
}

/// One worker's choices and buffers.
#[derive(Debug)]
pub(crate) struct Generator {
    choices: Arc<Choices>,
    random: ChaCha8Rng,
    /// For each kind, the number of its next request on this worker.
    numbers: Vec<u64>,
    /// The number of workers.
    step: u64,
    text: Vec<u8>,
    body: Vec<u8>,
    ends: Vec<usize>,
    list: Vec<u8>,
    /// For each kind of request that never changes but for its ID: the worker's own copy, once there is one.
    copies: Vec<Vec<u8>>,
}

impl Generator {
    /// For worker `thread` of `threads`.
    pub(crate) fn new(choices: Arc<Choices>, seed: u64, thread: u32, threads: u32) -> Generator {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(STREAM + u64::from(thread));
        let numbers = vec![u64::from(thread); choices.kinds];
        let copies = vec![Vec::new(); choices.kinds];
        Generator {
            choices,
            random,
            numbers,
            step: u64::from(threads.max(1)),
            text: Vec::new(),
            body: Vec::new(),
            ends: Vec::new(),
            list: Vec::new(),
            copies,
        }
    }

    /// Chooses the next request to a target: an index into the specification's requests.
    #[inline]
    pub(crate) fn choose(&mut self, target: u32) -> u32 {
        match &self.choices.targets[target as usize] {
            Choice::One(kind) => *kind,
            Choice::Several { columns, height } => choose(&mut self.random, columns, *height),
        }
    }

    /// The field values and buffers for the next request of a kind.
    pub(crate) fn next(&mut self, kind: u32) -> Fields<'_> {
        let number = self.next_number(kind);
        self.text.clear();
        self.body.clear();
        self.ends.clear();
        let Generator { random, text, body, ends, list, .. } = self;
        Fields { number, random, text, body, ends, list }
    }

    /// A request of a kind that is always `bytes`, but for its ID at this place.
    #[inline]
    pub(crate) fn with_id(&mut self, kind: u32, bytes: &[u8], at: usize, id: RequestId) -> &[u8] {
        let copy = &mut self.copies[kind as usize];
        if copy.is_empty() {
            copy.extend_from_slice(bytes);
        }
        copy[at..at + REQUEST_ID_LENGTH].copy_from_slice(&id.text());
        copy
    }

    fn next_number(&mut self, kind: u32) -> u64 {
        let number = &mut self.numbers[kind as usize];
        let next = *number;
        *number = number.wrapping_add(self.step);
        next
    }
}

/// The field values of one request, and empty buffers to render into.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// The request's number, for `{{seq}}`.
    pub number: u64,
    pub random: &'a mut ChaCha8Rng,
    pub text: &'a mut Vec<u8>,
    pub body: &'a mut Vec<u8>,
    pub ends: &'a mut Vec<usize>,
    /// For the headers of which a digest is made.
    pub list: &'a mut Vec<u8>,
}

#[cfg(test)]
impl Generator {
    /// The only worker's.
    pub(crate) fn for_tests(spec: &weir_model::load::LoadSpec) -> Generator {
        Generator::new(Arc::new(Choices::new(&spec.requests, spec.targets.len())), spec.seed, 0, 1)
    }
}

fn choose(random: &mut impl RngCore, columns: &[Column], height: u64) -> u32 {
    let at = random.random_range(0..height * columns.len() as u64);
    let column = columns[(at / height) as usize];
    if at % height < column.share { column.own } else { column.other }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::suite::{Expect, Request};

    use super::*;

    fn ask(target: u32, weight: u32) -> RequestSpec {
        let request = Request { method: "GET".into(), path: "/{{seq}}".into(), headers: vec![], body: vec![] };
        RequestSpec { target, weight, template: true, request, expect: Expect::default() }
    }

    fn generator(requests: &[RequestSpec], targets: usize, seed: u64, thread: u32) -> Generator {
        Generator::new(Arc::new(Choices::new(requests, targets)), seed, thread, 2)
    }

    #[test]
    fn each_target_has_its_own_requests() {
        let requests = [ask(1, 5), ask(0, 1), ask(2, 1), ask(2, 1)];
        let mut generator = generator(&requests, 3, 1, 0);
        for _ in 0..100 {
            assert_eq!(generator.choose(0), 1);
            assert_eq!(generator.choose(1), 0);
            assert!([2, 3].contains(&generator.choose(2)));
        }
    }

    #[test]
    fn shares_are_those_of_the_weights() {
        let weights = [1, 2, 3, 10, 84];
        let requests = weights.map(|weight| ask(0, weight));
        let mut generator = generator(&requests, 1, 7, 0);
        let n = 100_000;
        let mut counts = [0f64; 5];
        for _ in 0..n {
            counts[generator.choose(0) as usize] += 1.0;
        }
        for (weight, count) in weights.iter().zip(counts) {
            let share = f64::from(*weight) / 100.0;
            let expected = share * f64::from(n);
            let deviation = (expected * (1.0 - share)).sqrt();
            assert!((count - expected).abs() < 5.0 * deviation, "weight {weight} came {count} times");
        }
    }

    #[test]
    fn choices_repeat_by_seed_and_differ_by_thread() {
        let requests = [ask(0, 1), ask(0, 1)];
        let take = |seed, thread| {
            let mut generator = generator(&requests, 1, seed, thread);
            (0..64).map(|_| generator.choose(0)).collect::<Vec<_>>()
        };
        assert_eq!(take(1, 0), take(1, 0));
        assert_ne!(take(1, 0), take(2, 0));
        assert_ne!(take(1, 0), take(1, 1));
    }

    #[test]
    fn threads_share_out_the_numbers_of_each_kind() {
        let requests = [ask(0, 1), ask(0, 1)];
        let take = |generator: &mut Generator, kind| generator.next(kind).number;
        let mut first = generator(&requests, 1, 1, 0);
        let mut second = generator(&requests, 1, 1, 1);
        assert_eq!([0, 1, 0, 1, 0].map(|kind| take(&mut first, kind)), [0, 0, 2, 2, 4]);
        assert_eq!([0, 0, 1].map(|kind| take(&mut second, kind)), [1, 3, 1]);
    }

    proptest! {
        #[test]
        fn columns_hold_exactly_the_weights(weights in proptest::collection::vec(1u32.., 2..20)) {
            let kinds: Vec<(u32, u32)> = (0u32..).zip(weights.iter().copied()).collect();
            let Choice::Several { columns, height } = Choice::new(&kinds) else { panic!("more than one kind") };
            prop_assert_eq!(columns.len(), weights.len());
            let mut gathering = vec![0u64; weights.len()];
            for column in &columns {
                prop_assert!(column.share <= height);
                gathering[column.own as usize] += column.share;
                gathering[column.other as usize] += height - column.share;
            }
            for (gathering, weight) in gathering.iter().zip(&weights) {
                prop_assert_eq!(*gathering, u64::from(*weight) * weights.len() as u64);
            }
        }
    }
}
