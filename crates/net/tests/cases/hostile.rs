//! Hostile peers: whatever they do and when, no connection stays behind.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, Event, Handler, Io};

use crate::common::{BODY, LONG, listener, peer, peer_listener, poll, reset, run_out, run_until, small_peer};

/// Answers everything with far more bytes, as long as the peer takes them; closes when the peer has finished sending.
#[derive(Default)]
struct FloodingServer {
    told: usize,
    ended: usize,
}

/// More than sockets hold.
const MUCH: usize = 2 << 20;

impl Handler for FloodingServer {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        self.told += 1;
        match event {
            Event::Data(_) if io.unsent(conn) < MUCH => io.send_with(conn, b"head", &BODY),
            Event::Eof => {
                self.ended += 1;
                io.close(conn);
            }
            Event::Failed { .. } => self.ended += 1,
            _ => {}
        }
    }
}

/// What one peer does, from its connect to its end.
type Peer = fn(SocketAddr);

const PEERS: [Peer; 9] = [
    // Gone before it is accepted.
    |addr| drop(peer(addr)),
    |addr| reset(peer(addr)),
    // Gone with bytes under way, by FIN and by RST.
    |addr| drop(peer(addr).write(&[1; 1000])),
    |addr| {
        let mut peer = peer(addr);
        let _ = peer.write(&[1; 1000]);
        reset(peer);
    },
    // Sends a request and never reads, then resets while the driver's send waits for room.
    |addr| {
        let mut peer = small_peer(addr);
        for _ in 0..50 {
            let _ = peer.write(b"more");
            std::thread::sleep(Duration::from_micros(200));
        }
        reset(peer);
    },
    // The same, but closes with unread bytes, which is a reset, too.
    |addr| {
        let mut peer = small_peer(addr);
        let _ = peer.write(b"more");
        std::thread::sleep(Duration::from_millis(5));
        drop(peer);
    },
    // Half closed, never reads, resets while the driver's close waits for room.
    |addr| {
        let mut peer = small_peer(addr);
        let _ = peer.write(b"more");
        let _ = peer.shutdown(Shutdown::Write);
        std::thread::sleep(Duration::from_millis(5));
        reset(peer);
    },
    // Reads a little, then resets.
    |addr| {
        let mut peer = peer(addr);
        let _ = peer.write(b"more");
        let _ = peer.read(&mut [0; 100]);
        reset(peer);
    },
    // Floods.
    |addr| {
        let mut peer = peer(addr);
        for _ in 0..40 {
            let _ = peer.write(&[7; 10_000]);
        }
        reset(peer);
    },
];

pub fn no_peer_leaves_a_connection_behind<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (listener, addr) = listener();
    let mut driver = make().unwrap();
    driver.listen(listener).unwrap();
    let mut handler = FloodingServer::default();
    let peers = std::thread::spawn(move || {
        for round in 0..20 {
            let all: Vec<_> = PEERS.iter().map(|generation| std::thread::spawn(move || generation(addr))).collect();
            for one in all {
                one.join().unwrap();
            }
            if round % 5 == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
        }
    });
    run_until(&mut driver, &mut handler, |_, _| peers.is_finished());
    peers.join().unwrap();
    // Some may still wait to be accepted.
    for _ in 0..3 {
        poll(&mut driver, &mut handler);
    }
    run_out(&mut driver, &mut handler);
    assert!(handler.told > 0 && handler.ended > 0);
}

/// Connects to a server that resets at once, sends much, and gives up in every way.
#[derive(Default)]
struct ConnectsAgain {
    made: usize,
}

impl Handler for ConnectsAgain {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Connected => {
                self.made += 1;
                for _ in 0..30 {
                    io.send_with(conn, b"head", &BODY);
                }
                io.want_sent(conn);
                match self.made % 4 {
                    0 => io.close(conn),
                    1 => io.abort(conn),
                    _ => {}
                }
            }
            Event::Data(_) | Event::Eof => io.abort(conn),
            _ => {}
        }
    }
}

pub fn a_server_that_resets_leaves_no_connection_behind<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>,
>(
    make: fn() -> io::Result<D>,
) {
    let (listener, addr) = peer_listener();
    let mut driver = make().unwrap();
    let mut handler = ConnectsAgain::default();
    let server = std::thread::spawn(move || {
        let mut held: Vec<TcpStream> = Vec::new();
        for number in 0..200 {
            let (mut peer, _) = listener.accept().unwrap();
            match number % 5 {
                0 => reset(peer),
                1 => drop(peer),
                2 => {
                    let _ = peer.write(b"go away");
                    reset(peer);
                }
                3 => {
                    let _ = peer.shutdown(Shutdown::Both);
                }
                // Neither reads nor closes, for now.
                _ => held.push(peer),
            }
        }
        std::thread::sleep(Duration::from_millis(20));
        held.into_iter().for_each(reset);
    });
    let end = Instant::now() + LONG;
    for _ in 0..200 {
        driver.connect(&addr.into(), None).unwrap();
        if driver.open() > 50 {
            poll(&mut driver, &mut handler);
        }
    }
    while driver.open() > 0 {
        assert!(Instant::now() < end, "{} stay", driver.open());
        poll(&mut driver, &mut handler);
    }
    server.join().unwrap();
    assert!(handler.made > 0);
}

/// Closes or aborts at the first byte, while more pours in.
struct ClosesAtFirstByte(usize);

impl Handler for ClosesAtFirstByte {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if let Event::Data(_) = event {
            self.0 += 1;
            io.send(conn, b"no");
            if self.0.is_multiple_of(2) { io.close(conn) } else { io.abort(conn) }
        }
    }
}

pub fn floods_end_when_they_are_closed<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let (listener, addr) = listener();
    let mut driver = make().unwrap();
    driver.listen(listener).unwrap();
    let mut handler = ClosesAtFirstByte(0);
    let floods: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let mut peer = peer(addr);
                // Until it is refused.
                while peer.write(&[7; 30_000]).is_ok() {}
            })
        })
        .collect();
    run_until(&mut driver, &mut handler, |_, _| floods.iter().all(std::thread::JoinHandle::is_finished));
    run_out(&mut driver, &mut handler);
    assert_eq!(handler.0, 8);
}
