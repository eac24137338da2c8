//! Datagrams: they come whole, in trains of one size, with the address of who sent them.

use std::net::SocketAddr;

use weir_net::{Conn, DatagramCounts, Datagrams, Driver, Event, Handler, Io};

use crate::common::{Echo, LONG, MILLISECOND, Network, Place, Record, Seen, pattern, poll, run_out};

/// Keeps every datagram, in the order in which they came.
#[derive(Default)]
struct Inbox {
    all: Vec<(Conn, SocketAddr, Vec<u8>)>,
    failed: Vec<std::io::ErrorKind>,
}

impl Handler for Inbox {
    fn on_event<I: Io>(&mut self, _: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Datagrams(train) => self.all.extend(train.each().map(|one| (conn, train.from, one.to_vec()))),
            Event::Failed { error, .. } => self.failed.push(error.kind()),
            other => panic!("{other:?}"),
        }
    }
}

/// An echo server and a client, and turns of both.
struct Pair<N: Network> {
    server: N::Driver,
    client: N::Driver,
    inbox: Inbox,
    to: SocketAddr,
}

impl<N: Network> Pair<N> {
    fn new(net: &N) -> Pair<N> {
        let (server, address) = net.listening(Place::Datagrams);
        Pair { server, client: net.driver(), inbox: Inbox::default(), to: address.tcp().unwrap() }
    }

    /// Until so many datagrams have come back.
    fn run(&mut self, count: usize) {
        let end = self.client.now() + LONG;
        while self.inbox.all.len() < count {
            assert!(self.client.now() < end, "{} of {count} have come", self.inbox.all.len());
            // A look only: in a world the other's wait moves the time.
            self.server.poll(&mut Echo, Some(0)).unwrap();
            let until = self.client.now() + MILLISECOND / 10;
            self.client.poll(&mut self.inbox, Some(until)).unwrap();
        }
    }
}

/// Datagrams are cut where the sender said, and their order is that of loopback, or of a world without jitter.
pub fn a_train_comes_whole_and_says_from_whom<N: Network>(net: &N) {
    let mut pair = Pair::new(net);
    let conn = pair.client.connect_datagrams(pair.to, None).unwrap();
    let mut sent = pattern(9 * 1_200 + 77);
    sent.chunks_mut(1_200).zip(0..).for_each(|(one, number)| one[0] = number);
    pair.client.send_datagrams(conn, None, &sent, 1_200);
    pair.run(10);
    let mut back: Vec<Vec<u8>> = pair.inbox.all.iter().map(|(_, _, bytes)| bytes.clone()).collect();
    // A world's jitter changes the order.
    back.sort_by_key(|bytes| bytes[0]);
    assert!(back.concat() == sent, "what came is not what was sent");
    assert_eq!(back.iter().map(Vec::len).collect::<Vec<_>>(), [vec![1_200; 9], vec![77]].concat());
    assert!(pair.inbox.all.iter().all(|(from, address, _)| (*from, *address) == (conn, pair.to)));
    let DatagramCounts { received, sent, send_calls, refused, .. } = pair.client.datagram_counts();
    assert_eq!((received, sent, send_calls, refused), (10, 10, 1, 0));
    let server = pair.server.datagram_counts();
    assert_eq!((server.received, server.sent), (10, 10));
}

pub fn one_socket_has_many_peers<N: Network>(net: &N) {
    let mut pair = Pair::new(net);
    let conns: Vec<Conn> = (0..40).map(|_| pair.client.connect_datagrams(pair.to, None).unwrap()).collect();
    for (number, conn) in conns.iter().enumerate() {
        pair.client.send_datagrams(*conn, None, &pattern(number + 1), 1_200);
    }
    pair.run(40);
    let mut sizes: Vec<(usize, usize)> =
        pair.inbox.all.iter().map(|(conn, _, bytes)| (conn.slot(), bytes.len())).collect();
    sizes.sort_unstable();
    let mut expected: Vec<(usize, usize)> =
        conns.iter().enumerate().map(|(number, conn)| (conn.slot(), number + 1)).collect();
    expected.sort_unstable();
    assert_eq!(sizes, expected, "each gets its own");
}

pub fn where_nobody_listens_the_socket_fails<N: Network>(net: &N) {
    let to = net.listener(Place::Datagrams).1.tcp().unwrap();
    let (mut driver, mut inbox) = (net.driver(), Inbox::default());
    let conn = driver.connect_datagrams(to, None).unwrap();
    driver.send_datagrams(conn, None, b"anybody?", 1_200);
    let end = driver.now() + LONG;
    while inbox.failed.is_empty() {
        assert!(driver.now() < end);
        poll(&mut driver, &mut inbox);
    }
    assert_eq!(inbox.failed, [std::io::ErrorKind::ConnectionRefused]);
    run_out(&mut driver, &mut inbox);
}

pub fn a_socket_may_be_closed_and_its_successor_gets_nothing_of_it<N: Network>(net: &N) {
    let mut pair = Pair::new(net);
    let first = pair.client.connect_datagrams(pair.to, None).unwrap();
    pair.client.send_datagrams(first, None, &pattern(500), 100);
    pair.client.close(first);
    run_out(&mut pair.client, &mut pair.inbox);
    let second = pair.client.connect_datagrams(pair.to, None).unwrap();
    pair.client.send_datagrams(first, None, &pattern(50), 100);
    pair.client.send_datagrams(second, None, &pattern(70), 100);
    pair.run(1);
    assert!(pair.inbox.all.iter().all(|(conn, _, bytes)| (*conn, bytes.len()) == (second, 70)));
    // A bound one says once that it is there, and can be closed, too.
    let (mut server, _) = net.listening(Place::Datagrams);
    let mut record = Record::default();
    poll(&mut server, &mut record);
    assert_eq!(record.seen, [(record.conn(), Seen::Accepted)]);
    server.close(record.conn());
    run_out(&mut server, &mut record);
}

/// Many trains wait when the server looks.
pub fn more_than_one_call_takes_comes_whole<N: Network>(net: &N) {
    let mut pair = Pair::new(net);
    let conn = pair.client.connect_datagrams(pair.to, None).unwrap();
    // Less than the smallest receive buffer of a world.
    let (trains, size) = (30, 3);
    for _ in 0..trains {
        pair.client.send_datagrams(conn, None, &pattern(Datagrams::MOST * size / 4), size);
    }
    pair.run(trains * Datagrams::MOST / 4);
    assert!(pair.inbox.all.iter().all(|(_, _, bytes)| bytes.len() == size));
}
