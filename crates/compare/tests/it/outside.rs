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
const FILES: [(&str, Tool); 10] = [
    ("wrk.txt", Tool::Wrk),
    ("wrk-503.txt", Tool::Wrk),
    ("wrk2.txt", Tool::Wrk2),
    ("hey.txt", Tool::Hey),
    ("hey-503.txt", Tool::Hey),
    ("k6.json", Tool::K6),
    ("weir.json", Tool::Weir),
    ("wrk2-u-latency.txt", Tool::Wrk2),
    ("oha-1.15.json", Tool::Oha),
    ("k6-machine-readable.json", Tool::K6),
];

#[test]
fn the_tool_follows_from_the_content() {
    for (name, tool) in FILES {
        let result = real(name);
        assert_eq!(result.tool, tool, "{name}");
        assert!(result.requests > 0 && result.window_s > Some(0.0), "{name}: {result:?}");
        // Times are in order, whatever the tool's unit is.
        let of = |metric| result.numbers.get(&metric).copied().unwrap_or_else(|| panic!("{name} has no {metric:?}"));
        let p90 = result.numbers.get(&Metric::P90).copied().unwrap_or(of(Metric::P50));
        let times = [of(Metric::P50), p90, of(Metric::Max)];
        assert!(times.is_sorted() && (0.0..20e6).contains(&times[0]), "{name}: {times:?}");
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
fn of_two_tables_the_corrected_one_counts() {
    let result = real("wrk2-u-latency.txt");
    let numbers = [Metric::P50, Metric::P99, Metric::Mean, Metric::Rate].map(|metric| result.numbers[&metric]);
    assert_eq!(numbers, [17e6, 25e6, 17e6, 250.0]);
    let skips_second_table =
        |result: &ToolResult| result.lacks.iter().any(|lack| lack.contains("uncorrected latency is left out"));
    assert!(skips_second_table(&result) && !skips_second_table(&real("wrk2.txt")));
    // In the other order, and where the corrected one is cut off.
    let text = std::fs::read_to_string(file("wrk2-u-latency.txt")).expect("recorded");
    let (head, tables) = text.split_once("  Latency Distribution").expect("a table");
    let (corrected, rest) = tables.split_once("\n\n  Latency Distribution").expect("two tables");
    let (uncorrected, end) = rest.split_once("\n-----").expect("its end");
    let table = "  Latency Distribution";
    let turned = format!("{head}{table}{uncorrected}\n\n{table}{corrected}\n-----{end}");
    assert_eq!(parse("a", turned.as_bytes()).expect("a result").numbers, result.numbers);
    let alone = parse("a", format!("{head}{table}{uncorrected}\n-----{end}").as_bytes()).expect("a result");
    assert!(!alone.numbers.contains_key(&Metric::P50) && skips_second_table(&alone), "{alone:?}");
    let twice = format!("{head}{table}{corrected}\n\n{table}{corrected}\n-----{end}");
    let error = parse("a", twice.as_bytes()).expect_err("two tables").to_string();
    assert!(error.starts_with("a:13: a second result"), "{error}");
}

#[test]
fn a_json_document_is_known_by_what_it_has() {
    let numbers = |result: &ToolResult, metrics: &[Metric]| {
        metrics.iter().map(|metric| result.numbers[metric]).collect::<Vec<f64>>()
    };
    let oha = real("oha-1.15.json");
    assert_eq!(numbers(&oha, &[Metric::Rate, Metric::P50, Metric::P99]), [1_000.0, 3_000.0, 20_000.0]);
    let k6 = real("k6-machine-readable.json");
    let metrics = [Metric::Rate, Metric::ErrorShare, Metric::Mean, Metric::P50, Metric::P90, Metric::P95, Metric::Max];
    assert_eq!(numbers(&k6, &metrics), [495.0, 0.01, 2_000.0, 1_500.0, 3_000.0, 4_000.0, 20_000.0]);
    assert_eq!((k6.requests, k6.window_s), (5_000, Some(10.0)));
    // Whatever the order of the keys is, and with text of a script before and behind.
    for (name, _) in FILES.iter().filter(|(name, _)| name.ends_with(".json")) {
        let text = std::fs::read_to_string(file(name)).expect("recorded");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let mut keys: Vec<(String, serde_json::Value)> =
            value.as_object().expect("an object").clone().into_iter().collect();
        keys.reverse();
        let turned = serde_json::Value::Object(keys.into_iter().collect());
        let around = format!("{{\"level\": \"info\"}}\nstarting [1]\n{turned:#}\ndone {{}}\n");
        assert_eq!(parse(name, around.as_bytes()).expect(name).numbers, real(name).numbers, "{name}");
    }
    // k6 without a rate and with the duration of `handleSummary`; oha with nothing but errors.
    let k6 = r#"{"state":{"testRunDurationMs":5000.0},"metrics":{"http_reqs":{"values":{"count":100}},"http_req_duration":{"values":{"med":null,"max":7}}}}"#;
    let result = parse("a", k6.as_bytes()).expect("a result");
    assert_eq!((result.numbers[&Metric::Rate], result.numbers.get(&Metric::P50)), (20.0, None));
    let oha = r#"{"latencyPercentiles":{"p50":null,"p99":null},"errorDistribution":{"connection refused":5},"statusCodeDistribution":{},
        "summary":{"successRate":0.0,"total":1.5,"slowest":null,"average":null}}"#;
    let result = parse("a", oha.as_bytes()).expect("a result");
    assert_eq!((numbers(&result, &[Metric::Rate, Metric::ErrorShare]), result.requests), (vec![0.0, 1.0], 5));
}

#[test]
fn a_file_has_one_result() {
    for (name, line) in [("hey-three-results.txt", 17), ("wrk-two-results.txt", 10)] {
        let error = read(&file(name)).expect_err(name).to_string();
        assert!(
            error.ends_with(&format!("{name}:{line}: a second result begins here\n  expected: one result a file")),
            "{error}"
        );
    }
    // Any two, of one tool or of two, whole or with the second cut off.
    let text = |name: &str| std::fs::read_to_string(file(name)).expect("recorded");
    for (first, _) in FILES {
        for (second, _) in FILES {
            let (one, two) = (text(first), text(second));
            let line = one.lines().count() + 1 + two.lines().take_while(|line| line.is_empty()).count();
            let cut: String = two.chars().take(two.chars().count() * 2 / 3).collect();
            for two in [two, cut] {
                let both = format!("{}\n{two}", one.strip_suffix('\n').unwrap_or(&one));
                let error = parse("a", both.as_bytes()).expect_err(first).to_string();
                assert!(error.starts_with(&format!("a:{line}: a second result")), "{first}, {second}: {error}");
            }
        }
    }
    let oha = text("oha-1.15.json");
    for both in [format!("{oha}{oha}"), format!("[{oha},{oha}]"), format!("\u{feff}{oha}\u{feff}{oha}")] {
        assert!(parse("a", both.as_bytes()).expect_err("two").to_string().contains("a second result"));
    }
}

#[test]
fn a_file_of_windows_is_read_like_any() {
    for (name, _) in FILES {
        let text = std::fs::read_to_string(file(name)).expect("recorded");
        let lines = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(parse(name, lines.as_bytes()).expect(name).numbers, real(name).numbers);
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let wide: Vec<u8> = lines.encode_utf16().flat_map(bytes).collect();
            assert_eq!(parse(name, &wide).expect(name).numbers, real(name).numbers);
        }
    }
}

