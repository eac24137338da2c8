//! `weir load` as a user runs it, against `weir origin`: every protocol, every kind of request, every way in which requests
//! arrive, and how that ends.

use std::time::{Duration, Instant};

use crate::common::{OriginUnderTest, all_right, load_result, number, run, run_within, scratch, weir};

fn origin() -> OriginUnderTest {
    OriginUnderTest::start(&[])
}

fn secure_origin() -> OriginUnderTest {
    OriginUnderTest::start(&["--tls"])
}

#[test]
fn tls_sessions_are_resumed_when_asked_for_and_not_otherwise() {
    let origin = secure_origin();
    let url = origin.https("/bytes/1");
    let args = [&url, "-n", "20", "-c", "1", "--close"];
    assert_eq!(number(&all_right(&args), "/tls/resumed"), 0.0);
    let resumed = number(&all_right(&[args.as_slice(), &["--resume"]].concat()), "/tls/resumed");
    assert!(resumed >= 10.0, "{resumed} of 20");
}

#[test]
fn pipelined_requests_are_answered_and_labelled() {
    let origin = origin();
    let url = origin.url("/bytes/128");
    let args = [url.as_str(), "-n", "1000", "-c", "2", "--pipeline", "8"];
    let result = all_right(&args);
    assert_eq!((&result["protocol"], &result["streams"]), (&"http/1.1".into(), &8.into()));
    for format in [&[][..], &["--format", "wrk"], &["--format", "wrk2"], &["--format", "hey"], &["--format", "ab"]] {
        let ended = run(&[&["load", "-q"], args.as_slice(), format].concat());
        ended.expect(0);
        assert!(ended.stdout.contains("HTTP/1.1 pipelined, 8 deep"), "{format:?}:\n{}", ended.stdout);
    }
}

#[test]
fn several_urls_are_weighed_and_several_servers_take_turns() {
    let (one, two) = (origin(), origin());
    let (a, b) = (one.url("/bytes/10"), one.url("/bytes/20"));
    let result = all_right(&[&a, &b, "--weight", "9,1", "-n", "4000", "-c", "4"]);
    let kinds = result["by_request"].as_array().expect("kinds");
    let sent: Vec<f64> = kinds.iter().map(|kind| number(kind, "/sent")).collect();
    assert_eq!((kinds.len(), sent.iter().sum::<f64>()), (2, 4_000.0));
    // 400 in the mean with a standard deviation of 19, if they are drawn.
    assert!((300.0..500.0).contains(&sent[1]), "{sent:?}");
    let result = all_right(&[&a, &two.url("/bytes/20"), "-n", "400", "-c", "4"]);
    let sent: Vec<f64> =
        result["by_request"].as_array().expect("kinds").iter().map(|kind| number(kind, "/sent")).collect();
    assert!(sent.len() == 2 && sent.iter().all(|n| *n > 0.0), "{sent:?}");
}

#[test]
fn templates_are_filled_in() {
    let origin = origin();
    // Sizes of 1 to 3 bytes: the sum says that the field was drawn anew for each request.
    let url = origin.url("/bytes/{{random:1..3}}");
    let result = all_right(&[&url, "--template", "-n", "900", "-c", "2"]);
    let bytes = number(&result, "/window/body_bytes");
    assert!((1_500.0..2_100.0).contains(&bytes), "{bytes} for 900 requests");
    let args = [&origin.url("/echo"), "--template", "-b", "n={{seq:0:4}}", "-n", "50", "-c", "1", "--expect-size", "6"];
    all_right(&args);
}

#[test]
fn bodies_are_sent_and_echoed() {
    let origin = origin();
    let scratch = scratch();
    let file = scratch.path().join("body");
    std::fs::write(&file, vec![b'x'; 20_000]).expect("written");
    let file = file.to_str().expect("UTF-8");
    let url = origin.url("/echo");
    all_right(&[&url, "--body-file", file, "--expect-hash-of", file, "-n", "20", "-c", "2"]);
    all_right(&[&url, "--body-size", "16KiB", "--expect-size", "16KiB", "-n", "20", "-c", "2"]);
    all_right(&[&url, "-b", "hi", "--http", "2", "--expect-size", "2", "-n", "20", "-c", "2"]);
}

