//! Reads the texts that wrk, wrk2 and hey print. Called by `formats`. Other lines, such as those of a script around the tool, are
//! passed over; a line that begins as one of the tool's and does not go on so is an error.

use weir_model::InputError;
use weir_model::metric::Metric;

use super::formats::Document;
use super::{Found, Tool, error, number, percentile};

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
pub fn wrk(document: &Document<'_>) -> Result<Found, InputError> {
    let mut found = Found::of(Tool::Wrk, 0);
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
            .push("It counts errors of sockets, which may be more or fewer than requests without answer.".into());
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
pub fn hey(document: &Document<'_>) -> Result<Found, InputError> {
    let mut found = Found::of(Tool::Hey, 0);
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
