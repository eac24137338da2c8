//! Streams of a load: what carries their messages, and what became of these.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Quantiles, RandomDuration};
use crate::protocol::Application;
use crate::suite::{Expect, Request};
use crate::text::human_bytes;
use crate::units::ByteCount;

/// Responses of a load are streams, and each of their messages is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSpec {
    /// What carries the messages.
    pub kind: StreamKind,
    /// Client and sender read one clock, so that the sender's time tells how long a message took.
    pub one_clock: bool,
}

/// What carries the messages of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// Server-sent events.
    Sse,
    /// Server-sent events with the completions of a language model, in OpenAI's format: a message is a piece of content.
    OpenAi,
    /// Messages of WebSocket: each is sent by the client, and comes back.
    WebSocket,
    /// Messages of WebSocket that the server sends to all connections: each is complete when it has come to the last.
    Broadcast,
    /// Calls of gRPC: unary ones, whose response is one message, and those with a stream of requests, of responses, or of both.
    Grpc,
}

impl StreamKind {
    /// The name used in flags, files and records.
    pub fn as_str(self) -> &'static str {
        match self {
            StreamKind::Sse => "sse",
            StreamKind::OpenAi => "openai",
            StreamKind::WebSocket => "websocket",
            StreamKind::Broadcast => "broadcast",
            StreamKind::Grpc => "grpc",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            StreamKind::Sse => "server-sent events",
            StreamKind::OpenAi => "a language model's completions",
            StreamKind::WebSocket => "WebSocket",
            StreamKind::Broadcast => "WebSocket to all connections",
            StreamKind::Grpc => "gRPC",
        }
    }

    /// The protocol of HTTP that carries it; `None`: any.
    pub fn application(self) -> Option<Application> {
        match self {
            StreamKind::Sse | StreamKind::OpenAi => None,
            StreamKind::WebSocket | StreamKind::Broadcast => Some(Application::Http1),
            StreamKind::Grpc => Some(Application::Http2),
        }
    }

    /// Whether messages are parts of responses, which go on. Those of WebSocket are requests and responses themselves.
    pub fn in_responses(self) -> bool {
        !self.is_websocket()
    }

    /// The kind that is the same for a proxy between both ends.
    pub fn carrier(self) -> StreamKind {
        if self == StreamKind::Broadcast { StreamKind::WebSocket } else { self }
    }

    /// Whether WebSocket carries them.
    pub fn is_websocket(self) -> bool {
        self.carrier() == StreamKind::WebSocket
    }

    /// What a successful response is, where the kind decides that.
    pub fn expected(self, expect: Expect) -> Expect {
        match self {
            _ if self.is_websocket() => Expect { status: Some(101), errors: expect.errors, ..Expect::default() },
            _ => expect,
        }
    }

    /// A request as it is sent.
    ///
    /// With WebSocket it is an upgrade, whose body is a message that has room for a stamp.
    ///
    /// With gRPC it is a POST with the headers of a call and the time that the client gives it. Its body is a message with its length before
    /// it, as often as `requests` in the query says. It has as many bytes as the stamped messages of a load that sends these one by one, so
    /// that what comes back has the same size.
    pub fn dressed(self, request: &Request, timeout: Option<Duration>) -> Request {
        let mut request = request.clone();
        if self == StreamKind::Grpc {
            request.method = "POST".to_owned();
            let mut own = vec![("content-type", "application/grpc".to_owned()), ("te", "trailers".to_owned())];
            own.extend(
                timeout.map(|timeout| ("grpc-timeout", format!("{}m", timeout.as_millis().clamp(1, 99_999_999)))),
            );
            own.retain(|(name, _)| request.header(name).is_none());
            request.headers.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
            let paced = PacedMessages::of(&request.path).and_then(Result::ok);
            if let Some(paced) = paced {
                request.body = paced.example();
            }
            let length = (request.body.len() as u32).to_be_bytes();
            request.body.splice(0..0, [0].into_iter().chain(length));
            request.body =
                request.body.repeat(paced.map_or_else(|| sent_messages(&request.path), |all| all.count as usize));
        }
        if self.is_websocket() {
            request.method = "GET".to_owned();
            request.body.resize(request.body.len().max(LEAST_MESSAGE), b'-');
        }
        request
    }
}

