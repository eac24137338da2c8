//! Looks at the messages of responses that are streams, one by one: when each came, how long it took, and whether all came as they
//! were sent. `protocol` hands over the bodies as they come, `worker` the ends of streams; `result` reads what was found. It does not
//! know connections, nor what a proxy is.
//!
//! A message that came with the one before although it was sent later was *gathered*. That is told from the sender's times, and not
//! from the reads of this client, whose buffers may cut what came together.

use std::fmt;

use weir_model::load::{
    ErrorKind, MessageCounts, MessageResult, PacedMessages, Quantiles, StreamEnd, StreamKind, StreamSpec,
};
use weir_wire::grpc::{self, PrefixError, Status};
use weir_wire::openai::{self, Delta};
use weir_wire::sse::{self, Parser};
use weir_wire::stamp::{self, Message, Stamp};

use crate::clock::MILLI;
use crate::interval::{Histo, add, histo, quantiles};
use crate::protocol::Watches;
use crate::result::sum_of;
use crate::worker::Stream;

/// Messages that are sent closer together than this may come together.
const LEAST_DISTANCE: u64 = MILLI;

/// Streams of a worker whose cancelling is kept with its time.
const KEPT_CANCELLED: usize = 4_096;

/// Numbers before the last one of which is known whether they came.
const REMEMBERED: u32 = 64;

/// The messages of one worker.
#[derive(Debug, Clone)]
pub(crate) struct MessageWatch {
    spec: StreamSpec,
    /// What comes now counts for the window.
    pub in_window: bool,
    /// Of the window, and of all.
    counts: (MessageCounts, MessageCounts),
    times: Times,
    /// One stream in so many is cancelled in its middle; 0: none.
    cancel_each: u64,
    cancelled: Vec<StreamEnd>,
    /// A stream of those that something came for just now is to be cancelled.
    pub cancels_now: bool,
}

/// A histogram for each of [`TAGS`].
pub(crate) type Times = [Histo; TAGS.len()];

/// The tags of the distributions in a log, in the order of [`Time`].
pub(crate) const TAGS: [&str; 6] =
    ["message-delay", "message-gap", "message-sender-lag", "message-head", "message-first", "message-mean-gap"];

/// The distributions.
#[derive(Debug, Clone, Copy)]
enum Time {
    Delay,
    Gap,
    SenderLag,
    Head,
    First,
    MeanGap,
}

/// Messages that this client sends on a stream, one by one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing {
    paced: PacedMessages,
    /// The number of the stream.
    id: u64,
    /// The number of the next message, and when it is due.
    next: u32,
    due: u64,
}

impl Outgoing {
    /// The messages of the stream with this number, which begins now.
    pub(crate) fn new(paced: PacedMessages, id: u64, now: u64) -> Outgoing {
        Outgoing { paced, id, next: 0, due: now }
    }

    /// When the next message is due; `None`: all were sent.
    pub(crate) fn due(&self) -> Option<u64> {
        (self.next < self.paced.count).then_some(self.due)
    }

    /// Writes the next message, which is sent now, with its prefix, in place of what is in `out`.
    pub(crate) fn write(&mut self, now: u64, out: &mut Vec<u8>) {
        let PacedMessages { count: of, every, size } = self.paced;
        let (before, length) = grpc::before_field(size);
        out.clear();
        out.extend_from_slice(&before[..length]);
        Stamp { stream: self.id, number: self.next, of, due: self.due, sent: now }.write(size, out);
        self.next += 1;
        self.due += every.as_nanos() as u64;
    }
}

/// A stream that is coming.
#[derive(Debug, Default)]
pub(crate) struct MessageState {
    parser: Parser,
    grpc: grpc::Parser,
    /// The status that the sender of a call gave (gRPC).
    status: Option<Status>,
    /// Messages of the client, where they are what comes back.
    pub(crate) outgoing: Option<Outgoing>,
    /// It is to be cancelled in its middle, and that has come.
    cancels: bool,
    cancels_now: bool,
    /// What is wrong with it, the first thing alone.
    wrong: Option<Wrong>,
    /// Its head says that it is one.
    reads: bool,
    /// When its head came, and when anything came last.
    head: u64,
    heard: u64,
    /// Messages that came.
    received: u64,
    /// All messages so far came in one read.
    in_first_read: bool,
    /// When the first message came.
    first: u64,
    /// When the last message came, and its stamp if it had one.
    last: Option<(u64, Option<Stamp>)>,
    /// Which stream it is, and how many messages that has: as the first stamp says.
    known: Option<(u64, u32)>,
    /// The number expected next, and which of the [`REMEMBERED`] before it came.
    next: u32,
    came: u64,
}

