//! Samples the headers of successful responses during a load, to see headers that come, go or change meanwhile. `worker` hands over one response
//! in a thousand and at least one a second; `result` reads what differed. It does not know what the headers mean.
//!
//! Each kind of request has its own reference: the first response in the window. Changes during the warm-up are none of the window. Headers of the connection and of the moment
//! ([`UNSEEN`]) are not looked at. A value that goes back and forth, or takes more than two forms, varies by nature (a time, an
//! identifier), and so do numbers, such as how long the product took: they are no change. A sample that differs in nothing allocates nothing.

use weir_model::load::{HeaderChange, HeaderSamples, RESPONSE_HEADER};

use crate::clock::{SECOND, to_secs};

/// One response of so many is sampled.
const ONE_IN: u32 = 1_000;

/// Headers of the connection and of the moment, and that of names, which [`crate::names`] looks at.
const UNSEEN: [&str; 6] = ["age", "connection", "date", "keep-alive", "transfer-encoding", RESPONSE_HEADER];

/// Samples in a row with a new value from which on it has changed.
const STAYS: u64 = 3;

/// More names that came are not kept.
const MOST_ADDED: usize = 16;

/// The samples of one worker.
#[derive(Debug, Clone)]
pub(crate) struct HeaderWatch {
    left: u32,
    next: u64,
    sampled: u64,
    kinds: Box<[Kind]>,
}

/// What the responses to one kind of request have.
#[derive(Debug, Clone, Default)]
struct Kind {
    known: bool,
    usual: Vec<Usual>,
    added: Vec<Added>,
}

/// A header of the first response.
#[derive(Debug, Clone)]
struct Usual {
    name: Vec<u8>,
    value: Vec<u8>,
    /// The value that came instead, when first, and in how many samples since.
    other: Option<(Vec<u8>, u64, u64)>,
    varies: bool,
    /// Samples without it, and when first.
    missing: u64,
    missed: u64,
    /// It is in the sample under way.
    seen: bool,
}

/// A header that the first response did not have.
#[derive(Debug, Clone)]
struct Added {
    name: Vec<u8>,
    value: Vec<u8>,
    first: u64,
    samples: u64,
}

impl HeaderWatch {
    /// For so many kinds of requests.
    pub(crate) fn new(kinds: usize) -> HeaderWatch {
        HeaderWatch { left: 1, next: 0, sampled: 0, kinds: vec![Kind::default(); kinds].into() }
    }

    /// The window begins: forgets all samples of the warm-up.
    pub(crate) fn begin_window(&mut self) {
        *self = HeaderWatch::new(self.kinds.len());
    }

    /// A successful response's headers came: looks at them if it is time.
    #[inline]
    pub(crate) fn record_response<'h>(
        &mut self,
        kind: u32,
        now: u64,
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || now >= self.next {
            self.sample(kind, now, headers);
        }
    }

    #[cold]
    fn sample<'h>(&mut self, kind: u32, now: u64, headers: impl Iterator<Item = (&'h [u8], &'h [u8])>) {
        let mut headers = headers.peekable();
        // A connection of HTTP/2 that does not keep headers has none: the next that does is sampled.
        if headers.peek().is_none() {
            return;
        }
        (self.left, self.next) = (ONE_IN, now + SECOND);
        self.sampled += 1;
        let kind = &mut self.kinds[kind as usize];
        let seen =
            headers.filter(|(name, _)| !UNSEEN.iter().any(|unseen| name.eq_ignore_ascii_case(unseen.as_bytes())));
        if kind.known { kind.compare(now, seen) } else { kind.begin(seen) }
    }

    /// What all workers saw. `window`: its start, from which times count.
    pub(crate) fn result<'a>(watches: impl Iterator<Item = &'a HeaderWatch>, window: u64) -> HeaderSamples {
        let mut samples = HeaderSamples::default();
        for watch in watches {
            let changes = watch.kinds.iter().flat_map(|kind| kind.changes(window)).collect();
            let location = watch.kinds.iter().find_map(Kind::location);
            samples.add(&HeaderSamples { sampled: watch.sampled, changes, location });
        }
        samples
    }
}

