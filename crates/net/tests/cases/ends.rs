//! How connections end: closed, aborted, refused, reset, half-closed; and that they leave nothing behind.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, Event, Handler, Io};

use crate::common::{BODY, Echo, LONG, Record, Seen, Server, listener, peer, peer_listener, reset};
use crate::common::{poll, run_out, run_until, small_peer};

/// A driver that has accepted `peer`.
fn accepted<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
    connect: fn(SocketAddr) -> TcpStream,
) -> (D, Record, Conn, TcpStream) {
    let (listener, addr) = listener();
    let mut driver = make().unwrap();
    driver.listen(listener).unwrap();
    let peer = connect(addr);
    let mut record = Record::default();
    run_until(&mut driver, &mut record, |record, _| !record.seen.is_empty());
    assert_eq!(record.seen[0].1, Seen::Accepted);
    let conn = record.conn();
    (driver, record, conn, peer)
}

fn is_failure(seen: &Seen) -> bool {
    matches!(seen, Seen::Failed(_))
}

pub fn abort_resets_the_peer<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, conn, mut peer) = accepted(make, peer);
    driver.send(conn, b"never sent");
    driver.abort(conn);
    driver.send(conn, b"ignored");
    assert_eq!(driver.unsent(conn), 0);
    run_out(&mut driver, &mut record);
    let error = peer.read(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(record.seen.len(), 1, "no event follows an abort");
}

pub fn abort_while_blocked_resets_the_peer<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, conn, mut peer) = accepted(make, small_peer);
    for _ in 0..100 {
        driver.send_with(conn, b"", &BODY);
    }
    for _ in 0..3 {
        poll(&mut driver, &mut record);
    }
    assert!(driver.unsent(conn) > 0);
    driver.abort(conn);
    run_out(&mut driver, &mut record);
    let mut all = Vec::new();
    let error = peer.read_to_end(&mut all).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(record.seen.len(), 1, "no event follows an abort");
}

pub fn abort_ends_a_close_that_cannot_send<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, conn, mut peer) = accepted(make, small_peer);
    for _ in 0..100 {
        driver.send_with(conn, b"", &BODY);
    }
    driver.close(conn);
    for _ in 0..3 {
        poll(&mut driver, &mut record);
    }
    assert_eq!(driver.open(), 1, "the peer does not read");
    driver.abort(conn);
    run_out(&mut driver, &mut record);
    let error = peer.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(record.seen.len(), 1, "no event follows a close");
}

pub fn refused_connect_fails_once<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    // A port that was free a moment ago.
    let addr = peer_listener().1;
    let mut driver = make().unwrap();
    let mut record = Record::default();
    let conn = driver.connect(&addr.into(), None).unwrap();
    driver.send(conn, b"never sent");
    run_out(&mut driver, &mut record);
    poll(&mut driver, &mut record);
    let refused = Seen::Failed(ErrorKind::ConnectionRefused);
    assert_eq!(record.seen, [(conn, refused)]);
    driver.close(conn);
    driver.abort(conn);
    assert_eq!(driver.open(), 0);
}

pub fn a_reset_in_mid_data_fails_once<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, conn, mut peer) = accepted(make, small_peer);
    for _ in 0..50 {
        driver.send_with(conn, b"", &BODY);
    }
    poll(&mut driver, &mut record);
    peer.read_exact(&mut [0; 10]).unwrap();
    reset(peer);
    run_out(&mut driver, &mut record);
    poll(&mut driver, &mut record);
    assert_eq!(record.seen.len(), 2, "{:?}", record.seen);
    assert!(is_failure(&record.seen[1].1));
}

/// Records the unsent counts of failures.
#[derive(Default)]
struct FailureRecord(Vec<usize>);

impl Handler for FailureRecord {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if let Event::Failed { unsent, .. } = event {
            self.0.push(unsent);
            assert_eq!(io.unsent(conn), 0, "it is gone");
        }
    }
}

pub fn a_failure_reports_the_unsent_bytes<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let mut driver = make().unwrap();
    let mut losses = FailureRecord::default();
    // Never connected: nothing was.
    let conn = driver.connect(&peer_listener().1.into(), None).unwrap();
    driver.send_with(conn, b"head", &BODY);
    run_out(&mut driver, &mut losses);
    assert_eq!(losses.0, [4 + BODY.len()]);
    // Reset: what the kernel had taken is not counted, what is sent into the void is.
    let (listener, addr) = peer_listener();
    let conn = driver.connect(&addr.into(), None).unwrap();
    let mut queued = 0;
    for _ in 0..50 {
        driver.send_with(conn, b"", &BODY);
        queued += BODY.len();
    }
    for _ in 0..5 {
        poll(&mut driver, &mut losses);
    }
    let (peer, _) = listener.accept().unwrap();
    let left = driver.unsent(conn);
    assert!(left > 0 && left < queued);
    reset(peer);
    driver.send(conn, b"more");
    run_out(&mut driver, &mut losses);
    assert_eq!(losses.0.len(), 2);
    assert!(losses.0[1] >= 4 && losses.0[1] <= left + 4, "{} of {left}", losses.0[1]);
}