/// The most messages that a call sends.
pub const MOST_SENT: usize = 10_000;

/// How many messages a call sends: `requests` in the query of its path, else one.
fn sent_messages(path: &str) -> usize {
    in_query(path, "requests").and_then(|text| text.parse().ok()).map_or(1, |count: usize| count.clamp(1, MOST_SENT))
}

/// A key's last value in the query of a path.
fn in_query<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let (_, query) = path.split_once('?')?;
    query.split('&').rev().find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
}

/// The size of the smallest message that has a stamp, bytes.
pub const LEAST_MESSAGE: usize = 85;

/// The call of gRPC whose messages go both ways.
pub const BIDI_PATH: &str = "/weir.Echo/Bidi";

/// The most bytes of messages that such a call sends.
const MOST_SENT_BYTES: u64 = 64 << 20;

/// The messages that the client of a call with both streams sends: each is due so long after the one before, the first with its request,
/// and comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacedMessages {
    /// How many, 1 to [`MOST_SENT`].
    pub count: u32,
    /// From each to the next.
    pub every: Duration,
    /// Bytes of each.
    pub size: usize,
}

impl PacedMessages {
    /// The messages of a request with this path; `None`: it is of another call.
    ///
    /// # Errors
    /// The pair of its query that is wrong, and what would be right.
    pub fn of(path: &str) -> Option<Result<PacedMessages, String>> {
        let call = path.split_once('?').map_or(path, |(call, _)| call);
        (call == BIDI_PATH).then(|| PacedMessages::read(path))
    }

    fn read(path: &str) -> Result<PacedMessages, String> {
        fn value<T>(path: &str, key: &str, rule: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, String> {
            let Some(text) = in_query(path, key) else { return Ok(None) };
            read(text).map(Some).ok_or_else(|| format!("{key}={text} of {BIDI_PATH}; expected: {rule}"))
        }
        let count = |text: &str| text.parse().ok().filter(|count| (1..=MOST_SENT as u32).contains(count));
        let every = |text: &str| match text.parse().ok()? {
            RandomDuration::Constant { s } if s <= 3600.0 => Some(Duration::from_secs_f64(s)),
            _ => None,
        };
        let size = |text: &str| {
            let ByteCount(size) = text.parse().ok()?;
            (LEAST_MESSAGE as u64..=64 << 10).contains(&size).then_some(size as usize)
        };
        let paced = PacedMessages {
            count: value(path, "requests", "1 to 10000", count)?.unwrap_or(16),
            every: value(path, "every", "one time, 0s to 1h", every)?.unwrap_or(Duration::from_millis(20)),
            size: value(path, "size", "85 to 64KiB", size)?.unwrap_or(200),
        };
        if u64::from(paced.count) * paced.size as u64 > MOST_SENT_BYTES {
            return Err(format!("{} messages of {} bytes; expected: at most 64 MiB in all", paced.count, paced.size));
        }
        Ok(paced)
    }

    /// A message of this size without a stamp: field 1 of Protocol Buffers, without the prefix of gRPC.
    fn example(self) -> Vec<u8> {
        let mut message = vec![0x0a];
        let mut left = self.size;
        while left >= 0x80 {
            message.push(left as u8 | 0x80);
            left >>= 7;
        }
        message.push(left as u8);
        message.resize(message.len() + self.size, b'-');
        message
    }

    /// From the first to the last, seconds.
    pub fn length_s(self) -> f64 {
        self.every.as_secs_f64() * f64::from(self.count - 1)
    }
}

/// The body of a request for a stream of completions in OpenAI's format, with a prompt of so many bytes.
pub fn chat_request(prompt: usize) -> Vec<u8> {
    let mut body = br#"{"model":"mock","stream":true,"messages":[{"role":"user","content":""#.to_vec();
    body.extend(b"What does a weir do? ".iter().cycle().take(prompt));
    body.extend_from_slice(br#""}]}"#);
    body
}

/// What became of the messages of a load's streams. Distributions are of what came in the window, whenever its stream began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageResult {
    /// From the time at which the sender sent a message, which is in it, to its arrival. Empty where sender and client have
    /// different clocks, and of messages without a stamp.
    pub delay: Quantiles,
    /// From each message's arrival to the next one's of its stream: of a language model the inter-token latency (ITL). The largest is the
    /// longest silence.
    pub gap: Quantiles,
    /// How late the sender was: due to sent, which is no fault of what is between.
    pub sender_lag: Quantiles,
    /// From a stream's request being due to its head.
    pub head: Quantiles,
    /// From a stream's request being due to its first message: of a language model the time to first token (TTFT).
    pub first_message: Quantiles,
    /// Of each whole stream of several messages, from its first to its last, divided by the gaps between them: of a language model the time
    /// per output token (TPOT).
    pub per_message: Quantiles,
    /// Counts of the window.
    pub window: MessageCounts,
    /// Counts of the client's whole life.
    pub total: MessageCounts,
    /// The streams that the client cancelled, as the origin saw them; origin and client have to read one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<Cancellation>,
    /// When the client cancelled which streams, up to 4,096 of each thread. Weir's runs compare them with the origin's, and leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled_at: Vec<StreamEnd>,
}

/// The end of a stream, as one side saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct StreamEnd {
    /// The number in its messages.
    pub stream: u64,
    /// When, nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
}