#[test]
fn what_a_script_prints_is_passed_over() {
    let wrk = std::fs::read_to_string(file("wrk.txt")).expect("recorded");
    let script = "Running benchmark of nginx\n====== 1 ======\nLatency of the first request\n";
    let done =
        "------\n50%,67\n90% 9000\nLatency 1 2 3 4\nthread 1 made 5 requests\n{\"p50\": 67}\nTotal: all\n[1]+ Done\n";
    let result = parse("a", format!("{script}{wrk}{done}").as_bytes()).expect("a result");
    assert_eq!(result.numbers, real("wrk.txt").numbers);
    let hey = std::fs::read_to_string(file("hey.txt")).expect("recorded");
    let result = parse("a", format!("Total: 1 run\n{hey}[1]+ Done hey\nTotal: all\n").as_bytes()).expect("a result");
    assert_eq!(result.numbers, real("hey.txt").numbers);
    // Nothing was measured, or in another column.
    let none = wrk.replace("  231.94us  656.73us   6.51ms", "  -nanus  -nanus 0.00us");
    assert!(!parse("a", none.as_bytes()).expect("a result").numbers.contains_key(&Metric::Mean));
    let other = wrk.replace("Stdev     Max", "Stdev     99%").replace("    99%    3.65ms\n", "");
    let result = parse("a", other.as_bytes()).expect("a result");
    assert_eq!((result.numbers[&Metric::P99], result.numbers.get(&Metric::Max)), (6_510.0, None));
}

