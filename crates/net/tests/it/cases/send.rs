//! Everything queued is sent, in order, and the handler gets the documented events.

use weir_net::{Conn, Driver, Event, Handler, Io};

use crate::common::{
    Act, BODY, MANY, MICROSECOND, MILLISECOND, Network, Peer, Place, Record, Seen, poll, run_out, run_until, send_many,
    settle,
};

/// Answers each byte with a head and the body. Closes a connection after so many.
struct Bodies {
    close_after: usize,
    answered: usize,
}

impl Handler for Bodies {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Data(bytes) => {
                // What comes behind them may be read with them.
                let count = bytes.len().min(self.close_after - self.answered);
                (0..count).for_each(|_| io.send_with(conn, b"head", &BODY));
                self.answered += count;
                if self.answered == self.close_after {
                    self.answered = 0;
                    io.close(conn);
                }
            }
            Event::Eof => io.close(conn),
            _ => {}
        }
    }
}

fn read_bodies<N: Network>(net: &N, peer: &mut N::Peer, count: usize, pause: u64) {
    for _ in 0..count {
        assert_eq!(peer.read(4).unwrap(), b"head");
        for part in BODY.chunks(20_000) {
            assert!(peer.read(part.len()).unwrap() == part, "the body changed");
            if pause > 0 {
                net.pause(pause);
            }
        }
    }
}

pub fn static_bodies_come_whole_to_fast_and_slow_readers<N: Network>(net: &N) {
    let (_server, address) = net.serve(Bodies { close_after: usize::MAX, answered: 0 });
    let mut fast = net.connect(&address);
    let mut slow = net.connect_small(&address);
    fast.write(&[1; 20]);
    slow.write(&[1; 3]);
    read_bodies(net, &mut fast, 20, 0);
    read_bodies(net, &mut slow, 3, MILLISECOND);
    // More bodies than go into one system call.
    fast.write(&[1; 70]);
    read_bodies(net, &mut fast, 70, 0);
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

pub fn bodies_and_bytes_keep_their_order<N: Network>(net: &N) {
    let mut expected = Vec::new();
    for size in SIZES {
        expected.extend_from_slice(&size.to_le_bytes());
        expected.extend_from_slice(&BODY[..size]);
        expected.extend_from_slice(&BODY[..size]);
    }
    let (_server, address) = net.serve(Mixed);
    for mut peer in [net.connect(&address), net.connect_small(&address)] {
        let all = peer.read_to_end().unwrap();
        assert!(all == expected, "{} of {}", all.len(), expected.len());
    }
}

pub fn close_while_sending_flushes_all<N: Network>(net: &N) {
    let (_server, address) = net.serve(Bodies { close_after: 30, answered: 0 });
    for mut peer in [net.connect(&address), net.connect_small(&address)] {
        peer.write(&[1; 30]);
        // What comes after the close must not spoil what was queued before it.
        net.pause(10 * MILLISECOND);
        peer.write(&[1; 1]);
        peer.act(Act::Wait).unwrap();
        read_bodies(net, &mut peer, 30, 10 * MICROSECOND);
        assert!(peer.read_to_end().unwrap().is_empty());
    }
}

pub fn what_is_sent_before_connected_arrives<N: Network>(net: &N) {
    let (listener, address) = net.peer_listener(Place::Tcp);
    let (mut driver, mut record) = net.recording();
    let conn = driver.connect(&address, None).unwrap();
    driver.send(conn, b"early");
    driver.send_with(conn, b" and ", &BODY);
    assert_eq!(driver.unsent(conn), 10 + BODY.len());
    driver.close(conn);
    assert_eq!(driver.open(), 1);
    poll(&mut driver, &mut record);
    let reading = net.play(net.accept(&listener), vec![Act::ReadToEnd]);
    run_out(&mut driver, &mut record);
    let all = net.join(reading).read;
    assert_eq!(&all[..10], b"early and ");
    assert!(all[10..] == BODY);
    assert!(record.seen.is_empty(), "closed, so nothing is told");
}

pub fn sent_comes_once_when_the_queue_is_empty<N: Network>(net: &N) {
    let (mut driver, mut record, conn, peer) = net.accepted(N::connect_small);
    let sents = |record: &Record| record.count(|seen| *seen == Seen::Sent);

    // Not asked for.
    driver.send(conn, b"1");
    settle(&mut driver, &mut record);
    assert_eq!(sents(&record), 0);

    // Asked for, and at once.
    driver.send(conn, b"2");
    driver.want_sent(conn);
    run_until(&mut driver, &mut record, |record, _| sents(record) == 1);

    // Asked for, and only when a slow reader has made room.
    send_many(&mut driver, conn);
    driver.want_sent(conn);
    settle(&mut driver, &mut record);
    assert_eq!(sents(&record), 1);
    assert!(driver.unsent(conn) > 0);
    let reading = net.play(peer, vec![Act::Read(2 + MANY)]);
    run_until(&mut driver, &mut record, |record, _| sents(record) == 2);
    assert_eq!(driver.unsent(conn), 0);
    let _peer = net.join(reading).peer;
    driver.send(conn, b"3");
    settle(&mut driver, &mut record);
    assert_eq!(sents(&record), 2);
}

pub fn unsent_counts_down_to_zero<N: Network>(net: &N) {
    let (mut driver, mut record, conn, peer) = net.accepted(N::connect_small);
    assert_eq!(driver.unsent(conn), 0);
    send_many(&mut driver, conn);
    assert_eq!(driver.unsent(conn), MANY);
    settle(&mut driver, &mut record);
    let blocked = driver.unsent(conn);
    assert!(blocked > 0 && blocked < MANY, "{blocked} of {MANY}");
    driver.send(conn, b"more");
    assert_eq!(driver.unsent(conn), blocked + 4);
    let reading = net.play(peer, vec![Act::Read(MANY + 4)]);
    run_until(&mut driver, &mut record, |_, driver| driver.unsent(conn) == 0);
    assert_eq!(&net.join(reading).read[MANY..], b"more");
}
