//! Streams, message by message: what a relay does to them is found, to the nanosecond, and the mean gap does not show it.

use weir_model::counters::OriginCounters;
use weir_model::load::*;
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_net::sim::{Link, NodeOptions, World};
use weir_origin::Options;
use weir_world::engine::{SimOrigin, address, run_load};
use weir_world::relay::{Relay, RelayFault};

const MS: u64 = 1_000_000;

/// From each host to the next.
const LATENCY: u64 = MS;

const MODEL: &str = "/stream?messages=64&every=20ms&size=200&first=200ms";

/// A load of streams for three seconds, behind a relay if one is given.
fn run_with(relay: Option<RelayFault>, path: &str, change: impl FnOnce(&mut LoadSpec)) -> LoadResult {
    run_before(relay, path, change).0
}

/// The same, with the counters of the origin behind it.
fn run_before(
    relay: Option<RelayFault>,
    path: &str,
    change: impl FnOnce(&mut LoadSpec),
) -> (LoadResult, OriginCounters) {
    let world = World::new(1);
    world.set_default_link(Link { latency: LATENCY, ..Link::default() });
    let origin = SimOrigin::start(&world, Options::default(), NodeOptions::default()).unwrap();
    let mut target = origin.addresses[0];
    if let Some(fault) = relay {
        let mut driver = world.driver("relay");
        let listener = world.listen(address("127.0.0.1:81"), 100, false).unwrap();
        target = listener.address().tcp().unwrap();
        weir_net::Driver::listen(&mut driver, listener).unwrap();
        world.add_task(driver, Box::new(Relay::new(origin.addresses[0].into(), fault)));
    }
    let mut spec = LoadSpec {
        stream: Some(StreamSpec { kind: StreamKind::Sse, one_clock: true }),
        connections: 4,
        duration_s: 3.0,
        ..LoadSpec::new(Target::tcp(target, "localhost"), Request::get(path), Expect::default())
    };
    change(&mut spec);
    let result = run_load(&world, &spec).unwrap();
    (result, origin.handle.counters())
}

fn run(relay: Option<RelayFault>) -> (LoadResult, MessageResult) {
    let result = run_with(relay, MODEL, |_| ());
    let messages = result.messages.clone().expect("streams");
    (result, messages)
}

fn verdict(messages: &MessageResult) -> String {
    messages.verdict().expect("enough came").to_string()
}

/// Within the precision of a histogram.
fn near(us: f64, wanted: f64) -> bool {
    (us - wanted).abs() <= wanted / 1_000.0 + 1.0
}

#[test]
fn a_direct_stream_has_exact_times() {
    for protocol in [LoadProtocol::Http1 { pipeline: 1 }, LoadProtocol::Http2 { streams: 4 }] {
        let result = run_with(None, MODEL, |spec| spec.protocol = protocol);
        let streams = u64::from(4 * protocol.streams());
        let messages = result.messages.expect("streams");
        assert!(
            [messages.delay.min_us, messages.delay.max_us].iter().all(|us| near(*us, 1_000.0)),
            "{:?}",
            messages.delay
        );
        assert_eq!(messages.sender_lag.max_us, 0.0);
        assert!(near(messages.head.p50_us, 2_000.0) && near(messages.first_message.p50_us, 202_000.0));
        assert!(near(messages.gap.min_us, 20_000.0) && near(messages.gap.max_us, 20_000.0), "{:?}", messages.gap);
        // A stream takes 202 ms and 63 gaps; the third of each is waited for after the window.
        let whole = 64 * streams;
        let total = MessageCounts { received: 3 * whole, bytes: 3 * whole * 200, ..MessageCounts::default() };
        let total = MessageCounts { begun: 3 * streams, whole: 3 * streams, first_reads: 3 * streams, ..total };
        assert_eq!((messages.total, verdict(&messages).as_str()), (total, "passes"));
        // 202 ms before the first message of each: 2,924 ms have two streams of 1,464 ms.
        assert_eq!((messages.window.begun, messages.window.whole), (3 * streams, 2 * streams));
        let window = &result.window;
        assert_eq!((window.due, window.successful, window.error_count()), (3 * streams, 3 * streams, 0));
        assert!(near(result.latency.p50_us, 1_462_000.0), "{:?}", result.latency);
    }
}

