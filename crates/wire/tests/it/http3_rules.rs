//! The rules of HTTP/3 and QPACK, one by one: what is an error, which code it has, and what is none.

use weir_wire::http3::{
    Body, Client, ClientEvent, Code, Limits, Options, Prepared, Request, ResetCause, SendError, Server, ServerEvent,
    StreamError, Violation, code_of, probe,
};

/// A frame of less than 64 bytes.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, payload.len() as u8][..], payload].concat()
}

fn section(headers: &[(&str, &str)]) -> Vec<u8> {
    let block = probe::write(headers);
    let mut out = vec![1, 0x40 | (block.len() >> 8) as u8, block.len() as u8];
    out.extend(block);
    out
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")];
const OK: [(&str, &str); 1] = [(":status", "200")];

fn with<'a>(head: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<u8> {
    section(&[head, more].concat())
}

/// A client with so many GETs under way on the streams 0, 4, ..
fn client(requests: u32) -> Client {
    let mut client = Client::new(&Options::default());
    let get = Prepared::request(&Request { method: "GET", scheme: "https", authority: "a", path: "/", headers: &[] })
        .unwrap();
    for tag in 0..requests {
        client.request(u64::from(tag) * 4, tag, &get, Body::None, &mut Vec::new()).unwrap();
    }
    client
}

/// What a client makes of bytes of one stream: its events as text, and the error.
fn client_reads(client: &mut Client, id: u64, bytes: &[u8], fin: bool) -> (Vec<String>, Option<Violation>) {
    let mut input = bytes;
    let mut events = Vec::new();
    loop {
        match client.next(id, &mut input, fin) {
            Ok(Some(event)) => events.push(shown(&event)),
            Ok(None) => return (events, None),
            Err(error) => {
                assert_eq!(error.code, error.violation.code());
                return (events, Some(error.violation));
            }
        }
    }
}

fn shown(event: &ClientEvent<'_>) -> String {
    match event {
        ClientEvent::Settings => "settings".into(),
        ClientEvent::GoAway => "goaway".into(),
        ClientEvent::Informational { status, headers, .. } => format!("{status} with {}", headers.iter().count()),
        ClientEvent::Head { head, .. } => format!("head {} {:?}", head.status, head.length),
        ClientEvent::Data { bytes, .. } => format!("data {}", String::from_utf8_lossy(bytes)),
        ClientEvent::Trailers { headers, .. } => format!("trailers {}", headers.iter().count()),
        ClientEvent::End { tag } => format!("end {tag}"),
        ClientEvent::Reset { tag, cause, .. } => format!("reset {tag}: {cause} ({})", cause.code()),
    }
}

fn server_reads(server: &mut Server, id: u64, bytes: &[u8], fin: bool) -> (Vec<String>, Option<Violation>) {
    let mut input = bytes;
    let mut events = Vec::new();
    loop {
        match server.next(id, &mut input, fin) {
            Ok(Some(event)) => events.push(match event {
                ServerEvent::Request { head, .. } => {
                    format!("{} {}", String::from_utf8_lossy(head.method), String::from_utf8_lossy(head.path))
                }
                ServerEvent::Data { bytes, .. } => format!("data {}", String::from_utf8_lossy(bytes)),
                ServerEvent::End { .. } => "end".into(),
                ServerEvent::Reset { cause, .. } => format!("reset: {cause} ({})", cause.code()),
                ServerEvent::Malformed { fault, .. } => format!("malformed: {fault} ({})", code_of(fault)),
                ServerEvent::Refused { .. } => "refused".into(),
                ServerEvent::Settings => "settings".into(),
                ServerEvent::GoAway => "goaway".into(),
            }),
            Ok(None) => return (events, None),
            Err(error) => return (events, Some(error.violation)),
        }
    }
}

#[test]
fn a_response_has_a_head_a_body_and_an_end_and_reserved_frames_say_nothing() {
    let bytes = [
        frame(0x21, b"grease"),
        with(&[(":status", "103")], &[("link", "</a>; rel=preload")]),
        with(&OK, &[("content-length", "5"), ("server", "weir")]),
        frame(0, b"ab"),
        frame(0, b""),
        frame(0x21, b""),
        frame(0, b"cde"),
        section(&[("x-sum", "1")]),
        frame(0x40, b"")[..0].to_vec(),
    ]
    .concat();
    let wanted = ["103 with 1", "head 200 Some(5)", "data ab", "data cde", "trailers 1", "end 0"];
    assert_eq!(client_reads(&mut client(1), 0, &bytes, true), (wanted.map(String::from).to_vec(), None));
    // The end comes by itself, and what comes after it is nobody's.
    let mut other = client(1);
    assert_eq!(client_reads(&mut other, 0, &bytes, false).0.len(), 5);
    assert_eq!(client_reads(&mut other, 0, b"", true).0, ["end 0"]);
    assert_eq!(client_reads(&mut other, 0, b"whatever", true), (vec![], None));
    assert_eq!(other.open(), 0);
}

