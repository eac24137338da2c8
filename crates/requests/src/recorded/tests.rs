//! Tests of the module: each format by lines that real programs wrote, mistakes, and texts of any kind.

use proptest::prelude::*;

use super::*;

const NGINX: &str = r#"192.0.2.7 - - [23/Nov/2026:20:00:01 +0000] "GET /a?x=1 HTTP/1.1" 200 612 "-" "curl/8.14.1"
192.0.2.8 - ann [23/Nov/2026:20:00:03 +0000] "POST /b HTTP/2.0" 404 153 "https://shop.example/?q=[1] \x22x\x22" "Mozilla/5.0"
192.0.2.9 - - [23/Nov/2026:20:00:02 +0000] "\x16\x03\x01\x02" 400 157 "-" "-"
192.0.2.9 - - [23/Nov/2026:20:00:02 +0000] "" 400 0 "-" "-"
192.0.2.9 - - [23/Nov/2026:20:00:02 +0000] "GET http://shop.example/c#d HTTP/1.1" 200 -
"#;

const ENVOY: &str = r#"{"start_time":"2026-11-23T20:00:00.250Z","method":"GET","path":"/a","authority":"shop.example","response_code":200}

{"start_time":"2026-11-23T20:00:00.000Z","method":"GET","path":"/b","authority":"Shop.example:8443","duration":3}
{"start_time":"2026-11-23T20:00:01.000Z","method":null,"path":null,"authority":null,"response_code":0}
"#;

const HAR: &str = r#"{ "log": { "version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": [
  {"startedDateTime": "2026-11-23T21:00:00.500+01:00", "time": 3, "request": {"method": "POST", "url": "https://shop.example/login?x#top",
   "headers": [{"name": ":authority", "value": "shop.example"}, {"name": "Content-Length", "value": "3"}, {"name": "X-A", "value": "1"}],
   "postData": {"mimeType": "text/plain", "text": "a=1"}}, "response": {"status": 200}},
  {"startedDateTime": "2026-11-23T20:00:00.400Z", "request": {"method": "GET", "url": "https://cdn.example:444", "headers": []}},
  {"startedDateTime": "2026-11-23T20:00:00.400Z", "request": {"method": "GET", "url": "wss://shop.example/live", "headers": []}},
  {"startedDateTime": "2026-11-23T20:00:00.400Z", "request": {"method": "POST", "url": "https://shop.example/up", "headers": [],
   "postData": {"mimeType": "multipart/form-data", "params": []}}},
  {"startedDateTime": "2026-11-23T20:00:00.400Z", "request": {"method": "PUT", "url": "https://shop.example/b", "headers": [],
   "postData": {"mimeType": "x/y", "text": "AAE=", "encoding": "base64"}}}
] } }"#;

fn short(recording: &Recording) -> Vec<(usize, Option<&str>, &str, &str)> {
    recording.requests.iter().map(|r| (r.place, r.host.as_deref(), r.method.as_str(), r.path.as_str())).collect()
}

fn read(bytes: impl AsRef<[u8]>) -> Recording {
    parse("file", bytes.as_ref(), Format::of(bytes.as_ref()).expect("a recording")).expect("right")
}

/// How many entries were left out for a reason, where the first is, and why.
fn omitted(recording: &Recording, reason: Reason) -> Option<(u64, usize, &str)> {
    recording.omitted.get(&reason).map(|omitted| (omitted.count, omitted.place, omitted.why.as_str()))
}