#[test]
fn a_relay_that_gathers_has_a_perfect_mean_gap_and_is_found_all_the_same() {
    let (_, honest) = run(Some(RelayFault::None));
    assert_eq!(verdict(&honest), "passes");
    assert!(near(honest.delay.p50_us, 2_000.0) && near(honest.delay.max_us, 2_000.0), "{:?}", honest.delay);

    let (result, gathered) = run(Some(RelayFault::Gather(200 * MS)));
    assert!((gathered.gap.mean_us / honest.gap.mean_us - 1.0).abs() < 0.02, "{:?}", gathered.gap);
    // The head leaves at once; messages leave every 200 ms, ten at a time: the oldest is then 180 ms old.
    assert_eq!(verdict(&gathered), "coalesces (8.0 messages a read)");
    assert!(near(gathered.delay.max_us, 182_000.0) && near(gathered.delay.min_us, 2_000.0), "{:?}", gathered.delay);
    assert!(near(gathered.first_message.p50_us, honest.first_message.p50_us));
    assert_eq!(result.window.error_count(), 0, "slow is not wrong");
}

#[test]
fn a_relay_that_buffers_holds_the_first_message_and_the_head() {
    // A message with its frame takes 214 bytes: 20 of them and the head are above 4 KiB.
    let (result, buffered) = run(Some(RelayFault::Buffer(4096)));
    assert!(verdict(&buffered).starts_with("buffers (until 3."), "{}", verdict(&buffered));
    assert!(buffered.first_message.p50_us > 500_000.0 && buffered.delay.p50_us > 150_000.0, "{buffered:?}");
    assert_eq!(buffered.window.late_heads, buffered.window.begun, "{:?}", buffered.window);
    assert_eq!(result.window.error_count(), 0);

    let (_, all) = run(Some(RelayFault::Buffer(1 << 20)));
    assert_eq!(verdict(&all), "buffers (until the end)");
}

#[test]
fn gathering_is_seen_in_http2_and_without_a_common_clock() {
    let result = run_with(Some(RelayFault::Gather(100 * MS)), MODEL, |spec| {
        spec.protocol = LoadProtocol::Http2 { streams: 1 };
        spec.stream = Some(StreamSpec { kind: StreamKind::Sse, one_clock: false });
    });
    let messages = result.messages.expect("streams");
    assert!(verdict(&messages).starts_with("coalesces (4."), "{}", verdict(&messages));
    assert_eq!(messages.delay.count, 0, "the sender's clock says nothing here");
}

#[test]
fn what_becomes_of_a_message_on_the_way_is_found() {
    for (fault, count, words) in CHANGED_MESSAGES {
        let (result, messages) = run(Some(fault));
        let streams = messages.total.begun;
        assert_eq!((streams, count(&messages.total)), (12, 12), "{fault:?}: {:?}", messages.total);
        let wrong: u64 = messages.total.wrong().map(|(_, n)| n).sum();
        assert_eq!(wrong, streams, "nothing else is wrong: {:?}", messages.total);
        assert_eq!(result.total.errors, [(ErrorKind::WrongBody, streams)].into());
        assert!(result.reasons[0].reason.contains(words), "{:?}", result.reasons);
        assert_eq!(result.rate, 0.0, "no stream of them is successful");
    }
}

#[test]
fn an_abort_is_an_error_and_one_that_becomes_a_clean_end_is_found() {
    for fault in ["reset=middle", "close"] {
        let path = format!("{MODEL}&fault={fault}");
        let of = |relay| {
            let result = run_with(relay, &path, |_| ());
            (result.total.errors.keys().copied().collect::<Vec<_>>(), result.messages.expect("streams").total)
        };
        for relay in [None, Some(RelayFault::None)] {
            let (errors, messages) = of(relay);
            assert_eq!(errors, [ErrorKind::Truncated], "{fault}");
            assert_eq!((messages.aborted, messages.cut_short, messages.whole), (messages.begun, 0, 0), "{fault}");
            assert_eq!(messages.received, 32 * messages.begun, "half of each: {messages:?}");
        }
        let (errors, messages) = of(Some(RelayFault::EndCleanly));
        // The relay closes behind the stream, and now and then the next request is under way.
        assert!(errors.contains(&ErrorKind::WrongBody) && !errors.contains(&ErrorKind::Truncated), "{errors:?}");
        assert_eq!((messages.aborted, messages.cut_short, messages.whole), (0, messages.begun, 0), "{fault}");
    }
}

