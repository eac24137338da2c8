//! The client half of a connection.

use super::conn::{Conn, Event};
use super::server::put_data;
use super::streams::is;
use super::{
    Body, Code, ConnectionError, Headers, Options, Output, Prepared, ResetCause, ResponseHead, SendError, Values,
};
use crate::http2::message::ANY;

/// An event of the client half. `tag` is the caller's number for the request.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The server's SETTINGS arrived. Requests may be sent before.
    Settings,
    /// A 1xx response; the final one follows.
    Informational {
        /// The request.
        tag: u32,
        /// From 100 to 199.
        status: u16,
        /// All headers, if they are kept.
        headers: Headers<'a>,
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
    /// Headers behind the body.
    Trailers {
        /// The request.
        tag: u32,
        /// All of them, if they are kept.
        headers: Headers<'a>,
    },
    /// The response is complete, and the stream is forgotten.
    End {
        /// The request.
        tag: u32,
    },
    /// The stream ended before its response was complete, and is forgotten. Unless the peer reset it, the caller does so
    /// ([`ResetCause::code`]), and stops the peer from sending.
    Reset {
        /// The request.
        tag: u32,
        /// Its stream.
        id: u64,
        /// Why.
        cause: ResetCause,
    },
    /// The server accepts no more requests. A [`ClientEvent::Reset`] with [`ResetCause::GoneAway`] follows for each request that it
    /// did not process; the others will still be answered.
    GoAway,
}

/// The client half of one connection.
#[derive(Debug)]
pub struct Client {
    conn: Conn,
}

impl Client {
    /// For a new connection.
    pub fn new(options: &Options) -> Client {
        Client { conn: Conn::new(options, false) }
    }

    /// Writes the first bytes of the control stream, a unidirectional stream that stays open.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        self.conn.start(out);
    }

    /// Whether the connection takes no more requests.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.conn.is_closing()
    }

    /// Requests whose [`ClientEvent::End`] or [`ClientEvent::Reset`] has not come.
    #[inline]
    pub fn open(&self) -> u32 {
        self.conn.streams.open()
    }

    /// Writes a request: all that is sent on a stream in both directions with this ID, which the caller has opened for it.
    ///
    /// # Errors
    /// Why it cannot be sent; nothing was written.
    #[inline]
    pub fn request<O: Output>(
        &mut self,
        id: u64,
        tag: u32,
        request: &Prepared,
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), SendError> {
        self.request_filled(id, tag, request, Values::default(), body, out)
    }

    /// Writes a request made from a template.
    ///
    /// # Errors
    /// Why it cannot be sent; nothing was written.
    #[inline]
    pub fn request_filled<O: Output>(
        &mut self,
        id: u64,
        tag: u32,
        request: &Prepared,
        values: Values<'_>,
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), SendError> {
        if self.conn.is_closing() {
            return Err(SendError::Closing);
        }
        if !request.takes(values) {
            return Err(SendError::BadValue);
        }
        request.put(values, Some(body.len()), out.buffer());
        put_data(body, out);
        self.conn.streams.add(id, tag, ANY, if request.bodiless() { is::BODILESS } else { 0 });
        Ok(())
    }

    /// Gives up a request. Returns its stream, which the caller resets, and stops, with [`Code::REQUEST_CANCELLED`]. No more events
    /// come for it.
    pub fn cancel(&mut self, tag: u32) -> Option<u64> {
        let slot = self.conn.streams.search(|stream| stream.tag == tag)?;
        Some(self.conn.streams.remove(slot).id)
    }

    /// Returns the next event from `input`, bytes of the stream with this ID, and advances `input`. `None`: all of `input` was used.
    ///
    /// Call it until it returns `None`, even when `input` is empty. `fin`: nothing follows on this stream. Bytes of requests that
    /// were given up are dropped.
    ///
    /// # Errors
    /// A connection error; every further call returns the same.
    #[inline]
    pub fn next<'s, 'i: 's>(
        &'s mut self,
        id: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Result<Option<ClientEvent<'s>>, ConnectionError> {
        let event = self.conn.next(id, input, fin)?;
        Ok(event.and_then(|event| self.event(event)))
    }

    /// The peer reset a stream with this code.
    ///
    /// # Errors
    /// The connection needs that stream.
    pub fn reset(&mut self, id: u64, code: u64) -> Result<Option<ClientEvent<'_>>, ConnectionError> {
        let event = self.conn.on_reset(id, Code(code))?;
        Ok(event.and_then(|event| self.event(event)))
    }

    #[inline]
    fn event<'s>(&'s self, event: Event<'s>) -> Option<ClientEvent<'s>> {
        let section = &self.conn.section;
        Some(match event {
            Event::Head { tag, .. } => {
                let length = (section.message.length != ANY).then_some(section.message.length);
                let head = ResponseHead { status: section.message.status, length, headers: section.headers() };
                ClientEvent::Head { tag, head }
            }
            Event::Data { tag, bytes, .. } => ClientEvent::Data { tag, bytes },
            Event::Trailers { tag } => ClientEvent::Trailers { tag, headers: section.headers() },
            Event::End { tag, .. } => ClientEvent::End { tag },
            Event::Interim { tag, status } => ClientEvent::Informational { tag, status, headers: section.headers() },
            Event::Reset { tag, id, cause, .. } => ClientEvent::Reset { tag, id, cause },
            Event::Settings => ClientEvent::Settings,
            Event::GoAway => ClientEvent::GoAway,
            // Only of requests.
            Event::Malformed { .. } | Event::Refused { .. } => return None,
        })
    }

    /// Whether the server's GOAWAY has come.
    pub fn goaway(&self) -> bool {
        self.conn.goaway.is_some()
    }

    /// Announces on the control stream that no more requests follow (GOAWAY). Responses under way still come.
    pub fn go_away(&mut self, out: &mut Vec<u8>) {
        self.conn.go_away(out);
    }
}
