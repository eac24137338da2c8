//! What is dropped on request: how much, in which order beside the rest, and how connections end meanwhile.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use weir_net::{Conn, Driver, Event, Handler, Io};

use crate::common::{LONG, Record, Seen, listener, pattern, peer, poll, reset, run_out, run_until};

/// Reads messages: a length of four bytes, and then so many, which are not looked at where they are many. Answers each with a byte.
#[derive(Debug, Default)]
struct Messages {
    head: Vec<u8>,
    /// Of the current message's body.
    left: usize,
    /// Bytes of bodies that came, and that were dropped.
    came: usize,
    dropped: usize,
    /// Bodies that are complete.
    whole: usize,
    ended: bool,
}

/// Bodies below this come as data.
const LARGE: usize = 20_000;

impl Messages {
    fn body<I: Io>(&mut self, io: &mut I, conn: Conn, count: usize) {
        self.left -= count;
        if self.left == 0 {
            self.whole += 1;
            io.send(conn, b"!");
        }
    }
}

impl Handler for Messages {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Data(mut bytes) => {
                while !bytes.is_empty() {
                    if self.left > 0 {
                        let (body, rest) = bytes.split_at(bytes.len().min(self.left));
                        assert!(body.iter().all(|byte| *byte == b'b'), "of a body");
                        self.came += body.len();
                        self.body(io, conn, body.len());
                        bytes = rest;
                        continue;
                    }
                    self.head.push(bytes[0]);
                    bytes = &bytes[1..];
                    if let Ok(length) = <[u8; 4]>::try_from(self.head.as_slice()) {
                        self.head.clear();
                        self.left = u32::from_be_bytes(length) as usize;
                    }
                }
                if self.left > LARGE {
                    io.skip(conn, self.left as u64);
                }
            }
            Event::Skipped(count) => {
                self.dropped += count;
                self.body(io, conn, count);
            }
            Event::Eof | Event::Failed { .. } => self.ended = true,
            Event::Accepted(_) | Event::Connected | Event::Sent => {}
        }
    }
}

fn message(length: usize) -> Vec<u8> {
    let mut message = (length as u32).to_be_bytes().to_vec();
    message.resize(4 + length, b'b');
    message
}

pub fn large_messages_are_dropped_and_small_ones_come<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>,
>(
    make: fn() -> io::Result<D>,
) {
    let (listener, addr) = listener();
    let mut driver = make().unwrap();
    driver.listen(listener).unwrap();
    // Large and small; the largest is more than one operation drops. Of the first large one after a small one much may be on its way
    // already, of those behind it only the beginning.
    let lengths = [200_000, 165_854, 50_000, 50_000, 3_000_000, 10, 100, 400_000, 19_000, 1];
    let peers: Vec<_> = (0..4)
        .map(|nth| {
            thread::spawn(move || {
                let mut peer = peer(addr);
                // One after the other, and two at a time: the head of the second comes with the end of the first.
                for pair in lengths.chunks(1 + nth % 2) {
                    let bytes = pair.iter().flat_map(|length| message(*length)).collect::<Vec<u8>>();
                    peer.write_all(&bytes).unwrap();
                    peer.read_exact(&mut vec![0; pair.len()]).unwrap();
                }
            })
        })
        .collect();
    let mut all = Each::default();
    run_until(&mut driver, &mut all, |all, _| all.0.len() == 4 && all.0.iter().all(|(_, one)| one.ended));
    peers.into_iter().for_each(|peer| peer.join().unwrap());
    let sum: usize = lengths.iter().sum();
    for (_, one) in &all.0 {
        assert_eq!((one.came + one.dropped, one.whole), (sum, lengths.len()));
        assert!(one.dropped > 2_900_000, "{one:?}");
    }
}

/// A handler for each connection.
#[derive(Debug, Default)]
struct Each(Vec<(Conn, Messages)>);

impl Handler for Each {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if matches!(event, Event::Accepted(_)) {
            self.0.push((conn, Messages::default()));
        }
        let (_, own) = self.0.iter_mut().find(|(known, _)| *known == conn).unwrap();
        own.on_event(io, conn, event);
    }
}

/// Closes a connection once so many messages have come, from inside the event that has the last byte.
#[derive(Debug)]
struct Closes {
    after: usize,
    abort: bool,
    own: Messages,
    closed: usize,
}