#[test]
fn a_stream_that_stops_is_given_up_after_its_silence_and_a_long_one_is_not() {
    let silent = |timeout_s| {
        run_with(None, "/stream?messages=4&every=3s&first=2s", |spec| {
            (spec.timeout_s, spec.duration_s) = (timeout_s, 20.0)
        })
    };
    let result = silent(4.0);
    assert_eq!(result.total.error_count(), 0, "a stream takes 11 s, and no silence more than 3 s: {:?}", result.total);
    assert!(near(result.messages.expect("streams").gap.max_us, 3_000_000.0));
    let result = silent(2.5);
    assert_eq!(result.total.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::Timeout]);
    let result = run_with(None, &format!("{MODEL}&fault=stall"), |spec| spec.timeout_s = 1.0);
    let messages = result.messages.expect("streams").total;
    assert_eq!((messages.aborted, messages.received), (messages.begun, 32 * messages.begun));
}

#[test]
fn what_is_no_stream_is_an_error_that_says_so() {
    let result = run_with(None, "/bytes/100", |_| ());
    assert_eq!(result.window.successful, 0);
    assert_eq!(result.reasons[0].reason, "another content type; expected: text/event-stream");
    let result = run_with(None, "/status/503", |_| ());
    assert_eq!(result.window.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::BadStatus]);
}

const CHAT: &str = "/v1/chat/completions?messages=64&every=20ms&size=200&first=200ms";

/// A load of a language model's completions, behind a relay if one is given.
fn complete(relay: Option<RelayFault>, path: &str, prompt: usize) -> LoadResult {
    run_with(relay, path, |spec| {
        spec.stream = Some(StreamSpec { kind: StreamKind::OpenAi, one_clock: true });
        let request = &mut spec.requests[0].request;
        (request.method, request.body) = ("POST".to_owned(), chat_request(prompt));
    })
}

#[test]
fn tokens_of_a_language_model_have_their_times_and_delays() {
    for prompt in [1 << 10, 400 << 10] {
        let result = complete(None, CHAT, prompt);
        let messages = result.messages.expect("streams");
        assert_eq!(result.total.error_count(), 0, "{:?}", result.reasons);
        assert_eq!((messages.total.received, messages.total.whole), (64 * 12, 12), "{:?}", messages.total);
        assert_eq!((messages.total.unstamped, messages.total.begun), (0, 12));
        let first = &messages.first_message;
        // A long prompt takes more round trips, as the window grows.
        let most_us = if prompt < 10_000 { 202_300.0 } else { 212_000.0 };
        assert!((201_900.0..most_us).contains(&first.p50_us), "{first:?}");
        assert!(near(messages.per_message.p50_us, 20_000.0) && near(messages.gap.max_us, 20_000.0));
        assert!(near(messages.delay.max_us, 1_000.0), "{:?}", messages.delay);
    }
    // Without the wish for a stream, all comes at once, and is no stream.
    let result = run_with(None, CHAT, |spec| {
        spec.stream = Some(StreamSpec { kind: StreamKind::OpenAi, one_clock: true });
    });
    assert_eq!(result.reasons[0].reason, "another content type; expected: text/event-stream");
    let result = run_with(None, CHAT, |spec| spec.stream = None);
    assert!(near(result.latency.p50_us, 2_000.0) && result.total.error_count() == 0, "{:?}", result.latency);
}

#[test]
fn a_mean_gap_of_tokens_hides_what_their_delay_shows() {
    let (honest, gathered) =
        (complete(Some(RelayFault::None), CHAT, 1_024), complete(Some(RelayFault::Gather(200 * MS)), CHAT, 1_024));
    let [honest, gathered] = [honest, gathered].map(|result| result.messages.expect("streams"));
    let ratio = gathered.per_message.p50_us / honest.per_message.p50_us;
    assert!((ratio - 1.0).abs() < 0.1, "TPOT: {:?} {:?}", gathered.per_message, honest.per_message);
    assert!(gathered.delay.p50_us > 20.0 * honest.delay.p50_us, "{:?} {:?}", gathered.delay, honest.delay);
    assert!(verdict(&gathered).starts_with("coalesces") && verdict(&honest) == "passes");
    for (fault, words) in [(RelayFault::Drop(7), "are missing"), (RelayFault::Alter(7), "were altered")] {
        let result = complete(Some(fault), CHAT, 1_024);
        assert!(result.reasons[0].reason.contains(words), "{fault:?}: {:?}", result.reasons);
    }
}

