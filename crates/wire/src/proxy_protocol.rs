//! The PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt): a header at the beginning of a connection with the addresses
//! that the sender's own client used.
//!
//! [`write()`] makes one, and a [`Reader`] takes one from the beginning of a stream and leaves what follows. Version 2's additional
//! values (TLVs) are skipped. The load and the origin call this; it does not know whether the addresses are true.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// How version 1 begins, and what follows.
const V1_START: &[u8] = b"PROXY ";
/// How version 2 begins.
const V2_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The length of version 2 before the addresses.
const V2_FIXED: usize = 16;
/// The longest header of version 1, with its end of line.
const V1_LONGEST: usize = 107;
/// The longest header of version 2 that is accepted: addresses, and additional values.
const V2_LONGEST: usize = 4096;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// How it was written.
    pub version: Version,
    /// Source and destination over TCP; `None`: the sender speaks for itself (`UNKNOWN`, `LOCAL`), or over something else.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
}

/// Why the beginning of a connection is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// It begins with other bytes.
    #[error("the connection does not begin with a header of the PROXY protocol")]
    Absent,
    /// It begins like one, and goes on otherwise.
    #[error("the header of the PROXY protocol is malformed")]
    Malformed,
    /// It is longer than it may be.
    #[error("the header of the PROXY protocol is too long")]
    TooLong,
}

/// Appends a header. Addresses of two families have none in common: the header then has no addresses.
pub fn write(out: &mut Vec<u8>, version: Version, addresses: Option<(SocketAddr, SocketAddr)>) {
    match version {
        Version::V1 => write_v1(out, addresses),
        Version::V2 => write_v2(out, addresses),
    }
}

fn write_v1(out: &mut Vec<u8>, addresses: Option<(SocketAddr, SocketAddr)>) {
    let line = match addresses {
        Some((from @ SocketAddr::V4(_), to @ SocketAddr::V4(_))) => ("TCP4", from, to),
        Some((from @ SocketAddr::V6(_), to @ SocketAddr::V6(_))) => ("TCP6", from, to),
        _ => return out.extend_from_slice(b"PROXY UNKNOWN\r\n"),
    };
    let (family, from, to) = line;
    let text = format!("PROXY {family} {} {} {} {}\r\n", from.ip(), to.ip(), from.port(), to.port());
    out.extend_from_slice(text.as_bytes());
}

fn write_v2(out: &mut Vec<u8>, addresses: Option<(SocketAddr, SocketAddr)>) {
    let (command, family, bytes) = match addresses {
        Some((SocketAddr::V4(from), SocketAddr::V4(to))) => {
            (0x21, 0x11, [from.ip().octets().as_slice(), &to.ip().octets()].concat())
        }
        Some((SocketAddr::V6(from), SocketAddr::V6(to))) => {
            (0x21, 0x21, [from.ip().octets().as_slice(), &to.ip().octets()].concat())
        }
        _ => (0x20, 0x00, Vec::new()),
    };
    let ports = addresses.filter(|_| !bytes.is_empty()).map(|(from, to)| [from.port(), to.port()]);
    let ports: Vec<u8> = ports.into_iter().flatten().flat_map(u16::to_be_bytes).collect();
    out.extend_from_slice(V2_START);
    out.extend_from_slice(&[command, family]);
    out.extend_from_slice(&((bytes.len() + ports.len()) as u16).to_be_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(&ports);
}

/// Takes a header from the beginning of a stream.
#[derive(Debug, Default)]
pub struct Reader {
    seen: Vec<u8>,
    ended: Option<Result<Header, ProxyError>>,
}

impl Reader {
    /// Reads on. `None`: all bytes are used, and more are needed. With a header, `input` begins behind it.
    ///
    /// # Errors
    /// What comes is no header; the error stays.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Header>, ProxyError> {
        // There are some tens of bytes, once on each connection.
        while self.ended.is_none() {
            let Some((byte, rest)) = input.split_first() else { return Ok(None) };
            self.seen.push(*byte);
            *input = rest;
            self.ended = whole(&self.seen).transpose();
        }
        self.ended.transpose()
    }
}

/// The header that these bytes are; `None`: they are the beginning of one.
fn whole(seen: &[u8]) -> Result<Option<Header>, ProxyError> {
    let begins = |start: &[u8]| seen.iter().zip(start).all(|(a, b)| a == b);
    if begins(V1_START) {
        return match seen {
            [line @ .., b'\r', b'\n'] => v1(line).map(Some).ok_or(ProxyError::Malformed),
            _ if seen.len() >= V1_LONGEST => Err(ProxyError::TooLong),
            _ => Ok(None),
        };
    }
    if !begins(V2_START) {
        return Err(ProxyError::Absent);
    }
    let Some(fixed) = seen.get(V2_START.len()..V2_FIXED) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if V2_FIXED + length > V2_LONGEST {
        return Err(ProxyError::TooLong);
    }
    match seen.len() == V2_FIXED + length {
        true => v2(fixed[0], fixed[1], &seen[V2_FIXED..]).map(Some).ok_or(ProxyError::Malformed),
        false => Ok(None),
    }
}

fn v1(line: &[u8]) -> Option<Header> {
    let line = str::from_utf8(line).ok()?.strip_prefix("PROXY ")?;
    let words: Vec<&str> = line.split(' ').collect();
    let addresses = match words.as_slice() {
        // What follows it is to be ignored.
        ["UNKNOWN", ..] => None,
        ["TCP4", from, to, from_port, to_port] => Some(pair::<Ipv4Addr>([from, to], [from_port, to_port])?),
        ["TCP6", from, to, from_port, to_port] => Some(pair::<Ipv6Addr>([from, to], [from_port, to_port])?),
        _ => return None,
    };
    Some(Header { version: Version::V1, addresses })
}

fn pair<A: FromStr + Into<IpAddr>>(ips: [&str; 2], ports: [&str; 2]) -> Option<(SocketAddr, SocketAddr)> {
    let port = |text: &str| {
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        text.parse::<u16>().ok().filter(|_| plain)
    };
    let address = |ip: &str, text: &str| Some(SocketAddr::new(ip.parse::<A>().ok()?.into(), port(text)?));
    Some((address(ips[0], ports[0])?, address(ips[1], ports[1])?))
}

fn v2(command: u8, family: u8, rest: &[u8]) -> Option<Header> {
    let header = |addresses| Some(Header { version: Version::V2, addresses });
    match (command, family) {
        // The sender's own connection: whatever the addresses are, they are to be ignored.
        (0x20, _) => header(None),
        (0x21, 0x11) => {
            let at = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(rest.get(at..at + 4)?).ok()?));
            header(Some((
                SocketAddr::new(at(0)?.into(), port(rest, 8)?),
                SocketAddr::new(at(4)?.into(), port(rest, 10)?),
            )))
        }
        (0x21, 0x21) => {
            let at = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(rest.get(at..at + 16)?).ok()?));
            header(Some((
                SocketAddr::new(at(0)?.into(), port(rest, 32)?),
                SocketAddr::new(at(16)?.into(), port(rest, 34)?),
            )))
        }
        // Unspecified, datagrams, and Unix sockets, which have 216 bytes of paths.
        (0x21, 0x00 | 0x12 | 0x22) => header(None),
        (0x21, 0x31 | 0x32) if rest.len() >= 216 => header(None),
        _ => None,
    }
}

fn port(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
