//! Rules of RFC 9113, one by one: what peers must not do, and what they may do that is odd.

use crate::http2_frames::*;
use crate::pipe;
use weir_wire::http2::{Detected, Limits, Options, detect};

const GET: &[(&str, &str)] = &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

/// What a client with one request under way sees.
#[track_caller]
fn client(frames: &[Vec<u8>]) -> String {
    client_sees(&Options::client(), &["GET"], frames).0
}

#[track_caller]
fn server(frames: &[Vec<u8>]) -> String {
    server_sees(&Options::server(), frames).0
}

/// HEADERS of a response on stream 1.
fn head(flags: u8, headers: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, 1, &block(headers))
}

fn ok() -> Vec<u8> {
    head(0, &[(":status", "200")])
}

/// HEADERS of a request.
fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, ENDS, stream, &block(GET))
}

fn post(stream: u32, headers: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block(&[GET, headers].concat()))
}

fn update(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

#[test]
fn frames_that_end_a_connection() {
    for (frames, want) in [
        // Section 4.2
        (vec![frame(DATA, 0, 1, &[0; 16_385])], "FrameSize"),
        (vec![frame(SETTINGS, 0, 0, &[0; 5])], "FrameSize"),
        (vec![frame(SETTINGS, ACK, 0, &[0; 6])], "FrameSize"),
        (vec![frame(PING, 0, 0, &[0; 7])], "FrameSize"),
        (vec![frame(GOAWAY, 0, 0, &[0; 7])], "FrameSize"),
        (vec![frame(WINDOW_UPDATE, 0, 0, &[0; 5])], "FrameSize"),
        (vec![frame(RST_STREAM, 0, 1, &[0; 3])], "FrameSize"),
        (vec![frame(PRIORITY, 0, 1, &[0; 4])], "FrameSize"),
        (vec![frame(HEADERS, ENDS | PADDED, 1, &[])], "FrameSize"),
        (vec![frame(HEADERS, ENDS | WITH_PRIORITY, 1, &[0; 4])], "FrameSize"),
        (vec![frame(DATA, PADDED, 1, &[])], "FrameSize"),
        // Section 6: stream numbers
        (vec![frame(DATA, 0, 0, b"x")], "WrongStream"),
        (vec![frame(HEADERS, ENDS, 0, &[])], "WrongStream"),
        (vec![frame(PRIORITY, 0, 0, &[0; 5])], "WrongStream"),
        (vec![frame(RST_STREAM, 0, 0, &[0; 4])], "WrongStream"),
        (vec![frame(CONTINUATION, 0, 0, &[])], "WrongStream"),
        (vec![frame(SETTINGS, 0, 1, &[])], "WrongStream"),
        (vec![frame(PING, 0, 1, &[0; 8])], "WrongStream"),
        (vec![frame(GOAWAY, 0, 1, &[0; 8])], "WrongStream"),
        // Section 5.1: streams that are idle, or that only the client can open
        (vec![frame(DATA, 0, 3, b"x")], "WrongStream"),
        (vec![frame(DATA, 0, 2, b"x")], "WrongStream"),
        (vec![frame(HEADERS, ENDS, 3, &block(&[(":status", "200")]))], "WrongStream"),
        (vec![frame(HEADERS, ENDS, 2, &block(&[(":status", "200")]))], "WrongStream"),
        (vec![frame(RST_STREAM, 0, 3, &[0; 4])], "WrongStream"),
        (vec![update(3, 1)], "WrongStream"),
        (vec![update(2, 1)], "WrongStream"),
        // Sections 6.1 and 6.2
        (vec![ok(), frame(DATA, PADDED, 1, b"\x03ab")], "Padding"),
        (vec![frame(HEADERS, ENDS | PADDED, 1, b"\x03ab")], "Padding"),
        // Section 6.5.2
        (vec![settings(&[(2, 1)])], "BadSetting"),
        (vec![settings(&[(2, 2)])], "BadSetting"),
        (vec![settings(&[(5, 16_383)])], "BadSetting"),
        (vec![settings(&[(5, 1 << 24)])], "BadSetting"),
        (vec![settings(&[(4, 1 << 31)])], "BadWindow"),
        // Section 6.9
        (vec![update(0, 0)], "NoIncrement"),
        (vec![update(0, (1 << 31) - 1)], "BadWindow"),
        (vec![update(1, (1 << 31) - 1 - 65_535), settings(&[(4, 65_536)])], "BadWindow"),
        // Section 6.10
        (vec![frame(CONTINUATION, END_HEADERS, 1, &[])], "Continuation"),
        (vec![frame(HEADERS, 0, 1, &[]), frame(PING, 0, 0, &[0; 8])], "Continuation"),
        (vec![frame(HEADERS, 0, 1, &[]), frame(CONTINUATION, END_HEADERS, 3, &[])], "Continuation"),
        (vec![frame(HEADERS, 0, 1, &[]), frame(DATA, 0, 1, b"x")], "Continuation"),
        (vec![frame(HEADERS, 0, 1, &[]), frame(0xfa, 0, 1, b"x")], "Continuation"),
        // Section 8.4, and RFC 7541
        (vec![frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82])], "Push"),
        (vec![frame(HEADERS, ENDS, 1, &[0x80])], "Compression"),
    ] {
        assert_eq!(client(&frames), format!("{}error {want}", if frames.len() == 1 { "" } else { prefix(want) }));
    }
}

