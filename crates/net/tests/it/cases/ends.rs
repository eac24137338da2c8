//! How connections end: closed, aborted, refused, reset, half-closed; and that they leave nothing behind.

use std::io::ErrorKind;

use weir_net::{Address, Conn, Driver, Event, Handler, Io, monotonic_ns};

use crate::common::{
    Act, BODY, Echo, Kernel, LONG, MANY, MILLISECOND, Network, Peer, Place, Record, Seen, poll, run_out, run_until,
    send_many, settle,
};

fn is_failure(seen: &Seen) -> bool {
    matches!(seen, Seen::Failed(_))
}

pub fn abort_resets_the_peer<N: Network>(net: &N) {
    let (mut driver, mut record, conn, mut peer) = net.accepted(N::connect);
    driver.send(conn, b"never sent");
    driver.abort(conn);
    driver.send(conn, b"ignored");
    assert_eq!(driver.unsent(conn), 0);
    run_out(&mut driver, &mut record);
    assert!(peer.is_reset());
    assert_eq!(record.seen.len(), 1, "no event follows an abort");
}

/// Also of what is closed and cannot be sent.
pub fn abort_while_blocked_resets_the_peer<N: Network>(net: &N) {
    for is_closed in [false, true] {
        let (mut driver, mut record, conn, mut peer) = net.accepted(N::connect_small);
        send_many(&mut driver, conn);
        if is_closed {
            driver.close(conn);
        }
        settle(&mut driver, &mut record);
        assert_eq!(driver.open(), 1, "the peer does not read");
        assert!(is_closed || driver.unsent(conn) > 0);
        driver.abort(conn);
        run_out(&mut driver, &mut record);
        assert!(peer.is_reset());
        assert_eq!(record.seen.len(), 1, "no event follows an abort");
    }
}

pub fn refused_connect_fails_once<N: Network>(net: &N) {
    // A port that was free a moment ago.
    let address = net.refusing();
    let (mut driver, mut record) = net.recording();
    let conn = driver.connect(&address, None).unwrap();
    driver.send(conn, b"never sent");
    run_out(&mut driver, &mut record);
    poll(&mut driver, &mut record);
    let refused = Seen::Failed(ErrorKind::ConnectionRefused);
    assert_eq!(record.seen, [(conn, refused)]);
    driver.close(conn);
    driver.abort(conn);
    assert_eq!(driver.open(), 0);
}

pub fn a_reset_in_mid_data_fails_once<N: Network>(net: &N) {
    let (mut driver, mut record, conn, mut peer) = net.accepted(N::connect_small);
    send_many(&mut driver, conn);
    poll(&mut driver, &mut record);
    peer.read(10).unwrap();
    peer.reset();
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

pub fn a_failure_reports_the_unsent_bytes<N: Network>(net: &N) {
    let mut driver = net.driver();
    let mut losses = FailureRecord::default();
    // Never connected: nothing was.
    let conn = driver.connect(&net.refusing(), None).unwrap();
    driver.send_with(conn, b"head", &BODY);
    run_out(&mut driver, &mut losses);
    assert_eq!(losses.0, [4 + BODY.len()]);
    // Reset: what the kernel had taken is not counted, what is sent into the void is.
    let (listener, address) = net.peer_listener(Place::Tcp);
    let conn = driver.connect(&address, None).unwrap();
    send_many(&mut driver, conn);
    settle(&mut driver, &mut losses);
    let peer = net.accept(&listener);
    let left = driver.unsent(conn);
    assert!(left > 0 && left < MANY);
    peer.reset();
    driver.send(conn, b"more");
    run_out(&mut driver, &mut losses);
    assert_eq!(losses.0.len(), 2);
    assert!(losses.0[1] >= 4 && losses.0[1] <= left + 4, "{} of {left}", losses.0[1]);
}

pub fn data_before_a_reset_is_delivered_before_the_failure<N: Network>(net: &N) {
    let (mut driver, mut record, conn, mut peer) = net.accepted(N::connect);
    peer.write(b"last words");
    // Unread bytes make the peer's close a reset, after its data has arrived.
    driver.send(conn, b"unread");
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| matches!(seen, Seen::Data(_))) > 0);
    peer.act(Act::Wait).unwrap();
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
pub fn a_reset_at_once_with_data_is_noticed_by_what_is_sent<N: Network>(net: &N) {
    let (mut driver, mut record, conn, mut peer) = net.accepted(N::connect);
    // The kernel waits for data.
    poll(&mut driver, &mut record);
    peer.write(b"data");
    peer.reset();
    run_until(&mut driver, &mut record, |record, _| record.data() == b"data");
    driver.send(conn, b"answer");
    run_out(&mut driver, &mut record);
    assert_eq!(record.count(is_failure), 1, "{:?}", record.seen);
    assert!(is_failure(&record.seen.last().unwrap().1));
}

