//! Each format as kept, beside what the tool itself printed, and read with the expressions that scripts use.

use std::collections::BTreeSet;
use std::path::Path;

use clap::ValueEnum;
use regex::Regex;
use serde_json::{Value, json};
use weir_model::load::LoadProtocol;

use super::*;
use crate::load::sample::{self, Sample, kept};

/// The text without conditions.
fn text(format: FormatArg, outcome: Outcome<'_>) -> String {
    super::text(format, outcome, &[])
}

/// What fails a load: the 99th percentile does, the errors only where there are some, and the handshake was not measured.
fn conditions() -> Vec<Condition> {
    Condition::list("p99>1ms,p99.9>1s,errors>0.1%,rate<100,handshake.p99>1s").expect("conditions")
}

/// The only or first match's groups.
fn read<'t>(pattern: &str, text: &'t str) -> Vec<&'t str> {
    let found = Regex::new(pattern).expect("a pattern").captures(text);
    let found = found.unwrap_or_else(|| panic!("{pattern:?} is not in:\n{text}"));
    found.iter().skip(1).flatten().map(|group| group.as_str()).collect()
}

#[test]
fn each_format_is_as_kept() {
    for (name, format) in [("wrk", FormatArg::Wrk), ("wrk2", FormatArg::Wrk2), ("hey", FormatArg::Hey)] {
        kept(&format!("format-{name}"), &text(format, sample::plain().outcome()));
        kept(&format!("format-{name}-failing"), &text(format, sample::failing().outcome()));
    }
    kept("format-junoload", &text(FormatArg::Junoload, sample::keyvalue().outcome()));
    for (name, format) in [
        ("k6", FormatArg::K6),
        ("github-bigger", FormatArg::GithubBigger),
        ("github-smaller", FormatArg::GithubSmaller),
        ("junit", FormatArg::Junit),
    ] {
        kept(&format!("format-{name}"), &super::text(format, sample::failing().outcome(), &conditions()));
    }
    kept("format-hgrm", &spectrum(&sample::plain().distributions.latency, Flavour::Hdr));
}

