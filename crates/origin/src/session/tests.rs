//! A toy protocol, served by the origin's own threads, drivers and TLS layer. It echoes every line, after a timer if
//! the line says so. It has no requests, paths or statuses: a new protocol needs no more than is here.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use weir_model::load::DriverChoice;
use weir_wire::tls;

use super::*;
use crate::options::Options;
use crate::origin::Origin;
use crate::tasks::MakeShared;

const SOON: Duration = Duration::from_secs(20);

/// One connection: the part of a line that has come, and the line that waits for the timer.
#[derive(Debug)]
struct EchoSession {
    conn: Option<Conn>,
    line: Vec<u8>,
    late: Vec<u8>,
}

/// What the connections of a worker share: the number of lines echoed.
#[derive(Debug, Default)]
struct EchoShared {
    lines: u64,
}

impl Session for EchoSession {
    type Shared = EchoShared;

    const ALPN: &'static [&'static str] = &["echo"];

    fn new() -> EchoSession {
        EchoSession { conn: None, line: Vec::new(), late: Vec::new() }
    }

    fn begin(&mut self, conn: Conn) {
        *self = EchoSession { conn: Some(conn), ..EchoSession::new() };
    }

    fn on_negotiated(&mut self, alpn: Option<&str>) {
        assert!(matches!(alpn, None | Some("echo")));
    }

    fn on_event<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut WorkerState<EchoShared>,
        event: SessionEvent<'_>,
    ) {
        match event {
            SessionEvent::Data(bytes) => {
                state.counters().bytes_in.add(bytes.len() as u64);
                for &byte in bytes {
                    self.line.push(byte);
                    if byte == b'\n' {
                        self.line_ended(transport, state);
                    }
                }
            }
            SessionEvent::Timeout(1) => {
                transport.send(&self.late);
                self.late.clear();
            }
            SessionEvent::Sent | SessionEvent::Timeout(_) => {}
            SessionEvent::Eof | SessionEvent::Stop => {
                transport.close();
                self.ended(state);
            }
            SessionEvent::Abort => {
                transport.abort();
                self.ended(state);
            }
            SessionEvent::Failed { .. } | SessionEvent::TlsFailed => self.ended(state),
        }
    }

    fn is_closed(&self) -> bool {
        self.conn.is_none()
    }
}

impl EchoSession {
    fn line_ended<T: Transport>(&mut self, transport: &mut T, state: &mut WorkerState<EchoShared>) {
        state.shared.lines += 1;
        state.counters().requests.add(1);
        if let (true, Some(conn)) = (self.line.starts_with(b"late"), self.conn) {
            self.late.append(&mut self.line);
            state.timers.set(state.clock.now() + 5_000_000, (conn, 1));
        } else {
            transport.send(format!("{}: ", state.shared.lines).as_bytes());
            transport.send(&self.line);
            self.line.clear();
        }
    }

    fn ended(&mut self, state: &WorkerState<EchoShared>) {
        if self.conn.take().is_some() {
            state.connection_closed(false);
        }
    }
}

fn start(driver: DriverChoice, tls: Option<tls::ServerOptions>) -> Origin {
    let options = Options { driver, tls, ..Options::default() };
    Origin::start_with::<EchoSession>(options, MakeShared::new(|_, _| EchoShared::default()), None)
        .expect("an origin on a free port")
}

fn connect(origin: &Origin) -> TcpStream {
    let stream = TcpStream::connect(origin.addr()).expect("accepted");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    stream
}

#[test]
fn a_protocol_that_is_not_http_is_served_without_tls() {
    for driver in [DriverChoice::Epoll, DriverChoice::Auto] {
        let origin = start(driver, None);
        let mut client = BufReader::new(connect(&origin));
        let read = |client: &mut BufReader<TcpStream>| {
            let mut line = String::new();
            client.read_line(&mut line).expect("a line");
            line
        };
        client.get_mut().write_all(b"hel").expect("sent");
        client.get_mut().write_all(b"lo\nlate\n").expect("sent");
        assert_eq!(read(&mut client), "1: hello\n");
        assert_eq!(read(&mut client), "late\n");
        client.get_ref().shutdown(std::net::Shutdown::Write).expect("shut down");
        assert_eq!(read(&mut client), "", "closed");
        let counters = origin.stop();
        assert_eq!((counters.requests, counters.bytes_in, counters.connections_open), (2, 11, 0));
    }
}

#[test]
fn a_protocol_that_is_not_http_is_served_over_tls() {
    let identity = tls::Identity::generated(tls::KeyKind::P256).expect("a certificate");
    let options = tls::ServerOptions { identities: vec![identity], ..tls::ServerOptions::default() };
    let origin = start(DriverChoice::Auto, Some(options));
    let options = tls::ClientOptions { alpn: Some("echo".to_owned()), ..tls::ClientOptions::default() };
    let config = tls::ClientConfig::new(&options).expect("options");
    let name = tls::ServerName::new("localhost").expect("a name");
    let (mut client, mut scratch) = (tls::Session::client(&config, &name).expect("a session"), tls::Scratch::new());
    let (mut socket, mut out, mut plain) = (connect(&origin), Vec::new(), Vec::new());
    client.start(&mut out).expect("a hello");
    while plain != b"1: hello\n" {
        socket.write_all(&std::mem::take(&mut out)).expect("sent");
        let mut bytes = [0; 4096];
        let count = match socket.read(&mut bytes) {
            // The ring that this thread made to choose a driver may interrupt it.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.expect("bytes"),
        };
        assert!(count > 0, "the origin has closed");
        let mut input = &bytes[..count];
        while let Some(event) = client.next(&mut input, &mut scratch, &mut out).expect("TLS") {
            match event {
                tls::TlsEvent::Ready => client.write(&[b"hello\n"], &mut out).expect("written"),
                tls::TlsEvent::Plaintext(range) => plain.extend_from_slice(&scratch[range]),
                tls::TlsEvent::Closed => {}
            }
        }
    }
    assert_eq!(client.negotiated().and_then(|negotiated| negotiated.alpn.as_deref()), Some("echo"));
    drop(socket);
    assert_eq!(origin.stop().tls.handshakes, 1);
}
