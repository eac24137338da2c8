//! Reads the results of other tools: the texts of wrk, wrk2 and hey, and the JSON of k6, oha and `weir load`. In a
//! text, other lines are passed over, such as those of a script around the tool. A line that begins as one of the tool's and does not go
//! on so is an error. In JSON, fields that are `null` were not measured.

use serde_json::Value;
use weir_model::InputError;
use weir_model::load::LoadResult;
use weir_model::metric::{Metric, Source, Window};
use weir_model::text::line_at;

use super::formats::Document;
use super::{PERCENTILES, Tool, ToolResult, error, number, percentile};

/// A line of the text, with what errors name.
struct Line<'t> {
    source: &'t str,
    number: usize,
    text: &'t str,
}

impl<'t> Line<'t> {
    fn all(document: &'t Document<'_>) -> impl Iterator<Item = Line<'t>> {
        document.lines().map(|(number, text)| Line { source: document.source, number, text: text.trim() })
    }

    /// What follows a label.
    fn after(&self, label: &str) -> Option<&'t str> {
        Some(self.text.strip_prefix(label)?.trim())
    }

    fn wrong(&self, wanted: &str) -> InputError {
        let found = format!("{:?}", self.text.chars().take(80).collect::<String>());
        InputError { wanted: wanted.to_owned(), ..error(self.source, self.number, "", found) }
    }

    fn number(&self, text: &str) -> Result<f64, InputError> {
        number(text).ok_or_else(|| self.wrong("a number"))
    }

    fn count(&self, text: &str) -> Result<u64, InputError> {
        text.parse().map_err(|_| self.wrong("a whole number"))
    }

    /// A time of wrk in microseconds: `1.32ms`; `None` where nothing was measured: `-nanus`.
    fn time_us(&self, text: &str) -> Result<Option<f64>, InputError> {
        let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3_600e6)];
        let read = |(unit, us): (&str, f64)| Some(number(text.strip_suffix(unit)?)? * us);
        let time = units.into_iter().find_map(read);
        (time.is_some() || is_nan(text)).then_some(time).ok_or_else(|| self.wrong("a time such as 1.32ms"))
    }

    /// A time of hey in seconds: `0.0017 secs`; `None` where nothing was measured: `NaN secs`.
    fn secs(&self, text: &str) -> Result<Option<f64>, InputError> {
        let text = text.strip_suffix("secs").map_or("", str::trim);
        let seconds = number(text);
        (seconds.is_some() || is_nan(text)).then_some(seconds).ok_or_else(|| self.wrong("a time such as 0.0017 secs"))
    }

    /// The same in microseconds.
    fn secs_us(&self, text: &str) -> Result<Option<f64>, InputError> {
        Ok(self.secs(text)?.map(|seconds| seconds * 1e6))
    }
}

/// The mean of no request.
fn is_nan(text: &str) -> bool {
    text.trim_start_matches('-').get(..3).is_some_and(|text| text.eq_ignore_ascii_case("nan"))
}

/// A table of percentiles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    /// The latency that counts.
    Latency,
    /// wrk2's second table, without the time that requests had to wait before they were sent.
    Uncorrected,
}