/// What is wrong with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// With the right type.
    Type(&'static str),
    TooLarge,
    Prefix(PrefixError),
    Empty,
    Failed,
    Status(Status),
    NoStatus,
    CutShort,
    Lost,
    Doubled,
    Reordered,
    Altered,
    Foreign,
}

impl Wrong {
    fn kind(self) -> ErrorKind {
        match self {
            Wrong::Type(_) | Wrong::NoStatus => ErrorKind::WrongHeader,
            Wrong::TooLarge | Wrong::Prefix(_) => ErrorKind::Protocol,
            Wrong::Status(_) => ErrorKind::BadStatus,
            _ => ErrorKind::WrongBody,
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Type(wanted) => write!(f, "another content type; expected: {wanted}"),
            Wrong::TooLarge => sse::TooLarge.fmt(f),
            Wrong::Prefix(error) => error.fmt(f),
            Wrong::Status(status) => status.fmt(f),
            Wrong::NoStatus => write!(f, "no {}, neither behind the messages nor in the head", grpc::STATUS),
            Wrong::Empty => f.write_str("a stream without a message"),
            Wrong::Failed => f.write_str("the stream says that its sender failed"),
            Wrong::CutShort => f.write_str("the stream ended like a complete one before its last message"),
            Wrong::Lost => f.write_str("messages of the stream are missing"),
            Wrong::Doubled => f.write_str("messages of the stream came twice"),
            Wrong::Reordered => f.write_str("messages of the stream came in another order"),
            Wrong::Altered => f.write_str("messages of the stream were altered"),
            Wrong::Foreign => f.write_str("messages of another stream"),
        }
    }
}

impl MessageState {
    /// When anything of it came last.
    pub(crate) fn heard(&self) -> u64 {
        self.heard
    }

    /// Begins the next stream.
    fn reset(&mut self, reads: bool, now: u64) {
        let (mut parser, mut grpc) = (std::mem::take(&mut self.parser), std::mem::take(&mut self.grpc));
        parser.reset();
        grpc.reset();
        *self = MessageState {
            parser,
            grpc,
            outgoing: self.outgoing,
            reads,
            head: now,
            heard: now,
            in_first_read: true,
            ..MessageState::default()
        };
    }

    fn find_wrong(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
    }
}

impl MessageWatch {
    /// A watch that has one stream in so many cancelled; `None`: none.
    pub(crate) fn new(spec: StreamSpec, cancel_each: Option<u32>) -> MessageWatch {
        MessageWatch {
            spec,
            in_window: false,
            counts: Default::default(),
            times: no_times(),
            cancel_each: cancel_each.unwrap_or(0).into(),
            cancelled: Vec::new(),
            cancels_now: false,
        }
    }

    #[inline]
    fn count(&mut self, count: impl Fn(&mut MessageCounts)) {
        count(&mut self.counts.1);
        if self.in_window {
            count(&mut self.counts.0);
        }
    }

    #[inline]
    fn record(&mut self, time: Time, nanos: u64) {
        if self.in_window {
            self.times[time as usize].saturating_record(nanos);
        }
    }

    /// The head of a response came; `reads`: its status is that of a stream.
    pub(crate) fn begin(&mut self, stream: &mut Stream, reads: bool, now: u64) {
        stream.messages.get_or_insert_default().reset(reads, now);
    }