/// A file that practitioners have, also of the fuzz target's corpus.
fn kept(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/request_files").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn formats_are_known_by_their_content() {
    for (text, format) in [
        (NGINX, Some(Format::Combined)),
        (ENVOY, Some(Format::Json)),
        (HAR, Some(Format::Har)),
        ("\u{feff}\n{\"log\" : {", Some(Format::Har)),
        ("{\"comment\":\"x\", \"log\": {\"version\":\"1.2\", \"entries\" : [", Some(Format::Har)),
        ("{\"log\":\"x\",\"path\":\"/\"}", Some(Format::Json)),
        ("cut off\n::1 - - [23/Nov/2026:20:00:00 +0000] \"GET / HTTP/1.1\" 200 5", Some(Format::Combined)),
        ("http://h/ 3\n", None),
        ("# a list\nGET http://h/[1]\n", None),
        ("0\n0.5\n", None),
        ("", None),
    ] {
        assert_eq!(Format::of(text.as_bytes()), format, "{text}");
    }
    for (name, format) in [
        ("haproxy-httplog.log", Format::Haproxy),
        ("haproxy-variants.log", Format::Haproxy),
        ("envoy-default.log", Format::Envoy),
        ("envoy-variants.log", Format::Envoy),
        ("elb.log", Format::Elb),
        ("caddy.log", Format::Json),
        ("traefik-json.log", Format::Json),
        ("traefik-clf-dash-status.log", Format::Combined),
        ("prefixed.log", Format::Combined),
        ("vhost_combined.log", Format::Combined),
        ("key-order.har", Format::Har),
    ] {
        assert_eq!(Format::of(&kept(name)), Some(format), "{name}");
    }
}

/// Requests of a file, as time since its first in milliseconds, method, host and path.
fn timed(name: &str) -> (Vec<String>, Recording) {
    let recording = read(kept(name));
    let first = recording.requests.iter().filter_map(|request| request.at).min().expect("a time");
    let line = |request: &RecordedRequest| {
        let since = request.at.expect("a time").as_millisecond() - first.as_millisecond();
        format!("{since} {} {}{}", request.method, request.host.as_deref().unwrap_or("-"), request.path)
    };
    (recording.requests.iter().map(line).collect(), recording)
}

#[test]
fn logs_of_proxies_have_time_method_path_and_host() {
    for (name, expected) in [
        ("haproxy-httplog.log", &["0 GET shop.example/a.js", "329 GET shop.example/index.html"][..]),
        (
            "haproxy-variants.log",
            &["0 POST shop.example:8443/captured", "100 GET shop.example/h2", "300 GET shop.example/tls"],
        ),
        ("envoy-default.log", &["0 POST shop.example/api/v1/x", "90 GET shop.example/x"]),
        ("envoy-variants.log", &["0 GET shop.example/istio", "190 GET cdn.example:444/other"]),
        ("elb.log", &["0 GET shop.example:443/a", "1000 GET shop.example:80/b"]),
        ("caddy.log", &["0 GET shop.example/a?x=1"]),
        ("traefik-json.log", &["0 GET shop.example/ping"]),
        (
            "vhost_combined.log",
            &["0 GET a.example:443/only-on-a", "0 GET b.example:443/only-on-b", "1000 POST b.example:443/only-on-b"],
        ),
        ("prefixed.log", &["0 GET -/a", "1000 GET -/b", "2000 GET -/c"]),
        (
            "objects-of-many.log",
            &[
                "0 GET shop.example/a?x=1",
                "750 POST shop.example/b?y=2",
                "1750 GET -/c",
                "4250 GET shop.example/e",
                "4750 GET shop.example/f",
                "5750 GET shop.example/g",
            ],
        ),
    ] {
        assert_eq!(timed(name).0, expected, "{name}");
    }
    assert_eq!(
        read(kept("caddy.log")).requests[0].at.map(|at| at.to_string()).as_deref(),
        Some("2026-01-05T10:00:00.5Z")
    );
    let (_, haproxy) = timed("haproxy-variants.log");
    assert_eq!(
        omitted(&haproxy, Reason::Unsendable).map(|(n, line, _)| (n, line)),
        Some((2, 4)),
        "BADREQ, and a cut one"
    );
    assert_eq!(omitted(&haproxy, Reason::Malformed), Some((1, 1, "it is no entry of an HTTP log of HAProxy")));
    let (_, objects) = timed("objects-of-many.log");
    assert_eq!(omitted(&objects, Reason::Unsendable), Some((1, 8, "\"\" is no request")));
    assert!(objects.names_hosts && !read(kept("prefixed.log")).names_hosts);
}