/// From the client's cancelling a stream in its middle until the origin sees its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cancellation {
    /// Streams that were looked for: those cancelled whose times were kept.
    pub cancelled: u64,
    /// Streams of these whose end the origin saw before their last message.
    pub seen: u64,
    /// Streams of these whose end it saw within [`Cancellation::WITHIN`].
    pub in_time: u64,
    /// The median time until it saw one, µs.
    pub p50_us: f64,
    /// The 99th percentile of these times, µs.
    pub p99_us: f64,
    /// The longest of these times, µs.
    pub max_us: f64,
}

impl Cancellation {
    /// A cancellation is passed on in time within this: as long as weir waits after a load until the origin is at rest.
    pub const WITHIN: Duration = Duration::from_secs(1);

    /// Adds that of another trial. Times are then those of the worse one.
    pub fn add(&mut self, other: &Cancellation) {
        self.cancelled += other.cancelled;
        self.seen += other.seen;
        self.in_time += other.in_time;
        self.p50_us = self.p50_us.max(other.p50_us);
        self.p99_us = self.p99_us.max(other.p99_us);
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Compares what both sides saw. A stream has as many ends at the origin as a connection has signs of it: the first counts.
    pub fn of(cancelled: &[StreamEnd], ended: &[StreamEnd]) -> Cancellation {
        let mut ended = ended.to_vec();
        ended.sort_unstable();
        let took = |one: &StreamEnd| {
            let first = ended.partition_point(|end| end.stream < one.stream);
            let end = ended.get(first).filter(|end| end.stream == one.stream)?;
            Some(end.at.saturating_sub(one.at) as f64 / 1e3)
        };
        let mut times: Vec<f64> = cancelled.iter().filter_map(took).collect();
        times.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * times.len() as f64).ceil() as usize;
            times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        let in_time = times.partition_point(|us| *us <= Cancellation::WITHIN.as_micros() as f64);
        Cancellation {
            cancelled: cancelled.len() as u64,
            seen: times.len() as u64,
            in_time: in_time as u64,
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: at(1.0),
        }
    }
}

