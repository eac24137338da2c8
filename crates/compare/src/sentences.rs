//! Builds the sentences of a comparison: its answer, its remarks, and the changes that alarms and the answer name.

use weir_model::metric::Metric;
use weir_model::record::CaseId;

use crate::{CaseChange, Change, Comparison, Verdict};
use weir_model::text::{counted, grouped, percent};
use weir_report::run::{BASELINE, Run};

/// The number of sure changes that the answer names; the others are counted.
const NAMED: usize = 3;

/// `alder tuned`, `Direct`.
pub(super) fn label(run: &Run, case: &CaseId) -> String {
    let title = run.title_of(&case.product);
    if case.product == BASELINE { title.to_owned() } else { format!("{title} {}", case.profile) }
}

/// `alder tuned, tiny, capacity: 4.8 % slower [3.1 %, 6.6 %]: sure`.
pub(super) fn sentence(case: &CaseChange, change: &Change) -> String {
    let CaseId { workload, load, .. } = &case.case;
    let metric = change.metric.compared_name();
    let metric = if load == metric { String::new() } else { format!(", {metric}") };
    format!("{}, {workload}, {load}{metric}: {}", case.label, finding(change))
}

fn finding(change: &Change) -> String {
    match change.verdict {
        Verdict::Sure => format!("{}: sure", by_how_much(change, &change.sure_ratio)),
        Verdict::Likely => format!("{}: likely", by_how_much(change, &change.ratio)),
        Verdict::Unclear | Verdict::None => "no change found".to_owned(),
        Verdict::Unclaimable => unclaimable(change),
        Verdict::Machine => by_how_much(change, &change.ratio),
    }
}

/// `4.8 % slower [3.1 %, 6.6 %]`, for an interval that excludes "no change".
fn by_how_much(change: &Change, interval: &weir_stats::Estimate) -> String {
    let more = change.ratio.value > 1.0;
    let size = |ratio: f64| percent((ratio - 1.0) * if more { 1.0 } else { -1.0 });
    let (near, far) = if more { (interval.low, interval.high) } else { (interval.high, interval.low) };
    let than = change.metric.entry().compared.map_or("", |compared| compared.comparatives[usize::from(more)]);
    format!("{} {than} [{}, {}]", size(change.ratio.value), size(near), size(far))
}

/// The reason why no claim is possible for a number.
pub(super) fn unclaimable(change: &Change) -> String {
    let blocks = |n: usize| counted(n as u64, "block");
    let (before, after) = (blocks(change.before.blocks), blocks(change.after.blocks));
    format!(
        "nothing can be claimed from {before} before and {after} after: at least 2 of each are needed, 5 are better"
    )
}

/// The overall result, one sentence.
pub(super) fn answer(comparison: &Comparison) -> String {
    let of = |verdict: Verdict| -> Vec<(&CaseChange, &Change)> {
        let mut all: Vec<(&CaseChange, &Change)> =
            claims(comparison).filter(|(_, change)| change.verdict == verdict).collect();
        all.sort_by(|(_, a), (_, b)| b.worse().cmp(&a.worse()).then(b.size().total_cmp(&a.size())));
        all
    };
    let (sure, likely) = (of(Verdict::Sure), of(Verdict::Likely).len());
    let also = match likely {
        0 => String::new(),
        1 => "; 1 more is likely".to_owned(),
        n => format!("; {n} more are likely"),
    };
    match sure.as_slice() {
        [] if comparison.all.claims == 0 => "Nothing can be claimed: no case has two blocks in each run.".to_owned(),
        [] if likely > 0 => {
            let n = comparison.all.claims;
            let by_chance = expected_by_chance(comparison);
            format!(
                "No change is sure. Of {n} numbers {likely} may have changed; {by_chance} of {n} would look so by chance."
            )
        }
        [] => format!("No change found in {}.", counted(comparison.all.claims as u64, "number")),
        sure => {
            let named: Vec<String> = sure.iter().take(NAMED).map(|(case, change)| sentence(case, change)).collect();
            let more = if sure.len() > NAMED { format!("; and {} more", sure.len() - NAMED) } else { String::new() };
            let alarm = comparison.conditions.iter().any(|outcome| !outcome.alarms.is_empty());
            format!("{}{}{more}{also}.", if alarm { "Alarm. " } else { "" }, named.join("; "))
        }
    }
}

/// The number of claims that would be likely by chance, as text.
fn expected_by_chance(comparison: &Comparison) -> String {
    let expected = comparison.all.claims as f64 * (1.0 - comparison.level);
    if expected < 0.75 { "up to 1".to_owned() } else { format!("about {expected:.0}") }
}