#[test]
fn a_failure_after_the_head_is_one_although_the_status_is_200() {
    let result = complete(None, &format!("{CHAT}&fault=error"), 1_024);
    let messages = result.messages.expect("streams").total;
    assert_eq!((messages.failed, messages.whole, messages.cut_short), (messages.begun, 0, 0));
    assert_eq!((messages.received, messages.begun > 0), (32 * messages.begun, true), "half of each");
    assert_eq!(result.total.errors, [(ErrorKind::WrongBody, messages.begun)].into());
    assert_eq!(result.reasons[0].reason, "the stream says that its sender failed");
    // An abort in the middle is none of the sender's words.
    let result = complete(None, &format!("{CHAT}&fault=reset=middle"), 1_024);
    assert_eq!(result.total.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::Truncated]);
}

/// A load of calls of gRPC, behind a relay if one is given.
fn call(relay: Option<RelayFault>, path: &str, change: impl FnOnce(&mut LoadSpec)) -> LoadResult {
    run_with(relay, path, |spec| {
        spec.protocol = LoadProtocol::Http2 { streams: 1 };
        spec.stream = Some(StreamSpec { kind: StreamKind::Grpc, one_clock: true });
        change(spec);
        let timeout = std::time::Duration::from_secs_f64(spec.timeout_s);
        spec.requests[0].request = StreamKind::Grpc.dressed(&spec.requests[0].request, Some(timeout));
    })
}

const RESPONSES: &str = "/weir.Echo/ServerStream?messages=64&every=20ms&size=200&first=200ms";

#[test]
fn calls_have_their_messages_and_their_status() {
    let result = call(None, RESPONSES, |_| ());
    let messages = result.messages.expect("streams");
    assert_eq!((result.total.error_count(), messages.total.received, messages.total.whole), (0, 64 * 12, 12));
    assert!(near(messages.delay.max_us, 1_000.0) && near(messages.first_message.p50_us, 202_000.0));
    // A unary call is a stream of one message, and its latency is a round trip.
    let result = call(None, "/weir.Echo/Unary?size=30000", |spec| spec.requests[0].request.body = vec![7; 1_000]);
    let messages = result.messages.expect("streams");
    assert_eq!((result.total.error_count(), messages.total.received), (0, messages.total.whole));
    assert!(messages.total.whole > 4_000 && near(result.latency.p50_us, 2_000.0), "{:?}", result.latency);
    // The response comes behind the last of the client's messages.
    let path = "/weir.Echo/ClientStream?requests=16&size=128";
    let mut sent = 0;
    let result = call(None, path, |spec| {
        spec.requests[0].request.body = vec![7; 1_000];
        sent = StreamKind::Grpc.dressed(&spec.requests[0].request, None).body.len();
    });
    assert_eq!((sent, result.total.error_count()), (16 * 1_005, 0));
    assert_eq!(result.request_body_bytes, Some(result.total.sent * 16 * 1_005));
}

const BIDI: &str = "/weir.Echo/Bidi?requests=20&every=20ms&size=300";