impl Kind {
    fn begin<'h>(&mut self, headers: impl Iterator<Item = (&'h [u8], &'h [u8])>) {
        self.known = true;
        self.usual.extend(headers.map(|(name, value)| Usual {
            name: name.to_ascii_lowercase(),
            value: value.to_vec(),
            other: None,
            varies: false,
            missing: 0,
            missed: 0,
            seen: false,
        }));
    }

    fn compare<'h>(&mut self, now: u64, headers: impl Iterator<Item = (&'h [u8], &'h [u8])>) {
        self.usual.iter_mut().for_each(|usual| usual.seen = false);
        for (name, value) in headers {
            match self.usual.iter_mut().find(|usual| !usual.seen && name.eq_ignore_ascii_case(&usual.name)) {
                Some(usual) => usual.has(value, now),
                None => self.add(name, value, now),
            }
        }
        for usual in self.usual.iter_mut().filter(|usual| !usual.seen) {
            usual.missed = if usual.missing == 0 { now } else { usual.missed };
            usual.missing += 1;
        }
    }

    fn add(&mut self, name: &[u8], value: &[u8], now: u64) {
        if let Some(added) = self.added.iter_mut().find(|added| name.eq_ignore_ascii_case(&added.name)) {
            added.samples += 1;
        } else if self.added.len() < MOST_ADDED {
            let (name, value) = (name.to_ascii_lowercase(), value.to_vec());
            self.added.push(Added { name, value, first: now, samples: 1 });
        }
    }

    fn location(&self) -> Option<String> {
        let location = self.usual.iter().find(|usual| usual.name == b"location")?;
        Some(String::from_utf8_lossy(&location.value).into_owned())
    }

    fn changes(&self, window: u64) -> impl Iterator<Item = HeaderChange> + '_ {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let at_s = move |at: u64| to_secs(at) - to_secs(window);
        let added = self.added.iter().map(move |added| HeaderChange {
            name: text(&added.name),
            was: None,
            is: Some(text(&added.value)),
            at_s: at_s(added.first),
            samples: added.samples,
        });
        let gone = self.usual.iter().filter(|usual| usual.missing > 0).map(move |usual| HeaderChange {
            name: text(&usual.name),
            was: Some(text(&usual.value)),
            is: None,
            at_s: at_s(usual.missed),
            samples: usual.missing,
        });
        let changed = self.usual.iter().filter(|usual| !usual.varies).filter_map(move |usual| {
            let (value, first, samples) = usual.other.as_ref().filter(|(_, _, samples)| *samples >= STAYS)?;
            Some(HeaderChange {
                name: text(&usual.name),
                was: Some(text(&usual.value)),
                is: Some(text(value)),
                at_s: at_s(*first),
                samples: *samples,
            })
        });
        added.chain(gone).chain(changed)
    }
}

impl Usual {
    fn has(&mut self, value: &[u8], now: u64) {
        self.seen = true;
        if self.varies {
            return;
        }
        match &mut self.other {
            None if value == self.value => {}
            None if is_number(value) && is_number(&self.value) => self.varies = true,
            None => self.other = Some((value.to_vec(), now, 1)),
            Some((other, _, samples)) if value == other => *samples += 1,
            Some(_) => self.varies = true,
        }
    }
}

