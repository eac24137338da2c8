//! What is spoken on one connection: HTTP/1 or HTTP/2, found out from its first bytes.
//!
//! A client that knows beforehand that this server speaks HTTP/2 begins with a preface (RFC 9113 section 3.4) whose
//! first four bytes begin no request of HTTP/1 that anybody sends.
//!
//! This module does not know drivers, nor whether there is TLS below.

use weir_net::Conn;

use crate::desk::Desk;
use crate::line::Line;
use crate::one::One;

/// How HTTP/2 begins, as far as it has to be looked at: the method is no registered one.
const PREFACE: &[u8] = b"PRI ";

/// Something that happened on a connection, as protocols see it.
#[derive(Debug)]
pub(crate) enum Heard<'a> {
    /// Bytes came.
    Data(&'a [u8]),
    /// Everything queued has been taken.
    Sent,
    /// The peer sends no more.
    Eof,
    /// The connection is gone; the kernel has not taken so many bytes; the peer has reset it, or not.
    Failed(usize, bool),
    /// A time has come: which.
    Time(u32),
    /// The origin stops: no more requests.
    Stop,
    /// The origin has stopped: no more of anything.
    Abort,
    /// What is below has broken; the connection is closed by whoever says so.
    Broken,
}

/// One connection, from the protocol up.
#[derive(Debug)]
pub(crate) struct Talk {
    tongue: Tongue,
    one: One,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tongue {
    /// So many bytes of the preface have come, and nothing else.
    Unknown(u8),
    One,
}

impl Talk {
    /// Nobody is there.
    pub(crate) fn new() -> Talk {
        Talk { tongue: Tongue::Unknown(0), one: One::new() }
    }

    /// A new connection in place of an old one.
    pub(crate) fn begin(&mut self, conn: Conn) {
        self.tongue = Tongue::Unknown(0);
        self.one.begin(conn);
    }

    /// The two sides have agreed on a protocol, by ALPN, or on none.
    pub(crate) fn agreed_on(&mut self, protocol: Option<&str>) {
        let _ = protocol;
    }

    /// Whether the connection is no longer ours.
    pub(crate) fn is_over(&self) -> bool {
        match self.tongue {
            Tongue::Unknown(_) | Tongue::One => self.one.flow.is_gone(),
        }
    }

    /// Deals with what happened.
    #[inline]
    pub(crate) fn hear(&mut self, line: &mut impl Line, desk: &mut Desk, heard: Heard<'_>) {
        match (self.tongue, heard) {
            (Tongue::Unknown(seen), Heard::Data(bytes)) => self.first_bytes(line, desk, seen, bytes),
            (Tongue::One | Tongue::Unknown(_), heard) => self.one.hear(line, desk, heard),
        }
    }

    #[cold]
    fn first_bytes(&mut self, line: &mut impl Line, desk: &mut Desk, seen: u8, bytes: &[u8]) {
        let (before, rest) = PREFACE.split_at(usize::from(seen));
        let same = rest.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        if same == bytes.len() && same < rest.len() {
            // At most four.
            self.tongue = Tongue::Unknown(seen + same as u8);
            return;
        }
        self.tongue = Tongue::One;
        if !before.is_empty() {
            self.hear(line, desk, Heard::Data(before));
        }
        self.hear(line, desk, Heard::Data(bytes));
    }
}
