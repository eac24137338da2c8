//! Reads results of other load generators, and of `weir load --json`, and lays two of them side by side. `weir compare` calls
//! [`read`] and [`beside`] where it is given files instead of runs.
//!
//! A file is recognised by what it contains (`formats`), and holds one result. Such a result is one sample: it has no blocks, so no
//! interval, and nothing of it is ever called sure. What a tool does not measure, or measures otherwise than weir, stands beside its
//! numbers.

mod beside;
mod formats;
mod readers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_model::InputError;
use weir_model::metric::Metric;
use weir_model::text::line_at;

pub use beside::{Beside, Number, beside};
pub use formats::readable;

/// Larger files are not read: no tool's summary is this long, and a million lines of hey's CSV are less.
const LARGEST: u64 = 256 << 20;

/// A tool whose results can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// `weir load --json`
    Weir,
    /// wrk
    Wrk,
    /// wrk2
    Wrk2,
    /// hey
    Hey,
    /// k6
    K6,
    /// oha
    Oha,
}

/// For tools that send a request only when the last response on its connection came.
const OMITS: &str = "sends a request only when the last response on its connection came, so that its latencies have nothing of those \
                     that a stall kept from being sent (coordinated omission)";

/// The rule of most tools for a correct response.
const STATUSES: &str = "takes every status of 200 to 399 for a success, whatever the body is";

/// Facts about a tool.
struct ToolWords {
    name: &'static str,
    /// How it measures latency, where that is not as weir does; else empty.
    latency: &'static str,
    /// Its rule for a correct response, likewise.
    right: &'static str,
}

impl Tool {
    fn words(self) -> ToolWords {
        let of = |name, latency, right| ToolWords { name, latency, right };
        match self {
            Tool::Weir => of("weir load", "", ""),
            Tool::Wrk => of("wrk", OMITS, STATUSES),
            Tool::Hey => of("hey", OMITS, STATUSES),
            Tool::Wrk2 => {
                let latency = "counts latency from when a request was due, as weir does; its first ten seconds calibrate and are not \
                               measured";
                of("wrk2", latency, STATUSES)
            }
            Tool::K6 => of(
                "k6",
                "counts latency from when a request was sent: what a virtual user waited before that is not in it",
                "takes for a success what http_req_failed says: a status of 200 to 399, unless the script says otherwise",
            ),
            Tool::Oha => {
                let latency = "counts latency from when a request was sent, unless it was started with --latency-correction, which \
                               its output does not tell";
                of("oha", latency, STATUSES)
            }
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        self.words().name
    }
}

/// One result of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResult {
    /// The file as given.
    pub file: PathBuf,
    /// Whose result it is.
    pub tool: Tool,
    /// Length of the measurement, seconds.
    pub window_s: Option<f64>,
    /// Requests that ended.
    pub requests: u64,
    /// Connections, where the result says.
    pub connections: Option<u64>,
    /// The rate that was ordered, requests a second, where the result says.
    pub offered: Option<f64>,
    /// The numbers, by metric: requests a second, microseconds, shares.
    pub numbers: BTreeMap<Metric, f64>,
    /// What the result lacks or has otherwise than weir, one sentence each.
    pub lacks: Vec<String>,
}

/// Reads a file.
///
/// # Errors
/// The file cannot be read, is no result of a tool that is known, has several results, or says what cannot be; with its name and
/// the line.
pub fn read(path: &Path) -> Result<ToolResult, InputError> {
    let source = path.display().to_string();
    let wrong = |found: String| InputError::of(&source, found, wanted());
    let size = std::fs::metadata(path).map_err(|e| wrong(e.to_string()))?.len();
    if size > LARGEST {
        return Err(wrong(format!("the file has {size} bytes")));
    }
    let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
    let mut result = parse(&source, &bytes)?;
    result.file = path.to_owned();
    Ok(result)
}

