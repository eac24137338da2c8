//! What must hold for any bytes whatever, for both halves of HTTP/3. Used by the tests here and by the fuzz targets, which say how
//! their input is laid out (fuzz/README.md).
//!
//! - How the bytes of a stream are cut, and whether its end comes with them, makes no difference to the events or to the error.
//! - `None` means that all input was used. An error stays.
//! - Each stream's events come in order, none after its end, and a body has the length that its head announced.
//! - A section that is written is read as it was, and one that is read can be written.

use std::collections::{HashMap, HashSet};

use weir_wire::http3::{
    Body, Client, ClientEvent, ConnectionError, Limits, Options, Prepared, Request, Server, ServerEvent, probe,
};

/// All that a reading shows.
#[derive(Debug, PartialEq, Eq, Default)]
struct Shown {
    /// Events as text; pieces of bodies that came in a row are one.
    events: Vec<String>,
    bodies: Vec<Vec<u8>>,
    error: Option<ConnectionError>,
}

impl Shown {
    fn data(&mut self, of: u64, bytes: &[u8]) {
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

impl Progress {
    fn head(&mut self, length: Option<u64>) {
        assert!(!std::mem::replace(&mut self.headed, true), "one head");
        self.length = length;
    }

    fn data(&mut self, bytes: &[u8]) {
        self.got += bytes.len() as u64;
        assert!(self.headed && self.length.is_none_or(|length| self.got <= length), "a body as announced");
    }

    fn end(&self) {
        assert!(self.headed && self.length.is_none_or(|length| self.got == length), "a body as announced");
    }
}

/// What comes on one stream at a time.
#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    Bytes(u64, &'a [u8], bool),
    Reset(u64),
}

/// Parts as a byte for the stream (bits 0 to 2, of which the third makes it one that is no request's; bit 6: reset; bit 7: its end),
/// one for the length, and so many bytes.
fn parts(mut data: &[u8], uni: u64) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    while let [stream, length, rest @ ..] = data {
        let (bytes, after) = rest.split_at(usize::from(*length).min(rest.len()));
        let id = u64::from(stream & 3) * 4 + if stream & 4 == 0 { 0 } else { uni };
        parts.push(if stream & 64 != 0 { Part::Reset(id) } else { Part::Bytes(id, bytes, stream & 128 != 0) });
        data = after;
    }
    parts
}

/// Cuts the bytes of each part: 0 one by one with the end behind them, others into pieces of up to 15 bytes.
fn cut<'a>(parts: &[Part<'a>], how: u8) -> Vec<Part<'a>> {
    let mut state = u32::from(how);
    let mut all = Vec::new();
    for part in parts {
        let Part::Bytes(id, mut rest, fin) = *part else {
            all.push(*part);
            continue;
        };
        while !rest.is_empty() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let most = if how == 0 { 1 } else { (state >> 24) as usize & 15 };
            let (piece, after) = rest.split_at(most.min(rest.len()));
            all.push(Part::Bytes(id, piece, fin && how != 0 && after.is_empty()));
            rest = after;
        }
        all.push(Part::Bytes(id, &[], fin));
    }
    all
}

fn options(how: u8) -> Options {
    let tight = Limits { header_list: 200, idle_frames: 20, resets: 3, ..Limits::default() };
    Options { keep_headers: how & 2 == 0, limits: if how & 1 == 0 { Limits::default() } else { tight } }
}

/// Any bytes as what a server sends. Two bytes say how: bit 0: tight bounds; bit 1: headers are not kept; bits 2 to 3: requests under
/// way, of which every second is HEAD; and how to cut.
pub fn client(data: &[u8]) {
    let [how, pieces, rest @ ..] = data else { return };
    let parts = parts(rest, 3);
    let whole = run_client(*how, &parts);
    let cut = run_client(*how, &cut(&parts, *pieces));
    assert_eq!(whole, cut, "how the bytes are cut makes no difference");
}

