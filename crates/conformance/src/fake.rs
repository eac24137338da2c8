//! Fake products and a fake origin for this crate's tests: threads on loopback that respond as a test tells them. Those of
//! HTTP are here, those of keys and values in [`keyvalue`].

pub mod keyvalue;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_model::counters::OriginCounters;
use weir_model::record::RoleUsage;
use weir_model::suite::Protocol;

use super::testbed::{LoadSample, Testbed};
use weir_host::stop::Stop;
use weir_product::client::Endpoint;

/// A request that a fake received.
#[derive(Debug, Clone)]
pub struct Received {
    pub head: String,
    pub method: String,
    pub target: String,
    pub body: Vec<u8>,
    /// The number of requests before it on its connection.
    pub nth: usize,
    /// The number of connections before its own.
    pub connection: usize,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    fn query(&self, key: &str) -> Option<&str> {
        let query = self.target.split_once('?')?.1;
        query.split('&').find_map(|pair| pair.split_once('=').filter(|(k, _)| *k == key).map(|(_, value)| value))
    }
}

/// How a fake reacts.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Sends this, and waits for the next request.
    Keep(Vec<u8>),
    /// Sends this, and closes the connection.
    Close(Vec<u8>),
    /// Sends each piece after a pause, and closes the connection.
    Piecewise(Vec<(Duration, Vec<u8>)>),
    /// Waits until the peer closes the connection.
    Silence,
}

type Responder = dyn Fn(&Received) -> Reply + Send + Sync;
type OnExpect = dyn Fn(&Received) -> Option<Reply> + Send + Sync;

/// A server that listens until it is dropped.
pub struct Fake {
    pub addr: SocketAddr,
    open: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
    threads: Arc<Mutex<Vec<TcpStream>>>,
}

