//! Checks of what takes long: messages and bodies that are to be passed on as they come, upgrades to WebSocket, and clients that leave in
//! the middle.

use std::time::Duration;

use weir_model::counters::OriginCounters;
use weir_product::client::{Endpoint, RequestError, TIMEOUT, Transport};
use weir_wire::sse::BEFORE_DATA;
use weir_wire::websocket::{self, Event, Operation, Parser, UpgradeError};

use crate::Verdict;
use crate::cell::{Cell, about, with_body};
use crate::testbed::{Testbed, pause};

/// Three messages: the first when the head is long gone, then one as much later.
const STREAM: &str = "/stream?messages=3&first=500ms&every=500ms&size=200";
const BETWEEN: Duration = Duration::from_millis(500);

/// A message or head that comes so much later than it was sent has waited for something.
const LATE: Duration = Duration::from_millis(250);

/// A stream that goes on for longer than anybody waits: 20 KiB each 20 ms.
const ENDLESS: &str = "/stream?messages=100000&first=0s&every=20ms&size=20KiB";

/// The stream goes on where the origin has sent at least so much of it.
const GOES_ON: u64 = 20 << 10;

/// Between two looks at the origin's counters: about five messages.
const LOOK: Duration = Duration::from_millis(100);

/// How long the origin may go on when the client has left.
pub const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Half of a body: more than any product reads along with a head.
const HALF: usize = 256 << 10;

/// The key of the upgrade: any will do.
const NONCE: [u8; 16] = *b"weir-conformance";
pub(super) const GREETING: &[u8] = b"a message of weir";

/// A connection with a request on it, of which all bytes are looked at as they come.
pub(super) struct Open {
    transport: Transport,
    pub(super) input: Vec<u8>,
}

impl Open {
    pub(super) fn new(endpoint: &Endpoint, request: &[u8]) -> Result<Open, RequestError> {
        let mut transport = Transport::open(endpoint, TIMEOUT)?;
        let until = transport.clock().now().plus(TIMEOUT);
        transport.write(request, until)?;
        Ok(Open { transport, input: Vec::new() })
    }

    /// Reads until this has come so often. Returns how long that took; `None`: the response ended before.
    pub(super) fn read_until(&mut self, wanted: &[u8], times: usize) -> Result<Option<Duration>, RequestError> {
        let begun = self.transport.clock().now();
        while self.input.windows(wanted.len()).filter(|window| *window == wanted).count() < times {
            if !self.transport.read(&mut self.input, begun.plus(TIMEOUT))? {
                return Ok(None);
            }
        }
        Ok(Some(begun.until(self.transport.clock().now())))
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        let until = self.transport.clock().now().plus(TIMEOUT);
        self.transport.write(bytes, until)
    }

    /// Reads some more. False: the response has ended.
    pub(super) fn read_more(&mut self) -> Result<bool, RequestError> {
        let until = self.transport.clock().now().plus(TIMEOUT);
        self.transport.read(&mut self.input, until)
    }

    /// The status; 0 where there is none.
    pub(super) fn status(&self) -> u16 {
        let text = String::from_utf8_lossy(&self.input);
        text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }
}

/// Checks that the messages of a stream come one by one.
pub fn one_by_one(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let mut open = Open::new(&endpoint, &endpoint.request("GET", STREAM, &[]))?;
    let cut = || Cell::no("cut").with("the response ended within its messages");
    let head = open.read_until(b"\r\n\r\n", 1)?.ok_or_else(cut)?;
    if open.status() != 200 {
        return Ok(Cell::no(open.status().to_string()));
    }
    let mut came = vec![head];
    for nth in 1..=3 {
        came.push(came[nth - 1] + open.read_until(BEFORE_DATA, nth)?.ok_or_else(cut)?);
    }
    let delay = |nth: usize| came[nth].saturating_sub(BETWEEN * nth as u32);
    let worst = (1..=3).map(delay).max().unwrap_or_default();
    let cell = if worst > LATE {
        Cell::no("buffers").with(format!("a message of 200 bytes came {} after it was sent", about(worst)))
    } else {
        Cell::yes()
    };
    let late = (head > LATE).then(|| format!("the head came after {}", about(head)));
    Ok(cell.with(late.unwrap_or_default()))
}

