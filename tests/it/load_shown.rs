//! What `weir load` shows, prints and writes, how it takes Ctrl-C, and that every mistake is named before anything starts.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{
    Ended, OriginUnderTest, all_right, load_result, number, run, run_within, scratch, signal, text, wait_within, weir,
};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn formats_are_what_scripts_expect() {
    let origin = OriginUnderTest::start(&[]);
    let url = origin.url("/bytes/128");
    let printed = |format: &str| {
        let ended = run(&["load", "-q", &url, "-n", "400", "-c", "4", "--format", format]);
        ended.expect(0);
        ended.stdout
    };
    for (format, lines) in [
        ("wrk", ["Requests/sec:", "  400 requests in "].as_slice()),
        ("wrk2", &["Requests/sec:", "  Detailed Percentile spectrum:", "#[Mean    ="]),
        ("hey", &["  Requests/sec:\t", "  [200]\t400 responses", "  99% in "]),
    ] {
        let text = printed(format);
        for begin in lines {
            assert!(text.lines().any(|line| line.starts_with(begin)), "{format} without {begin:?}:\n{text}");
        }
    }
}

#[test]
fn files_are_written() {
    let origin = OriginUnderTest::start(&[]);
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name).to_str().expect("UTF-8").to_owned();
    let (csv, hlog, hgrm) = (path("a.csv"), path("a.hlog"), path("a.hgrm"));
    let args = ["-d", "1s", "--warmup", "0s", "-c", "2", "--csv", &csv, "--hlog", &hlog, "--hgrm", &hgrm];
    let result = all_right(&[&[origin.url("/bytes/1").as_str()], args.as_slice()].concat());
    let read = |path: &str| std::fs::read_to_string(path).expect("written");
    assert!(read(&csv).starts_with("second,length_s,due,"));
    assert!(read(&hlog).starts_with("#[Histogram log format version 1.3]"));
    let hgrm = read(&hgrm);
    assert!(hgrm.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"), "{hgrm}");
    let total = format!("Total count    = {:>12}]", number(&result, "/latency/count"));
    assert!(hgrm.contains(&total), "{hgrm}");
    for flag in ["--csv", "--hlog", "--hgrm"] {
        let ended = run(&["load", "-q", &origin.url("/"), "-n", "1", flag, "/no/such/folder/file"]);
        assert!(matches!(ended.code(), Some(2 | 3)) && ended.stderr.contains("/no/such/folder/file"), "{ended:?}");
    }
}

#[test]
fn the_json_is_as_its_schema_says() {
    let origin = OriginUnderTest::start(&["--tls"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/load-result.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("kept")).expect("JSON");
    let urls = [origin.https("/bytes/1"), origin.https("/status/404")];
    let result = load_result(1, &[&urls[0], &urls[1], "-d", "1s", "--warmup", "0s", "-c", "2", "--http", "2"]);
    described(&schema, &schema, &result, "result");
}

/// Every key that is printed is described, with its type; every key that is required is there.
fn described(root: &Value, schema: &Value, value: &Value, at: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).expect("a definition"),
        None => schema,
    };
    if let Some(choices) = schema["anyOf"].as_array() {
        let choice = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return described(root, choice.unwrap_or_else(|| panic!("{at}: none of {choices:?}")), value, at);
    }
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    let fits = types.iter().any(|t| *t == is || (*t == "integer" && is == "number"));
    assert!(fits, "{at} is a {is}, and {types:?} is described");
    if let Some(object) = value.as_object() {
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(object.contains_key(key), "{at} has no {key}");
        }
        for (key, value) in object {
            let by_pattern = || schema["patternProperties"].as_object()?.values().next();
            let own = match &schema["properties"][key] {
                Value::Null => by_pattern().unwrap_or(&schema["additionalProperties"]),
                own => own,
            };
            assert!(own.is_object(), "{at}.{key} is not described");
            described(root, own, value, &format!("{at}.{key}"));
        }
    }
    if let (Some(items), true) = (value.as_array(), schema["items"].is_object()) {
        items.iter().for_each(|item| described(root, &schema["items"], item, &format!("{at}[]")));
    }
}

