//! What must hold for any bytes whatever, for both halves of HTTP/2 and for its header compression. Used by the tests
//! here and by the fuzz targets, which say how their input is laid out (fuzz/README.md).
//!
//! - How the bytes are cut makes no difference to the events, to the error, or to what is sent.
//! - `None` means that all input was used. An error stays.
//! - Each stream's events come in order, none after its end, and a body has the length that its head announced.
//! - What is sent are whole frames, DATA only as the peer's windows allow.
//! - What HPACK accepts, another decoder (loona-hpack) accepts and reads alike.

use std::collections::HashMap;

use weir_wire::http2::probe::Blocks;
use weir_wire::http2::{
    Body, Client, ClientEvent, ConnectionError, Limits, Options, PREFACE, Prepared, Request, Server, ServerEvent,
};

/// A body longer than the first window.
static LONG: [u8; 70_000] = [b'l'; 70_000];

/// All that a reading shows.
#[derive(Debug, PartialEq, Eq, Default)]
struct Shown {
    /// Events as text; pieces of bodies that came in a row are one.
    events: Vec<String>,
    bodies: Vec<Vec<u8>>,
    error: Option<ConnectionError>,
    sent: Vec<u8>,
}

impl Shown {
    fn data(&mut self, of: u32, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "data is never empty");
        let name = format!("data of {of}");
        if self.events.last() == Some(&name)
            && let Some(body) = self.bodies.last_mut()
        {
            body.extend_from_slice(bytes);
        } else {
            self.events.push(name);
            self.bodies.push(bytes.to_vec());
        }
    }
}

/// One stream as its events show it.
#[derive(Debug, Default)]
struct Progress {
    headed: bool,
    /// What the head announced, if there is to be a body.
    length: Option<u64>,
    got: u64,
}

/// Cuts bytes: 0 one by one, others into pieces of 0 to 15 bytes, or up to 255 for odd ones.
fn pieces(bytes: &[u8], how: u8) -> Vec<&[u8]> {
    if how == 0 {
        return bytes.chunks(1).collect();
    }
    let mut state = u32::from(how);
    let mut rest = bytes;
    let mut out = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let most = if how % 2 == 1 { 255 } else { 15 };
        let (piece, after) = rest.split_at(((state >> 24) as usize & most).min(rest.len()));
        out.push(piece);
        rest = after;
    }
    out
}

fn tight() -> Limits {
    Limits { header_list: 300, idle_frames: 20, resets: 3, ..Limits::default() }
}

/// Any bytes as what a server sends. Two bytes say how: [`client_options`], and how to cut.
pub fn client(data: &[u8]) {
    let [how, cut, bytes @ ..] = data else { return };
    let whole = run_client(*how, &[bytes]);
    let cut = run_client(*how, &pieces(bytes, *cut));
    assert_eq!(whole, cut, "how the bytes are cut makes no difference");
    check_sent(&whole.sent, bytes, PREFACE.len());
}

/// Bit 0: tight bounds and windows; bit 1: headers are not kept; bits 2 to 4: requests under way; bit 5: every second is
/// HEAD, bit 6: the others have a body.
fn client_options(how: u8) -> (Options, u32) {
    let mut options = Options { keep_headers: how & 2 == 0, ..Options::client() };
    if how & 1 != 0 {
        options = Options { limits: tight(), stream_window: 100, connection_window: 0, ..options };
    }
    (options, u32::from(how >> 2) & 7)
}

fn run_client(how: u8, pieces: &[&[u8]]) -> Shown {
    let (options, requests) = client_options(how);
    let mut client = Client::new(&options);
    let mut shown = Shown::default();
    client.start(&mut shown.sent);
    let mut open: HashMap<u32, Progress> = HashMap::new();
    let mut heads = Vec::new();
    for tag in 0..requests {
        let head = how & 32 != 0 && tag % 2 == 1;
        let method = if head { "HEAD" } else { "POST" };
        let request = Request { method, scheme: "http", authority: "a", path: "/", headers: &[("x", "y")] };
        let body = if how & 64 != 0 && !head { Body::Static(&LONG) } else { Body::None };
        let prepared = Prepared::request(&request).expect("a request that can be sent");
        client.request(tag, &prepared, body, &mut shown.sent).expect("a new connection takes requests");
        open.insert(tag, Progress::default());
        if head {
            heads.push(tag);
        }
    }
    for piece in pieces {
        let mut input = *piece;
        loop {
            match client.next(&mut input, &mut shown.sent) {
                Ok(Some(event)) => judge_client_event(&mut shown, &mut open, &heads, &event),
                Ok(None) => break,
                Err(error) => {
                    shown.error = Some(error);
                    let length = shown.sent.len();
                    assert_eq!(client.next(&mut input, &mut shown.sent).err(), Some(error), "an error stays");
                    assert_eq!((shown.sent.len(), client.streams()), (length, 0));
                    return shown;
                }
            }
            assert_eq!(client.open() as usize, open.len(), "streams that are open");
        }
        assert!(input.is_empty(), "None means that all was used");
    }
    shown
}

