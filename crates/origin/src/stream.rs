//! Streams: responses whose messages are due one after another, at times fixed when the response begins. Each message carries what
//! [`weir_wire::stamp`] says of it.
//!
//! A message that the peer has no room for, or that the worker comes to late, is sent late; its stamp has both times. The sessions of
//! HTTP/1 and HTTP/2 send what this module writes. It does not know connections.

use std::time::Duration;

use weir_model::load::{RandomDuration, TRAILER};
use weir_wire::grpc::Status;
use weir_wire::request_id::RequestId;
use weir_wire::stamp::{LEAST_SIZE, Stamp};
use weir_wire::{grpc, openai, sse};

use crate::fault::Fault;
use crate::random::Random;
use crate::value;

/// The largest message, bytes.
pub(crate) const LARGEST: usize = 64 << 10;
/// The most messages of a stream.
pub(crate) const MOST: u32 = 1_000_000_000;
/// The longest time before a message; of an exponential one, the longest mean.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// What the messages of a stream are wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// Each is a server-sent event.
    Events,
    /// Each is the content of an event of a language model.
    Completion,
    /// They are those of the client, which come back.
    Socket,
    /// Each is a message of gRPC, and a status follows.
    Call,
}

impl Wrapping {
    /// What stands before the stream, before and behind each message, and behind the stream, in pieces.
    fn parts(self) -> [&'static [&'static [u8]]; 4] {
        match self {
            // What stands before its messages depends on their size.
            Wrapping::Call | Wrapping::Socket => [&[], &[], &[], &[]],
            Wrapping::Events => [&[], &[sse::BEFORE_DATA], &[sse::AFTER_DATA], &[]],
            Wrapping::Completion => [
                &[sse::BEFORE_DATA, openai::ROLE, sse::AFTER_DATA],
                &[sse::BEFORE_DATA, openai::BEFORE_CONTENT],
                &[openai::AFTER_CONTENT, sse::AFTER_DATA],
                &[sse::BEFORE_DATA, openai::FINISH, sse::AFTER_DATA, sse::BEFORE_DATA, openai::DONE, sse::AFTER_DATA],
            ],
        }
    }

    /// What says in the middle that the sender failed, and ends the stream.
    fn failure(self) -> &'static [&'static [u8]] {
        match self {
            // Its status says it.
            Wrapping::Call | Wrapping::Events | Wrapping::Socket => &[],
            Wrapping::Completion => {
                &[sse::BEFORE_DATA, openai::FAILURE, sse::AFTER_DATA, sse::BEFORE_DATA, openai::DONE, sse::AFTER_DATA]
            }
        }
    }
}

