//! The server half of a connection.

use super::class::is_value;
use super::conn::{Conn, Event};
use super::hpack::{put_content_length, put_digits, put_name, put_text};
use super::prepared::check_header;
use super::streams::{ANY, is};
use super::{
    Body, Code, ConnectionError, Headers, Options, Output, PREFACE, Prepared, ResetCause, SendError, StreamError,
    Violation,
};

/// A stream of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    pub(super) slot: u32,
    pub(super) id: u32,
}

impl Stream {
    /// A stream of another protocol in the words of this one: its slot, and a number that no other of its connection has.
    pub fn of(slot: u32, id: u32) -> Stream {
        Stream { slot, id }
    }

    /// Dense from 0, and reused after the stream is gone: for tables. Below [`Options::max_streams`].
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// The number on the wire; no two streams of a connection have the same.
    pub fn id(self) -> u32 {
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
        /// Its content.
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
    /// A body that [`Server::respond`] or [`Server::data`] left [`SendStatus::Waiting`] has been written.
    Sent {
        /// Its stream.
        stream: Stream,
    },
    /// The stream ended early; the rest of its response is dropped.
    Reset {
        /// The stream.
        stream: Stream,
        /// Why.
        cause: ResetCause,
    },
    /// A request whose head is malformed; it has been reset and has no stream.
    Malformed {
        /// What is wrong.
        fault: StreamError,
    },
    /// The client will send no more requests.
    GoAway {
        /// Why.
        code: Code,
    },
}

/// The head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// `:method`.
    pub method: &'a [u8],
    /// `:scheme`.
    pub scheme: &'a [u8],
    /// `:authority`, or `host` where there is none; may be empty.
    pub authority: &'a [u8],
    /// `:path`: begins with `/`, or is `*`.
    pub path: &'a [u8],
    /// `content-length`, if given.
    pub length: Option<u64>,
    /// The head is the whole request: [`ServerEvent::End`] follows.
    pub ends: bool,
    /// Whether the client waits for `100 Continue`: [`Server::interim`].
    pub expects_continue: bool,
    /// All headers but the pseudo-headers.
    pub headers: Headers<'a>,
}

/// How much of a response was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStatus {
    /// All of it was written.
    All,
    /// The peer's window is too small for all of it. The rest follows by itself, and then [`ServerEvent::Sent`].
    Waiting,
}

/// The server half of one connection.
#[derive(Debug)]
pub struct Server {
    conn: Conn,
    /// Bytes of the preface that have come.
    preface: u8,
}

impl Server {
    /// For a new connection, whose first bytes, the preface included, are not read yet.
    pub fn new(options: &Options) -> Server {
        Server { conn: Conn::new(options, true), preface: 0 }
    }

    /// Writes the first bytes: SETTINGS and the connection's window.
    pub fn start<O: Output>(&mut self, out: &mut O) {
        self.conn.start(out.buffer());
    }

    /// Open streams: requests that are incomplete or not fully answered.
    #[inline]
    pub fn open(&self) -> u32 {
        self.conn.streams.open()
    }