/// Tells whether the origin sees the beginning of a request's body before the client has sent its end.
pub fn request_body(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let length = (2 * HALF).to_string();
    let mut request = endpoint.request("POST", "/echo", &[("Content-Length", &length)]);
    request.resize(request.len() + HALF, b'x');
    let before = counters(bed)?;
    let mut conn = endpoint.open()?;
    conn.send(&request, false, TIMEOUT)?;
    pause(bed.stop(), BETWEEN);
    let came = counters(bed)?.bytes_in.saturating_sub(before.bytes_in);
    conn.more(&[b'x'; HALF], TIMEOUT)?;
    with_body(&[b'x'; 2 * HALF], conn.read_response(TIMEOUT))?;
    Ok(Cell::new(Verdict::Yes, if came >= HALF as u64 / 2 { "streams" } else { "buffers" }))
}

/// Upgrades a connection to WebSocket, and waits for a message to come back.
pub fn upgrade(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let key = websocket::key(NONCE);
    let headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", websocket::VERSION),
        ("Sec-WebSocket-Key", &key),
    ];
    let mut open = Open::new(&endpoint, &endpoint.request("GET", "/ws", &headers))?;
    let until = open.transport.clock().now().plus(TIMEOUT);
    let mut head = Vec::new();
    let frames = loop {
        let mut input = open.input.as_slice();
        match websocket::take_response(&mut head, &mut input, &key) {
            Ok(true) => break input.to_vec(),
            Ok(false) => {}
            Err(UpgradeError::Status(status)) => return Ok(Cell::no(status.to_string())),
            Err(error) => return Ok(Cell::odd("wrong").with(error.to_string())),
        }
        open.input.clear();
        if !open.transport.read(&mut open.input, until)? {
            return Ok(Cell::no("closes").with("before the response to the upgrade"));
        }
    };
    let mut frame = Vec::new();
    websocket::put_frame(&mut frame, Operation::Text, true, Some(*b"mask"), GREETING);
    open.transport.write(&frame, until)?;
    let (mut parser, mut input) = (Parser::new(false), frames);
    loop {
        let mut left = input.as_slice();
        match parser.next(&mut left) {
            Ok(Some(Event::Message { data, .. })) if data == GREETING => return Ok(Cell::yes()),
            Ok(None) => {}
            Ok(Some(_)) => {
                return Ok(Cell::odd("wrong").with("another message came back, or the connection was closed"));
            }
            Err(error) => return Ok(Cell::odd("wrong").with(error.to_string())),
        }
        input.clear();
        if !open.transport.read(&mut input, until)? {
            return Ok(Cell::no("closes").with("behind the upgrade"));
        }
    }
}

/// Measures how long it takes until the origin learns that the client has left in the middle of a response.
pub fn client_gone(bed: &dyn Testbed, within: Duration) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let mut open = Open::new(&endpoint, &endpoint.request("GET", ENDLESS, &[]))?;
    open.read_until(BEFORE_DATA, 2)?.ok_or_else(|| Cell::no(open.status().to_string()))?;
    let during = counters(bed)?;
    drop(open);
    let begun = std::time::Instant::now();
    let mut last = counters(bed)?;
    while begun.elapsed() < within && !bed.stop().is_requested() {
        pause(bed.stop(), LOOK);
        let now = counters(bed)?;
        let goes_on = now.bytes_out.saturating_sub(last.bytes_out) >= GOES_ON;
        if !goes_on && now.connections_open < during.connections_open {
            return Ok(Cell::yes().with(format!("the origin's connection is closed within {}", about(begun.elapsed()))));
        }
        last = now;
    }
    Ok(Cell::no("goes on").with(format!("the origin still sends, or waits, {} later", about(within))))
}