fn length(pieces: &[&[u8]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// Bytes of what stands before a stream, before and behind each of its messages, and behind it.
fn lengths(wrapping: Wrapping, size: usize) -> [usize; 4] {
    match wrapping {
        Wrapping::Call => [0, grpc::before_field(size).1, 0, 0],
        _ => wrapping.parts().map(length),
    }
}

/// What a target says of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    pub(crate) wrapping: Wrapping,
    /// How many messages, at least one.
    pub(crate) messages: u32,
    /// From the head to the first message.
    pub(crate) first: RandomDuration,
    /// From each message to the next.
    pub(crate) every: RandomDuration,
    /// Bytes of a message.
    pub(crate) size: usize,
    /// The status of a call that has no messages; 0: it has them. Of a socket the code with which it is closed.
    pub(crate) code: u32,
    /// A header follows the messages.
    pub(crate) trailers: bool,
    /// A message of a socket goes to all sockets of its worker that have this, and not back alone.
    pub(crate) broadcast: bool,
    /// Of the times that are drawn. Each stream draws its own; the n-th of a worker draws the same each time.
    pub(crate) seed: u64,
}

impl Default for Shape {
    /// An answer of a language model: 64 messages, one every 20 ms.
    fn default() -> Shape {
        let constant = |s| RandomDuration::Constant { s };
        Shape {
            wrapping: Wrapping::Events,
            messages: 64,
            first: constant(0.2),
            every: constant(0.02),
            size: 200,
            code: 0,
            trailers: false,
            broadcast: false,
            seed: 1,
        }
    }
}

impl Shape {
    /// Bytes of all messages with what they are wrapped in.
    pub(crate) fn bytes(self) -> u64 {
        let [begin, before, behind, end] = lengths(self.wrapping, self.size);
        u64::from(self.messages) * (before + self.size + behind) as u64 + (begin + end) as u64
    }
}

/// The messages of one response that are still to be sent.
#[derive(Debug)]
pub(crate) struct MessageStream {
    shape: Shape,
    id: u64,
    /// The number of the next message, and when it is due.
    next: u32,
    due: u64,
    random: Random,
    /// When its client gives it up.
    deadline: u64,
    /// It ended with a failure.
    failed: bool,
    /// Bytes so far.
    written: u64,
    /// What happens instead of the message in the middle.
    fault: Option<Fault>,
}

impl MessageStream {
    /// The `nth` stream of its worker, whose head is sent now. It has the number of its request, or else that. Of faults it has those that end it early.
    pub(crate) fn begin(
        shape: Shape,
        nth: u64,
        id: Option<RequestId>,
        fault: Option<Fault>,
        now: u64,
    ) -> MessageStream {
        let fault =
            fault.filter(|fault| matches!(fault, Fault::Reset { .. } | Fault::Close | Fault::Stall | Fault::Error));
        let mut stream = MessageStream {
            shape,
            id: id.map_or(nth, RequestId::bits),
            next: 0,
            due: now,
            random: Random::new(shape.seed, nth as usize),
            deadline: u64::MAX,
            failed: false,
            written: 0,
            fault,
        };
        stream.due += stream.draw(shape.first);
        stream
    }

    /// The same with a time at which its client gives it up; `u64::MAX`: never.
    pub(crate) fn until(self, deadline: u64) -> MessageStream {
        MessageStream { deadline, ..self }
    }

    fn draw(&mut self, time: RandomDuration) -> u64 {
        value::delay_at(time, self.random.unit()).as_nanos() as u64
    }

    /// The number in its messages.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Bytes of what [`MessageStream::write`] writes next.
    pub(crate) fn next_bytes(&self) -> usize {
        if self.fails_now() {
            return length(self.shape.wrapping.failure());
        }
        let [begin, before, behind, end] = lengths(self.shape.wrapping, self.shape.size);
        let begin = if self.next == 0 { begin } else { 0 };
        let end = if self.next + 1 == self.shape.messages { end } else { 0 };
        begin + before + self.shape.size + behind + end
    }

    /// Bytes of all that it has written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The middle has come, in which it fails, or its time is over.
    fn fails_now(&self) -> bool {
        self.is_late() || (self.fault == Some(Fault::Error) && self.next == self.shape.messages / 2)
    }

    /// What its target says of it.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// When the next message is due.
    pub(crate) fn due(&self) -> u64 {
        self.due.min(self.deadline)
    }

    /// The headers that follow, once all is written: of a call, what is said of how it went.
    pub(crate) fn trailers(&self) -> Option<&'static [Trailer]> {
        self.status().map(of_status).or(self.shape.trailers.then_some(BEHIND))
    }

    /// Of a call, what is said of how it went, once all is written.
    fn status(&self) -> Option<Status> {
        (self.shape.wrapping == Wrapping::Call).then_some(match self.failed {
            false => Status::OK,
            true if self.is_late() => Status::DEADLINE_EXCEEDED,
            true => Status::INTERNAL,
        })
    }

    fn is_late(&self) -> bool {
        self.deadline < self.due
    }

    /// Whether all are written.
    pub(crate) fn is_done(&self) -> bool {
        self.failed || self.next == self.shape.messages
    }

    /// What happens instead of the next message.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault.filter(|fault| *fault != Fault::Error && self.next == self.shape.messages / 2)
    }

    /// Appends the next message, which is sent now, or what says that the stream failed.
    pub(crate) fn write(&mut self, now: u64, out: &mut Vec<u8>) {
        self.written += self.next_bytes() as u64;
        let put = |pieces: &[&[u8]], out: &mut Vec<u8>| pieces.iter().for_each(|piece| out.extend_from_slice(piece));
        if self.fails_now() {
            self.failed = true;
            return put(self.shape.wrapping.failure(), out);
        }
        let Shape { wrapping, messages: of, every, size, .. } = self.shape;
        let [begin, before, behind, end] = wrapping.parts();
        if self.next == 0 {
            put(begin, out);
        }
        put(before, out);
        if wrapping == Wrapping::Call {
            let (before, length) = grpc::before_field(size);
            out.extend_from_slice(&before[..length]);
        }
        Stamp { stream: self.id, number: self.next, of, due: self.due, sent: now }.write(size, out);
        put(behind, out);
        self.next += 1;
        self.due += self.draw(every);
        if self.next == of {
            put(end, out);
        }
    }
}