#[test]
fn messages_of_a_call_that_go_both_ways_are_paced_by_the_client_and_come_back() {
    for ids in [None, Some(RequestIds::new("x-weir-id".into(), 1, true))] {
        let result = call(None, BIDI, |spec| {
            (spec.protocol, spec.request_ids) = (LoadProtocol::Http2 { streams: 4 }, ids);
        });
        let messages = result.messages.expect("streams");
        // The first is sent with its request, the last 380 ms later, and the status comes 2 ms behind it.
        assert!(
            near(result.latency.min_us, 382_000.0) && near(result.latency.max_us, 382_000.0),
            "{:?}",
            result.latency
        );
        assert!(near(messages.delay.min_us, 2_000.0) && near(messages.delay.max_us, 2_000.0), "{:?}", messages.delay);
        assert!(near(messages.gap.max_us, 20_000.0) && near(messages.first_message.max_us, 2_000.0));
        // 7 whole ones of each of 16 streams in 3 s, and one that is waited for.
        let total = MessageCounts { received: 8 * 16 * 20, bytes: 8 * 16 * 20 * 300, ..MessageCounts::default() };
        // The head comes with the first message, which left with the request.
        let total = MessageCounts { begun: 8 * 16, whole: 8 * 16, ..total };
        let total = MessageCounts { first_reads: 8 * 16, late_heads: 8 * 16, ..total };
        assert_eq!((messages.total, result.total.error_count()), (total, 0), "{:?}", result.reasons);
        assert_eq!((messages.sender_lag.max_us, result.request_body_bytes), (0.0, None));
        // What comes back to a request in one piece, with which products are verified, has the same size.
        let whole = StreamKind::Grpc.dressed(&Request::get(BIDI), None).body.len() as u64;
        assert_eq!(result.total.body_bytes, result.total.successful * whole);
    }
}

/// A count of messages.
type Count = fn(&MessageCounts) -> u64;

/// An act of a relay upon messages, the count that has to show it, and words of the reason.
const CHANGED_MESSAGES: [(RelayFault, Count, &str); 4] = [
    (RelayFault::Drop(7), |counts| counts.lost, "are missing"),
    (RelayFault::Double(7), |counts| counts.doubled, "came twice"),
    (RelayFault::Delay(7), |counts| counts.reordered, "in another order"),
    (RelayFault::Alter(7), |counts| counts.altered, "were altered"),
];

#[test]
fn what_becomes_of_a_message_that_goes_both_ways_is_found() {
    for (fault, count, words) in CHANGED_MESSAGES {
        let result = call(Some(fault), BIDI, |_| ());
        let messages = result.messages.expect("streams").total;
        assert!(messages.begun > 20 && count(&messages) == messages.begun, "{fault:?}: {messages:?}");
        assert_eq!(result.total.errors, [(ErrorKind::WrongBody, messages.begun)].into(), "{fault:?}");
        assert!(result.reasons[0].reason.contains(words), "{:?}", result.reasons);
    }
    let result = call(Some(RelayFault::Gather(100 * MS)), BIDI, |_| ());
    let messages = result.messages.expect("streams");
    // Nothing but what has the first message goes on earlier.
    assert!(verdict(&messages).starts_with("buffers (until 1."), "{}", verdict(&messages));
    assert!(messages.delay.max_us > 50_000.0, "{:?}", messages.delay);
    // A call that is over before its client has sent all ends so, and no message follows it.
    let result = call(None, BIDI, |spec| spec.timeout_s = 0.09);
    assert_eq!(result.reasons[0].reason, "grpc-status 4 DEADLINE_EXCEEDED", "{:?}", result.reasons);
    let messages = result.messages.expect("streams").total;
    assert_eq!((messages.failed, messages.received), (messages.begun, 5 * messages.begun), "{messages:?}");
    let result = call(None, &format!("{BIDI}&fault=status=503"), |spec| spec.duration_s = 0.1);
    assert_eq!(result.total.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::BadStatus]);
}

