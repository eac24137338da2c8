//! HTTP/3: the session of [`crate::http2`] with another half. Input and output are frames of QUIC's streams
//! ([`weir_wire::quic`]), which the driver of QUIC writes and reads.

use weir_model::protocol::Application;
use weir_net::Conn;
use weir_wire::http2::{self, Body, EncodeError, Output, ResetCause, SendError, SendStatus, ServerEvent, Stream};
use weir_wire::http3::{self, Code, ConnectionError, Options, Prepared, Server};
use weir_wire::quic::{self, HEADER, Header, Kind};

use crate::http::{HttpShared, HttpState};
use crate::http2::{Half, Http2};
use crate::resolve::Resolved;
use crate::session::{Session, SessionEvent};
use crate::transport::Transport;

/// The stream of a server's control stream: the first that it opens in one direction (RFC 9000 section 2.1).
const CONTROL: u64 = 3;

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Http3Session(Option<Box<Http2<Http3>>>);

impl Session for Http3Session {
    type Shared = HttpShared;

    const ALPN: &'static [&'static str] = &["h3"];

    fn new() -> Http3Session {
        Http3Session::default()
    }

    fn begin(&mut self, conn: Conn) {
        self.0 = Some(Box::new(Http2::new(conn)));
    }

    fn on_event<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, event: SessionEvent<'_>) {
        if let Some(http3) = &mut self.0 {
            http3.on_event(transport, state, event);
            if http3.is_closed() {
                self.0 = None;
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.0.is_none()
    }
}

/// The half.
#[derive(Debug)]
pub(crate) struct Http3 {
    server: Server,
    /// By slot.
    streams: Vec<Option<http3::Stream>>,
    /// The stream whose bytes come, how many are still to come, and whether they are its last.
    under_way: Option<(u64, usize, bool)>,
    /// Bytes of frames written that are no part of streams.
    written: u64,
}

impl Http3 {
    fn stream(&self, stream: Stream) -> Result<http3::Stream, SendError> {
        self.streams
            .get(stream.slot())
            .copied()
            .flatten()
            .filter(|one| known_as(*one) == stream)
            .ok_or(SendError::NoStream)
    }

    /// Writes a frame of a stream, which `write` fills.
    fn frame<O: Output>(
        &mut self,
        stream: Stream,
        fin: bool,
        out: &mut O,
        write: impl FnOnce(&mut Server, http3::Stream, &mut Framed<'_, O>) -> Result<(), SendError>,
    ) -> Result<SendStatus, SendError> {
        let stream = self.stream(stream)?;
        let start = quic::begin(out.buffer());
        let kind = if fin { Kind::StreamFin } else { Kind::Stream };
        let mut framed = Framed { out, start, stream: stream.id(), kind, ended: false };
        let written = write(&mut self.server, stream, &mut framed);
        if written.is_err() {
            framed.out.buffer().truncate(start);
            return written.map(|()| SendStatus::All);
        }
        framed.end(0);
        self.written += HEADER as u64;
        Ok(SendStatus::All)
    }

    /// Writes bytes of the control stream.
    fn put_control(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        quic::put(out, CONTROL, Kind::Stream, bytes);
        self.written += HEADER as u64;
    }

    /// The next frame's header, and what is done with it: bytes of a stream are left to be read. The stream and code of one that the peer
    /// gave up.
    fn begin_frame(&mut self, input: &mut &[u8], framing: &mut u64) -> Option<(u64, u64)> {
        // The driver never cuts a frame.
        let (header, rest) = input.split_first_chunk::<HEADER>()?;
        *input = rest;
        *framing += HEADER as u64;
        let header = Header::of(header)?;
        if matches!(header.kind, Kind::Stream | Kind::StreamFin) {
            self.under_way = Some((header.stream, header.length as usize, header.kind == Kind::StreamFin));
            return None;
        }
        let (payload, rest) = input.split_at_checked(header.length as usize)?;
        *input = rest;
        *framing += u64::from(header.length);
        matches!(header.kind, Kind::ResetStream | Kind::StopSending).then(|| (header.stream, quic::code(payload)))
    }
}

/// A frame that is being written. Its header has the length once that is known: behind the last bytes, or before those that are not copied.
struct Framed<'a, O> {
    out: &'a mut O,
    start: usize,
    stream: u64,
    kind: Kind,
    ended: bool,
}