/// wrk and wrk2. Lines behind the transfer rate are a script's.
pub fn wrk(document: &Document<'_>) -> Result<ToolResult, InputError> {
    let mut found = ToolResult::of(Tool::Wrk, 0);
    let (mut bad, mut unanswered, mut seconds, mut per_second) = (0, 0, None, None);
    let (mut columns, mut table, mut tables) = (Vec::new(), None, Vec::new());
    for line in Line::all(document).take_while(|line| line.after("Transfer/sec:").is_none()) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let Some(rest) = line.after("Latency Distribution") {
            table = Some(if rest.contains("Uncorrected") { Table::Uncorrected } else { Table::Latency });
            if tables.contains(&table) {
                return Err(InputError {
                    found: "a second result's table begins here".to_owned(),
                    ..line.wrong("one result a file")
                });
            }
            tables.push(table);
            if rest.contains("HdrHistogram") {
                found.tool = Tool::Wrk2;
            }
        } else if let (Some(_), [percent, time]) = (table, &words[..])
            && let Some(percent) = percent.strip_suffix('%')
        {
            let metric = percentile(line.number(percent)?).filter(|_| table == Some(Table::Latency));
            let time = line.time_us(time)?;
            found.numbers.extend(metric.zip(time));
        } else {
            table = None;
        }
        if line.after("Thread calibration:").is_some() {
            found.tool = Tool::Wrk2;
        } else if let Some(names) = line.after("Thread Stats") {
            columns = names.split_whitespace().collect();
        } else if let ["Latency", times @ ..] = &words[..]
            && table.is_none()
        {
            // Once, and where the names of the columns are known.
            for (name, time) in std::mem::take(&mut columns).into_iter().zip(times) {
                match name {
                    "Avg" => found.set(Metric::Mean, line.time_us(time)?),
                    "Max" => found.set(Metric::Max, line.time_us(time)?),
                    "99%" => found.set(Metric::P99, line.time_us(time)?),
                    _ => {}
                }
            }
        } else if let Some(rest) = line.after("Socket errors:") {
            for part in rest.split(',') {
                let n = part.split_whitespace().nth(1).unwrap_or_default();
                unanswered += line.count(n)?.min(u64::MAX >> 8);
            }
        } else if let Some(rest) = line.after("Non-2xx or 3xx responses:") {
            bad = line.count(rest)?;
        } else if let Some(rest) = line.after("Requests/sec:") {
            per_second = Some(line.number(rest)?);
        } else if let [_, "threads", "and", connections, "connections"] = words[..] {
            found.connections = Some(line.count(connections)?);
        } else if let [requests, "requests", "in", time, ..] = words[..] {
            found.requests = line.count(requests)?;
            seconds = line.time_us(time.trim_end_matches(','))?.map(|us| us / 1e6);
        }
    }
    let cut_off =
        || InputError::of(document.source, "there is no Requests/sec: the result is cut off", "all that wrk printed");
    let per_second = per_second.ok_or_else(cut_off)?;
    found.window_s = seconds;
    if bad > found.requests {
        let said = format!("{bad} of {} responses are wrong", found.requests);
        return Err(InputError::of(document.source, said, "at most all of them"));
    }
    let right = found.requests - bad;
    // Without the number of requests it would not be known how many of them were right.
    if found.requests > 0 {
        found.set(Metric::Rate, Some(per_second * right as f64 / found.requests as f64));
    }
    let ended = found.requests + unanswered;
    if ended > 0 {
        found.set(Metric::ErrorShare, Some((ended - right) as f64 / ended as f64));
    }
    found.requests = ended;
    if unanswered > 0 {
        found
            .lacks
            .push("It counts errors of sockets, which may be more or fewer than requests without response.".into());
    }
    if tables.contains(&Some(Table::Uncorrected)) {
        found.lacks.push("Its table of uncorrected latency is left out.".into());
    }
    Ok(found)
}

/// A list of hey, which ends with an empty line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Statuses,
    Errors,
}

/// hey.
pub fn hey(document: &Document<'_>) -> Result<ToolResult, InputError> {
    let mut found = ToolResult::of(Tool::Hey, 0);
    let (mut right, mut seconds, mut list, mut has_statuses) = (0u64, None, None, false);
    for line in Line::all(document) {
        if let (None, Some(rest)) = (seconds, line.after("Total:")) {
            seconds = line.secs(rest)?;
        } else if let Some(rest) = line.after("Slowest:") {
            found.set(Metric::Max, line.secs_us(rest)?);
        } else if let Some(rest) = line.after("Average:") {
            found.set(Metric::Mean, line.secs_us(rest)?);
        } else if let Some((percent, time)) = line.text.split_once("% in ") {
            // Some versions write a second per cent sign.
            let metric = percentile(line.number(percent.trim_end_matches('%'))?);
            let time = line.secs_us(time)?;
            found.numbers.extend(metric.zip(time));
        } else if line.text.starts_with("Status code distribution:") {
            (list, has_statuses) = (Some(List::Statuses), true);
        } else if line.text.starts_with("Error distribution:") {
            list = Some(List::Errors);
        } else if line.text.is_empty() {
            list = None;
        } else if let (Some(list), Some((key, rest))) =
            (list, line.text.strip_prefix('[').and_then(|text| text.split_once(']')))
        {
            let key = line.count(key)?;
            let count = match list {
                List::Statuses => line.count(rest.trim().strip_suffix("responses").unwrap_or(rest).trim())?,
                List::Errors => key,
            };
            let is_right = list == List::Statuses && (200..400).contains(&key);
            right = right.saturating_add(if is_right { count } else { 0 });
            found.requests = found.requests.saturating_add(count);
        }
    }
    let cut_off = || InputError::of(document.source, "the result is cut off", "all that hey printed, from Summary on");
    let seconds = seconds.filter(|_| has_statuses).ok_or_else(cut_off)?;
    found.window_s = Some(seconds);
    found.set_right(right, found.requests, seconds);
    found.lacks.push("Its times are whole tenths of a millisecond.".into());
    Ok(found)
}