#[test]
fn an_odd_line_is_left_out_and_counted() {
    for (name, reason, why) in [
        ("traefik-clf-dash-status.log", Reason::Unsendable, "it has no status: it had no response"),
        ("truncated-last-line.log", Reason::Malformed, "it is no entry of a combined access log"),
        ("latin1-user-agent.log", Reason::Malformed, "it is not UTF-8 from column 76 on"),
    ] {
        let log = read(kept(name));
        assert_eq!(short(&log), [(1, None, "GET", "/a")], "{name}");
        assert_eq!(omitted(&log, reason), Some((1, 2, why)), "{name}");
    }
    // More than half of the lines is another file.
    let text = [NGINX.lines().next().expect("a line"), "x", "y"].join("\n");
    let error = parse("log", text.as_bytes(), Format::Combined).expect_err("two of three").to_string();
    let expected = "log:2: it is no entry of a combined access log, and so for 2 of 3; at most half may be left out";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn combined_logs_are_read_and_put_in_order() {
    let mut log = read(NGINX);
    let shop = Some("shop.example");
    assert_eq!(short(&log), [(1, None, "GET", "/a?x=1"), (2, None, "POST", "/b"), (5, shop, "GET", "/c")]);
    assert_eq!(omitted(&log, Reason::Unsendable).map(|(n, line, _)| (n, line)), Some((2, 3)));
    assert!(!log.names_hosts, "one in absolute form");
    assert_eq!(log.timetable("file", 2.0).expect("timed"), [0.0, 0.5, 1.0]);
    assert_eq!(log.requests.iter().map(|r| r.place).collect::<Vec<_>>(), [1, 5, 2]);
}

#[test]
fn a_virtual_host_stands_before_the_client() {
    for (before, host) in [
        ("a.example:443 192.0.2.1 - -", Some("a.example:443")),
        ("a.example 192.0.2.1 - ann", Some("a.example")),
        ("[2001:db8::1]:443 192.0.2.1 - -", Some("[2001:db8::1]:443")),
        ("A.example:80 - - -", Some("a.example:80")),
        ("192.0.2.1 - john doe", None),
        ("2001:db8::1 - -", None),
        ("192.0.2.1, 192.0.2.2 - -", None),
        ("192.0.2.1 192.0.2.2 - -", None),
        ("_ 192.0.2.1 - -", None),
        ("unix: - -", None),
    ] {
        let log = read(format!("{before} [23/Nov/2026:20:00:02 +0000] \"GET / HTTP/1.1\" 200 5"));
        assert_eq!((log.requests[0].host.as_deref(), log.names_hosts), (host, host.is_some()), "{before}");
    }
}

#[test]
fn requests_of_one_second_are_spread_over_it() {
    let line = |second: u32| format!("::1 - - [23/Nov/2026:20:00:{second:02} +0100] \"GET / HTTP/1.1\" 200 5\n");
    let text = [line(7), line(7), line(7), line(7), line(9)].concat();
    assert_eq!(read(&text).timetable("file", 1.0).expect("timed"), [0.0, 0.25, 0.5, 0.75, 2.0]);
    // Finer times are taken as they are.
    let same = ENVOY.replace(".250Z", ".000Z");
    assert_eq!(read(&same).timetable("file", 1.0).expect("timed"), [0.0, 0.0]);
}

#[test]
fn times_are_read_as_they_are_written() {
    for (text, ns, has_fraction) in [
        ("2026-01-05T10:00:00Z", 0, false),
        ("2026-01-05T11:00:00.250+01:00", 250_000_000, true),
        ("2026-01-05T10:00:00.500+0000", 500_000_000, true),
        ("05/Jan/2026:12:00:00 +0200", 0, false),
        ("05/Jan/2026:10:00:00.726", 726_000_000, true),
        ("2026/01/05 10:00:00.000", 0, true),
        ("2026-01-05 10:00:00", 0, false),
        ("1767607200", 0, false),
        ("1767607200.25", 250_000_000, true),
        ("1767607200250", 250_000_000, true),
        ("1767607200250000", 250_000_000, true),
    ] {
        let time = time::read_time(text).unwrap_or_else(|| panic!("{text}"));
        let since = time.at.as_nanosecond() - 1_767_607_200_000_000_000;
        assert_eq!((since, time.has_fraction), (ns, has_fraction), "{text}");
    }
    for wrong in ["", "now", "-", "2026-13-05T10:00:00Z", "-5", "inf", "nan"] {
        assert_eq!(time::read_time(wrong), None, "{wrong}");
    }
}

#[test]
fn logs_of_objects_are_read() {
    let mut log = read(ENVOY);
    let expected = [(1, Some("shop.example"), "GET", "/a"), (3, Some("shop.example:8443"), "GET", "/b")];
    assert_eq!(short(&log), expected);
    assert_eq!(omitted(&log, Reason::Unsendable), Some((1, 4, "it has no request")));
    assert_eq!(log.timetable("file", 0.5).expect("timed"), [0.0, 0.5]);
}

#[test]
fn archives_have_headers_and_bodies() {
    let mut har = read(HAR);
    let (shop, cdn) = (Some("shop.example"), Some("cdn.example:444"));
    assert_eq!(short(&har), [(1, shop, "POST", "/login?x"), (2, cdn, "GET", "/"), (5, shop, "PUT", "/b")]);
    let why = "wss://shop.example/live is no URL of HTTP";
    assert_eq!(omitted(&har, Reason::Unsendable), Some((2, 3, why)));
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(har.requests[0].headers, [header("X-A", "1"), header("Content-Type", "text/plain")]);
    let bodies: Vec<_> = har.requests.iter().map(|r| r.body.clone().expect("recorded")).collect();
    assert_eq!(bodies, [b"a=1".to_vec(), Vec::new(), vec![0, 1]]);
    let due = har.timetable("file", 1.0).expect("timed");
    assert!((due[2] - 0.1).abs() < 1e-9 && due[..2] == [0.0, 0.0], "{due:?}");
}

#[test]
fn archives_of_browsers_are_read_as_they_are() {
    let paths = |name: &str| -> (Vec<String>, Recording) {
        let har = read(kept(name));
        (har.requests.iter().map(|r| format!("{} {}", r.method, r.path)).collect(), har)
    };
    let (firefox, har) = paths("firefox-get-postdata.har");
    assert_eq!(firefox, ["GET /", "GET /a.css"]);
    assert!(
        har.requests.iter().all(|request| request.body.as_ref().is_some_and(Vec::is_empty)) && har.omitted.is_empty()
    );
    let (form, har) = paths("form-params.har");
    assert_eq!(form, ["GET /", "POST /login"]);
    assert_eq!(har.requests[1].body.as_deref(), Some(&b"user=a+b&pin=1%262"[..]));
    let kind = ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned());
    assert_eq!(har.requests[1].headers, [kind]);
    let (cached, har) = paths("from-cache.har");
    assert_eq!(cached, ["GET /"]);
    assert_eq!(omitted(&har, Reason::Cached), Some((2, 2, "https://shop.example/logo.png")));
    let (newline, har) = paths("header-newline.har");
    assert_eq!(newline, ["GET /b"]);
    let why = "the header Accept has a control byte, or white space at an end of its value";
    assert_eq!(omitted(&har, Reason::Unsendable), Some((1, 1, why)));
    assert_eq!(paths("backslash-query.har").0, ["GET /s?re=%5Cd+%5Cw", "GET /"]);
    assert_eq!(paths("key-order.har").0, ["GET /"]);
}

