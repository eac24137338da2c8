//! Bytes come back unchanged, whatever their number, the number of connections and the reader's speed.

use proptest::prelude::*;
use weir_net::Address;

use crate::common::{Act, Echo, MICROSECOND, Network, Peer, pattern};

pub fn one_byte_comes_back<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    let mut peer = net.connect(&address);
    for byte in 0..100u8 {
        peer.write(&[byte]);
        assert_eq!(peer.read(1).unwrap(), [byte]);
    }
}

/// Sends everything, then FIN, and reads to the end.
fn there_and_back<N: Network>(net: &N, address: &Address, sent: Vec<Vec<u8>>) {
    let acts = |bytes: &Vec<u8>| vec![Act::Write(bytes.clone()), Act::ShutDown, Act::ReadToEnd];
    let peers: Vec<_> = sent.iter().map(|bytes| net.play(net.connect(address), acts(bytes))).collect();
    for (peer, sent) in peers.into_iter().zip(sent) {
        let back = net.join(peer).read;
        assert!(back == sent, "{} of {} bytes", back.len(), sent.len());
    }
}

pub fn every_length_comes_back<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    for len in [2, 127, 128, 4095, 4096, 4097, 16_384, 65_536, 65_537, 1 << 20] {
        there_and_back(net, &address, vec![pattern(len)]);
    }
}

/// Sends more at once than all receive buffers of a driver hold.
pub fn many_large_messages_at_once<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    there_and_back(net, &address, (0..64).map(|number| pattern(100_000 + number)[number..].to_vec()).collect());
}

pub fn a_mebibyte_comes_back_to_a_slow_reader<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    let mut peer = net.connect_small(&address);
    let sent = pattern(1 << 20);
    peer.write(&sent);
    peer.shut_down();
    for part in sent.chunks(10_000) {
        assert!(peer.read(part.len()).unwrap() == part);
        net.pause(200 * MICROSECOND);
    }
    assert!(peer.read_to_end().unwrap().is_empty());
}

pub fn two_thousand_connections<N: Network>(net: &N) {
    let (_server, address) = net.serve(Echo);
    let mut peers: Vec<N::Peer> = (0..2_000).map(|_| net.connect(&address)).collect();
    let message = |number: usize, round: usize| format!("{number:08}{round:08}").repeat(8).into_bytes();
    for round in 0..2 {
        for (number, peer) in peers.iter_mut().enumerate() {
            peer.write(&message(number, round));
        }
        for (number, peer) in peers.iter_mut().enumerate() {
            assert_eq!(peer.read(128).unwrap(), message(number, round));
        }
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
        prop_assert!(self.peer.read(len).unwrap() == self.sent[self.back..self.back + len]);
        self.back += len;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), TestCaseError> {
        self.peer.shut_down();
        self.read(usize::MAX)?;
        prop_assert!(self.peer.read_to_end().unwrap().is_empty());
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
                player.peer.write(&bytes);
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