/// Counts of messages and streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageCounts {
    /// Messages that came.
    pub received: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// Messages that were sent 1 ms or more after the one before, and came less than a quarter of that time after it: they
    /// came in one read with it.
    pub gathered: u64,
    /// Messages that came without a stamp, in a stream that had none before: another sender's.
    pub unstamped: u64,
    /// Messages that came otherwise than they were sent.
    pub altered: u64,
    /// Messages that did not come though later ones did.
    pub lost: u64,
    /// Messages that came again.
    pub doubled: u64,
    /// Messages that came after later ones.
    pub reordered: u64,
    /// Messages of another stream.
    pub foreign: u64,
    /// Streams whose head came.
    pub begun: u64,
    /// Of these, those whose head came in one read with a message.
    pub late_heads: u64,
    /// Messages that came in one read with the first of their stream, and these.
    pub first_reads: u64,
    /// Streams that ended with their last message.
    pub whole: u64,
    /// Streams that ended as if they were complete, and were not.
    pub cut_short: u64,
    /// Streams in which the sender said that it failed, after the head; of gRPC by a status that is not 0.
    pub failed: u64,
    /// Streams whose connection or HTTP/2 stream ended otherwise, or that were given up.
    pub aborted: u64,
    /// Streams that the client cancelled in their middle, as its load says.
    pub cancelled: u64,
}

impl MessageCounts {
    /// Adds those of another thread or client.
    pub fn add(&mut self, other: &MessageCounts) {
        self.received += other.received;
        self.bytes += other.bytes;
        self.gathered += other.gathered;
        self.unstamped += other.unstamped;
        self.altered += other.altered;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.reordered += other.reordered;
        self.foreign += other.foreign;
        self.begun += other.begun;
        self.late_heads += other.late_heads;
        self.first_reads += other.first_reads;
        self.whole += other.whole;
        self.cut_short += other.cut_short;
        self.failed += other.failed;
        self.aborted += other.aborted;
        self.cancelled += other.cancelled;
    }

    /// What is wrong with messages, by what it is; nothing where all came as they were sent.
    pub fn wrong(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("lost", self.lost),
            ("doubled", self.doubled),
            ("out of order", self.reordered),
            ("altered", self.altered),
            ("of another stream", self.foreign),
        ];
        all.into_iter().filter(|(_, n)| *n > 0)
    }

    /// Messages that came together, in the mean; 1 is one by one.
    pub fn a_read(&self) -> f64 {
        self.received as f64 / self.reads().max(1) as f64
    }

    fn reads(&self) -> u64 {
        self.received - self.gathered.min(self.received)
    }
}

/// What is between sender and client does to a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StreamVerdict {
    /// Messages go on one by one, as they come.
    Passes,
    /// So many messages go on together, in the mean. The first ones of a stream go on earlier.
    Coalesces(f64),
    /// Messages go on when so many bytes of them are there, in the mean; so do the first ones, which wait as long as any.
    Buffers(f64),
    /// Messages go on when the stream ends.
    BuffersAll,
}

/// Up to so many messages a read are one by one: now and then two come together by chance.
const ONE_BY_ONE: f64 = 1.1;

/// A first read with such a share of what a read has in the mean is as full as the others.
const AS_FULL: f64 = 0.75;

impl MessageResult {
    /// What was seen in the window; `None` where too little came.
    pub fn verdict(&self) -> Option<StreamVerdict> {
        let counts = &self.window;
        if counts.received == counts.unstamped || counts.begun == 0 {
            return None;
        }
        let together = counts.a_read();
        Some(if together < ONE_BY_ONE {
            StreamVerdict::Passes
        } else if (counts.first_reads as f64) < AS_FULL * together * counts.begun as f64 {
            StreamVerdict::Coalesces(together)
        } else if counts.reads() as f64 <= ONE_BY_ONE * counts.begun as f64 {
            StreamVerdict::BuffersAll
        } else {
            StreamVerdict::Buffers(counts.bytes as f64 / counts.reads().max(1) as f64)
        })
    }
}

