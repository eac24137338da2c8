//! Interprets a header block as a request, a response or trailers, and checks it (RFC 9113 section 8).

use super::class::Class;
use super::fields::Fields;
use super::hpack::Reader;
use super::prepared::is_path;
pub(crate) use super::streams::ANY;
use super::{Limits, StreamError};
use crate::http1::chars::{is_host, is_token};

/// The kind of message that a block should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Response,
    Trailers,
}

/// Where in [`Fields`] something is: beginning and length.
pub(crate) type Range = (u32, u32);

/// Bits of [`Message::seen`], one for each pseudo-header.
mod seen {
    pub(crate) const METHOD: u8 = 1;
    pub(crate) const SCHEME: u8 = 2;
    pub(crate) const AUTHORITY: u8 = 4;
    pub(crate) const PATH: u8 = 8;
    pub(crate) const STATUS: u8 = 16;
    pub(crate) const REQUEST: u8 = METHOD | SCHEME | PATH;
}

/// The content of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    /// `content-length`, or [`ANY`].
    pub(crate) length: u64,
    pub(crate) method: Range,
    pub(crate) scheme: Range,
    pub(crate) authority: Range,
    pub(crate) path: Range,
    host: Option<Range>,
    /// Where the first header begins that is no pseudo-header; `u32::MAX`: there is none.
    pub(crate) headers: u32,
    size: u32,
    /// Headers that are no pseudo-headers.
    count: u32,
    limits: Limits,
    pub(crate) status: u16,
    seen: u8,
    kind: Kind,
    fault: Option<StreamError>,
    pub(crate) expects_continue: bool,
    pub(crate) is_head: bool,
}

impl Message {
    /// Before the first header.
    pub(crate) fn new(kind: Kind, limits: Limits) -> Message {
        Message {
            length: ANY,
            method: (0, 0),
            scheme: (0, 0),
            authority: (0, 0),
            path: (0, 0),
            host: None,
            headers: u32::MAX,
            size: 0,
            count: 0,
            limits,
            status: 0,
            seen: 0,
            kind,
            fault: None,
            expects_continue: false,
            is_head: false,
        }
    }

    /// Called after the last header: checks that nothing required is missing.
    pub(crate) fn finish(&mut self, fields: &Fields) -> Result<(), StreamError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        match self.kind {
            Kind::Trailers => Ok(()),
            Kind::Response if self.seen == seen::STATUS => Ok(()),
            Kind::Response => Err(StreamError::PseudoHeader),
            Kind::Request => self.finish_request(fields),
        }
    }

    fn finish_request(&mut self, fields: &Fields) -> Result<(), StreamError> {
        if fields.slice(self.method) == b"CONNECT" {
            return Err(StreamError::Connect);
        }
        if self.seen & seen::REQUEST != seen::REQUEST {
            return Err(StreamError::PseudoHeader);
        }
        if let Some(host) = self.host {
            if self.seen & seen::AUTHORITY == 0 {
                self.authority = host;
            } else if !fields.slice(self.authority).eq_ignore_ascii_case(fields.slice(host)) {
                return Err(StreamError::DifferingHosts);
            }
        }
        Ok(())
    }

    fn pseudo(&mut self, bit: u8, right: bool) {
        let of = if self.kind == Kind::Response { seen::STATUS } else { seen::REQUEST | seen::AUTHORITY };
        let misplaced = self.kind == Kind::Trailers || of & bit == 0 || self.headers != u32::MAX;
        if misplaced || self.seen & bit != 0 || !right {
            self.wrong(StreamError::PseudoHeader);
        }
        self.seen |= bit;
    }

    #[cold]
    fn wrong(&mut self, fault: StreamError) {
        self.fault.get_or_insert(fault);
    }
}

impl Reader for Message {
    #[inline]
    fn field(&mut self, class: Class, name: &[u8], value: &[u8], at: usize) {
        // Blocks are bounded far below 2^32 bytes, and so are these.
        self.size = self.size.saturating_add((name.len() + value.len() + 32) as u32);
        if self.size > self.limits.header_list {
            self.wrong(StreamError::TooLarge(self.limits.header_list));
        }
        let range = (at as u32, value.len() as u32);
        match class {
            Class::Method => {
                self.method = range;
                self.is_head = value == b"HEAD";
                self.pseudo(seen::METHOD, is_token(value));
            }
            Class::Scheme => {
                self.scheme = range;
                self.pseudo(seen::SCHEME, !value.is_empty());
            }
            Class::Authority => {
                self.authority = range;
                self.pseudo(seen::AUTHORITY, is_host(value));
            }
            Class::Path => {
                self.path = range;
                self.pseudo(seen::PATH, is_path(value));
            }
            Class::Status => {
                let status = status(value);
                self.status = status.unwrap_or(0);
                self.pseudo(seen::STATUS, status.is_some());
            }
            _ => {
                self.count += 1;
                if self.count > self.limits.headers {
                    self.wrong(StreamError::TooManyHeaders(self.limits.headers));
                }
                if self.headers == u32::MAX {
                    // Of no meaning where headers are not kept.
                    self.headers = at.wrapping_sub(name.len() + 8) as u32;
                }
                self.header(class, value, range);
            }
        }
    }
}

impl Message {
    #[inline]
    fn header(&mut self, class: Class, value: &[u8], range: Range) {
        match class {
            Class::ContentLength if self.kind != Kind::Trailers => match decimal(value) {
                Some(length) if self.length == ANY || self.length == length => self.length = length,
                _ => self.wrong(StreamError::BadContentLength),
            },
            Class::Host if self.kind == Kind::Request => {
                if self.host.is_some() || !is_host(value) {
                    self.wrong(StreamError::DifferingHosts);
                }
                self.host = Some(range);
            }
            Class::Expect if self.kind == Kind::Request => {
                self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
            }
            Class::Bad(fault) => self.wrong(fault),
            _ => {}
        }
    }
}

/// Three digits, from 100 to 999, and not 101 (RFC 9113 section 8.6).
fn status(value: &[u8]) -> Option<u16> {
    let &[a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else {
        return None;
    };
    let digit = |b: u8| u16::from(b - b'0');
    let status = digit(a) * 100 + digit(b) * 10 + digit(c);
    (status != 101).then_some(status)
}

/// One or more digits as a number below 2^64 - 1.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    (number != ANY).then_some(number)
}
