//! Hostile peers: whatever they do and when, no connection stays behind.

use weir_net::{Conn, Event, Handler, Io};

use crate::common::{Act, BODY, MICROSECOND, MILLISECOND, Network, Peer, Place, poll, run_out, run_until, settle};

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

/// What the peers do. The last three have small receive buffers.
fn scripts() -> Vec<Vec<Act>> {
    let wait = Act::Pause(2 * MILLISECOND);
    let more = || Act::Write(b"more".to_vec());
    vec![
        // Gone before it is accepted.
        vec![Act::Close],
        vec![Act::Reset],
        // Gone with bytes under way, by FIN and by RST.
        vec![Act::Write(vec![1; 1000]), Act::Close],
        vec![Act::Write(vec![1; 1000]), Act::Reset],
        // Reads a little, then resets.
        vec![more(), Act::Read(100), Act::Reset],
        // Floods.
        [vec![Act::Write(vec![7; 10_000]); 40], vec![Act::Reset]].concat(),
        // Sends requests and never reads, then resets while the driver's send waits for room.
        [vec![[more(), Act::Pause(200 * MICROSECOND)]; 20].concat(), vec![Act::Reset]].concat(),
        // The same, but closes with unread bytes, which is a reset, too.
        vec![more(), wait.clone(), Act::Close],
        // Half closed, never reads, resets while the driver's close waits for room.
        vec![more(), Act::ShutDown, wait, Act::Reset],
    ]
}

pub fn no_peer_leaves_a_connection_behind<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    let mut handler = FloodingServer::default();
    for _ in 0..10 {
        let play = |(number, acts)| {
            let peer = if number < 6 { net.connect(&address) } else { net.connect_small(&address) };
            net.play(peer, acts)
        };
        let scripts: Vec<_> = scripts().into_iter().enumerate().map(play).collect();
        run_until(&mut driver, &mut handler, |_, _| scripts.iter().all(|script| net.is_over(script)));
        scripts.into_iter().for_each(|script| drop(net.join(script)));
    }
    // Some may still wait to be accepted.
    settle(&mut driver, &mut handler);
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
                while io.unsent(conn) < MUCH {
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

pub fn a_server_that_resets_leaves_no_connection_behind<N: Network>(net: &N) {
    let (listener, address) = net.peer_listener(Place::Tcp);
    let mut driver = net.driver();
    let mut handler = ConnectsAgain::default();
    let mut held = Vec::new();
    for number in 0..100 {
        driver.connect(&address, None).unwrap();
        // Several at a time.
        if number % 5 != 4 {
            continue;
        }
        poll(&mut driver, &mut handler);
        for way in 0..5 {
            let mut peer = net.accept(&listener);
            match way {
                0 => peer.reset(),
                1 => drop(peer),
                2 => {
                    let _ = peer.act(Act::Write(b"go away".to_vec()));
                    peer.reset();
                }
                3 => peer.shut_down(),
                // Neither reads nor closes, for now.
                _ => held.push(peer),
            }
        }
    }
    settle(&mut driver, &mut handler);
    held.into_iter().for_each(Peer::reset);
    run_out(&mut driver, &mut handler);
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

pub fn floods_end_when_they_are_closed<N: Network>(net: &N) {
    let (mut driver, address) = net.listening(Place::Tcp);
    let mut handler = ClosesAtFirstByte(0);
    // Until they are refused.
    let floods = [(); 8].map(|()| net.play(net.connect(&address), vec![Act::Flood(vec![7; 30_000])]));
    run_until(&mut driver, &mut handler, |_, _| floods.iter().all(|flood| net.is_over(flood)));
    floods.into_iter().for_each(|flood| assert!(net.join(flood).error.is_some()));
    run_out(&mut driver, &mut handler);
    assert_eq!(handler.0, 8);
}
