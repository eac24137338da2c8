//! Waits are never early and end at a wake-up; connections use their source addresses.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use weir_net::{Driver, Io, Wake};

use crate::common::{Kernel, LONG, MICROSECOND, MILLISECOND, Network, Peer, Place, Record, Seen, poll, run_until};

pub fn a_wait_is_not_early<N: Network>(net: &N) {
    let (mut driver, mut record) = net.recording();
    for nanos in [1, 999, 50_000, 999_999, 1_000_001, 7_654_321] {
        for _ in 0..5 {
            let until = driver.now() + nanos;
            driver.poll(&mut record, Some(until)).unwrap();
            let now = driver.now();
            assert!(now >= until, "{} ns early", until - now);
            assert!(now < until + LONG);
        }
    }
    assert!(record.seen.is_empty());
}

pub fn until_in_the_past_returns_at_once<N: Network>(net: &N) {
    let (mut driver, mut record) = net.recording();
    let start = driver.now();
    for _ in 0..100 {
        driver.poll(&mut record, Some(start)).unwrap();
    }
    assert!(driver.now() < start + LONG);
    // It still checks for events.
    let (_listener, address) = net.peer_listener(Place::Tcp);
    driver.connect(&address, None).unwrap();
    while record.seen.is_empty() {
        driver.poll(&mut record, Some(start)).unwrap();
        net.pause(10 * MICROSECOND);
        assert!(driver.now() < start + LONG);
    }
}

pub fn the_waker_ends_a_wait<N: Network>(net: &N) {
    let (mut driver, mut record) = net.recording();
    for _ in 0..3 {
        let end = driver.now() + LONG;
        // From another thread, while it waits.
        let waker = driver.waker();
        net.later(5 * MILLISECOND, move || waker.wake());
        driver.poll(&mut record, Some(2 * end)).unwrap();
        // Before it waits; several count as one.
        driver.waker().wake();
        driver.waker().wake();
        driver.poll(&mut record, Some(2 * end)).unwrap();
        assert!(driver.now() < end);
        let until = driver.now() + 5 * MILLISECOND;
        driver.poll(&mut record, Some(until)).unwrap();
        assert!(driver.now() >= until, "a wake-up counted twice");
    }
}

pub fn source_addresses_are_bound<N: Network>(net: &N) {
    let (listener, address) = net.peer_listener(Place::Tcp);
    let (mut driver, mut record) = net.recording();
    for last in 2..12 {
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        driver.connect(&address, Some(from)).unwrap();
        run_until(&mut driver, &mut record, |record, _| {
            record.count(|seen| *seen == Seen::Connected) == usize::from(last) - 1
        });
        assert_eq!(net.accept(&listener).other_address().ip(), from);
    }
    // An address that is not this machine's is refused when the socket is made.
    let foreign = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    assert!(driver.connect(&address, Some(foreign)).is_err());
    assert_eq!(driver.open(), 10, "no slot is taken for it");
}

/// Linux 6.8 is the first that does so.
pub fn ports_are_tried_alike_on_request<D>(net: &Kernel<D>)
where
    Kernel<D>: Network,
{
    const CONNECTIONS: usize = 40;
    let (listener, address) = net.peer_listener(Place::Tcp);
    let odd_ports = |from| {
        let mut driver = net.driver();
        let mut record = Record::default();
        for _ in 0..CONNECTIONS {
            driver.connect(&address, from).unwrap();
        }
        run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Connected) == CONNECTIONS);
        (0..CONNECTIONS).filter(|_| net.accept(&listener).other_address().port() % 2 == 1).count()
    };
    let alike = odd_ports(Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
    assert!((1..CONNECTIONS).contains(&alike), "{alike} of {CONNECTIONS} ports are odd");
    assert!(odd_ports(None) < CONNECTIONS / 4, "then the kernel's own way is no other any more");
}

/// Only epoll, and io_uring before Linux 6.12, do not gather.
pub fn a_wait_goes_on_for_what_is_gathered<N: Network>(net: &N) {
    const WITHIN: u64 = 50 * MILLISECOND;
    let (listener, address) = net.peer_listener(Place::Tcp);
    let (mut driver, mut record) = net.recording();
    for _ in 0..2 {
        driver.connect(&address, None).unwrap();
    }
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Connected) == 2);
    let mut peers = [(); 2].map(|()| net.accept(&listener));
    // Its receives begin.
    poll(&mut driver, &mut record);
    let gathers = driver.name() != "epoll";
    let mut after = |within: u64, senders: usize| {
        driver.batch_completions(Duration::from_nanos(within), 2);
        peers[..senders].iter_mut().for_each(|peer| peer.write(b"x"));
        let (seen, start) = (record.data().len(), driver.now());
        driver.poll(&mut record, Some(start + 2 * LONG)).unwrap();
        (driver.now() - start, record.data().len() - seen)
    };
    let (took, seen) = after(WITHIN, 1);
    assert_eq!(seen, 1);
    assert!(!gathers || took >= WITHIN, "{took} ns");
    // As many as are waited for end it, and so does the first where nothing is gathered.
    let (took, seen) = after(LONG, 2);
    assert!(took < LONG && seen == 2, "{seen} after {took} ns");
    let (took, seen) = after(0, 1);
    assert!(took < LONG && seen == 1, "{seen} after {took} ns");
}
