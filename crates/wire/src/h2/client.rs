//! The client half of a connection.

use super::{Body, Cause, Code, H2Error, Headers, Limits, Output, Prepared, Refused};

/// How a client behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientOptions {
    /// Streams it wants to have open at a time.
    pub max_streams: u32,
    /// Bytes of answers that the server may send ahead on a stream, up to 2^31 - 1.
    pub stream_window: u32,
    /// Bytes of answers that the server may send ahead on the connection, from 65,535 to 2^31 - 1.
    pub connection_window: u32,
    /// Largest frame the server may send, from 16,384 to 2^24 - 1.
    pub max_frame: u32,
    /// Keep the headers of answers for [`AnswerHead::headers`]; without, that is empty and reading costs less.
    pub keep_headers: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Default for ClientOptions {
    /// 100 streams, windows of 16 MiB and 2^31 - 1 bytes, frames of 16,384 bytes, headers kept.
    fn default() -> ClientOptions {
        ClientOptions {
            max_streams: 100,
            stream_window: 16 << 20,
            connection_window: (1 << 31) - 1,
            max_frame: 16_384,
            keep_headers: true,
            limits: Limits::default(),
        }
    }
}

/// What comes out of the client half. `tag` is what the caller named the request.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The server's SETTINGS came: [`Client::streams`] may have changed.
    Settings,
    /// A 1xx answer; the final one is still to come.
    Informational {
        /// Of which request.
        tag: u32,
        /// From 100 to 199.
        status: u16,
    },
    /// The head of the final answer.
    Head {
        /// Of which request.
        tag: u32,
        /// What it says.
        head: AnswerHead<'a>,
    },
    /// A piece of the body.
    Data {
        /// Of which request.
        tag: u32,
        /// Never empty.
        bytes: &'a [u8],
    },
    /// The answer is complete, and the stream gone.
    End {
        /// Of which request.
        tag: u32,
    },
    /// There will be no (more) answer, and the stream is gone.
    Reset {
        /// Of which request.
        tag: u32,
        /// Why.
        cause: Cause,
    },
    /// The server takes no more requests. [`Client::streams`] is 0 from now on. A [`ClientEvent::Reset`] with
    /// [`Cause::GoneAway`] follows for each request that it did not look at; the others will still be answered.
    GoAway {
        /// Why.
        code: Code,
    },
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHead<'a> {
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
    streams: u32,
}

impl Client {
    /// For a new connection.
    pub fn new(options: &ClientOptions) -> Client {
        Client { streams: options.max_streams }
    }

    /// Writes what comes first: preface, SETTINGS and the connection's window.
    pub fn start<O: Output>(&mut self, out: &mut O) {
        out.buffer().extend_from_slice(super::PREFACE);
    }

    /// How many streams may be open at a time now: what was wished for, or less if the server wants less (100 until its
    /// SETTINGS come). 0: the connection takes no more requests, and another is to be made.
    pub fn streams(&self) -> u32 {
        self.streams
    }

    /// Requests whose [`ClientEvent::End`] or [`ClientEvent::Reset`] has not come.
    pub fn open(&self) -> u32 {
        0
    }

    /// Sends a request, with what the peer has a window for of its body.
    ///
    /// # Errors
    /// Why it cannot be sent now; nothing was written.
    pub fn request<O: Output>(
        &mut self,
        tag: u32,
        request: &Prepared,
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), Refused> {
        self.request_filled(tag, request, b"", &[], body, out)
    }

    /// Sends a request made of a template: `path` if that changes (else it is ignored), and one of `values` for each
    /// header that changes.
    ///
    /// # Errors
    /// Why it cannot be sent now; nothing was written.
    pub fn request_filled<O: Output>(
        &mut self,
        tag: u32,
        request: &Prepared,
        path: &[u8],
        values: &[&[u8]],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<(), Refused> {
        let _ = (tag, request, path, values, body, out);
        Err(Refused::Closing)
    }

    /// Gives a request up (RST_STREAM with CANCEL). No more events come for it.
    pub fn cancel<O: Output>(&mut self, tag: u32, out: &mut O) {
        let _ = (tag, out);
    }

    /// The next event from `input`, which loses the bytes used. `None`: all of `input` was used; give more bytes.
    ///
    /// Call it until it gives `None`, even when `input` is empty. `out` gets what the protocol wants to be sent.
    ///
    /// # Errors
    /// A connection error; every further call gives the same.
    pub fn next<'s, 'i: 's, O: Output>(
        &'s mut self,
        input: &mut &'i [u8],
        out: &mut O,
    ) -> Result<Option<ClientEvent<'s>>, H2Error> {
        let _ = out;
        *input = &[];
        Ok(None)
    }

    /// Says that no more requests follow (GOAWAY). Answers under way still come.
    pub fn goodbye<O: Output>(&mut self, out: &mut O) {
        let _ = out;
        self.streams = 0;
    }
}
