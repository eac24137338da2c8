//! The server half of a connection.

use super::conn::{Conn, Event};
use super::frame::{self, kind};
use super::qpack;
use super::streams::is;
use super::{
    Body, Code, ConnectionError, Options, Output, Prepared, RequestHead, ResetCause, SendError, StreamError, Values,
};
use crate::http2::class::is_value;
use crate::http2::hpack;
use crate::http2::message::ANY;
use crate::http2::prepared::check_header;

/// A request's stream of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    slot: u32,
    id: u64,
}

impl Stream {
    /// Dense from 0, and reused after the stream is gone: for tables. Below the number of streams that QUIC lets the peer open.
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// QUIC's ID; no two streams of a connection have the same.
    pub fn id(self) -> u64 {
        self.id
    }
}

/// An event of the server half.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// The client's SETTINGS arrived.
    Settings,
    /// The head of a request.
    Request {
        /// The stream that the response goes to.
        stream: Stream,
        /// Its content. `ends` is true if it is known to be the whole request; if not, it may be all the same.
        head: RequestHead<'a>,
    },
    /// A piece of a request's body.
    Data {
        /// The request.
        stream: Stream,
        /// Never empty.
        bytes: &'a [u8],
    },
    /// The request is complete. (If its response is, too, the stream is gone.)
    End {
        /// The request.
        stream: Stream,
    },
    /// The stream ended early and is gone. Unless the peer reset it, the caller does so ([`ResetCause::code`]), and stops the peer
    /// from sending.
    Reset {
        /// The stream.
        stream: Stream,
        /// Why.
        cause: ResetCause,
    },
    /// A request whose head is malformed has no stream: the caller resets and stops QUIC's with [`super::code_of`].
    Malformed {
        /// QUIC's ID of the stream.
        id: u64,
        /// What is wrong.
        fault: StreamError,
    },
    /// A request that came after our GOAWAY: the caller resets and stops QUIC's stream with [`Code::REQUEST_REJECTED`].
    Refused {
        /// QUIC's ID of the stream.
        id: u64,
    },
    /// The client will send no more requests.
    GoAway,
}

/// The server half of one connection.
#[derive(Debug)]
pub struct Server {
    conn: Conn,
}

/// Appends a DATA frame, unless the body is empty.
#[inline]
pub(super) fn put_data<O: Output>(body: Body<'_>, out: &mut O) {
    if body.is_empty() {
        return;
    }
    let buffer = out.buffer();
    buffer.push(kind::DATA as u8);
    frame::put_number(buffer, body.len() as u64);
    match body {
        Body::None => {}
        Body::Static(bytes) => out.body(bytes),
        Body::Copied(bytes) => buffer.extend_from_slice(bytes),
    }
}

impl Server {
    /// For a new connection.
    pub fn new(options: &Options) -> Server {
        Server { conn: Conn::new(options, true) }
    }