/// Nobody reads these bodies, so they may be dropped in the kernel; with a hash they are read. Both are counted to the last byte.
#[test]
fn large_bodies_are_counted_whether_they_are_read_or_not() {
    let origin = origin();
    let file = scratch().path().with_extension("body");
    for driver in ["io_uring", "epoll"] {
        for size in [40_000, 165_854, 3_000_000] {
            let url = origin.url(&format!("/bytes/{size}"));
            let (text, expected) = (size.to_string(), f64::from(size) * 60.0);
            let usual = [url.as_str(), "-n", "60", "-c", "4", "--driver", driver, "--expect-size", &text];
            for more in [&[][..], &["--pipeline", "3"], &["--requests-per-connection", "4"], &["--source", "127.0.0.2"]]
            {
                let result = all_right(&[&usual[..], more].concat());
                assert_eq!(number(&result, "/total/body_bytes"), expected, "{driver} {size} {more:?}");
                assert!(number(&result, "/total/bytes_in") > expected);
            }
            let got = std::process::Command::new("curl").args(["--silent", "--output"]).arg(&file).arg(&url).status();
            assert!(got.expect("curl runs").success());
            all_right(&[&usual[..], &["--expect-hash-of", file.to_str().expect("UTF-8")]].concat());
            let wrong = load_result(1, &[&usual[..7], &["--expect-size", "39999"]].concat());
            assert_eq!(wrong["window"]["errors"]["wrong_body"], 60, "{driver} {size}");
        }
    }
    std::fs::remove_file(file).expect("removed");
}

#[test]
fn rates_change_as_ordered() {
    let origin = origin();
    let url = origin.url("/bytes/16");
    let due = |args: &[&str]| {
        let result = load_result(0, &[&[url.as_str(), "-c", "8", "--warmup", "0s"], args].concat());
        (number(&result, "/window/due"), result)
    };
    let near = |got: f64, wanted: f64| assert!((got - wanted).abs() <= wanted * 0.02 + 2.0, "{got}, wanted {wanted}");
    near(due(&["-R", "500", "-d", "2s"]).0, 1_000.0);
    near(due(&["--ramp", "0..1000", "-d", "2s"]).0, 1_000.0);
    let (all, result) = due(&["--steps", "100x1s,0x1s,400x1s"]);
    near(all, 500.0);
    let rows: Vec<f64> = result["series"].as_array().expect("rows").iter().map(|row| number(row, "/due")).collect();
    assert!(rows.len() >= 3, "{rows:?}");
    near(rows[0], 100.0);
    near(rows[1], 0.0);
    near(rows[2], 400.0);
}

