//! The progress of a conformance test on standard error: a status line on a terminal, and the results of each product in a
//! few lines as soon as its test is over. Used by `weir products test`.

use console::style;
use weir_conformance::{Cell, ProductReport, Progress, Verdict, check};
use weir_install::Installed;
use weir_model::product::Product;
use weir_model::text::hanging;

use crate::progress::{Status, minutes_s, template};

/// Columns that the results of a product take.
const WIDTH: usize = 110;

/// Shows a run on standard error.
#[derive(Debug)]
pub struct TestProgress {
    status: Status,
    now: String,
}

impl TestProgress {
    /// `quiet` shows nothing.
    pub fn new(quiet: bool, cases: usize) -> TestProgress {
        let style = template("{bar:12.cyan} {pos}/{len} {elapsed} {wide_msg}");
        TestProgress { status: Status::new(quiet, style, Some(cases as u64)), now: String::new() }
    }

    /// A product begins.
    pub fn begin(&mut self, product: &Product, profile: &str) {
        self.now = format!("{} {profile}", product.name);
        self.status.show(self.now.clone());
    }

    /// Something happens with it.
    pub fn update(&self, happening: &Progress<'_>) {
        match happening {
            Progress::Starting(protocol) => {
                self.status.show(format!("{} · starts, {}", self.now, protocol.as_str()));
            }
            Progress::Asking(check) => self.status.show(format!("{} · {}", self.now, check.title)),
            Progress::Answered(..) => {}
        }
    }

    /// It is done.
    pub fn end(&mut self, product: &Product, tested: &ProductReport, installed: Option<&Installed>) {
        self.status.step();
        let version = installed.map(|installed| format!(" {}", installed.version)).unwrap_or_default();
        let head = format!("{}{version}, {} ({})", product.title, tested.profile, minutes_s(tested.took_s));
        self.status.line(&style(head).bold().for_stderr().to_string());
        results(tested).iter().flat_map(|text| text.lines()).for_each(|line| self.status.line(line));
    }
}

/// What is as it should be in one list, everything else with its reason, and the figures.
fn results(tested: &ProductReport) -> Vec<String> {
    if let Some(error) = &tested.error {
        let evidence = error.evidence.lines().map(|line| format!("    {line}"));
        return std::iter::once(format!("  {}: {}", error.stage, error.message)).chain(evidence).collect();
    }
    let of = |wanted: Verdict, text: fn(&str, &Cell) -> String| -> Vec<String> {
        let cells = tested.cells.iter().filter(|(_, cell)| cell.verdict == wanted);
        cells.map(|(name, cell)| text(check(name).map_or(name.as_str(), |check| &check.title), cell)).collect()
    };
    let explained = |title: &str, cell: &Cell| {
        let note = cell.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        format!("{title}: {}{note}", cell.says)
    };
    let mut lines = vec![("yes", of(Verdict::Yes, |title, _| title.to_owned()).join(", "))];
    for (label, verdict) in [("odd", Verdict::Odd), ("no", Verdict::No), ("unknown", Verdict::Unknown)] {
        lines.extend(of(verdict, explained).into_iter().map(|text| (label, text)));
    }
    lines.push(("figures", of(Verdict::Reading, |title, cell| format!("{title} {}", cell.says)).join(" · ")));
    lines.retain(|(_, text)| !text.is_empty());
    lines.iter().map(|(label, text)| hanging(&format!("  {label:<8} "), text, WIDTH)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::example;
    use super::*;

    #[test]
    fn what_is_as_it_should_be_is_named_once_and_the_rest_explained() {
        let record = example();
        assert_eq!(
            results(&record.tested[0].tested),
            [
                "  yes      GET",
                "  no       Pipelined requests: 1 of 3 (after 1 of 3 responses it closes)",
                "  figures  Memory, idle 8.0 MiB",
            ]
        );
        let failed = results(&record.tested[3].tested);
        assert_eq!(failed[0], "  ready: THREE did not get ready within 1 s; last try: refuses | pipes");
    }
}
