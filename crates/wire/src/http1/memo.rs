//! The last head that was read whole, so that one like it need not be parsed again.
//!
//! It does not know what a head says. Of its headers it knows one by name, whose value is another in each head and means nothing to a
//! parser.

use std::ops::Range;

use super::headers::{FRAMING, Fields};
use crate::request_id::{HeaderFinder, is_plain};

/// Longest head that is remembered, bytes.
const LONGEST: usize = 1024;

/// The last head of all parsers that share it. Their limits are the same.
#[derive(Debug, Clone)]
pub struct HeadMemo<S> {
    raw: Vec<u8>,
    /// What `raw` says; `None`: it is no head.
    said: Option<(S, Fields)>,
    /// Where the known header's value is in `raw`, which may be another.
    place: Option<Range<usize>>,
    finder: HeaderFinder,
    /// A parser has to read the known header.
    is_framing: bool,
}

impl<S: Copy> HeadMemo<S> {
    /// For heads that differ in the value of this header.
    pub fn new(name: &str) -> HeadMemo<S> {
        let is_framing = FRAMING.iter().any(|known| known.eq_ignore_ascii_case(name.as_bytes()));
        HeadMemo { raw: Vec::new(), said: None, place: None, finder: HeaderFinder::new(name), is_framing }
    }

    /// The head with which the input begins, if it is like the last one, and what it says.
    #[inline]
    pub(super) fn recall<'i>(&self, input: &'i [u8]) -> Option<(&'i [u8], S, Fields)> {
        let (start, fields) = self.said?;
        let raw = input.get(..self.raw.len())?;
        let same = match &self.place {
            None => raw == self.raw,
            Some(Range { start: from, end: to }) => {
                raw[..*from] == self.raw[..*from] && raw[*to..] == self.raw[*to..] && is_plain(&raw[*from..*to])
            }
        };
        same.then_some((raw, start, fields))
    }

    /// Remembers a head that says this.
    #[inline(never)]
    pub(super) fn keep(&mut self, raw: &[u8], start: S, fields: Fields) {
        self.raw.clear();
        self.said = (raw.len() <= LONGEST && !self.is_framing).then_some((start, fields));
        if self.said.is_some() {
            self.raw.extend_from_slice(raw);
            self.place = self.finder.find(raw).map(|value| {
                let at = value.as_ptr() as usize - raw.as_ptr() as usize;
                at..at + value.len()
            });
        }
    }

    /// The known header's value in the head that was recalled or kept last.
    #[inline]
    pub(super) fn value<'h>(&mut self, raw: &'h [u8]) -> Option<&'h [u8]> {
        match &self.said {
            Some(_) => self.place.clone().map(|place| &raw[place]),
            None => self.find(raw),
        }
    }

    /// The same in any head.
    pub(super) fn find<'h>(&mut self, raw: &'h [u8]) -> Option<&'h [u8]> {
        self.finder.find(raw)
    }
}