/// Reads the content of a file; `source` is its name in errors. Which tool's it is follows from the content.
///
/// # Errors
/// As [`read`].
pub fn parse(source: &str, bytes: &[u8]) -> Result<ToolResult, InputError> {
    let text = decode(source, bytes)?;
    if text.trim().is_empty() {
        return Err(InputError::of(source, "the file is empty", wanted()));
    }
    formats::read(source, &text)?.checked(source)
}

/// The text without a byte order mark. PowerShell writes what a program prints in UTF-16.
fn decode<'b>(source: &str, bytes: &'b [u8]) -> Result<Cow<'b, str>, InputError> {
    let wide = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16(&units).map(Cow::Owned).map_err(|_| error(source, 1, "", "this is no UTF-16"))
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => {
            let text = std::str::from_utf8(bytes)
                .map_err(|e| error(source, line_at(bytes, e.valid_up_to()), "", "this is no UTF-8"))?;
            Ok(Cow::Borrowed(text.trim_start_matches('\u{feff}')))
        }
    }
}

/// The formats that can be read, for messages.
fn wanted() -> String {
    format!("a result of one of: {}", readable().collect::<Vec<_>>().join("; "))
}

impl ToolResult {
    /// A result without numbers yet.
    fn of(tool: Tool, requests: u64) -> ToolResult {
        let (file, window_s, connections, offered) = (PathBuf::new(), None, None, None);
        let (numbers, lacks) = (BTreeMap::new(), Vec::new());
        ToolResult { file, tool, window_s, requests, connections, offered, numbers, lacks }
    }

    /// Sets rate and error share, from `right` successful responses to `ended` requests.
    fn set_right(&mut self, right: u64, ended: u64, seconds: f64) {
        if seconds > 0.0 {
            self.numbers.insert(Metric::Rate, right as f64 / seconds);
        }
        if ended > 0 {
            self.numbers.insert(Metric::ErrorShare, ended.saturating_sub(right) as f64 / ended as f64);
        }
    }

    /// Adds a number where there is one.
    fn set(&mut self, metric: Metric, value: Option<f64>) {
        self.numbers.extend(value.map(|value| (metric, value)));
    }

    /// The result, if its numbers can be, with what all such results lack.
    fn checked(mut self, source: &str) -> Result<ToolResult, InputError> {
        for (metric, value) in &self.numbers {
            if !value.is_finite() || *value < 0.0 {
                let key = metric.key().to_owned();
                let found = format!("{value} cannot be");
                return Err(InputError { key: Some(key), ..InputError::of(source, found, "a number of at least 0") });
            }
        }
        if self.numbers.is_empty() {
            return Err(InputError::of(source, "nothing was measured: no request ended", wanted()));
        }
        let ToolWords { name, latency, right } = self.tool.words();
        let how = [latency, right].into_iter().filter(|how| !how.is_empty()).map(|how| format!("{name} {how}."));
        self.lacks.splice(0..0, how);
        if !self.numbers.contains_key(&Metric::P99) {
            self.lacks.push("It has no 99th percentile.".to_owned());
        }
        Ok(ToolResult { file: PathBuf::from(source), ..self })
    }
}

/// The percentiles that weir has, as tools write them.
const PERCENTILES: [(&str, Metric); 7] = [
    ("50", Metric::P50),
    ("75", Metric::P75),
    ("90", Metric::P90),
    ("95", Metric::P95),
    ("99", Metric::P99),
    ("99.9", Metric::P999),
    ("99.99", Metric::P9999),
];

/// The metric of a percentile, such as 99.9.
fn percentile(percent: f64) -> Option<Metric> {
    PERCENTILES.into_iter().find(|(known, _)| known.parse() == Ok(percent)).map(|(_, metric)| metric)
}

/// A number as tools print it: digits and a point. Rust's own parser takes signs, exponents, `inf` and `nan` as well.
fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse::<f64>().ok().filter(|_| plain)
}

/// An error in a line, 1-based.
fn error(source: &str, line: usize, key: &str, found: impl Into<String>) -> InputError {
    let key = (!key.is_empty()).then(|| key.to_owned());
    InputError { line: Some(line), key, ..InputError::of(source, found, wanted()) }
}
