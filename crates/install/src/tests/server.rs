//! A server on this machine that answers as a test tells it to, rightly and wrongly, plain or over TLS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What is said to one request.
#[derive(Debug, Clone)]
pub enum Response {
    /// All of it, with its length.
    Whole(Vec<u8>),
    /// All of it, in pieces, without a length.
    Chunked(Vec<u8>),
    /// The length of all, and half of it.
    Half(Vec<u8>),
    /// Nothing but a status.
    Status(u16),
    /// It is elsewhere.
    At(String),
    /// A little of it, and then nothing for as long as the client waits.
    Stalls,
}

/// Ends when it is dropped.
pub struct Server {
    addr: SocketAddr,
    scheme: &'static str,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// DER of the certificate, when it speaks TLS.
    pub certificate: Vec<u8>,
}

impl Server {
    /// Answers every path in the same way.
    pub fn saying(response: Response) -> Server {
        Server::start(move |_| response.clone())
    }

    /// Answers as `response` says, by path.
    pub fn start(response: impl Fn(&str) -> Response + Send + 'static) -> Server {
        Server::begin(None, response)
    }

    /// The same over TLS, for `localhost`, with a certificate of its own.
    pub fn secure(response: impl Fn(&str) -> Response + Send + 'static) -> Server {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().to_vec();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let mut server = Server::begin(Some(Arc::new(config)), response);
        server.certificate = certificate;
        server
    }

    fn begin(tls: Option<Arc<ServerConfig>>, response: impl Fn(&str) -> Response + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (flag, heard) = (ends.clone(), asked.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                // What the client does not like to hear is the client's to say.
                let _ = match &tls {
                    None => serve(stream, &response, &heard, &flag),
                    Some(config) => {
                        let session = ServerConnection::new(config.clone()).unwrap();
                        serve(StreamOwned::new(session, stream), &response, &heard, &flag)
                    }
                };
            }
        });
        Server { addr, scheme, ends, thread: Some(thread), asked, certificate: Vec::new() }
    }

    /// Address of a path on it.
    pub fn url(&self, path: &str) -> String {
        let host = if self.scheme == "https" { "localhost" } else { "127.0.0.1" };
        format!("{}://{host}:{}{path}", self.scheme, self.addr.port())
    }

    /// Host and port.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// First lines of all requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One request a connection.
fn serve(
    mut stream: impl Read + Write,
    response: &impl Fn(&str) -> Response,
    heard: &Mutex<Vec<String>>,
    ends: &AtomicBool,
) -> std::io::Result<()> {
    let mut first = String::new();
    let mut reader = BufReader::new(&mut stream);
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    heard.lock().unwrap().push(first.trim().to_owned());
    let path = first.split(' ').nth(1).unwrap_or_default();
    let head = |status: &str, more: &str| format!("HTTP/1.1 {status}\r\nConnection: close\r\n{more}\r\n");
    match response(path) {
        Response::Whole(bytes) => {
            stream.write_all(head("200 OK", &format!("Content-Length: {}\r\n", bytes.len())).as_bytes())?;
            stream.write_all(&bytes)?;
        }
        Response::Chunked(bytes) => {
            stream.write_all(head("200 OK", "Transfer-Encoding: chunked\r\n").as_bytes())?;
            for piece in bytes.chunks(1000) {
                stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
                stream.write_all(piece)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")?;
        }
        Response::Half(bytes) => {
            stream.write_all(head("200 OK", &format!("Content-Length: {}\r\n", bytes.len())).as_bytes())?;
            stream.write_all(&bytes[..bytes.len() / 2])?;
        }
        Response::Status(status) => {
            stream.write_all(head(&format!("{status} So"), "Content-Length: 0\r\n").as_bytes())?;
        }
        Response::At(place) => {
            stream.write_all(head("302 Found", &format!("Location: {place}\r\nContent-Length: 0\r\n")).as_bytes())?;
        }
        Response::Stalls => {
            stream.write_all(head("200 OK", "Content-Length: 1000000\r\n").as_bytes())?;
            stream.write_all(&[b'x'; 1000])?;
            stream.flush()?;
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    stream.flush()
}
