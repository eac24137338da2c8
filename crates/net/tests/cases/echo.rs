//! Bytes come back unchanged, whatever their number, the number of connections and the reader's speed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use proptest::prelude::*;
use weir_net::Driver;

use crate::common::{Echo, Server, pattern, peer, small_peer};

pub fn one_byte_comes_back<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static>(
    make: fn() -> io::Result<D>,
) {
    let server = Server::start(make, || Echo);
    let mut peer = peer(server.addr);
    for byte in 0..100u8 {
        peer.write_all(&[byte]).unwrap();
        let mut back = [0];
        peer.read_exact(&mut back).unwrap();
        assert_eq!(back, [byte]);
    }
}

pub fn every_length_comes_back<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static>(
    make: fn() -> io::Result<D>,
) {
    let server = Server::start(make, || Echo);
    for len in [2, 127, 128, 4095, 4096, 4097, 16_384, 65_536, 65_537, 1 << 20] {
        let back = there_and_back(peer(server.addr), pattern(len), Duration::ZERO);
        assert!(back == pattern(len), "{len} bytes, {} back", back.len());
    }
}

pub fn a_mebibyte_comes_back_to_a_slow_reader<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static,
>(
    make: fn() -> io::Result<D>,
) {
    let server = Server::start(make, || Echo);
    let sent = pattern(1 << 20);
    let back = there_and_back(small_peer(server.addr), sent.clone(), Duration::from_micros(200));
    assert!(back == sent, "{} of {} bytes", back.len(), sent.len());
}

/// Sends everything, then FIN. Reads to the end, with a pause between reads.
fn there_and_back(mut peer: TcpStream, sent: Vec<u8>, pause: Duration) -> Vec<u8> {
    let mut writer = peer.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    let mut chunk = [0; 10_000];
    loop {
        match peer.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => back.extend_from_slice(&chunk[..count]),
            // Rings of this process interrupt the reads of its other threads, too.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => panic!("the echo ends: {error}"),
        }
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    writing.join().unwrap();
    back
}

pub fn two_thousand_connections<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static>(
    make: fn() -> io::Result<D>,
) {
    let server = Server::start(make, || Echo);
    let mut peers: Vec<TcpStream> = (0..2_000).map(|_| peer(server.addr)).collect();
    for round in 0..3u32 {
        for (number, peer) in peers.iter_mut().enumerate() {
            let message = format!("{number:08}{round:08}").repeat(8);
            peer.write_all(message.as_bytes()).unwrap();
        }
        for (number, peer) in peers.iter_mut().enumerate() {
            let message = format!("{number:08}{round:08}").repeat(8);
            let mut back = [0; 128];
            peer.read_exact(&mut back).unwrap();
            assert_eq!(back, message.as_bytes());
        }
    }
}

/// Sends more at once than all receive buffers of a driver hold.
pub fn many_large_messages_at_once<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static>(
    make: fn() -> io::Result<D>,
) {
    let server = Server::start(make, || Echo);
    let peers: Vec<TcpStream> = (0..64).map(|_| peer(server.addr)).collect();
    let threads: Vec<_> = peers
        .into_iter()
        .enumerate()
        .map(|(number, peer)| {
            std::thread::spawn(move || {
                let mut sent = pattern(400_000 + number);
                sent.rotate_left(number);
                let back = there_and_back(peer, sent.clone(), Duration::ZERO);
                assert!(back == sent, "{} of {} bytes", back.len(), sent.len());
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// A step of a random peer.
#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize),
    Read(usize, usize),
    Finish(usize),
    Reset(usize),
}

pub fn random_interleavings_lose_nothing<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static,
>(
    make: fn() -> io::Result<D>,
) {
    let step = prop_oneof![
        5 => (0..4usize, 1..20_000usize).prop_map(|(peer, len)| Step::Write(peer, len)),
        3 => (0..4usize, 1..20_000usize).prop_map(|(peer, len)| Step::Read(peer, len)),
        1 => (0..4usize).prop_map(Step::Finish),
        1 => (0..4usize).prop_map(Step::Reset),
    ];
    let server = Server::start(make, || Echo);
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in proptest::collection::vec(step, 1..40))| {
        play(&server, &steps)?;
    });
}

/// A peer, with what it has sent and how much has come back.
struct Player {
    stream: TcpStream,
    sent: Vec<u8>,
    back: usize,
}

impl Player {
    fn new(server: &Server) -> Player {
        Player { stream: peer(server.addr), sent: Vec::new(), back: 0 }
    }

    /// Reads up to `len` of the bytes that are under way.
    fn read(&mut self, len: usize) -> Result<(), TestCaseError> {
        let len = len.min(self.sent.len() - self.back);
        let mut back = vec![0; len];
        self.stream.read_exact(&mut back).unwrap();
        prop_assert!(back == self.sent[self.back..self.back + len]);
        self.back += len;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), TestCaseError> {
        self.stream.shutdown(Shutdown::Write).unwrap();
        self.read(usize::MAX)?;
        let mut rest = Vec::new();
        prop_assert_eq!(self.stream.read_to_end(&mut rest).unwrap(), 0);
        Ok(())
    }
}

fn play(server: &Server, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut players: Vec<Player> = (0..4).map(|_| Player::new(server)).collect();
    for step in steps {
        match *step {
            Step::Write(number, len) => {
                let player = &mut players[number];
                let mut bytes = pattern(len);
                bytes.rotate_left(player.sent.len() % len);
                player.stream.write_all(&bytes).unwrap();
                player.sent.extend(bytes);
            }
            Step::Read(number, len) => players[number].read(len)?,
            Step::Finish(number) => {
                players[number].finish()?;
                players[number] = Player::new(server);
            }
            Step::Reset(number) => {
                let player = std::mem::replace(&mut players[number], Player::new(server));
                crate::common::reset(player.stream);
            }
        }
    }
    for player in &mut players {
        player.finish()?;
    }
    Ok(())
}
