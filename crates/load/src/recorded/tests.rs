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

fn read(text: &str) -> Recording {
    parse("file", text, Format::of(text).expect("a recording")).expect("right")
}

#[test]
fn formats_are_known_by_their_beginning() {
    for (text, format) in [
        (NGINX, Some(Format::Combined)),
        (ENVOY, Some(Format::Json)),
        (HAR, Some(Format::Har)),
        ("\u{feff}\n{\"log\" : {", Some(Format::Har)),
        ("{\"log\":\"x\",\"path\":\"/\"}", Some(Format::Json)),
        ("http://h/ 3\n", None),
        ("# a list\nGET http://h/[1]\n", None),
        ("", None),
    ] {
        assert_eq!(Format::of(text), format, "{text}");
    }
}

#[test]
fn combined_logs_are_read_and_put_in_order() {
    let mut log = read(NGINX);
    let shop = Some("shop.example");
    assert_eq!(short(&log), [(1, None, "GET", "/a?x=1"), (2, None, "POST", "/b"), (5, shop, "GET", "/c")]);
    assert_eq!(log.unusable, 2);
    assert_eq!(log.timetable("file", 2.0).expect("timed"), [0.0, 0.5, 1.0]);
    assert_eq!(log.requests.iter().map(|r| r.place).collect::<Vec<_>>(), [1, 5, 2]);
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
fn logs_of_objects_are_read() {
    let mut log = read(ENVOY);
    let expected = [(1, Some("shop.example"), "GET", "/a"), (3, Some("shop.example:8443"), "GET", "/b")];
    assert_eq!(short(&log), expected);
    assert_eq!((log.unusable, log.timetable("file", 0.5).expect("timed")), (1, vec![0.0, 0.5]));
}

#[test]
fn archives_have_headers_and_bodies() {
    let mut har = read(HAR);
    let (shop, cdn) = (Some("shop.example"), Some("cdn.example:444"));
    assert_eq!(short(&har), [(1, shop, "POST", "/login?x"), (2, cdn, "GET", "/"), (5, shop, "PUT", "/b")]);
    assert_eq!(har.unusable, 2);
    assert_eq!(har.requests[0].headers, [("X-A".to_owned(), "1".to_owned())]);
    let bodies: Vec<_> = har.requests.iter().map(|r| r.body.clone().expect("recorded")).collect();
    assert_eq!(bodies, [b"a=1".to_vec(), Vec::new(), vec![0, 1]]);
    let due = har.timetable("file", 1.0).expect("timed");
    assert!((due[2] - 0.1).abs() < 1e-9 && due[..2] == [0.0, 0.0], "{due:?}");
}

#[test]
fn mistakes_have_their_line() {
    for (format, text, shown) in [
        (Format::Combined, "\nhello\n", "log:2: it is no entry of a combined access log\n  expected: host"),
        (Format::Combined, "h - - [yesterday] \"GET / HTTP/1.1\" 200 1", "log:1: \"yesterday\" is not a time"),
        (Format::Combined, "h - - [32/Nov/2026:20:00:02 +0000] \"GET / HTTP/1.1\" 200 1", "log:1: \"32/Nov"),
        (Format::Json, "{\"method\":\"GET\",\"path\":\"/\"}\n{\"path\":\"/\"}", "log:2: it has no \"method\""),
        (Format::Json, "{\"method\":\"GET\"}", "log:1: it has no \"path\""),
        (Format::Json, "{\"method\":", "log:1: it is no JSON object"),
        (Format::Json, "{\"method\":\"GET\",\"path\":\"/\",\"time\":\"now\"}", "log:1: \"now\" is not a time"),
        (Format::Har, "{\"log\":{\n\"entries\":[{}]}}", "log:2: it is no HAR file: missing field"),
        (Format::Har, "{\"log\":{\"entries\":[]}}", "log: it has no requests"),
        (Format::Combined, "", "log: it has no requests"),
        (Format::Json, "{\"method\":\"-\",\"path\":\"-\"}", "log: none of its 1 entries"),
    ] {
        let error = parse("log", text, format).expect_err(text).to_string();
        assert!(error.starts_with(shown), "{error}");
    }
}

#[test]
fn a_replay_needs_times_and_ends_within_a_day() {
    let mut untimed = read(
        "{\"method\":\"GET\",\"path\":\"/\",\"start_time\":\"2026-11-23T20:00:00Z\"}\n{\"method\":\"GET\",\"path\":\"/\"}",
    );
    assert!(
        untimed
            .timetable("log", 1.0)
            .expect_err("one has none")
            .to_string()
            .starts_with("log:2: a request without a time")
    );
    let line = |day: u32| format!("::1 - - [{day}/Nov/2026:20:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n");
    let mut long = read(&[line(21), line(23)].concat());
    let error = long.timetable("log", 1.0).expect_err("two days").to_string();
    assert!(error.contains("48.0 hours") && error.contains("--speed"), "{error}");
    assert_eq!(long.timetable("log", 4.0).expect("half a day"), [0.0, 43_200.0]);
}

#[test]
fn there_is_a_most() {
    let mut recording = Recording { requests: Vec::new(), unusable: 0, format: Format::Json };
    let request = json::entry(1, "{\"method\":\"GET\",\"path\":\"/\"}").expect("right");
    recording.requests = vec![request.clone().expect("a request"); MOST_REQUESTS];
    assert!(recording.take(request).is_err() && recording.take(None).is_ok());
}

proptest! {
    #[test]
    fn no_text_panics_and_what_is_read_can_be_sent(
        text in "(\\{\"log\":\\{\"entries\":\\[|h - - \\[23/Nov/2026:20:00:02 \\+0000\\] \"|\\{\"path\":\"/|\\PC|[\"\\\\\\] \n/-]|GET|http://|200 1|[a-z:@#?]|\\}|\\]){0,40}",
    ) {
        for format in [Format::Har, Format::Combined, Format::Json] {
            if let Ok(mut recording) = parse("x", &text, format) {
                for request in &recording.requests {
                    prop_assert!(request.path.starts_with('/') && request.path.bytes().all(|b| b.is_ascii_graphic()));
                    prop_assert!(!request.method.is_empty() && request.host.as_deref() != Some(""));
                }
                if let Ok(due) = recording.timetable("x", 1.0) {
                    prop_assert!(due.len() == recording.requests.len() && due.windows(2).all(|pair| pair[0] <= pair[1]));
                }
            }
        }
        let _ = Format::of(&text);
    }

    #[test]
    fn a_line_of_a_log_reads_back(path in "/[!-~&&[^\\\\\"#]]{0,20}", verb in "[A-Z]{1,9}", second in 0u8..60) {
        prop_assume!(verb != "CONNECT");
        let line = format!("192.0.2.1 - - [23/Nov/2026:20:00:{second:02} +0000] \"{verb} {path} HTTP/1.1\" 200 5 \"-\" \"x\"");
        let read = combined::entry(1, &line).expect("an entry").expect("a request");
        prop_assert_eq!((read.method, read.path), (verb, path));
        prop_assert_eq!(read.at.map(|at| at.as_second() % 60), Some(i64::from(second)));
    }
}
