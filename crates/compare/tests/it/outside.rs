//! Results of other tools as recorded from real runs on loopback, and the same cut, mixed up and made up.

use crate::outside_oracle as oracle;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use weir_compare::FailIf;
use weir_compare::outside::{Tool, ToolResult, beside, parse, read};
use weir_model::metric::Metric;

fn file(name: &str) -> PathBuf {
    let peers = ["tests/words/peers", "bench/tests/captured"]
        .map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder).join(name));
    peers.iter().find(|path| path.exists()).unwrap_or_else(|| panic!("{name} was never recorded")).clone()
}

fn real(name: &str) -> ToolResult {
    read(&file(name)).unwrap_or_else(|e| panic!("{e}"))
}

/// All recorded files.
const FILES: [(&str, Tool); 9] = [
    ("wrk.txt", Tool::Wrk),
    ("wrk-503.txt", Tool::Wrk),
    ("wrk2.txt", Tool::Wrk2),
    ("hey.txt", Tool::Hey),
    ("hey-503.txt", Tool::Hey),
    ("hey.csv", Tool::Hey),
    ("k6.json", Tool::K6),
    ("vegeta.json", Tool::Vegeta),
    ("weir.json", Tool::Weir),
];

#[test]
fn the_tool_follows_from_the_content() {
    for (name, tool) in FILES {
        let result = real(name);
        assert_eq!(result.tool, tool, "{name}");
        assert!(result.requests > 0 && result.window_s > Some(0.0), "{name}: {result:?}");
        // Times are in order, whatever the tool's unit is.
        let of = |metric| result.numbers.get(&metric).copied().unwrap_or_else(|| panic!("{name} has no {metric:?}"));
        let times = [of(Metric::P50), of(Metric::P90), of(Metric::Max)];
        assert!(times.is_sorted() && (0.0..10e6).contains(&times[0]), "{name}: {times:?}");
        assert!((0.0..=1.0).contains(&of(Metric::ErrorShare)), "{name}");
    }
}

#[test]
fn numbers_are_those_in_the_file() {
    let close = |result: &ToolResult, metric, wanted: f64| {
        let value = result.numbers[&metric];
        assert!((value / wanted - 1.0).abs() < 1e-6, "{metric:?}: {value}, not {wanted}");
    };
    let wrk2 = real("wrk2.txt");
    close(&wrk2, Metric::Rate, 1981.02);
    close(&wrk2, Metric::P999, 12_600.0);
    close(&wrk2, Metric::Mean, 1_320.0);
    assert_eq!((wrk2.connections, wrk2.window_s), (Some(8), Some(2.0)));
    let wrong = real("wrk-503.txt");
    assert_eq!((wrong.numbers[&Metric::Rate], wrong.numbers[&Metric::ErrorShare]), (0.0, 1.0));
    let hey = real("hey-503.txt");
    assert_eq!((hey.numbers[&Metric::Rate], hey.requests), (0.0, 200));
    close(&hey, Metric::P99, 4_600.0);
    let hey = real("hey.txt");
    assert_eq!(hey.numbers[&Metric::ErrorShare], 0.0);
    close(&hey, Metric::Rate, hey.requests as f64 / hey.window_s.expect("a length"));
}

#[test]
fn errors_of_each_kind_lower_the_rate() {
    let text = std::fs::read_to_string(file("wrk.txt")).expect("recorded");
    let socket = text.replace("Requests/sec", "  Socket errors: connect 0, read 3, write 1, timeout 6\nRequests/sec");
    let result = parse("a", socket.as_bytes()).expect("a result");
    assert!(result.numbers[&Metric::ErrorShare] > 0.0 && result.lacks.iter().any(|lack| lack.contains("sockets")));
    let k6 = r#"{"metrics":{"http_reqs":{"values":{"count":200,"rate":100}},"http_req_failed":{"values":{"rate":0.25}},
        "dropped_iterations":{"values":{"count":7}},"http_req_duration":{"values":{"med":2.5}}}}"#;
    let result = parse("a", k6.as_bytes()).expect("a result");
    assert_eq!((result.numbers[&Metric::Rate], result.numbers[&Metric::P50]), (75.0, 2_500.0));
    assert!(result.lacks.iter().any(|lack| lack.contains("dropped 7 iterations")), "{:?}", result.lacks);
    assert!(result.lacks.iter().any(|lack| lack.contains("99th")), "{:?}", result.lacks);
    let oha = r#"{"summary":{"successRate":1,"total":2.0,"slowest":0.01,"fastest":null,"average":0.002},
        "latencyPercentiles":{"p50":0.001,"p99":0.005,"p99.9":null},"statusCodeDistribution":{"200":90,"503":10},
        "errorDistribution":{"aborted due to deadline":8,"connection refused":20}}"#;
    let result = parse("a", oha.as_bytes()).expect("a result");
    assert_eq!((result.tool, result.requests, result.numbers[&Metric::Rate]), (Tool::Oha, 120, 45.0));
    assert_eq!((result.numbers[&Metric::ErrorShare], result.numbers[&Metric::P99]), (0.25, 5_000.0));
}