    /// Its headers came: whether they say that it has messages.
    pub(crate) fn check_type<'h>(
        &mut self,
        stream: &mut Stream,
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone,
    ) {
        let due = stream.due();
        let Some(state) = stream.messages.as_mut().filter(|state| state.reads) else { return };
        let head = state.head;
        let types = headers.clone().filter(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
        let is_events = |value: &[u8]| {
            let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            essence.eq_ignore_ascii_case(sse::CONTENT_TYPE.as_bytes())
        };
        let (wanted, is_right): (_, fn(&[u8]) -> bool) = match self.spec.kind {
            StreamKind::Grpc => (grpc::CONTENT_TYPE, grpc::is_grpc),
            _ => (sse::CONTENT_TYPE, is_events),
        };
        if types.last().is_some_and(|(_, value)| is_right(value)) {
            self.count(|counts| counts.begun += 1);
            state.cancels = self.counts.1.begun.is_multiple_of(self.cancel_each);
            self.record(Time::Head, head.saturating_sub(due));
            // Where no message follows, it stands in the head.
            self.check_status(stream, headers);
        } else {
            state.reads = false;
            state.find_wrong(Wrong::Type(wanted));
        }
    }

    /// Headers came that may have the status of a call.
    pub(crate) fn check_status<'h>(
        &mut self,
        stream: &mut Stream,
        mut headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        let Some(state) = stream.messages.as_mut().filter(|state| state.reads) else { return };
        if self.spec.kind == StreamKind::Grpc
            && let Some((_, value)) = headers.find(|(name, _)| *name == grpc::STATUS.as_bytes())
        {
            state.status = Some(Status::parse(value).unwrap_or(Status::UNKNOWN));
        }
    }

    /// A piece of a body came.
    #[inline]
    pub(crate) fn body(&mut self, stream: &mut Stream, piece: &[u8], now: u64) {
        let (due, id) = (stream.due(), stream.request_id.bits());
        let Some(state) = stream.messages.as_mut().filter(|state| state.reads) else { return };
        state.heard = now;
        let id = state.outgoing.map_or(id, |outgoing| outgoing.id);
        let read = match self.spec.kind {
            StreamKind::Grpc => self.frames(state, piece, due, id, now),
            _ => self.events(state, piece, due, id, now),
        };
        if let Err(wrong) = read {
            state.reads = false;
            state.find_wrong(wrong);
        }
    }

    fn events(&mut self, state: &mut MessageState, mut piece: &[u8], due: u64, id: u64, now: u64) -> Result<(), Wrong> {
        let mut parser = std::mem::take(&mut state.parser);
        while let Some(event) = parser.next(&mut piece).map_err(|sse::TooLarge| Wrong::TooLarge)? {
            match self.spec.kind {
                StreamKind::OpenAi => match openai::read(event.data) {
                    Delta::Content(content) => self.message(state, content, due, id, now),
                    Delta::Nothing => {}
                    Delta::Failure => state.find_wrong(Wrong::Failed),
                },
                _ => self.message(state, event.data, due, id, now),
            }
        }
        state.parser = parser;
        Ok(())
    }

    fn frames(&mut self, state: &mut MessageState, mut piece: &[u8], due: u64, id: u64, now: u64) -> Result<(), Wrong> {
        let mut parser = std::mem::take(&mut state.grpc);
        while let Some(message) = parser.next(&mut piece).map_err(Wrong::Prefix)? {
            self.message(state, grpc::field(message), due, id, now);
        }
        state.grpc = parser;
        Ok(())
    }

    /// A message came. `due`: when its request was; `id`: that of its request, 0 where it has none.
    fn message(&mut self, state: &mut MessageState, data: &[u8], due: u64, id: u64, now: u64) {
        self.count(|counts| {
            counts.received += 1;
            counts.bytes += data.len() as u64;
        });
        state.received += 1;
        match state.last {
            None => {
                state.first = now;
                self.record(Time::First, now.saturating_sub(due));
                if state.head == now {
                    self.count(|counts| counts.late_heads += 1);
                }
            }
            Some((last, _)) => self.record(Time::Gap, now.saturating_sub(last)),
        }
        let stamp = match stamp::read(data) {
            Message::Whole(stamp) => Some(stamp),
            // In a stream of stamped ones, it is one that was altered beyond recognition.
            Message::Unstamped if state.known.is_none() => {
                self.count(|counts| counts.unstamped += 1);
                None
            }
            Message::Altered | Message::Unstamped => {
                self.count(|counts| counts.altered += 1);
                state.find_wrong(Wrong::Altered);
                // It came in the place of the next one, most likely.
                self.number(state, state.next);
                None
            }
        };
        if let Some(stamp) = stamp {
            self.stamped(state, stamp, id, now);
        }
        state.last = Some((now, stamp));
    }

    fn stamped(&mut self, state: &mut MessageState, stamp: Stamp, id: u64, now: u64) {
        let (stream, _) = *state.known.get_or_insert((if id == 0 { stamp.stream } else { id }, stamp.of));
        if stamp.stream != stream {
            self.count(|counts| counts.foreign += 1);
            return state.find_wrong(Wrong::Foreign);
        }
        self.number(state, stamp.number);
        self.record(Time::SenderLag, stamp.sent.saturating_sub(stamp.due));
        // The client's own messages have its own time.
        if self.spec.one_clock || state.outgoing.is_some() {
            self.record(Time::Delay, now.saturating_sub(stamp.sent));
        }
        if let Some((came, Some(last))) = state.last {
            let distance = stamp.sent.saturating_sub(last.sent);
            if distance >= LEAST_DISTANCE {
                let gathered = now - came < distance / 4;
                self.count(|counts| counts.gathered += u64::from(gathered));
                state.in_first_read &= gathered;
            }
        }
        self.count(|counts| counts.first_reads += u64::from(state.in_first_read));
        if state.cancels && state.wrong.is_none() && state.received >= u64::from(stamp.of / 2) {
            (state.cancels, state.cancels_now, self.cancels_now) = (false, stamp.number + 1 < stamp.of, true);
        }
    }

    /// Returns whether a stream is to be cancelled now; asked once.
    pub(crate) fn is_cancelled(stream: &mut Stream) -> bool {
        stream.messages.as_mut().is_some_and(|state| std::mem::take(&mut state.cancels_now) && state.reads)
    }

    /// The client cancelled a stream.
    pub(crate) fn cancelled(&mut self, stream: &mut Stream, at: u64) {
        self.count(|counts| counts.cancelled += 1);
        let Some(state) = &mut stream.messages else { return };
        if let (Some((stream, _)), true) = (state.known, self.cancelled.len() < KEPT_CANCELLED) {
            self.cancelled.push(StreamEnd { stream, at });
        }
        state.reset(false, 0);
    }

    /// The message with this number came.
    fn number(&mut self, state: &mut MessageState, number: u32) {
        if number >= state.next {
            let ahead = number - state.next;
            if ahead > 0 {
                self.count(|counts| counts.lost += u64::from(ahead));
                state.find_wrong(Wrong::Lost);
            }
            state.came = state.came.checked_shl(ahead.saturating_add(1)).unwrap_or(0) | 1;
            state.next = number.saturating_add(1);
            return;
        }
        let before = state.next - 1 - number;
        let bit = 1u64.checked_shl(before).unwrap_or(0);
        if before < REMEMBERED && state.came & bit == 0 {
            state.came |= bit;
            // It was counted as lost in its time, perhaps before the window.
            self.counts.1.lost -= 1;
            self.counts.0.lost = self.counts.0.lost.saturating_sub(u64::from(self.in_window));
            self.count(|counts| counts.reordered += 1);
            state.wrong = state.wrong.filter(|wrong| *wrong != Wrong::Lost);
            state.find_wrong(Wrong::Reordered);
        } else {
            self.count(|counts| counts.doubled += 1);
            state.find_wrong(Wrong::Doubled);
        }
    }

    /// A stream ended otherwise than by its end.
    pub(crate) fn abort(&mut self, stream: &mut Stream) {
        if let Some(state) = stream.messages.as_mut().filter(|state| state.reads) {
            self.count(|counts| counts.aborted += 1);
            state.reset(false, 0);
        }
    }

    /// A response is complete: what is wrong with its stream.
    fn end(&mut self, state: &mut MessageState) -> Option<Wrong> {
        if std::mem::take(&mut state.reads) {
            let is_short = state.known.is_some_and(|(_, of)| state.next < of)
                || state.parser.is_within()
                || state.grpc.is_within();
            let failure = match state.status {
                Some(status) if status != Status::OK => Some(Wrong::Status(status)),
                None if self.spec.kind == StreamKind::Grpc => Some(Wrong::NoStatus),
                _ => state.wrong.filter(|wrong| *wrong == Wrong::Failed),
            };
            if failure.is_some() {
                // Weightier than what is wrong with the messages.
                state.wrong = failure;
                let is_told = failure != Some(Wrong::NoStatus);
                self.count(|counts| *(if is_told { &mut counts.failed } else { &mut counts.cut_short }) += 1);
            } else if state.received == 0 {
                state.find_wrong(Wrong::Empty);
                self.count(|counts| counts.cut_short += 1);
            } else if is_short {
                // Weightier than what is missing before.
                state.wrong = Some(Wrong::CutShort);
                self.count(|counts| counts.cut_short += 1);
            } else {
                self.count(|counts| counts.whole += 1);
                if let (Some((last, _)), 2..) = (state.last, state.received) {
                    self.record(Time::MeanGap, (last - state.first) / (state.received - 1));
                }
            }
        }
        let wrong = state.wrong;
        state.reset(false, 0);
        wrong
    }
}

