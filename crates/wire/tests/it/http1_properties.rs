//! Properties over generated input: valid messages however they are cut, what is written reads back, and any bytes at
//! all.

use crate::http1_oracle as oracle;
use crate::http1_oracle::{Seen, read};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use weir_wire::http1::encode::{self, BodyFraming, Persistence};
use weir_wire::http1::{Framing, Limits, RequestParser, ResponseParser, Version, headers};

type Headers = Vec<(String, String)>;

/// Headers that frame nothing, as they may be written: the value without white space at its ends.
fn plain_headers() -> impl Strategy<Value = Headers> {
    let name = "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}".prop_filter("frames", |name| {
        let frames = ["content-length", "transfer-encoding", "connection", "host", "expect"];
        !frames.contains(&name.to_ascii_lowercase().as_str())
    });
    let value = "([!-~\u{80}-\u{17f}]([ \t!-~\u{80}-\u{17f}]{0,30}[!-~\u{80}-\u{17f}])?)?";
    vec((name, value), 0..6)
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

/// A chunked body as sent: sizes in any case with zeros before, extensions, trailers.
fn chunked(body: &[u8], sizes: &[usize], extension: &str, trailers: &Headers) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| (*size).clamp(1, rest.len()));
        let (piece, after) = rest.split_at(size);
        out.extend_from_slice(format!("{size:03X}{extension}\r\n").as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
        rest = after;
    }
    out.extend_from_slice(format!("0{extension}\r\n").as_bytes());
    out.extend_from_slice(lines(trailers).as_bytes());
    out.extend_from_slice(b"\r\n");
    out
}

fn lines(headers: &Headers) -> String {
    headers.iter().map(|(name, value)| format!("{name}:\t{value} \r\n")).collect()
}

/// How a generated message's body is sent.
#[derive(Debug, Clone)]
enum Sent {
    Bare,
    Length,
    Chunked { sizes: Vec<usize>, extension: String, trailers: Headers },
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        Just(Sent::Bare),
        Just(Sent::Length),
        (vec(1..40usize, 1..5), "( ?;[a-z]{0,5}(=[a-z\"]{1,5})?){0,2}", plain_headers())
            .prop_map(|(sizes, extension, trailers)| Sent::Chunked { sizes, extension, trailers }),
    ]
}

/// A message: its headers' lines and body as sent, its framing, and the body as meant.
fn message(headers: &Headers, body: &[u8], sent: &Sent) -> (String, Vec<u8>, Option<Framing>) {
    let (framing_line, bytes, framing) = match sent {
        Sent::Bare => (String::new(), Vec::new(), None),
        Sent::Length => {
            let length = body.len();
            (format!("Content-Length: {length}\r\n"), body.to_vec(), Some(Framing::Length(length as u64)))
        }
        Sent::Chunked { sizes, extension, trailers } => (
            "Transfer-Encoding: chunked\r\n".to_owned(),
            chunked(body, sizes, extension, trailers),
            Some(Framing::Chunked),
        ),
    };
    (lines(headers) + &framing_line + "\r\n", bytes, framing)
}

fn push_body(seen: &mut Vec<Seen>, body: &[u8]) {
    if !body.is_empty() {
        seen.push(Seen::Body(body.to_vec()));
    }
}

/// Responses in a row: bytes, which requests were HEAD, and what is to be seen.
fn some_responses() -> impl Strategy<Value = (Vec<u8>, Vec<bool>, Vec<Seen>)> {
    let one = (
        vec(select(vec![100u16, 102, 103, 199]), 0..3),
        select(vec![200u16, 204, 304, 404, 503, 799]),
        plain_headers(),
        body(),
        sent(),
        any::<bool>(),
    );
    vec(one, 1..5).prop_map(|all| {
        let (mut bytes, mut heads, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        let mut closed = false;
        for (infos, status, headers, body, sent, head) in all {
            heads.push(head);
            if closed {
                continue;
            }
            for info in infos {
                bytes.extend_from_slice(format!("HTTP/1.1 {info} X\r\n{}\r\n", lines(&headers)).as_bytes());
                seen.push(Seen::Informational(info));
            }
            let (rest, body_bytes, framing) = message(&headers, &body, &sent);
            let raw = format!("HTTP/1.1 {status} Some reason\r\n{rest}").into_bytes();
            bytes.extend_from_slice(&raw);
            let bodiless = head || status == 204 || status == 304;
            let framing = if bodiless { Framing::None } else { framing.unwrap_or(Framing::UntilClose) };
            seen.push(Seen::Response { version: Version::Http11, status, framing, raw });
            match framing {
                Framing::None => seen.push(Seen::End { keep_alive: true }),
                Framing::UntilClose => {
                    bytes.extend_from_slice(&body);
                    push_body(&mut seen, &body);
                    closed = true;
                    seen.push(Seen::Eof(Ok(true)));
                }
                Framing::Length(_) | Framing::Chunked => {
                    bytes.extend_from_slice(&body_bytes);
                    push_body(&mut seen, &body);
                    seen.push(Seen::End { keep_alive: true });
                }
            }
        }
        if !closed {
            seen.push(Seen::Eof(Ok(false)));
        }
        (bytes, heads, seen)
    })
}

/// Requests in a row: bytes, and what is to be seen.
fn some_requests() -> impl Strategy<Value = (Vec<u8>, Vec<Seen>)> {
    let one = ("[A-Z]{1,9}", "/[!-~]{0,30}", plain_headers(), body(), sent(), any::<[bool; 2]>());
    vec(one, 1..5).prop_map(|all| {
        let (mut bytes, mut seen) = (Vec::new(), Vec::new());
        for (method, target, mut headers, body, sent, [empty_line, expect]) in all {
            if method == "CONNECT" {
                continue;
            }
            if empty_line {
                bytes.extend_from_slice(b"\r\n");
            }
            headers.push(("hOST".into(), "h:1".into()));
            if expect {
                headers.push(("expect".into(), "100-Continue".into()));
            }
            let (rest, body_bytes, framing) = message(&headers, &body, &sent);
            let raw = format!("{method} {target} HTTP/1.1\r\n{rest}").into_bytes();
            bytes.extend_from_slice(&raw);
            bytes.extend_from_slice(&body_bytes);
            let framing = framing.unwrap_or(Framing::None);
            seen.push(Seen::Request {
                version: Version::Http11,
                method: method.into_bytes(),
                target: target.into_bytes(),
                framing,
                expects_continue: expect && !matches!(framing, Framing::None | Framing::Length(0)),
                raw,
            });
            if framing != Framing::None {
                push_body(&mut seen, &body);
            }
            seen.push(Seen::End { keep_alive: true });
        }
        seen.push(Seen::Eof(Ok(false)));
        (bytes, seen)
    })
}

/// The pieces between the places where it is cut.
fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    vec(any::<Index>(), 0..20)
}

