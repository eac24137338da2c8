//! Checks whether a WebSocket can be opened on a stream of HTTP/2 (RFC 8441). The server's SETTINGS offer it, a CONNECT with a protocol opens
//! it, and DATA carries its frames.
//!
//! weir's own HTTP/2 refuses CONNECT, so the few frames that this needs are written and read here.

use weir_product::client::{Endpoint, RequestError};
use weir_wire::websocket::{self, Operation};

use super::streams::{GREETING, Open};
use crate::cell::Cell;
use crate::testbed::Testbed;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kinds of frames (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// Flags: no CONTINUATION follows HEADERS; SETTINGS are acknowledged.
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// SETTINGS_ENABLE_CONNECT_PROTOCOL.
const CONNECT_PROTOCOL: [u8; 6] = [0, 8, 0, 0, 0, 1];

/// A frame that came.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// Opens a WebSocket on a stream, and sends a message.
pub fn run(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let mut open = Open::new(&endpoint, &[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat())?;
    let offered = loop {
        match next(&mut open)? {
            Some(frame) if frame.kind == SETTINGS && frame.flags & ACK == 0 => {
                break frame.payload.chunks(6).any(|setting| setting == CONNECT_PROTOCOL);
            }
            Some(frame) if frame.kind != GOAWAY => {}
            _ => return Ok(Cell::no("closes").with("before its SETTINGS")),
        }
    };
    if !offered {
        return Ok(Cell::no("not offered").with("its SETTINGS do not have ENABLE_CONNECT_PROTOCOL"));
    }
    let mut message = Vec::new();
    websocket::put_frame(&mut message, Operation::Text, true, Some(*b"mask"), GREETING);
    let frames = [frame(SETTINGS, ACK, 0, &[]), frame(HEADERS, END_HEADERS, 1, &connect(&endpoint))];
    open.send(&frames.concat())?;
    open.send(&frame(DATA, 0, 1, &message))?;
    let mut echo = Vec::new();
    websocket::put_frame(&mut echo, Operation::Text, true, None, GREETING);
    let mut came = Vec::new();
    loop {
        let Some(frame) = next(&mut open)? else { return Ok(Cell::no("closes").with("after the CONNECT")) };
        match frame.kind {
            HEADERS if frame.stream == 1 => match status(&frame.payload) {
                Some(200) => {}
                Some(status) => return Ok(Cell::no(status.to_string())),
                None => {
                    return Ok(Cell::no("refused").with(format!("by a status that is not read: {:?}", frame.payload)));
                }
            },
            DATA if frame.stream == 1 => {
                came.extend_from_slice(&frame.payload);
                if came == echo {
                    return Ok(Cell::yes());
                }
                if !echo.starts_with(&came) {
                    return Ok(Cell::odd("wrong").with("another message came back"));
                }
            }
            RST_STREAM if frame.stream == 1 => return Ok(Cell::no("reset")),
            GOAWAY => return Ok(Cell::no("closes").with("after the CONNECT")),
            _ => {}
        }
    }
}

/// The headers of the CONNECT: literals without an index and without Huffman's code.
fn connect(endpoint: &Endpoint) -> Vec<u8> {
    let authority = endpoint.authority();
    let headers = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", if endpoint.tls.is_some() { "https" } else { "http" }),
        (":path", "/ws"),
        (":authority", &authority),
        ("sec-websocket-version", websocket::VERSION),
    ];
    let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    headers.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

/// The status at the beginning of a response's headers: an entry of the static table, or three digits without Huffman's code.
fn status(payload: &[u8]) -> Option<u16> {
    const TABLE: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    match payload {
        [index @ 0x88..=0x8e, ..] => Some(TABLE[usize::from(index - 0x88)]),
        [0x08 | 0x18 | 0x48, 3, digits @ ..] => std::str::from_utf8(digits.get(..3)?).ok()?.parse().ok(),
        // The size of the table.
        [0x20..=0x3e, rest @ ..] => status(rest),
        [0x3f, rest @ ..] => status(&rest[rest.iter().position(|byte| byte & 0x80 == 0)? + 1..]),
        _ => None,
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The next frame; `None`: the connection has ended.
fn next(open: &mut Open) -> Result<Option<Frame>, RequestError> {
    loop {
        if let Some((frame, length)) = parse(&open.input) {
            open.input.drain(..length);
            return Ok(Some(frame));
        }
        if !open.read_more()? {
            return Ok(None);
        }
    }
}

/// The first frame, and its bytes; `None`: it is not whole.
fn parse(input: &[u8]) -> Option<(Frame, usize)> {
    let [a, b, c, kind, flags, stream @ ..] = *input.first_chunk::<9>()?;
    let length = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
    let payload = input.get(9..length)?.to_vec();
    Some((Frame { kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff, payload }, length))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};

    use super::super::tls::{bed, tls};
    use super::*;
    use crate::table::cell_of;

    /// A server that offers it, takes the CONNECT and one message, and then sends these frames. Bytes that it left unread would turn its close
    /// into a reset.
    fn server(responses: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(&frame(SETTINGS, 0, 0, &CONNECT_PROTOCOL)).expect("sent");
            stream.read_exact(&mut [0; PREFACE.len()]).expect("the preface");
            let (mut input, mut piece) = (Vec::new(), [0; 1024]);
            loop {
                match parse(&input) {
                    Some((Frame { kind: DATA, .. }, _)) => break,
                    Some((_, length)) => drop(input.drain(..length)),
                    None => {
                        let length = stream.read(&mut piece).expect("a frame");
                        assert_ne!(length, 0, "the client sends a message");
                        input.extend_from_slice(&piece[..length]);
                    }
                }
            }
            stream.write_all(&responses).expect("sent");
        });
        addr
    }

    #[test]
    fn a_socket_on_a_stream_works_or_is_not_offered() {
        let (mut bed, _keep) = bed(Some(tls(|_| {})), "h2");
        assert_eq!(cell_of("h2-websocket", &mut bed).says, "not offered", "weir's own origin does not");
        let head = frame(HEADERS, END_HEADERS, 1, &[0x88]);
        let mut echo = Vec::new();
        websocket::put_frame(&mut echo, Operation::Text, true, None, GREETING);
        let (first, rest) = echo.split_at(3);
        let cases = [
            ([head.clone(), frame(DATA, 0, 1, first), frame(DATA, 0, 1, rest)].concat(), "yes"),
            ([head.clone(), frame(DATA, 0, 1, b"something")].concat(), "wrong"),
            (frame(HEADERS, END_HEADERS, 1, &[0x8d]), "404"),
            (frame(HEADERS, END_HEADERS, 1, b"\x3f\xe1\x1f\x48\x03403"), "403"),
            (frame(HEADERS, END_HEADERS, 1, &[0x48, 0x82, 0x64, 0x02]), "refused"),
            ([head, frame(RST_STREAM, 0, 1, &[0; 4])].concat(), "reset"),
            (Vec::new(), "closes"),
        ];
        for (responses, says) in cases {
            bed.product_endpoint = Some(Endpoint::plain(server(responses), bed.stop.clone()));
            assert_eq!(cell_of("h2-websocket", &mut bed).says, says);
        }
    }
}
