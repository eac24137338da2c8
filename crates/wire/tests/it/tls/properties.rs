//! Any data, in any pieces, over any version, suite and group, comes over as it was.

use proptest::collection::vec;
use proptest::prelude::*;
use weir_wire::tls::{ClientConfig, ServerConfig, Version, groups, suites};

use super::pair::{End, Pair, client, server};

/// One turn: who says how much, and how what is on its way is cut.
#[derive(Debug, Clone)]
struct Turn {
    client_says: usize,
    server_says: usize,
    cuts: Vec<usize>,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let size = || prop_oneof![4 => 0_usize..300, 1 => 16_380_usize..16_390, 1 => 0_usize..70_000];
    let cuts = vec(prop_oneof![3 => 1_usize..40, 2 => 1_usize..3_000, 1 => 1_usize..40_000], 1..20);
    let turn = (size(), size(), cuts);
    vec(turn.prop_map(|(client_says, server_says, cuts)| Turn { client_says, server_says, cuts }), 1..6)
}

fn configs() -> impl Strategy<Value = (ClientConfig, ServerConfig)> {
    let suite = proptest::sample::select(suites().collect::<Vec<_>>());
    let group = proptest::sample::select(groups().collect::<Vec<_>>());
    (suite, group).prop_map(|((suite, version), group)| {
        let config = client(|o| {
            o.suites = vec![suite.to_owned()];
            o.versions = (version, version);
            // Hybrids are TLS 1.3's.
            if version == Version::Tls13 || !group.contains("MLKEM") {
                o.groups = vec![group.to_owned()];
            }
        });
        (config, server(|_| ()))
    })
}

/// Gives it the bytes in pieces of these sizes, again and again.
fn give(end: &mut End, mut bytes: &[u8], cuts: &[usize]) {
    let mut sizes = cuts.iter().cycle();
    while !bytes.is_empty() {
        let (now, later) = bytes.split_at((*sizes.next().unwrap()).min(bytes.len()));
        end.take(now).unwrap();
        bytes = later;
    }
}

fn settle(pair: &mut Pair, cuts: &[usize]) {
    while !pair.client.out.is_empty() || !pair.server.out.is_empty() {
        give(&mut pair.server, &std::mem::take(&mut pair.client.out), cuts);
        give(&mut pair.client, &std::mem::take(&mut pair.server.out), cuts);
    }
}

/// Bytes that differ from place to place, and what part of them was said.
fn data(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn data_comes_over((client, server) in configs(), turns in turns()) {
        let mut pair = Pair::new(&client, &server);
        settle(&mut pair, &turns[0].cuts);
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        for (i, turn) in turns.iter().enumerate() {
            let (there, back) = (data(i, turn.client_says), data(i + 77, turn.server_says));
            // In three parts, as a head, a body and nothing.
            let (head, body) = there.split_at(there.len() / 3);
            pair.client.session.write(&[head, b"", body], &mut pair.client.out).unwrap();
            pair.server.say(&back);
            to_server.extend_from_slice(&there);
            to_client.extend_from_slice(&back);
            settle(&mut pair, &turn.cuts);
        }
        prop_assert!(pair.server.heard == to_server && pair.client.heard == to_client);
        pair.client.session.close(&mut pair.client.out);
        settle(&mut pair, &[1]);
        prop_assert!(pair.server.closed && !pair.client.closed);
    }

    /// Whatever comes instead of TLS, or after it, a session takes it or fails; it neither panics nor goes round in circles.
    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..400), tls in any::<bool>(), joined in any::<bool>()) {
        let mut pair = Pair::new(&client(|_| ()), &server(|_| ()));
        if joined {
            pair.settle().unwrap();
        }
        let mut bytes = bytes;
        if tls && bytes.len() > 5 {
            bytes[0] = 20 + bytes[0] % 4;
            bytes[1..3].copy_from_slice(&[3, 3]);
            let len = (bytes.len() - 5) as u16;
            bytes[3..5].copy_from_slice(&len.to_be_bytes());
        }
        for end in [&mut pair.client, &mut pair.server] {
            let first = end.take(&bytes);
            let second = end.take(&bytes);
            prop_assert!(first.is_ok() || second.is_err(), "a session that failed goes on");
        }
    }
}
