//! A small HTTP/2 server for tests: one thread a connection, and a closure that says what becomes of each request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weir_wire::http2::{Body, Code, Options, Server, ServerEvent, Stream};

/// What a test wants to happen to a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Do {
    /// 200 with this body.
    Response(&'static [u8]),
    /// The head and half of the body now, the rest a while later; meanwhile nothing else is done.
    Slowly(&'static [u8], Duration),
    /// Reset of the stream.
    Reset,
    /// Nothing; the stream stays open.
    Nothing,
    /// No more requests, this one answered.
    GoAway(&'static [u8]),
    /// No more requests; neither this one nor those that came after the last answer were looked at.
    TurnAway,
    /// Bytes that are not HTTP/2.
    Nonsense,
    /// The connection ends.
    Close,
}

/// A running server. It ends with the test process.
pub(super) struct Http2Server {
    pub addr: SocketAddr,
    pub connections: Arc<AtomicU64>,
    pub requests: Arc<AtomicU64>,
    /// Streams that the client gave up.
    pub cancelled: Arc<AtomicU64>,
}

/// What to do with a request, by its number on its connection and over all, 0-based.
type Behaviour = dyn Fn(u64, u64) -> Do + Send + Sync;

impl Http2Server {
    pub(super) fn start(max_streams: u32, behaviour: impl Fn(u64, u64) -> Do + Send + Sync + 'static) -> Http2Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Http2Server {
            addr: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
            cancelled: Arc::default(),
        };
        let counts = (server.connections.clone(), server.requests.clone(), server.cancelled.clone());
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counts.0.fetch_add(1, Ordering::SeqCst);
                let (requests, cancelled, behaviour) = (counts.1.clone(), counts.2.clone(), behaviour.clone());
                std::thread::spawn(move || serve(stream, max_streams, &requests, &cancelled, &*behaviour));
            }
        });
        server
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Ends when the client goes away, or breaks the protocol, which is none of this server's business.
fn serve(
    mut line: TcpStream,
    max_streams: u32,
    requests: &AtomicU64,
    cancelled: &AtomicU64,
    behaviour: &Behaviour,
) -> Option<()> {
    line.set_nodelay(true).ok()?;
    let mut server = Server::new(&Options { max_streams, ..Options::server() });
    let mut out = Vec::new();
    server.start(&mut out);
    let (mut bytes, mut nth) = (vec![0; 64 * 1024], 0);
    loop {
        line.write_all(&out).ok()?;
        out.clear();
        let count = line.read(&mut bytes).ok().filter(|n| *n > 0)?;
        let mut input = &bytes[..count];
        loop {
            let event = server.next(&mut input, &mut out).ok()?;
            match event {
                None => break,
                Some(ServerEvent::End { stream }) => {
                    let number = requests.fetch_add(1, Ordering::SeqCst);
                    let what = behaviour(nth, number);
                    nth += 1;
                    follow_end(what, &mut server, stream, &mut line, &mut out)?;
                }
                Some(ServerEvent::Reset { .. }) => {
                    cancelled.fetch_add(1, Ordering::SeqCst);
                }
                Some(_) => {}
            }
        }
    }
}

fn follow_end(what: Do, server: &mut Server, stream: Stream, line: &mut TcpStream, out: &mut Vec<u8>) -> Option<()> {
    let answer = |server: &mut Server, body: &'static [u8], out: &mut Vec<u8>| {
        let headers: [(&str, &[u8]); 1] = [("x-test", b"yes")];
        server.respond_with(stream, 200, &headers, Body::Static(body), out).ok().map(drop)
    };
    match what {
        Do::Response(body) => answer(server, body, out),
        Do::Slowly(body, pause) => {
            let mut all = Vec::new();
            answer(server, body, &mut all)?;
            out.extend_from_slice(&all[..all.len() - body.len() / 2]);
            line.write_all(out).ok()?;
            out.clear();
            std::thread::sleep(pause);
            out.extend_from_slice(&all[all.len() - body.len() / 2..]);
            Some(())
        }
        Do::Reset => {
            server.reset(stream, Code::INTERNAL_ERROR, out);
            Some(())
        }
        Do::Nothing => Some(()),
        Do::GoAway(body) => {
            answer(server, body, out)?;
            server.go_away(out);
            Some(())
        }
        Do::TurnAway => {
            // GOAWAY with the last stream that was looked at: the one before this.
            out.extend_from_slice(&[0, 0, 8, 7, 0, 0, 0, 0, 0]);
            out.extend_from_slice(&stream.id().saturating_sub(2).to_be_bytes());
            out.extend_from_slice(&0u32.to_be_bytes());
            line.write_all(out).ok()?;
            // Until the client has had enough.
            let _ = line.read_to_end(&mut Vec::new());
            None
        }
        Do::Nonsense => {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\n");
            Some(())
        }
        Do::Close => {
            line.write_all(out).ok()?;
            None
        }
    }
}
