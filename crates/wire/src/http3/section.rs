//! Reads field sections into what they mean, and recognizes one that came before.

use super::frame::Payload;
use super::qpack;
use super::{Headers, Limits, StreamError, Violation};
use crate::http2::fields::Fields;
use crate::http2::memo::Memo;
use crate::http2::message::{Kind, Message};

/// The last section that was read.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) fields: Fields,
    pub(super) message: Message,
    /// Its bytes, if reading them again would give what is in `fields` and `message`.
    memo: Memo,
    limits: Limits,
    keep: bool,
}

impl Section {
    pub(super) fn new(keep: bool, limits: Limits) -> Section {
        Section {
            fields: Fields::new(keep, limits.header_list),
            message: Message::new(Kind::Trailers, limits),
            memo: Memo::default(),
            limits,
            keep,
        }
    }

    /// Its headers, if they are kept.
    pub(super) fn headers(&self) -> Headers<'_> {
        if self.keep { self.fields.headers(self.message.headers) } else { Headers::default() }
    }

    /// Reads a section, unless it is the last one, or differs from that in a value without a meaning, such as the ID of a request.
    #[inline]
    pub(super) fn read(&mut self, kind: Kind, payload: &Payload<'_>) -> Result<Result<(), StreamError>, Violation> {
        let block = payload.bytes();
        if kind != Kind::Trailers && self.memo.matches(block, &mut self.fields) {
            return Ok(Ok(()));
        }
        self.memo.clear();
        self.fields.clear();
        self.message = Message::new(kind, self.limits);
        let gap = qpack::decode(block, &mut self.fields, &mut self.message)?;
        let judged = self.message.finish(&self.fields);
        if judged.is_ok() && kind != Kind::Trailers {
            self.memo.keep(block, gap);
        }
        Ok(judged)
    }
}
