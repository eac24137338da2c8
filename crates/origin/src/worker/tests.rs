//! The worker on a driver that a test controls: what is counted, and when exactly.

use std::net::IpAddr;

use proptest::prelude::*;
use weir_model::counters::OriginCounters;
use weir_net::sim::World;
use weir_net::{Clock, CpuTime};
use weir_wire::names::AnswerKey;

use super::*;
use crate::counters::AllCounters;
use crate::http::{HttpSession, HttpShared, HttpState};
use crate::options::ResponseOptions;
use crate::payload;
use crate::pipeline::{HIGH_WATER, MAX_WAITING};

/// Takes what is queued, or holds it back.
#[derive(Debug, Default)]
struct Fake {
    out: Vec<u8>,
    /// Bytes at the end of `out` that "the kernel" has not taken.
    unsent: usize,
    /// Whether new bytes are held back.
    holds: bool,
    asked: bool,
    closed: bool,
    aborted: bool,
}

impl Io for Fake {
    fn now(&self) -> u64 {
        0
    }

    fn unix_now(&self) -> u64 {
        0
    }

    fn cpu_ns(&self) -> u64 {
        0
    }

    fn cpu_time(&self) -> CpuTime {
        CpuTime::default()
    }

    fn connect(&mut self, _: &weir_net::Address, _: Option<IpAddr>) -> io::Result<Conn> {
        Err(io::Error::other("the origin makes no connections"))
    }

    fn send(&mut self, _: Conn, bytes: &[u8]) {
        assert!(!self.closed, "sent after the close");
        self.out.extend_from_slice(bytes);
        if self.holds {
            self.unsent += bytes.len();
        }
    }

    fn send_with(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        self.send(conn, head);
        self.send(conn, body);
    }

    fn want_sent(&mut self, _: Conn) {
        self.asked = true;
    }

    fn close(&mut self, _: Conn) {
        assert!(!self.closed && self.unsent == 0);
        self.closed = true;
    }

    fn abort(&mut self, _: Conn) {
        self.aborted = true;
    }

    fn unsent(&self, _: Conn) -> usize {
        self.unsent
    }
}

fn state(all_counters: Arc<AllCounters>, responses: ResponseOptions, clock: Clock) -> HttpState {
    let shared = HttpShared::new(responses, "x-weir-name", AnswerKey::default(), 0, &clock);
    WorkerState::new(all_counters, 0, shared, clock)
}

/// A worker with one accepted connection.
struct Harness {
    worker: Worker<HttpSession>,
    all_counters: Arc<AllCounters>,
    io: Fake,
    conn: Conn,
}

impl Harness {
    fn new(holds: bool) -> Harness {
        Harness::with(holds, ResponseOptions::default())
    }

    fn with(holds: bool, responses: ResponseOptions) -> Harness {
        let all_counters = Arc::new(AllCounters::of_workers(1));
        let state = state(Arc::clone(&all_counters), responses, Clock::Kernel);
        let worker = Worker::new(state, Layers::default(), Arc::default());
        let mut harness =
            Harness { worker, all_counters, io: Fake { holds, ..Fake::default() }, conn: Conn::new(3, 1) };
        harness.event(Event::Accepted(0));
        harness
    }

    fn event(&mut self, event: Event<'_>) {
        self.worker.on_event(&mut self.io, self.conn, event);
    }

    fn data(&mut self, bytes: impl AsRef<[u8]>) {
        self.event(Event::Data(bytes.as_ref()));
    }

    /// The kernel takes everything, and `Sent` follows if it was requested.
    fn sent(&mut self) {
        self.io.unsent = 0;
        if std::mem::take(&mut self.io.asked) {
            self.event(Event::Sent);
        }
    }

    fn counters(&self) -> OriginCounters {
        self.all_counters.counters()
    }
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: o\r\n\r\n")
}

#[test]
fn a_response_counts_when_its_last_byte_is_taken() {
    let mut harness = Harness::new(true);
    harness.data(get("/bytes/1000"));
    let all = harness.io.out.len();
    assert_eq!((harness.counters().requests, harness.counters().answered), (1, 0));
    assert_eq!(harness.counters().bytes_out, 0);
    harness.io.unsent = 1;
    harness.data("GET /");
    let counters = harness.counters();
    assert_eq!((counters.answered, counters.bytes_out, counters.body_bytes_out), (0, all as u64 - 1, 999));
    harness.sent();
    let counters = harness.counters();
    assert_eq!((counters.answered, counters.bytes_out, counters.body_bytes_out), (1, all as u64, 1000));
}

#[test]
fn what_the_kernel_did_not_take_before_a_failure_is_not_counted() {
    for unsent in [0, 400] {
        let mut harness = Harness::new(true);
        harness.data(get("/bytes/1000"));
        harness.event(Event::Failed { error: io::ErrorKind::ConnectionReset.into(), unsent });
        let counters = harness.counters();
        assert_eq!((counters.requests, counters.answered, counters.connections_reset), (1, u64::from(unsent == 0), 1));
        assert_eq!(counters.body_bytes_out, 1000 - unsent as u64);
        assert_eq!(counters.connections_open, 0);
    }
    let mut harness = Harness::new(false);
    harness.event(Event::Failed { error: io::ErrorKind::TimedOut.into(), unsent: 0 });
    assert_eq!(harness.counters().connections_reset, 0);
}