#[test]
fn a_body_that_was_not_recorded_is_none() {
    let entry = |method: &str, rest: &str| {
        let request = format!("{{\"method\":\"{method}\",\"url\":\"http://h/\"{rest}}}");
        format!("{{\"log\":{{\"entries\":[{{\"request\":{request}}}]}}}}")
    };
    for (method, rest, body) in [
        ("POST", ",\"bodySize\":5", None),
        ("POST", ",\"bodySize\":-1", Some("")),
        ("POST", ",\"postData\":{\"mimeType\":\"a/b\",\"text\":\"\"}", Some("")),
        ("POST", ",\"bodySize\":5,\"postData\":{\"mimeType\":\"a/b\",\"text\":\"\"}", None),
        ("POST", ",\"postData\":{\"mimeType\":\"multipart/form-data\",\"params\":[{\"name\":\"a\"}]}", None),
        ("PUT", ",\"postData\":{\"text\":\"?\",\"encoding\":\"base64\"}", None),
        ("GET", ",\"bodySize\":0,\"postData\":{\"mimeType\":\"a/b\"}", Some("")),
    ] {
        let read = parse("x", entry(method, rest).as_bytes(), Format::Har);
        let found = read.ok().and_then(|har| har.requests[0].body.clone());
        assert_eq!(found.as_deref(), body.map(str::as_bytes), "{method} {rest}");
    }
}