/// A line without its numbers, units and bars: what is left must be the tool's own.
fn shape(line: &str) -> String {
    let number = Regex::new(r"[0-9]+(\.[0-9]+)?").expect("a pattern");
    let unit = Regex::new(r"#(us|µs|ms|s|KB|MB|GB|k|M)\b").expect("a pattern");
    let line = number.replace_all(line, "#");
    let line = unit.replace_all(&line, "#");
    let words: Vec<&str> = line.trim_end_matches('■').split([' ']).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The text's lines by shape, from the first line that begins with `from`.
fn shapes(text: &str, from: &str) -> Vec<String> {
    text.lines().skip_while(|line| !line.starts_with(from)).map(shape).collect()
}

#[test]
fn every_line_has_the_shape_of_the_tools_own() {
    // Kept from real runs of each tool against `weir origin`.
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/words/peers");
    for (tool, format, from) in [("wrk", FormatArg::Wrk, "Running"), ("hey", FormatArg::Hey, "Summary:")] {
        for (path, status, kept) in [("/bytes/128", 200, ""), ("/status/503", 503, "-503")] {
            let Sample { mut spec, mut result, distributions } = sample::plain();
            spec.requests[0].request.path = path.into();
            result.window.statuses = [(status, 20_000)].into();
            let title = format!("http://127.0.0.1:8080{path}");
            let outcome = Outcome { title: &title, spec: &spec, result: &result, distributions: &distributions };
            let real = std::fs::read_to_string(real.join(format!("{tool}{kept}.txt"))).expect("kept");
            assert_eq!(shapes(&text(format, outcome), from), shapes(&real, from), "{format:?} {status}");
        }
    }
}

#[test]
fn key_value_tables_have_the_shape_of_the_tools_own() {
    let ours = text(FormatArg::Junoload, sample::keyvalue().outcome());
    // Behind the original's columns is one of ours.
    let columns = |line: &str| line.chars().take(158).collect::<String>();
    let ours: String = ours.lines().map(|line| columns(line) + "\n").collect();
    let real = include_str!("../../../../../tests/words/peers/junoload.txt");
    assert_eq!(shapes(&ours, "FINAL"), shapes(real, "FINAL"));
}

#[test]
fn scripts_read_key_value_tables() {
    let text = text(FormatArg::Junoload, sample::keyvalue().outcome());
    let row = Regex::new(r"(?m)^ *([\d.]+) +(\S+) .* ([A-Z][a-z]+) +(\d+) +([\d.]+)$").expect("a pattern");
    let rows: Vec<_> = row.captures_iter(&text).map(|row| [3, 4, 5].map(|group| row[group].to_owned())).collect();
    let wanted = [["Create", "50", "2222.00"], ["Get", "10", "6667.00"], ["Destroy", "10", "1111.00"]];
    assert_eq!(rows[..3], wanted.map(|row| row.map(str::to_owned)));
    assert_eq!(rows[3], ["All", "70", "10000.00"].map(str::to_owned));
}

#[test]
fn wrk2s_lines_have_the_shape_of_its_readme() {
    let ours = text(FormatArg::Wrk2, sample::plain().outcome());
    let row = |line: &&String| **line != "# # # #";
    let lines = shapes(&ours, "  Latency Distribution");
    let short: Vec<&str> = lines.iter().filter(row).map(String::as_str).collect();
    let mut wanted = vec!["Latency Distribution (HdrHistogram - Recorded Latency)"];
    wanted.extend(["#% #"; 8]);
    wanted.extend([
        "",
        "Detailed Percentile spectrum:",
        "Value Percentile TotalCount #/(#-Percentile)",
        "",
        "# # # inf",
    ]);
    wanted.extend(["#[Mean = #, StdDeviation = #]", "#[Max = #, Total count = #]", "#[Buckets = #, SubBuckets = #]"]);
    let rule = "-".repeat(58);
    wanted.extend([rule.as_str(), "# requests in #, # read", "Requests/sec: #", "Transfer/sec: #"]);
    assert_eq!(short, wanted);
}

#[test]
fn scripts_read_wrk() {
    let text = text(FormatArg::Wrk, sample::failing().outcome());
    assert_eq!(read(r"Requests/sec:\s+(\d+\.?\d*)", &text), ["9925.00"]);
    assert_eq!(read(r"Transfer/sec:\s+(\d+\.?\d*)([KMG]?B)", &text), ["2.37", "MB"]);
    assert_eq!(read(r"(\d+) requests in (\d+\.\d+\w*), (\d+\.\d+)(\w+) read", &text), ["19850", "2.00s", "4.75", "MB"]);
    let latency = read(r"Latency\s+(\d+\.\d+)(\w+)\s+(\d+\.\d+)(\w+)\s+(\d+\.\d+)(\w+)\s+(\d+\.\d+)%", &text);
    assert_eq!((latency[1], latency[3], latency[5]), ("us", "us", "ms"));
    assert_eq!(read(r"Req/Sec\s+(\d+\.\d+)k", &text), ["10.00"]);
    assert_eq!(
        read(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", &text),
        ["20", "100", "0", "30"]
    );
    assert_eq!(read(r"Non-2xx or 3xx responses: (\d+)", &text), ["700"]);
    assert_eq!(read(r"(?m)^\s+99%\s+(\d+\.\d+)(\w+)", &text), ["1.04", "ms"]);
    assert_eq!(read(r"(\d+) threads and (\d+) connections", &text), ["1", "8"]);
}

#[test]
fn scripts_read_wrk2_and_the_percentiles() {
    let sample = sample::plain();
    let text = text(FormatArg::Wrk2, sample.outcome());
    assert_eq!(read(r"(?m)^\s*99\.999%\s+(\d+\.\d+)(\w+)", &text), ["1.06", "ms"]);
    assert_eq!(read(r"#\[Mean\s+=\s+([\d.]+), StdDeviation\s+=\s+([\d.]+)\]", &text).len(), 2);
    assert_eq!(read(r"#\[Max\s+=\s+([\d.]+), Total count\s+=\s+(\d+)\]", &text)[1], "20000");
    for (text, last) in [(text.clone(), "inf"), (spectrum(&sample.distributions.latency, Flavour::Hdr), "")] {
        rows_are_a_distribution(&text, last);
    }
}

/// Values, percentiles and counts ascend, from 0 to 1; the last column is 1/(1-percentile).
fn rows_are_a_distribution(text: &str, last: &str) {
    let row = Regex::new(r"(?m)^\s*(\d+\.\d+)\s+(\d\.\d+)\s+(\d+)(?:\s+([\d.]+|inf))?\s*$").expect("a pattern");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let rows: Vec<[f64; 3]> = row.captures_iter(text).map(|r| [number(&r[1]), number(&r[2]), number(&r[3])]).collect();
    assert!(rows.len() > 20, "{text}");
    assert!(rows.windows(2).all(|two| two[0].iter().zip(two[1]).all(|(a, b)| *a <= b)), "{text}");
    assert_eq!((rows[0][1], rows[rows.len() - 1][1], rows[rows.len() - 1][2]), (0.0, 1.0, 20_000.0));
    for r in row.captures_iter(text) {
        match r.get(4).map(|m| m.as_str()) {
            None => assert_eq!(last, "", "{text}"),
            Some("inf") => assert_eq!(last, "inf", "{text}"),
            Some(inverse) => {
                let wanted = 1.0 / (1.0 - number(&r[2]));
                assert!((number(inverse) - wanted).abs() <= 0.005 + wanted * wanted * 1e-6, "{inverse}: {wanted}");
            }
        }
    }
}

#[test]
fn scripts_read_hey() {
    let text = text(FormatArg::Hey, sample::failing().outcome());
    assert_eq!(read(r"Requests/sec:\s+([\d.]+)", &text), ["10000.0000"]);
    assert_eq!(read(r"Average:\s+([\d.]+) secs", &text).len(), 1);
    assert_eq!(read(r"99% in ([\d.]+) secs", &text), ["0.0010"]);
    assert_eq!(read(r"\[(\d+)\]\s+(\d+) responses", &text), ["200", "19150"]);
    assert_eq!(read(r"Error distribution:\s+\[(\d+)\]\s+(.+)", &text), ["20", "connect refused"]);
    assert_eq!(read(r"Total data:\s+(\d+) bytes", &text), ["2540800"]);
    let bars = Regex::new(r"(?m)^  (\d\.\d{3}) \[(\d+)\]\t\|(■*)$").expect("a pattern");
    let counts: Vec<u64> = bars.captures_iter(&text).map(|bar| bar[2].parse().expect("a count")).collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (11, 20_000));
}

/// The JSON of a format.
fn json(format: FormatArg, sample: &Sample) -> Value {
    let text = super::text(format, sample.outcome(), &conditions());
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The names of all fields, with those of the objects in them.
fn fields(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        fields(value, &path, all);
        all.insert(path);
    }
}

#[test]
fn scripts_read_k6() {
    // weir has the field of the script's own check under its own name, and the 99.9th percentile, which k6 has when asked.
    let (mut ours, mut theirs) = (BTreeSet::new(), BTreeSet::new());
    let real = include_str!("../../../../../tests/words/peers/k6.json");
    fields(&serde_json::from_str(&text(FormatArg::K6, sample::plain().outcome())).expect("JSON"), "", &mut ours);
    fields(&serde_json::from_str(real).expect("JSON"), "", &mut theirs);
    let own = |field: &&String| !field.contains("the response is as expected") && !field.ends_with("p(99.9)");
    assert_eq!(ours.difference(&theirs).filter(own).collect::<Vec<_>>(), Vec::<&String>::new());
    let read = json(FormatArg::K6, &sample::failing());
    let metric = |name: &str| read["metrics"][name].clone();
    assert_eq!(metric("http_reqs")["count"], 20_000);
    assert_eq!(
        (metric("http_req_failed")["passes"].as_u64(), metric("checks")["passes"].as_u64()),
        (Some(900), Some(19_100))
    );
    // In this file a threshold that was crossed is true.
    assert_eq!(metric("http_req_duration")["thresholds"], json!({ "p(99)<=1": true, "p(99.9)<=1000": false }));
    assert_eq!(metric("http_req_failed")["thresholds"], json!({ "rate<=0.001": true }));
    assert_eq!(metric("http_reqs")["thresholds"], json!({ "rate>=100": false }));
    let duration = metric("http_req_duration");
    assert!(duration["med"].as_f64() < duration["p(99)"].as_f64() && duration["p(99)"].as_f64() < Some(1.1));
}

#[test]
fn github_reads_names_values_and_units() {
    for (format, names) in [
        (FormatArg::GithubBigger, &["successful responses"][..]),
        (FormatArg::GithubSmaller, &["p50", "p90", "p99", "p99.9", "without a successful response"]),
    ] {
        let read = json(format, &sample::failing());
        let benches = read.as_array().expect("a list");
        let found: Vec<&str> = benches
            .iter()
            .filter_map(|one| one["name"].as_str()?.strip_prefix("http://127.0.0.1:8080/bytes/128: "))
            .collect();
        assert_eq!(found, names);
        assert!(
            benches.iter().all(|one| one["value"].as_f64().is_some_and(|value| value > 0.0) && one["unit"].is_string())
        );
    }
}

#[test]
fn junit_has_a_case_for_each_condition() {
    let xml = super::text(FormatArg::Junit, sample::failing().outcome(), &conditions());
    let read = roxmltree::Document::parse(&xml).expect("XML");
    let suite = read.root_element().first_element_child().expect("a suite");
    assert_eq!(
        (suite.attribute("tests"), suite.attribute("failures"), suite.attribute("errors")),
        (Some("7"), Some("2"), Some("1"))
    );
    let outcome = |name: &str| {
        let case = suite.children().find(|case| case.attribute("name") == Some(name)).expect(name);
        case.first_element_child()
            .map(|child| (child.tag_name().name().to_owned(), child.attribute("message").map(str::to_owned)))
    };
    let failed = |message: &str| Some(("failure".to_owned(), Some(message.to_owned())));
    assert_eq!(outcome("not p99>1ms"), failed("p99 is 1.04 ms"));
    assert_eq!(outcome("not rate<100/s"), None);
    assert_eq!(outcome("not handshake.p99>1s").expect("an error").0, "error");
    // Without conditions every wrong response is a failure; what is no XML is left out or written as XML needs it.
    let sample = sample::failing();
    let xml = text(FormatArg::Junit, Outcome { title: "a<b>\"&\u{1b}[1m", ..sample.outcome() });
    let read = roxmltree::Document::parse(&xml).expect("XML");
    let suite = read.root_element().first_element_child().expect("a suite");
    assert_eq!((suite.attribute("name"), suite.attribute("failures")), (Some("a<b>\"&[1m"), Some("1")));
}

#[test]
fn what_was_pipelined_says_so_in_every_format() {
    let mut sample = sample::plain();
    sample.spec.protocol = LoadProtocol::Http1 { pipeline: 16 };
    for format in [FormatArg::Wrk, FormatArg::Wrk2, FormatArg::Hey] {
        assert!(text(format, sample.outcome()).contains("HTTP/1.1 pipelined, 16 deep"), "{format:?}");
    }
    assert!(percentiles(sample.outcome()).ends_with("\n#[HTTP/1.1 pipelined, 16 deep]\n"));
}

#[test]
fn a_load_without_answers_is_no_reason_to_panic() {
    let Sample { spec, result, mut distributions } = sample::plain();
    let result = LoadResult { window_s: 0.0, ..LoadResult { series: vec![], ..result } };
    let nothing = LoadResult::default();
    for histo in [&mut distributions.latency, &mut distributions.service, &mut distributions.lag] {
        histo.reset();
    }
    for result in [&result, &nothing] {
        for format in FormatArg::value_variants().iter().copied() {
            let text = text(format, Outcome { title: "", spec: &spec, result, distributions: &distributions });
            assert!(!text.contains("NaN"), "{text}");
        }
    }
    assert!(spectrum(&distributions.latency, Flavour::Hdr).contains("Total count    =            0"));
}