#[test]
fn what_is_known_and_not_read_says_what_is() {
    for name in ["ab.txt", "fortio.txt", "h2load.txt", "memtier.txt", "redis-benchmark.txt"] {
        let error = read(&file(name)).expect_err(name).to_string();
        assert!(error.contains("no result of a tool that weir knows") && error.contains("; hey; "), "{error}");
    }
    let error = read(&file("oha.txt")).expect_err("text").to_string();
    assert!(error.contains("this is oha's text: ") && error.contains("oha --output-format json"), "{error}");
    for (text, title) in [
        ("     http_req_duration..............: avg=3.45ms min=1ms\n", "k6's text"),
        ("{\"type\":\"Metric\",\"data\":{},\"metric\":\"http_reqs\"}\n", "k6 --out json"),
        ("request-start,DNS,DNS+dialup\n0.1,0.2,0.3\n", "oha --output-format csv"),
    ] {
        let error = parse("a", text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(&format!("a:1: this is {title}: ")), "{error}");
    }
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
    let json = serde_json::to_value(beside(real("oha-1.15.json"), real("k6.json"), &[])).expect("JSON");
    assert_eq!((json["claimable"].as_bool(), json["before"]["tool"].as_str()), (Some(false), Some("oha")));
}

#[test]
fn errors_name_file_and_line() {
    for (text, said) in [
        ("", "a.txt: the file is empty"),
        ("\u{feff} \r\n", "a.txt: the file is empty"),
        ("hello\n", "a.txt: this is no result of a tool that weir knows"),
        ("{\n\"a\": \n}", "a.txt:3: column 1: expected value"),
        ("{\n\"a\": [1, 2", "a.txt:2: column 10: the file is cut off"),
        ("{\"a\": 1}", "a.txt: this JSON is no result"),
        ("[]", "a.txt: this JSON is no result"),
        ("{\"probes\": []}", "a.txt:1: this is weir load --find-max --json: a search"),
        ("{\"metrics\": {}}", "a.txt:1: metrics.http_reqs: column 2: there is no http_reqs"),
        ("{\"latencyPercentiles\": {}}", "a.txt:1: summary.total: column 1: there is none"),
        (
            "{\"latencyPercentiles\": {\"p50\": 1,\n  \"p99\": \"soon\"}, \"summary\": {\"total\": 1}}",
            "a.txt:2: latencyPercentiles.p99: column 3: \"soon\" is no number\n  expected: a number",
        ),
        (
            "{\"summary\": {\"total\": 1},\n\"latencyPercentiles\": {},\n\"statusCodeDistribution\": {\"200\": 1.5}}",
            "a.txt:3: statusCodeDistribution.200: column 28: 1.5 is no number of requests",
        ),
        ("{\"window\":\n 1, \"thread_busy\": true}", "a.txt:2: column"),
        ("Running 1s test @ a\nRequests/sec: many\n", "a.txt:2: \"Requests/sec: many\"\n  expected: a number"),
        (
            "Running 1s test @ a\nThread Stats Avg Stdev Max\n  Latency 1 2 3\nRequests/sec: 1\n",
            "a.txt:3: \"Latency 1 2 3\"\n  expected: a time",
        ),
        ("Running 1s test @ a\nRequests/sec: 5\n", "a.txt: nothing was measured"),
        ("Running 1s test @ a\n", "a.txt: there is no Requests/sec: the result is cut off"),
        ("Summary:\n  Success rate: 1\n Requests/sec: 1", "a.txt:1: this is oha's text"),
        ("Summary:\nTotal: soon\nRequests/sec: 1", "a.txt:2: \"Total: soon\""),
        ("Summary:\n  Total:\t2.0 secs\n", "a.txt: the result is cut off"),
    ] {
        let error = parse("a.txt", text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(said), "{text:?}: {error}");
        for rust in ["f64", "u64", "u32", "i64", "struct ", "enum ", "variant", "::", "map"] {
            assert!(!error.contains(rust), "{text:?}: {error}");
        }
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
