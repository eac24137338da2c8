//! How many requests a load generator says it did, out of what it prints.
//!
//! `tests/captured` has what the tools really print.

use anyhow::{Context, bail};
use serde_json::Value;

/// `null client`: `requests N`.
///
/// # Errors
/// When there is no such line.
pub fn null(text: &str) -> anyhow::Result<u64> {
    number_after(text, "requests ")
}

/// wrk: `N requests in 1.00s, 21.02MB read`. Connect, read, write and timeout errors make it an error, and answers
/// other than 2xx or 3xx.
///
/// # Errors
/// When there is no such line, or there were errors.
pub fn wrk(text: &str) -> anyhow::Result<u64> {
    if let Some(line) = text.lines().find(|line| line.contains("Socket errors:") || line.contains("Non-2xx")) {
        bail!("wrk: {}", line.trim());
    }
    let line = text.lines().find(|line| line.contains(" requests in ")).context("wrk printed no sum of requests")?;
    number(line)
}

/// hey and oha: `[200] N responses`. Other statuses and errors make it an error, except requests that oha gave up
/// because time was up.
///
/// # Errors
/// When there is no such line, or there were errors.
pub fn hey(text: &str) -> anyhow::Result<u64> {
    let errors = text.split_once("Error distribution:").map_or("", |(_, errors)| errors);
    if let Some(line) = errors.lines().find(|line| !line.trim().is_empty() && !line.contains("deadline")) {
        bail!("errors: {}", line.trim());
    }
    if let Some(line) = text.lines().find(|line| {
        let line = line.trim_start();
        line.starts_with('[') && line.contains(" responses") && !line.starts_with("[200]")
    }) {
        bail!("not all answers were right: {}", line.trim());
    }
    number_after(text, "[200]")
}

/// ab: `Complete requests:      N`, less `Failed requests`, which must be none.
///
/// # Errors
/// When there is no such line, or there were failures or answers other than 2xx.
pub fn ab(text: &str) -> anyhow::Result<u64> {
    let failed = number_after(text, "Failed requests:")?;
    if failed > 0 || text.contains("Non-2xx responses:") {
        bail!("ab: {failed} failed requests, or answers other than 2xx");
    }
    number_after(text, "Complete requests:")
}

/// h2load: `requests: N total, N started, N done, N succeeded, 0 failed, ...`.
///
/// # Errors
/// When there is no such line, or there were failures.
pub fn h2load(text: &str) -> anyhow::Result<u64> {
    let line = text.lines().find(|line| line.starts_with("requests:")).context("h2load printed no sum of requests")?;
    let field = |name: &str| -> anyhow::Result<u64> {
        let part = line.split(',').find(|part| part.trim_end().ends_with(name));
        number(part.with_context(|| format!("h2load: nothing {name} in {line:?}"))?.trim_start_matches("requests:"))
    };
    let wrong = field("failed")? + field("errored")? + field("timeout")?;
    if wrong > 0 {
        bail!("h2load: {line}");
    }
    field("succeeded")
}

/// h1load: the fourth column of the last line; the sixth is errors.
///
/// # Errors
/// When there is no such line, or there were errors.
pub fn h1load(text: &str) -> anyhow::Result<u64> {
    let mut rows = text.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let columns: Vec<&str> = rows.next_back().context("h1load printed no row")?.split_whitespace().collect();
    let column = |at: usize| columns.get(at).context("h1load: a row is too short").and_then(|text| number(text));
    if column(5)? > 0 {
        bail!("h1load: {} errors", column(5)?);
    }
    column(3)
}

/// fortio: `Code 200 : N (100.0 %)`; other codes make it an error.
///
/// # Errors
/// When there is no such line, or there were others.
pub fn fortio(text: &str) -> anyhow::Result<u64> {
    let mut codes = text.lines().filter(|line| line.starts_with("Code "));
    let line = codes.next().context("fortio printed no codes")?;
    let (code, count) = line.split_once(':').with_context(|| format!("fortio: {line:?}"))?;
    if code.trim() != "Code 200" || codes.next().is_some() {
        bail!("fortio: not all answers were right: {line:?}");
    }
    number(count)
}

/// The median that `wrk2 --latency` prints first, us: of what was due, corrected for waiting.
///
/// # Errors
/// When there is no such line.
pub fn wrk2_median_us(text: &str) -> anyhow::Result<f64> {
    let lines = text.lines().skip_while(|line| !line.contains("Latency Distribution"));
    let median =
        lines.map(str::trim).find_map(|line| line.strip_prefix("50.000%")).context("wrk2 printed no median")?;
    let median = median.trim();
    let at = median.find(|c: char| c.is_ascii_alphabetic()).context("wrk2: a median without a unit")?;
    let (value, unit) = median.split_at(at);
    let unit = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => bail!("wrk2: the median {median} is in no known unit"),
    };
    Ok(value.parse::<f64>().context("wrk2: the median")? * unit)
}

/// What `weir load --json` says.
#[derive(Debug, Clone, PartialEq)]
pub struct WeirLoad {
    /// Right answers, from the first to the last.
    pub requests: u64,
    /// When something was due, was sent and was answered.
    pub times: Times,
    /// The cipher suites of its connections; empty without TLS.
    pub suites: Vec<String>,
}