impl<O: Output> Framed<'_, O> {
    /// All is written but so many bytes.
    fn end(&mut self, more: usize) {
        if !std::mem::replace(&mut self.ended, true) {
            quic::end(self.out.buffer(), self.start, self.stream, self.kind, more);
        }
    }
}

impl<O: Output> Output for Framed<'_, O> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.out.buffer()
    }

    fn body(&mut self, piece: &'static [u8]) {
        // Nothing of a frame follows its body.
        self.end(piece.len());
        self.out.body(piece);
    }
}

/// What sessions call a stream.
fn known_as(stream: http3::Stream) -> Stream {
    Stream::of(stream.slot() as u32, (stream.id() / 4) as u32)
}

impl Half for Http3 {
    const APPLICATION: Application = Application::Http3;
    type Prepared = Prepared;
    type Error = ConnectionError;

    fn new() -> Http3 {
        Http3 { server: Server::new(&Options::default()), streams: Vec::new(), under_way: None, written: 0 }
    }

    fn start<O: Output>(&mut self, out: &mut O) {
        let mut bytes = Vec::new();
        self.server.start(&mut bytes);
        self.put_control(out.buffer(), &bytes);
    }

    fn next_event<'s, 'i: 's, O: Output>(
        &'s mut self,
        input: &mut &'i [u8],
        out: &mut O,
        framing: &mut u64,
    ) -> Result<Option<ServerEvent<'s>>, ConnectionError> {
        if self.under_way.is_none() {
            if input.is_empty() {
                return Ok(None);
            }
            if let Some((id, code)) = self.begin_frame(input, framing) {
                return match self.server.reset_by_peer(id, code) {
                    Ok(Some(http3::ServerEvent::Reset { stream, .. })) => Ok(Some(ServerEvent::Reset {
                        stream: known_as(stream),
                        cause: ResetCause::Peer(http2::Code(code as u32)),
                    })),
                    Ok(_) => Ok(Some(ServerEvent::Settings)),
                    Err(error) => {
                        self.written += put_close(out, &error);
                        Err(error)
                    }
                };
            }
        }
        let Some((id, left, fin)) = self.under_way else { return Ok(Some(ServerEvent::Settings)) };
        let (now, later) = input.split_at(left.min(input.len()));
        let mut rest = now;
        let (server, under_way) = (&mut self.server, &mut self.under_way);
        let event = match server.next(id, &mut rest, fin) {
            Ok(event) => event,
            Err(error) => {
                self.written += put_close(out, &error);
                return Err(error);
            }
        };
        *input = &input[now.len() - rest.len()..];
        let Some(event) = event else {
            *under_way = None;
            *input = later;
            // An event of no meaning, as this is to a session, leads to the next frame.
            return Ok((!later.is_empty()).then_some(ServerEvent::Settings));
        };
        *under_way = Some((id, rest.len(), fin));
        let mut given_up = |id: u64, code: Code| {
            self.written += put_give_up(out, id, code);
        };
        Ok(Some(match event {
            http3::ServerEvent::Request { stream, head } => {
                let slot = stream.slot();
                if self.streams.len() <= slot {
                    self.streams.resize(slot + 1, None);
                }
                self.streams[slot] = Some(stream);
                ServerEvent::Request { stream: known_as(stream), head }
            }
            http3::ServerEvent::Data { stream, bytes } => ServerEvent::Data { stream: known_as(stream), bytes },
            http3::ServerEvent::End { stream } => ServerEvent::End { stream: known_as(stream) },
            http3::ServerEvent::Reset { stream, cause } => {
                let cause = match cause {
                    http3::ResetCause::Malformed(fault) => {
                        given_up(stream.id(), http3::code_of(fault));
                        ResetCause::Malformed(fault)
                    }
                    http3::ResetCause::Peer(code) => ResetCause::Peer(http2::Code(code.0 as u32)),
                    http3::ResetCause::GoneAway => ResetCause::GoneAway,
                };
                ServerEvent::Reset { stream: known_as(stream), cause }
            }
            http3::ServerEvent::Malformed { id, fault } => {
                given_up(id, http3::code_of(fault));
                ServerEvent::Malformed { fault }
            }
            http3::ServerEvent::Refused { id } => {
                given_up(id, Code::REQUEST_REJECTED);
                ServerEvent::Settings
            }
            http3::ServerEvent::Settings | http3::ServerEvent::GoAway => ServerEvent::Settings,
        }))
    }

    fn interim<O: Output>(&mut self, stream: Stream, status: u16, out: &mut O) -> Result<(), SendError> {
        self.frame(stream, false, out, |server, stream, out| server.interim(stream, status, out)).map(drop)
    }

    fn usual(resolved: &Resolved) -> &Prepared {
        resolved.http3_usual()
    }

    fn respond_filled<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        values: &[&[u8]],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        self.frame(stream, true, out, |server, stream, out| server.respond_filled(stream, head, values, body, out))
    }

    fn respond_with<O: Output>(
        &mut self,
        stream: Stream,
        status: u16,
        headers: &[(&str, &[u8])],
        body: Body<'_>,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        self.frame(stream, true, out, |server, stream, out| server.respond_with(stream, status, headers, body, out))
    }

    fn head(resolved: &Resolved, content_type: &str, length: Option<u64>) -> Result<Prepared, EncodeError> {
        resolved.http3_head(content_type, length)
    }

    fn head_filled<O: Output>(
        &mut self,
        stream: Stream,
        head: &Prepared,
        values: &[&[u8]],
        ends: bool,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        self.frame(stream, ends, out, |server, stream, out| server.head_filled(stream, head, values, ends, out))
    }

    fn data<O: Output>(
        &mut self,
        stream: Stream,
        body: Body<'_>,
        ends: bool,
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        self.frame(stream, ends, out, |server, stream, out| server.data(stream, body, ends, out))
    }

    fn trailers<O: Output>(
        &mut self,
        stream: Stream,
        headers: &[(&str, &[u8])],
        out: &mut O,
    ) -> Result<SendStatus, SendError> {
        self.frame(stream, true, out, |server, stream, out| server.trailers(stream, headers, out))
    }

    fn fail<O: Output>(&mut self, stream: Stream, out: &mut O) {
        if let Ok(stream) = self.stream(stream) {
            self.server.reset(stream);
            self.written += put_give_up(out, stream.id(), Code::INTERNAL_ERROR);
        }
    }

    fn go_away<O: Output>(&mut self, out: &mut O) {
        let mut bytes = Vec::new();
        self.server.go_away(&mut bytes);
        self.put_control(out.buffer(), &bytes);
    }

    fn framing_written(&self) -> u64 {
        self.written
    }
}

/// The connection ends with this code. Returns how many bytes that is here.
fn put_close(out: &mut impl Output, error: &ConnectionError) -> u64 {
    let before = out.buffer().len();
    quic::put_close(out.buffer(), error.code.0, &error.to_string());
    (out.buffer().len() - before) as u64
}

/// Neither side sends on a stream any more. Returns how many bytes that is here.
fn put_give_up(out: &mut impl Output, id: u64, code: Code) -> u64 {
    let before = out.buffer().len();
    quic::put_give_up(out.buffer(), id, code.0);
    (out.buffer().len() - before) as u64
}