impl Fake {
    pub fn new(responses: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Fake {
        Fake::expecting(|_| Some(Reply::Keep(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec())), responses)
    }

    /// A fake with its own reaction to `Expect: 100-continue`; `None` sends nothing and waits for the body.
    pub fn expecting(
        expects: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static,
        responses: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Fake::on(listener, Arc::new(expects), Arc::new(responses))
    }

    fn on(listener: TcpListener, expects: Arc<OnExpect>, responses: Arc<Responder>) -> Fake {
        let addr = listener.local_addr().expect("bound");
        let open = Arc::new(AtomicBool::new(true));
        let connections = Arc::new(AtomicUsize::new(0));
        let threads = Arc::new(Mutex::new(Vec::new()));
        let (is_open, count, streams) = (open.clone(), connections.clone(), threads.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if !is_open.load(Ordering::SeqCst) {
                    return;
                }
                let connection = count.fetch_add(1, Ordering::SeqCst);
                let (expects, responses) = (expects.clone(), responses.clone());
                streams.lock().expect("not poisoned").push(stream.try_clone().expect("cloned"));
                std::thread::spawn(move || {
                    let mut stream = stream;
                    serve(&mut stream, connection, &*expects, &*responses);
                    // The list of streams has a copy, so dropping this one would not close it.
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Fake { addr, open, connections, threads }
    }

    /// A product that responds as weir's origin does, and needs no origin.
    pub fn faithful() -> Fake {
        Fake::new(|asked| Reply::Keep(origin(asked)))
    }

    /// A faithful product, except where `otherwise` returns a reply.
    pub fn but(otherwise: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static) -> Fake {
        Fake::new(move |asked| otherwise(asked).unwrap_or_else(|| Reply::Keep(origin(asked))))
    }

    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst) as u64
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.open.store(false, Ordering::SeqCst);
        for stream in self.threads.lock().expect("not poisoned").drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        // Wakes up the accepting thread.
        let _ = TcpStream::connect(self.addr);
    }
}

fn serve(stream: &mut TcpStream, connection: usize, expects: &OnExpect, responses: &Responder) {
    let mut input = Vec::new();
    for nth in 0.. {
        let Some(mut asked) = head(stream, &mut input, nth, connection) else { return };
        if asked.header("expect").is_some() {
            match expects(&asked) {
                Some(Reply::Keep(bytes)) => drop(stream.write_all(&bytes)),
                Some(Reply::Close(bytes)) => return drop(stream.write_all(&bytes)),
                Some(Reply::Silence | Reply::Piecewise(_)) | None => {}
            }
        }
        if body(stream, &mut input, &mut asked).is_none() {
            return;
        }
        match responses(&asked) {
            Reply::Keep(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Reply::Close(bytes) => {
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(std::net::Shutdown::Write);
                return drain(stream);
            }
            Reply::Piecewise(pieces) => {
                for (pause, piece) in pieces {
                    std::thread::sleep(pause);
                    let _ = stream.write_all(&piece);
                }
                let _ = stream.shutdown(std::net::Shutdown::Write);
                return drain(stream);
            }
            Reply::Silence => return drain(stream),
        }
    }
}

/// Reads until the peer closes, because unread bytes would reset the connection.
fn drain(stream: &mut TcpStream) {
    let mut rest = [0; 4096];
    while stream.read(&mut rest).is_ok_and(|n| n > 0) {}
}

fn more(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 64 * 1024];
    let n = stream.read(&mut piece).ok().filter(|n| *n > 0)?;
    input.extend_from_slice(&piece[..n]);
    Some(())
}

fn head(stream: &mut TcpStream, input: &mut Vec<u8>, nth: usize, connection: usize) -> Option<Received> {
    let end = loop {
        match input.windows(4).position(|w| w == b"\r\n\r\n") {
            Some(at) => break at + 4,
            None => more(stream, input)?,
        }
    };
    let head = String::from_utf8_lossy(&input[..end]).into_owned();
    input.drain(..end);
    let mut words = head.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    Some(Received { head: head.clone(), method, target, body: Vec::new(), nth, connection })
}

fn body(stream: &mut TcpStream, input: &mut Vec<u8>, asked: &mut Received) -> Option<()> {
    if let Some(length) = asked.header("content-length").and_then(|n| n.parse::<usize>().ok()) {
        while input.len() < length {
            more(stream, input)?;
        }
        asked.body = input.drain(..length).collect();
    } else if asked.header("transfer-encoding").is_some() {
        loop {
            let line_end = loop {
                match input.windows(2).position(|w| w == b"\r\n") {
                    Some(at) => break at,
                    None => more(stream, input)?,
                }
            };
            let size = usize::from_str_radix(std::str::from_utf8(&input[..line_end]).ok()?, 16).ok()?;
            while input.len() < line_end + 2 + size + 2 {
                more(stream, input)?;
            }
            asked.body.extend_from_slice(&input[line_end + 2..line_end + 2 + size]);
            input.drain(..line_end + 2 + size + 2);
            if size == 0 {
                break;
            }
        }
    }
    Some(())
}

/// A response with a `Content-Length`.
pub fn raw_response(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let length =
        if matches!(status, 204 | 304) { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("HTTP/1.1 {status} Words\r\nServer: weir-origin\r\n{headers}{length}\r\n");
    [head.as_bytes(), body].concat()
}

/// The response of weir's origin with `Connection: close`, after which the connection is closed.
pub fn closing(asked: &Received) -> Reply {
    let whole = origin(asked);
    let status_line = whole.windows(2).position(|w| w == b"\r\n").expect("a line") + 2;
    Reply::Close([&whole[..status_line], b"Connection: close\r\n", &whole[status_line..]].concat())
}

/// The response of weir's origin, as far as the checks need it.
pub fn origin(asked: &Received) -> Vec<u8> {
    let number = |text: &str| text.parse::<usize>().unwrap_or(0);
    if let Some(ms) = asked.query("delay").and_then(|d| d.strip_suffix("ms")) {
        std::thread::sleep(Duration::from_millis(number(ms) as u64));
    }
    let typed = "Content-Type: application/octet-stream\r\n";
    let path = asked.path();
    let (status, body) = if let Some(size) = path.strip_prefix("/bytes/") {
        (200, (0..number(size)).map(|n| (n % 251) as u8).collect())
    } else if let Some(status) = path.strip_prefix("/status/") {
        let status = number(status) as u16;
        (status, if matches!(status, 204 | 304) { Vec::new() } else { format!("{status}\n").into_bytes() })
    } else if let Some(time) = path.strip_prefix("/delay/") {
        let ms = time.strip_suffix("ms").map(number).or(time.strip_suffix('s').map(|s| number(s) * 1000));
        std::thread::sleep(Duration::from_millis(ms.unwrap_or(0) as u64));
        (200, b"ok".to_vec())
    } else {
        match path {
            "/echo" => (200, asked.body.clone()),
            "/headers" => (200, asked.head.clone().into_bytes()),
            "/_weir/ready" => (204, Vec::new()),
            other => (404, format!("nothing is at `{other}`. What there is:\n\n").into_bytes()),
        }
    };
    if asked.query("chunked") == Some("1") && !asked.head.contains("HTTP/1.0") {
        let head = "HTTP/1.1 200 OK\r\nServer: weir-origin\r\nTransfer-Encoding: chunked\r\n\r\n";
        return [head.as_bytes(), format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    }
    let whole = raw_response(status, typed, &body);
    if asked.method == "HEAD" { whole[..whole.len() - body.len()].to_vec() } else { whole }
}

/// A testbed whose product is a fake.
pub struct FakeTestbed {
    pub product: Fake,
    pub origin: Fake,
    /// Replaces the product's endpoint.
    pub product_endpoint: Option<Endpoint>,
    /// Replaces the origin's endpoint.
    pub origin_endpoint: Option<Endpoint>,
    pub stop: Stop,
    pub protocol: Protocol,
    pub origins: usize,
    pub replicates: bool,
    /// The origin's counters; `None`: they are made up.
    pub on_counters: Option<Box<dyn Fn() -> OriginCounters>>,
    /// Requests that reached the origin since the last reading of the counters.
    pub asked: u64,
    /// Called when the origin stops (false) or starts (true).
    pub on_origin: Option<Box<dyn Fn(bool)>>,
    /// Called when the product is asked to end.
    pub on_end: Option<Box<dyn Fn()>>,
    pub ended: Arc<AtomicBool>,
    /// Called when the product is told to reload; `None`: it cannot.
    pub on_reload: Option<Box<dyn Fn()>>,
    pub usage: RoleUsage,
    /// Added to the memory with every sample.
    pub growth: u64,
    pub load: Option<LoadSample>,
    counters: OriginCounters,
}

impl FakeTestbed {
    pub fn new(product: Fake) -> FakeTestbed {
        let usage = RoleUsage {
            rss_max_bytes: 9 << 20,
            pss_max_bytes: Some(8 << 20),
            threads_max: Some(3),
            processes_max: Some(2),
            switches: Some((0, 0)),
            ..RoleUsage::default()
        };
        FakeTestbed {
            product,
            origin: Fake::faithful(),
            product_endpoint: None,
            origin_endpoint: None,
            stop: Stop::new(),
            protocol: Protocol::default(),
            origins: 1,
            replicates: false,
            on_counters: None,
            asked: 1,
            on_origin: None,
            on_end: None,
            ended: Arc::default(),
            on_reload: None,
            usage,
            growth: 0,
            load: None,
            counters: OriginCounters::default(),
        }
    }

    /// A product that does everything right.
    pub fn good() -> FakeTestbed {
        FakeTestbed::new(Fake::faithful())
    }

    /// A good product, except where `otherwise` returns a reply.
    pub fn but(otherwise: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static) -> FakeTestbed {
        FakeTestbed::new(Fake::but(otherwise))
    }
}

impl Testbed for FakeTestbed {
    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn product(&self) -> Endpoint {
        self.product_endpoint.clone().unwrap_or_else(|| Endpoint::plain(self.product.addr, self.stop.clone()))
    }

    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn origins(&self) -> usize {
        self.origins
    }

    fn replicates(&self) -> bool {
        self.replicates
    }

    fn origin(&self) -> Endpoint {
        self.origin_endpoint.clone().unwrap_or_else(|| Endpoint::plain(self.origin.addr, self.stop.clone()))
    }

    /// As if the product opened one connection to the origin for each client connection.
    fn counters(&mut self) -> Result<OriginCounters, String> {
        if let Some(counters) = &self.on_counters {
            return Ok(counters());
        }
        self.counters.requests += self.asked;
        self.counters.connections_accepted = self.product.connections();
        Ok(self.counters.clone())
    }

    fn stop_origin(&mut self) {
        if let Some(on_origin) = &self.on_origin {
            on_origin(false);
        }
    }

    fn start_origin(&mut self) -> Result<(), String> {
        if let Some(on_origin) = &self.on_origin {
            on_origin(true);
        }
        Ok(())
    }

    fn terminate(&mut self) -> Result<(), String> {
        if let Some(on_end) = &self.on_end {
            on_end();
        }
        Ok(())
    }

    fn has_ended(&mut self, within: Duration) -> bool {
        let deadline = std::time::Instant::now() + within;
        while !self.ended.load(Ordering::SeqCst) {
            if std::time::Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    fn can_reload(&self) -> bool {
        self.on_reload.is_some()
    }

    fn reload(&mut self) -> Result<(), String> {
        self.on_reload.as_ref().map_or(Err("it cannot".to_owned()), |reload| {
            reload();
            Ok(())
        })
    }

    fn pids(&self) -> Vec<u32> {
        vec![1]
    }

    fn sample(&mut self) -> Result<RoleUsage, String> {
        self.usage.pss_max_bytes = self.usage.pss_max_bytes.map(|bytes| bytes + self.growth);
        Ok(self.usage.clone())
    }

    fn under_load(&mut self) -> Result<LoadSample, String> {
        self.load.clone().ok_or("no load".to_owned())
    }
}

/// An HTTP/2 product that sends its requests to the origin one after the other. It serves one connection.
pub fn serial_http2(origin: SocketAddr) -> SocketAddr {
    use weir_wire::http2::{Body, Options, Server, ServerEvent};

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let endpoint = Endpoint::plain(origin, Stop::new());
        let (mut server, mut out) = (Server::new(&Options::server()), Vec::new());
        server.start(&mut out);
        let mut piece = [0; 16 * 1024];
        loop {
            stream.write_all(&out).expect("sent");
            out.clear();
            let n = stream.read(&mut piece).unwrap_or(0);
            if n == 0 {
                return;
            }
            let (mut input, mut asked) = (&piece[..n], Vec::new());
            while let Some(event) = server.next(&mut input, &mut out).expect("HTTP/2") {
                if let ServerEvent::Request { stream, head } = event {
                    asked.push((stream, String::from_utf8_lossy(head.path).into_owned()));
                }
            }
            for (at, path) in asked {
                let response = endpoint.get(&path).expect("the origin answers");
                server
                    .respond_with(at, response.status, &[], Body::Copied(&response.body), &mut out)
                    .expect("answered");
            }
        }
    });
    addr
}