    /// Writes the first bytes of the control stream, a unidirectional stream that stays open.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        self.conn.start(out);
    }

    /// Open streams: requests that are incomplete or not fully answered.
    #[inline]
    pub fn open(&self) -> u32 {
        self.conn.streams.open()
    }

    /// Returns the next event from `input`, bytes of the stream with this ID, and advances `input`. `None`: all of `input` was used.
    ///
    /// Call it until it returns `None`, even when `input` is empty, and then not again for a stream whose end was given or that is
    /// gone: its ID would be a new request's. `fin`: nothing follows on this stream.
    ///
    /// # Errors
    /// A connection error; every further call returns the same.
    #[inline]
    pub fn next<'s, 'i: 's>(
        &'s mut self,
        id: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Result<Option<ServerEvent<'s>>, ConnectionError> {
        let event = self.conn.next(id, input, fin)?;
        Ok(event.and_then(|event| self.event(event)))
    }

    /// The peer reset a stream with this code, or wants no more of the response on it.
    ///
    /// # Errors
    /// The connection needs that stream, or too many were reset.
    pub fn reset_by_peer(&mut self, id: u64, code: u64) -> Result<Option<ServerEvent<'_>>, ConnectionError> {
        let event = self.conn.on_reset(id, Code(code))?;
        Ok(event.and_then(|event| self.event(event)))
    }

    #[inline]
    fn event<'s>(&'s self, event: Event<'s>) -> Option<ServerEvent<'s>> {
        Some(match event {
            Event::Head { slot, id, ends, .. } => {
                ServerEvent::Request { stream: Stream { slot, id }, head: self.head_of(ends) }
            }
            Event::Data { slot, id, bytes, .. } => ServerEvent::Data { stream: Stream { slot, id }, bytes },
            Event::End { slot, id, .. } => ServerEvent::End { stream: Stream { slot, id } },
            Event::Reset { slot, id, cause, .. } => ServerEvent::Reset { stream: Stream { slot, id }, cause },
            Event::Malformed { id, fault } => ServerEvent::Malformed { id, fault },
            Event::Refused { id } => ServerEvent::Refused { id },
            Event::Settings => ServerEvent::Settings,
            Event::GoAway => ServerEvent::GoAway,
            // Only responses are interim.
            Event::Interim { .. } | Event::Trailers { .. } => return None,
        })
    }

    fn head_of(&self, ends: bool) -> RequestHead<'_> {
        let (message, fields) = (&self.conn.section.message, &self.conn.section.fields);
        RequestHead {
            method: fields.slice(message.method),
            scheme: fields.slice(message.scheme),
            authority: fields.slice(message.authority),
            path: fields.slice(message.path),
            length: (message.length != ANY).then_some(message.length),
            ends,
            expects_continue: message.expects_continue,
            headers: fields.headers(message.headers),
        }
    }

    /// An open stream whose response is at this stage.
    #[inline]
    fn slot(&mut self, stream: Stream, headed: bool) -> Result<u32, SendError> {
        if self.conn.has_failed() {
            return Err(SendError::Closing);
        }
        match self.conn.streams.get(stream.slot, stream.id) {
            Some(open) if open.is(is::RESPONDING) == headed && !open.is(is::SENT) => Ok(stream.slot),
            _ => Err(SendError::NoStream),
        }
    }

    /// Writes an interim response (100 to 199, not 101), such as `100 Continue`.
    ///
    /// # Errors
    /// The stream is gone or answered, or the status is not an interim one.
    pub fn interim<O: Output>(&mut self, stream: Stream, status: u16, out: &mut O) -> Result<(), SendError> {
        self.slot(stream, false)?;
        if !(100..=199).contains(&status) || status == 101 {
            return Err(SendError::BadValue);
        }
        put_head(status, &[], None, out.buffer());
        Ok(())
    }

    /// Writes a whole response; the caller then ends the stream. The body is omitted where none is allowed: HEAD, 204, 205, 304.
    ///
    /// # Errors
    /// The stream is gone or answered. Nothing was written.
    #[inline]
    pub fn respond<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), SendError> {
        self.respond_filled(stream, head, &[], body, out)
    }

    /// The same with values for the headers that change ([`Prepared::response_template`]).
    ///
    /// # Errors
    /// As for [`Server::respond`], and (`BadValue`) when a value cannot be sent.
    #[inline]
    pub fn respond_filled<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        values: &[&[u8]],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), SendError> {
        let slot = self.slot(stream, false)?;
        let ends = head.bodiless() || self.conn.streams.at(slot).is(is::BODILESS) || body.is_empty();
        self.head_filled(stream, head, values, ends, out)?;
        if ends { Ok(()) } else { self.data(stream, body, true, out) }
    }

    /// Writes a whole response with `content-length`, whose head is encoded now. Names are in lower case. The body is omitted as by
    /// [`Server::respond`], its length is not (except for 204).
    ///
    /// # Errors
    /// The stream is gone or answered, or (`BadValue`) the head cannot be sent. Nothing was written.
    pub fn respond_with<O: Output>(
        &mut self,
        stream: Stream,
        status: u16,
        headers: &[(&str, &[u8])],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), SendError> {
        let slot = self.slot(stream, false)?;
        if !(200..=999).contains(&status) || !headers.iter().all(is_header) {
            return Err(SendError::BadValue);
        }
        let length = if status == 205 { 0 } else { body.len() as u64 };
        put_head(status, headers, (status != 204).then_some(length), out.buffer());
        let open = self.conn.streams.at(slot);
        open.state |= is::RESPONDING;
        let bodiless = matches!(status, 204 | 205 | 304) || open.is(is::BODILESS);
        self.data(stream, if bodiless { Body::None } else { body }, true, out)
    }

    /// Writes the head of a response whose body follows with [`Server::data`]; `ends`: there is no body, and the caller ends the
    /// stream.
    ///
    /// # Errors
    /// The stream is gone or answered, or the head is not a response's. Nothing was written.
    #[inline]
    pub fn head<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        ends: bool,
        out: &mut O,
    ) -> Result<(), SendError> {
        self.head_filled(stream, head, &[], ends, out)
    }

    /// The same with values for the headers that change.
    ///
    /// # Errors
    /// As for [`Server::head`], and (`BadValue`) when a value cannot be sent.
    #[inline]
    pub fn head_filled<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        values: &[&[u8]],
        ends: bool,
        out: &mut O,
    ) -> Result<(), SendError> {
        let slot = self.slot(stream, false)?;
        if !head.can_respond_with(values) {
            return Err(SendError::BadValue);
        }
        head.put(Values { headers: values, ..Values::default() }, None, out.buffer());
        self.conn.streams.at(slot).state |= is::RESPONDING | if head.bodiless() { is::BODILESS } else { 0 };
        if ends {
            self.sent(slot);
        }
        Ok(())
    }

    /// Writes a piece of the body of a response; `ends`: it is the last, and the caller ends the stream. Where no body is allowed
    /// (as for [`Server::respond`]) nothing is written.
    ///
    /// # Errors
    /// The stream is gone, its head is not written, or its response has ended. Nothing was written.
    pub fn data<O: Output>(
        &mut self,
        stream: Stream,
        piece: Body<'_>,
        ends: bool,
        out: &mut O,
    ) -> Result<(), SendError> {
        let slot = self.slot(stream, true)?;
        if !self.conn.streams.at(slot).is(is::BODILESS) {
            put_data(piece, out);
        }
        if ends {
            self.sent(slot);
        }
        Ok(())
    }

    /// Writes trailers behind the body of a response; the caller ends the stream.
    ///
    /// # Errors
    /// As for [`Server::data`], and (`BadValue`) when a header cannot be sent.
    pub fn trailers<O: Output>(
        &mut self,
        stream: Stream,
        headers: &[(&str, &[u8])],
        out: &mut O,
    ) -> Result<(), SendError> {
        let slot = self.slot(stream, true)?;
        if !headers.iter().all(is_header) {
            return Err(SendError::BadValue);
        }
        frame::put_section(out.buffer(), |out| {
            out.extend_from_slice(&qpack::PREFIX);
            put_fields(headers, out);
        });
        self.sent(slot);
        Ok(())
    }

    #[inline]
    fn sent(&mut self, slot: u32) {
        let open = self.conn.streams.at(slot);
        open.state |= is::SENT;
        if open.is(is::HEARD) {
            self.conn.ended_well(slot);
        }
    }

    /// Forgets a stream, which the caller resets and stops. No more events come for it.
    pub fn reset(&mut self, stream: Stream) {
        if self.conn.streams.get(stream.slot, stream.id).is_some() {
            self.conn.lose(stream.slot, ResetCause::GoneAway);
        }
    }

    /// Announces on the control stream that no more requests are accepted (GOAWAY). Those received are still answered. When
    /// [`Server::open`] is 0, the connection can be closed.
    pub fn go_away(&mut self, out: &mut Vec<u8>) {
        self.conn.go_away(out);
    }
}

fn is_header((name, value): &(&str, &[u8])) -> bool {
    check_header(name, "").is_ok() && is_value(value)
}

fn put_fields(headers: &[(&str, &[u8])], out: &mut Vec<u8>) {
    for (name, value) in headers {
        qpack::put_name(out, name);
        hpack::put_text(out, value);
    }
}

/// Appends the HEADERS frame of a response that was not prepared.
fn put_head(status: u16, headers: &[(&str, &[u8])], length: Option<u64>, out: &mut Vec<u8>) {
    frame::put_section(out, |out| {
        out.extend_from_slice(&qpack::PREFIX);
        qpack::put_name(out, ":status");
        hpack::put_digits(out, u64::from(status));
        put_fields(headers, out);
        if let Some(length) = length {
            out.push(qpack::CONTENT_LENGTH);
            hpack::put_digits(out, length);
        }
    });
}