impl Handler for Closes {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if matches!(event, Event::Accepted(_)) {
            self.own = Messages::default();
        }
        self.own.on_event(io, conn, event);
        if self.own.whole == self.after {
            self.own.whole = 0;
            self.closed += 1;
            if self.abort { io.abort(conn) } else { io.close(conn) }
        }
    }
}

pub fn closing_in_the_event_of_what_was_dropped_is_allowed<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>,
>(
    make: fn() -> io::Result<D>,
) {
    // The last one is dropped; or it comes as data, behind one that was dropped.
    for (after, lengths) in [(3, [100_000; 3]), (3, [100_000, 100_000, 500]), (1, [100_000; 3])] {
        for abort in [false, true] {
            let (listener, addr) = listener();
            let mut driver = make().unwrap();
            driver.listen(listener).unwrap();
            let mut handler = Closes { after, abort, own: Messages::default(), closed: 0 };
            // Each gets the slot of the one before.
            for nth in 1..=20 {
                let sender = thread::spawn(move || {
                    let mut peer = peer(addr);
                    for length in lengths {
                        let sent = peer.write_all(&message(length));
                        if sent.is_err() || peer.read_exact(&mut [0]).is_err() {
                            return;
                        }
                    }
                });
                run_until(&mut driver, &mut handler, |handler, driver| handler.closed == nth && driver.open() == 0);
                sender.join().unwrap();
            }
        }
    }
}

/// A driver with a connection that drops what comes, and its peer.
fn dropping<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) -> (D, Record, Conn, TcpStream) {
    let (listener, addr) = listener();
    let mut driver = make().unwrap();
    driver.listen(listener).unwrap();
    let mut peer = peer(addr);
    peer.write_all(b"a").unwrap();
    let mut record = Record::default();
    run_until(&mut driver, &mut record, |record, _| record.data() == b"a");
    let conn = record.conn();
    driver.skip(conn, 1 << 40);
    peer.write_all(&pattern(300_000)).unwrap();
    let came = |record: &Record| {
        let of = |seen: &Seen| match seen {
            Seen::Data(bytes) => bytes.len(),
            Seen::Skipped(count) => *count,
            _ => 0,
        };
        record.seen.iter().map(|(_, seen)| of(seen)).sum::<usize>()
    };
    // An operation that waits for more has told of nothing yet.
    for _ in 0..20 {
        if came(&record) > 300_000 {
            break;
        }
        poll(&mut driver, &mut record);
    }
    (driver, record, conn, peer)
}

pub fn an_end_in_what_is_dropped_is_reported<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, conn, mut peer) = dropping(make);
    peer.shutdown(Shutdown::Write).unwrap();
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Eof) == 1);
    let dropped = |seen: &Seen| matches!(seen, Seen::Skipped(_));
    let counts = record.seen.iter().map(|(_, seen)| match seen {
        Seen::Data(bytes) => bytes.len(),
        Seen::Skipped(count) => *count,
        _ => 0,
    });
    assert_eq!(counts.sum::<usize>(), 300_001);
    assert!(record.count(dropped) > 0);
    driver.send(conn, b"still there");
    driver.close(conn);
    run_out(&mut driver, &mut record);
    let mut text = String::new();
    peer.set_read_timeout(Some(LONG)).unwrap();
    peer.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still there");
}

pub fn a_reset_in_what_is_dropped_is_a_failure<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (mut driver, mut record, _, peer) = dropping(make);
    reset(peer);
    run_out(&mut driver, &mut record);
    assert_eq!(record.count(|seen| matches!(seen, Seen::Failed(_))), 1, "{:?}", record.seen.last());
}

pub fn a_connection_that_drops_can_be_closed_and_its_successor_gets_all<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>,
>(
    make: fn() -> io::Result<D>,
) {
    for abort in [false, true] {
        let (mut driver, mut record, conn, mut first) = dropping(make);
        let addr = first.peer_addr().unwrap();
        if abort {
            driver.abort(conn)
        } else {
            driver.close(conn)
        }
        let before = record.seen.len();
        run_out(&mut driver, &mut record);
        assert_eq!(record.seen.len(), before, "no event follows");
        let ended = first.read(&mut [0; 10]);
        assert!(matches!(ended, Ok(0)) || ended.is_err(), "{ended:?}");
        let mut record = Record::default();
        let mut second = peer(addr);
        second.write_all(&pattern(50_000)).unwrap();
        run_until(&mut driver, &mut record, |record, _| record.data().len() == 50_000);
        assert_eq!(record.data(), pattern(50_000));
    }
}
