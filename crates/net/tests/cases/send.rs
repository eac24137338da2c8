//! Everything queued is sent, in order, and the handler gets the documented events.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use weir_net::{Conn, Driver, Event, Handler, Io};

use crate::common::{BODY, Record, Seen, Server, listener, peer, peer_listener, run_out};
use crate::common::{poll, run_until, small_peer};

/// Answers each byte with a head and the body.
struct Bodies {
    close_after: bool,
}

impl Handler for Bodies {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Data(bytes) => {
                for _ in bytes {
                    io.send_with(conn, b"head", &BODY);
                }
                if self.close_after {
                    io.close(conn);
                }
            }
            Event::Eof => io.close(conn),
            _ => {}
        }
    }
}

fn read_bodies(peer: &mut impl Read, count: usize, pause: Duration) {
    let mut back = vec![0; 4 + BODY.len()];
    for _ in 0..count {
        for part in back.chunks_mut(20_000) {
            peer.read_exact(part).unwrap();
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
        assert_eq!(back[..4], *b"head");
        assert!(back[4..] == BODY, "the body changed");
    }
}

pub fn static_bodies_come_whole_to_fast_and_slow_readers<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static,
>(
    make: fn() -> io::Result<D>,
) {
    let server = Server::start(make, || Bodies { close_after: false });
    let mut fast = peer(server.addr);
    let mut slow = small_peer(server.addr);
    fast.write_all(&[1; 40]).unwrap();
    slow.write_all(&[1; 3]).unwrap();
    read_bodies(&mut fast, 40, Duration::ZERO);
    read_bodies(&mut slow, 3, Duration::from_millis(1));
    // More bodies than go into one system call.
    fast.write_all(&[1; 150]).unwrap();
    read_bodies(&mut fast, 150, Duration::ZERO);
}

/// Sends bytes and bodies of many sizes in turn.
struct Mixed;

const SIZES: [usize; 8] = [1, 4096, 4097, 100, 0, 70_000, 5_000, 165_854];

impl Handler for Mixed {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if let Event::Accepted(_) = event {
            for size in SIZES {
                io.send(conn, &size.to_le_bytes());
                io.send_with(conn, b"", &BODY[..size]);
                io.send_with(conn, &BODY[..size], b"");
                io.send(conn, b"");
            }
            io.close(conn);
        }
    }
}

pub fn bodies_and_bytes_keep_their_order<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static,
>(
    make: fn() -> io::Result<D>,
) {
    let mut expected = Vec::new();
    for size in SIZES {
        expected.extend_from_slice(&size.to_le_bytes());
        expected.extend_from_slice(&BODY[..size]);
        expected.extend_from_slice(&BODY[..size]);
    }
    let server = Server::start(make, || Mixed);
    for mut peer in [peer(server.addr), small_peer(server.addr)] {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        assert!(all == expected, "{} of {}", all.len(), expected.len());
    }
}

pub fn close_while_sending_flushes_all<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static>(
    make: fn() -> io::Result<D>,
) {
    let server = Server::start(make, || Bodies { close_after: true });
    for mut peer in [peer(server.addr), small_peer(server.addr)] {
        peer.write_all(&[1; 30]).unwrap();
        // What comes after the close must not spoil what was queued before it.
        std::thread::sleep(Duration::from_millis(30));
        peer.write_all(&[1; 1]).unwrap();
        let mut count = [0; 1];
        assert_eq!(peer.peek(&mut count).unwrap(), 1);
        read_bodies(&mut peer, 30, Duration::from_micros(10));
        let mut rest = Vec::new();
        assert_eq!(peer.read_to_end(&mut rest).unwrap(), 0);
    }
}

pub fn what_is_sent_before_connected_arrives<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (listener, addr) = peer_listener();
    let mut driver = make().unwrap();
    let mut record = Record::default();
    let conn = driver.connect(&addr.into(), None).unwrap();
    driver.send(conn, b"early");
    driver.send_with(conn, b" and ", &BODY);
    assert_eq!(driver.unsent(conn), 10 + BODY.len());
    driver.close(conn);
    assert_eq!(driver.open(), 1);
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all
    });
    run_out(&mut driver, &mut record);
    let all = reading.join().unwrap();
    assert_eq!(&all[..10], b"early and ");
    assert!(all[10..] == BODY);
    assert!(record.seen.is_empty(), "closed, so nothing is told");
}

fn connected<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    driver: &mut D,
    record: &mut Record,
    connect: fn(SocketAddr) -> TcpStream,
) -> (Conn, TcpStream) {
    let (listener, addr) = listener();
    driver.listen(listener).unwrap();
    let peer = connect(addr);
    run_until(driver, record, |record, _| !record.seen.is_empty());
    (record.conn(), peer)
}

pub fn sent_comes_once_when_the_queue_is_empty<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let mut driver = make().unwrap();
    let mut record = Record::default();
    let (conn, mut peer) = connected(&mut driver, &mut record, small_peer);
    let sents = |record: &Record| record.count(|seen| *seen == Seen::Sent);

    // Not asked for.
    driver.send(conn, b"1");
    poll(&mut driver, &mut record);
    poll(&mut driver, &mut record);
    assert_eq!(sents(&record), 0);

    // Asked for, and at once.
    driver.send(conn, b"2");
    driver.want_sent(conn);
    run_until(&mut driver, &mut record, |record, _| sents(record) == 1);

    // Asked for, and only when a slow reader has made room.
    for _ in 0..100 {
        driver.send_with(conn, b"", &BODY);
    }
    driver.want_sent(conn);
    poll(&mut driver, &mut record);
    poll(&mut driver, &mut record);
    assert_eq!(sents(&record), 1);
    assert!(driver.unsent(conn) > 0);
    let reading = std::thread::spawn(move || {
        let mut all = vec![0; 2 + 100 * BODY.len()];
        peer.read_exact(&mut all).unwrap();
        peer
    });
    run_until(&mut driver, &mut record, |record, _| sents(record) == 2);
    assert_eq!(driver.unsent(conn), 0);
    let _peer = reading.join().unwrap();
    driver.send(conn, b"3");
    poll(&mut driver, &mut record);
    poll(&mut driver, &mut record);
    assert_eq!(sents(&record), 2);
}

pub fn unsent_counts_down_to_zero<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let mut driver = make().unwrap();
    let mut record = Record::default();
    let (conn, mut peer) = connected(&mut driver, &mut record, small_peer);
    assert_eq!(driver.unsent(conn), 0);
    for _ in 0..100 {
        driver.send_with(conn, b"head", &BODY);
    }
    let total = 100 * (4 + BODY.len());
    assert_eq!(driver.unsent(conn), total);
    for _ in 0..5 {
        poll(&mut driver, &mut record);
    }
    let blocked = driver.unsent(conn);
    assert!(blocked > 0 && blocked < total, "{blocked} of {total}");
    driver.send(conn, b"more");
    assert_eq!(driver.unsent(conn), blocked + 4);
    let reading = std::thread::spawn(move || {
        let mut all = vec![0; total + 4];
        peer.read_exact(&mut all).unwrap();
        assert_eq!(&all[total..], b"more");
        peer
    });
    run_until(&mut driver, &mut record, |_, driver| driver.unsent(conn) == 0);
    drop(reading.join().unwrap());
}