    /// Returns the next event from `input`, and advances `input`. `None`: all of `input` was used; give more bytes.
    ///
    /// Call it until it returns `None`, even when `input` is empty. Bytes that the protocol has to send are appended
    /// to `out`, and waiting parts of responses when the peer has made room.
    ///
    /// # Errors
    /// A connection error; every further call returns the same.
    #[inline]
    pub fn next<'s, 'i: 's, O: Output>(
        &'s mut self,
        input: &mut &'i [u8],
        out: &mut O,
    ) -> Result<Option<ServerEvent<'s>>, ConnectionError> {
        if usize::from(self.preface) < PREFACE.len() {
            self.read_preface(input, out.buffer())?;
        }
        loop {
            let Some(event) = self.conn.next(input, out)? else {
                return Ok(None);
            };
            return Ok(Some(match event {
                Event::Head { slot, id, ends, .. } => {
                    ServerEvent::Request { stream: Stream { slot, id }, head: RequestHead::of(&self.conn, ends) }
                }
                Event::Data { slot, id, bytes, .. } => ServerEvent::Data { stream: Stream { slot, id }, bytes },
                Event::End { slot, id, .. } => ServerEvent::End { stream: Stream { slot, id } },
                Event::Sent { slot, id } => ServerEvent::Sent { stream: Stream { slot, id } },
                Event::Reset { slot, id, cause, .. } => ServerEvent::Reset { stream: Stream { slot, id }, cause },
                Event::Settings => ServerEvent::Settings,
                Event::Malformed { fault } => ServerEvent::Malformed { fault },
                Event::GoAway { code } => ServerEvent::GoAway { code },
                // Only responses are interim. Nobody reads the trailers of requests.
                Event::Interim { .. } | Event::Trailers { .. } => continue,
            }));
        }
    }

    /// Compares the first bytes with the preface (RFC 9113 section 3.4).
    #[cold]
    fn read_preface(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), ConnectionError> {
        let wanted = &PREFACE[usize::from(self.preface)..];
        let (piece, rest) = input.split_at(input.len().min(wanted.len()));
        if !wanted.starts_with(piece) {
            return Err(self.conn.fail(Violation::BadPreface, out));
        }
        // At most 24.
        self.preface += piece.len() as u8;
        *input = rest;
        Ok(())
    }

    /// An open stream whose response is at this stage.
    #[inline]
    fn slot(&mut self, stream: Stream, headed: bool) -> Result<u32, SendError> {
        if self.conn.failed.is_some() {
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
        self.conn.put_block(stream.id, false, out.buffer(), |encoder, out| {
            encoder.begin(out);
            put_name(out, ":status");
            put_digits(out, u64::from(status));
        });
        Ok(())
    }

    /// Sends a whole response. The body is omitted where none is allowed: HEAD, 204, 205, 304.
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
    ) -> Result<SendStatus, SendError> {
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
    ) -> Result<SendStatus, SendError> {
        let slot = self.slot(stream, false)?;
        let bodiless = head.bodiless() || self.conn.streams.at(slot).is(is::BODILESS);
        let ends = bodiless || body.is_empty();
        self.put_head(stream, head, values, ends, out)?;
        if ends {
            return Ok(SendStatus::All);
        }
        Ok(self.send(slot, body, true, out))
    }

    /// Sends a whole response with `content-length`, whose head is encoded now and does not enter the peer's table.
    /// Names are in lower case. The body is omitted as by [`Server::respond`], its length is not (except for 204).
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
    ) -> Result<SendStatus, SendError> {
        let slot = self.slot(stream, false)?;
        let right = |(name, value): &(&str, &[u8])| check_header(name, "").is_ok() && is_value(value);
        if !(200..=999).contains(&status) || !headers.iter().all(right) {
            return Err(SendError::BadValue);
        }
        let bodiless = matches!(status, 204 | 205 | 304) || self.conn.streams.at(slot).is(is::BODILESS);
        let ends = bodiless || body.is_empty();
        self.conn.put_block(stream.id, ends, out.buffer(), |encoder, out| {
            encoder.begin(out);
            put_name(out, ":status");
            put_digits(out, u64::from(status));
            for (name, value) in headers {
                put_name(out, name);
                put_text(out, value);
            }
            if status != 204 {
                put_content_length(out, if status == 205 { 0 } else { body.len() as u64 });
            }
        });
        self.conn.streams.at(slot).state |= is::RESPONDING;
        if ends {
            self.conn.streams.at(slot).state |= is::SENT;
            self.close_if_done(slot);
            return Ok(SendStatus::All);
        }
        Ok(self.send(slot, body, true, out))
    }

    /// Writes the head of a response whose body follows with [`Server::data`]; `ends`: there is no body.
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
    ) -> Result<SendStatus, SendError> {
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
    ) -> Result<SendStatus, SendError> {
        self.slot(stream, false)?;
        self.put_head(stream, head, values, ends, out)?;
        Ok(SendStatus::All)
    }

    /// Writes the head of a stream that has none.
    #[inline]
    fn put_head<O: Output>(
        &mut self,
        Stream { slot, id }: Stream,
        head: &Prepared,
        values: &[&[u8]],
        ends: bool,
        out: &mut O,
    ) -> Result<(), SendError> {
        if !head.can_respond_with(values) {
            return Err(SendError::BadValue);
        }
        self.conn.put_block(id, ends, out.buffer(), |encoder, out| {
            encoder.head(head, out, |_| ());
            head.put_changing(values, out);
        });
        let open = self.conn.streams.at(slot);
        open.state |= is::RESPONDING | if head.bodiless() { is::BODILESS } else { 0 };
        if ends {
            open.state |= is::SENT;
            self.close_if_done(slot);
        }
        Ok(())
    }

    /// Writes a piece of the body of a response. [`SendStatus`] counts for the last one. Where no body is allowed (as
    /// for [`Server::respond`]) only the end is written.
    ///
    /// # Errors
    /// The stream is gone, its head is not written, or its response has ended. Nothing was written.
    pub fn data<O: Output>(
        &mut self,
        stream: Stream,
        piece: Body<'_>,
        ends: bool,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        let slot = self.slot(stream, true)?;
        let open = self.conn.streams.at(slot);
        let piece = if open.is(is::BODILESS) { Body::None } else { piece };
        if open.is(is::ENDING) {
            return Err(SendError::NoStream);
        }
        if piece.is_empty() && !ends {
            return Ok(SendStatus::All);
        }
        Ok(self.send(slot, piece, ends, out))
    }

    /// Writes headers behind the body of a response, which has no other end. Names are in lower case. They enter no table.
    ///
    /// # Errors
    /// The stream is gone, its head is not written, its response has ended or a part of its body waits for a window, or (`BadValue`) a header
    /// cannot be sent. Nothing was written.
    pub fn trailers<O: Output>(
        &mut self,
        stream: Stream,
        headers: &[(&str, &[u8])],
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        let slot = self.slot(stream, true)?;
        let open = self.conn.streams.at(slot);
        if open.is(is::ENDING) || open.is(is::WAITING) {
            return Err(SendError::NoStream);
        }
        if !headers.iter().all(|(name, value)| check_header(name, "").is_ok() && is_value(value)) {
            return Err(SendError::BadValue);
        }
        self.conn.put_block(stream.id, true, out.buffer(), |encoder, out| {
            encoder.begin(out);
            for (name, value) in headers {
                put_name(out, name);
                put_text(out, value);
            }
        });
        self.conn.streams.at(slot).state |= is::SENT;
        self.close_if_done(slot);
        Ok(SendStatus::All)
    }

    #[inline]
    fn send<O: Output>(&mut self, slot: u32, body: Body<'_>, ends: bool, out: &mut O) -> SendStatus {
        if self.conn.send_body(slot, body, ends, out) {
            self.close_if_done(slot);
            return SendStatus::All;
        }
        if ends {
            self.conn.streams.at(slot).state |= is::ENDING;
        }
        SendStatus::Waiting
    }

    #[inline]
    fn close_if_done(&mut self, slot: u32) {
        if self.conn.streams.at(slot).is(is::SENT | is::HEARD) {
            self.conn.ended_well(slot);
        }
    }

    /// Resets a stream. No more events come for it.
    pub fn reset<O: Output>(&mut self, stream: Stream, code: Code, out: &mut O) {
        if self.conn.failed.is_none() && self.conn.streams.get(stream.slot, stream.id).is_some() {
            self.conn.reset(stream.slot, code, out.buffer());
        }
    }

    /// Announces that no more requests are accepted (GOAWAY). Those received are still answered. When
    /// [`Server::open`] is 0, the connection can be closed.
    pub fn go_away<O: Output>(&mut self, out: &mut O) {
        self.conn.go_away(out.buffer());
    }
}

impl<'a> RequestHead<'a> {
    #[inline]
    fn of(conn: &'a Conn, ends: bool) -> RequestHead<'a> {
        let (message, fields) = (&conn.message, &conn.fields);
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
}