#[test]
fn a_stream_that_the_client_cancels_ends_at_the_origin_in_time() {
    let http2 = LoadProtocol::Http2 { streams: 4 };
    let cases = [
        (MODEL, StreamKind::Sse, LoadProtocol::Http1 { pipeline: 1 }),
        (MODEL, StreamKind::Sse, http2),
        (RESPONSES, StreamKind::Grpc, http2),
        (BIDI, StreamKind::Grpc, http2),
    ];
    for (path, kind, protocol) in cases {
        let ids = || RequestIds::new("x-weir-id".into(), 1, true);
        let (result, counters) = run_before(Some(RelayFault::None), path, |spec| {
            (spec.protocol, spec.cancel_each, spec.request_ids) = (protocol, Some(3), Some(ids()));
            spec.stream = Some(StreamSpec { kind, one_clock: true });
            spec.requests[0].request = kind.dressed(&spec.requests[0].request, None);
        });
        let messages = result.messages.expect("streams");
        let total = messages.total;
        assert_eq!((result.total.error_count(), total.cancelled), (0, total.begun / 3), "{path}: {total:?}");
        assert_eq!((total.whole + total.cancelled, total.aborted), (total.begun, 0), "{path}: {total:?}");
        assert!(total.cancelled > 3 && result.total.successful == total.begun, "{path}: {total:?}");
        let of = if kind == StreamKind::Grpc && path == BIDI { 20 } else { 64 };
        assert_eq!(total.received, total.whole * of + total.cancelled * of / 2, "{path}: half of each: {total:?}");
        let seen = Cancellation::of(&messages.cancelled_at, &counters.ended_early);
        // From the client to the relay, and on to the origin.
        let all = (total.cancelled, total.cancelled, total.cancelled);
        assert_eq!((seen.cancelled, seen.seen, seen.in_time), all, "{path}");
        assert_eq!((seen.p50_us, seen.max_us), (2_000.0, 2_000.0), "{path}: {seen:?}");
    }
    // A relay that reads on has the origin send all of each.
    let (result, counters) = run_before(Some(RelayFault::Keep), MODEL, |spec| spec.cancel_each = Some(3));
    let messages = result.messages.expect("streams");
    let seen = Cancellation::of(&messages.cancelled_at, &counters.ended_early);
    assert_eq!((seen.cancelled, seen.seen), (messages.total.cancelled, 0), "{seen:?}");
    assert_eq!((messages.total.cancelled, counters.answered), (messages.total.begun / 3, counters.requests));
}

#[test]
fn a_status_that_is_not_0_is_an_error_although_http_says_200() {
    let said = |path: &str| {
        let result = call(None, path, |_| ());
        assert_eq!(result.total.statuses.keys().copied().collect::<Vec<_>>(), [200], "{path}");
        assert_eq!((result.total.successful, result.rate), (0, 0.0), "{path}");
        let kinds: Vec<ErrorKind> = result.total.errors.keys().copied().collect();
        (kinds, result.reasons[0].reason.clone(), result.messages.expect("streams").total)
    };
    for (path, words, received) in [
        // In the head alone, and behind half of the messages.
        ("/weir.Echo/Unary?code=14", "grpc-status 14 UNAVAILABLE", 0),
        (&format!("{RESPONSES}&fault=error"), "grpc-status 13 INTERNAL", 32),
        ("/weir.Echo/Unary?fault=error", "grpc-status 13 INTERNAL", 0),
    ] {
        let (kinds, reason, messages) = said(path);
        assert_eq!((kinds, reason.as_str()), (vec![ErrorKind::BadStatus], words), "{path}");
        assert_eq!((messages.failed, messages.whole), (messages.begun, 0), "{path}");
        assert_eq!(messages.received, received * messages.begun, "{path}");
    }
    // HTTP's own status counts as well, and so does a response that is none of gRPC.
    let result = call(None, "/weir.Echo/Unary?fault=status=503", |_| ());
    assert_eq!(result.total.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::BadStatus]);
    let result = call(None, "/bytes/100", |_| ());
    assert_eq!(result.reasons[0].reason, "another content type; expected: application/grpc");
}

#[test]
fn a_deadline_is_passed_on_and_kept() {
    let result = call(None, RESPONSES, |spec| spec.timeout_s = 0.6);
    let messages = result.messages.expect("streams").total;
    // The call takes 1.46 s. The origin gets it 1 ms late: messages from 201 ms to 581 ms, and the status after 601 ms.
    assert_eq!(result.reasons[0].reason, "grpc-status 4 DEADLINE_EXCEEDED");
    assert_eq!((messages.received, messages.failed), (21 * messages.begun, messages.begun), "{messages:?}");
}

#[test]
fn what_becomes_of_a_message_of_a_call_is_found() {
    for (fault, count, words) in CHANGED_MESSAGES {
        let result = call(Some(fault), RESPONSES, |_| ());
        let messages = result.messages.expect("streams").total;
        assert_eq!((messages.begun, count(&messages)), (12, 12), "{fault:?}: {messages:?}");
        assert_eq!(result.total.errors, [(ErrorKind::WrongBody, 12)].into(), "{fault:?}");
        assert!(result.reasons[0].reason.contains(words), "{:?}", result.reasons);
    }
    let result = call(Some(RelayFault::Gather(100 * MS)), RESPONSES, |_| ());
    assert!(verdict(&result.messages.expect("streams")).starts_with("coalesces"));
}

