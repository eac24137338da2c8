//! Prints the results of one product in a few lines as soon as its test is over. Called by `test::progress`.

use weir_conformance::{Cell, ProductReport, Verdict, check};

use weir_model::text::wrapped;

/// Columns that a block takes.
const WIDTH: usize = 110;

/// The lines. `head` names product, version and profile.
pub fn block(head: &str, tested: &ProductReport) -> Vec<String> {
    let mut lines = vec![head.to_owned()];
    if let Some(error) = &tested.error {
        lines.push(format!("  {}: {}", error.stage, error.message));
        lines.extend(error.evidence.lines().map(|line| format!("    {line}")));
        return lines;
    }
    let of = |wanted: &[Verdict]| -> Vec<(&str, &Cell)> {
        let cells = tested.cells.iter().filter(|(_, cell)| wanted.contains(&cell.verdict));
        cells.map(|(name, cell)| (check(name).map_or(name.as_str(), |check| check.title), cell)).collect()
    };
    // Titles keep their words together when lines are broken.
    let titles =
        |cells: Vec<(&str, &Cell)>| cells.iter().map(|(title, _)| (*title).to_owned()).collect::<Vec<_>>().join(", ");
    let figures = |cells: Vec<(&str, &Cell)>| {
        cells.iter().map(|(title, cell)| format!("{title} {}", cell.says)).collect::<Vec<_>>().join(" · ")
    };
    put(&mut lines, "yes", &titles(of(&[Verdict::Yes])));
    for (label, verdict) in [("odd", Verdict::Odd), ("no", Verdict::No), ("unknown", Verdict::Unknown)] {
        for (title, cell) in of(&[verdict]) {
            let note = cell.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            put(&mut lines, label, &format!("{title}: {}{note}", cell.says));
        }
    }
    put(&mut lines, "figures", &figures(of(&[Verdict::Reading])));
    lines
}

fn put(lines: &mut Vec<String>, label: &str, text: &str) {
    if !text.is_empty() {
        let prefix = format!("  {label:<8} ");
        let indent = prefix.chars().count();
        for (nth, line) in wrapped(text, WIDTH - indent, 0).lines().enumerate() {
            let before = if nth == 0 { prefix.clone() } else { " ".repeat(indent) };
            lines.push(format!("{before}{line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::example;
    use super::*;

    #[test]
    fn what_is_as_it_should_be_is_named_once_and_the_rest_explained() {
        let record = example();
        let lines = block("one 1.2.3, tuned", &record.tested[0].tested);
        assert_eq!(
            lines,
            [
                "one 1.2.3, tuned",
                "  yes      GET",
                "  no       Pipelined requests: 1 of 3 (after 1 of 3 answers it closes)",
                "  figures  Memory, idle 8.0 MiB",
            ]
        );
        let failed = block("three", &record.tested[3].tested);
        assert_eq!(failed[1], "  ready: THREE did not get ready within 1 s; last try: refuses | pipes");
    }
}