#[test]
fn each_mistake_on_a_response_has_its_error() {
    let head = with(&OK, &[]);
    let mistakes: [(&str, Vec<u8>, Violation, Code); 18] = [
        ("DATA first", frame(0, b"a"), Violation::UnexpectedFrame(0), Code::FRAME_UNEXPECTED),
        ("SETTINGS", frame(4, b""), Violation::UnexpectedFrame(4), Code::FRAME_UNEXPECTED),
        ("GOAWAY", frame(7, b"\0"), Violation::UnexpectedFrame(7), Code::FRAME_UNEXPECTED),
        ("MAX_PUSH_ID", frame(0xd, b"\0"), Violation::UnexpectedFrame(0xd), Code::FRAME_UNEXPECTED),
        ("CANCEL_PUSH", frame(3, b"\0"), Violation::UnexpectedFrame(3), Code::FRAME_UNEXPECTED),
        ("PRIORITY of HTTP/2", frame(2, b""), Violation::UnexpectedFrame(2), Code::FRAME_UNEXPECTED),
        ("PING of HTTP/2", frame(6, b""), Violation::UnexpectedFrame(6), Code::FRAME_UNEXPECTED),
        ("WINDOW_UPDATE of HTTP/2", frame(8, b""), Violation::UnexpectedFrame(8), Code::FRAME_UNEXPECTED),
        ("CONTINUATION of HTTP/2", frame(9, b""), Violation::UnexpectedFrame(9), Code::FRAME_UNEXPECTED),
        ("PUSH_PROMISE", frame(5, b"\0"), Violation::Push, Code::ID_ERROR),
        (
            "DATA after trailers",
            [&head[..], &section(&[("a", "b")]), &frame(0, b"a")].concat(),
            Violation::UnexpectedFrame(0),
            Code::FRAME_UNEXPECTED,
        ),
        (
            "HEADERS after trailers",
            [&head[..], &section(&[("a", "b")]), &section(&[("a", "b")])].concat(),
            Violation::UnexpectedFrame(1),
            Code::FRAME_UNEXPECTED,
        ),
        ("a frame cut short", [&head[..], &[0, 5, b'a']].concat(), Violation::TruncatedFrame, Code::FRAME_ERROR),
        ("half a head of a frame", [&head[..], &[0x40]].concat(), Violation::TruncatedFrame, Code::FRAME_ERROR),
        ("half a section", head[..4].to_vec(), Violation::TruncatedFrame, Code::FRAME_ERROR),
        ("an empty section", frame(1, b""), Violation::Compression, Code::QPACK_DECOMPRESSION_FAILED),
        (
            "a reference to the table",
            frame(1, &[2, 0, 0x80]),
            Violation::DynamicReference,
            Code::QPACK_DECOMPRESSION_FAILED,
        ),
        (
            "no entry of the static table",
            frame(1, &[0, 0, 0xff, 36]),
            Violation::Compression,
            Code::QPACK_DECOMPRESSION_FAILED,
        ),
    ];
    for (what, bytes, violation, code) in mistakes {
        let mut client = client(1);
        assert_eq!(client_reads(&mut client, 0, &bytes, true).1, Some(violation), "{what}");
        assert_eq!(violation.code(), code, "{what}");
        assert!(
            client.is_closing() && client_reads(&mut client, 0, b"", true).1 == Some(violation),
            "{what}: it stays"
        );
    }
}

