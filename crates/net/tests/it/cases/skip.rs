//! What is dropped on request: how much, in which order beside the rest, and how connections end meanwhile.

use weir_net::{Address, Conn, Driver, Event, Handler, Io};

use crate::common::{Act, Network, Peer, Place, Record, Seen, pattern, poll, run_out, run_until};

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
            Event::Accepted(_) | Event::Connected | Event::Datagrams(_) | Event::Sent => {}
        }
    }
}

fn message(length: usize) -> Vec<u8> {
    let mut message = (length as u32).to_be_bytes().to_vec();
    message.resize(4 + length, b'b');
    message
}

pub fn large_messages_are_dropped_and_small_ones_come<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    // Large and small; the largest is more than one operation drops. Of the first large one after a small one much may be on its way
    // already, of those behind it only the beginning.
    let lengths = [200_000, 165_854, 50_000, 50_000, 3_000_000, 10, 100, 400_000, 19_000, 1];
    let peers = [0, 1, 2, 3].map(|nth| {
        // One after the other, and two at a time: the head of the second comes with the end of the first.
        let acts = lengths.chunks(1 + nth % 2).flat_map(|pair| {
            let messages: Vec<_> = pair.iter().map(|length| message(*length)).collect();
            [Act::Write(messages.concat()), Act::Read(pair.len())]
        });
        net.play(net.connect(&address), acts.chain([Act::Close]).collect())
    });
    let mut all = Each::default();
    run_until(&mut driver, &mut all, |all, _| all.0.len() == 4 && all.0.iter().all(|(_, one)| one.ended));
    peers.into_iter().for_each(|peer| assert!(net.join(peer).error.is_none()));
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

pub fn closing_in_the_event_of_what_was_dropped_is_allowed<N: Network>(net: &N) {
    // The last one is dropped; or it comes as data, behind one that was dropped.
    for (after, lengths) in [(3, [100_000; 3]), (3, [100_000, 100_000, 500]), (1, [100_000; 3])] {
        for abort in [false, true] {
            let (mut driver, address) = net.listening(Place::Tcp);
            let mut handler = Closes { after, abort, own: Messages::default(), closed: 0 };
            // Each gets the slot of the one before.
            for nth in 1..=8 {
                let acts = lengths.iter().flat_map(|length| [Act::Write(message(*length)), Act::Read(1)]);
                let sender = net.play(net.connect(&address), acts.collect());
                run_until(&mut driver, &mut handler, |handler, driver| handler.closed == nth && driver.open() == 0);
                net.join(sender);
            }
        }
    }
}

/// A driver with a connection that drops what comes, and its peer.
fn dropping<N: Network>(net: &N) -> (N::Driver, Record, Conn, N::Peer, Address) {
    let (mut driver, address) = net.listening(Place::Tcp);
    let mut peer = net.connect(&address);
    peer.write(b"a");
    let mut record = Record::default();
    run_until(&mut driver, &mut record, |record, _| record.data() == b"a");
    let conn = record.conn();
    driver.skip(conn, 1 << 40);
    peer.write(&pattern(300_000));
    // An operation that waits for more has told of nothing yet.
    for _ in 0..20 {
        if record.received() > 300_000 {
            break;
        }
        poll(&mut driver, &mut record);
    }
    (driver, record, conn, peer, address)
}

pub fn an_end_in_what_is_dropped_is_reported<N: Network>(net: &N) {
    let (mut driver, mut record, conn, mut peer, _) = dropping(net);
    peer.shut_down();
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Eof) == 1);
    let dropped = |seen: &Seen| matches!(seen, Seen::Skipped(_));
    assert_eq!(record.received(), 300_001);
    assert!(record.count(dropped) > 0);
    driver.send(conn, b"still there");
    driver.close(conn);
    run_out(&mut driver, &mut record);
    assert_eq!(peer.read_to_end().unwrap(), b"still there");
}

pub fn a_reset_in_what_is_dropped_is_a_failure<N: Network>(net: &N) {
    let (mut driver, mut record, _, peer, _) = dropping(net);
    peer.reset();
    run_out(&mut driver, &mut record);
    assert_eq!(record.count(|seen| matches!(seen, Seen::Failed(_))), 1, "{:?}", record.seen.last());
}

pub fn a_connection_that_drops_can_be_closed_and_its_successor_gets_all<N: Network>(net: &N) {
    for abort in [false, true] {
        let (mut driver, mut record, conn, mut first, address) = dropping(net);
        if abort {
            driver.abort(conn)
        } else {
            driver.close(conn)
        }
        let before = record.seen.len();
        run_out(&mut driver, &mut record);
        assert_eq!(record.seen.len(), before, "no event follows");
        assert!(first.read_to_end().unwrap_or_default().is_empty());
        let mut record = Record::default();
        let mut second = net.connect(&address);
        second.write(&pattern(50_000));
        run_until(&mut driver, &mut record, |record, _| record.received() == 50_000);
        assert_eq!(record.data(), pattern(50_000));
    }
}