/// A load of messages of WebSocket, behind a relay if one is given.
fn exchange(relay: Option<RelayFault>, path: &str, change: impl FnOnce(&mut LoadSpec)) -> LoadResult {
    run_with(relay, path, |spec| {
        spec.stream = Some(StreamSpec { kind: StreamKind::WebSocket, one_clock: true });
        change(spec);
        let one = &mut spec.requests[0];
        one.request = StreamKind::WebSocket.dressed(&one.request, None);
        one.expect = StreamKind::WebSocket.expected(one.expect.clone());
    })
}

#[test]
fn messages_of_websocket_come_back_in_a_round_trip() {
    for (size, relay, us) in [(0, None, 2_000.0), (1_000, Some(RelayFault::None), 4_000.0), (70_000, None, 2_000.0)] {
        let result = exchange(relay, "/ws", |spec| {
            spec.requests[0].request.body = vec![0; size];
            // A mask costs a test build some time.
            spec.duration_s = if size > 10_000 { 0.1 } else { 1.0 };
        });
        assert_eq!((result.total.error_count(), result.connections_used), (0, 4), "{:?}", result.reasons);
        assert!(near(result.latency.min_us, us) && near(result.latency.max_us, us), "{:?}", result.latency);
        assert_eq!(result.total.statuses.keys().copied().collect::<Vec<_>>(), [101]);
        assert_eq!(result.total.body_bytes, result.total.successful * size.max(LEAST_MESSAGE) as u64);
        assert_eq!(result.messages, None, "each is a response of its own");
    }
    // At a rate, whatever comes back, and several at a time on each connection.
    let result = exchange(None, "/ws", |spec| {
        spec.kind = LoadKind::<OfferedRate>::open(4_000.0, Arrivals::Constant);
        spec.protocol = LoadProtocol::Http1 { pipeline: 8 };
    });
    assert_eq!((result.window.due, result.window.successful), (12_000, 12_000), "{:?}", result.reasons);
    assert!(near(result.latency.max_us, 2_000.0), "{:?}", result.latency);
}

#[test]
fn a_broadcast_is_complete_when_it_has_come_to_the_last_connection() {
    let broadcast = |relay, change: fn(&mut LoadSpec)| {
        exchange(relay, "/ws?broadcast=1", |spec| {
            spec.stream = Some(StreamSpec { kind: StreamKind::Broadcast, one_clock: true });
            spec.kind = LoadKind::<OfferedRate>::open(100.0, Arrivals::Constant);
            (spec.connections, spec.threads, spec.timeout_s) = (70, 1, 1.0);
            change(spec);
        })
    };
    for (relay, change, us) in [
        (None, (|_| ()) as fn(&mut LoadSpec), 2_000.0),
        (Some(RelayFault::None), |_| (), 4_000.0),
        // All send: each connection gets a message of each.
        (None, |spec| spec.kind = LoadKind::Closed, 2_000.0),
    ] {
        let result = broadcast(relay, change);
        assert_eq!((result.total.error_count(), result.connections_used), (0, 70), "{:?}", result.reasons);
        assert!(near(result.latency.min_us, us) && near(result.latency.max_us, us), "{:?}", result.latency);
    }
    for (fault, kind, words) in [
        (RelayFault::Alter(7), ErrorKind::Protocol, Some("a message was altered")),
        (RelayFault::Double(7), ErrorKind::Protocol, Some("a message that came twice")),
        (RelayFault::Drop(7), ErrorKind::Timeout, None),
    ] {
        let result = broadcast(Some(fault), |_| ());
        assert!(result.total.errors.contains_key(&kind), "{fault:?}: {:?}", result.total.errors);
        let said = result.reasons.iter().find(|one| words.is_some_and(|words| one.reason.contains(words)));
        assert_eq!(said.is_some(), words.is_some(), "{fault:?}: {:?}", result.reasons);
    }
}