impl Document<'_> {
    /// The value at a path of keys; `None` also where it is `null`.
    fn get(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.value, |value, key| value.get(key)).filter(|value| !value.is_null())
    }

    fn number(&self, path: &[&str]) -> Result<Option<f64>, InputError> {
        self.number_of(self.get(path), path)
    }

    /// The number that a value is.
    fn number_of(&self, value: Option<&Value>, path: &[&str]) -> Result<Option<f64>, InputError> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.wrong(path, format!("{value} is no number"), "a number"))
    }

    fn required(&self, path: &[&str]) -> Result<f64, InputError> {
        self.number(path)?.ok_or_else(|| self.wrong(path, "there is none".to_owned(), "a number"))
    }

    fn count(&self, path: &[&str]) -> Result<u64, InputError> {
        let number = self.required(path)?;
        let wrong = || self.wrong(path, format!("{number} is no number of requests"), "a whole number of at least 0");
        (number >= 0.0 && number.fract() == 0.0).then_some(number as u64).ok_or_else(wrong)
    }

    /// Counts by name.
    fn counts(&self, key: &str) -> Result<Vec<(&str, u64)>, InputError> {
        let all = self.get(&[key]).and_then(Value::as_object).into_iter().flatten();
        all.map(|(name, _)| Ok((name.as_str(), self.count(&[key, name])?))).collect()
    }

    /// An error at the last key of a path, or at the innermost that is there.
    fn wrong(&self, path: &[&str], found: String, wanted: &str) -> InputError {
        let (mut at, mut behind) = (self.start, self.start);
        for key in path.iter().map(|key| format!("\"{key}\"")) {
            let Some(found) = self.text[behind..].find(&key) else { break };
            at = behind + found;
            behind = at + key.len();
        }
        let column = self.text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
        let found: String = found.chars().take(80).collect();
        let wrong =
            error(self.source, line_at(self.text.as_bytes(), at), &path.join("."), format!("column {column}: {found}"));
        InputError { wanted: wanted.to_owned(), ..wrong }
    }
}

/// An error of the JSON itself.
pub fn syntax_error(source: &str, wrong: &serde_json::Error) -> InputError {
    let found = if wrong.is_eof() { "the file is cut off".to_owned() } else { plain(wrong) };
    error(source, wrong.line().max(1), "", format!("column {}: {found}", wrong.column()))
}

/// The parser's message without the place, which stands before it.
fn plain(wrong: &serde_json::Error) -> String {
    let text = wrong.to_string();
    text.split_once(" at line ").map_or(text.as_str(), |(found, _)| found).to_owned()
}

/// `weir load --json`.
pub fn weir(document: &Document<'_>) -> Result<ToolResult, InputError> {
    let mut documents = serde_json::Deserializer::from_str(&document.text[document.start..]).into_iter::<LoadResult>();
    let result = match documents.next() {
        Some(Ok(result)) => result,
        Some(Err(wrong)) => {
            // The parser's other messages name its own types.
            let found = Some(plain(&wrong)).filter(|found| found.starts_with("missing field"));
            let found = found.unwrap_or_else(|| "a value that this version of weir does not know".to_owned());
            let line = line_at(document.text.as_bytes(), document.start) + wrong.line().max(1) - 1;
            return Err(error(document.source, line, "", format!("column {}: {found}", wrong.column())));
        }
        None => return Err(document.wrong(&[], "there is no result".to_owned(), "one")),
    };
    let window = &result.window;
    let mut found = ToolResult::of(Tool::Weir, window.sent);
    found.window_s = Some(result.window_s);
    found.connections = Some(u64::from(result.most_open));
    found.offered = result.offered_rate;
    let mut wanted = vec![Metric::Rate, Metric::ErrorShare];
    if result.latency.count > 0 {
        wanted.extend([Metric::Mean, Metric::P50, Metric::P75, Metric::P90, Metric::P95, Metric::P99, Metric::P999]);
        wanted.extend([Metric::P9999, Metric::Max]);
    }
    for metric in wanted {
        let value = match metric.entry().source {
            Source::Times(of) => Some(of(&result.latency)),
            _ => metric.value(&Window::of_load(&result)),
        };
        found.set(metric, value);
    }
    if result.cut_short {
        found.lacks.push("It was cut short.".into());
    }
    Ok(found)
}

