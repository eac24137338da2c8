//! Sends the messages of calls that go both ways, each when it is due. An `impl` of `Worker`. `messages` knows what each says and reads
//! those that come back.

use weir_net::{Io, TimerQueue};

use super::Worker;
use super::pool::{StreamId, StreamState};
use crate::clock::NEVER;
use crate::messages::Outgoing;
use crate::protocol::Protocol;

/// The messages of all streams of a worker that are still to be sent.
#[derive(Debug, Default)]
pub(super) struct OutgoingMessages {
    /// The next message of each stream. It means nothing once the stream has ended.
    due: TimerQueue<StreamId>,
    message: Vec<u8>,
    /// Streams so far.
    streams: u64,
}

impl OutgoingMessages {
    /// When the next message is due.
    #[inline]
    pub(super) fn next_due(&self) -> u64 {
        self.due.next().unwrap_or(NEVER)
    }
}

impl<P: Protocol> Worker<P> {
    /// A request was sent, whose messages follow if its client sends them one by one.
    #[cold]
    pub(super) fn begin_messages(&mut self, stream_id: StreamId, now: u64) {
        let stream = self.pool.stream(stream_id);
        let paced = self.plan.paced[stream.request as usize];
        self.outgoing.streams += 1;
        // The request's ID, or a number that no other thread's stream has.
        let id = match stream.request_id.bits() {
            0 => u64::from(self.share.thread + 1) << 40 | self.outgoing.streams,
            bits => bits,
        };
        stream.messages.get_or_insert_default().outgoing = paced.map(|paced| Outgoing::new(paced, id, now));
        if paced.is_some() {
            self.outgoing.due.push(now, stream_id);
        }
    }

    /// Sends every message that is due.
    pub(super) fn send_messages<I: Io>(&mut self, io: &mut I, now: u64) {
        while let Some((due, stream_id)) = self.outgoing.due.pop(now) {
            let id = self.pool.slot_of(stream_id);
            let nth = stream_id - self.pool.first_stream(id);
            let stream = self.pool.stream(stream_id);
            let in_flight = stream.state == StreamState::InFlight;
            let outgoing = stream.messages.as_mut().and_then(|messages| messages.outgoing.as_mut());
            let Some(outgoing) = outgoing.filter(|outgoing| in_flight && outgoing.due() == Some(due)) else { continue };
            outgoing.write(io.now(), &mut self.outgoing.message);
            let next = outgoing.due();
            let session = &mut self.pool.slots[id as usize].session;
            let message = &self.outgoing.message;
            if self.protocol.send_message(session, nth, message, next.is_none(), &mut self.transport.out) {
                self.flush(io, id);
                next.into_iter().for_each(|next| self.outgoing.due.push(next, stream_id));
            }
        }
    }
}