pub fn after_eof_the_connection_can_still_send<N: Network>(net: &N) {
    let (mut driver, mut record, conn, mut peer) = net.accepted(N::connect);
    peer.write(b"question");
    peer.shut_down();
    let eofs = |record: &Record| record.count(|seen| *seen == Seen::Eof);
    run_until(&mut driver, &mut record, |record, _| eofs(record) > 0);
    settle(&mut driver, &mut record);
    assert_eq!(eofs(&record), 1, "told once");
    assert_eq!(record.data(), b"question");
    assert_eq!(driver.open(), 1);
    driver.send_with(conn, b"answer", &BODY);
    driver.close(conn);
    let reading = net.play(peer, vec![Act::ReadToEnd]);
    run_out(&mut driver, &mut record);
    let all = net.join(reading).read;
    assert_eq!(&all[..6], b"answer");
    assert_eq!(all.len(), 6 + BODY.len());
    assert_eq!(record.count(is_failure), 0);
}

pub fn close_before_connected_emits_no_event<N: Network>(net: &N) {
    let (_listener, listening) = net.peer_listener(Place::Tcp);
    let (mut driver, mut record) = net.recording();
    for address in [listening, net.refusing()] {
        let closed = driver.connect(&address, None).unwrap();
        driver.close(closed);
        let aborted = driver.connect(&address, None).unwrap();
        driver.abort(aborted);
    }
    run_out(&mut driver, &mut record);
    poll(&mut driver, &mut record);
    assert!(record.seen.is_empty(), "{:?}", record.seen);
}

pub fn a_stale_connection_does_not_affect_its_successor<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    let mut record = Record::default();
    let first_peer = net.connect(&address);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 1);
    let first = record.conn();
    drop(first_peer);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 2);
    driver.close(first);
    run_out(&mut driver, &mut record);

    let mut second_peer = net.connect(&address);
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
    assert_eq!(second_peer.read(5).unwrap(), b"fresh");
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

pub fn closing_inside_any_event_is_allowed<N: Network>(net: &N) {
    let events: [fn(&Event<'_>) -> bool; 5] = [
        |event| matches!(event, Event::Accepted(_)),
        |event| matches!(event, Event::Connected),
        |event| matches!(event, Event::Data(_)),
        |event| matches!(event, Event::Eof),
        |event| matches!(event, Event::Failed { .. }),
    ];
    for when in events {
        let (theirs, their_address) = net.peer_listener(Place::Tcp);
        let (mut driver, address) = net.listening(Place::Tcp);
        let mut handler = CloseInside { when, told_after: 0, closed: Vec::new() };
        for _ in 0..3 {
            let conn = driver.connect(&their_address, None).unwrap();
            driver.connect(&net.refusing(), None).unwrap();
            let mut inwards = net.connect(&address);
            inwards.write(&[7; 3_000]);
            poll(&mut driver, &mut handler);
            let mut outwards = net.accept(&theirs);
            // It may be closed already, and then refuses the bytes.
            let _ = outwards.act(Act::Write(b"hello".to_vec()));
            settle(&mut driver, &mut handler);
            drop((inwards, outwards));
            settle(&mut driver, &mut handler);
            driver.close(conn);
        }
        assert!(!handler.closed.is_empty());
        assert_eq!(handler.told_after, 0);
    }
}

/// Makes a new connection in every event, until it has made enough.
struct Multiplier {
    address: Address,
    refusing: Address,
    left: usize,
    echoed: usize,
}

impl Handler for Multiplier {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let to = if self.left.is_multiple_of(3) { &self.refusing } else { &self.address };
            io.connect(to, None).unwrap();
        }
        match event {
            Event::Connected => io.send(conn, b"ping"),
            Event::Data(bytes) if bytes.ends_with(b"g") => {
                self.echoed += 1;
                io.close(conn);
            }
            _ => {}
        }
    }
}

