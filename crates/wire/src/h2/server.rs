//! The server half of a connection.

use super::{Body, Cause, Code, Fault, H2Error, Headers, Limits, Output, Prepared, Refused};

/// How a server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerOptions {
    /// Streams that the client may have open at a time.
    pub max_streams: u32,
    /// Bytes of request bodies that the client may send ahead on a stream, up to 2^31 - 1.
    pub stream_window: u32,
    /// Bytes of request bodies that the client may send ahead on the connection, from 65,535 to 2^31 - 1.
    pub connection_window: u32,
    /// Largest frame the client may send, from 16,384 to 2^24 - 1.
    pub max_frame: u32,
    /// Bounds.
    pub limits: Limits,
}

impl Default for ServerOptions {
    /// 256 streams, windows of 1 MiB and 16 MiB, frames of 16,384 bytes.
    fn default() -> ServerOptions {
        ServerOptions {
            max_streams: 256,
            stream_window: 1 << 20,
            connection_window: 16 << 20,
            max_frame: 16_384,
            limits: Limits::default(),
        }
    }
}

/// A stream of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    pub(super) slot: u32,
    pub(super) id: u32,
}

impl Stream {
    /// Dense from 0, and used again after the stream is gone: for tables. Below [`ServerOptions::max_streams`].
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// The number on the wire; no two streams of a connection have the same.
    pub fn id(self) -> u32 {
        self.id
    }
}

/// What comes out of the server half.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// The client's SETTINGS came.
    Settings,
    /// The head of a request.
    Request {
        /// The stream that the answer goes to.
        stream: Stream,
        /// What it says.
        head: RequestHead<'a>,
    },
    /// A piece of a request's body.
    Data {
        /// Of which request.
        stream: Stream,
        /// Never empty.
        bytes: &'a [u8],
    },
    /// The request is complete. (If its answer is, too, the stream is gone.)
    End {
        /// Which request.
        stream: Stream,
    },
    /// The answer whose [`Server::answer`] said [`Sent::Waiting`] has been written to the end.
    Sent {
        /// Which.
        stream: Stream,
    },
    /// The stream is gone before its time; what is left of its answer is dropped.
    Reset {
        /// Which.
        stream: Stream,
        /// Why.
        cause: Cause,
    },
    /// A request that is malformed from its head on; it has been reset and has no stream.
    Malformed {
        /// What is wrong.
        fault: Fault,
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
    /// The head is all of the request: [`ServerEvent::End`] follows.
    pub ends: bool,
    /// Whether the client waits for `100 Continue`: [`Server::interim`].
    pub expects_continue: bool,
    /// All headers but the pseudo-headers.
    pub headers: Headers<'a>,
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// All of it was written.
    All,
    /// The peer has no window for all of it. The rest follows by itself, and then [`ServerEvent::Sent`].
    Waiting,
}

/// The server half of one connection.
#[derive(Debug)]
pub struct Server {}

impl Server {
    /// For a new connection, whose first bytes are still to be read, the preface included.
    pub fn new(options: &ServerOptions) -> Server {
        let _ = options;
        Server {}
    }

    /// Writes what comes first: SETTINGS and the connection's window.
    pub fn start<O: Output>(&mut self, out: &mut O) {
        let _ = out;
    }

    /// Streams that are open: requests that are not complete, or not answered to the end.
    pub fn open(&self) -> u32 {
        0
    }

    /// The next event from `input`, which loses the bytes used. `None`: all of `input` was used; give more bytes.
    ///
    /// Call it until it gives `None`, even when `input` is empty. `out` gets what the protocol wants to be sent, and
    /// what waited of answers when the peer has made room.
    ///
    /// # Errors
    /// A connection error; every further call gives the same.
    pub fn next<'s, 'i: 's, O: Output>(
        &'s mut self,
        input: &mut &'i [u8],
        out: &mut O,
    ) -> Result<Option<ServerEvent<'s>>, H2Error> {
        let _ = out;
        *input = &[];
        Ok(None)
    }

    /// Writes an interim answer (100 to 199, not 101), such as `100 Continue`.
    ///
    /// # Errors
    /// The stream is gone or answered, or that is no interim status.
    pub fn interim<O: Output>(&mut self, stream: Stream, status: u16, out: &mut O) -> Result<(), Refused> {
        let _ = (stream, status, out);
        Err(Refused::NoStream)
    }

    /// Answers a request, whole. The body is left out where none can be: HEAD, 204, 304.
    ///
    /// # Errors
    /// The stream is gone or answered. Nothing was written.
    pub fn answer<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        body: Body<'_>,
        out: &mut O,
    ) -> Result<Sent, Refused> {
        self.head(stream, head, false, out)?;
        self.data(stream, body, true, out)
    }

    /// Answers a request with a head that is encoded now and has no place in the peer's table, and `content-length`.
    ///
    /// # Errors
    /// The stream is gone or answered, or (`BadValue`) the head cannot be sent. Nothing was written.
    pub fn answer_with<O: Output>(
        &mut self,
        stream: Stream,
        status: u16,
        headers: &[(&str, &[u8])],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<Sent, Refused> {
        let _ = (stream, status, headers, body, out);
        Err(Refused::NoStream)
    }

    /// Writes the head of an answer whose body comes with [`Server::data`]; `ends`: there is none.
    ///
    /// # Errors
    /// The stream is gone or answered. Nothing was written.
    pub fn head<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        ends: bool,
        out: &mut O,
    ) -> Result<Sent, Refused> {
        let _ = (stream, head, ends, out);
        Err(Refused::NoStream)
    }

    /// Writes a piece of the body of an answer, or the last one. [`Sent`] counts for the last one.
    ///
    /// # Errors
    /// The stream is gone, its head is not written, or its answer has ended. Nothing was written.
    pub fn data<O: Output>(
        &mut self,
        stream: Stream,
        piece: Body<'_>,
        ends: bool,
        out: &mut O,
    ) -> Result<Sent, Refused> {
        let _ = (stream, piece, ends, out);
        Err(Refused::NoStream)
    }

    /// Resets a stream. No more events come for it.
    pub fn reset<O: Output>(&mut self, stream: Stream, code: Code, out: &mut O) {
        let _ = (stream, code, out);
    }

    /// Says that no more requests are taken (GOAWAY). Those that came are still answered; when [`Server::open`] is 0, the
    /// connection can be closed.
    pub fn goodbye<O: Output>(&mut self, out: &mut O) {
        let _ = out;
    }
}
