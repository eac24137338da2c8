//! Finds the lines of a head, whether it arrives in one slice or byte by byte.
//!
//! A head that is complete in the caller's slice is parsed in place, line by line, in one pass. Otherwise it is
//! copied to a [`Spill`] together with what its first lines said. Both ways check a head line by line, so that how
//! the network splits it cannot change the outcome.
//!
//! It does not know what a start line says ([`StartLine`] does) or what follows a head.

use super::headers::Fields;
use super::memo::HeadMemo;
use super::{Limits, ParseError};

/// A status line or a request line.
pub(super) trait StartLine: Copy {
    /// Whether it is a request line.
    const REQUEST: bool;

    /// Parses a complete line, with its line end.
    fn parse(line: &[u8]) -> Result<Self, ParseError>;

    /// Rejects the beginning of a line that can never become valid, so that a peer that speaks something else (TLS,
    /// HTTP/2) is distinguished from a slow one. It rejects only what [`StartLine::parse`] would reject, too.
    fn begin(beginning: &[u8]) -> Result<(), ParseError>;
}

/// What the lines of a head have said so far.
#[derive(Debug)]
struct Lines<S> {
    start: Option<S>,
    fields: Fields,
}

impl<S: StartLine> Lines<S> {
    fn new() -> Lines<S> {
        Lines { start: None, fields: Fields::default() }
    }

    /// Processes a complete line. Returns the start line when this was the empty line at the end.
    #[inline]
    fn add(&mut self, line: &[u8], limits: &Limits) -> Result<Option<S>, ParseError> {
        match self.start {
            None => self.start = Some(S::parse(line)?),
            Some(start) if line == b"\r\n" => return Ok(Some(start)),
            Some(_) => self.fields.add(line, limits.headers, S::REQUEST)?,
        }
        Ok(None)
    }

    /// Checks an incomplete line, as far as possible.
    fn judge_part(&self, part: &[u8]) -> Result<(), ParseError> {
        if self.start.is_none() { S::begin(part) } else { Ok(()) }
    }
}

/// Where the bytes of a complete head are.
#[derive(Debug)]
pub(super) enum Place<'i> {
    /// In the caller's slice.
    Input(&'i [u8]),
    /// In the spill buffer.
    Spill,
}

/// A complete head.
#[derive(Debug)]
pub(super) struct Head<'i, S> {
    pub(super) start: S,
    pub(super) fields: Fields,
    pub(super) place: Place<'i>,
}

/// Bytes of a head or line that the slice did not complete.
#[derive(Debug)]
struct Spill<S> {
    bytes: Vec<u8>,
    /// Where the unfinished line begins.
    line: usize,
    lines: Lines<S>,
    /// Whether `bytes` is incomplete. If not, it is what was returned last.
    partial: bool,
}

/// A connection's storage for an unfinished head or line. It is empty until one is needed, and again when the message has ended.
#[derive(Debug)]
pub(super) struct Store<S>(Option<Box<Spill<S>>>);

impl<S: StartLine> Store<S> {
    pub(super) fn new() -> Store<S> {
        Store(None)
    }

    /// Whether it holds something unfinished.
    pub(super) fn partial(&self) -> bool {
        self.0.as_ref().is_some_and(|spill| spill.partial)
    }