#[test]
fn a_file_of_times_is_replayed() {
    let origin = origin();
    let scratch = scratch();
    let file = scratch.path().join("times");
    std::fs::write(&file, "# two at once\n0\n0\n0.2\n700ms # late\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    let result = all_right(&[&origin.url("/bytes/1"), "--replay", file, "-c", "2"]);
    assert_eq!(number(&result, "/window/due"), 4.0);
    std::fs::write(file, "0\n2\n1\n").expect("written");
    let ended = run(&["load", &origin.url("/"), "--replay", file]);
    assert!(ended.expect(2).contains(&format!("{file}:3: ")), "{}", ended.stderr);
}

#[test]
fn columns_of_a_file_are_filled_in() {
    let origin = origin();
    let scratch = scratch();
    let file = scratch.path().join("sizes.csv");
    std::fs::write(&file, "size,text\n1,a\n20,bb\n300,ccc\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    let url = origin.url("/bytes/{{size}}");
    for threads in ["1", "2"] {
        let result = all_right(&[&url, "--feed", file, "-n", "300", "-c", "4", "-t", threads]);
        assert_eq!(number(&result, "/window/body_bytes"), 100.0 * 321.0, "every row as often as the others");
    }
    let random = all_right(&[&url, "--feed", file, "--feed-order", "random", "-n", "300", "-c", "4"]);
    let bytes = number(&random, "/window/body_bytes");
    assert!(bytes != 32_100.0 && (20_000.0..45_000.0).contains(&bytes), "{bytes}");
    let result = all_right(&[&origin.url("/echo"), "-b", "{{text}}", "--feed", file, "--http", "2", "-n", "30"]);
    assert_eq!(number(&result, "/window/body_bytes"), 60.0);
    std::fs::write(file, "size,text\n1\n").expect("written");
    let ended = run(&["load", &url, "--feed", file]);
    assert!(ended.expect(2).contains(&format!("{file}:2: 1 values")), "{}", ended.stderr);
}

#[test]
fn an_access_log_is_sent_as_a_mix_or_at_its_times() {
    let origin = origin();
    let scratch = scratch();
    let file = scratch.path().join("access.log");
    let line = |second: u32, path: &str| {
        format!("192.0.2.7 - - [23/Nov/2026:20:00:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"x\"\n")
    };
    let text = [
        line(0, "/bytes/10"),
        line(2, "/bytes/20"),
        line(4, "/bytes/10"),
        "h - - [23/Nov/2026:20:00:05 +0000] \"\" 400 0\n".into(),
    ];
    std::fs::write(&file, text.concat()).expect("written");
    let (file, url) = (file.to_str().expect("UTF-8"), origin.url("/"));
    let ended = run(&["load", "-q", "--json", &url, "--replay", file, "--speed", "10x", "-c", "2"]);
    assert_eq!(ended.expect(0).trim(), format!("{file}: 3 requests; left out: 1 that cannot be sent"));
    let result = ended.json();
    assert_eq!((number(&result, "/window/due"), number(&result, "/window/body_bytes")), (3.0, 40.0));
    assert!((number(&result, "/window_s") - 0.401).abs() < 1e-6, "{result:#}");
    let mix = all_right(&[&url, "--urls", file, "-n", "3000"]);
    let kinds = mix["by_request"].as_array().expect("kinds");
    assert_eq!(kinds[0]["name"], "GET /bytes/10");
    assert!((1_850.0..2_150.0).contains(&number(&kinds[0], "/sent")), "two of three: {mix:#}");
    // Not one request goes anywhere else.
    let har = scratch.path().join("x.har");
    let entry = |url: &str| {
        format!("{{\"startedDateTime\":\"2026-11-23T20:00:00Z\",\"request\":{{\"method\":\"GET\",\"url\":\"{url}\"}}}}")
    };
    let text = format!(
        "{{\"log\":{{\"entries\":[{},{}]}}}}",
        entry("https://shop.example/bytes/1"),
        entry("https://cdn.example/x")
    );
    std::fs::write(&har, text).expect("written");
    let har = har.to_str().expect("UTF-8");
    let ended = run(&["load", "-q", &url, "--replay", har]);
    assert!(ended.expect(2).contains("--urls-host"), "{}", ended.stderr);
    let result = all_right(&[&url, "--replay", har, "--urls-host", "shop.example"]);
    assert_eq!((number(&result, "/total/sent"), number(&result, "/window/body_bytes")), (1.0, 1.0));
}

#[test]
fn think_times_hold_a_closed_load_back() {
    let origin = origin();
    let result = all_right(&[&origin.url("/bytes/1"), "-c", "4", "-d", "1s", "--warmup", "0s", "--think", "100ms"]);
    // Four users with at most ten requests a second each, and one more at the start.
    let due = number(&result, "/window/due");
    assert!((4.0..=44.0).contains(&due), "{due}");
}

#[test]
fn connections_come_and_go_as_ordered() {
    let origin = origin();
    let url = origin.url("/bytes/1");
    let opened = |args: &[&str]| number(&all_right(&[&[url.as_str(), "-c", "2"], args].concat()), "/total/connections");
    assert_eq!(opened(&["-n", "100"]), 2.0);
    let ten = opened(&["-n", "100", "--requests-per-connection", "10"]);
    assert!((10.0..=14.0).contains(&ten), "{ten}");
    let each = opened(&["-n", "100", "--close"]);
    assert!((100.0..=104.0).contains(&each), "{each}");
    // One connection that takes 200 ms an answer cannot carry 20 a second; eight can.
    let slow = origin.url("/delay/200ms");
    let args = ["-R", "20", "-d", "2s", "--warmup", "0s", "--max-connections", "16"];
    let result = all_right(&[&[slow.as_str(), "-c", "1"], args.as_slice()].concat());
    let most = number(&result, "/most_open");
    assert!((3.0..=16.0).contains(&most), "{most}");
    let begun = Instant::now();
    all_right(&[&url, "-c", "10", "-n", "10", "--connect-rate", "20"]);
    assert!(begun.elapsed() >= Duration::from_millis(400), "ten connections at 20 a second: {:?}", begun.elapsed());
}

#[test]
fn loads_come_from_the_addresses_given() {
    let origin = origin();
    all_right(&[&origin.url("/bytes/1"), "-n", "20", "-c", "4", "--source", "127.0.0.2,127.0.0.3"]);
    // An address that is nobody's here cannot be connected from.
    let ended =
        run(&["load", "-q", &origin.url("/"), "-n", "1", "-c", "1", "--source", "192.0.2.1", "--timeout", "1s"]);
    assert!(matches!(ended.code(), Some(2 | 3)), "{ended:?}");
}

#[test]
fn conditions_decide_how_it_ends() {
    let origin = origin();
    let (fine, wrong) = (origin.url("/bytes/1"), origin.url("/status/503"));
    let ends = |url: &str, conditions: &[&str]| {
        let flags: Vec<&str> = conditions.iter().flat_map(|c| ["--fail-if", c]).collect();
        run(&[&["load", "-q", url, "-n", "50", "-c", "2"], flags.as_slice()].concat())
    };
    ends(&fine, &["p99>1m", "errors>0.1%"]).expect(0);
    let ended = ends(&fine, &["p99>1m", "p50>0us"]);
    let said = ended.expect(1);
    assert!(said.contains("p50 is") && said.contains("--fail-if 'p50>0s'") && !said.contains("p99"), "{said}");
    // Without a condition wrong answers fail; with one only what it says.
    ends(&wrong, &[]).expect(1);
    ends(&wrong, &["p99>1m"]).expect(0);
    assert!(ends(&wrong, &["errors>10%"]).expect(1).contains("errors are 100 %"));
    assert!(ends(&fine, &["handshake.p99>1s"]).expect(1).contains("cannot be judged"));
}

#[test]
fn the_highest_rate_is_found() {
    let origin = origin();
    // One connection with 20 ms an answer carries just below 50 a second.
    let url = origin.url("/delay/20ms");
    let args = ["-c", "1", "--find-max", "p50<200ms, errors<1%", "--budget", "40s", "-d", "3s", "--warmup", "0s"];
    let mut command = weir(&[&["load", "--json", url.as_str()], args.as_slice()].concat());
    let ended = run_within(&mut command, Duration::from_secs(100));
    let found = ended.json();
    assert!(ended.stderr.contains("guess") && ended.stderr.contains("coarse"), "{}", ended.stderr);
    let rate = number(&found, "/rate");
    assert!((25.0..=55.0).contains(&rate), "{found:#}");
    assert!(found["probes"].as_array().is_some_and(|probes| probes.len() >= 3), "{found:#}");
    assert_eq!(ended.code(), Some(if found["confirmed"] == true { 0 } else { 1 }), "{found:#}");
    if let (Some(low), Some(high)) = (found["met_up_to"].as_f64(), found["failed_from"].as_f64()) {
        assert!(low <= rate && rate <= high, "{found:#}");
    }
}