#[test]
fn each_malformed_message_ends_its_stream_alone() {
    let length = |n| with(&OK, &[("content-length", n)]);
    let malformed: [(&str, Vec<u8>, StreamError, Code); 13] = [
        ("nothing", vec![], StreamError::Incomplete, Code::REQUEST_INCOMPLETE),
        ("103 alone", section(&[(":status", "103")]), StreamError::Incomplete, Code::REQUEST_INCOMPLETE),
        ("too short", [length("3"), frame(0, b"ab")].concat(), StreamError::WrongLength, Code::MESSAGE_ERROR),
        ("too long", [length("1"), frame(0, b"ab")].concat(), StreamError::WrongLength, Code::MESSAGE_ERROR),
        ("no number", length("x"), StreamError::BadContentLength, Code::MESSAGE_ERROR),
        ("no status", section(&[("a", "b")]), StreamError::PseudoHeader, Code::MESSAGE_ERROR),
        ("a status twice", with(&OK, &OK), StreamError::PseudoHeader, Code::MESSAGE_ERROR),
        ("status 101", section(&[(":status", "101")]), StreamError::PseudoHeader, Code::MESSAGE_ERROR),
        ("a method", with(&OK, &[(":method", "GET")]), StreamError::PseudoHeader, Code::MESSAGE_ERROR),
        ("upper case", with(&OK, &[("Server", "a")]), StreamError::BadName, Code::MESSAGE_ERROR),
        ("a line's end", with(&OK, &[("a", "b\r\nc")]), StreamError::BadValue, Code::MESSAGE_ERROR),
        (
            "a connection's header",
            with(&OK, &[("connection", "close")]),
            StreamError::ConnectionHeader,
            Code::MESSAGE_ERROR,
        ),
        (
            "a pseudo-header in trailers",
            [with(&OK, &[]), section(&OK)].concat(),
            StreamError::PseudoHeader,
            Code::MESSAGE_ERROR,
        ),
    ];
    for (what, bytes, fault, code) in malformed {
        let mut client = client(2);
        let (events, error) = client_reads(&mut client, 0, &bytes, true);
        let wanted = format!("reset 0: {} ({code})", ResetCause::Malformed(fault));
        assert_eq!((events.last(), error), (Some(&wanted), None), "{what}");
        assert_eq!(code_of(fault), code, "{what}");
        assert_eq!(client_reads(&mut client, 4, &with(&OK, &[]), true).0.last().unwrap(), "end 1", "{what}: the other");
    }
    // Bodies that a method or a status forbids.
    for status in ["204", "304"] {
        let bytes = [with(&[(":status", status)], &[("content-length", "3")]), frame(0, b"abc")].concat();
        assert!(client_reads(&mut client(1), 0, &bytes, true).0.last().unwrap().starts_with("reset 0"), "{status}");
        assert_eq!(
            client_reads(&mut client(1), 0, &bytes[..bytes.len() - 5], true).0.last().unwrap(),
            "end 0",
            "{status}"
        );
    }
}

#[test]
fn sections_are_bounded() {
    let limits = Limits { header_list: 100, headers: 2, ..Limits::default() };
    let of = |bytes: &[u8]| {
        let mut server = Server::new(&Options { limits, ..Options::default() });
        server_reads(&mut server, 0, bytes, true).0
    };
    let small = Limits { header_list: 1000, ..limits };
    let mut roomy = Server::new(&Options { limits: small, ..Options::default() });
    let three = with(&GET, &[("a", "1"), ("b", "2"), ("c", "3")]);
    assert_eq!(server_reads(&mut roomy, 0, &three, true).0, ["malformed: more than 2 headers (H3_EXCESSIVE_LOAD)"]);
    let too_large = "reset: a header list of more than 100 bytes (H3_EXCESSIVE_LOAD)";
    // One whose frame says so is not even waited for.
    assert_eq!(of(&[1, 0x40, 101]), [too_large]);
    let long = "v".repeat(50);
    assert_eq!(of(&with(&GET, &[("a", &long)])), [too_large.replace("reset", "malformed")]);
}