#[test]
fn each_browser_marks_what_it_had_in_its_cache() {
    for (mark, cached) in [
        ("\"_fromCache\":\"disk\"", true),
        ("\"_fromCache\":true", true),
        ("\"_fetchType\":\"Memory Cache\"", true),
        ("\"cache\":{\"afterRequest\":null}", true),
        ("\"cache\":{\"beforeRequest\":{\"hitCount\":1}}", true),
        ("\"_fromCache\":false", false),
        ("\"_fetchType\":\"Network Load\"", false),
        ("\"cache\":{}", false),
        ("\"cache\":{\"beforeRequest\":null,\"afterRequest\":null}", false),
        ("\"cache\":{\"afterRequest\":{\"hitCount\":1}}", false),
    ] {
        let entry = format!("{{{mark},\"request\":{{\"method\":\"GET\",\"url\":\"http://h/\"}}}}");
        let read = parse("x", format!("{{\"log\":{{\"entries\":[{entry}]}}}}").as_bytes(), Format::Har);
        assert_eq!(read.is_err(), cached, "{mark}");
    }
}

#[test]
fn mistakes_have_their_place() {
    for (format, text, shown) in [
        (Format::Combined, "\nhello\n", "log:2: it is no entry of a combined access log\n  expected: host"),
        (Format::Combined, "h - - [yesterday] \"GET / HTTP/1.1\" 200 1", "log:1: \"yesterday\" is not a time"),
        (Format::Combined, "h - - [32/Nov/2026:20:00:02 +0000] \"GET / HTTP/1.1\" 200 1", "log:1: \"32/Nov"),
        (Format::Haproxy, "hello", "log:1: it is no entry of an HTTP log of HAProxy\n  expected: 192.0.2.1"),
        (Format::Envoy, "[x] \"GET / HTTP/1.1\" 200 -", "log:1: \"x\" is not a time\n  expected: [2026"),
        (Format::Elb, "hello", "log:1: it is no entry of an access log of AWS's load balancers"),
        (Format::Json, "{\"path\":\"/\"}\n{\"method\":\"GET\"}", "log:1: it has no \"method\", and so for 2 of 2"),
        (Format::Json, "{\"method\":\"GET\"}", "log:1: it has no \"path\""),
        (Format::Json, "{\"method\":", "log:1: it is no JSON object: EOF while parsing a value at line 1 column 10"),
        (Format::Json, "{\"method\":\"GET\",\"path\":\"/\",\"time\":\"now\"}", "log:1: \"now\" is not a time"),
        (
            Format::Har,
            "{\"log\":{\n\"entries\":[{}]}}",
            "log: entry 1: missing field `request`\n  expected: log.entries",
        ),
        (Format::Har, "{\"log\":{\n\"entries\":1}}", "log:2: it is no HAR file: invalid type"),
        (Format::Har, "{\"log\":{\"entries\":[]}}", "log: it has no requests"),
        (Format::Combined, "", "log: it has no requests"),
        (Format::Json, "{\"method\":\"-\",\"path\":\"-\"}", "log:1: none of its 1 entries"),
    ] {
        let error = parse("log", text.as_bytes(), format).expect_err(text).to_string();
        assert!(error.starts_with(shown), "{error}");
    }
}