impl fmt::Display for StreamVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamVerdict::Passes => f.write_str("passes"),
            StreamVerdict::Coalesces(messages) => write!(f, "coalesces ({messages:.1} messages a read)"),
            StreamVerdict::Buffers(bytes) => write!(f, "buffers (until {})", human_bytes(*bytes)),
            StreamVerdict::BuffersAll => f.write_str("buffers (until the end)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_call_that_goes_both_ways_are_told_by_its_path() {
        let of = |query: &str| PacedMessages::of(&format!("{BIDI_PATH}{query}")).expect("such a call");
        let every = Duration::from_millis(20);
        assert_eq!(of(""), Ok(PacedMessages { count: 16, every, size: 200 }));
        let found = of("?requests=3&every=1s&size=1KiB&x=1");
        assert_eq!(found, Ok(PacedMessages { count: 3, every: Duration::from_secs(1), size: 1024 }));
        assert_eq!(found.map(PacedMessages::length_s), Ok(2.0));
        for (query, words) in [
            ("?requests=0", "requests=0 of /weir.Echo/Bidi; expected: 1 to 10000"),
            ("?every=1ms..2ms", "every=1ms..2ms of /weir.Echo/Bidi; expected: one time, 0s to 1h"),
            ("?size=84", "size=84 of /weir.Echo/Bidi; expected: 85 to 64KiB"),
            ("?requests=10000&size=64KiB", "10000 messages of 65536 bytes; expected: at most 64 MiB in all"),
        ] {
            assert_eq!(of(query), Err(words.to_owned()), "{query}");
        }
        assert_eq!(PacedMessages::of("/weir.Echo/Unary?requests=0"), None);
        // A request in one piece is as large: of each message the prefix, the key, its length and the stamped text.
        for (query, bytes) in [("", 16 * (5 + 3 + 200)), ("?requests=3&size=100", 3 * (5 + 2 + 100))] {
            let whole = StreamKind::Grpc.dressed(&Request::get(&format!("{BIDI_PATH}{query}")), None);
            assert_eq!(whole.body.len(), bytes, "{query}");
        }
    }

    #[test]
    fn a_cancellation_is_over_when_the_origin_first_sees_it() {
        let at = |stream, ms: u64| StreamEnd { stream, at: ms * 1_000_000 };
        let cancelled = [at(7, 100), at(5, 100), at(9, 100), at(11, 100)];
        // One ended twice, one too late, one never, and one nobody cancelled.
        let found = Cancellation::of(&cancelled, &[at(5, 104), at(5, 102), at(7, 101), at(9, 1_101), at(8, 3)]);
        let wanted = Cancellation { cancelled: 4, seen: 3, in_time: 2, p50_us: 2e3, p99_us: 1.001e6, max_us: 1.001e6 };
        assert_eq!(found, wanted);
        assert_eq!(Cancellation::of(&[], &[at(5, 104)]), Cancellation::default());
    }

    #[test]
    fn a_verdict_follows_from_how_messages_come() {
        let of = |gathered, first_reads| {
            let window = MessageCounts {
                received: 640,
                bytes: 128_000,
                gathered,
                first_reads,
                begun: 10,
                whole: 10,
                ..MessageCounts::default()
            };
            MessageResult { window, ..MessageResult::default() }.verdict().expect("enough came").to_string()
        };
        assert_eq!(of(0, 10), "passes");
        assert_eq!(of(10, 11), "passes");
        assert_eq!(of(570, 10), "coalesces (9.1 messages a read)");
        assert_eq!(of(570, 30), "coalesces (9.1 messages a read)");
        assert_eq!(of(600, 170), "buffers (until 3.13 KiB)");
        assert_eq!(of(630, 640), "buffers (until the end)");
        assert_eq!(MessageResult::default().verdict(), None);
        let unstamped = MessageCounts { received: 5, unstamped: 5, begun: 1, ..MessageCounts::default() };
        assert_eq!(MessageResult { window: unstamped, ..MessageResult::default() }.verdict(), None);
    }
}