pub fn data_before_a_reset_is_delivered_before_the_failure<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>,
>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, conn, mut peer) = accepted(make, peer);
    peer.write_all(b"last words").unwrap();
    // Unread bytes make the peer's close a reset, after its data has arrived.
    driver.send(conn, b"unread");
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| matches!(seen, Seen::Data(_))) > 0);
    peer.peek(&mut [0; 6]).unwrap();
    drop(peer);
    // Sending on a reset connection must neither hide how it ended nor report the end twice.
    for _ in 0..5 {
        driver.send(conn, b"into the void");
        poll(&mut driver, &mut record);
    }
    run_out(&mut driver, &mut record);
    assert_eq!(record.data(), b"last words");
    assert_eq!(record.count(is_failure), 1, "{:?}", record.seen);
    assert!(is_failure(&record.seen.last().unwrap().1));
}

/// A multishot receive of Linux up to 6.18 may never see a reset that came at once with data.
pub fn a_reset_at_once_with_data_is_noticed_by_what_is_sent<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>,
>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, conn, mut peer) = accepted(make, peer);
    // The kernel waits for data.
    poll(&mut driver, &mut record);
    peer.write_all(b"data").unwrap();
    reset(peer);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() > 1);
    assert_eq!(record.seen[1].1, Seen::Data(b"data".to_vec()));
    driver.send(conn, b"answer");
    run_out(&mut driver, &mut record);
    assert!(is_failure(&record.seen[2].1) && record.seen.len() == 3, "{:?}", record.seen);
}

pub fn after_eof_the_connection_can_still_send<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, conn, mut peer) = accepted(make, peer);
    peer.write_all(b"question").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let eofs = |record: &Record| record.count(|seen| *seen == Seen::Eof);
    run_until(&mut driver, &mut record, |record, _| eofs(record) > 0);
    for _ in 0..3 {
        poll(&mut driver, &mut record);
    }
    assert_eq!(eofs(&record), 1, "told once");
    assert_eq!(record.data(), b"question");
    assert_eq!(driver.open(), 1);
    driver.send_with(conn, b"answer", &BODY);
    driver.close(conn);
    run_out(&mut driver, &mut record);
    let mut all = Vec::new();
    peer.read_to_end(&mut all).unwrap();
    assert_eq!(&all[..6], b"answer");
    assert_eq!(all.len(), 6 + BODY.len());
    assert_eq!(record.count(is_failure), 0);
}

pub fn close_before_connected_emits_no_event<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (_listener, addr) = peer_listener();
    let refusing = peer_listener().1;
    let mut driver = make().unwrap();
    let mut record = Record::default();
    for addr in [addr, refusing] {
        let closed = driver.connect(&addr.into(), None).unwrap();
        driver.close(closed);
        let aborted = driver.connect(&addr.into(), None).unwrap();
        driver.abort(aborted);
    }
    run_out(&mut driver, &mut record);
    poll(&mut driver, &mut record);
    assert!(record.seen.is_empty(), "{:?}", record.seen);
}

pub fn a_stale_connection_does_not_affect_its_successor<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>,
>(
    make: fn() -> io::Result<D>,
) {
    let (listener, addr) = listener();
    let mut driver = make().unwrap();
    driver.listen(listener).unwrap();
    let mut record = Record::default();
    let first_peer = peer(addr);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 1);
    let first = record.conn();
    drop(first_peer);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 2);
    driver.close(first);
    run_out(&mut driver, &mut record);

    let mut second_peer = peer(addr);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 3);
    let second = record.seen[2].0;
    assert_eq!(second.slot(), first.slot(), "slots are used again");
    assert_ne!(second, first);
    driver.send(first, b"stale");
    driver.want_sent(first);
    driver.close(first);
    driver.abort(first);
    assert_eq!(driver.unsent(first), 0);
    driver.send(second, b"fresh");
    poll(&mut driver, &mut record);
    let mut back = [0; 5];
    second_peer.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"fresh");
    assert_eq!(driver.open(), 1);
}

/// Closes the connection inside the event that `when` picks.
struct CloseInside {
    when: fn(&Event<'_>) -> bool,
    told_after: usize,
    closed: Vec<Conn>,
}

impl Handler for CloseInside {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        self.told_after += usize::from(self.closed.contains(&conn));
        if (self.when)(&event) {
            io.close(conn);
            io.close(conn);
            io.send(conn, b"ignored");
            self.closed.push(conn);
        }
    }
}