/// Latencies that an open load is about, us.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// Median latency.
    pub latency_p50_us: f64,
    /// Percentiles of the lag (due to sent): 50, 99, 99.9; not numbers of a tool that does not tell.
    pub lag_us: [f64; 3],
}

/// Reads the JSON of `weir load`.
///
/// # Errors
/// When it is not such JSON, or there were errors or requests that could not be sent.
pub fn weir(text: &str) -> anyhow::Result<WeirLoad> {
    let json: Value = serde_json::from_str(text).context("weir load printed no JSON")?;
    let total = &json["total"];
    let errors = total["errors"].as_object().is_some_and(|errors| !errors.is_empty());
    if errors || total["unsent"].as_u64() != Some(0) {
        bail!("weir load: errors {}, unsent {}", total["errors"], total["unsent"]);
    }
    let us = |of: &str, name: &str| json[of][name].as_f64().with_context(|| format!("weir load: no {of}.{name}"));
    Ok(WeirLoad {
        requests: total["right"].as_u64().context("weir load: no total.right")?,
        times: Times {
            latency_p50_us: us("latency", "p50_us")?,
            lag_us: [us("lag", "p50_us")?, us("lag", "p99_us")?, us("lag", "p999_us")?],
        },
        suites: json["tls"]["suites"].as_object().map(|suites| suites.keys().cloned().collect()).unwrap_or_default(),
    })
}

fn number_after(text: &str, word: &str) -> anyhow::Result<u64> {
    let (_, rest) = text.split_once(word).with_context(|| format!("no {word:?} in the output"))?;
    number(rest)
}

/// The number that a text begins with.
fn number(text: &str) -> anyhow::Result<u64> {
    let text = text.trim_start();
    let digits = &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())];
    digits.parse().with_context(|| format!("no number at {:?}", text.lines().next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = include_str!("../../tests/captured/wrk.txt");
    const HEY: &str = include_str!("../../tests/captured/hey.txt");
    const AB: &str = include_str!("../../tests/captured/ab.txt");
    const H2LOAD: &str = include_str!("../../tests/captured/h2load.txt");
    const H1LOAD: &str = include_str!("../../tests/captured/h1load.txt");
    const OHA: &str = include_str!("../../tests/captured/oha.txt");
    const FORTIO: &str = include_str!("../../tests/captured/fortio.txt");
    const WRK2: &str = include_str!("../../tests/captured/wrk2.txt");
    const WEIR: &str = include_str!("../../tests/captured/weir.json");
    const WEIR_OPEN: &str = include_str!("../../tests/captured/weir-open.json");

    #[test]
    fn what_the_tools_really_printed() {
        assert_eq!(wrk(WRK).unwrap(), 96_237);
        assert_eq!(hey(HEY).unwrap(), 37_617);
        assert_eq!(ab(AB).unwrap(), 98_778);
        assert_eq!(h2load(H2LOAD).unwrap(), 143_916);
        assert_eq!(h1load(H1LOAD).unwrap(), 111_691);
        assert_eq!(hey(OHA).unwrap(), 47_497);
        assert_eq!(fortio(FORTIO).unwrap(), 82_312);
        assert_eq!(wrk(WRK2).unwrap(), 3_965);
        assert_eq!(wrk2_median_us(WRK2).unwrap(), 860.0);
        assert_eq!(null("requests 12\nanswer_bytes 3\n").unwrap(), 12);
        let closed = weir(WEIR).unwrap();
        assert_eq!((closed.requests, closed.times.latency_p50_us), (198_136, 304.127));
        assert!(closed.suites.is_empty());
        assert_eq!(weir(WEIR_OPEN).unwrap().requests, 20_000);
    }

    #[test]
    fn a_run_with_errors_is_no_measurement() {
        assert!(wrk(&format!("{WRK}  Socket errors: connect 0, read 3, write 0, timeout 0\n")).is_err());
        assert!(wrk(&format!("{WRK}  Non-2xx or 3xx responses: 7\n")).is_err());
        assert!(hey(&format!("{HEY}\nError distribution:\n  [3]\tGet: EOF\n")).is_err());
        assert!(hey(&HEY.replace("  [200]", "  [404]\t1 responses\n  [200]")).is_err());
        assert!(ab(&AB.replace("Failed requests:        0", "Failed requests:        2")).is_err());
        assert!(h2load(&H2LOAD.replace("0 failed", "4 failed")).is_err());
        assert!(h1load(&H1LOAD.replace("25577239      0", "25577239      5")).is_err());
        assert!(fortio("Code 200 : 80 (99.0 %)\nCode 503 : 1 (1.0 %)\n").is_err());
        assert!(weir(&WEIR.replace("\"errors\": {}", "\"errors\": {\"reset\": 1}")).is_err());
    }

    #[test]
    fn nothing_printed_is_an_error_and_not_zero() {
        for read in [null, wrk, hey, ab, h2load, h1load, fortio] {
            assert!(read("").is_err());
        }
        assert!(weir("").is_err() && wrk2_median_us("").is_err());
    }
}
