//! Scripted servers of HTTP/1.1 and HTTP/2: a closure says what becomes of each request.

use std::cell::RefCell;
use std::rc::Rc;

use weir_net::sim::World;
use weir_wire::http2::{self, Body, Code, ServerEvent};
use weir_wire::tls::ServerConfig;

use crate::script::{Do, Reader, Seen, Server};

/// What a request was.
#[derive(Debug)]
pub struct Asked {
    /// The connection's number, 0-based.
    pub connection: u64,
    /// The request's number over all connections, and on its own, 0-based.
    pub number: u64,
    pub nth: u64,
    /// With HTTP/2 method, path and authority.
    pub head: String,
    pub body: Vec<u8>,
}

impl Asked {
    /// Its target.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// A server of HTTP/1.1.
pub fn http(world: &World, behaviour: impl FnMut(&Asked) -> Vec<Do> + 'static) -> Server {
    http_at(world, "127.0.0.1:0", None, behaviour)
}

/// The same at an address, and perhaps under TLS.
pub fn http_at(
    world: &World,
    addr: &str,
    tls: Option<ServerConfig>,
    behaviour: impl FnMut(&Asked) -> Vec<Do> + 'static,
) -> Server {
    let behaviour = Rc::new(RefCell::new(behaviour));
    Server::start(world, addr, tls, move |connection, seen| -> Reader {
        let (seen, behaviour, mut nth) = (seen.clone(), behaviour.clone(), 0);
        Box::new(move |input, now| {
            let end = input.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
            let head = String::from_utf8(input[..end].to_vec()).unwrap();
            let length =
                head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map(|n| n.parse().unwrap());
            let whole = end + length.unwrap_or(0_usize);
            let body = input.get(end..whole)?.to_vec();
            input.drain(..whole);
            let asked = asked(&seen, connection, &mut nth, now, head, body);
            Some((behaviour.borrow_mut())(&asked))
        })
    })
}

fn asked(seen: &RefCell<Seen>, connection: u64, nth: &mut u64, now: u64, head: String, body: Vec<u8>) -> Asked {
    let mut seen = seen.borrow_mut();
    seen.asked.push((connection, now));
    *nth += 1;
    Asked { connection, number: seen.asked.len() as u64 - 1, nth: *nth - 1, head, body }
}

/// A response with a body and its length.
pub fn response(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Some Reason\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The usual one.
pub fn ok(body: &str) -> Vec<Do> {
    vec![Do::Send(response(200, body))]
}

/// The usual one after a time, nanoseconds.
pub fn late(time: u64) -> Vec<Do> {
    vec![Do::Wait(time), Do::Send(response(200, "ok"))]
}

/// The last one of its connection, which says so.
pub fn closing() -> Vec<Do> {
    vec![Do::Send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec()), Do::End]
}

/// What an HTTP/2 server does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// 200 and `hello`.
    Hello,
    /// The same, the second half of its body so much later; meanwhile nothing else is done.
    Slowly(u64),
    /// The same with so many more headers.
    Headers(usize),
    Reset,
    /// Nothing; the stream stays open.
    Nothing,
    /// No more requests, this one answered.
    GoAway,
    /// No more requests; neither this one nor those that came after the last response were looked at.
    TurnAway,
    /// Bytes that are not HTTP/2.
    Nonsense,
    End,
}

/// A server of HTTP/2 that allows so many streams.
pub fn http2(world: &World, max_streams: u32, reply: impl FnMut(&Asked) -> Reply + 'static) -> Server {
    let reply = Rc::new(RefCell::new(reply));
    Server::start(world, "127.0.0.1:0", None, move |connection, seen| -> Reader {
        let (seen, reply, mut nth, mut greeted) = (seen.clone(), reply.clone(), 0, false);
        let mut last_head = String::new();
        let mut server = http2::Server::new(&http2::Options { max_streams, ..http2::Options::server() });
        Box::new(move |input, now| {
            let (mut rest, mut out) = (&input[..], Vec::new());
            if !std::mem::replace(&mut greeted, true) {
                server.start(&mut out);
                return Some(vec![Do::Send(out)]);
            }
            let (mut ended, mut more) = (None, true);
            match server.next(&mut rest, &mut out).ok()? {
                Some(ServerEvent::Request { head, .. }) => {
                    let text = [head.method, head.path, head.authority].join(&b' ');
                    last_head = String::from_utf8(text).unwrap();
                }
                Some(ServerEvent::End { stream }) => ended = Some(stream),
                Some(ServerEvent::Reset { .. }) => seen.borrow_mut().cancelled += 1,
                Some(_) => {}
                None => more = !out.is_empty(),
            }
            let left = rest.len();
            input.drain(..input.len() - left);
            let Some(stream) = ended else { return more.then(|| vec![Do::Send(out)]) };
            let asked = asked(&seen, connection, &mut nth, now, std::mem::take(&mut last_head), Vec::new());
            let reply = (reply.borrow_mut())(&asked);
            if matches!(reply, Reply::Hello | Reply::Headers(_) | Reply::Slowly(_) | Reply::GoAway) {
                let more = if let Reply::Headers(more) = reply { more } else { 0 };
                let headers: Vec<(&str, &[u8])> = vec![("x-test", b"yes"); 1 + more];
                server.respond_with(stream, 200, &headers, Body::Static(b"hello"), &mut out).unwrap();
            }
            match reply {
                Reply::Hello | Reply::Headers(_) | Reply::Nothing => {}
                Reply::Slowly(time) => {
                    let second = out.split_off(out.len() - 2);
                    return Some(vec![Do::Send(out), Do::Wait(time), Do::Send(second)]);
                }
                Reply::Reset => server.reset(stream, Code::INTERNAL_ERROR, &mut out),
                Reply::GoAway => server.go_away(&mut out),
                Reply::TurnAway => {
                    // GOAWAY with the last stream that was looked at: the one before this.
                    let last = stream.id().saturating_sub(2).to_be_bytes();
                    out.extend([&[0, 0, 8, 7, 0, 0, 0, 0, 0][..], &last, &[0; 4]].concat());
                    return Some(vec![Do::Send(out), Do::Silence]);
                }
                Reply::Nonsense => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\n"),
                Reply::End => return Some(vec![Do::Send(out), Do::End]),
            }
            Some(vec![Do::Send(out)])
        })
    })
}
