//! What products did to the messages of streams: a row for each of them, workload and load, and a sentence.

use std::slice;

use serde::Serialize;
use weir_model::load::{Cancellation, MessageCounts, MessageResult, Quantiles, StreamVerdict};
use weir_model::suite::{Entry, Load, Workload};
use weir_model::text::list;
use weir_stats::median;

use crate::run::{BASELINE, Run};

/// One product under one workload and load. Times are medians of its trials' medians or percentiles, counts are sums.
#[derive(Debug, Clone, Serialize)]
pub struct StreamRow {
    /// Name.
    pub workload: String,
    /// Name.
    pub load: String,
    /// Title, with the profile where the run has more than one.
    pub label: String,
    /// It is no proxy.
    pub baseline: bool,
    /// Whether it passes, coalesces or buffers; empty: too little came.
    pub verdict: String,
    /// Messages that came together, in the mean.
    pub a_read: f64,
    /// From the time in a message to its arrival, µs; `None`: not known.
    pub delay_p50_us: Option<f64>,
    /// See `delay_p50_us`.
    pub delay_p99_us: Option<f64>,
    /// From a request being due to the head, µs.
    pub head_us: Option<f64>,
    /// From a request being due to the first message, µs.
    pub first_message_us: Option<f64>,
    /// From a message to the next, the 99th percentile, µs.
    pub gap_p99_us: Option<f64>,
    /// The mean gap of a stream, the median of all, µs.
    pub per_message_us: Option<f64>,
    /// What the origin saw of the streams that clients cancelled, all trials together: times are of the worst.
    pub cancellation: Option<Cancellation>,
    /// Counts over the whole lives of the clients.
    pub total: MessageCounts,
    #[serde(skip)]
    held: Option<StreamVerdict>,
}

/// The rows of a run, in its suite's order; empty where no response is a stream.
pub(super) fn rows(run: &Run) -> Vec<StreamRow> {
    let suite = &run.suite;
    let cases = suite.workloads.iter().filter(|workload| workload.stream.is_some());
    let cases = cases.flat_map(|workload| suite.loads.iter().map(move |load| (workload, load)));
    cases
        .flat_map(|(workload, load)| suite.entries.iter().filter_map(move |entry| row(run, workload, load, entry)))
        .collect()
}

fn row(run: &Run, workload: &Workload, load: &Load, entry: &Entry) -> Option<StreamRow> {
    let trials = run.displayed_of(slice::from_ref(workload), load, entry);
    let results: Vec<&MessageResult> =
        trials.iter().filter_map(|trial| trial.measurement.load.as_ref()?.messages.as_ref()).collect();
    let mut sum = MessageResult::default();
    for result in &results {
        sum.window.add(&result.window);
        sum.total.add(&result.total);
        if let Some(one) = result.cancellation {
            sum.cancellation.get_or_insert_default().add(&one);
        }
    }
    let of = |times: fn(&MessageResult) -> &Quantiles, value: fn(&Quantiles) -> f64| {
        let known = results.iter().map(|result| times(result)).filter(|times| times.count > 0);
        median(&known.map(value).collect::<Vec<_>>())
    };
    let held = sum.verdict();
    (!results.is_empty()).then(|| StreamRow {
        workload: workload.name.clone(),
        load: load.name.clone(),
        label: run.label_of(entry),
        baseline: entry.product == BASELINE,
        verdict: held.map(|verdict| verdict.to_string()).unwrap_or_default(),
        a_read: sum.window.a_read(),
        delay_p50_us: of(|result| &result.delay, |times| times.p50_us),
        delay_p99_us: of(|result| &result.delay, |times| times.p99_us),
        head_us: of(|result| &result.head, |times| times.p50_us),
        first_message_us: of(|result| &result.first_message, |times| times.p50_us),
        gap_p99_us: of(|result| &result.gap, |times| times.p99_us),
        per_message_us: of(|result| &result.per_message, |times| times.p50_us),
        cancellation: sum.cancellation,
        total: sum.total,
        held,
    })
}

