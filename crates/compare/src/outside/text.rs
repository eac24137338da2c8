//! Reads the texts that wrk, wrk2 and hey print. Called by `outside`. Other lines, such as those of a script around the tool, are
//! passed over; a line that begins as one of the tool's and does not go on so is an error.

use weir_model::InputError;
use weir_model::metric::Metric;

use super::{Found, Tool, WANTED, error, number, percentile};

/// Reads either.
pub fn read(source: &str, text: &str) -> Result<Found, InputError> {
    let has = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
    match () {
        () if has("Success rate:") => {
            Err(InputError::of(source, "this is oha's text, which rounds its times", "oha --output-format json"))
        }
        () if has("Running ") && has("Requests/sec:") => wrk(source, text),
        () if has("Summary:") && has("Requests/sec:") => hey(source, text),
        () => Err(InputError::of(source, "this is no result of a tool that weir knows", WANTED)),
    }
}

/// A line of the text, with what errors name.
struct Line<'t> {
    source: &'t str,
    number: usize,
    text: &'t str,
}

impl<'t> Line<'t> {
    fn all(source: &'t str, text: &'t str) -> impl Iterator<Item = Line<'t>> {
        text.lines().enumerate().map(move |(at, text)| Line { source, number: at + 1, text: text.trim() })
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

    /// A time of wrk in microseconds: `1.32ms`.
    fn time_us(&self, text: &str) -> Result<f64, InputError> {
        let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3_600e6)];
        let read = |(unit, us): (&str, f64)| Some(number(text.strip_suffix(unit)?)? * us);
        units.into_iter().find_map(read).ok_or_else(|| self.wrong("a time such as 1.32ms"))
    }

    /// A number of hey in microseconds: `0.0017 secs`.
    fn secs_us(&self, text: &str) -> Result<f64, InputError> {
        Ok(self.secs(text)? * 1e6)
    }

    fn secs(&self, text: &str) -> Result<f64, InputError> {
        let seconds = text.strip_suffix("secs").and_then(|text| number(text.trim()));
        seconds.ok_or_else(|| self.wrong("a time such as 0.0017 secs"))
    }
}

/// wrk and wrk2.
fn wrk(source: &str, text: &str) -> Result<Found, InputError> {
    let mut found = Found::of(Tool::Wrk, 0);
    let (mut bad, mut unanswered, mut seconds, mut per_second) = (0, 0, None, None);
    let mut in_distribution = false;
    for line in Line::all(source, text) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if line.text.starts_with("Running ") && in_distribution {
            return Err(line.wrong("one result in a file"));
        } else if let Some(rest) = line.after("Latency Distribution") {
            in_distribution = true;
            if rest.contains("HdrHistogram") {
                found.tool = Tool::Wrk2;
            }
        } else if line.text.starts_with("Thread calibration:") {
            found.tool = Tool::Wrk2;
        } else if let ["Latency", mean, _, max, ..] = words[..] {
            found.set(Metric::Mean, Some(line.time_us(mean)?));
            found.set(Metric::Max, Some(line.time_us(max)?));
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
            seconds = Some(line.time_us(time.trim_end_matches(','))? / 1e6);
        } else if let (true, [percent, time]) = (in_distribution, &words[..])
            && let Some(percent) = percent.strip_suffix('%')
        {
            let metric = percentile(line.number(percent)?);
            let time = line.time_us(time)?;
            found.numbers.extend(metric.map(|metric| (metric, time)));
        }
    }
    let per_second = per_second.ok_or_else(|| InputError::of(source, "there is no Requests/sec", WANTED))?;
    found.window_s = seconds;
    if bad > found.requests {
        return Err(InputError::of(source, format!("{bad} of {} responses are wrong", found.requests), WANTED));
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
    Ok(found)
}

/// hey.
fn hey(source: &str, text: &str) -> Result<Found, InputError> {
    let mut found = Found::of(Tool::Hey, 0);
    let (mut right, mut seconds) = (0u64, None);
    let (mut statuses, mut errors) = (false, false);
    for line in Line::all(source, text) {
        if let Some(rest) = line.after("Total:") {
            seconds = Some(line.secs(rest)?);
        } else if let Some(rest) = line.after("Slowest:") {
            found.set(Metric::Max, Some(line.secs_us(rest)?));
        } else if let Some(rest) = line.after("Average:") {
            found.set(Metric::Mean, Some(line.secs_us(rest)?));
        } else if let Some((percent, time)) = line.text.split_once("% in ") {
            // Some versions write a second per cent sign.
            let metric = percentile(line.number(percent.trim_end_matches('%'))?);
            let time = line.secs_us(time)?;
            found.numbers.extend(metric.map(|metric| (metric, time)));
        } else if line.text.starts_with("Status code distribution:") {
            (statuses, errors) = (true, false);
        } else if line.text.starts_with("Error distribution:") {
            (statuses, errors) = (false, true);
        } else if let Some((key, rest)) = line.text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            if statuses {
                let n = line.count(rest.trim().strip_suffix("responses").unwrap_or(rest).trim())?;
                right += if (200..400).contains(&line.count(key)?) { n } else { 0 };
                found.requests = found.requests.saturating_add(n);
            } else if errors {
                found.requests = found.requests.saturating_add(line.count(key)?);
            }
        }
    }
    let seconds = seconds.ok_or_else(|| InputError::of(source, "there is no Total", WANTED))?;
    found.window_s = Some(seconds);
    found.set_right(right, found.requests, seconds);
    found.lacks.push("Its times are whole tenths of a millisecond.".into());
    Ok(found)
}