impl Watches {
    /// A response is complete, and apart from the messages that it may have this is right or wrong with it. Returns the verdict of all.
    #[inline]
    pub(crate) fn end_messages(
        &mut self,
        stream: &mut Stream,
        verdict: Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let due = stream.due();
        let (Some(messages), Some(state)) = (&mut self.messages, &mut stream.messages) else { return verdict };
        let Some(wrong) = messages.end(state) else { return verdict };
        verdict?;
        self.reasons.record(wrong.kind(), &wrong, due);
        Err(wrong.kind())
    }
}

/// The distributions of all workers, in the order of [`TAGS`].
pub(crate) fn times<'a>(watches: impl Iterator<Item = &'a MessageWatch>) -> Times {
    let mut times = no_times();
    watches.for_each(|watch| times.iter_mut().zip(&watch.times).for_each(|(sum, more)| add(sum, more)));
    times
}

/// Empty ones.
pub(crate) fn no_times() -> Times {
    std::array::from_fn(|_| histo())
}

/// What all workers found; `None` where responses are no streams.
pub(crate) fn result<'a>(watches: impl Iterator<Item = &'a MessageWatch> + Clone) -> Option<MessageResult> {
    let counts = sum_of(watches.clone().map(|watch| &watch.counts), add_counts)?;
    let cancelled_at = watches.clone().flat_map(|watch| watch.cancelled.iter().copied()).collect();
    let counted = MessageResult { window: counts.0, total: counts.1, cancelled_at, ..MessageResult::default() };
    Some(with_times(&times(watches), counted))
}