fn judge_client_event(shown: &mut Shown, open: &mut HashMap<u32, Progress>, heads: &[u32], event: &ClientEvent<'_>) {
    match event {
        ClientEvent::Informational { tag, status } => {
            assert!(!open[tag].headed && (100..200).contains(status), "an interim response comes before the final one");
        }
        ClientEvent::Head { tag, head } => {
            let progress = open.get_mut(tag).expect("the head of something that is open");
            assert!(!std::mem::replace(&mut progress.headed, true), "one final response");
            assert!((200..1000).contains(&head.status));
            let bodiless = heads.contains(tag) || matches!(head.status, 204 | 304);
            progress.length = if bodiless { Some(0) } else { head.length };
            for (name, value) in head.headers.iter() {
                assert!(!name.is_empty() && !name.iter().any(|b| b.is_ascii_uppercase() || *b == b':'));
                assert!(!value.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')));
            }
        }
        ClientEvent::Data { tag, bytes } => {
            let progress = open.get_mut(tag).expect("data of something that is open");
            assert!(progress.headed, "data comes behind the head");
            progress.got += bytes.len() as u64;
            return shown.data(*tag, bytes);
        }
        ClientEvent::Trailers { tag, .. } => assert!(open[tag].headed, "trailers come behind the head"),
        ClientEvent::End { tag, .. } => {
            let progress = open.remove(tag).expect("the end of something that is open");
            assert!(progress.headed && progress.length.is_none_or(|length| length == progress.got));
        }
        ClientEvent::Reset { tag, .. } => {
            open.remove(tag).expect("the reset of something that is open");
        }
        ClientEvent::Settings | ClientEvent::GoAway { .. } => {}
    }
    shown.events.push(format!("{event:?}"));
}

/// Any bytes as what a client sends behind the preface. Two bytes say how, and how to cut. Bit 0 of the first: tight bounds
/// and windows; bit 1: the preface is part of the bytes; bit 2: responses have long bodies; bit 3: copied ones.
pub fn server(data: &[u8]) {
    let [how, cut, bytes @ ..] = data else { return };
    let whole = run_server(*how, &[bytes]);
    let cut = run_server(*how, &pieces(bytes, *cut));
    assert_eq!(whole, cut, "how the bytes are cut makes no difference");
    check_sent(&whole.sent, bytes, 0);
}

fn run_server(how: u8, pieces: &[&[u8]]) -> Shown {
    let mut options = Options::server();
    if how & 1 != 0 {
        options = Options { max_streams: 2, stream_window: 100, connection_window: 0, limits: tight(), ..options };
    }
    let mut server = Server::new(&options);
    let mut shown = Shown::default();
    server.start(&mut shown.sent);
    if how & 2 == 0 {
        assert_eq!(server.next(&mut &PREFACE[..], &mut shown.sent), Ok(None));
    }
    let body: &'static [u8] = if how & 4 != 0 { &LONG } else { b"hello" };
    let response =
        Prepared::response(200, &[("x", "y")], Some(body.len() as u64)).expect("a response that can be sent");
    let mut open: HashMap<u32, Progress> = HashMap::new();
    for piece in pieces {
        let mut input = *piece;
        loop {
            let event = match server.next(&mut input, &mut shown.sent) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => {
                    shown.error = Some(error);
                    let length = shown.sent.len();
                    assert_eq!(server.next(&mut input, &mut shown.sent).err(), Some(error), "an error stays");
                    assert_eq!(shown.sent.len(), length);
                    return shown;
                }
            };
            let ended = judge_server_event(&mut shown, &mut open, &event);
            if let Some(stream) = ended {
                let body = if how & 8 != 0 { Body::Copied(body) } else { Body::Static(body) };
                server
                    .respond(stream, &response, body, &mut shown.sent)
                    .expect("a request that is complete is answered");
            }
            assert!(server.open() <= options.max_streams);
        }
        assert!(input.is_empty(), "None means that all was used");
    }
    shown
}