/// Starts weir, interrupts it once it has shown these words on standard error, and returns the JSON that it then prints before it ends so.
fn interrupted_after(words: &str, args: &[&str], status: i32) -> Value {
    let mut child = weir(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let mut stderr = child.stderr.take().expect("piped");
    let (mut said, mut byte) = (Vec::new(), [0u8; 1]);
    while !String::from_utf8_lossy(&said).contains(words) {
        assert_eq!(stderr.read(&mut byte).expect("read"), 1, "{}", String::from_utf8_lossy(&said));
        said.push(byte[0]);
    }
    signal(child.id(), Signal::INT);
    assert_eq!(wait_within(&mut child, Duration::from_secs(20)).code(), Some(status));
    let mut text = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut text).expect("read");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let origin = OriginUnderTest::start(&[]);
    let url = origin.url("/bytes/1");
    // The first second is measured when its line is shown.
    let result = interrupted_after("  p50 ", &["load", &url, "-c", "2", "-d", "60s", "--warmup", "0s", "--json"], 130);
    assert_eq!(result["cut_short"], true);
    assert!(number(&result, "/window/successful") > 0.0 && number(&result, "/window_s") >= 0.9, "{result:#}");
    // One without an end is stopped as ordered.
    let result = interrupted_after("  p50 ", &["load", &url, "-c", "2", "-d", "0", "--warmup", "0", "--json"], 0);
    assert_eq!(result["cut_short"], false);
    assert!(number(&result, "/window/successful") > 0.0 && number(&result, "/window_s") >= 0.9, "{result:#}");
}

#[test]
fn ctrl_c_in_a_search_keeps_what_was_found() {
    let origin = OriginUnderTest::start(&[]);
    let url = origin.url("/delay/5ms");
    let args = ["load", &url, "-c", "2", "--find-max", "p50<1s", "--budget", "60s", "--warmup", "0s", "--json"];
    let found = interrupted_after("  guess ", &args, 130);
    assert_eq!(found["end"], "cut_short");
    assert!(found["probes"].as_array().is_some_and(|probes| !probes.is_empty()), "{found:#}");
}

/// weir on a terminal of so many columns and rows, by util-linux' `script`; returns what the terminal shows at the end.
fn on_terminal(columns: u16, rows: u16, args: &[&str]) -> (String, String) {
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let line = format!("stty cols {columns} rows {rows}; {} {}", env!("CARGO_BIN_EXE_weir"), quoted.join(" "));
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color").stdin(Stdio::null());
    let ended = run_within(&mut command, Duration::from_secs(60));
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let mut screen = vt100::Parser::new(rows, columns, 0);
    screen.process(ended.stdout.as_bytes());
    (screen.screen().contents(), ended.stdout)
}

#[test]
fn a_terminal_shows_how_it_goes_and_then_the_summary_alone() {
    let origin = OriginUnderTest::start(&[]);
    let url = origin.url("/bytes/1");
    for (columns, rows) in [(80, 24), (60, 30)] {
        let (shown, written) = on_terminal(columns, rows, &["load", &url, "-c", "2", "-d", "2s", "--warmup", "0s"]);
        for words in ["measuring", "last second", "so far", "p99.9", "in flight", "━"] {
            assert!(written.contains(words), "the view had no {words:?}:\n{written}");
        }
        assert!(written.contains("\x1b[36m"), "no colour on a terminal");
        assert!(shown.contains("requests") && shown.contains("limit"), "{shown}");
        assert!(
            !shown.contains("last second") && !shown.contains("measuring"),
            "what was transient is still there:\n{shown}"
        );
        assert!(!written.contains("\x1b[?25l") && !written.contains("\x1b[?1049h"), "the terminal was changed");
    }
    for without in [&["--color", "never"][..], &["-q"]] {
        let (_, written) = on_terminal(80, 24, &[&["load", &url, "-n", "10"], without].concat());
        assert!(!written.contains("\x1b[3"), "colours with {without:?}:\n{written}");
    }
}

