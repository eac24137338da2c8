//! Server-sent events (HTML Standard, section 9.2): the events of a body of type `text/event-stream`, however it is split.
//!
//! Pull it: call [`Parser::next`] with a slice, take events until there are none, and go on with the next slice. Data of an event is
//! copied once, into a buffer with a bound; a parser that waits between events holds no more than the largest event took.
//!
//! It does not know HTTP, nor what the data says. `retry` is skipped, since reconnecting is the caller's.

use std::mem;

use thiserror::Error;

/// The type of a body that has events.
pub const CONTENT_TYPE: &str = "text/event-stream";

/// The largest event, and the largest line, bytes.
pub const MOST_EVENT_BYTES: usize = 1 << 20;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// An event or a line is larger than [`MOST_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an event of more than {MOST_EVENT_BYTES} bytes")]
pub struct TooLarge;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name; empty where it has none (`message`).
    pub name: &'a [u8],
    /// Its data: the values of its `data` fields, with line feeds between them.
    pub data: &'a [u8],
}

/// The reader of one body.
#[derive(Debug, Default)]
pub struct Parser {
    /// The beginning of a line that was split.
    line: Vec<u8>,
    /// What the event under way has so far, with a line feed behind each value.
    data: Vec<u8>,
    name: Vec<u8>,
    /// The first line has come, and the byte order mark that may stand before it.
    begun: bool,
    /// The last line ended with a carriage return: a line feed behind it belongs to it.
    after_return: bool,
    /// The event in `data` has been returned.
    returned: bool,
    /// It was too large.
    failed: bool,
}

impl Parser {
    /// Begins a new body.
    pub fn reset(&mut self) {
        let (mut line, mut data, mut name) =
            (mem::take(&mut self.line), mem::take(&mut self.data), mem::take(&mut self.name));
        [&mut line, &mut data, &mut name].into_iter().for_each(Vec::clear);
        *self = Parser { line, data, name, ..Parser::default() };
    }

    /// Takes bytes from `input` up to the next event; `None` when all were taken and no event is complete.
    ///
    /// # Errors
    /// [`TooLarge`]; the body cannot be read further, and the error stays.
    pub fn next<'a>(&'a mut self, input: &mut &[u8]) -> Result<Option<Event<'a>>, TooLarge> {
        match self.advance(input) {
            Ok(true) => Ok(Some(Event { name: &self.name, data: &self.data[..self.data.len() - 1] })),
            Ok(false) => Ok(None),
            Err(error) => {
                self.failed = true;
                Err(error)
            }
        }
    }

    /// Whether an event is complete.
    fn advance(&mut self, input: &mut &[u8]) -> Result<bool, TooLarge> {
        if self.failed {
            return Err(TooLarge);
        }
        if mem::take(&mut self.returned) {
            self.data.clear();
            self.name.clear();
        }
        loop {
            if self.after_return
                && let Some(first) = input.first()
            {
                self.after_return = false;
                *input = &input[usize::from(*first == b'\n')..];
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else {
                keep(&mut self.line, mem::take(input))?;
                return Ok(false);
            };
            let (line, rest) = input.split_at(end);
            self.after_return = rest[0] == b'\r';
            *input = &rest[1..];
            self.returned = if self.line.is_empty() {
                self.take_line(line)?
            } else {
                keep(&mut self.line, line)?;
                let mut whole = mem::take(&mut self.line);
                let complete = self.take_line(&whole)?;
                whole.clear();
                self.line = whole;
                complete
            };
            if self.returned {
                return Ok(true);
            }
        }
    }

    /// Whether a part of an event has come, which is dropped if nothing follows.
    pub fn is_within(&self) -> bool {
        !self.line.is_empty() || (!self.data.is_empty() && !self.returned)
    }

    /// Takes a line without its end. Returns whether it completes an event.
    fn take_line(&mut self, mut line: &[u8]) -> Result<bool, TooLarge> {
        if line.len() > MOST_EVENT_BYTES {
            return Err(TooLarge);
        }
        if !mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            if self.data.is_empty() {
                self.name.clear();
            }
            return Ok(!self.data.is_empty());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                keep(&mut self.data, value)?;
                keep(&mut self.data, b"\n")?;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // A comment, `id`, `retry`, or a field that nobody knows.
            _ => {}
        }
        Ok(false)
    }
}

fn keep(buffer: &mut Vec<u8>, more: &[u8]) -> Result<(), TooLarge> {
    if buffer.len() + more.len() > MOST_EVENT_BYTES {
        return Err(TooLarge);
    }
    buffer.extend_from_slice(more);
    Ok(())
}

/// Writes what stands before and behind the data of an event that has one line of data and no name.
pub const BEFORE_DATA: &[u8] = b"data: ";
/// See [`BEFORE_DATA`].
pub const AFTER_DATA: &[u8] = b"\n\n";
