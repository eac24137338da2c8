//! One connection: what its protocol writes goes to streams, as far as QUIC takes it, and what comes on them is made frames of.
//!
//! It does not know sockets or datagrams.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quinn_proto::{ConnectionHandle, Dir, ReadError, Side, StreamId, VarInt, WriteError};
use weir_net::Conn;
use weir_wire::quic::{self, HEADER, Header, Kind, Part};

/// Bytes that are read before the protocol sees them: what fits a core's cache.
const READ: usize = 256 * 1024;

/// H3_NO_ERROR: how a connection ends that its protocol has ended without a code.
const NO_ERROR: u64 = 0x100;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Handshaking,
    Up,
    /// The program has closed it at this time: it ends when what was sent has arrived.
    Closing(u64),
    /// It ends with the next datagram.
    Ending,
    /// It has ended.
    Over,
}

/// What waits to be written to a stream.
#[derive(Debug, Default)]
struct Backlog {
    pieces: VecDeque<Bytes>,
    fin: bool,
}

/// Nothing can be written to a stream any more: the peer does not want it, or it was given up here.
struct Gone;

/// What waits for a stream that the peer does not allow yet.
#[derive(Debug)]
struct Unopened {
    stream: u64,
    bytes: Bytes,
    fin: bool,
    since: u64,
}

/// How many streams had to wait for the peer's leave, and how long together, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) streams: u64,
    pub(crate) ns: u64,
    pub(crate) longest: u64,
}

/// See the module.
pub(crate) struct Connection {
    pub(crate) quinn: quinn_proto::Connection,
    pub(crate) handle: ConnectionHandle,
    pub(crate) conn: Conn,
    /// Its socket, among the endpoint's.
    pub(crate) socket: usize,
    pub(crate) state: State,
    pub(crate) begun: u64,
    /// The earliest of its entries in the endpoint's timers.
    pub(crate) scheduled: u64,
    /// In the endpoint's lists: of those that have something to tell, and to send.
    pub(crate) listed: bool,
    pub(crate) dirty: bool,
    pub(crate) want_sent: bool,
    pub(crate) waits: Waits,
    /// The program knows it: it has had its first event.
    pub(crate) known: bool,
    side: Side,
    reader: quic::Reader,
    /// Streams that were opened here, by direction.
    opened: [u64; 2],
    unopened: VecDeque<Unopened>,
    blocked: BTreeMap<u64, Backlog>,
    /// Bytes of both.
    pub(crate) queued: usize,
    /// Streams that were finished, and of which not all has arrived.
    unfinished: u64,
    close: Option<(u64, Bytes)>,
    /// Streams to be read on.
    readable: VecDeque<StreamId>,
}

impl Connection {
    pub(crate) fn new(
        quinn: quinn_proto::Connection,
        handle: ConnectionHandle,
        conn: Conn,
        socket: usize,
        begun: u64,
    ) -> Connection {
        Connection {
            side: quinn.side(),
            quinn,
            handle,
            conn,
            socket,
            state: State::Handshaking,
            begun,
            scheduled: u64::MAX,
            listed: false,
            dirty: false,
            want_sent: false,
            waits: Waits::default(),
            known: false,
            reader: quic::Reader::default(),
            opened: [0; 2],
            unopened: VecDeque::new(),
            blocked: BTreeMap::new(),
            queued: 0,
            unfinished: 0,
            close: None,
            readable: VecDeque::new(),
        }
    }

