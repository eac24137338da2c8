//! The last head that was read whole, so that one like it need not be parsed again.
//!
//! It does not know what a head says. It knows the name of one header, whose value is another in each head and means nothing to a parser.

use std::ops::Range;

use super::headers::{FRAMING, Fields};
use crate::request_id::{HeaderFinder, is_plain};

/// Longest head that is remembered, bytes.
const LONGEST: usize = 1024;

/// After so many heads in a row that were unlike the remembered one, only one of [`SELDOM`] is remembered: where all differ, remembering
/// costs more than it saves.
const OFTEN: u32 = 8;
const SELDOM: u32 = 64;

/// The last head of all parsers that share it. Their limits are the same.
#[derive(Debug, Clone)]
pub struct HeadMemo<S> {
    raw: Vec<u8>,
    /// The meaning of `raw`; `None`: it is no head.
    said: Option<(S, Fields)>,
    /// The place of the known header's value in `raw`; another head may have another value there.
    place: Option<Range<usize>>,
    finder: Option<HeaderFinder>,
    /// A parser has to read the known header.
    is_framing: bool,
    /// Heads in a row that were unlike `raw`.
    unlike: u32,
    /// The last head that was read is like `raw`.
    is_last: bool,
}

impl<S: Copy> HeadMemo<S> {
    /// For heads that differ in the value of this header; `None`: in nothing.
    pub fn new(name: Option<&str>) -> HeadMemo<S> {
        let is_framing = |name: &str| FRAMING.iter().any(|known| known.eq_ignore_ascii_case(name.as_bytes()));
        HeadMemo {
            raw: Vec::new(),
            said: None,
            place: None,
            finder: name.map(HeaderFinder::new),
            is_framing: name.is_some_and(is_framing),
            unlike: 0,
            is_last: false,
        }
    }

    /// The head with which the input begins, if it is like the remembered one, and what it says.
    #[inline]
    pub(super) fn recall<'i>(&mut self, input: &'i [u8]) -> Option<(&'i [u8], S, Fields)> {
        let (start, fields) = self.said?;
        let raw = input.get(..self.raw.len())?;
        let same = match &self.place {
            None => raw == self.raw,
            Some(Range { start: from, end: to }) => {
                raw[..*from] == self.raw[..*from] && raw[*to..] == self.raw[*to..] && is_plain(&raw[*from..*to])
            }
        };
        if !same {
            return None;
        }
        (self.unlike, self.is_last) = (0, true);
        Some((raw, start, fields))
    }

    /// A head was read that was not recalled, and says this.
    #[inline(never)]
    pub(super) fn keep(&mut self, raw: &[u8], start: S, fields: Fields) {
        self.unlike = self.unlike.saturating_add(1);
        let is_due = self.unlike <= OFTEN || self.unlike.is_multiple_of(SELDOM);
        self.is_last = is_due && raw.len() <= LONGEST && !self.is_framing;
        if self.is_last {
            self.raw.clear();
            self.raw.extend_from_slice(raw);
            self.said = Some((start, fields));
            self.place = self.find(raw).map(|value| {
                let at = value.as_ptr() as usize - raw.as_ptr() as usize;
                at..at + value.len()
            });
        }
    }

    /// The known header's value in the head that was recalled or kept last.
    #[inline]
    pub(super) fn value<'h>(&mut self, raw: &'h [u8]) -> Option<&'h [u8]> {
        if self.is_last { self.place.clone().map(|place| &raw[place]) } else { self.find(raw) }
    }

    /// The same in any head.
    pub(super) fn find<'h>(&mut self, raw: &'h [u8]) -> Option<&'h [u8]> {
        self.finder.as_mut()?.find(raw)
    }
}
