//! What a session needs of the server's half of a protocol with streams, in the words of HTTP/2's, which is one itself.

use std::fmt::Debug;

use weir_model::protocol::Application;
use weir_wire::http2::{
    Body, Code, ConnectionError, EncodeError, Options, Output, Prepared, SendError, SendStatus, Server, ServerEvent,
    Stream,
};

use super::MAX_STREAMS;
use crate::resolve::Resolved;

/// See the module. Methods are those of [`Server`] where they have its names.
pub(crate) trait Half: Debug {
    /// The protocol.
    const APPLICATION: Application;

    /// The head of a response, made ready.
    type Prepared: Debug;

    /// Why a connection ends.
    type Error;

    fn new() -> Self;

    fn start<O: Output>(&mut self, out: &mut O);

    /// The next event of `input`; see [`Server::next`]. Bytes of the input that are no part of what the peer sent are added to `framing`.
    fn next_event<'s, 'i: 's, O: Output>(
        &'s mut self,
        input: &mut &'i [u8],
        out: &mut O,
        framing: &mut u64,
    ) -> Result<Option<ServerEvent<'s>>, Self::Error>;

    fn interim<O: Output>(&mut self, stream: Stream, status: u16, out: &mut O) -> Result<(), SendError>;

    /// The head of the usual response of a target.
    fn usual(resolved: &Resolved) -> &Self::Prepared;

    fn respond_filled<O: Output>(
        &mut self,
        stream: Stream,
        head: &Self::Prepared,
        values: &[&[u8]],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<SendStatus, SendError>;

    fn respond_with<O: Output>(
        &mut self,
        stream: Stream,
        status: u16,
        headers: &[(&str, &[u8])],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<SendStatus, SendError>;

    /// See [`Resolved::http2_head`].
    fn head(resolved: &Resolved, content_type: &str, length: Option<u64>) -> Result<Self::Prepared, EncodeError>;

    fn head_filled<O: Output>(
        &mut self,
        stream: Stream,
        head: &Self::Prepared,
        values: &[&[u8]],
        ends: bool,
        out: &mut O,
    ) -> Result<SendStatus, SendError>;

    fn data<O: Output>(
        &mut self,
        stream: Stream,
        body: Body<'_>,
        ends: bool,
        out: &mut O,
    ) -> Result<SendStatus, SendError>;

    /// Ends a response with trailers.
    fn trailers<O: Output>(
        &mut self,
        stream: Stream,
        headers: &[(&str, &[u8])],
        out: &mut O,
    ) -> Result<SendStatus, SendError>;

    /// Resets a stream: the origin has failed.
    fn fail<O: Output>(&mut self, stream: Stream, out: &mut O);

    fn go_away<O: Output>(&mut self, out: &mut O);

    /// Bytes written so far that the peer will not get.
    #[inline]
    fn framing_written(&self) -> u64 {
        0
    }
}

impl Half for Server {
    const APPLICATION: Application = Application::Http2;
    type Prepared = Prepared;
    type Error = ConnectionError;

    fn new() -> Server {
        Server::new(&Options { max_streams: MAX_STREAMS, ..Options::server() })
    }

    fn start<O: Output>(&mut self, out: &mut O) {
        Server::start(self, out);
    }

    #[inline]
    fn next_event<'s, 'i: 's, O: Output>(
        &'s mut self,
        input: &mut &'i [u8],
        out: &mut O,
        _framing: &mut u64,
    ) -> Result<Option<ServerEvent<'s>>, ConnectionError> {
        self.next(input, out)
    }

    fn interim<O: Output>(&mut self, stream: Stream, status: u16, out: &mut O) -> Result<(), SendError> {
        Server::interim(self, stream, status, out)
    }

    fn usual(resolved: &Resolved) -> &Prepared {
        resolved.http2_usual()
    }

    #[inline]
    fn respond_filled<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        values: &[&[u8]],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        Server::respond_filled(self, stream, head, values, body, out)
    }

    fn respond_with<O: Output>(
        &mut self,
        stream: Stream,
        status: u16,
        headers: &[(&str, &[u8])],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        Server::respond_with(self, stream, status, headers, body, out)
    }

    fn head(resolved: &Resolved, content_type: &str, length: Option<u64>) -> Result<Prepared, EncodeError> {
        resolved.http2_head(content_type, length)
    }

    fn head_filled<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        values: &[&[u8]],
        ends: bool,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        Server::head_filled(self, stream, head, values, ends, out)
    }

    fn data<O: Output>(
        &mut self,
        stream: Stream,
        body: Body<'_>,
        ends: bool,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        Server::data(self, stream, body, ends, out)
    }

    fn trailers<O: Output>(
        &mut self,
        stream: Stream,
        headers: &[(&str, &[u8])],
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        Server::trailers(self, stream, headers, out)
    }

    fn fail<O: Output>(&mut self, stream: Stream, out: &mut O) {
        self.reset(stream, Code::INTERNAL_ERROR, out);
    }

    fn go_away<O: Output>(&mut self, out: &mut O) {
        Server::go_away(self, out);
    }
}
