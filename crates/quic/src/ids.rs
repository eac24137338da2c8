//! Numbers from a seed: connection IDs, and what else QUIC draws.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator};

/// Bytes of a connection ID: enough that a thread's own never collide, and that nobody guesses one (RFC 9000 section 7.2).
const LENGTH: usize = 8;

/// SplitMix64 (Steele, Lea, Flood).
#[derive(Debug, Clone)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// For what wants more than a word.
    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&self.next().to_ne_bytes()));
        bytes
    }

    fn id(&mut self) -> ConnectionId {
        ConnectionId::new(&self.next().to_ne_bytes())
    }
}

/// The IDs of an endpoint's connections.
pub(crate) struct Ids(pub(crate) Draw);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0.id()
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The IDs by which a client calls its peers at first.
pub(crate) fn peer_ids(draw: Draw) -> impl Fn() -> ConnectionId + Send + Sync {
    let draw = Mutex::new(draw);
    move || draw.lock().unwrap_or_else(PoisonError::into_inner).id()
}