    /// The bytes of the head that was read last, and the value in it of the header that the memo knows.
    #[inline]
    pub(super) fn head<'s, 'i: 's>(
        &'s self,
        place: Place<'i>,
        memo: Option<&mut HeadMemo<S>>,
    ) -> (&'s [u8], Option<&'s [u8]>) {
        match place {
            Place::Input(raw) => (raw, memo.and_then(|memo| memo.value(raw))),
            Place::Spill => {
                let raw = self.0.as_ref().map_or(&[][..], |spill| &spill.bytes);
                (raw, memo.and_then(|memo| memo.find(raw)))
            }
        }
    }

    /// A message has ended: frees the buffer. Heads are seldom split; where connections kept what one such head needed, each would
    /// have one in time, and memory would grow for hours.
    pub(super) fn message_ended(&mut self) {
        if self.0.as_ref().is_some_and(|spill| !spill.partial) {
            self.0 = None;
        }
    }

    /// The spill buffer, emptied unless it holds something unfinished.
    fn open(&mut self) -> &mut Spill<S> {
        let spill = self
            .0
            .get_or_insert_with(|| Box::new(Spill { bytes: Vec::new(), line: 0, lines: Lines::new(), partial: false }));
        if !spill.partial {
            spill.bytes.clear();
            spill.line = 0;
            spill.lines = Lines::new();
            spill.partial = true;
        }
        spill
    }

    /// Reads a head. `None`: all of `input` was used, and the head continues.
    #[inline]
    pub(super) fn read_head<'i>(
        &mut self,
        input: &mut &'i [u8],
        limits: &Limits,
        mut memo: Option<&mut HeadMemo<S>>,
    ) -> Result<Option<Head<'i, S>>, ParseError> {
        if self.partial() {
            return self.continue_head(input, limits);
        }
        let all: &'i [u8] = input;
        if let Some((raw, start, fields)) = memo.as_mut().and_then(|memo| memo.recall(all)) {
            *input = &all[raw.len()..];
            return Ok(Some(Head { start, fields, place: Place::Input(raw) }));
        }
        self.read_new_head(input, limits, memo)
    }

    #[inline]
    fn read_new_head<'i>(
        &mut self,
        input: &mut &'i [u8],
        limits: &Limits,
        memo: Option<&mut HeadMemo<S>>,
    ) -> Result<Option<Head<'i, S>>, ParseError> {
        let all: &'i [u8] = input;
        let limit = limits.head_bytes as usize;
        let window = &all[..all.len().min(limit)];
        let mut lines = Lines::new();
        let mut at = 0;
        while let Some(end) = memchr::memchr(b'\n', &window[at..]) {
            let next = at + end + 1;
            if let Some(start) = lines.add(&window[at..next], limits)? {
                let (raw, rest) = all.split_at(next);
                *input = rest;
                let fields = lines.fields;
                if let Some(memo) = memo {
                    memo.keep(raw, start, fields);
                }
                return Ok(Some(Head { start, fields, place: Place::Input(raw) }));
            }
            at = next;
        }
        lines.judge_part(&window[at..])?;
        if window.len() == limit {
            return Err(ParseError::HeadTooLarge(limits.head_bytes));
        }
        let spill = self.open();
        spill.bytes.extend_from_slice(window);
        spill.line = at;
        spill.lines = lines;
        *input = &all[all.len()..];
        Ok(None)
    }

    /// Continues a head in the spill buffer, a line at a time.
    #[cold]
    fn continue_head<'i>(&mut self, input: &mut &'i [u8], limits: &Limits) -> Result<Option<Head<'i, S>>, ParseError> {
        let spill = self.open();
        let limit = limits.head_bytes as usize;
        loop {
            let complete = spill.take_line_part(input, limit);
            let line = &spill.bytes[spill.line..];
            if complete {
                if let Some(start) = spill.lines.add(line, limits)? {
                    spill.partial = false;
                    let fields = spill.lines.fields;
                    return Ok(Some(Head { start, fields, place: Place::Spill }));
                }
                spill.line = spill.bytes.len();
            } else {
                spill.lines.judge_part(line)?;
                if spill.bytes.len() == limit {
                    return Err(ParseError::HeadTooLarge(limits.head_bytes));
                }
                return Ok(None);
            }
        }
    }

    /// Reads one line of at most `limit` bytes with its line end, and passes it to `read`. `None`: all of `input` was
    /// used, and the line continues.
    #[inline]
    pub(super) fn read_line<R>(
        &mut self,
        input: &mut &[u8],
        limit: usize,
        too_long: ParseError,
        read: impl FnOnce(&[u8]) -> Result<R, ParseError>,
    ) -> Result<Option<R>, ParseError> {
        if input.is_empty() {
            return Ok(None);
        }
        if !self.partial() {
            let window = &input[..input.len().min(limit)];
            if let Some(end) = memchr::memchr(b'\n', window) {
                let (line, rest) = input.split_at(end + 1);
                *input = rest;
                return read(line).map(Some);
            }
        }
        let spill = self.open();
        if spill.take_line_part(input, limit) {
            spill.partial = false;
            return read(&spill.bytes).map(Some);
        }
        if spill.bytes.len() == limit { Err(too_long) } else { Ok(None) }
    }
}

impl<S> Spill<S> {
    /// Moves bytes from `input`, up to the end of the line and to `limit` bytes in all. Returns true when the line is
    /// complete. When it is not and there is room left, `input` is empty.
    fn take_line_part(&mut self, input: &mut &[u8], limit: usize) -> bool {
        let room = limit - self.bytes.len();
        let window = &input[..input.len().min(room)];
        let end = memchr::memchr(b'\n', window);
        let (part, rest) = input.split_at(end.map_or(window.len(), |end| end + 1));
        self.bytes.extend_from_slice(part);
        *input = rest;
        end.is_some()
    }
}