    /// Whether the program may use it.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Handshaking | State::Up)
    }

    // --- What the protocol writes.

    /// Takes frames: `head`, and then `body`, which is not copied.
    pub(crate) fn write(&mut self, head: &[u8], body: &'static [u8], now: u64) {
        let mut reader = std::mem::take(&mut self.reader);
        let mut rest = head;
        loop {
            match reader.next(&mut rest) {
                Ok(Some(Part::Stream { stream, bytes, fin })) => self.write_stream(stream, bytes, fin, now),
                Ok(Some(Part::Other(header, payload))) => self.control(header, payload),
                Ok(None) => break,
                Err(quic::NotFrames) => return self.broken(),
            }
        }
        if !body.is_empty() {
            match reader.elsewhere(body.len()) {
                Some((stream, fin)) => self.push(stream, Bytes::from_static(body), fin, now),
                None => return self.broken(),
            }
        }
        self.reader = reader;
    }

    /// The protocol above has a fault, and nothing that it says can be trusted.
    fn broken(&mut self) {
        debug_assert!(false, "a protocol wrote what are not frames");
        self.state = State::Ending;
    }

    fn control(&mut self, header: Header, payload: &[u8]) {
        let code = payload.first_chunk().map_or(NO_ERROR, |code| u64::from_le_bytes(*code));
        let id = stream_id(header.stream);
        match header.kind {
            Kind::ResetStream if self.can_send(id) => {
                self.forget(header.stream);
                // A stream that is closed already needs no reset.
                let _ = self.quinn.send_stream(id).reset(var_int(code));
            }
            Kind::StopSending if self.can_receive(id) => {
                let _ = self.quinn.recv_stream(id).stop(var_int(code));
            }
            Kind::Close => self.close = Some((code, Bytes::copy_from_slice(payload.get(8..).unwrap_or_default()))),
            Kind::ResetStream | Kind::StopSending | Kind::Stream | Kind::StreamFin | Kind::MaxStreams => {}
        }
    }

    fn can_send(&self, id: StreamId) -> bool {
        self.is_opened(id) && (id.dir() == Dir::Bi || id.initiator() == self.side)
    }

    fn can_receive(&self, id: StreamId) -> bool {
        self.is_opened(id) && (id.dir() == Dir::Bi || id.initiator() != self.side)
    }

    fn is_opened(&self, id: StreamId) -> bool {
        id.initiator() != self.side || id.index() < self.opened[id.dir() as usize]
    }

    /// Nothing of a stream is to be sent any more.
    fn forget(&mut self, stream: u64) {
        if let Some(backlog) = self.blocked.remove(&stream) {
            self.queued -= backlog.pieces.iter().map(Bytes::len).sum::<usize>();
        }
    }

    #[inline]
    fn write_stream(&mut self, stream: u64, bytes: &[u8], fin: bool, now: u64) {
        let id = stream_id(stream);
        if self.open(id) && self.blocked.is_empty() {
            match self.quinn.send_stream(id).write(bytes) {
                Ok(count) if count == bytes.len() => self.finish_if(id, fin),
                Err(WriteError::Blocked) if bytes.is_empty() => self.finish_if(id, fin),
                Ok(count) => self.push(stream, Bytes::copy_from_slice(&bytes[count..]), fin, now),
                Err(WriteError::Blocked) => self.block(stream, Bytes::copy_from_slice(bytes), fin),
                // The peer does not want it, or it was given up here.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {}
            }
        } else {
            self.push(stream, Bytes::copy_from_slice(bytes), fin, now);
        }
    }

    /// As above, for bytes that need not be copied.
    fn push(&mut self, stream: u64, bytes: Bytes, fin: bool, now: u64) {
        let id = stream_id(stream);
        if !self.open(id) {
            self.queued += bytes.len();
            self.unopened.push_back(Unopened { stream, bytes, fin, since: now });
            return;
        }
        if self.blocked.contains_key(&stream) {
            return self.block(stream, bytes, fin);
        }
        match self.write_all(id, bytes) {
            Ok(None) => self.finish_if(id, fin),
            Ok(Some(rest)) => self.block(stream, rest, fin),
            Err(Gone) => {}
        }
    }

    /// Writes to a stream until it is blocked, for only then QUIC says when it is not any more. Returns the rest.
    fn write_all(&mut self, id: StreamId, bytes: Bytes) -> Result<Option<Bytes>, Gone> {
        let mut pieces = [bytes];
        while !pieces[0].is_empty() {
            match self.quinn.send_stream(id).write_chunks(&mut pieces) {
                Ok(_) => {}
                Err(WriteError::Blocked) => {
                    let [rest] = pieces;
                    return Ok(Some(rest));
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return Err(Gone),
            }
        }
        Ok(None)
    }

    fn block(&mut self, stream: u64, bytes: Bytes, fin: bool) {
        self.queued += bytes.len();
        let backlog = self.blocked.entry(stream).or_default();
        backlog.pieces.push_back(bytes);
        backlog.fin |= fin;
    }

    fn finish_if(&mut self, id: StreamId, fin: bool) {
        if fin && self.quinn.send_stream(id).finish().is_ok() {
            self.unfinished += 1;
        }
    }

    /// Opens a stream, if it is not open. `false`: the peer does not allow it yet.
    #[inline]
    fn open(&mut self, id: StreamId) -> bool {
        if self.is_opened(id) {
            return true;
        }
        // Streams are numbered as they are opened: one behind another that waits waits, too.
        let opened = &mut self.opened[id.dir() as usize];
        if id.index() > *opened || self.quinn.streams().open(id.dir()).is_none() {
            return false;
        }
        *opened += 1;
        true
    }

    /// Opens as many requests ahead as the peer allows, at most so many. Returns how many are open.
    pub(crate) fn open_requests(&mut self, most: u64) -> u64 {
        while self.opened[Dir::Bi as usize] < most && self.quinn.streams().open(Dir::Bi).is_some() {
            self.opened[Dir::Bi as usize] += 1;
        }
        self.opened[Dir::Bi as usize]
    }

    /// The peer allows more streams.
    pub(crate) fn open_waiting(&mut self, now: u64) {
        while let Some(first) = self.unopened.front() {
            if !self.open(stream_id(first.stream)) {
                return;
            }
            let Some(Unopened { stream, bytes, fin, since }) = self.unopened.pop_front() else { return };
            self.queued -= bytes.len();
            let waited = now.saturating_sub(since);
            self.waits.streams += 1;
            self.waits.ns += waited;
            self.waits.longest = self.waits.longest.max(waited);
            self.push(stream, bytes, fin, now);
        }
    }

    /// A stream that was blocked takes more.
    pub(crate) fn unblock(&mut self, id: StreamId) {
        let stream = u64::from(id);
        let Some(mut backlog) = self.blocked.remove(&stream) else { return };
        while let Some(bytes) = backlog.pieces.pop_front() {
            self.queued -= bytes.len();
            match self.write_all(id, bytes) {
                Ok(None) => {}
                Ok(Some(rest)) => {
                    self.queued += rest.len();
                    backlog.pieces.push_front(rest);
                    self.blocked.insert(stream, backlog);
                    return;
                }
                Err(Gone) => {
                    self.queued -= backlog.pieces.iter().map(Bytes::len).sum::<usize>();
                    return;
                }
            }
        }
        self.finish_if(id, backlog.fin);
    }

    /// All of a stream that was finished has arrived, or the peer does not want it.
    pub(crate) fn stream_arrived(&mut self) {
        self.unfinished = self.unfinished.saturating_sub(1);
    }

    /// The peer wants no more of a stream: it is told so, and so is the protocol.
    pub(crate) fn stopped(&mut self, id: StreamId, code: VarInt, inbox: &mut Vec<u8>) {
        self.forget(id.into());
        let _ = self.quinn.send_stream(id).reset(code);
        quic::put_code(inbox, id.into(), Kind::StopSending, code.into_inner());
    }

    // --- The end.

    /// Whether all that was sent has arrived, as far as QUIC tells.
    pub(crate) fn is_settled(&self) -> bool {
        self.queued == 0 && self.unfinished == 0
    }

    /// The code and the reason with which it ends.
    pub(crate) fn closing(&mut self) -> (VarInt, Bytes) {
        let (code, reason) = self.close.take().unwrap_or((NO_ERROR, Bytes::new()));
        (var_int(code), reason)
    }

    // --- What came.

    /// A stream has something to read.
    pub(crate) fn readable(&mut self, id: StreamId) {
        self.readable.push_back(id);
    }

    /// Streams that the peer has opened.
    pub(crate) fn accept(&mut self, dir: Dir) {
        while let Some(id) = self.quinn.streams().accept(dir) {
            self.readable.push_back(id);
        }
    }

    /// Reads what came, as frames, up to a limit. Returns whether there is more.
    pub(crate) fn read(&mut self, inbox: &mut Vec<u8>) -> bool {
        while let Some(id) = self.readable.pop_front() {
            if self.read_stream(id, inbox) {
                self.readable.push_front(id);
                return true;
            }
            if inbox.len() >= READ {
                break;
            }
        }
        !self.readable.is_empty()
    }

    /// Reads a stream. Returns whether there may be more of it now.
    fn read_stream(&mut self, id: StreamId, inbox: &mut Vec<u8>) -> bool {
        let (stream, start) = (u64::from(id), inbox.len());
        let mut stream_reader = self.quinn.recv_stream(id);
        // A stream that was stopped here is closed.
        let Ok(mut chunks) = stream_reader.read(true) else { return false };
        quic::begin(inbox);
        let (mut kind, mut more, mut reset) = (Kind::Stream, false, None);
        loop {
            match chunks.next(READ) {
                Ok(Some(chunk)) => inbox.extend_from_slice(&chunk.bytes),
                Ok(None) => {
                    kind = Kind::StreamFin;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    reset = Some(code);
                    break;
                }
            }
            if inbox.len() - start >= READ {
                more = true;
                break;
            }
        }
        // What has to be sent for it leaves with the next transmission in any case.
        let _ = chunks.finalize();
        if inbox.len() == start + HEADER && kind == Kind::Stream {
            inbox.truncate(start);
        } else {
            quic::end(inbox, start, stream, kind, 0);
        }
        if let Some(code) = reset {
            quic::put_code(inbox, stream, Kind::ResetStream, code.into_inner());
        }
        more
    }
}

fn stream_id(stream: u64) -> StreamId {
    // Halves of protocols count streams from 0, and never reach 2^62.
    StreamId::from(var_int(stream))
}

fn var_int(number: u64) -> VarInt {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX)
}