fn parser_for(heads: &[bool]) -> ResponseParser {
    let mut parser = ResponseParser::new(Limits::default());
    heads.iter().for_each(|&head| parser.request_sent(head));
    parser
}

fn as_text(raw: &[u8]) -> Headers {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    headers(raw).map(|(name, value)| (text(name), text(value))).collect()
}

proptest! {
    #[test]
    fn valid_responses_read_the_same_however_cut((bytes, heads, seen) in some_responses(), cuts in cuts()) {
        let closes = seen.last() == Some(&Seen::Eof(Ok(true)));
        // Requests after a response that closes would be errors at the end, which this test does not cover.
        let answered = seen.iter().filter(|s| matches!(s, Seen::Response { .. })).count();
        let heads = if closes { &heads[..answered] } else { &heads[..] };
        prop_assert_eq!(&read(&mut parser_for(heads), [&bytes[..]]), &seen);
        prop_assert_eq!(&read(&mut parser_for(heads), pieces(&bytes, &cuts)), &seen);
        prop_assert_eq!(&read(&mut parser_for(heads), bytes.chunks(1)), &seen);
    }

    #[test]
    fn valid_requests_read_the_same_however_cut((bytes, seen) in some_requests(), cuts in cuts()) {
        let new = || RequestParser::new(Limits::default());
        prop_assert_eq!(&read(&mut new(), [&bytes[..]]), &seen);
        prop_assert_eq!(&read(&mut new(), pieces(&bytes, &cuts)), &seen);
        prop_assert_eq!(&read(&mut new(), bytes.chunks(1)), &seen);
    }

    #[test]
    fn a_valid_response_cut_off_is_no_complete_one((bytes, heads, _) in some_responses(), at in any::<Index>()) {
        let at = at.index(bytes.len());
        let seen = read(&mut parser_for(&heads), [&bytes[..at]]);
        // Fewer ends than requests, unless the last response lasts until the close anyway.
        let ends = seen.iter().filter(|s| matches!(s, Seen::End { .. })).count();
        match seen.last() {
            Some(Seen::Eof(Ok(false))) => prop_assert_eq!(ends, heads.len()),
            Some(Seen::Eof(Ok(true))) => {
                let until_close = |s: &Seen| matches!(s, Seen::Response { framing: Framing::UntilClose, .. });
                prop_assert!(seen.iter().any(until_close));
            }
            Some(Seen::Eof(Err(_))) => prop_assert!(ends < heads.len()),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn written_requests_are_read_back(
        method in "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,10}",
        target in "(/[!-~]{0,30}|\\*|http://[a-z.]{1,9}(:[0-9]{1,5})?/[!-~]{0,9})",
        mut fields in plain_headers(),
        host in "[a-z0-9.-]{0,12}(:[0-9]{0,5})?",
        body in body(),
        cuts in cuts(),
    ) {
        prop_assume!(method != "CONNECT");
        fields.push(("Host".into(), host));
        let mut out = Vec::new();
        encode::request(&mut out, &method, &target, &fields, &body).expect("can be written");
        let seen = read(&mut RequestParser::new(Limits::default()), pieces(&out, &cuts));
        let Seen::Request { method: m, target: t, framing, raw, .. } = &seen[0] else {
            panic!("{}", oracle::line(&seen))
        };
        prop_assert_eq!((m.as_slice(), t.as_slice()), (method.as_bytes(), target.as_bytes()));
        let announced = !body.is_empty() || ["POST", "PUT", "PATCH"].contains(&method.as_str());
        prop_assert_eq!(*framing, if announced { Framing::Length(body.len() as u64) } else { Framing::None });
        if announced {
            fields.push(("Content-Length".into(), body.len().to_string()));
        }
        prop_assert_eq!(as_text(raw), fields);
        let mut rest = Vec::new();
        push_body(&mut rest, &body);
        rest.extend([Seen::End { keep_alive: true }, Seen::Eof(Ok(false))]);
        prop_assert_eq!(&seen[1..], &rest);
    }

    #[test]
    fn written_responses_are_read_back(
        status in 200u16..1000,
        fields in plain_headers(),
        body in body(),
        chunks in proptest::option::of(1usize..50),
        close in any::<bool>(),
        cuts in cuts(),
    ) {
        let bodiless = status == 204 || status == 304;
        let framing = match chunks {
            _ if bodiless => BodyFraming::None,
            Some(_) => BodyFraming::Chunked,
            None => BodyFraming::Length(body.len() as u64),
        };
        let persistence = if close { Persistence::Close } else { Persistence::Implied };
        let given: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        let mut out = Vec::new();
        encode::response_head(&mut out, status, &given, framing, persistence).expect("can be written");
        match framing {
            BodyFraming::Chunked => {
                body.chunks(chunks.unwrap_or(1)).for_each(|piece| encode::chunk(&mut out, piece));
                out.extend_from_slice(encode::LAST_CHUNK);
            }
            BodyFraming::Length(_) => out.extend_from_slice(&body),
            BodyFraming::None => {}
        }
        let seen = read(&mut parser_for(&[false]), pieces(&out, &cuts));
        let Seen::Response { status: s, raw, .. } = &seen[0] else { panic!("{}", oracle::line(&seen)) };
        prop_assert_eq!(*s, status);
        prop_assert_eq!(&as_text(raw)[..fields.len()], &fields[..]);
        let mut rest = Vec::new();
        if !bodiless {
            push_body(&mut rest, &body);
        }
        rest.extend([Seen::End { keep_alive: !close }, Seen::Eof(Ok(false))]);
        prop_assert_eq!(&seen[1..], &rest);
    }

    #[test]
    fn parser_properties_hold_for_any_bytes(data in vec(any::<u8>(), 0..300)) {
        oracle::responses(&data);
        oracle::requests(&data);
    }

    /// Bytes at random hardly ever get past the start line; pieces of HTTP do.
    #[test]
    fn parser_properties_hold_for_pieces_of_http(
        control in "[0-7][0-7][0-?]",
        start in select(vec!["", "HTTP/1.1 200 OK\r\n", "POST / HTTP/1.1\r\nHost: h\r\n"]),
        rest in vec(select(FRAGMENTS), 0..25),
    ) {
        let data = control + start + &rest.concat();
        oracle::responses(data.as_bytes());
        oracle::requests(data.as_bytes());
    }

    #[test]
    fn parser_properties_hold_for_messages_with_a_changed_byte(
        control in "[0-7][0-7][0-?]",
        (mut bytes, _, _) in some_responses(),
        (mut requests, _) in some_requests(),
        at in any::<Index>(),
        to in prop_oneof![any::<u8>(), select(b"\r\n \t:;0,\0".to_vec())],
    ) {
        let place = at.index(bytes.len());
        bytes[place] = to;
        oracle::responses(&[control.as_bytes(), &bytes].concat());
        if !requests.is_empty() {
            let place = at.index(requests.len());
            requests[place] = to;
        }
        oracle::requests(&[control.as_bytes(), &requests].concat());
    }

    #[test]
    fn parser_properties_hold_for_heads_that_differ_in_a_value(
        control in "0[01]0",
        is_response in any::<bool>(),
        heads in vec(
            (select(vec!["ab", "cd", "a b", "a\tb", "a\rb", "a\0b", "", "abc", " a", "a\u{e9}"]), select(vec!["0", "1"]), select(vec!["A: b\r\n", ""])),
            1..14
        ),
    ) {
        let start = if is_response { "HTTP/1.1 200 OK" } else { "GET / HTTP/1.1\r\nHost: h" };
        let message = |(value, length, other): &(&str, &str, &str)| {
            let body = if *length == "1" { "x" } else { "" };
            format!("{start}\r\nX-Weir-Id: {value}\r\n{other}Content-Length: {length}\r\n\r\n{body}")
        };
        let data = control + &heads.iter().map(message).collect::<String>();
        oracle::responses(data.as_bytes());
        oracle::requests(data.as_bytes());
    }
}

const FRAGMENTS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 204 \r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "GET / HTTP/1.1\r\n",
    "Host: h\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "content-length: 5, 6\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Expect: 100-continue\r\n",
    "A: b\r\n",
    "A : b\r\n",
    " folded\r\n",
    "\r\n",
    "\r\n\r\n",
    "\r",
    "\n",
    "\0",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "ffffffffffffffff\r\n",
    "5;ext=1\r\n",
    "hello",
    "x",
];
