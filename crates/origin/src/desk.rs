//! What the connections of one worker share: its account, the answers it has ready, its timers.

use std::sync::Arc;

use weir_net::{Conn, Io};

use crate::answer::{Answer, Writer, Written};
use crate::books::{Counters, Ledger};
use crate::resolve::Cache;
use crate::timers::Timers;

/// Buffers kept for reuse.
const SPARE: usize = 64;
/// Largest buffer kept, bytes.
const SPARE_SIZE: usize = 64 << 10;

/// Shared by the connections of one worker.
#[derive(Debug)]
pub(crate) struct Desk {
    ledger: Arc<Ledger>,
    worker: usize,
    /// Answers ready to be sent.
    pub(crate) cache: Cache,
    writer: Writer,
    /// Which connections to look at again, and when.
    pub(crate) timers: Timers,
    spare: Vec<Vec<u8>>,
}

impl Desk {
    /// The desk of one worker.
    pub(crate) fn new(ledger: Arc<Ledger>, worker: usize) -> Desk {
        Desk {
            ledger,
            worker,
            cache: Cache::default(),
            writer: Writer::default(),
            timers: Timers::default(),
            spare: Vec::new(),
        }
    }

    /// This worker's counters.
    pub(crate) fn counters(&self) -> &Counters {
        self.ledger.worker(self.worker)
    }

    /// Hands an answer to the driver.
    pub(crate) fn write<I: Io>(&mut self, io: &mut I, conn: Conn, answer: &Answer) -> Written {
        self.writer.write(io, conn, answer, || self.ledger.books())
    }

    /// A connection was accepted.
    pub(crate) fn opened(&self) {
        self.ledger.opened(self.worker);
    }

    /// A connection is gone.
    pub(crate) fn closed(&self) {
        self.ledger.closed();
    }

    /// A buffer to use; empty, or what is in it does not matter.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(crate) fn give_back(&mut self, buffer: Vec<u8>) {
        if (1..=SPARE_SIZE).contains(&buffer.capacity()) && self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }
}