fn run_client(how: u8, parts: &[Part<'_>]) -> Shown {
    let mut client = Client::new(&options(how));
    let mut out = Vec::new();
    client.start(&mut out);
    let mut shown = Shown::default();
    let mut open: HashMap<u32, Progress> = HashMap::new();
    for tag in 0..u32::from(how >> 2) & 3 {
        let method = if tag % 2 == 1 { "HEAD" } else { "GET" };
        let request = Request { method, scheme: "https", authority: "a", path: "/", headers: &[] };
        let prepared = Prepared::request(&request).expect("a request that can be sent");
        client.request(u64::from(tag) * 4, tag, &prepared, Body::None, &mut out).expect("a new connection");
        open.insert(tag, Progress::default());
    }
    for part in parts {
        let (id, mut input, fin) = match *part {
            Part::Bytes(id, bytes, fin) => (id, bytes, fin),
            Part::Reset(id) => {
                match client.reset(id, 0x102) {
                    Ok(event) => event.iter().for_each(|event| judge_client(&mut shown, &mut open, event)),
                    Err(error) => shown.error = Some(error),
                }
                if shown.error.is_some() {
                    return shown;
                }
                continue;
            }
        };
        loop {
            match client.next(id, &mut input, fin) {
                Ok(Some(event)) => judge_client(&mut shown, &mut open, &event),
                Ok(None) => break,
                Err(error) => {
                    shown.error = Some(error);
                    assert_eq!(client.next(id, &mut input, fin).err(), Some(error), "an error stays");
                    assert!(client.is_closing());
                    return shown;
                }
            }
            assert_eq!(client.open() as usize, open.len(), "streams that are open");
        }
        assert!(input.is_empty(), "None means that all was used");
    }
    shown
}

fn judge_client(shown: &mut Shown, open: &mut HashMap<u32, Progress>, event: &ClientEvent<'_>) {
    match event {
        ClientEvent::Informational { tag, status, .. } => {
            assert!(!open[tag].headed && (100..200).contains(status), "an interim response comes before the final one");
        }
        ClientEvent::Head { tag, head } => {
            let bodiless = tag % 2 == 1 || matches!(head.status, 204 | 304);
            let length = if bodiless { Some(0) } else { head.length };
            open.get_mut(tag).expect("the head of something that is open").head(length);
            assert!((200..1000).contains(&head.status));
            for (name, value) in head.headers.iter() {
                assert!(!name.is_empty() && !name.iter().any(|b| b.is_ascii_uppercase() || *b == b':'));
                assert!(!value.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')));
            }
        }
        ClientEvent::Data { tag, bytes } => {
            open.get_mut(tag).expect("the data of something that is open").data(bytes);
            return shown.data(u64::from(*tag), bytes);
        }
        ClientEvent::Trailers { tag, .. } => assert!(open[tag].headed, "trailers come behind the head"),
        ClientEvent::End { tag } => open.remove(tag).expect("the end of something that is open").end(),
        ClientEvent::Reset { tag, id, .. } => {
            assert_eq!(u64::from(*tag) * 4, *id);
            open.remove(tag).expect("the end of something that is open");
        }
        ClientEvent::Settings | ClientEvent::GoAway => {}
    }
    shown.events.push(format!("{event:?}"));
}

/// Any bytes as what a client sends, laid out as for [`client`]. Every whole request gets a response.
pub fn server(data: &[u8]) {
    let [how, pieces, rest @ ..] = data else { return };
    let parts = parts(rest, 2);
    let whole = run_server(*how, &parts);
    let cut = run_server(*how, &cut(&parts, *pieces));
    assert_eq!(whole, cut, "how the bytes are cut makes no difference");
}

fn run_server(how: u8, parts: &[Part<'_>]) -> Shown {
    let mut server = Server::new(&options(how));
    let mut out = Vec::new();
    server.start(&mut out);
    let response = Prepared::response(200, &[], Some(3)).expect("a response that can be sent");
    let mut shown = Shown::default();
    let mut open: HashMap<u64, Progress> = HashMap::new();
    // Their streams are over, so that QUIC has nothing more on them.
    let mut over: HashSet<u64> = HashSet::new();
    for part in parts {
        let (id, mut input, fin) = match *part {
            Part::Bytes(id, ..) if over.contains(&id) => continue,
            Part::Bytes(id, bytes, fin) => (id, bytes, fin),
            Part::Reset(id) => {
                match server.reset_by_peer(id, 0x10c) {
                    Ok(Some(ServerEvent::Reset { stream, .. })) => {
                        open.remove(&stream.id());
                        shown.events.push(format!("{id} is reset"));
                    }
                    Ok(other) => assert_eq!(other, None),
                    Err(error) => {
                        shown.error = Some(error);
                        return shown;
                    }
                }
                over.insert(id);
                continue;
            }
        };
        loop {
            let event = match server.next(id, &mut input, fin) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => {
                    shown.error = Some(error);
                    assert_eq!(server.next(id, &mut input, fin).err(), Some(error), "an error stays");
                    return shown;
                }
            };
            let mut ended = None;
            let text = match event {
                ServerEvent::Request { stream, head } => {
                    let earlier = open.insert(stream.id(), Progress::default());
                    assert!(earlier.is_none_or(|earlier| !earlier.headed), "one request on a stream");
                    open.get_mut(&id).expect("of this stream").head(head.length);
                    assert!(!head.method.is_empty() && !head.path.is_empty() && head.method != b"CONNECT");
                    format!("{:?}", weir_wire::http3::RequestHead { ends: false, ..head })
                }
                ServerEvent::Data { stream, bytes } => {
                    open.get_mut(&stream.id()).expect("the data of something that is open").data(bytes);
                    shown.data(stream.id(), bytes);
                    continue;
                }
                ServerEvent::End { stream } => {
                    open.remove(&stream.id()).expect("the end of something that is open").end();
                    ended = Some(stream);
                    over.insert(id);
                    format!("{stream:?} ends")
                }
                ServerEvent::Reset { stream, cause } => {
                    open.remove(&stream.id());
                    over.insert(stream.id());
                    format!("{stream:?}: {cause}")
                }
                ServerEvent::Malformed { id, fault } => {
                    over.insert(id);
                    format!("{id}: {fault}")
                }
                other => format!("{other:?}"),
            };
            shown.events.push(text);
            if let Some(stream) = ended {
                out.clear();
                server.respond(stream, &response, Body::Static(b"abc"), &mut out).expect("a request that is whole");
                assert!(out.ends_with(b"\0\x03abc") || !out.ends_with(b"abc"), "{out:?}");
            }
        }
        assert!(input.is_empty(), "None means that all was used");
    }
    shown
}

/// Any bytes as a field section: what is read can be written, and is read alike.
pub fn qpack(data: &[u8]) {
    let Ok(headers) = probe::read(data) else { return };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
    let Ok(headers) = headers
        .iter()
        .map(|(name, value)| Ok((text(name)?, text(value)?)))
        .collect::<Result<Vec<_>, std::string::FromUtf8Error>>()
    else {
        return;
    };
    let borrowed: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let again = probe::read(&probe::write(&borrowed)).expect("what we write");
    let again: Vec<_> = again.into_iter().map(|(name, value)| (text(&name).unwrap(), text(&value).unwrap())).collect();
    assert_eq!(again, headers);
}