#[test]
fn lines_instead_of_a_view_where_there_is_no_terminal() {
    let origin = OriginUnderTest::start(&[]);
    let ended = run(&["load", &origin.url("/bytes/1"), "-c", "2", "-d", "1s", "--warmup", "0s"]);
    ended.expect(0);
    assert!(ended.stderr.lines().any(|line| line.contains("  p50 ")), "{}", ended.stderr);
    assert!(!ended.stderr.contains('\x1b') && !ended.stdout.contains('\x1b'), "{ended:?}");
    let ended = run(&["load", &origin.url("/bytes/1"), "-c", "2", "-d", "1s", "--warmup", "0s", "-q"]);
    assert_eq!(ended.stderr, "");
}

/// Runs weir load with a URL to nowhere and expects bad input, said in the project's way, with these words in it.
fn refused(flags: &[&str], words: &[&str]) {
    let ended: Ended = run(&[&["load", "http://127.0.0.1:1/", "-q"], flags].concat());
    let said = ended.expect(2);
    assert_eq!(ended.stdout, "", "{flags:?}");
    for word in words {
        assert!(said.contains(word), "{flags:?}: no {word:?} in:\n{said}");
    }
    assert!(!said.contains("Some(") && !said.contains("Err("), "Debug output: {said}");
}

#[test]
fn every_flag_refuses_what_is_wrong() {
    refused(&["-c", "0"], &["--connections"]);
    refused(&["-d", "5"], &["\"5\" has no unit"]);
    refused(&["-n", "0"], &["--requests"]);
    refused(&["-n", "1m"], &["\"1m\" is no count", "such as 1000, 20k or 1.5M"]);
    refused(&["-d", "30s1m"], &["--duration", "\"30s1m\" has m behind a unit"]);
    refused(&["-d", "0", "--ramp", "1..5"], &["until Ctrl-C: a ramp has an end"]);
    refused(&["-b", "@/no/such/file"], &["--body", "/no/such/file: No such file"]);
    refused(&["-R", "1000M", "--arrivals", "poisson"], &["cannot be offered by 1 thread", "constant arrivals"]);
    refused(&["-R", "fast"], &["\"fast\" is not a rate"]);
    refused(&["--rate", "0"], &["rate"]);
    refused(&["--ramp", "5"], &["\"5\" has no \"..\"", "expected: two rates"]);
    refused(&["--steps", "5x"], &["expected: "]);
    refused(&["--replay", "/no/such/file"], &["--replay", "/no/such/file"]);
    refused(&["--find-max", "p99"], &["compares nothing"]);
    refused(&["--find-max", "p98<1ms"], &["p98"]);
    refused(&["--budget", "1s"], &["--find-max"]);
    refused(&["--arrivals", "random", "-R", "1"], &["constant", "poisson"]);
    refused(&["--think", "soon"], &["\"soon\" is no time"]);
    refused(&["--warmup=-1s"], &["--warmup"]);
    refused(&["-m", "GE T"], &["GE T"]);
    refused(&["-H", "nonsense"], &["nonsense", "name: value"]);
    refused(&["--body", "@/no/such/file"], &["--body", "/no/such/file"]);
    refused(&["--body-size", "5kb"], &["unknown unit"]);
    refused(&["--weight", "1,2"], &["2 weights for 1 URL"]);
    refused(&["--weight", "0"], &["--weight"]);
    refused(&["--template"], &["no field", "{{seq}}"]);
    refused(&["--template", "-b", "{{sec}}"], &["{{sec}}"]);
    refused(&["--expect-status", "99"], &["--expect-status"]);
    refused(&["--expect-size", "x"], &["--expect-size"]);
    refused(&["--expect-header", "a b"], &["'name: value'"]);
    refused(&["--expect-hash", "xyz"], &["16 hexadecimal digits"]);
    refused(&["--expect-hash-of", "/no/such/file"], &["/no/such/file"]);
    refused(&["--timeout", "0s"], &["timeout"]);
    refused(&["--fail-if", "p99>fast"], &["--fail-if"]);
    refused(&["--http", "3"], &["HTTP/3 without TLS", "https://"]);
    refused(&["--http", "4"], &["1.1", "2", "3"]);
    refused(&["--streams", "2"], &["--http 2"]);
    refused(&["--pipeline", "0"], &["--pipeline"]);
    refused(&["--requests-per-connection", "0"], &["--requests-per-connection"]);
    refused(&["--max-connections", "100"], &["open loads"]);
    refused(&["--connect-rate", "0"], &["--connect-rate"]);
    refused(&["--source", "localhost"], &["--source"]);
    refused(&["-t", "0"], &["--threads"]);
    refused(&["--cpus", "9999"], &["9999"]);
    refused(&["--driver", "kqueue"], &["io_uring", "epoll"]);
    refused(&["--tls-version", "1.3"], &["https://"]);
    refused(&["--color", "green"], &["auto", "always", "never"]);
    refused(&["--format", "oha"], &["wrk", "wrk2", "hey", "k6"]);
    refused(&["--json", "--format", "wrk"], &["cannot be used with"]);
    for url in ["ftp://127.0.0.1/", "http://:80/", "http://no-such-host.invalid/", "http://127.0.0.1:70000/"] {
        let ended = run(&["load", url, "-q"]);
        assert!(ended.expect(2).contains("expected: "), "{url}: {}", ended.stderr);
        assert!(!url.starts_with("ftp") || ended.stderr.contains("ftp://") && ended.stderr.contains("https://"));
    }
    assert!(run(&["load"]).expect(2).contains("<URL>"));
}