/// What is seen before the error, of tables above with several frames.
fn prefix(want: &str) -> &'static str {
    match want {
        "Padding" => "0: 200 | ",
        _ => "",
    }
}

#[test]
fn the_reason_of_an_end_is_sent() {
    let options = Options::client();
    for (frame, want) in [
        (frame(PING, 0, 0, &[0; 7]), "goaway 0 FRAME_SIZE_ERROR"),
        (frame(PING, 0, 1, &[0; 8]), "goaway 0 PROTOCOL_ERROR"),
        (update(0, (1 << 31) - 1), "goaway 0 FLOW_CONTROL_ERROR"),
        (update(0, 0), "goaway 0 PROTOCOL_ERROR"),
        (frame(HEADERS, ENDS, 1, &[0x80]), "goaway 0 COMPRESSION_ERROR"),
    ] {
        assert_eq!(client_sees(&options, &["GET"], &[frame]).1, [want]);
    }
    let (seen, sent) = server_sees(&Options::server(), &[get(5), frame(DATA, 0, 7, b"")]);
    assert_eq!(seen, "request GET http a / | request ends | error WrongStream");
    assert_eq!(sent, ["goaway 5 PROTOCOL_ERROR"]);
}

#[test]
fn an_error_stays_and_goaway_is_sent_once() {
    let mut pipe = pipe::Pipe::new(&Options::client(), &Options::server());
    for _ in 0..3 {
        pipe.feed_client(&frame(PING, 0, 0, &[0; 8]));
    }
    assert_eq!(line(&pipe.take()), "error NoSettings | error NoSettings | error NoSettings");
    assert_eq!(frames(&pipe.to_server), ["goaway 0 PROTOCOL_ERROR"]);
    assert_eq!(pipe.client.streams(), 0);
}

