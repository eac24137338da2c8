//! Waits are never early and end at a wake-up; connections use their source addresses.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use weir_net::Driver;

use crate::common::{LONG, Record, Seen, peer_listener, poll, run_until};

pub fn a_wait_is_not_early<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let mut driver = make().unwrap();
    let mut record = Record::default();
    for nanos in [1, 999, 50_000, 999_999, 1_000_001, 7_654_321, 30_000_000] {
        for _ in 0..5 {
            let until = Instant::now() + Duration::from_nanos(nanos);
            driver.poll(&mut record, Some(until)).unwrap();
            let now = Instant::now();
            assert!(now >= until, "{:?} early", until - now);
            assert!(now < until + LONG);
        }
    }
    assert!(record.seen.is_empty());
}

pub fn until_in_the_past_returns_at_once<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let mut driver = make().unwrap();
    let mut record = Record::default();
    let start = Instant::now();
    for _ in 0..100 {
        driver.poll(&mut record, Some(start)).unwrap();
    }
    assert!(start.elapsed() < LONG);
    // It still checks for events.
    let (_listener, addr) = peer_listener();
    driver.connect(&addr.into(), None).unwrap();
    while record.seen.is_empty() {
        driver.poll(&mut record, Some(start)).unwrap();
        assert!(start.elapsed() < LONG);
    }
}

pub fn the_waker_ends_a_wait<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let mut driver = make().unwrap();
    let mut record = Record::default();
    for _ in 0..3 {
        // From another thread, while it waits.
        let waker = driver.waker();
        let other = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            waker.wake();
        });
        driver.poll(&mut record, Some(Instant::now() + 2 * LONG)).unwrap();
        other.join().unwrap();
        // Before it waits; several count as one.
        let start = Instant::now();
        driver.waker().wake();
        driver.waker().wake();
        driver.poll(&mut record, Some(Instant::now() + 2 * LONG)).unwrap();
        assert!(start.elapsed() < LONG);
        let until = Instant::now() + Duration::from_millis(5);
        driver.poll(&mut record, Some(until)).unwrap();
        assert!(Instant::now() >= until, "a wake-up counted twice");
    }
}

pub fn source_addresses_are_bound<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (listener, addr) = peer_listener();
    let mut driver = make().unwrap();
    let mut record = Record::default();
    for last in 2..12 {
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        driver.connect(&addr.into(), Some(from)).unwrap();
        run_until(&mut driver, &mut record, |record, _| {
            record.count(|seen| *seen == Seen::Connected) == usize::from(last) - 1
        });
        let (_, seen) = listener.accept().unwrap();
        assert_eq!(seen.ip(), from);
    }
    // An address that is not this machine's is refused when the socket is made.
    let foreign = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    assert!(driver.connect(&addr.into(), Some(foreign)).is_err());
    assert_eq!(driver.open(), 10, "no slot is taken for it");
}

pub fn ports_are_tried_alike_on_request<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    const CONNECTIONS: usize = 40;
    let (listener, addr) = peer_listener();
    let odd_ports = |from| {
        let mut driver = make().unwrap();
        let mut record = Record::default();
        for _ in 0..CONNECTIONS {
            driver.connect(&addr.into(), from).unwrap();
        }
        run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Connected) == CONNECTIONS);
        (0..CONNECTIONS).filter(|_| listener.accept().unwrap().1.port() % 2 == 1).count()
    };
    let alike = odd_ports(Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
    // Linux 6.8 is the first that does so.
    if kernel() >= vec![6, 8] {
        assert!((1..CONNECTIONS).contains(&alike), "{alike} of {CONNECTIONS} ports are odd");
        assert!(odd_ports(None) < CONNECTIONS / 4, "then the kernel's own way is no other any more");
    }
}

/// Major and minor number of the kernel's version.
fn kernel() -> Vec<u32> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    release.split(['.', '-']).map_while(|part| part.parse().ok()).take(2).collect()
}

pub fn a_wait_goes_on_for_what_is_gathered<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    const WITHIN: Duration = Duration::from_millis(200);
    let (listener, addr) = peer_listener();
    let mut driver = make().unwrap();
    let mut record = Record::default();
    for _ in 0..2 {
        driver.connect(&addr.into(), None).unwrap();
    }
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Connected) == 2);
    let mut peers = [(); 2].map(|()| listener.accept().unwrap().0);
    // Its receives begin.
    poll(&mut driver, &mut record);
    let mut after = |within: Duration, senders: usize| {
        driver.gather(within, 2);
        peers[..senders].iter_mut().for_each(|peer| peer.write_all(b"x").unwrap());
        let (seen, start) = (record.data().len(), Instant::now());
        driver.poll(&mut record, Some(start + 2 * LONG)).unwrap();
        (start.elapsed(), record.data().len() - seen)
    };
    let (took, seen) = after(WITHIN, 1);
    assert_eq!(seen, 1);
    // Linux 6.12 is the first that does so.
    let can = make().unwrap().name() == "io_uring" && kernel() >= vec![6, 12];
    assert!(!can || took >= WITHIN, "{took:?}");
    // As many as are waited for end it, and so does the first where nothing is gathered.
    let (took, seen) = after(LONG, 2);
    assert!(took < LONG && seen == 2, "{seen} after {took:?}");
    let (took, seen) = after(Duration::ZERO, 1);
    assert!(took < LONG && seen == 1, "{seen} after {took:?}");
}