fn add_counts(sum: &mut (MessageCounts, MessageCounts), more: &(MessageCounts, MessageCounts)) {
    sum.0.add(&more.0);
    sum.1.add(&more.1);
}

/// The same counts of another client added. Distributions are not: those come from histograms.
pub(crate) fn add_result(sum: &mut MessageResult, more: &MessageResult) {
    sum.window.add(&more.window);
    sum.total.add(&more.total);
    sum.cancelled_at.extend_from_slice(&more.cancelled_at);
}

/// The result with these distributions.
pub(crate) fn with_times(times: &Times, counted: MessageResult) -> MessageResult {
    let of = |time: Time| quantiles(&times[time as usize]);
    MessageResult {
        delay: of(Time::Delay),
        gap: of(Time::Gap),
        sender_lag: of(Time::SenderLag),
        head: of(Time::Head),
        first_message: of(Time::First),
        per_message: of(Time::MeanGap),
        ..counted
    }
}

/// The distributions of a result, in the order of [`TAGS`].
pub(crate) fn quantiles_of(result: &MessageResult) -> [&Quantiles; TAGS.len()] {
    [&result.delay, &result.gap, &result.sender_lag, &result.head, &result.first_message, &result.per_message]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const SPEC: StreamSpec = StreamSpec { kind: StreamKind::Sse, one_clock: true };
    const PACE: u64 = 20 * MILLI;

    /// The headers of a stream.
    const TYPE: [(&[u8], &[u8]); 1] = [(b"Content-Type", b"text/event-stream; charset=utf-8")];

    /// A message of stream 7, which has four, sent at the pace of its number.
    fn text(number: u32) -> Vec<u8> {
        let sent = u64::from(number) * PACE;
        let mut text = sse::BEFORE_DATA.to_vec();
        Stamp { stream: 7, number, of: 4, due: sent, sent }.write(100, &mut text);
        text.extend_from_slice(sse::AFTER_DATA);
        text
    }

    /// A watch that has seen messages which took so long.
    pub(crate) fn watched(took: impl Iterator<Item = u64>) -> MessageWatch {
        let (mut watch, mut stream) = (MessageWatch::new(SPEC, None), Stream::default());
        watch.in_window = true;
        watch.begin(&mut stream, true, 0);
        watch.check_type(&mut stream, TYPE.into_iter());
        let mut now = 0;
        for (number, took) in (0..).zip(took) {
            now = (u64::from(number) * PACE).saturating_add(took).max(now);
            watch.body(&mut stream, &text(number), now);
        }
        watch
    }

    /// One stream, of which these bodies come at these times, and then its end.
    fn stream(pieces: &[(u64, Vec<u8>)]) -> (MessageResult, Option<Wrong>) {
        let (mut watch, mut stream) = (MessageWatch::new(SPEC, None), Stream::default());
        watch.in_window = true;
        watch.begin(&mut stream, true, 0);
        watch.check_type(&mut stream, TYPE.into_iter());
        pieces.iter().for_each(|(at, piece)| watch.body(&mut stream, piece, *at));
        let wrong = watch.end(stream.messages.as_mut().expect("it began"));
        (result([&watch].into_iter()).expect("streams"), wrong)
    }

    /// The same with whole messages, all in time.
    fn numbers(numbers: &[u32]) -> (MessageCounts, Option<Wrong>) {
        let pieces: Vec<_> = (0..).zip(numbers).map(|(n, number)| (n * PACE + 1, text(*number))).collect();
        let (result, wrong) = stream(&pieces);
        assert_eq!(result.window, result.total, "all of it was in the window");
        (result.window, wrong)
    }

    #[test]
    fn what_becomes_of_messages_is_counted() {
        let all =
            MessageCounts { received: 4, bytes: 400, begun: 1, whole: 1, first_reads: 1, ..MessageCounts::default() };
        assert_eq!(numbers(&[0, 1, 2, 3]), (all, None));
        let three = MessageCounts { received: 3, bytes: 300, ..all };
        assert_eq!(numbers(&[0, 1, 3]), (MessageCounts { lost: 1, ..three }, Some(Wrong::Lost)));
        assert_eq!(numbers(&[0, 2, 1, 3]), (MessageCounts { reordered: 1, ..all }, Some(Wrong::Reordered)));
        let five = MessageCounts { received: 5, bytes: 500, ..all };
        assert_eq!(numbers(&[0, 1, 1, 2, 3]), (MessageCounts { doubled: 1, ..five }, Some(Wrong::Doubled)));
        let short = MessageCounts { whole: 0, cut_short: 1, ..three };
        assert_eq!(numbers(&[0, 1, 2]), (short, Some(Wrong::CutShort)));
        let none = MessageCounts { received: 0, bytes: 0, first_reads: 0, ..short };
        assert_eq!(numbers(&[]), (none, Some(Wrong::Empty)));
    }

    #[test]
    fn altered_messages_and_those_of_other_streams_are_found() {
        let with = |piece: Vec<u8>| stream(&[(0, text(0)), (PACE, piece), (2 * PACE, text(2)), (3 * PACE, text(3))]);
        let mut altered = text(1);
        altered[90] ^= 1;
        for piece in [altered, b"data: {}\n\n".to_vec()] {
            let (result, wrong) = with(piece);
            assert_eq!((result.total.altered, result.total.lost, wrong), (1, 0, Some(Wrong::Altered)));
        }
        let mut foreign = b"data: ".to_vec();
        Stamp { stream: 8, number: 1, of: 4, due: 0, sent: 0 }.write(100, &mut foreign);
        foreign.extend_from_slice(b"\n\n");
        let (result, wrong) = with([foreign, text(1)].concat());
        assert_eq!((result.total.foreign, result.total.lost, wrong), (1, 0, Some(Wrong::Foreign)));
    }

    #[test]
    fn messages_of_other_senders_have_gaps_and_no_delay() {
        let event = || b"data: [DONE]\n\n".to_vec();
        let (result, wrong) = stream(&[(PACE, event()), (3 * PACE, event())]);
        assert_eq!((result.window.unstamped, result.window.whole, wrong), (2, 1, None));
        assert_eq!((result.delay.count, result.gap.count, result.first_message.count), (0, 1, 1));
        assert_eq!(result.verdict(), None);
        // An end within an event is none.
        assert_eq!(stream(&[(0, event()), (1, b"data: x\n".to_vec())]).1, Some(Wrong::CutShort));
    }

    #[test]
    fn of_a_language_model_content_is_a_message_and_a_failure_is_told() {
        let event = |data: &[u8]| [sse::BEFORE_DATA, data, sse::AFTER_DATA].concat();
        let content = |number: u32| {
            let mut data = openai::BEFORE_CONTENT.to_vec();
            Stamp { stream: 7, number, of: 3, due: 0, sent: u64::from(number) * PACE }.write(100, &mut data);
            data.extend_from_slice(openai::AFTER_CONTENT);
            event(&data)
        };
        let run = |pieces: &[(u64, Vec<u8>)]| {
            let spec = StreamSpec { kind: StreamKind::OpenAi, ..SPEC };
            let (mut watch, mut stream) =
                (MessageWatch { in_window: true, ..MessageWatch::new(spec, None) }, Stream::default());
            watch.begin(&mut stream, true, 0);
            watch.check_type(&mut stream, TYPE.into_iter());
            pieces.iter().for_each(|(at, piece)| watch.body(&mut stream, piece, *at));
            let wrong = watch.end(stream.messages.as_mut().expect("it began"));
            (result([&watch].into_iter()).expect("streams"), wrong)
        };
        let whole = [
            (1, event(openai::ROLE)),
            (PACE, content(0)),
            (2 * PACE, content(1)),
            (4 * PACE, content(2)),
            (4 * PACE, event(openai::FINISH)),
            (5 * PACE, event(openai::DONE)),
        ];
        let (result, wrong) = run(&whole);
        assert_eq!((result.window.received, result.window.unstamped, result.window.whole, wrong), (3, 0, 1, None));
        let near = |us: f64, nanos: u64| (us * 1e3 / nanos as f64 - 1.0).abs() < 0.001;
        assert!(near(result.first_message.p50_us, PACE), "the first that has content: {:?}", result.first_message);
        assert!(near(result.per_message.p50_us, 3 * PACE / 2), "two gaps in three paces: {:?}", result.per_message);
        assert!(near(result.gap.max_us, 2 * PACE) && result.gap.count == 2, "{:?}", result.gap);
        let (result, wrong) = run(&[(1, content(0)), (2, event(openai::FAILURE)), (3, event(openai::DONE))]);
        let window = result.window;
        assert_eq!((window.failed, window.whole, window.cut_short, wrong), (1, 0, 0, Some(Wrong::Failed)));
        assert_eq!(result.per_message.count, 0, "of whole streams alone");
    }

    #[test]
    fn the_status_of_a_call_decides_and_not_that_of_http() {
        type Headers = &'static [(&'static [u8], &'static [u8])];
        const CALL: Headers = &[(b"content-type", b"application/grpc+proto")];
        let message = |number: u32| {
            let (before, length) = grpc::before_field(100);
            let mut data = before[..length].to_vec();
            Stamp { stream: 7, number, of: 2, due: 0, sent: u64::from(number) * PACE }.write(100, &mut data);
            data
        };
        let run = |head: Headers, numbers: &[u32], trailers: Headers| {
            let spec = StreamSpec { kind: StreamKind::Grpc, ..SPEC };
            let (mut watch, mut stream) = (MessageWatch::new(spec, None), Stream::default());
            watch.begin(&mut stream, true, 0);
            watch.check_type(&mut stream, head.iter().copied());
            for number in numbers {
                // However they are cut.
                message(*number).chunks(7).for_each(|piece| watch.body(&mut stream, piece, u64::from(*number) * PACE));
            }
            watch.check_status(&mut stream, trailers.iter().copied());
            let wrong = watch.end(stream.messages.as_mut().expect("it began"));
            (watch.counts.1, wrong.map(|wrong| (wrong.kind(), wrong.to_string())))
        };
        const OK: Headers = &[(b"grpc-status", b"0")];
        const HEAD_ALONE: Headers = &[CALL[0], (b"grpc-status", b"8")];
        let ends = |counts: MessageCounts| (counts.whole, counts.cut_short, counts.failed);
        let (counts, wrong) = run(CALL, &[0, 1], OK);
        assert_eq!((counts.received, counts.altered, ends(counts), wrong), (2, 0, (1, 0, 0), None));
        let said = |head, numbers: &[u32], trailers| {
            let (counts, wrong) = run(head, numbers, trailers);
            let (kind, words) = wrong.expect("something is wrong");
            (ends(counts), kind, words)
        };
        let failed = |words: &str| ((0, 0, 1), ErrorKind::BadStatus, words.to_owned());
        // With all messages, with some, and in the head alone.
        for numbers in [&[0, 1][..], &[0]] {
            let found = said(CALL, numbers, &[(b"grpc-status", b"14"), (b"grpc-message", b"away")]);
            assert_eq!(found, failed("grpc-status 14 UNAVAILABLE"));
        }
        assert_eq!(said(HEAD_ALONE, &[], &[]), failed("grpc-status 8 RESOURCE_EXHAUSTED"));
        assert_eq!(said(CALL, &[0, 1], &[(b"grpc-status", b"fine")]), failed("grpc-status 2 UNKNOWN"));
        let (ended, kind, words) = said(CALL, &[0, 1], &[]);
        assert_eq!((ended, kind), ((0, 1, 0), ErrorKind::WrongHeader));
        assert!(words.starts_with("no grpc-status"), "{words}");
        assert_eq!(said(CALL, &[0], OK).2, Wrong::CutShort.to_string());
        assert_eq!(said(CALL, &[0, 0, 1], OK).2, Wrong::Doubled.to_string());
        assert_eq!(said(CALL, &[1], OK).2, Wrong::Lost.to_string());
        assert_eq!(
            said(&[(b"content-type", b"text/html")], &[], &[]).2,
            "another content type; expected: application/grpc"
        );
    }

    #[test]
    fn what_comes_together_was_gathered_if_it_was_sent_apart() {
        let late = 4 * PACE;
        let one_by_one: Vec<_> = (0..4).map(|n| (u64::from(n) * PACE + 5, text(n))).collect();
        let buffered: Vec<_> = (0..4).map(|n| (late + u64::from(n), text(n))).collect();
        let gathered: Vec<_> = (0..4).map(|n| (if n == 0 { 5 } else { late }, text(n))).collect();
        for (pieces, verdict) in [
            (one_by_one, "passes"),
            (gathered, "coalesces (2.0 messages a read)"),
            (buffered, "buffers (until the end)"),
        ] {
            assert_eq!(stream(&pieces).0.verdict().map(|verdict| verdict.to_string()).as_deref(), Some(verdict));
        }
    }

    #[test]
    fn a_response_of_another_type_is_no_stream() {
        let (mut watch, mut stream) = (MessageWatch::new(SPEC, None), Stream::default());
        for types in [&[][..], &[(&b"content-type"[..], &b"application/json"[..])]] {
            watch.begin(&mut stream, true, 0);
            watch.check_type(&mut stream, types.iter().copied());
            watch.body(&mut stream, &text(0), 1);
            assert_eq!(watch.end(stream.messages.as_mut().expect("it began")), Some(Wrong::Type("text/event-stream")));
        }
        // A response that failed has its own reason.
        watch.begin(&mut stream, false, 0);
        assert_eq!(watch.end(stream.messages.as_mut().expect("it began")), None);
        assert_eq!((watch.counts.1.received, watch.counts.1.begun), (0, 0));
    }

    #[test]
    fn what_comes_outside_the_window_is_in_the_total_alone() {
        let (mut watch, mut stream) = (MessageWatch::new(SPEC, None), Stream::default());
        watch.begin(&mut stream, true, 0);
        watch.check_type(&mut stream, TYPE.into_iter());
        watch.body(&mut stream, &text(0), 1);
        watch.in_window = true;
        watch.body(&mut stream, &text(1), 2);
        watch.in_window = false;
        watch.abort(&mut stream);
        let result = result([&watch].into_iter()).expect("streams");
        assert_eq!((result.window.received, result.window.begun, result.window.aborted), (1, 0, 0));
        assert_eq!((result.total.received, result.total.begun, result.total.aborted), (2, 1, 1));
        assert_eq!((result.gap.count, result.head.count), (1, 0));
    }
}