#[test]
fn wrong_tls_flags_are_refused_before_anything_starts() {
    let scratch = scratch();
    let (cert, none) = (scratch.path().join("cert.pem"), scratch.path().join("none.pem"));
    std::fs::write(&cert, "-----BEGIN CERTIFICATE-----\n").expect("written");
    std::fs::write(&none, "no certificate").expect("written");
    for (flags, word) in [
        (["--tls-version", "1.1"], "1.2"),
        (["--tls-suite", "TLS_NONSENSE"], "TLS_NONSENSE"),
        (["--tls-group", "P-1"], "P-1"),
        (["--cacert", "/no/such/file"], "/no/such/file"),
        (["--cacert", text(&none)], "none.pem"),
        (["--cert", "/no/such/file"], "/no/such/file"),
        (["--key", text(&cert)], "private key"),
        (["--cert", text(&cert)], "--key"),
    ] {
        let ended = run(&[&["load", "https://127.0.0.1:1/", "-q"], flags.as_slice()].concat());
        assert!(ended.expect(2).contains(word), "{flags:?}: {}", ended.stderr);
    }
}

#[test]
fn plain_text_to_a_tls_port_and_the_reverse_are_errors_of_their_kind() {
    let (plain, secure) = (OriginUnderTest::start(&[]), OriginUnderTest::start(&["--tls"]));
    let ended = run(&["load", "-q", &plain.https("/"), "-n", "1", "-c", "1", "--timeout", "2s"]);
    assert!(matches!(ended.code(), Some(1 | 3)), "{ended:?}");
    let ended = run(&["load", "-q", &secure.url("/"), "-n", "1", "-c", "1", "--timeout", "2s"]);
    assert!(matches!(ended.code(), Some(1 | 3)), "{ended:?}");
}