/// A header behind a body.
pub(crate) type Trailer = (&'static str, &'static [u8]);

/// What stands behind the messages of a stream that is asked for it.
const BEHIND: &[Trailer] = &[(TRAILER, b"1")];

/// What says how a call went.
pub(crate) fn of_status(status: Status) -> &'static [Trailer] {
    match status {
        Status::OK => &[(grpc::STATUS, b"0"), (grpc::MESSAGE, b"")],
        Status::DEADLINE_EXCEEDED => &[(grpc::STATUS, b"4"), (grpc::MESSAGE, b"the deadline is over")],
        _ => &[(grpc::STATUS, b"13"), (grpc::MESSAGE, b"on purpose")],
    }
}

/// How many messages: `64`. `None` breaks [`MESSAGES_RULE`].
pub(crate) fn messages(text: &[u8]) -> Option<u32> {
    number(text).filter(|messages| (1..=u64::from(MOST)).contains(messages)).map(|messages| messages as u32)
}

/// Bytes of a message. `None` breaks [`SIZE_RULE`].
pub(crate) fn size(text: &[u8]) -> Option<usize> {
    value::size(text).filter(|size| (LEAST_SIZE..=LARGEST).contains(size))
}

/// A time before a message. `None` breaks [`TIME_RULE`].
pub(crate) fn time(text: &[u8]) -> Option<RandomDuration> {
    value::duration(text, LONGEST)
}

/// A seed. `None` breaks [`SEED_RULE`].
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Of a stream, for people.
pub(crate) const MESSAGES_RULE: &str = "1 to 1000000000";
pub(crate) const SIZE_RULE: &str = "85 to 64KiB: a number of bytes, alone or with a unit such as KiB (200, 4KiB)";
pub(crate) const TIME_RULE: &str = "0s to 1h: a number with a unit such as us, ms or s (20ms, 65s), two of them (10ms..30ms, anything between them) or a mean (exp:20ms)";
pub(crate) const SEED_RULE: &str = "a whole number, 0 to 18446744073709551615";

#[cfg(test)]
mod tests {
    use weir_wire::openai::Delta;
    use weir_wire::sse::Parser;
    use weir_wire::stamp::{self, Message};

    use super::*;

    fn stamps(shape: Shape) -> Vec<Stamp> {
        let mut stream = MessageStream::begin(shape, 7, None, None, 1_000);
        let mut out = Vec::new();
        while !stream.is_done() {
            let (before, next) = (out.len(), stream.next_bytes());
            stream.write(stream.due() + 5, &mut out);
            assert_eq!(out.len() - before, next);
        }
        assert_eq!(out.len() as u64, shape.bytes());
        let (mut parser, mut input, mut stamps) = (Parser::default(), &out[..], Vec::new());
        while let Some(event) = parser.next(&mut input).expect("small") {
            assert_eq!(event.data.len(), shape.size);
            let Message::Whole(stamp) = stamp::read(event.data) else { panic!("{event:?}") };
            stamps.push(stamp);
        }
        stamps
    }

    #[test]
    fn messages_are_due_at_the_pace_from_the_first_on() {
        let shape = Shape { messages: 3, ..Shape::default() };
        let stamp = |number: u32, due| Stamp { stream: 7, number, of: 3, due, sent: due + 5 };
        assert_eq!(stamps(shape), [stamp(0, 200_001_000), stamp(1, 220_001_000), stamp(2, 240_001_000)]);
    }

