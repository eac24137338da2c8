//! What spoils the numbers of a run, on one line: trials by verdict with the checks behind it, what is missing, and the
//! machine. Called by `short`. What does not fit is counted; `--full` and the report have all of it.

use weir_model::record::Severity;
use weir_model::text::{count, counted, grouped, unique};

use super::short::cut;
use crate::summary::{FindingGroup, Summary};
use crate::tables::one_line;

/// Names that one doubt lists at most; the others are counted.
const MOST_NAMES: usize = 2;

/// One doubt in ever fewer words: with two names, with one, with none.
struct Doubt(Vec<String>);

impl Doubt {
    fn plain(words: String) -> Doubt {
        Doubt(vec![words])
    }

    /// `with` puts names into words.
    fn of(names: &[String], with: impl Fn(&str) -> String, without: String) -> Doubt {
        let most = names.len().min(MOST_NAMES);
        Doubt((1..=most).rev().map(|most| with(&some(names, most))).chain([without]).collect())
    }

    fn brief(&self) -> &str {
        self.0.last().map(String::as_str).unwrap_or_default()
    }
}

/// `Doubts: 3 of 72 trials invalid (conservation-requests); 1 suspect`: at most `width` characters, worst first. Where all
/// of it does not fit, names go, and then the lesser doubts.
pub(super) fn doubts(summary: &Summary, width: usize) -> String {
    let all = all(summary);
    if all.is_empty() {
        return "Doubts: none.".to_string();
    }
    let fits = |text: &String| text.chars().count() <= width;
    let mut words: Vec<&str> = all.iter().map(Doubt::brief).collect();
    let whole = line(&words, 0);
    if !fits(&whole) {
        let fewer = (1..all.len()).rev().map(|kept| line(&words[..kept], all.len() - kept));
        return fewer.into_iter().find(fits).unwrap_or_else(|| cut(&whole, width));
    }
    for (i, Doubt(forms)) in all.iter().enumerate() {
        for form in forms {
            words[i] = form;
            if fits(&line(&words, 0)) {
                break;
            }
        }
    }
    line(&words, 0)
}

/// The doubts, and how many more there are.
fn line(words: &[&str], more: usize) -> String {
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    one_line(&format!("Doubts: {}{more}.", words.join("; ")))
}

fn all(summary: &Summary) -> Vec<Doubt> {
    let mut all = Vec::new();
    if !summary.broken.is_empty() {
        all.push(Doubt::plain(format!("{} damaged or changed", counted(summary.broken.len() as u64, "file"))));
    }
    let trials = counted(summary.trials as u64, "trial");
    if let Some(planned) = summary.trials_planned.filter(|planned| summary.trials < *planned) {
        let what = if summary.broken.is_empty() { "have ended" } else { "are shown" };
        all.push(Doubt::plain(format!("only {} of {} {what}", summary.trials, counted(planned as u64, "trial"))));
    }
    let at = summary.errors.iter().map(|failed| format!("{} at {}", failed.label, failed.stage));
    let verdicts = [
        ("failed", summary.errors.len(), unique(at)),
        ("invalid", summary.invalid(), checks(&summary.findings, Severity::Fatal)),
        ("suspect", summary.suspect(), checks(&summary.findings, Severity::Warning)),
    ];
    for (i, (word, n, names)) in verdicts.into_iter().filter(|(_, n, _)| *n > 0).enumerate() {
        let of = if i == 0 { format!(" of {trials}") } else { String::new() };
        let brief = format!("{}{of} {word}", count(n as u64));
        all.push(Doubt::of(&names, |names| format!("{brief} ({names})"), brief.clone()));
    }
    for (n, what) in [
        (summary.skipped.len(), "left out"),
        (summary.overall.as_ref().map_or(0, |overall| overall.without.len()), "workloads in no mean"),
    ] {
        if n > 0 {
            all.push(Doubt::plain(format!("{n} {what}")));
        }
    }
    let old: Vec<String> = summary.outdated.iter().map(|old| format!("{} {}", old.title, old.version)).collect();
    if !old.is_empty() {
        all.push(Doubt::of(&old, |names| format!("old: {names}"), counted(old.len() as u64, "old version")));
    }
    let of_machine = summary.findings.iter().filter(|found| found.trials.is_empty() && found.severity > Severity::Note);
    let machine = unique(of_machine.map(|found| found.check.trim_start_matches("doctor-").to_string()));
    if !machine.is_empty() {
        all.push(Doubt::of(&machine, |names| format!("doctor: {names}"), format!("doctor: {}", machine.len())));
    }
    all
}

/// The first `most` of several names, and how many more.
fn some(names: &[String], most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let more = (more > 0).then(|| format!("{more} more"));
    names.iter().take(most).cloned().chain(more).collect::<Vec<_>>().join(", ")
}

/// Checks that found something of this severity in trials, with the number of trials, most first.
fn checks(found: &[FindingGroup], severity: Severity) -> Vec<String> {
    let found = found.iter().filter(|found| found.severity == severity && !found.trials.is_empty());
    let by_check = grouped(found.map(|found| (found.check.as_str(), found.trials.len())));
    let mut counts: Vec<(&str, usize)> = by_check.into_iter().map(|(check, n)| (check, n.iter().sum())).collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    match counts.as_slice() {
        [(only, _)] => vec![(*only).to_string()],
        many => many.iter().map(|(check, n)| format!("{check} {n}")).collect(),
    }
}