pub fn closing_inside_any_event_is_allowed<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let events: [fn(&Event<'_>) -> bool; 5] = [
        |event| matches!(event, Event::Accepted(_)),
        |event| matches!(event, Event::Connected),
        |event| matches!(event, Event::Data(_)),
        |event| matches!(event, Event::Eof),
        |event| matches!(event, Event::Failed { .. }),
    ];
    for when in events {
        let (ours, addr) = listener();
        let (theirs, their_addr) = peer_listener();
        let mut driver = make().unwrap();
        driver.listen(ours).unwrap();
        let mut handler = CloseInside { when, told_after: 0, closed: Vec::new() };
        for _ in 0..3 {
            let conn = driver.connect(&their_addr.into(), None).unwrap();
            driver.connect(&peer_listener().1.into(), None).unwrap();
            let mut inwards = peer(addr);
            inwards.write_all(&[7; 3_000]).unwrap();
            poll(&mut driver, &mut handler);
            let (mut outwards, _) = theirs.accept().unwrap();
            // It may be closed already, and then refuses the bytes.
            let _ = outwards.write_all(b"hello");
            for _ in 0..3 {
                poll(&mut driver, &mut handler);
            }
            drop((inwards, outwards));
            for _ in 0..3 {
                poll(&mut driver, &mut handler);
            }
            driver.close(conn);
        }
        assert!(!handler.closed.is_empty());
        assert_eq!(handler.told_after, 0);
    }
}

/// Makes a new connection in every event, until it has made enough.
struct Multiplier {
    addr: SocketAddr,
    refusing: SocketAddr,
    left: usize,
    echoed: usize,
}

impl Handler for Multiplier {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let to = if self.left.is_multiple_of(3) { self.refusing } else { self.addr };
            io.connect(&to.into(), None).unwrap();
        }
        match event {
            Event::Connected => io.send(conn, b"ping"),
            Event::Data(bytes) => {
                assert_eq!(bytes, b"ping");
                self.echoed += 1;
                io.close(conn);
            }
            _ => {}
        }
    }
}

pub fn connecting_inside_events_is_allowed<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static,
>(
    make: fn() -> io::Result<D>,
) {
    let server = Server::start(make, || Echo);
    let mut driver = make().unwrap();
    let mut handler = Multiplier { addr: server.addr, refusing: peer_listener().1, left: 500, echoed: 0 };
    driver.connect(&server.addr.into(), None).unwrap();
    run_out(&mut driver, &mut handler);
    assert_eq!(handler.left, 0);
    assert!(handler.echoed >= 300, "{}", handler.echoed);
}

/// Sockets bound or connected to `port` that are still held open, by a descriptor or otherwise: the others have no
/// inode.
fn sockets_on(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let needle = format!(":{port:04X}");
    let fields = table.lines().skip(1).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    fields
        .filter(|fields| fields[1].ends_with(&needle) || fields[2].ends_with(&needle))
        .filter(|fields| fields[9] != "0")
        .count()
}

pub fn sockets_do_not_leak<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (ours, addr) = listener();
    let mut driver = make().unwrap();
    driver.listen(ours).unwrap();
    let mut record = Record::default();
    let before = sockets_on(addr.port());
    assert_eq!(before, 1);
    for round in 0..20 {
        let conn = driver.connect(&addr.into(), None).unwrap();
        let aborted = driver.connect(&addr.into(), None).unwrap();
        driver.send(conn, b"hello");
        for _ in 0..3 {
            poll(&mut driver, &mut record);
        }
        driver.abort(aborted);
        let all: Vec<Conn> = record.seen.drain(..).map(|(conn, _)| conn).collect();
        if round % 2 == 0 {
            driver.close(conn);
        }
        for conn in all {
            driver.close(conn);
        }
        run_out(&mut driver, &mut record);
    }
    poll(&mut driver, &mut record);
    assert_eq!(sockets_on(addr.port()), before);
    // Dropped with connections open, idle and blocked.
    let conn = driver.connect(&addr.into(), None).unwrap();
    for _ in 0..100 {
        driver.send_with(conn, b"", &BODY);
    }
    for _ in 0..3 {
        poll(&mut driver, &mut record);
    }
    assert!(sockets_on(addr.port()) > before);
    drop(driver);
    // The kernel takes a ring down in the background.
    let end = Instant::now() + LONG / 6;
    while sockets_on(addr.port()) > 0 {
        assert!(Instant::now() < end, "sockets stay open");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn stop_listening_refuses_new_peers<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (ours, addr) = listener();
    let mut driver = make().unwrap();
    driver.listen(ours).unwrap();
    let mut record = Record::default();
    let _old = peer(addr);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 1);
    driver.stop_listening();
    for _ in 0..3 {
        poll(&mut driver, &mut record);
    }
    let refused = TcpStream::connect_timeout(&addr, Duration::from_secs(5)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    // The port is free, and the connections stay.
    assert_eq!(driver.open(), 1);
    let again = TcpListener::bind(addr);
    assert!(again.is_ok() || again.unwrap_err().kind() == ErrorKind::AddrInUse);
    let (more, addr) = listener();
    driver.listen(more).unwrap();
    let _new = peer(addr);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 2);
}