/// Gives the stream that is to be answered.
fn judge_server_event(
    shown: &mut Shown,
    open: &mut HashMap<u32, Progress>,
    event: &ServerEvent<'_>,
) -> Option<weir_wire::http2::Stream> {
    let mut ended = None;
    match event {
        ServerEvent::Request { stream, head } => {
            assert!(head.path.starts_with(b"/") || head.path == b"*");
            assert!(!head.method.is_empty() && !head.scheme.is_empty());
            let progress = Progress { headed: true, length: head.length, got: 0 };
            assert!(open.insert(stream.id(), progress).is_none());
        }
        ServerEvent::Data { stream, bytes } => {
            open.get_mut(&stream.id()).expect("data of something that is open").got += bytes.len() as u64;
            shown.data(stream.id(), bytes);
            return None;
        }
        ServerEvent::End { stream } => {
            let progress = open.remove(&stream.id()).expect("the end of something that is open");
            assert!(progress.length.is_none_or(|length| length == progress.got));
            ended = Some(*stream);
        }
        ServerEvent::Reset { stream, .. } => {
            open.remove(&stream.id());
        }
        ServerEvent::Settings
        | ServerEvent::Sent { .. }
        | ServerEvent::Malformed { .. }
        | ServerEvent::GoAway { .. } => {}
    }
    shown.events.push(format!("{event:?}"));
    ended
}

/// Whether what was sent are whole frames of types and sizes that may be sent, and no more DATA than `received` ever
/// gave windows for. `preface`: bytes before the first frame.
fn check_sent(sent: &[u8], received: &[u8], preface: usize) {
    let granted: u64 = 65_535 + windows(received);
    let mut data: u64 = 0;
    each_frame(&sent[preface..], |kind, _, stream, payload| {
        match kind {
            0 => data += payload.len() as u64,
            1 | 9 => assert!(stream > 0),
            3 => assert_eq!(payload.len(), 4),
            4 => assert!(payload.len().is_multiple_of(6) && stream == 0),
            6 | 7 => assert_eq!((payload.len(), stream), (8, 0)),
            8 => assert!(payload.len() == 4 && payload != [0; 4]),
            _ => panic!("a frame of type {kind}"),
        }
        assert!(payload.len() <= 1 << 20);
    });
    assert!(data <= granted, "{data} bytes of data sent, {granted} granted");
}

/// Sum of all increments of the connection's window that could be in these bytes, at any place: an upper bound.
fn windows(bytes: &[u8]) -> u64 {
    bytes
        .windows(13)
        .filter(|w| w[..4] == [0, 0, 4, 8] && [w[5] & 0x7f, w[6], w[7], w[8]] == [0; 4])
        .map(|w| u64::from(u32::from_be_bytes([w[9] & 0x7f, w[10], w[11], w[12]])))
        .sum()
}

fn each_frame(mut bytes: &[u8], mut each: impl FnMut(u8, u8, u32, &[u8])) {
    while !bytes.is_empty() {
        assert!(bytes.len() >= 9, "a whole head");
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        let stream = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
        let (kind, flags) = (bytes[3], bytes[4]);
        let (payload, rest) = bytes[9..].split_at_checked(length).expect("a whole frame");
        each(kind, flags, stream, payload);
        bytes = rest;
    }
}

/// Header blocks, each behind its length (one byte), for one decoder after the other.
pub fn hpack(data: &[u8]) {
    let mut ours = Blocks::new(4096);
    let mut theirs = loona_hpack::Decoder::new();
    let mut rest = data;
    while let [length, after @ ..] = rest {
        let (block, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        let Some((headers, pure)) = ours.read(block) else { return };
        if pure {
            assert_eq!(ours.read(block), Some((headers.clone(), true)), "a pure block says the same again");
        }
        match theirs.decode(block) {
            Ok(others) => assert_eq!(headers, others),
            // It wants a header behind each size update, which RFC 7541 section 4.2 does not.
            Err(loona_hpack::decoder::DecoderError::SizeUpdateAtEnd) => assert!(headers.is_empty()),
            Err(error) => panic!("the other decoder refuses what ours reads as {headers:?}: {error:?}"),
        }
    }
}