pub fn connecting_inside_events_is_allowed<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    let mut driver = net.driver();
    let mut handler = Multiplier { address: address.clone(), refusing: net.refusing(), left: 500, echoed: 0 };
    driver.connect(&address, None).unwrap();
    run_out(&mut driver, &mut handler);
    assert_eq!(handler.left, 0);
    assert!(handler.echoed >= 300, "{}", handler.echoed);
}

/// Sockets bound or connected to `port` that are still held open, by a descriptor or otherwise: the others have no
/// inode.
fn sockets_on(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let needle = format!(":{port:04X}");
    let lines = table.lines().filter(|line| line.contains(&needle));
    let fields = lines.map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    fields
        .filter(|fields| fields[1].ends_with(&needle) || fields[2].ends_with(&needle))
        .filter(|fields| fields[9] != "0")
        .count()
}

pub fn sockets_do_not_leak<D>(net: &Kernel<D>)
where
    Kernel<D>: Network,
{
    let (mut driver, address) = net.listening(Place::Tcp);
    let mut record = Record::default();
    let port = address.tcp().unwrap().port();
    let before = sockets_on(port);
    assert_eq!(before, 1);
    for round in 0..8 {
        let conn = driver.connect(&address, None).unwrap();
        let aborted = driver.connect(&address, None).unwrap();
        driver.send(conn, b"hello");
        settle(&mut driver, &mut record);
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
    assert_eq!(sockets_on(port), before);
    // Dropped with connections open, idle and blocked.
    let conn = driver.connect(&address, None).unwrap();
    send_many(&mut driver, conn);
    settle(&mut driver, &mut record);
    assert!(sockets_on(port) > before);
    drop(driver);
    // The kernel takes a ring down in the background.
    let end = monotonic_ns() + LONG;
    while sockets_on(port) > 0 {
        assert!(monotonic_ns() < end, "sockets stay open");
        net.pause(MILLISECOND);
    }
}

pub fn a_listener_refuses_for_a_while_and_accepts_again<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    let (other, other_address) = net.listener(Place::Tcp);
    driver.listen(other).unwrap();
    let mut record = Record::default();
    let mut peers = vec![net.connect(&address)];
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 1);
    for round in 1..4 {
        driver.refuse(0, true).unwrap();
        settle(&mut driver, &mut record);
        let refused = net.try_connect(&address).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "round {round}");
        // The connections stay, and the other listener accepts.
        peers.push(net.connect(&other_address));
        run_until(&mut driver, &mut record, |record, _| record.seen.len() == 2 * round);
        driver.refuse(0, false).unwrap();
        peers.push(net.connect(&address));
        run_until(&mut driver, &mut record, |record, _| record.seen.len() == 2 * round + 1);
        assert_eq!((driver.open(), record.count(|seen| *seen == Seen::Accepted)), (peers.len(), peers.len()));
    }
}

pub fn stop_listening_refuses_new_peers<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    let mut record = Record::default();
    let _old = net.connect(&address);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 1);
    driver.stop_listening();
    settle(&mut driver, &mut record);
    let refused = net.try_connect(&address).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    // The connections stay, and it can listen again.
    assert_eq!(driver.open(), 1);
    let (more, address) = net.listener(Place::Tcp);
    driver.listen(more).unwrap();
    let _new = net.connect(&address);
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 2);
}