#[test]
fn sequential_requests_are_one_in_flight_even_if_sent_is_late() {
    let mut harness = Harness::new(false);
    for n in 0..5 {
        harness.data(get("/bytes/10"));
        assert_eq!(harness.counters().answered, n);
    }
    assert_eq!(harness.counters().max_in_flight_per_connection, 1);
    harness.sent();
    assert_eq!(harness.counters().answered, 5);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// `GET <target>` as a stream of HTTP/2.
fn get_http2(stream: u8, target: &str) -> Vec<u8> {
    let path = [&[0x04, target.len() as u8], target.as_bytes()].concat();
    // :method GET, :scheme http, :authority o, :path; the stream ends.
    frame(1, 0x5, stream, &[&[0x82, 0x86, 0x01, 1, b'o'][..], &path].concat())
}

/// The beginning of an HTTP/2 client that never has to open a window again.
fn begin_http2() -> Vec<u8> {
    let wide = frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), wide, frame(8, 0, 0, &[0x7f, 0xfe, 0, 0])].concat()
}

/// The driver reports that everything is sent, but before the worker sees the event, more is written.
fn late_sent_event(harness: &mut Harness) {
    assert!(std::mem::take(&mut harness.io.asked));
    harness.event(Event::Sent);
}

#[test]
fn a_late_sent_event_is_not_the_last() {
    let mut harness = Harness::new(true);
    harness.data(get("/bytes/10"));
    harness.data(get("/bytes/10"));
    late_sent_event(&mut harness);
    assert_eq!(harness.counters().answered, 0);
    harness.sent();
    assert_eq!(harness.counters().answered, 2);

    let mut harness = Harness::new(true);
    harness.data([begin_http2(), get_http2(1, "/bytes/10"), get_http2(3, "/bytes/10")].concat());
    late_sent_event(&mut harness);
    assert_eq!(harness.counters().answered, 0);
    harness.sent();
    assert_eq!(harness.counters().answered, 2);
}

#[test]
fn requests_waiting_for_room_continue_after_a_late_sent_event() {
    let mut harness = Harness::new(true);
    let targets = [1, 3, 5].map(|stream| get_http2(stream, "/bytes/300000"));
    harness.data([begin_http2(), targets.concat()].concat());
    assert!(harness.io.out.len() < 600_000, "one waits: {}", harness.io.out.len());
    late_sent_event(&mut harness);
    for _ in 0..3 {
        harness.sent();
    }
    assert_eq!(harness.counters().answered, 3);
}

#[test]
fn a_peer_that_does_not_read_holds_up_its_answers() {
    let mut harness = Harness::new(true);
    harness.data(get("/bytes/300000").repeat(3));
    let one = harness.io.out.len();
    assert!(one > HIGH_WATER && one < 2 * HIGH_WATER, "{one}");
    for answers in 1..=3 {
        assert_eq!(harness.io.out.len(), answers * one);
        harness.sent();
        assert_eq!(harness.counters().answered, answers as u64);
    }
}

#[test]
fn too_many_waiting_answers_are_refused_in_their_turn() {
    let mut harness = Harness::new(false);
    harness.data(get("/bytes/1?delay=60s"));
    for _ in 0..MAX_WAITING + 10 {
        harness.data(get("/bytes/1"));
    }
    let counters = harness.counters();
    assert_eq!((counters.malformed, counters.requests), (1, MAX_WAITING as u64 + 1));
    assert!(harness.io.out.is_empty() && !harness.io.closed);
    harness.event(Event::Eof);
    assert!(!harness.io.closed, "what is complete is still answered");
    let mut harness = Harness::new(true);
    let body = vec![b'x'; 40 << 20];
    for _ in 0..3 {
        harness.data(format!("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: {}\r\n\r\n", body.len()));
        harness.data(&body);
    }
    assert_eq!((harness.counters().malformed, harness.counters().requests), (1, 3));
}

#[test]
fn a_slot_used_again_starts_anew() {
    let mut harness = Harness::new(false);
    harness.data(get("/delay/50ms"));
    harness.data("GET /bytes/1 HT");
    harness.event(Event::Failed { error: io::ErrorKind::ConnectionReset.into(), unsent: 0 });
    harness.conn = Conn::new(3, 2);
    harness.event(Event::Accepted(0));
    harness.data(get("/bytes/1"));
    harness.sent();
    let after = harness.io.out.len();
    // The timer of the former connection has no effect.
    std::thread::sleep(Duration::from_millis(60));
    harness.worker.expire_timers(&mut harness.io);
    assert_eq!(harness.io.out.len(), after);
    let counters = harness.counters();
    assert_eq!((counters.requests, counters.answered, counters.connections_accepted), (2, 1, 2));
    assert_eq!((counters.connections_used, counters.connections_open), (2, 1));
    assert_eq!(counters.bytes_in, (get("/delay/50ms").len() + "GET /bytes/1 HT".len() + get("/bytes/1").len()) as u64);
    // Events of the former connection have no effect.
    harness.worker.on_event(&mut harness.io, Conn::new(3, 1), Event::Data(b"nonsense\r\n\r\n"));
    assert_eq!(harness.counters(), counters);
}