/// k6 has three forms. `--summary-export` has the numbers of a metric below its name. The object that `handleSummary` gets has them
/// below `values`. `--new-machine-readable-summary` has a list of metrics, and the duration apart.
pub fn k6(document: &Document<'_>) -> Result<ToolResult, InputError> {
    let metrics = document.get(&["results", "metrics"]).or_else(|| document.get(&["metrics"]));
    let number = |metric: &str, name: &str| {
        let has_name = |value: &&Value| value.get("name").and_then(Value::as_str) == Some(metric);
        let listed = metrics.and_then(Value::as_array).and_then(|list| list.iter().find(has_name));
        let found = listed.or_else(|| metrics?.get(metric));
        let value = found.and_then(|value| value.get("values").unwrap_or(value).get(name));
        document.number_of(value, &["metrics", metric, name])
    };
    let Some(count) = number("http_reqs", "count")? else {
        let wanted = "a script that sends HTTP requests";
        return Err(document.wrong(&["metrics", "http_reqs"], "there is no http_reqs".to_owned(), wanted));
    };
    let mut found = ToolResult::of(Tool::K6, count.max(0.0) as u64);
    let run_ms = document.number(&["state", "testRunDurationMs"])?;
    let duration = document.number(&["config", "duration"])?.or(run_ms.map(|ms| ms / 1e3)).filter(|s| *s > 0.0);
    let rate = number("http_reqs", "rate")?.or(duration.map(|seconds| count / seconds));
    found.window_s = rate.filter(|rate| *rate > 0.0).map(|rate| count / rate).or(duration);
    let failed = number("http_req_failed", "value")?;
    let failed = if failed.is_some() { failed } else { number("http_req_failed", "rate")? };
    found.set(Metric::ErrorShare, failed);
    found.set(Metric::Rate, rate.map(|rate| rate * (1.0 - failed.unwrap_or(0.0))));
    if failed.is_none() {
        found.lacks.push("It has no http_req_failed: its rate is that of all requests, wrong ones too.".into());
    }
    let us = |name: &str| Ok::<_, InputError>(number("http_req_duration", name)?.map(|ms| ms * 1e3));
    found.set(Metric::Mean, us("avg")?);
    found.set(Metric::P50, us("med")?);
    found.set(Metric::Max, us("max")?);
    for (percent, metric) in PERCENTILES.into_iter().filter(|(percent, _)| *percent != "50") {
        found.set(metric, us(&format!("p({percent})"))?);
    }
    if let Some(dropped) = number("dropped_iterations", "count")?.filter(|dropped| *dropped > 0.0) {
        let said = format!("It dropped {dropped} iterations that were due, of which no latency tells.");
        found.lacks.push(said);
    }
    Ok(found)
}

/// oha's name of what was in flight when the time was over: no error of the target.
const OHA_DEADLINE: &str = "aborted due to deadline";

/// oha: seconds.
pub fn oha(document: &Document<'_>) -> Result<ToolResult, InputError> {
    let is_right = |status: &str| status.parse().is_ok_and(|status: u16| (200..400).contains(&status));
    let (mut right, mut ended) = (0u64, 0u64);
    for (status, count) in document.counts("statusCodeDistribution")? {
        ended = ended.saturating_add(count);
        right = right.saturating_add(if is_right(status) { count } else { 0 });
    }
    for (_, count) in document.counts("errorDistribution")?.iter().filter(|(name, _)| *name != OHA_DEADLINE) {
        ended = ended.saturating_add(*count);
    }
    let seconds = document.required(&["summary", "total"])?;
    let mut found = ToolResult::of(Tool::Oha, ended);
    found.window_s = Some(seconds);
    found.set_right(right, ended, seconds);
    let us = |path: &[&str]| Ok::<_, InputError>(document.number(path)?.map(|seconds| seconds * 1e6));
    found.set(Metric::Mean, us(&["summary", "average"])?);
    found.set(Metric::Max, us(&["summary", "slowest"])?);
    for (percent, metric) in PERCENTILES {
        found.set(metric, us(&["latencyPercentiles", &format!("p{percent}")])?);
    }
    Ok(found)
}
