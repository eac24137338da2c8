//! Reads the CSV that `hey -o csv` prints: a row for each response. Called by `formats`.

use weir_model::InputError;
use weir_model::metric::Metric;

use super::formats::Document;
use super::{Found, PERCENTILES, Tool, error, number};

/// hey keeps so many answers, and drops the others silently.
const MOST_ROWS: usize = 1_000_000;

/// Reads all rows behind the names of the columns.
pub fn hey(document: &Document<'_>) -> Result<Found, InputError> {
    let (source, mut lines) = (document.source, document.lines());
    let (first, names) = lines.next().unwrap_or((1, ""));
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let column = |name: &str| names.iter().position(|found| *found == name);
    let (Some(status), Some(offset)) = (column("status-code"), column("offset")) else {
        return Err(error(source, first, "", "there are no columns status-code and offset, as hey has since 0.1.2"));
    };
    let (mut times, mut right, mut end) = (Vec::new(), 0u64, 0.0f64);
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let cell = |column: usize, name: &str| {
            let text = cells.get(column).copied().unwrap_or_default();
            number(text).ok_or_else(|| error(source, at, name, format!("{text:?} is no number")))
        };
        let (time, code, began) = (cell(0, "response-time")?, cell(status, "status-code")?, cell(offset, "offset")?);
        right += u64::from((200.0..400.0).contains(&code));
        end = end.max(began + time);
        times.push(time * 1e6);
    }
    times.sort_by(f64::total_cmp);
    let mut found = Found::of(Tool::Hey, times.len() as u64);
    found.window_s = Some(end);
    found.set_right(right, found.requests, end);
    for (percent, metric) in PERCENTILES {
        let share = percent.parse::<f64>().unwrap_or_default() / 100.0;
        let rank = (share * times.len() as f64).ceil().max(1.0) as usize;
        found.set(metric, times.get(rank - 1).copied());
    }
    found.set(Metric::Max, times.last().copied());
    found.set(Metric::Mean, (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64));
    found
        .lacks
        .push("Its times are whole tenths of a millisecond, and requests without an answer are not in it.".into());
    if times.len() >= MOST_ROWS {
        found
            .lacks
            .push("hey keeps the first million answers and drops the others, so its rate may be too low.".into());
    }
    Ok(found)
}