impl StreamRow {
    /// Messages that came otherwise than they were sent, and streams that were cut short.
    pub fn wrong(&self) -> u64 {
        self.total.wrong().map(|(_, n)| n).sum::<u64>()
            + self.total.unstamped
            + self.total.cut_short
            + self.total.failed
    }
}

/// Which products hold messages and which do not; `None` where no response is a stream, or no product has a verdict.
pub(super) fn answer(rows: &[StreamRow]) -> Option<String> {
    let products: Vec<&StreamRow> = rows.iter().filter(|row| !row.baseline && row.held.is_some()).collect();
    let passes = |row: &&&StreamRow| row.held == Some(StreamVerdict::Passes);
    let named = |row: &StreamRow| {
        let several = rows.iter().any(|other| (&other.workload, &other.load) != (&row.workload, &row.load));
        if several { format!("{} ({} under {})", row.label, row.workload, row.load) } else { row.label.clone() }
    };
    let held: Vec<String> =
        products.iter().filter(|row| !passes(row)).map(|row| format!("{} {}", named(row), row.verdict)).collect();
    let passed: Vec<String> = products.iter().filter(passes).map(|row| named(row)).collect();
    let pass = |names: &[String]| if names.len() == 1 { "passes" } else { "pass" };
    let mut words = match (held.as_slice(), passed.as_slice()) {
        ([], []) => return None,
        ([], all) => format!("{} {} messages on one by one.", list(all), pass(all)),
        (held, []) => format!("{}.", list(held)),
        (held, passed) => format!("{}; {} {} messages on one by one.", list(held), list(passed), pass(passed)),
    };
    let wrong: Vec<String> = products.iter().filter(|row| row.wrong() > 0).map(|row| named(row)).collect();
    if !wrong.is_empty() {
        words.push_str(&format!(" Messages did not arrive as they were sent with {}.", list(&wrong)));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, load: &str, held: StreamVerdict) -> StreamRow {
        StreamRow {
            workload: "tokens".to_owned(),
            load: load.to_owned(),
            label: label.to_owned(),
            baseline: label == BASELINE,
            verdict: held.to_string(),
            a_read: 1.0,
            delay_p50_us: None,
            delay_p99_us: None,
            head_us: None,
            first_message_us: None,
            gap_p99_us: None,
            per_message_us: None,
            cancellation: None,
            total: MessageCounts::default(),
            held: Some(held),
        }
    }

    #[test]
    fn a_sentence_names_who_holds_messages_and_who_does_not() {
        use StreamVerdict::{Buffers, Coalesces, Passes};
        let direct = row(BASELINE, "held", Passes);
        let [a, b, c] = [("A", Passes), ("B", Coalesces(9.1)), ("C", Buffers(4_096.0))]
            .map(|(label, held)| row(label, "held", held));
        let says = |rows: &[&StreamRow]| answer(&rows.iter().map(|row| (*row).clone()).collect::<Vec<_>>());
        let held = "B coalesces (9.1 messages a read) and C buffers (until 4 KiB)";
        assert_eq!(says(&[&direct, &a, &b, &c]), Some(format!("{held}; A passes messages on one by one.")));
        assert_eq!(says(&[&b, &c]), Some(format!("{held}.")));
        let other = row("A", "many", Passes);
        let both = "A (tokens under held) and A (tokens under many) pass messages on one by one.";
        assert_eq!(says(&[&a, &other]).as_deref(), Some(both));
        assert_eq!((says(&[]), says(&[&direct])), (None, None));
        let mut wrong = a;
        wrong.total.lost = 2;
        let words = "A passes messages on one by one. Messages did not arrive as they were sent with A.";
        assert_eq!(says(&[&wrong]).as_deref(), Some(words));
    }
}
