//! A response of HTTP/1 that is sent bit by bit: rendered beforehand, or a stream whose messages are made as they fall due.
//! [`crate::pipeline`] sends it.

use weir_wire::http1::encode::{CHUNK_END, LAST_CHUNK, chunk_head};

use crate::fault::Fault;
use crate::response::{Role, Written};
use crate::response_faults::PacedResponse;
use crate::stream::{MessageStream, Trailer};
use crate::transport::Sink;

/// See the module.
#[derive(Debug)]
pub(crate) enum Paced {
    Rendered(PacedResponse),
    Stream(PacedStream),
}

/// A stream in HTTP/1.
#[derive(Debug)]
pub(crate) struct PacedStream {
    pub(crate) messages: MessageStream,
    /// Each message is a chunk; otherwise the connection's end is the stream's.
    pub(crate) chunked: bool,
    /// The connection closes after it.
    pub(crate) close: bool,
    /// How it is counted.
    pub(crate) role: Role,
}

impl Paced {
    /// When the next bytes are due; `None`: now.
    pub(crate) fn next(&self) -> Option<u64> {
        match self {
            Paced::Rendered(response) => response.next(),
            Paced::Stream(stream) => Some(stream.messages.due()),
        }
    }

    /// What happens instead of them.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self {
            Paced::Rendered(_) => None,
            Paced::Stream(stream) => stream.messages.fault(),
        }
    }

    /// Whether everything is sent.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Paced::Rendered(response) => response.is_done(),
            Paced::Stream(stream) => stream.messages.is_done(),
        }
    }

    /// Whether the connection closes after it.
    pub(crate) fn close(&mut self) -> &mut bool {
        match self {
            Paced::Rendered(response) => &mut response.close,
            Paced::Stream(stream) => &mut stream.close,
        }
    }

    /// Sends the next bytes. Returns how many, and how they are counted. `scratch` may have old bytes.
    pub(crate) fn write_next(&mut self, now: u64, scratch: &mut Vec<u8>, to: &mut impl Sink) -> (Written, Role) {
        match self {
            Paced::Rendered(response) => response.write_next(to),
            Paced::Stream(stream) => stream.write_next(now, scratch, to),
        }
    }
}

/// Appends the last chunk with headers behind it (RFC 9112, section 7.1.2).
fn put_trailers(out: &mut Vec<u8>, trailers: &[Trailer]) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        [name.as_bytes(), b": ", value, b"\r\n"].iter().for_each(|piece| out.extend_from_slice(piece));
    }
    out.extend_from_slice(b"\r\n");
}

impl PacedStream {
    fn write_next(&mut self, now: u64, scratch: &mut Vec<u8>, to: &mut impl Sink) -> (Written, Role) {
        let body = self.messages.next_bytes();
        scratch.clear();
        if self.chunked {
            chunk_head(scratch, body);
        }
        let before_body = scratch.len() as u64;
        self.messages.write(now, scratch);
        let done = self.messages.is_done();
        if self.chunked {
            scratch.extend_from_slice(CHUNK_END);
            match self.messages.trailers().filter(|_| done) {
                None => scratch.extend_from_slice(if done { LAST_CHUNK } else { b"" }),
                Some(trailers) => put_trailers(scratch, trailers),
            }
        }
        to.send(scratch);
        let written = Written { bytes: scratch.len() as u64, body: body as u64, before_body };
        (written, if done { self.role } else { Role::Part })
    }
}
