//! What is spoken on one connection: HTTP/1 or HTTP/2, found out from its first bytes.
//!
//! A client that knows beforehand that this server speaks HTTP/2 begins with a preface (RFC 9113 section 3.4), which is no
//! request of HTTP/1; with TLS the two have agreed before (ALPN), or the first bytes tell here too.
//!
//! This module does not know drivers, nor whether there is TLS below.

use weir_net::Conn;
use weir_wire::http2::{self, Detected};

use crate::desk::Desk;
use crate::line::Line;
use crate::one::One;
use crate::two::Two;

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
    /// When that is spoken. Boxed, since others are the rule.
    two: Option<Box<Two>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tongue {
    /// So many bytes of the preface have come, and nothing else.
    Unknown(u8),
    One,
    Two,
}

impl Talk {
    /// Nobody is there.
    pub(crate) fn new() -> Talk {
        Talk { tongue: Tongue::Unknown(0), one: One::new(), two: None }
    }

    /// A new connection in place of an old one.
    pub(crate) fn begin(&mut self, conn: Conn) {
        self.tongue = Tongue::Unknown(0);
        self.one.begin(conn);
    }

    /// The two sides have agreed on a protocol, by ALPN, or on none.
    pub(crate) fn agreed_on(&mut self, conn: Conn, protocol: Option<&str>) {
        match protocol {
            Some("h2") => self.speak_two(conn),
            Some(_) => self.tongue = Tongue::One,
            // The first bytes will tell.
            None => {}
        }
    }

    fn speak_two(&mut self, conn: Conn) {
        self.tongue = Tongue::Two;
        self.two = Some(Box::new(Two::new(conn)));
    }

    /// The connection as one that speaks HTTP/1, if it is known to.
    #[inline]
    pub(crate) fn as_one(&mut self) -> Option<&mut One> {
        (self.tongue == Tongue::One).then_some(&mut self.one)
    }

    /// Whether the connection is no longer ours.
    pub(crate) fn is_over(&self) -> bool {
        match self.tongue {
            Tongue::Unknown(_) | Tongue::One => self.one.flow.is_gone(),
            Tongue::Two => self.two.as_ref().is_none_or(|two| two.is_gone()),
        }
    }

    /// Deals with what happened.
    #[inline]
    pub(crate) fn hear(&mut self, line: &mut impl Line, desk: &mut Desk, heard: Heard<'_>) {
        match (self.tongue, heard) {
            (Tongue::Unknown(seen), Heard::Data(bytes)) => self.first_bytes(line, desk, seen, bytes),
            (Tongue::One | Tongue::Unknown(_), heard) => self.one.hear(line, desk, heard),
            (Tongue::Two, heard) => self.hear_two(line, desk, heard),
        }
    }

    fn hear_two(&mut self, line: &mut impl Line, desk: &mut Desk, heard: Heard<'_>) {
        if let Some(two) = &mut self.two {
            two.hear(line, desk, heard);
            if two.is_gone() {
                self.two = None;
            }
        }
    }

    #[cold]
    fn first_bytes(&mut self, line: &mut impl Line, desk: &mut Desk, seen: u8, bytes: &[u8]) {
        // What was seen is the beginning of the preface, so it need not be kept.
        let before = &http2::PREFACE[..usize::from(seen)];
        let mut first = [0; http2::PREFACE.len()];
        let more = bytes.len().min(first.len() - before.len());
        first[..before.len()].copy_from_slice(before);
        first[before.len()..][..more].copy_from_slice(&bytes[..more]);
        match http2::detect(&first[..before.len() + more]) {
            // Undecided are fewer bytes than the preface has, so that was all.
            Detected::Undecided => return self.tongue = Tongue::Unknown((before.len() + more) as u8),
            Detected::Http1 => self.tongue = Tongue::One,
            Detected::Http2 => match self.one.flow.conn() {
                Some(conn) => self.speak_two(conn),
                None => return,
            },
        }
        if !before.is_empty() {
            self.hear(line, desk, Heard::Data(before));
        }
        self.hear(line, desk, Heard::Data(bytes));
    }
}
