//! Watches the changes of the product's route, whose numbers are in a header of responses. It keeps the time of the first and of the last
//! response with each number. `protocol` hands over the headers of responses that should have one. `result` adds what the workers saw. The
//! module does not know when changes were made.

use weir_model::change::{CHANGE_HEADER, ChangeSeen};

use crate::clock::to_secs;

/// The responses that one worker saw, by number.
#[derive(Debug, Clone)]
pub(crate) struct ChangeWatch(Box<[Seen]>);

/// Responses with one number.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    first: u64,
    last: u64,
    responses: u64,
}

impl ChangeWatch {
    /// For the numbers from 0 to this one.
    pub(crate) fn new(last: u32) -> ChangeWatch {
        ChangeWatch(vec![Seen::default(); last as usize + 1].into())
    }

    /// The headers of a response came. `false`: none of them has such a number.
    pub(crate) fn record<'h>(&mut self, now: u64, mut headers: impl Iterator<Item = (&'h [u8], &'h [u8])>) -> bool {
        let header = headers.find(|(name, _)| name.eq_ignore_ascii_case(CHANGE_HEADER.as_bytes()));
        let number = header.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse::<usize>().ok());
        let Some(seen) = number.and_then(|number| self.0.get_mut(number)) else { return false };
        if seen.responses == 0 {
            seen.first = now;
        }
        seen.last = now;
        seen.responses += 1;
        true
    }

    /// The sum over all workers. `window`: its start, from which times count.
    pub(crate) fn result<'a>(watches: impl Iterator<Item = &'a ChangeWatch>, window: u64) -> Vec<ChangeSeen> {
        let mut sum = Vec::new();
        let at_s = |at: u64| to_secs(at.saturating_sub(window));
        for watch in watches {
            let seen = (0..).zip(&watch.0).filter(|(_, seen)| seen.responses > 0);
            let seen = seen.map(|(number, &Seen { first, last, responses })| ChangeSeen {
                number,
                first_s: at_s(first),
                last_s: at_s(last),
                responses,
            });
            ChangeSeen::add(&mut sum, &seen.collect::<Vec<_>>());
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    #[test]
    fn the_first_and_the_last_response_with_each_number_are_kept() {
        let mut watch = ChangeWatch::new(2);
        let mut record =
            |now: u64, value: &str| watch.record(now * SECOND, [(&b"X-Weir-Change"[..], value.as_bytes())].into_iter());
        assert_eq!([(3, "0"), (5, "2"), (6, "0"), (7, "2")].map(|(at, value)| record(at, value)), [true; 4]);
        assert_eq!(["3", "-1", "", "two"].map(|value| record(9, value)), [false; 4]);
        assert!(!watch.record(9, std::iter::empty()));
        let seen = ChangeWatch::result([&watch].into_iter(), 4 * SECOND);
        let of = |number, first_s, last_s| ChangeSeen { number, first_s, last_s, responses: 2 };
        assert_eq!(seen, [of(0, 0.0, 2.0), of(2, 1.0, 3.0)]);
    }
}
