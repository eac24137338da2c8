//! A plain client for the origin's tests, and the macro that runs each test on each driver.
#![allow(dead_code)] // each test file uses some of it

pub mod http2;
pub mod pipe;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use weir_model::counters::OriginCounters;
use weir_model::load::DriverChoice;
use weir_origin::{Options, Origin, ResponseOptions};

/// How long anything may take before a test fails.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs each test on each driver. On a kernel without io_uring, half of the tests fail on purpose.
#[macro_export]
macro_rules! on_each_driver {
    ($($name:ident),* $(,)?) => {
        mod epoll { $( #[test] fn $name() { super::$name(weir_model::load::DriverChoice::Epoll) } )* }
        mod io_uring { $( #[test] fn $name() { super::$name(weir_model::load::DriverChoice::IoUring) } )* }
    };
}

/// An origin with one thread on a free port.
pub fn start(driver: DriverChoice) -> Origin {
    start_with(driver, 1)
}

/// An origin on a free port.
pub fn start_with(driver: DriverChoice, threads: u32) -> Origin {
    Origin::start(Options { threads, driver, ..Options::default() }).expect("an origin on a free port")
}

/// An origin whose responses have this delay and these faults by default.
pub fn start_in(driver: DriverChoice, responses: ResponseOptions) -> Origin {
    Origin::start(Options { driver, responses, ..Options::default() }).expect("an origin on a free port")
}

/// Waits until the counters satisfy `wanted`. Panics with the counters if they do not in time.
pub fn counters_when(origin: &Origin, wanted: impl Fn(&OriginCounters) -> bool) -> OriginCounters {
    let end = Instant::now() + TIMEOUT;
    loop {
        let counters = origin.counters();
        if wanted(&counters) {
            return counters;
        }
        assert!(Instant::now() < end, "the counters did not get there: {counters:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|transport| {
            let (key, value) = transport.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection.
pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn new(origin: &Origin) -> Client {
        Client::to(origin.addr())
    }

    pub fn to(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).expect("the origin accepts");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Client { reader: BufReader::new(stream) }
    }

    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).expect("the origin reads");
    }

    pub fn get(&mut self, target: &str) -> Reply {
        self.send(get(target));
        self.reply()
    }

    pub fn half_close(&self) {
        self.stream().shutdown(Shutdown::Write).expect("a shutdown");
    }

    pub fn reply(&mut self) -> Reply {
        self.reply_to(false)
    }

    /// Reads everything that still comes. Returns it with the error that ended it, if any.
    pub fn rest(&mut self) -> (Vec<u8>, Option<std::io::ErrorKind>) {
        let mut rest = Vec::new();
        let end = self.reader.read_to_end(&mut rest).err().map(|error| error.kind());
        (rest, end)
    }

    /// Reads one response; that to HEAD has no body.
    pub fn reply_to(&mut self, head: bool) -> Reply {
        let mut reply = Reply { status: 0, head: String::new(), body: Vec::new() };
        while !reply.head.ends_with("\r\n\r\n") {
            let read = self.reader.read_line(&mut reply.head).expect("a line of a head");
            assert!(read > 0, "the connection ended in a head: {:?}", reply.head);
        }
        let status =
            reply.head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
        reply.status = status.unwrap_or_else(|| panic!("no status line: {:?}", reply.head));
        if head || reply.status < 200 || matches!(reply.status, 204 | 304) {
            return reply;
        }
        if reply.header("transfer-encoding") == Some("chunked") {
            self.chunks(&mut reply.body);
        } else if let Some(length) = reply.header("content-length") {
            reply.body = vec![0; length.parse().expect("a length")];
            self.reader.read_exact(&mut reply.body).expect("the whole body");
        } else {
            assert_eq!(reply.header("connection"), Some("close"), "{}", reply.head);
            self.reader.read_to_end(&mut reply.body).expect("the body");
        }
        reply
    }

    fn chunks(&mut self, body: &mut Vec<u8>) {
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).expect("a chunk line");
            let size = usize::from_str_radix(line.trim_end(), 16).expect("a chunk size");
            let start = body.len();
            body.resize(start + size, 0);
            self.reader.read_exact(&mut body[start..]).expect("a chunk");
            let mut end = [0; 2];
            self.reader.read_exact(&mut end).expect("a chunk's end");
            assert_eq!(&end, b"\r\n");
            if size == 0 {
                return;
            }
        }
    }

    /// Checks that the origin has closed properly and sent nothing more.
    pub fn expect_closed(&mut self) {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).expect("an end, not a reset");
        assert!(rest.is_empty(), "{:?}", String::from_utf8_lossy(&rest));
    }
}

/// A plain GET.
pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: origin\r\n\r\n")
}