#[test]
fn settings_come_first() {
    for first in [frame(SETTINGS, ACK, 0, &[]), frame(DATA, 0, 1, b""), frame(0xfa, 0, 0, b""), update(0, 1)] {
        let mut pipe = pipe::Pipe::new(&Options::client(), &Options::server());
        pipe.feed_client(&first);
        assert_eq!(line(&pipe.take()), "error NoSettings");
    }
    let mut pipe = pipe::Pipe::new(&Options::client(), &Options::server());
    pipe.feed_server(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX");
    assert_eq!(line(&pipe.take()), "error BadPreface");
}

#[test]
fn what_is_odd_and_allowed() {
    for (frames, want) in [
        (vec![frame(PRIORITY, 0, 1, &[0; 5]), frame(PRIORITY, 0, 99, &[0xff; 5])], ""),
        (vec![frame(0xfa, 0xff, 0, b"whatever"), frame(0x0a, 0, 7, &[0; 16_384])], ""),
        (vec![settings(&[(0xfafa, 7), (5, 16_384), (4, 0), (3, 0), (6, 0), (2, 0)])], "settings"),
        (vec![frame(SETTINGS, ACK, 0, &[]), frame(PING, ACK, 0, &[0; 8])], ""),
        (vec![ok(), frame(DATA, PADDED, 1, b"\x02abpp")], "0: 200 | 0: \"ab\""),
        (vec![ok(), frame(DATA, PADDED | END_STREAM, 1, b"\x02pp")], "0: 200 | 0: end"),
        (vec![ok(), frame(DATA, 0, 1, b""), frame(DATA, END_STREAM, 1, b"")], "0: 200 | 0: end"),
        (
            vec![head(END_STREAM, &[(":status", "200"), ("content-length", "0")])],
            "0: 200 length 0 content-length: 0 | 0: end",
        ),
        (
            vec![head(0, &[(":status", "103"), ("link", "x")]), head(0, &[(":status", "100")]), ok()],
            "0: interim 103 | 0: interim 100 | 0: 200",
        ),
        (
            vec![ok(), frame(DATA, 0, 1, b"x"), head(END_STREAM, &[("x-sum", "1")])],
            "0: 200 | 0: \"x\" | 0: trailers x-sum: 1 | 0: end",
        ),
        (
            vec![head(END_STREAM, &[(":status", "304"), ("content-length", "7")])],
            "0: 304 length 7 content-length: 7 | 0: end",
        ),
        (
            vec![
                ok(),
                frame(DATA, PADDED, 1, b"\x03appp"),
                frame(DATA, PADDED | END_STREAM, 1, b"\x02bpp"),
                settings(&[]),
            ],
            "0: 200 | 0: \"ab\" | 0: end | settings",
        ),
        // Frames that may cross the end of the stream (section 5.1).
        (
            vec![head(END_STREAM, &[(":status", "200")]), frame(RST_STREAM, 0, 1, &[0; 4]), update(1, 1)],
            "0: 200 | 0: end",
        ),
    ] {
        assert_eq!(client(&frames), want);
    }
}

#[test]
fn blocks_in_pieces() {
    let whole = block(&[(":status", "200"), ("a", "b")]);
    let (first, rest) = whole.split_at(3);
    let (second, third) = rest.split_at(4);
    let frames = [
        frame(HEADERS, END_STREAM | PADDED | WITH_PRIORITY, 1, &[&[2, 0, 0, 0, 0, 9], first, &[0, 0]].concat()),
        frame(CONTINUATION, 0, 1, second),
        frame(CONTINUATION, 0, 1, b""),
        frame(CONTINUATION, END_HEADERS, 1, third),
    ];
    assert_eq!(client(&frames), "0: 200 a: b | 0: end");
}

#[test]
fn answers_that_are_malformed() {
    let status = (":status", "200");
    for (headers, want) in [
        (vec![], "PseudoHeader"),
        (vec![("a", "b")], "PseudoHeader"),
        (vec![(":status", "20")], "PseudoHeader"),
        (vec![(":status", "2000")], "PseudoHeader"),
        (vec![(":status", "2x0")], "PseudoHeader"),
        (vec![(":status", "099")], "PseudoHeader"),
        (vec![(":status", "101")], "PseudoHeader"),
        (vec![status, status], "PseudoHeader"),
        (vec![("a", "b"), status], "PseudoHeader"),
        (vec![status, (":path", "/")], "PseudoHeader"),
        (vec![status, (":odd", "/")], "PseudoHeader"),
        (vec![status, ("Upper", "x")], "BadName"),
        (vec![status, ("", "x")], "BadName"),
        (vec![status, ("a b", "x")], "BadName"),
        (vec![status, ("a", "x\ny")], "BadValue"),
        (vec![status, ("a", "x\0")], "BadValue"),
        (vec![status, ("a", " x")], "BadValue"),
        (vec![status, ("a", "x\t")], "BadValue"),
        (vec![status, ("connection", "close")], "ConnectionHeader"),
        (vec![status, ("transfer-encoding", "chunked")], "ConnectionHeader"),
        (vec![status, ("keep-alive", "x")], "ConnectionHeader"),
        (vec![status, ("upgrade", "x")], "ConnectionHeader"),
        (vec![status, ("proxy-connection", "x")], "ConnectionHeader"),
        (vec![status, ("content-length", "x")], "BadContentLength"),
        (vec![status, ("content-length", "")], "BadContentLength"),
        (vec![status, ("content-length", "1"), ("content-length", "2")], "BadContentLength"),
        (vec![status, ("content-length", "18446744073709551616")], "BadContentLength"),
    ] {
        let (seen, sent) = client_sees(&Options::client(), &["GET"], &[head(0, &headers)]);
        assert_eq!(seen, format!("0: reset: Malformed({want})"), "{headers:?}");
        assert_eq!(sent, ["reset 1 PROTOCOL_ERROR"]);
    }
}

#[test]
fn bodies_that_are_malformed() {
    let announced = |length| head(0, &[(":status", "200"), ("content-length", length)]);
    for (frames, want) in [
        (vec![frame(DATA, 0, 1, b"x")], "0: reset: Malformed(WrongOrder)"),
        (vec![head(END_STREAM, &[(":status", "100")])], "0: reset: Malformed(WrongOrder)"),
        (vec![ok(), head(0, &[("x-sum", "1")])], "0: 200 | 0: reset: Malformed(WrongOrder)"),
        (vec![ok(), head(END_STREAM, &[(":status", "200")])], "0: 200 | 0: reset: Malformed(PseudoHeader)"),
        (vec![ok(), update(1, 0)], "0: 200 | 0: reset: Malformed(NoIncrement)"),
        (vec![update(1, (1 << 31) - 1)], "0: reset: Malformed(BadWindow)"),
        (
            vec![announced("2"), frame(DATA, 0, 1, b"ab"), frame(DATA, END_STREAM, 1, b"c")],
            "0: 200 length 2 content-length: 2 | 0: \"ab\" | 0: reset: Malformed(WrongLength)",
        ),
        (
            vec![announced("2"), frame(DATA, END_STREAM, 1, b"a")],
            "0: 200 length 2 content-length: 2 | 0: reset: Malformed(WrongLength)",
        ),
        (
            vec![announced("2"), frame(DATA, 0, 1, b"a"), head(END_STREAM, &[("a", "b")])],
            "0: 200 length 2 content-length: 2 | 0: \"a\" | 0: reset: Malformed(WrongLength)",
        ),
        (vec![head(END_STREAM, &[(":status", "200"), ("content-length", "2")])], "0: reset: Malformed(WrongLength)"),
        (
            vec![head(0, &[(":status", "204")]), frame(DATA, END_STREAM, 1, b"x")],
            "0: 204 | 0: reset: Malformed(WrongLength)",
        ),
    ] {
        assert_eq!(client(&frames), want);
    }
    // What still comes for a stream that was reset is dropped, and its blocks change the table all the same.
    let frames = [
        update(1, 0),
        frame(HEADERS, END_HEADERS, 1, b"\x40\x01a\x01b"),
        frame(DATA, PADDED, 1, b"\x01xp"),
        frame(HEADERS, ENDS, 3, b"\x88\xbe"),
    ];
    let (seen, sent) = client_sees(&Options::client(), &["GET", "GET"], &frames);
    assert_eq!(seen, "0: reset: Malformed(NoIncrement) | 1: 200 a: b | 1: end");
    assert_eq!(sent, ["reset 1 PROTOCOL_ERROR"]);
}

#[test]
fn frames_for_an_ended_stream_end_the_connection() {
    let ended = head(END_STREAM, &[(":status", "200")]);
    for late in [frame(DATA, 0, 1, b"x"), ok()] {
        assert_eq!(client(&[ended.clone(), late]), "0: 200 | 0: end | error StreamClosed");
    }
    for late in [frame(DATA, 0, 1, b"x"), frame(HEADERS, ENDS, 1, &[])] {
        assert_eq!(server(&[get(1), late]), "request GET http a / | request ends | error StreamClosed");
    }
}

#[test]
fn requests_that_are_malformed() {
    let base = |without: &str| GET.iter().copied().filter(|(name, _)| *name != without).collect::<Vec<_>>();
    let with = |more: &[(&'static str, &'static str)]| [GET, more].concat();
    let but = |name: &'static str, value: &'static str| [&base(name)[..], &[(name, value)]].concat();
    for (headers, want) in [
        (base(":method"), "PseudoHeader"),
        (base(":scheme"), "PseudoHeader"),
        (base(":path"), "PseudoHeader"),
        (but(":path", ""), "PseudoHeader"),
        (but(":path", "x"), "PseudoHeader"),
        (but(":path", "/a b"), "PseudoHeader"),
        (but(":method", "a b"), "PseudoHeader"),
        (but(":authority", "u@h"), "PseudoHeader"),
        (but(":method", "CONNECT"), "Connect"),
        (with(&[(":path", "/")]), "PseudoHeader"),
        (with(&[(":status", "200")]), "PseudoHeader"),
        (with(&[("a", "b"), (":odd", "x")]), "PseudoHeader"),
        (with(&[("te", "gzip")]), "ConnectionHeader"),
        (with(&[("host", "b")]), "DifferingHosts"),
        (with(&[("host", "a"), ("host", "a")]), "DifferingHosts"),
        (with(&[("content-length", "5")]), "WrongLength"),
    ] {
        let frames = [frame(HEADERS, ENDS, 1, &block(&headers)), get(3)];
        assert_eq!(server(&frames), format!("malformed: {want} | request GET http a / | request ends"), "{headers:?}");
    }
    for (headers, want) in [
        (with(&[("te", "trailers")]), "request GET http a / te: trailers | request ends"),
        (with(&[("host", "A")]), "request GET http a / host: A | request ends"),
        ([&base(":authority")[..], &[("host", "h:1")]].concat(), "request GET http h:1 / host: h:1 | request ends"),
        (but(":path", "*"), "request GET http a * | request ends"),
        (with(&[("content-length", "0")]), "request GET http a / content-length: 0 | request ends"),
    ] {
        assert_eq!(server(&[frame(HEADERS, ENDS, 1, &block(&headers))]), want);
    }
}

#[test]
fn streams_are_opened_in_order_and_by_the_client() {
    assert_eq!(server(&[get(3), get(1)]), "request GET http a / | request ends | error StreamClosed");
    assert_eq!(server(&[get(2)]), "error WrongStream");
    assert_eq!(server(&[frame(PUSH_PROMISE, END_HEADERS, 1, &[0; 5])]), "error Push");
    assert_eq!(server(&[settings(&[(2, 1)])]), "settings");
}

#[test]
fn more_streams_than_allowed_are_refused() {
    let options = Options { max_streams: 1, ..Options::server() };
    let (seen, sent) = server_sees(&options, &[get(1), get(3), frame(RST_STREAM, 0, 1, &[0; 4]), get(5)]);
    assert_eq!(
        seen,
        "request GET http a / | request ends | request reset: Peer(Code(0)) | request GET http a / | request ends"
    );
    assert_eq!(sent, ["reset 3 REFUSED_STREAM"]);
}

#[test]
fn request_bodies_have_the_length_announced() {
    let five = ("content-length", "5");
    let start = "request GET http a / content-length: 5";
    for (frames, want) in [
        (vec![frame(DATA, END_STREAM, 1, b"hello")], "request \"hello\" | request ends"),
        (vec![frame(DATA, END_STREAM, 1, b"hell")], "request reset: Malformed(WrongLength)"),
        (vec![frame(DATA, 0, 1, b"hello!")], "request reset: Malformed(WrongLength)"),
    ] {
        assert_eq!(server(&[vec![post(1, &[five])], frames].concat()), format!("{start} | {want}"));
    }
}

#[test]
fn windows_are_kept_and_refreshed() {
    let options = Options { stream_window: 70_000, connection_window: 100_000, ..Options::server() };
    let full = || frame(DATA, 0, 1, &[0; 16_000]);
    let (seen, sent) = server_sees(&options, &[post(1, &[]), full(), full(), full(), full()]);
    assert!(seen.starts_with("request GET http a / | request \"") && !seen.contains("error"));
    assert_eq!(sent, ["window 1 48000", "window 0 64000"]);

    // A server that never gave more than the first window: padding counts, too.
    let small = Options { stream_window: 10, connection_window: 0, ..Options::server() };
    let acknowledged = || frame(SETTINGS, ACK, 0, &[]);
    let (seen, sent) = server_sees(&small, &[acknowledged(), post(1, &[]), frame(DATA, PADDED, 1, b"\x08xxpppppppp")]);
    assert_eq!(seen, "request GET http a / | request reset: Malformed(WindowExceeded)");
    assert_eq!(sent, ["reset 1 FLOW_CONTROL_ERROR"]);
    // Before the client has acknowledged our SETTINGS it cannot know.
    let (seen, _) = server_sees(&small, &[post(1, &[]), frame(DATA, PADDED, 1, b"\x08xxpppppppp")]);
    assert_eq!(seen, "request GET http a / | request \"xx\"");
}

#[test]
fn the_window_of_the_connection_is_kept() {
    let options = Options { stream_window: 1 << 20, connection_window: 0, ..Options::server() };
    // Padding counts against it, and so does what nobody wants. Refreshed when half is used, it is never full but by
    // frames that are larger than half of it.
    let options = Options { max_frame: 70_000, ..options };
    let (seen, sent) = server_sees(&options, &[post(1, &[]), frame(DATA, 0, 1, &[0; 65_536])]);
    assert_eq!(seen, "request GET http a / | error WindowExceeded");
    assert_eq!(sent, ["goaway 1 FLOW_CONTROL_ERROR"]);
    let (seen, sent) = server_sees(&options, &[post(1, &[]), frame(DATA, 0, 1, &[0; 65_535])]);
    assert!(seen.starts_with("request GET http a / | request \""));
    assert_eq!(sent, ["window 0 65535"]);
}

#[test]
fn a_block_that_changes_the_table_is_read_each_time() {
    let insert = |stream| frame(HEADERS, ENDS, stream, b"\x88\x40\x01a\x01b");
    let frames = [insert(1), insert(3), frame(HEADERS, ENDS, 5, b"\x88\xbe\xbf")];
    let want = "0: 200 a: b | 0: end | 1: 200 a: b | 1: end | 2: 200 a: b, a: b | 2: end";
    assert_eq!(client_sees(&Options::client(), &["GET"; 3], &frames).0, want);
}

#[test]
fn a_name_from_a_table_does_not_excuse_the_value() {
    // `server` from the static table; `te` from the dynamic one, where its value was right.
    for (block, want) in [
        (&b"\x88\x0f\x27\x03a\nb"[..], "0: reset: Malformed(BadValue)"),
        (b"\x88\x0f\x27\x02 b", "0: reset: Malformed(BadValue)"),
        (b"\x88\x40\x02te\x08trailers\x7e\x04gzip", "0: reset: Malformed(ConnectionHeader)"),
        (b"\x88\x40\x02te\x08trailers\x0f\x2f\x08trailers", "0: 200 te: trailers, te: trailers | 0: end"),
        (b"\x88\x40\x01a\x02b\n\x0f\x2f\x01c", "0: reset: Malformed(BadValue)"),
    ] {
        assert_eq!(client(&[frame(HEADERS, ENDS, 1, block)]), want);
    }
}

#[test]
fn frames_that_make_progress_are_not_a_flood() {
    let limits = Limits { idle_frames: 10, resets: 5, ..Limits::default() };
    let server = Options { limits, ..Options::server() };
    // As many streams that end well as are reset.
    let mut pipe = pipe::Pipe::started(&Options::client(), &server);
    let response = weir_wire::http2::Prepared::response(200, &[], Some(30)).unwrap();
    for n in 0..20 {
        let stream = pipe.feed_server(&get(4 * n + 1)).pop().unwrap();
        pipe.server.respond(stream, &response, weir_wire::http2::Body::Static(&[0; 30]), &mut pipe.to_client).unwrap();
        pipe.feed_server(&[get(4 * n + 3), frame(RST_STREAM, 0, 4 * n + 3, &[0; 4])].concat());
    }
    assert_eq!(pipe.server.open(), 0);
    // Windows by the byte, as long as each lets something go.
    pipe.feed_server(&settings(&[(4, 0)]));
    let stream = pipe.feed_server(&get(101)).pop().unwrap();
    pipe.server.respond(stream, &response, weir_wire::http2::Body::Static(&[0; 30]), &mut pipe.to_client).unwrap();
    for _ in 0..30 {
        pipe.feed_server(&update(101, 1));
    }
    assert_eq!(pipe.server.open(), 0);
    let seen = line(&pipe.take());
    assert!(seen.ends_with("sent") && !seen.contains("error"), "{seen}");
}

#[test]
fn floods_end_the_connection() {
    let limits = Limits { idle_frames: 10, resets: 5, header_list: 1000, ..Limits::default() };
    let server = Options { limits, ..Options::server() };
    let client = Options { limits, ..Options::client() };
    for idle in [
        frame(PING, 0, 0, &[0; 8]),
        frame(SETTINGS, ACK, 0, &[]),
        frame(PRIORITY, 0, 1, &[0; 5]),
        frame(0xfa, 0, 0, &[]),
        update(0, 1),
        frame(DATA, 0, 1, b""),
        frame(DATA, PADDED, 1, b"\0"),
        head(0, &[(":status", "100")]),
    ] {
        let start = if idle[3] == DATA { vec![ok()] } else { vec![] };
        let flood = [start, vec![idle; 11]].concat();
        let (seen, sent) = client_sees(&client, &["GET"], &flood);
        assert!(seen.ends_with("error Flood"), "{seen}");
        assert_eq!(sent.last().map(String::as_str), Some("goaway 0 ENHANCE_YOUR_CALM"));
    }
    let many = [vec![frame(HEADERS, 0, 1, b"")], vec![frame(CONTINUATION, 0, 1, b""); 11]].concat();
    assert_eq!(client_sees(&client, &["GET"], &many).0, "error Flood");
    let large = [vec![frame(HEADERS, 0, 1, b"")], vec![frame(CONTINUATION, 0, 1, &[0; 500]); 5]].concat();
    assert_eq!(client_sees(&client, &["GET"], &large).0, "error BlockTooLarge(2000)");

    let resets: Vec<_> =
        (0..6).flat_map(|n| [get(2 * n + 1), frame(RST_STREAM, 0, 2 * n + 1, &[0, 0, 0, 8])]).collect();
    assert!(server_sees(&server, &resets).0.ends_with("error ResetFlood"));
    // Malformed ones without end, too.
    let malformed: Vec<_> = (0..11).map(|n| frame(HEADERS, ENDS, 2 * n + 1, &[0x82])).collect();
    assert!(server_sees(&server, &malformed).0.ends_with("malformed: PseudoHeader | error Flood"));
}

#[test]
fn header_lists_are_bounded_even_if_their_bytes_are_few() {
    let limits = Limits { header_list: 1000, ..Limits::default() };
    let options = Options { limits, ..Options::client() };
    // One entry of 234 bytes, and five references to it.
    let mut bomb = b"\x88\x40\x02ab\x7f\x49".to_vec();
    bomb.extend([b'x'; 200]);
    bomb.extend([0xbe; 5]);
    let frames = [frame(HEADERS, ENDS, 1, &bomb), frame(HEADERS, ENDS, 3, b"\x88\xbe")];
    let (seen, sent) = client_sees(&options, &["GET", "GET"], &frames);
    assert!(seen.starts_with("0: reset: Malformed(TooLarge(1000)) | 1: 200 ab: xxx"), "{seen}");
    assert_eq!(sent, ["reset 1 ENHANCE_YOUR_CALM"]);
}

#[test]
fn headers_are_as_many_as_in_http_1() {
    for (headers, expected) in [(128, "0: 200"), (129, "0: reset: Malformed(TooManyHeaders(128))")] {
        let all: Vec<(&str, &str)> = [(":status", "200")].into_iter().chain(vec![("a", "b"); headers]).collect();
        let (seen, _) = client_sees(&Options::client(), &["GET"], &[head(ENDS, &all)]);
        assert!(seen.starts_with(expected), "{headers}: {seen}");
    }
}

#[test]
fn goaway_reports_unprocessed_requests() {
    let goaway =
        |last: u32, code: u8| frame(GOAWAY, 0, 0, &[&last.to_be_bytes()[..], &[0, 0, 0, code], b"why"].concat());
    let three = ["GET", "GET", "GET"];
    let options = Options::client();
    let (seen, _) = client_sees(&options, &three, &[goaway((1 << 31) - 1, 0), goaway(1, 2), ok()]);
    assert_eq!(seen, "goaway NO_ERROR | goaway INTERNAL_ERROR | 1: reset: GoneAway | 2: reset: GoneAway | 0: 200",);
    let (seen, _) = client_sees(&options, &three, &[goaway(5, 0), goaway(7, 0)]);
    assert_eq!(seen, "goaway NO_ERROR | error BadGoAway");
}

#[test]
fn a_later_goaway_does_not_accept_more() {
    let mut pipe = pipe::Pipe::new(&Options::client(), &Options::server());
    pipe.feed_server(&[&weir_wire::http2::PREFACE[..], &settings(&[]), &get(1)].concat());
    pipe.server.go_away(&mut pipe.to_client);
    pipe.server.go_away(&mut pipe.to_client);
    pipe.feed_server(&[get(3), frame(PING, 0, 0, b"")].concat());
    assert_eq!(frames(&pipe.to_client)[1..], ["goaway 1 NO_ERROR", "goaway 1 FRAME_SIZE_ERROR"]);
    assert_eq!(line(&pipe.take()), "settings | request GET http a / | request ends | error FrameSize");
}

#[test]
fn pings_are_answered_and_settings_acknowledged() {
    let frames = [frame(PING, 0, 0, b"12345678"), settings(&[(3, 7)])];
    assert_eq!(client_sees(&Options::client(), &[], &frames).1, ["ping ack 12345678", "settings ack"]);
}

#[test]
fn the_first_bytes_decide_the_protocol() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for length in 0..=24 {
        let want = if length < 16 { Detected::Undecided } else { Detected::Http2 };
        assert_eq!(detect(&preface[..length]), want);
    }
    for other in [&b"GET / HTTP/1.1\r\n"[..], b"P0", b"POST", b"\x16\x03", b"PRI * HTTP/1.1\r\n"] {
        assert_eq!(detect(other), Detected::Http1);
    }
}