#[test]
fn what_differs_between_tools_stands_beside_and_nothing_is_sure() {
    let condition: FailIf = "p99 +10%".parse().expect("a condition");
    let both = beside(real("weir.json"), real("wrk.txt"), &[condition]);
    let text = both.text(100, false);
    assert!(
        !both.claimable && text.contains("Nothing here is sure") && text.contains("Not judged (p99 +10%)"),
        "{text}"
    );
    for said in ["coordinated omission", "do not measure alike", "server's counters", "one sample"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains(" sure:"), "{text}");
    // Only one side says how its load arrived.
    let open = ToolResult { offered: Some(500.0), ..real("weir.json") };
    let said = beside(open, real("wrk.txt"), &[]).remarks.join(" ");
    assert!(said.contains("500 requests/s were offered before") && !text.contains("were offered"), "{said}");
    // weir alone has nothing to excuse.
    let alone = beside(real("weir.json"), real("weir.json"), &[]).text(100, false);
    assert!(!alone.contains("coordinated omission") && alone.contains("Nothing here is sure"), "{alone}");
    let json = serde_json::to_value(beside(real("vegeta.json"), real("k6.json"), &[])).expect("JSON");
    assert_eq!((json["claimable"].as_bool(), json["before"]["tool"].as_str()), (Some(false), Some("vegeta")));
}

#[test]
fn errors_name_file_and_line() {
    for (text, said) in [
        ("", "a.txt: the file is empty"),
        ("hello\n", "a.txt: this is no result of a tool that weir knows"),
        ("{\n\"a\": \n}", "a.txt:3: expected value"),
        ("{\"a\": 1}", "a.txt: this JSON is no result"),
        ("{\"probes\": []}", "a.txt: this is a search of weir load --find-max"),
        ("{\"metrics\": {}}", "a.txt: it has no http_reqs"),
        ("{\"latencies\": {},\n\"status_codes\": {}}", "a.txt:1: missing field"),
        ("Running 1s\nRequests/sec: many\n", "a.txt:2: \"Requests/sec: many\"\n  expected: a number"),
        ("Running 1s\n  Latency 1 2 3\nRequests/sec: 1\n", "a.txt:2: \"Latency 1 2 3\"\n  expected: a time"),
        ("Running 1s\nRequests/sec: 5\n", "a.txt: nothing was measured"),
        ("Summary:\n  Success rate: 1\n Requests/sec: 1", "a.txt: this is oha's text"),
        ("Summary:\nRequests/sec: 1\nTotal: soon", "a.txt:3: \"Total: soon\""),
        ("response-time,offset\n", "a.txt:1: there are no columns"),
        ("response-time,status-code,offset\n0.1,200,0\n0.1,-,0\n", "a.txt:3: status-code: \"-\" is no number"),
    ] {
        let error = parse("a.txt", text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(said), "{text:?}: {error}");
    }
    assert!(parse("a.txt", b"a\n\xff").expect_err("no UTF-8").to_string().starts_with("a.txt:2: this is no UTF-8"));
    assert!(read(Path::new("/no/such/file")).expect_err("no file").to_string().starts_with("/no/such/file: "));
}

#[test]
fn every_recorded_file_holds_whole_and_cut() {
    for (name, _) in FILES {
        let bytes = std::fs::read(file(name)).expect("recorded");
        oracle::check(&bytes);
        for cut in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            oracle::check(&bytes[..cut]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_changed_anywhere_break_nothing(which in 0..FILES.len(), at in any::<prop::sample::Index>(), with in "[0-9a-z.%,:{}\\[\\]\" \n-]{0,12}") {
        let mut bytes = std::fs::read(file(FILES[which].0)).expect("recorded");
        let at = at.index(bytes.len());
        let end = (at + 3).min(bytes.len());
        bytes.splice(at..end, with.into_bytes());
        oracle::check(&bytes);
    }

    #[test]
    fn any_bytes_break_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        oracle::check(&bytes);
    }
}
