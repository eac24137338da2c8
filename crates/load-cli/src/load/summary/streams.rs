//! What a summary says of streams: what became of them and of their messages, and their times. Called by `verbs::load::summary`.

use weir_model::load::{MessageResult, Quantiles, StreamKind};
use weir_model::text::{count, full_rate};

/// The lines of a load of streams: label, figure and the rest.
pub fn counts(messages: &MessageResult, window_s: f64) -> Vec<(&'static str, String, String)> {
    let (window, total) = (&messages.window, &messages.total);
    let verdict = messages.verdict().map_or("no message with a stamp".to_owned(), |verdict| verdict.to_string());
    let rate = full_rate(window.received as f64 / window_s.max(1e-6));
    let cancelled = match total.cancelled {
        0 => String::new(),
        n => format!(", {} cancelled", count(n)),
    };
    let mut lines = vec![
        ("messages", count(window.received), format!("{rate}; {verdict}")),
        (
            "streams",
            count(total.begun),
            format!(
                "begun: {} whole, {} cut short, {} failed, {} aborted{cancelled}",
                count(total.whole),
                count(total.cut_short),
                count(total.failed),
                count(total.aborted)
            ),
        ),
    ];
    let wrong: Vec<String> = total.wrong().map(|(what, n)| format!("{what} ({})", count(n))).collect();
    if !wrong.is_empty() {
        lines.push(("WRONG MSGS", count(total.wrong().map(|(_, n)| n).sum()), wrong.join(", ")));
    }
    lines
}

/// The rows of times. For a language model they have the names that its benchmarks use.
pub fn times(messages: &MessageResult, kind: Option<StreamKind>) -> [(&'static str, &Quantiles); 5] {
    let [gap, first, each] = match kind {
        Some(StreamKind::OpenAi) => ["ITL", "TTFT", "TPOT"],
        _ => ["gap", "to message", "mean gap"],
    };
    [
        ("delay", &messages.delay),
        (gap, &messages.gap),
        ("to head", &messages.head),
        (first, &messages.first_message),
        (each, &messages.per_message),
    ]
}
