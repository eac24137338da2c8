//! Connections that receive only so much: what comes, what stays with the peer, and when ends are reported.

use weir_net::{Conn, Event, Handler, Io, SocketLimits};

use crate::common::{Act, MANY, MILLISECOND, Network, Peer, Place, Record, Seen, pattern, run_out, run_until, settle};

/// Records, and receives at most so many bytes of each connection that is accepted.
#[derive(Debug, Default)]
struct Limited {
    at_most: u64,
    record: Record,
}

impl Handler for Limited {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if let Event::Accepted(_) = event {
            io.receive_at_most(conn, self.at_most);
        }
        self.record.on_event(io, conn, event);
    }
}

/// Long enough for all that can come to have come.
fn wait<N: Network>(net: &N, driver: &mut N::Driver, handler: &mut impl Handler) {
    for _ in 0..5 {
        net.pause(2 * MILLISECOND);
        settle(driver, handler);
    }
}

fn ends(record: &Record) -> usize {
    record.count(|seen| matches!(seen, Seen::Eof | Seen::Failed(_)))
}

pub fn a_peer_is_stopped_while_nothing_is_received<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    let mut handler = Limited::default();
    let all = pattern(MANY);
    let sender = net.play(net.connect(&address), vec![Act::Write(all.clone()), Act::ShutDown]);
    run_until(&mut driver, &mut handler, |handler, _| !handler.record.seen.is_empty());
    let conn = handler.record.conn();
    wait(net, &mut driver, &mut handler);
    assert_eq!(handler.record.received(), 0);
    assert!(!net.is_over(&sender), "more than the sockets hold");
    // A part at a time.
    for sum in [1_000, 1_700] {
        driver.receive_at_most(conn, sum as u64 - handler.record.received() as u64);
        run_until(&mut driver, &mut handler, |handler, _| handler.record.received() >= sum);
        wait(net, &mut driver, &mut handler);
        assert_eq!((handler.record.received(), net.is_over(&sender)), (sum, false));
    }
    driver.receive_at_most(conn, u64::MAX);
    run_until(&mut driver, &mut handler, |handler, _| ends(&handler.record) == 1);
    assert!(handler.record.data() == all, "{} of {}", handler.record.received(), all.len());
    assert!(net.join(sender).error.is_none());
}

pub fn a_connection_that_receives_can_be_stopped<N: Network>(net: &N) {
    let (mut driver, mut record, conn, mut peer) = net.accepted(N::connect);
    peer.write(b"a");
    run_until(&mut driver, &mut record, |record, _| record.received() == 1);
    driver.receive_at_most(conn, 0);
    settle(&mut driver, &mut record);
    let sender = net.play(peer, vec![Act::Write(pattern(30_000))]);
    wait(net, &mut driver, &mut record);
    assert_eq!(record.received(), 1);
    // It can send meanwhile.
    driver.send(conn, b"b");
    driver.want_sent(conn);
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Sent) == 1);
    assert_eq!(net.join(sender).peer.read(1).unwrap(), b"b");
    driver.receive_at_most(conn, u64::MAX);
    run_until(&mut driver, &mut record, |record, _| record.received() == 30_001);
    assert_eq!(record.data()[1..], pattern(30_000));
}

pub fn an_end_is_reported_when_something_is_received_for_again<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    for reset in [false, true] {
        let mut handler = Limited { at_most: 2, ..Limited::default() };
        let mut peer = net.connect(&address);
        peer.write(b"abc");
        run_until(&mut driver, &mut handler, |handler, _| handler.record.received() == 2);
        let conn = handler.record.conn();
        if reset {
            peer.reset();
        } else {
            peer.shut_down();
            wait(net, &mut driver, &mut handler);
            // It is read to its last byte, and not beyond.
            driver.receive_at_most(conn, 1);
            run_until(&mut driver, &mut handler, |handler, _| handler.record.received() == 3);
        }
        wait(net, &mut driver, &mut handler);
        assert_eq!(ends(&handler.record), 0, "{:?}", handler.record.seen);
        driver.receive_at_most(conn, 5);
        run_until(&mut driver, &mut handler, |handler, _| ends(&handler.record) == 1);
        assert_eq!(handler.record.count(|seen| *seen == Seen::Eof), usize::from(!reset));
        driver.close(conn);
    }
}

pub fn what_cannot_be_sent_is_a_failure_though_nothing_is_received<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    let mut handler = Limited::default();
    let peer = net.connect(&address);
    run_until(&mut driver, &mut handler, |handler, _| !handler.record.seen.is_empty());
    let conn = handler.record.conn();
    peer.reset();
    wait(net, &mut driver, &mut handler);
    assert_eq!(ends(&handler.record), 0);
    driver.send(conn, b"x");
    run_out(&mut driver, &mut handler);
    assert_eq!(ends(&handler.record), 1);
}

pub fn a_slow_reader_leaves_most_with_the_peer<N: Network>(net: &N) {
    let (listener, address) = net.peer_listener(Place::Tcp);
    let (mut driver, mut record) = net.recording();
    driver.limit_sockets(SocketLimits { receive_buffer: Some(4_096), segment: Some(1_000) });
    let conn = driver.connect(&address, None).unwrap();
    driver.receive_at_most(conn, 10);
    run_until(&mut driver, &mut record, |record, _| !record.seen.is_empty());
    // The kernel would take so much of a peer over loopback, if the sockets were as usual.
    let sender = net.play(net.accept(&listener), vec![Act::Write(pattern(1 << 20))]);
    run_until(&mut driver, &mut record, |record, _| record.received() > 0);
    wait(net, &mut driver, &mut record);
    assert_eq!((record.received(), net.is_over(&sender)), (10, false));
    driver.receive_at_most(conn, u64::MAX);
    run_until(&mut driver, &mut record, |record, _| record.received() == 1 << 20);
    assert!(record.data() == pattern(1 << 20));
    net.join(sender);
}
