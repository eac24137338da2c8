//! The client half of a connection.

use super::conn::{Conn, Event};
use super::hpack::put_content_length;
use super::streams::{ANY, is};
use super::{Body, Code, ConnectionError, Headers, Options, Output, Prepared, ResetCause, SendError, Values};

/// An event of the client half. `tag` is the caller's number for the request.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The server's SETTINGS arrived: [`Client::streams`] may have changed.
    Settings,
    /// A 1xx response; the final one follows.
    Informational {
        /// The request.
        tag: u32,
        /// From 100 to 199.
        status: u16,
    },
    /// The head of the final response.
    Head {
        /// The request.
        tag: u32,
        /// Its content.
        head: ResponseHead<'a>,
    },
    /// A piece of the body.
    Data {
        /// The request.
        tag: u32,
        /// Never empty.
        bytes: &'a [u8],
    },
    /// Headers behind the body; the end follows.
    Trailers {
        /// The request.
        tag: u32,
        /// All of them, if headers are kept.
        headers: Headers<'a>,
    },
    /// The response is complete, and the stream is closed.
    End {
        /// The request.
        tag: u32,
        /// All of the request had been sent; else the rest is not.
        sent: bool,
    },
    /// The stream was closed before its response was complete.
    Reset {
        /// The request.
        tag: u32,
        /// Why.
        cause: ResetCause,
    },
    /// The server accepts no more requests. [`Client::streams`] is 0 from now on. A [`ClientEvent::Reset`] with
    /// [`ResetCause::GoneAway`] follows for each request that it did not process; the others will still be answered.
    GoAway {
        /// Why.
        code: Code,
    },
}

/// The head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// From 200 to 999.
    pub status: u16,
    /// `content-length`, if given.
    pub length: Option<u64>,
    /// All headers, if they are kept.
    pub headers: Headers<'a>,
}

/// The client half of one connection.
#[derive(Debug)]
pub struct Client {
    conn: Conn,
}

/// Largest stream number (RFC 9113 section 5.1.1).
const LAST_ID: u32 = (1 << 31) - 1;
/// How many streams are opened before the server's limit is known (section 6.5.2 recommends a limit that is no lower).
const UNTOLD: u32 = 100;

impl Client {
    /// For a new connection.
    pub fn new(options: &Options) -> Client {
        let mut conn = Conn::new(options, false);
        conn.peer.max_streams = UNTOLD;
        Client { conn }
    }

    /// Writes the first bytes: preface, SETTINGS and the connection's window.
    pub fn start<O: Output>(&mut self, out: &mut O) {
        out.buffer().extend_from_slice(super::PREFACE);
        self.conn.start(out.buffer());
    }

    /// How many streams may be open now: the number in the options, or less if the server allows less (100 until its
    /// SETTINGS arrive). 0: the connection takes no more requests, and a new one is needed. A server may also set 0
    /// temporarily.
    #[inline]
    pub fn streams(&self) -> u32 {
        if self.conn.is_closing() || self.conn.last == LAST_ID {
            return 0;
        }
        self.conn.own.max_streams.min(self.conn.peer.max_streams)
    }

    /// Requests whose [`ClientEvent::End`] or [`ClientEvent::Reset`] has not come.
    #[inline]
    pub fn open(&self) -> u32 {
        self.conn.streams.open()
    }

    /// Sends a request, with as much of its body as fits the peer's window.
    ///
    /// # Errors
    /// Why it cannot be sent now; nothing was written.
    #[inline]
    pub fn request<O: Output>(
        &mut self,
        tag: u32,
        request: &Prepared,
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), SendError> {
        self.request_filled(tag, request, Values::default(), body, out)
    }

    /// Sends a request made from a template.
    ///
    /// # Errors
    /// Why it cannot be sent now; nothing was written.
    #[inline]
    pub fn request_filled<O: Output>(
        &mut self,
        tag: u32,
        request: &Prepared,
        values: Values<'_>,
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), SendError> {
        let ends = body.is_empty();
        let length = if !ends || request.says_empty() { Some(body.len() as u64) } else { None };
        let slot = self.head(tag, request, values, length, ends, out.buffer())?;
        if !ends {
            self.conn.send_body(slot, body, true, out);
        }
        Ok(())
    }

    /// Begins a request, whose body follows in pieces and whose length is not said.
    ///
    /// # Errors
    /// Why it cannot be sent now; nothing was written.
    pub fn begin<O: Output>(
        &mut self,
        tag: u32,
        request: &Prepared,
        values: Values<'_>,
        out: &mut O,
    ) -> Result<(), SendError> {
        self.head(tag, request, values, None, false, out.buffer()).map(|_| ())
    }