#[test]
fn a_request_is_checked() {
    let of = |bytes: &[u8], fin| server_reads(&mut Server::new(&Options::default()), 0, bytes, fin);
    assert_eq!(of(&with(&GET, &[]), true), (vec!["GET /".into(), "end".into()], None));
    let post = [(":method", "POST"), (":scheme", "https"), (":path", "/p"), ("host", "a")];
    let bytes = [with(&post, &[("content-length", "2")]), frame(0, b"ab"), section(&[("x", "y")])].concat();
    assert_eq!(of(&bytes, true).0, ["POST /p", "data ab", "end"]);
    type Malformed<'a> = (&'a [(&'a str, &'a str)], StreamError, Code);
    let malformed: [Malformed<'_>; 6] = [
        (&[(":method", "CONNECT"), (":authority", "a:1")], StreamError::Connect, Code::CONNECT_ERROR),
        (&[(":method", "GET"), (":scheme", "https")], StreamError::PseudoHeader, Code::MESSAGE_ERROR),
        (&[(":method", "GET"), (":scheme", "https"), (":path", "")], StreamError::PseudoHeader, Code::MESSAGE_ERROR),
        (
            &[(":method", "GET"), (":scheme", "https"), ("a", "b"), (":path", "/")],
            StreamError::PseudoHeader,
            Code::MESSAGE_ERROR,
        ),
        (
            &[(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a"), ("host", "b")],
            StreamError::DifferingHosts,
            Code::MESSAGE_ERROR,
        ),
        (
            &[(":method", "GET"), (":scheme", "https"), (":path", "/"), ("te", "gzip")],
            StreamError::ConnectionHeader,
            Code::MESSAGE_ERROR,
        ),
    ];
    for (headers, fault, code) in malformed {
        assert_eq!(of(&section(headers), true), (vec![format!("malformed: {fault} ({code})")], None), "{headers:?}");
    }
    assert_eq!(of(b"", true).0, ["reset: the stream ended before its head (H3_REQUEST_INCOMPLETE)"]);
    assert_eq!(of(&frame(5, b"\0"), true).1, Some(Violation::UnexpectedFrame(5)));
    let error = Server::new(&Options::default()).next(3, &mut &b"\0"[..], false).unwrap_err();
    assert_eq!(error.violation, Violation::WrongStream);
    assert_eq!(error.to_string(), "bytes came on a stream that the peer cannot write to (H3_STREAM_CREATION_ERROR)");
}

/// The beginning of a control stream.
fn control(frames: &[Vec<u8>]) -> Vec<u8> {
    [&[0], &frame(4, b"")[..], &frames.concat()].concat()
}

#[test]
fn each_mistake_on_a_control_stream_has_its_error() {
    type Mistake = (&'static str, Vec<u8>, Violation, Code);
    let both: [Mistake; 15] = [
        ("no SETTINGS", [&[0][..], &frame(7, b"\0")].concat(), Violation::NoSettings, Code::MISSING_SETTINGS),
        ("GREASE first", [&[0][..], &frame(0x21, b"")].concat(), Violation::NoSettings, Code::MISSING_SETTINGS),
        ("SETTINGS twice", control(&[frame(4, b"")]), Violation::UnexpectedFrame(4), Code::FRAME_UNEXPECTED),
        ("DATA", control(&[frame(0, b"")]), Violation::UnexpectedFrame(0), Code::FRAME_UNEXPECTED),
        ("HEADERS", control(&[frame(1, b"")]), Violation::UnexpectedFrame(1), Code::FRAME_UNEXPECTED),
        ("PUSH_PROMISE", control(&[frame(5, b"")]), Violation::UnexpectedFrame(5), Code::FRAME_UNEXPECTED),
        ("PING of HTTP/2", control(&[frame(6, b"")]), Violation::UnexpectedFrame(6), Code::FRAME_UNEXPECTED),
        (
            "a setting of HTTP/2",
            [&[0][..], &frame(4, &[2, 0])].concat(),
            Violation::BadSetting(2),
            Code::SETTINGS_ERROR,
        ),
        (
            "a setting twice",
            [&[0][..], &frame(4, &[6, 1, 0x21, 5, 6, 1])].concat(),
            Violation::BadSetting(6),
            Code::SETTINGS_ERROR,
        ),
        ("half a setting", [&[0][..], &frame(4, &[6])].concat(), Violation::FrameSize, Code::FRAME_ERROR),
        ("a long GOAWAY", control(&[frame(7, &[0, 0])]), Violation::FrameSize, Code::FRAME_ERROR),
        ("an empty GOAWAY", control(&[frame(7, &[])]), Violation::FrameSize, Code::FRAME_ERROR),
        ("a GOAWAY that grows", control(&[frame(7, &[0]), frame(7, &[4])]), Violation::BadGoAway, Code::ID_ERROR),
        ("CANCEL_PUSH", control(&[frame(3, &[0])]), Violation::BadPushId, Code::ID_ERROR),
        (
            "SETTINGS without end",
            [&[0, 4][..], &[0x80, 0, 16, 0]].concat(),
            Violation::FrameTooLarge(4096),
            Code::EXCESSIVE_LOAD,
        ),
    ];
    for (what, bytes, violation, code) in &both {
        assert_eq!(client_reads(&mut client(0), 3, bytes, false).1, Some(*violation), "{what}");
        let mut server = Server::new(&Options::default());
        assert_eq!(server_reads(&mut server, 2, bytes, false).1, Some(*violation), "{what}");
        assert_eq!(violation.code(), *code, "{what}");
    }
    let of_client = |bytes: &[u8]| client_reads(&mut client(0), 3, bytes, false).1;
    let of_server = |bytes: &[u8]| server_reads(&mut Server::new(&Options::default()), 2, bytes, false).1;
    assert_eq!(of_client(&control(&[frame(0xd, &[0])])), Some(Violation::UnexpectedFrame(0xd)));
    assert_eq!(of_server(&control(&[frame(0xd, &[4]), frame(0xd, &[3])])), Some(Violation::BadPushId));
    assert_eq!(of_server(&control(&[frame(0xd, &[4]), frame(0xd, &[4])])), None);
    assert_eq!(of_client(&control(&[frame(7, &[2])])), Some(Violation::BadGoAway));
    assert_eq!(of_server(&control(&[frame(7, &[2])])), None);
    assert_eq!((of_client(&[1]), of_server(&[1])), (Some(Violation::Push), Some(Violation::ClientPush)));
    // The end of a stream that is needed, and of one that is not.
    for (bytes, violation) in [
        (control(&[]), Some(Violation::ClosedCriticalStream)),
        (vec![2], Some(Violation::ClosedCriticalStream)),
        (vec![3], Some(Violation::ClosedCriticalStream)),
        (vec![0x21, 1, 2, 3], None),
        (vec![], None),
        (vec![0x40], None),
    ] {
        assert_eq!(client_reads(&mut client(0), 3, &bytes, true).1, violation, "{bytes:?}");
        let mut other = client(0);
        assert_eq!(client_reads(&mut other, 3, &bytes, false).1, None);
        assert_eq!(other.reset(3, 0).err().map(|error| error.violation), violation, "{bytes:?}");
    }
    // Streams that a connection has once, and streams that nobody needs.
    for kind in [0, 2, 3] {
        let mut client = client(0);
        assert_eq!(client_reads(&mut client, 3, &[kind], false).1, None);
        assert_eq!(client_reads(&mut client, 7, &[kind], false).1, Some(Violation::RepeatedStream));
    }
    let mut greased = client(0);
    let last = (0..65).map(|n| client_reads(&mut greased, 4 * n + 3, &[0x21], false).1).collect::<Vec<_>>();
    assert_eq!((last[63], last[64]), (None, Some(Violation::TooManyStreams)));
    assert_eq!(client_reads(&mut client(0), 1, &[0], false).1, Some(Violation::ServerRequest));
}

#[test]
fn streams_of_qpack_have_nothing_to_say() {
    for (bytes, violation) in [
        (&[2, 0x20, 0x20][..], None),
        (&[2, 0x3f, 1], Some(Violation::EncoderInstruction)),
        (&[2, 0xc0, 1, b'a'], Some(Violation::EncoderInstruction)),
        (&[3, 0x44, 0x7f, 0x80, 0x01, 0x40], None),
        (&[3, 0x84], Some(Violation::DecoderInstruction)),
        (&[3, 0x01], Some(Violation::DecoderInstruction)),
        (&[3, 0x00], Some(Violation::DecoderInstruction)),
        (&[3, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Some(Violation::DecoderInstruction)),
    ] {
        for size in 1..=bytes.len() {
            let mut client = client(0);
            let found = bytes.chunks(size).find_map(|piece| client_reads(&mut client, 3, piece, false).1);
            assert_eq!(found, violation, "{bytes:x?}");
        }
    }
}

#[test]
fn goaway_says_which_requests_are_lost() {
    let mut client = client(4);
    let bytes = control(&[frame(7, &[8])]);
    assert_eq!(
        client_reads(&mut client, 3, &bytes, false).0,
        [
            "settings",
            "goaway",
            "reset 2: not processed: the peer goes away (H3_REQUEST_CANCELLED)",
            "reset 3: not processed: the peer goes away (H3_REQUEST_CANCELLED)",
        ]
    );
    assert_eq!((client.open(), client.is_closing(), client.goaway()), (2, true, true));
    assert_eq!(client_reads(&mut client, 4, &with(&OK, &[]), true).0.last().unwrap(), "end 1");
    let get = Prepared::request(&Request { method: "GET", scheme: "https", authority: "a", path: "/", headers: &[] });
    assert_eq!(client.request(16, 9, &get.unwrap(), Body::None, &mut Vec::new()), Err(SendError::Closing));
    // Ours names the first request that is too late.
    let mut server = Server::new(&Options::default());
    server_reads(&mut server, 4, &with(&GET, &[]), true);
    let mut out = Vec::new();
    server.go_away(&mut out);
    server.go_away(&mut out);
    assert_eq!(out, frame(7, &[8]));
    assert_eq!(server_reads(&mut server, 8, &with(&GET, &[]), true), (vec!["refused".into()], None));
}

#[test]
fn resets_reach_their_streams_and_an_endless_series_ends_the_connection() {
    let mut client = client(2);
    assert_eq!(
        client.reset(4, Code::REQUEST_REJECTED.0).unwrap(),
        Some(ClientEvent::Reset { tag: 1, id: 4, cause: ResetCause::Peer(Code::REQUEST_REJECTED) })
    );
    assert!(ResetCause::Peer(Code::REQUEST_REJECTED).not_processed());
    assert_eq!(client.reset(4, 0).unwrap(), None);
    assert_eq!((client.cancel(0), client.cancel(0), client.open()), (Some(0), None, 0));
    assert_eq!(client_reads(&mut client, 0, &frame(0, b"dropped"), true), (vec![], None));

    let limits = Limits { resets: 2, idle_frames: 2, ..Limits::default() };
    let mut server = Server::new(&Options { limits, ..Options::default() });
    let mut error = None;
    for id in (0..12).step_by(4) {
        server_reads(&mut server, id, &with(&GET, &[]), false);
        error = server.reset_by_peer(id, Code::REQUEST_CANCELLED.0).err();
    }
    assert_eq!(error.map(|error| error.violation), Some(Violation::ResetFlood));
    let mut server = Server::new(&Options { limits, ..Options::default() });
    let grease = frame(0x21, b"").repeat(3);
    assert_eq!(server_reads(&mut server, 0, &grease, false).1, Some(Violation::Flood));
}

#[test]
fn sections_of_the_rfc_and_every_form() {
    let read = |bytes: &[u8]| {
        probe::read(bytes).map(|headers| {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            headers.into_iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect::<Vec<_>>()
        })
    };
    // RFC 9204 appendix B.1.
    let path = [0, 0, 0x51, 0x0b, 0x2f, 0x69, 0x6e, 0x64, 0x65, 0x78, 0x2e, 0x68, 0x74, 0x6d, 0x6c];
    assert_eq!(read(&path).unwrap(), [":path=/index.html"]);
    // Indexed; a long index; a name that is an entry's, never indexed; names and values as they are, and coded.
    assert_eq!(read(&[0, 0, 0xd9]).unwrap(), [":status=200"]);
    assert_eq!(read(&[0, 0, 0xff, 0x23]).unwrap(), ["x-frame-options=sameorigin"]);
    assert_eq!(read(&[0, 0, 0x7f, 0x50, 1, b'a']).unwrap(), ["user-agent=a"]);
    assert_eq!(read(&[0, 0, 0x22, b'a', b'b', 0]).unwrap(), ["ab="]);
    assert_eq!(read(&[0, 0, 0x27, 0, b'a', b'b', b'c', b'd', b'e', b'f', b'g', 1, b'x']).unwrap(), ["abcdefg=x"]);
    assert_eq!(read(&[0, 0, 0x29, 0x1f, 0x81, 0x07]).unwrap(), ["a=0"]);
    // A distance of the Base means nothing without a table, however large it is.
    assert_eq!(read(&[0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xd9]).unwrap(), [":status=200"]);
    let (dynamic, garbled) = (Err(Violation::DynamicReference), Err(Violation::Compression));
    for (bytes, wanted) in [
        (&[][..], &garbled),
        (&[0], &garbled),
        (&[0, 0x80], &garbled),
        (&[1, 0], &dynamic),
        (&[0, 0, 0x80], &dynamic),
        (&[0, 0, 0x40, 0], &dynamic),
        (&[0, 0, 0x10], &dynamic),
        (&[0, 0, 0x00, 0], &dynamic),
        (&[0, 0, 0xff, 0x24], &garbled),
        (&[0, 0, 0x5f, 0x54, 0], &garbled),
        (&[0, 0, 0x51, 5, b'a'], &garbled),
        (&[0, 0, 0x51], &garbled),
        (&[0, 0, 0x51, 0x81, 0x06], &garbled),
        (&[0, 0, 0x51, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], &garbled),
    ] {
        assert_eq!(read(bytes), *wanted, "{bytes:x?}");
    }
    // Ours are as short as they can be.
    assert_eq!(probe::write(&[(":status", "200"), (":path", "/index.html")]).len(), 2 + 1 + 2 + 8);
}