#[test]
fn a_replay_needs_times_and_ends_within_a_day() {
    let text = "{\"method\":\"GET\",\"path\":\"/\",\"start_time\":\"2026-11-23T20:00:00Z\"}\n{\"method\":\"GET\",\"path\":\"/\"}";
    let error = read(text).timetable("log", 1.0).expect_err("one has none").to_string();
    assert!(error.starts_with("log:2: a request without a time"), "{error}");
    // A mix needs none.
    let har = "{\"log\":{\"entries\":[{\"request\":{\"method\":\"GET\",\"url\":\"http://h/\"}},
        {\"startedDateTime\":\"\",\"request\":{\"method\":\"GET\",\"url\":\"http://h/b\"}}]}}";
    let mut untimed = read(har);
    assert_eq!(untimed.requests.len(), 2);
    let error = untimed.timetable("har", 1.0).expect_err("none has one").to_string();
    assert!(error.starts_with("har: entry 1 has no time, and a replay needs one"), "{error}");
    let line = |day: u32| format!("::1 - - [{day}/Nov/2026:20:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n");
    let mut long = read([line(21), line(23)].concat());
    let error = long.timetable("log", 1.0).expect_err("two days").to_string();
    assert!(error.contains("48.0 hours") && error.contains("--speed"), "{error}");
    assert_eq!(long.timetable("log", 4.0).expect("half a day"), [0.0, 43_200.0]);
}

#[test]
fn there_is_a_most() {
    let line = "{\"method\":\"GET\",\"path\":\"/\"}";
    let mut recording = read(line);
    let entry = || json::entry(line).map(|found| (found, None));
    recording.requests = vec![recording.requests[0].clone(); MOST_REQUESTS];
    assert!(recording.take(2, entry()).is_err() && recording.take(2, Err(Omission::malformed("x"))).is_ok());
}

proptest! {
    #[test]
    fn no_text_panics_and_what_is_read_can_be_sent(
        text in "(\\{\"log\":\\{\"entries\":\\[|h - - \\[23/Nov/2026:20:00:02 \\+0000\\] \"|\\{\"path\":\"/|\\PC|[\"\\\\\\] \n/-]|GET|http://|200 1|[a-z:@#?]|\\}|\\]){0,40}",
    ) {
        for format in [Format::Har, Format::Combined, Format::Haproxy, Format::Envoy, Format::Elb, Format::Json] {
            if let Ok(mut recording) = parse("x", text.as_bytes(), format) {
                for request in &recording.requests {
                    prop_assert!(request.path.starts_with('/') && request.path.bytes().all(|b| b.is_ascii_graphic()));
                    prop_assert!(!request.method.is_empty() && request.host.as_deref() != Some(""));
                }
                if let Ok(due) = recording.timetable("x", 1.0) {
                    prop_assert!(due.len() == recording.requests.len() && due.windows(2).all(|pair| pair[0] <= pair[1]));
                }
            }
        }
        let _ = Format::of(text.as_bytes());
    }

    #[test]
    fn a_line_of_a_log_reads_back(path in "/[!-~&&[^\\\\\"#]]{0,20}", verb in "[A-Z]{1,9}", second in 0u8..60) {
        prop_assume!(verb != "CONNECT");
        let line = format!("192.0.2.1 - - [23/Nov/2026:20:00:{second:02} +0000] \"{verb} {path} HTTP/1.1\" 200 5 \"-\" \"x\"");
        let read = read(line).requests.remove(0);
        prop_assert_eq!((read.method, read.path), (verb, path));
        prop_assert_eq!(read.at.map(|at| at.as_second() % 60), Some(i64::from(second)));
    }
}