/// The counters of the origin at this moment.
fn counters(bed: &dyn Testbed) -> Result<OriginCounters, Cell> {
    let response = super::reference(bed, "/_weir/counters")?;
    serde_json::from_slice(&response.body).map_err(|error| Cell::unknown(format!("the origin's counters: {error}")))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::cell::either;
    use crate::fake::{Fake, FakeTestbed, Reply, raw_response};

    /// Pieces of a response, each after so many milliseconds.
    fn piecewise(pieces: &[(u64, &str)]) -> Reply {
        let piece = |(ms, text): &(u64, &str)| (Duration::from_millis(*ms), text.as_bytes().to_vec());
        Reply::Piecewise(pieces.iter().map(piece).collect())
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

    #[test]
    fn messages_that_wait_for_others_are_told() {
        let cell = |pieces: &'static [(u64, &str)]| either(one_by_one(&FakeTestbed::but(|_| Some(piecewise(pieces)))));
        let at_once = cell(&[(0, HEAD), (500, "data: 1\n\n"), (500, "data: 2\n\n"), (500, "data: 3\n\n")]);
        assert_eq!((at_once.says.as_str(), at_once.note), ("yes", None));
        let late_head = cell(&[(500, HEAD), (0, "data: 1\n\n"), (500, "data: 2\n\n"), (500, "data: 3\n\n")]);
        assert!(late_head.says == "yes" && late_head.note.expect("a note").starts_with("the head came after 0.5 s"));
        let buffered = cell(&[(0, HEAD), (1_500, "data: 1\n\ndata: 2\n\ndata: 3\n\n")]);
        assert!(buffered.says == "buffers" && buffered.note.expect("a note").contains("200 bytes came 1.0 s after"));
        assert_eq!(cell(&[(0, HEAD), (0, "data: 1\n\n")]).says, "cut");
        let refuses = FakeTestbed::but(|_| Some(Reply::Keep(raw_response(502, "", b""))));
        assert_eq!(either(one_by_one(&refuses)).says, "502");
    }

    #[test]
    fn bodies_that_are_kept_are_told() {
        let says = |streams: bool| {
            let looks = AtomicU64::new(0);
            let mut bed = FakeTestbed::good();
            bed.origin = Fake::new(move |_| {
                let bytes_in = if streams { looks.fetch_add(1, Ordering::SeqCst) * HALF as u64 } else { 0 };
                let counters = OriginCounters { bytes_in, ..OriginCounters::default() };
                Reply::Keep(raw_response(200, "", &serde_json::to_vec(&counters).expect("JSON")))
            });
            either(request_body(&bed)).says
        };
        assert_eq!([says(true), says(false)], ["streams", "buffers"]);
    }

    #[test]
    fn an_upgrade_that_echoes_is_told_from_others() {
        let says = |reply: Reply| either(upgrade(&FakeTestbed::but(move |_| Some(reply.clone())))).says;
        let upgraded = |text: &[u8]| {
            let accept = websocket::accept(websocket::key(NONCE).as_bytes());
            let head = format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
            let mut bytes = head.into_bytes();
            websocket::put_frame(&mut bytes, Operation::Text, true, None, text);
            Reply::Keep(bytes)
        };
        assert_eq!(says(upgraded(GREETING)), "yes");
        assert_eq!(says(upgraded(b"another")), "wrong");
        assert_eq!(says(Reply::Keep(raw_response(426, "", b""))), "426");
        assert_eq!(says(Reply::Close(Vec::new())), "closes");
    }

    #[test]
    fn an_origin_that_is_not_told_goes_on() {
        let cell = |tells: bool| {
            let looks = AtomicU64::new(0);
            let origin = Fake::new(move |_| {
                let look = looks.fetch_add(1, Ordering::SeqCst);
                let gone = tells && look > 2;
                let connections_open = if gone { 1 } else { 2 };
                let bytes_out = if gone { 3 } else { look } * GOES_ON;
                let counters = OriginCounters { connections_open, bytes_out, ..OriginCounters::default() };
                Reply::Keep(raw_response(200, "", &serde_json::to_vec(&counters).expect("JSON")))
            });
            let mut bed = FakeTestbed::but(|_| Some(piecewise(&[(0, HEAD), (0, "data: 1\n\ndata: 2\n\n")])));
            bed.origin = origin;
            either(client_gone(&bed, Duration::from_millis(500))).says
        };
        assert_eq!(cell(true), "yes");
        assert_eq!(cell(false), "goes on");
    }
}
