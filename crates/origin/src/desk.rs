//! What the connections of one worker share: its account, the answers it has ready, its timers, its dice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_wire::tls::Scratch;

use crate::answer::{Answer, Role, Writer, Written, counters_page};
use crate::chance::Chance;
use crate::counters::{AllCounters, WorkerCounters};
use crate::fault::Fault;
use crate::line::Sink;
use crate::options::Manner;
use crate::resolve::{Cache, Resolved, Source};
use crate::spoil::Rendered;
use crate::timers::Timers;
use crate::value;

/// Buffers kept for reuse.
const SPARE: usize = 64;
/// Largest buffer kept, bytes.
const SPARE_SIZE: usize = 64 << 10;

/// Largest buffer for frames kept, bytes.
const FRAMES_SIZE: usize = 256 << 10;

/// Shared by the connections of one worker.
#[derive(Debug)]
pub(crate) struct Desk {
    all_counters: Arc<AllCounters>,
    worker: usize,
    /// Answers ready to be sent.
    pub(crate) cache: Cache,
    writer: Writer,
    /// Which connections to look at again, and when.
    pub(crate) timers: Timers,
    spare: Vec<Vec<u8>>,
    /// For sessions of TLS: what was opened last, and what is sealed and not yet sent.
    pub(crate) scratch: Scratch,
    pub(crate) sealed: Vec<u8>,
    /// For frames of HTTP/2.
    frames: Vec<u8>,
    /// For answers whose target does not say.
    manner: Manner,
    /// The manner is not plain.
    special: bool,
    chance: Chance,
}

impl Desk {
    /// The desk of one worker, which answers in this manner.
    pub(crate) fn new(all_counters: Arc<AllCounters>, worker: usize, manner: Manner) -> Desk {
        let chance = Chance::new(manner.seed, worker);
        let special = manner.is_special();
        Desk {
            all_counters,
            worker,
            cache: Cache::default(),
            writer: Writer::default(),
            timers: Timers::default(),
            spare: Vec::new(),
            scratch: Scratch::new(),
            sealed: Vec::new(),
            frames: Vec::new(),
            manner,
            special,
            chance,
        }
    }

    /// This worker's counters.
    pub(crate) fn counters(&self) -> &WorkerCounters {
        self.all_counters.worker(self.worker)
    }

    /// The accounts of all workers.
    pub(crate) fn all_counters(&self) -> &AllCounters {
        &self.all_counters
    }

    /// Hands an answer to the driver.
    pub(crate) fn write(&mut self, to: &mut impl Sink, answer: &Answer) -> Written {
        self.writer.write(to, answer, || self.all_counters.counters())
    }

    /// What an answer would be, not handed to anybody.
    pub(crate) fn render(&mut self, answer: &Answer) -> (Rendered, Written) {
        self.writer.render(answer, || self.all_counters.counters())
    }

    /// When the answer to a request that is now complete is due, and what goes wrong with it. The clock is read for
    /// delays only.
    #[inline]
    pub(crate) fn fate(&mut self, resolved: &Resolved, role: Role) -> (Option<Instant>, Option<Fault>) {
        if role != Role::Counted || !(self.special || resolved.special) {
            return (None, None);
        }
        self.drawn(resolved)
    }

    fn drawn(&mut self, resolved: &Resolved) -> (Option<Instant>, Option<Fault>) {
        let delay = match resolved.plan.delay.or(self.manner.delay) {
            Some(delay) => value::delay_at(delay, self.chance.unit()),
            None => Duration::ZERO,
        };
        let faults = resolved.plan.faults.as_deref().unwrap_or(&self.manner.faults);
        let fault = faults.draw(&mut self.chance);
        ((!delay.is_zero()).then(|| Instant::now() + delay), fault)
    }

    /// A connection was accepted.
    pub(crate) fn opened(&self) {
        self.all_counters.opened(self.worker);
    }

    /// A request of the lab's own came. If it is for the counters, its connection becomes a reader's: who reads them is the lab
    /// itself and nobody in between, through whom it asks for nothing but `/_weir/ready`.
    pub(crate) fn own_request(&self, source: Source, reader: &mut bool) {
        self.counters().own_requests.add(1);
        if source == Source::Counters && !std::mem::replace(reader, true) {
            self.all_counters.has_reader();
        }
    }

    /// A connection is gone; whether it was a reader's.
    pub(crate) fn closed(&self, reader: bool) {
        self.all_counters.closed(reader);
    }

    /// The buffer for frames, empty. To be given back.
    pub(crate) fn frames(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.frames)
    }

    /// Takes it back.
    pub(crate) fn keep_frames(&mut self, mut frames: Vec<u8>) {
        frames.clear();
        frames.shrink_to(FRAMES_SIZE);
        self.frames = frames;
    }

    /// The accounts, as a page.
    pub(crate) fn counters_page(&self) -> Vec<u8> {
        counters_page(&self.all_counters.counters())
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
