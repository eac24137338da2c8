//! Bytes come back unchanged, whatever their number, the number of connections and the reader's speed.

use std::io::{Read, Write};

use proptest::prelude::*;
use weir_net::Address;

use crate::common::{Echo, MICROSECOND, Network, Peer, pattern};

pub fn one_byte_comes_back<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    let mut peer = net.connect(&address);
    for byte in 0..100u8 {
        peer.write_all(&[byte]).unwrap();
        let mut back = [0];
        peer.read_exact(&mut back).unwrap();
        assert_eq!(back, [byte]);
    }
}

pub fn every_length_comes_back<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    for len in [2, 127, 128, 4095, 4096, 4097, 16_384, 65_536, 65_537, 1 << 20] {
        there_and_back(net, net.connect(&address), pattern(len), 0);
    }
}

pub fn a_mebibyte_comes_back_to_a_slow_reader<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    there_and_back(net, net.connect_small(&address), pattern(1 << 20), 200 * MICROSECOND);
}

/// Sends everything, then FIN. Reads to the end, with a pause between reads.
fn there_and_back<N: Network>(net: &N, mut peer: N::Peer, sent: Vec<u8>, pause: u64) {
    peer.send_all(sent.clone());
    back(net, peer, &sent, pause);
}

fn back<N: Network>(net: &N, mut peer: N::Peer, sent: &[u8], pause: u64) {
    let mut back = Vec::new();
    let mut chunk = [0; 10_000];
    loop {
        match peer.read(&mut chunk).unwrap() {
            0 => break,
            count => back.extend_from_slice(&chunk[..count]),
        }
        if pause > 0 {
            net.pause(pause);
        }
    }
    assert!(back == sent, "{} of {} bytes", back.len(), sent.len());
}

pub fn two_thousand_connections<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    let mut peers: Vec<N::Peer> = (0..2_000).map(|_| net.connect(&address)).collect();
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
pub fn many_large_messages_at_once<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    let peers: Vec<_> = (0..64)
        .map(|number| {
            let mut sent = pattern(400_000 + number);
            sent.rotate_left(number);
            let mut peer = net.connect(&address);
            peer.send_all(sent.clone());
            (peer, sent)
        })
        .collect();
    for (peer, sent) in peers {
        back(net, peer, &sent, 0);
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

pub fn random_interleavings_lose_nothing<N: Network>(net: &N) {
    let step = prop_oneof![
        5 => (0..4usize, 1..20_000usize).prop_map(|(peer, len)| Step::Write(peer, len)),
        3 => (0..4usize, 1..20_000usize).prop_map(|(peer, len)| Step::Read(peer, len)),
        1 => (0..4usize).prop_map(Step::Finish),
        1 => (0..4usize).prop_map(Step::Reset),
    ];
    let (_server, address) = net.serve(Echo);
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in proptest::collection::vec(step, 1..40))| {
        play(net, &address, &steps)?;
    });
}

/// A peer, with what it has sent and how much has come back.
struct Player<P> {
    peer: P,
    sent: Vec<u8>,
    back: usize,
}

impl<P: Peer> Player<P> {
    /// Reads up to `len` of the bytes that are under way.
    fn read(&mut self, len: usize) -> Result<(), TestCaseError> {
        let len = len.min(self.sent.len() - self.back);
        let mut back = vec![0; len];
        self.peer.read_exact(&mut back).unwrap();
        prop_assert!(back == self.sent[self.back..self.back + len]);
        self.back += len;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), TestCaseError> {
        self.peer.shut_down();
        self.read(usize::MAX)?;
        let mut rest = Vec::new();
        prop_assert_eq!(self.peer.read_to_end(&mut rest).unwrap(), 0);
        Ok(())
    }
}

fn play<N: Network>(net: &N, address: &Address, steps: &[Step]) -> Result<(), TestCaseError> {
    let new = || Player { peer: net.connect(address), sent: Vec::new(), back: 0 };
    let mut players = [(); 4].map(|()| new());
    for step in steps {
        match *step {
            Step::Write(number, len) => {
                let player = &mut players[number];
                let mut bytes = pattern(len);
                bytes.rotate_left(player.sent.len() % len);
                player.peer.write_all(&bytes).unwrap();
                player.sent.extend(bytes);
            }
            Step::Read(number, len) => players[number].read(len)?,
            Step::Finish(number) => {
                players[number].finish()?;
                players[number] = new();
            }
            Step::Reset(number) => std::mem::replace(&mut players[number], new()).peer.reset(),
        }
    }
    for player in &mut players {
        player.finish()?;
    }
    Ok(())
}
