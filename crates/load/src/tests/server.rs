//! A small HTTP server for tests: one thread a connection, and a closure that says how to answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a test wants to happen.
pub(super) enum Do {
    /// Send these bytes and go on.
    Send(Vec<u8>),
    /// Send these bytes, wait, send those, and go on.
    SendSlowly(Vec<u8>, Duration, Vec<u8>),
    /// Send these bytes and close in the orderly way.
    SendAndClose(Vec<u8>),
    /// Close with a reset.
    Reset,
    /// Say nothing any more, but keep the connection.
    Nothing,
}

/// What a request was.
pub(super) struct Asked {
    /// The connection's number, 0-based.
    pub connection: u64,
    /// The request's number over all connections, 0-based.
    pub number: u64,
    pub head: String,
    pub body: Vec<u8>,
}

pub(super) type Behaviour = dyn Fn(&Asked) -> Do + Send + Sync;

/// A running server. It ends with the test process; its threads wait in the kernel until then.
pub(super) struct Server {
    pub addr: SocketAddr,
    pub connections: Arc<AtomicU64>,
    pub requests: Arc<AtomicU64>,
    pub peers: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Server {
    pub(super) fn start(behaviour: impl Fn(&Asked) -> Do + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            addr: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
            peers: Arc::default(),
        };
        let (connections, requests, peers) =
            (server.connections.clone(), server.requests.clone(), server.peers.clone());
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client may have gone again before it is accepted: its socket then names no peer.
                let Ok(peer) = stream.peer_addr() else { continue };
                let number = connections.fetch_add(1, Ordering::SeqCst);
                peers.lock().unwrap().push(peer);
                let (requests, behaviour) = (requests.clone(), behaviour.clone());
                std::thread::Builder::new()
                    .stack_size(128 * 1024)
                    .spawn(move || {
                        // A client that goes away ends the thread; that is all an error can mean here.
                        let _ = serve(stream, number, &requests, &*behaviour);
                    })
                    .unwrap();
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

fn serve(stream: TcpStream, connection: u64, requests: &AtomicU64, behaviour: &Behaviour) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let mut body = vec![0; content_length(&head)];
        reader.read_exact(&mut body)?;
        let number = requests.fetch_add(1, Ordering::SeqCst);
        let asked = Asked { connection, number, head, body };
        match behaviour(&asked) {
            Do::Send(bytes) => out.write_all(&bytes)?,
            Do::SendSlowly(first, pause, then) => {
                out.write_all(&first)?;
                std::thread::sleep(pause);
                out.write_all(&then)?;
            }
            Do::SendAndClose(bytes) => {
                out.write_all(&bytes)?;
                out.shutdown(Shutdown::Write)?;
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest)?;
                return Ok(());
            }
            Do::Reset => {
                reset_on_close(&out);
                return Ok(());
            }
            Do::Nothing => {
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest)?;
                return Ok(());
            }
        }
    }
}

fn content_length(head: &str) -> usize {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap())
}

fn reset_on_close(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the descriptor is open and the option's value is a live linger of the size given.
    let failed = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    };
    assert_eq!(failed, 0);
}

/// An answer with a body and its length.
pub(super) fn ok(body: &str) -> Vec<u8> {
    answer(200, body)
}

pub(super) fn answer(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Some Reason\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