fn claims(comparison: &Comparison) -> impl Iterator<Item = (&CaseChange, &Change)> {
    let of_products = comparison.cases.iter().filter(|case| !case.machine);
    of_products.flat_map(|case| case.changes.iter().map(move |change| (case, change)))
}

/// What a reader must know besides the answer.
pub(super) fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks = Vec::new();
    if comparison.before.folder == comparison.after.folder {
        remarks.push("Both are the same run.".to_owned());
    }
    let all: Vec<&Change> = claims(comparison).map(|(_, change)| change).collect();
    let divided = all.iter().filter(|change| change.divided).count();
    if divided > 0 {
        remarks.push(
            "Each block's numbers were divided by those of the direct path in the same block, because machines drift between \
             runs (CPU by the origin's CPU per response, memory by nothing); --absolute compares them as measured."
                .to_owned(),
        );
    }
    let raw = all.iter().filter(|change| !change.divided && change.metric != Metric::Rss).count();
    if raw > 0 && !comparison.absolute {
        let some = if divided > 0 { "Some numbers" } else { "Numbers" };
        remarks.push(format!(
            "{some} were compared as measured, because the direct path is not in two blocks of each run: what affected one \
             whole run and not the other looks like a change of the product."
        ));
    } else if comparison.absolute {
        remarks.push(
            "Numbers are compared as measured (--absolute): what affected one whole run and not the other looks like a change \
             of the product."
                .to_owned(),
        );
    }
    remarks.extend(busy_trials(comparison));
    remarks.extend(of_cases(comparison));
    remarks
}

/// The reason why a case without a usable trial is not compared.
pub(super) fn always_busy(when: &str) -> String {
    format!("in every trial of the run {when} {}; --busy compares them", something_else())
}

/// The same of a run in a history.
pub(super) fn always_busy_there() -> String {
    format!("in every trial {}; --busy uses them", something_else())
}

fn something_else() -> String {
    format!("something else used more than {} of the machine's CPU", percent(crate::compared_run::MOST))
}

/// A remark that trials are skipped because other processes used the machine.
fn busy_trials(comparison: &Comparison) -> Option<String> {
    let sum = |of: fn(&CaseChange) -> usize| comparison.cases.iter().map(of).sum::<usize>();
    let (before, after) = (sum(|case| case.busy_trials.0), sum(|case| case.busy_trials.1));
    let most = percent(crate::compared_run::MOST);
    (before + after > 0).then(|| {
        format!(
            "Skipped, except for memory: {} of the run before and {} of the run after, because something else used more than {most} \
             of the machine's CPU meanwhile; --busy uses them.",
            counted(before as u64, "trial"),
            counted(after as u64, "trial")
        )
    })
}

/// The remarks on cases, without names where one applies to all cases of a workload and load.
fn of_cases(comparison: &Comparison) -> Vec<String> {
    let noted = comparison.cases.iter().flat_map(|case| {
        let CaseId { workload, load, .. } = &case.case;
        case.remarks.iter().map(move |remark| (format!("{workload}, {load}: {remark}."), case))
    });
    let of_section = |case: &CaseId| {
        let same = |other: &&CaseChange| other.case.workload == case.workload && other.case.load == case.load;
        comparison.cases.iter().filter(same).count()
    };
    let sentence = |(text, cases): (String, Vec<&CaseChange>)| {
        let labels: Vec<&str> = cases.iter().map(|case| case.label.as_str()).collect();
        if of_section(&cases[0].case) == cases.len() { text } else { format!("{}: {text}", labels.join(", ")) }
    };
    grouped(noted).into_iter().map(sentence).collect()
}

/// What is said of cases, each time with all of a workload and load of which it is true: `medium, latency (alder tuned, birch tuned):
/// other rates were offered`.
pub(super) fn by_reason<'a>(said: impl Iterator<Item = (&'a CaseId, &'a str)>) -> Vec<String> {
    let keyed =
        said.map(|(case, why)| ((&case.workload, &case.load, why), format!("{} {}", case.product, case.profile)));
    let sentence = |((workload, load, why), entries): ((&String, &String, &str), Vec<String>)| {
        format!("{workload}, {load} ({}): {why}", entries.join(", "))
    };
    grouped(keyed).into_iter().map(sentence).collect()
}

/// `alder tuned: tiny capacity, tiny latency; direct tuned: tiny capacity`.
pub(super) fn cases(cases: &[CaseId]) -> String {
    let entries = cases
        .iter()
        .map(|case| (format!("{} {}", case.product, case.profile), format!("{} {}", case.workload, case.load)));
    let entries = grouped(entries).into_iter().map(|(entry, all)| format!("{entry}: {}", all.join(", ")));
    let text = entries.collect::<Vec<_>>().join("; ");
    if text.is_empty() { "nothing".to_owned() } else { text }
}