    #[test]
    fn drawn_times_are_the_seeds() {
        let drawn = |seed| {
            let every = RandomDuration::Uniform { from_s: 0.01, to_s: 0.03 };
            stamps(Shape { messages: 20, every, seed, ..Shape::default() })
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let gaps: Vec<u64> = drawn(1).windows(2).map(|two| two[1].due - two[0].due).collect();
        assert!(gaps.iter().all(|gap| (10_000_000..=30_000_000).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().any(|gap| *gap < 18_000_000) && gaps.iter().any(|gap| *gap > 22_000_000), "{gaps:?}");
    }

    #[test]
    fn a_completion_has_a_role_a_reason_and_an_end_or_says_that_it_failed() {
        for (messages, fault) in [(4, None), (1, None), (4, Some(Fault::Error)), (1, Some(Fault::Error))] {
            let shape = Shape { wrapping: Wrapping::Completion, messages, ..Shape::default() };
            let mut stream = MessageStream::begin(shape, 7, None, fault, 0);
            let mut out = Vec::new();
            while !stream.is_done() {
                let (before, next) = (out.len(), stream.next_bytes());
                assert_eq!(stream.fault(), None, "the message says it");
                stream.write(stream.due(), &mut out);
                assert_eq!(out.len() - before, next);
            }
            assert_eq!(out.len() as u64, stream.written(), "{messages} {fault:?}");
            let (mut parser, mut input, mut all) = (Parser::default(), &out[..], Vec::new());
            while let Some(event) = parser.next(&mut input).expect("small") {
                all.push(match openai::read(event.data) {
                    Delta::Content(content) if matches!(stamp::read(content), Message::Whole(_)) => "content",
                    Delta::Content(_) => "another content",
                    Delta::Failure => "failure",
                    Delta::Nothing if event.data == openai::DONE => "done",
                    Delta::Nothing => "nothing",
                });
            }
            let wanted: &[&str] = match (messages, fault) {
                (4, None) => &["nothing", "content", "content", "content", "content", "nothing", "done"],
                (1, None) => &["nothing", "content", "nothing", "done"],
                (4, _) => &["nothing", "content", "content", "failure", "done"],
                _ => &["failure", "done"],
            };
            assert_eq!(all, wanted);
        }
    }

    #[test]
    fn a_call_has_a_status_and_keeps_its_deadline() {
        let shape = Shape { wrapping: Wrapping::Call, messages: 4, ..Shape::default() };
        for (fault, deadline, wanted, messages) in [
            (None, u64::MAX, Status::OK, 4),
            (None, 260_000_000, Status::OK, 4),
            (None, 230_000_000, Status::DEADLINE_EXCEEDED, 2),
            (Some(Fault::Error), u64::MAX, Status::INTERNAL, 2),
        ] {
            let mut stream = MessageStream::begin(shape, 7, None, fault, 0).until(deadline);
            let mut out = Vec::new();
            while !stream.is_done() {
                let (before, next) = (out.len(), stream.next_bytes());
                assert!(stream.due() <= deadline);
                stream.write(stream.due(), &mut out);
                assert_eq!(out.len() - before, next);
            }
            assert_eq!((stream.status(), stream.written()), (Some(wanted), out.len() as u64));
            let (mut parser, mut input, mut found) = (grpc::Parser::default(), &out[..], 0);
            while let Some(message) = parser.next(&mut input).expect("right prefixes") {
                assert!(matches!(stamp::read(grpc::field(message)), Message::Whole(_)));
                found += 1;
            }
            assert_eq!((found, parser.is_within()), (messages, false), "{wanted}");
        }
    }

    #[test]
    fn a_fault_comes_in_the_middle() {
        let shape = Shape { messages: 5, ..Shape::default() };
        let mut stream = MessageStream::begin(shape, 7, None, Some(Fault::Close), 0);
        for _ in 0..2 {
            assert_eq!(stream.fault(), None);
            stream.write(0, &mut Vec::new());
        }
        assert_eq!(stream.fault(), Some(Fault::Close));
    }

    #[test]
    fn values_have_bounds() {
        assert_eq!(
            (messages(b"64"), messages(b"0"), messages(b"1000000001"), messages(b"x")),
            (Some(64), None, None, None)
        );
        assert_eq!((size(b"85"), size(b"84"), size(b"64KiB"), size(b"65KiB")), (Some(85), None, Some(65_536), None));
        assert_eq!(time(b"65s"), Some(RandomDuration::Constant { s: 65.0 }));
        assert_eq!((time(b"3601s"), time(b"20")), (None, None));
    }
}