#[test]
fn a_connection_that_waits_is_small() {
    assert!(size_of::<Connection<HttpSession>>() <= 320, "{}", size_of::<Connection<HttpSession>>());
}

/// Requests of all kinds on one connection, the last of them invalid.
fn mixed_requests() -> Vec<u8> {
    let parts = [
        get("/bytes/100"),
        "POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 11\r\n\r\nhello world".to_owned(),
        get("/_weir/ready"),
        "HEAD /bytes/5000?chunked=1 HTTP/1.1\r\nHost: o\r\nConnection: keep-alive\r\n\r\n".to_owned(),
        "PUT /echo?chunked=1 HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0a\r\n0123456789\r\n0\r\n\r\n"
            .to_owned(),
        "POST /bytes/7 HTTP/1.1\r\nHost: o\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody".to_owned(),
        get("/nowhere"),
        get("/bytes/20000"),
        "GET /bytes/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned(),
        "POST /echo HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
    ];
    parts.concat().into_bytes()
}

#[test]
fn counters_of_mixed_requests() {
    let mut harness = Harness::new(false);
    harness.data(mixed_requests());
    harness.sent();
    let counters = harness.counters();
    assert_eq!((counters.requests, counters.answered, counters.malformed, counters.own_requests), (9, 8, 1, 1));
    assert_eq!(counters.body_bytes_in, 11 + 13 + 4);
    assert_eq!(counters.bytes_in, (mixed_requests().len() - get("/_weir/ready").len()) as u64);
    assert_eq!((counters.versions["HTTP/1.0"], counters.versions["HTTP/1.1"]), (1, 8));
    assert!(harness.io.out.windows(20_000).any(|bytes| bytes == payload(20_000)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn responses_and_counters_do_not_depend_on_how_bytes_are_split(
        mut cuts in proptest::collection::vec(0usize..1000, 0..12),
        holds: bool,
    ) {
        let all = mixed_requests();
        let mut whole = Harness::new(false);
        whole.data(&all);
        whole.sent();
        let mut pieces = Harness::new(holds);
        cuts.retain(|cut| *cut < all.len());
        cuts.extend([0, all.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            pieces.data(&all[pair[0]..pair[1]]);
        }
        pieces.sent();
        prop_assert_eq!(String::from_utf8_lossy(&pieces.io.out), String::from_utf8_lossy(&whole.io.out));
        let (mut whole, mut pieces) = (whole.counters(), pieces.counters());
        // Only this counter depends on when the bytes arrive.
        whole.max_in_flight_per_connection = 0;
        pieces.max_in_flight_per_connection = 0;
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn no_bytes_make_it_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..5)) {
        let mut harness = Harness::new(false);
        for piece in pieces {
            harness.data(piece);
        }
        harness.event(Event::Eof);
        prop_assert!(harness.counters().malformed <= 1);
    }
}

/// Records when each connection received a response.
#[derive(Debug, Default)]
struct Times(std::collections::HashMap<usize, u64>);

impl Handler for Times {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if let Event::Data(_) = event {
            self.0.insert(conn.slot(), io.now());
        }
    }
}

#[test]
fn ten_thousand_in_flight_have_the_requested_mean_delay() {
    const N: usize = 10_000;
    let world = World::new(1);
    let mut server = world.driver("origin");
    let address = weir_net::Address::Tcp("127.0.0.1:80".parse().expect("an address"));
    server.listen(world.listen(address.clone(), N, false).expect("bound")).expect("it listens");
    let all_counters = Arc::new(AllCounters::of_workers(1));
    let state = state(all_counters, ResponseOptions::default(), server.clock());
    let worker = Worker::<HttpSession>::new(state, Layers::default(), Arc::default());
    world.add_task(server, Box::new(worker));
    let mut client = world.driver("client");
    for _ in 0..N {
        let conn = client.connect(&address, None).expect("connecting");
        client.send(conn, get("/bytes/128?delay=exp:200ms").as_bytes());
    }
    let mut times = Times::default();
    while times.0.len() < N {
        client.poll(&mut times, None).expect("a poll");
    }
    let waits: Vec<f64> = times.0.values().map(|at| *at as f64 / 1e9).collect();
    let mean = waits.iter().sum::<f64>() / N as f64;
    // The standard error of the mean is 1 %.
    assert!((0.19..0.21).contains(&mean), "{mean} s");
    let below = waits.iter().filter(|wait| **wait < 0.2 * std::f64::consts::LN_2).count();
    let median_share = below as f64 / N as f64;
    assert!((0.47..0.53).contains(&median_share), "{median_share} of the waits are below the median asked for");
}