fn is_number(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    type Header = (&'static str, &'static str);

    /// What is seen of a response a second.
    fn watched(responses: &[&[Header]]) -> HeaderSamples {
        let mut watch = HeaderWatch::new(1);
        for (second, headers) in (0..).zip(responses) {
            let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            watch.record_response(0, second * SECOND, headers);
        }
        HeaderWatch::result([&watch].into_iter(), SECOND)
    }

    /// Name, before, after, second, samples.
    type Change = (String, Option<String>, Option<String>, f64, u64);

    fn changes(responses: &[&[Header]]) -> Vec<Change> {
        let change = |c: HeaderChange| (c.name, c.was, c.is, c.at_s, c.samples);
        watched(responses).changes.into_iter().map(change).collect()
    }

    const USUAL: &[Header] = &[("Server", "a"), ("Content-Type", "text/plain"), ("Date", "now")];

    #[test]
    fn the_same_headers_are_no_change() {
        let same: &[Header] =
            &[("content-type", "text/plain"), ("date", "later"), ("server", "a"), ("X-Weir-Origin", "0")];
        let samples = watched(&[USUAL, same, USUAL]);
        assert_eq!((samples.sampled, samples.changes), (3, vec![]));
    }

    #[test]
    fn headers_that_come_go_and_change_are_named() {
        let added: &[Header] = &[("Server", "a"), ("X-Cache", "HIT"), ("Content-Type", "text/plain")];
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(changes(&[USUAL, USUAL, added, added]), [("x-cache".to_owned(), None, text("HIT"), 1.0, 2)]);
        let gone: &[Header] = &[("Server", "a")];
        assert_eq!(changes(&[USUAL, gone, USUAL]), [("content-type".to_owned(), text("text/plain"), None, 0.0, 1)]);
        let other: &[Header] = &[("Server", "b"), ("Content-Type", "text/plain")];
        assert_eq!(changes(&[USUAL, other, other]), [], "too few to be sure");
        assert_eq!(
            changes(&[USUAL, USUAL, other, other, other]),
            [("server".to_owned(), text("a"), text("b"), 1.0, 3)]
        );
        let twice: &[Header] = &[("Server", "a"), ("Server", "a"), ("Content-Type", "text/plain")];
        assert_eq!(changes(&[USUAL, twice]), [("server".to_owned(), None, text("a"), 0.0, 1)]);
    }

    #[test]
    fn what_came_before_the_window_is_no_change_in_it() {
        let mut watch = HeaderWatch::new(1);
        let take = |watch: &mut HeaderWatch, second: u64, value: &'static str| {
            watch.record_response(0, second * SECOND, [(&b"set-cookie"[..], value.as_bytes())].into_iter());
        };
        ["first", "other", "other", "other"]
            .iter()
            .zip(0..)
            .for_each(|(value, second)| take(&mut watch, second, value));
        watch.begin_window();
        (4..8).for_each(|second| take(&mut watch, second, "other"));
        let result = HeaderWatch::result([&watch].into_iter(), 4 * SECOND);
        assert_eq!((result.sampled, result.changes), (4, vec![]));
        (8..11).for_each(|second| take(&mut watch, second, "third"));
        let result = HeaderWatch::result([&watch].into_iter(), 4 * SECOND);
        assert_eq!(result.changes.iter().map(|change| change.at_s).collect::<Vec<_>>(), [4.0]);
    }

    #[test]
    fn what_varies_by_nature_is_no_change() {
        let one: &[Header] = &[("x-time", "0"), ("x-id", "1")];
        let two: &[Header] = &[("x-time", "1"), ("x-id", "2")];
        let three: &[Header] = &[("x-time", "0"), ("x-id", "3")];
        assert_eq!(changes(&[one, two, two, two, three, one, two]), []);
        let slow: &[Header] = &[("x-upstream-time", "1.5")];
        let fast: &[Header] = &[("x-upstream-time", "0")];
        assert_eq!(changes(&[slow, fast, fast, fast]), [], "a number that stays");
    }

    #[test]
    fn one_in_a_thousand_and_one_a_second_is_sampled() {
        let mut watch = HeaderWatch::new(1);
        let mut take = |now: u64| {
            watch.record_response(0, now, [(&b"server"[..], &b"a"[..])].into_iter());
            watch.sampled
        };
        assert_eq!((0..1_001).map(|_| take(5)).last(), Some(2));
        assert_eq!((take(6), take(5 + SECOND), take(6 + SECOND)), (2, 3, 3));
        watch.record_response(0, 9 * SECOND, std::iter::empty());
        assert_eq!(watch.sampled, 3, "headers that were not kept");
    }
}