    /// Sends a piece of a request that was begun; what exceeds the peer's window is kept, and follows by itself. `ends`: it is the last.
    /// False: the request is over, and nothing was sent.
    pub fn data<O: Output>(&mut self, tag: u32, body: Body<'_>, ends: bool, out: &mut O) -> bool {
        let Some(slot) = self.conn.streams.search(|stream| stream.tag == tag && !stream.is(is::SENT)) else {
            return false;
        };
        self.conn.send_body(slot, body, ends, out);
        true
    }

    /// Writes the head of a request, with the length of its body if that is given. Returns its slot.
    #[inline]
    fn head(
        &mut self,
        tag: u32,
        request: &Prepared,
        values: Values<'_>,
        length: Option<u64>,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<u32, SendError> {
        let conn = &mut self.conn;
        if conn.is_closing() {
            return Err(SendError::Closing);
        }
        if conn.last == LAST_ID {
            return Err(SendError::Exhausted);
        }
        if conn.streams.open() >= conn.own.max_streams.min(conn.peer.max_streams) {
            return Err(SendError::Full);
        }
        if !request.takes(values) {
            return Err(SendError::BadValue);
        }
        let id = if conn.last == 0 { 1 } else { conn.last + 2 };
        conn.last = id;
        conn.put_block(id, ends, out, |encoder, out| {
            encoder.head(request, out, |out| request.put_pseudo(values, out));
            request.put_changing(values.headers, out);
            if let Some(length) = length {
                put_content_length(out, length);
            }
        });
        let state = if request.bodiless() { is::BODILESS } else { 0 } | if ends { is::SENT } else { 0 };
        Ok(conn.streams.add(id, tag, conn.peer.stream_window, state))
    }

    /// Cancels a request (RST_STREAM with CANCEL). No more events come for it.
    pub fn cancel<O: Output>(&mut self, tag: u32, out: &mut O) {
        if let Some(slot) = self.conn.streams.search(|stream| stream.tag == tag) {
            self.conn.reset(slot, Code::CANCEL, out.buffer());
        }
    }

    /// Returns the next event from `input`, and advances `input`. `None`: all of `input` was used; give more bytes.
    ///
    /// Call it until it returns `None`, even when `input` is empty. Bytes that the protocol has to send are appended
    /// to `out`.
    ///
    /// # Errors
    /// A connection error; every further call returns the same.
    #[inline]
    pub fn next<'s, 'i: 's, O: Output>(
        &'s mut self,
        input: &mut &'i [u8],
        out: &mut O,
    ) -> Result<Option<ClientEvent<'s>>, ConnectionError> {
        loop {
            let Some(event) = self.conn.next(input, out)? else {
                return Ok(None);
            };
            return Ok(Some(match event {
                Event::Head { tag, .. } => ClientEvent::Head { tag, head: ResponseHead::of(&self.conn) },
                Event::Data { tag, bytes, .. } => ClientEvent::Data { tag, bytes },
                Event::Trailers { tag } => {
                    let kept = self.conn.own.keep_headers.then(|| self.conn.fields.headers(self.conn.message.headers));
                    ClientEvent::Trailers { tag, headers: kept.unwrap_or_default() }
                }
                Event::End { tag, sent, .. } => ClientEvent::End { tag, sent },
                Event::Settings => ClientEvent::Settings,
                Event::Interim { tag, status } => ClientEvent::Informational { tag, status },
                Event::Reset { tag, cause, .. } => ClientEvent::Reset { tag, cause },
                Event::GoAway { code } => ClientEvent::GoAway { code },
                Event::Sent { .. } | Event::Malformed { .. } => continue,
            }));
        }
    }

    /// The code of the server's GOAWAY, if one has come.
    pub fn goaway(&self) -> Option<Code> {
        self.conn.goaway.map(|(_, code)| code)
    }

    /// Announces that no more requests follow (GOAWAY). Responses under way still come.
    pub fn go_away<O: Output>(&mut self, out: &mut O) {
        self.conn.go_away(out.buffer());
    }
}

impl<'a> ResponseHead<'a> {
    #[inline]
    fn of(conn: &'a Conn) -> ResponseHead<'a> {
        let message = &conn.message;
        ResponseHead {
            status: message.status,
            length: (message.length != ANY).then_some(message.length),
            headers: if conn.own.keep_headers { conn.fields.headers(message.headers) } else { Headers::default() },
        }
    }
}