#[test]
fn what_becomes_of_a_message_of_websocket_is_found() {
    for (fault, kinds, words) in [
        (RelayFault::Alter(7), &[ErrorKind::WrongBody][..], "a message was altered"),
        (RelayFault::Delay(7), &[ErrorKind::WrongBody], "a message came before an earlier one"),
        (RelayFault::Double(7), &[ErrorKind::Protocol], "a message that came twice"),
        // It is known to be missing when a later one has come, and given up in the end.
        (RelayFault::Drop(7), &[ErrorKind::WrongBody, ErrorKind::Timeout], "or that is lost"),
    ] {
        let result = exchange(Some(fault), "/ws", |spec| {
            spec.protocol = LoadProtocol::Http1 { pipeline: 4 };
            spec.timeout_s = 1.0;
        });
        let found: Vec<ErrorKind> = result.total.errors.keys().copied().collect();
        assert!(kinds.iter().all(|kind| found.contains(kind)), "{fault:?}: {:?}", result.total.errors);
        assert!(result.reasons.iter().any(|one| one.reason.contains(words)), "{fault:?}: {:?}", result.reasons);
        assert!(result.total.successful > 1_000, "{fault:?}: the others are well");
    }
}

#[test]
fn a_close_that_cuts_messages_off_is_told_by_its_code() {
    // The origin closes each connection after 100 messages, and the next goes on. The message that left meanwhile is cut off.
    for (pipeline, code) in [(1, 1001), (8, 4000)] {
        let result = exchange(None, &format!("/ws?messages=100&code={code}"), |spec| {
            spec.protocol = LoadProtocol::Http1 { pipeline };
            spec.duration_s = 0.5;
        });
        assert_eq!(result.total.errors.keys().copied().collect::<Vec<_>>(), [ErrorKind::ClosedEarly]);
        assert_eq!(result.reasons[0].reason, format!("the peer closed the WebSocket with code {code}"));
        assert!(result.connections_used > 4 && result.window.successful > 500, "{}", result.connections_used);
    }
}

#[test]
fn an_upgrade_for_each_message_is_closed_with_a_code_both_ways() {
    let upgrading = |relay, path: &str, change: fn(&mut LoadSpec)| {
        run_before(relay, path, |spec| {
            spec.stream = Some(StreamSpec { kind: StreamKind::WebSocket, one_clock: true });
            (spec.connection_close, spec.duration_s) = (true, 1.0);
            change(spec);
            let one = &mut spec.requests[0];
            one.request = StreamKind::WebSocket.dressed(&one.request, None);
            one.expect = StreamKind::WebSocket.expected(one.expect.clone());
        })
    };
    let open = |spec: &mut LoadSpec| {
        spec.kind = LoadKind::<OfferedRate>::open(200.0, Arrivals::Constant);
        spec.connections = 40;
    };
    for (relay, change, round_trip) in
        [(None, (|_| ()) as fn(&mut LoadSpec), 2_000.0), (None, open, 2_000.0), (Some(RelayFault::None), open, 4_000.0)]
    {
        let (result, counters) = upgrading(relay, "/ws", change);
        let (successful, total) = (result.total.successful, &result.total);
        assert_eq!((total.error_count(), total.sent), (0, successful), "{:?}", result.reasons);
        assert!(successful >= 200 && result.connections_used == successful, "{total:?}");
        // A closed load has opened one more when it ends.
        assert_eq!(counters.close_codes, [("1000".to_owned(), total.connections)].into());
        // The connection, the upgrade, the message and the close frames take a round trip each.
        let latency = &result.latency;
        assert!((3.0 * round_trip..4.5 * round_trip).contains(&latency.p50_us), "{round_trip}: {latency:?}");
    }
    // The origin closes behind the message with a code of its own, before the client's close frame comes.
    let (result, _) = upgrading(None, "/ws?messages=1&code=4000", |_| ());
    assert_eq!((result.total.successful, result.reasons[0].kind), (0, ErrorKind::Protocol), "{:?}", result.reasons);
    assert_eq!(result.reasons[0].reason, "a close frame with code 1000 came back with code 4000");
}

#[test]
fn streams_may_be_opened_at_a_rate_and_carry_their_requests_id() {
    let result = run_with(None, MODEL, |spec| {
        spec.kind = LoadKind::<OfferedRate>::open(10.0, Arrivals::Constant);
        spec.connections = 40;
        spec.request_ids = Some(RequestIds::new("x-weir-id".into(), 1, true));
    });
    let messages = result.messages.expect("streams");
    assert_eq!((messages.total.begun, messages.total.foreign, result.total.error_count()), (30, 0, 0));
    assert!(near(messages.first_message.max_us, 202_000.0));
    assert_eq!(result.request_ids.expect("they have IDs").own, 30);
}
