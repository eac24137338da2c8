//! Lays two results of load generators side by side, as text, markdown or JSON.

use serde::Serialize;
use weir_model::metric::Metric;
use weir_model::text::{counted, percent, short, wrapped};
use weir_report::tables::text::draw as draw_text;
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf, markdown as markdown_table, one_line};

use super::ToolResult;
use crate::FailIf;

/// The version of the [`Beside`] format.
const BESIDE_SCHEMA: u32 = 1;

/// Rates, lengths and numbers of connections that differ by more than this share are other questions.
const ALIKE: f64 = 0.05;

/// Two results. `weir compare --json` prints it where it is given files.
#[derive(Debug, Clone, Serialize)]
pub struct Beside {
    /// Version of this format.
    pub schema: u32,
    /// The earlier result.
    pub before: ToolResult,
    /// The later one.
    pub after: ToolResult,
    /// Always false: one result on each side has no spread, and nothing about a difference is sure.
    pub claimable: bool,
    /// What a reader must know first, one sentence each.
    pub remarks: Vec<String>,
    /// The numbers that both have.
    pub numbers: Vec<Number>,
    /// Conditions of `--fail-if`, none of which can be judged.
    pub not_judged: Vec<FailIf>,
}

/// One number in both results: requests a second, microseconds, or a share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// Which.
    pub metric: Metric,
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// After over before; `None` where before is 0.
    pub ratio: Option<f64>,
}

/// Lays them side by side.
pub fn beside(before: ToolResult, after: ToolResult, fail_if: &[FailIf]) -> Beside {
    let numbers = before.numbers.iter().filter_map(|(metric, old)| {
        let new = *after.numbers.get(metric)?;
        let ratio = (*old > 0.0).then(|| new / old);
        Some(Number { metric: *metric, before: *old, after: new, ratio })
    });
    let numbers = numbers.collect();
    let remarks = remarks(&before, &after);
    Beside { schema: BESIDE_SCHEMA, before, after, claimable: false, remarks, numbers, not_judged: fail_if.to_vec() }
}

fn remarks(before: &ToolResult, after: &ToolResult) -> Vec<String> {
    let mut remarks = vec![
        "Nothing here is sure, large or small: each side is one result, which has no spread. Runs of weir with blocks \
         can be compared with intervals; weir duet needs the least time."
            .to_owned(),
        "Neither has the server's counters or an audit: whether the client was the limit, and whether the server saw \
         these requests, is not known."
            .to_owned(),
    ];
    let differs = |a: f64, b: f64| (a - b).abs() > ALIKE * a.max(b);
    let pairs = [
        ("lasted", before.window_s, after.window_s, "s"),
        ("had", before.connections.map(|n| n as f64), after.connections.map(|n| n as f64), "connections"),
        ("were offered", before.offered, after.offered, "requests/s"),
    ];
    for (verb, a, b, unit) in pairs {
        if let (Some(a), Some(b)) = (a, b)
            && differs(a, b)
        {
            remarks.push(format!("They {verb} {} and {} {unit}, and are not the same question.", plain(a), plain(b)));
        }
    }
    for (when, offered, other) in [("before", before.offered, after.offered), ("after", after.offered, before.offered)]
    {
        if let (Some(rate), None) = (offered, other) {
            remarks.push(format!(
                "{} requests/s were offered {when}, and the other result does not tell how its load arrived: where it was as \
                 fast as responses came, neither rates nor latencies answer the same question.",
                plain(rate)
            ));
        }
    }
    if before.tool != after.tool {
        let (a, b) = (before.tool.as_str(), after.tool.as_str());
        remarks.push(format!("{a} and {b} do not measure alike: a difference may be theirs."));
        remarks.extend(said(before, a));
        remarks.extend(said(after, b));
    } else {
        remarks.extend(said(before, "Before"));
        // The same tool: what it is like was said.
        remarks.extend(said(after, "After").into_iter().filter(|_| before.lacks != after.lacks));
    }
    for (one, other) in [(before, after), (after, before)] {
        let missing = one.numbers.keys().filter(|metric| !other.numbers.contains_key(metric));
        let missing: Vec<&str> = missing.map(|metric| name(*metric)).collect();
        if !missing.is_empty() {
            remarks.push(format!("Only {} has {}.", one.file.display(), missing.join(", ")));
        }
    }
    remarks
}

/// Whole numbers in full, others in three digits.
fn plain(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number}") } else { short(number) }
}

/// What a result lacks, with whose it is where the sentence does not begin with it.
fn said(result: &ToolResult, whose: &str) -> Vec<String> {
    let tool = result.tool.as_str();
    result
        .lacks
        .iter()
        .map(|text| if text.starts_with(tool) { text.clone() } else { format!("{whose}: {text}") })
        .collect()
}

fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "successful responses",
        Metric::ErrorShare => "errors",
        other => other.entry().title,
    }
}

impl Beside {
    /// Text for a terminal of that width.
    pub fn text(&self, width: usize, colour: bool) -> String {
        let lines = |text: &str| wrapped(&one_line(text), width.max(20), 0);
        let mut out = format!("{}\n", lines(&self.heading()));
        for line in self.remarks.iter().cloned().chain(self.unjudged()) {
            out.push_str(&format!("{}\n", lines(&format!("- {line}"))));
        }
        out + "\n" + &draw_text(&self.table(), width, colour)
    }

    /// GitHub markdown for a pull request.
    pub fn markdown(&self) -> String {
        let remarks = self.remarks.iter().cloned().chain(self.unjudged());
        let list: String =
            remarks.map(|line| format!("- {}\n", weir_report::tables::markdown::escape(&line))).collect();
        let heading = weir_report::tables::markdown::escape(&self.heading());
        format!("### {heading}\n\n{list}\n{}", markdown_table::draw(&self.table()))
    }

    fn heading(&self) -> String {
        let one = |result: &ToolResult| {
            let (file, tool) = (result.file.display(), result.tool.as_str());
            format!("{file} ({tool}, {})", counted(result.requests, "request"))
        };
        format!("{} beside {} before it", one(&self.after), one(&self.before))
    }

    fn unjudged(&self) -> Vec<String> {
        let not = |condition: &FailIf| format!("Not judged ({condition}): two single results can show no sure change.");
        self.not_judged.iter().map(not).collect()
    }

    fn table(&self) -> Table {
        let mut table = TableOf::<Number>::new();
        table.add(Column::text("Number"), |number| name(number.metric));
        let shown = |number: &Number, value: f64| Cell::number(number.metric.human(value), value);
        table.add(Column::number("Before", ""), move |number| shown(number, number.before));
        table.add(Column::number("After", ""), move |number| shown(number, number.after));
        table.add(Column::number("Change", ""), |number| {
            let change = number.ratio? - 1.0;
            let sign = if change < 0.0 { "-" } else { "+" };
            Some(Cell::number(format!("{sign}{}", percent(change.abs())), change))
        });
        table.add(Column::text("Verdict"), |_| "one sample");
        table.table("numbers", "Numbers", &self.numbers, |_| RowKind::Plain)
    }
}
