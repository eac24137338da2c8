//! Makes series of runs: each number of each case on each machine, in order, with what is divided and what is left out. Changes are found
//! in all series together, so that few histories without a change have one.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_model::metric::{Goal, Metric};
use weir_model::record::CaseId;
use weir_model::text::unique;
use weir_model::version;
use weir_report::run::BASELINE;
use weir_stats::{Changes, FEWEST_RUNS, change_points, unpaired_ratio};

use super::read::{Group, Number, OfCase, OneRun};
use super::{Change, Options, Order, Point, Series, Verdict, Without, sentences};
use crate::{ComparedRun, Difference, Family, compared_run, differences};

/// All series of all machines.
pub(super) fn all(groups: &[Group], options: &Options) -> Vec<Series> {
    let mut all = Vec::new();
    for group in groups {
        let runs = || group.runs.iter().flat_map(|run| run.cases.iter().map(move |of| (run, of)));
        // In the order of the newest run that has them, with cases that only older runs have behind.
        let newest_first = group.runs.iter().rev();
        let wanted = |case: &CaseId| options.selection.keeps(case);
        let cases = unique(newest_first.flat_map(|run| {
            run.cases.iter().map(|of| (run.suite.name.clone(), of.case.clone())).filter(|(_, case)| wanted(case))
        }));
        for (suite, case) in &cases {
            let products = cases.iter().any(|(other, case)| other == suite && !is_reference(case, options));
            let own = runs().filter(|(run, of)| run.suite.name == *suite && of.case == *case);
            for asked in by_question(own.collect(), case) {
                all.extend(of_question(&group.label, case, asked, products, options));
            }
        }
    }
    all
}

/// The direct path, and what numbers are divided by.
fn is_reference(case: &CaseId, options: &Options) -> bool {
    case.product == BASELINE || case.product == options.reference
}

/// Runs that asked the same of a case.
struct Asked<'a> {
    /// Why they are apart from earlier runs.
    apart: Option<String>,
    runs: Vec<(&'a OneRun, &'a OfCase)>,
}

/// The runs of a case, those together that asked the same: each joins the first group of which it can be compared with the first run.
fn by_question<'a>(runs: Vec<(&'a OneRun, &'a OfCase)>, case: &CaseId) -> Vec<Asked<'a>> {
    let mut groups: Vec<Asked<'a>> = Vec::new();
    for one in runs {
        let mut why = None;
        let same = groups.iter_mut().find(|group| match differs(group.runs[0], one, case) {
            None => true,
            differs => {
                why = why.take().or(differs);
                false
            }
        });
        match same {
            Some(group) => group.runs.push(one),
            None => groups.push(Asked { apart: why, runs: vec![one] }),
        }
    }
    groups
}

fn differs(first: (&OneRun, &OfCase), other: (&OneRun, &OfCase), case: &CaseId) -> Option<String> {
    let same = compared_run::definitions(&first.0.suite, &other.0.suite, case);
    let rates = || match other.1.goal {
        Goal::FixedRate => compared_run::rates(first.1.offered, other.1.offered).map(|_| ()),
        _ => Ok(()),
    };
    same.and_then(|()| rates()).err()
}

/// A series for each number.
fn of_question(machine: &str, case: &CaseId, asked: Asked<'_>, products: bool, options: &Options) -> Vec<Series> {
    let metrics = asked.runs.iter().flat_map(|(_, of)| of.numbers.keys().copied());
    let mut metrics: Vec<Metric> = metrics.collect();
    metrics.sort();
    metrics.dedup();
    let newest = asked.runs.last().map(|(run, of)| (run.suite.name.clone(), of.label.clone())).unwrap_or_default();
    let mut runs = asked.runs;
    runs.sort_by(|(a, _), (b, _)| in_order(a, b, case, options.by));
    let series = |metric| {
        let (points, without, divided) = points(&runs, case, metric, options);
        Series {
            machine: machine.to_owned(),
            suite: newest.0.clone(),
            case: case.clone(),
            label: newest.1.clone(),
            apart: asked.apart.clone(),
            metric,
            of_machine: is_reference(case, options) && products,
            divided,
            points,
            without,
            noise: None,
            changes: Vec::new(),
        }
    };
    metrics.into_iter().map(series).collect()
}

fn in_order(a: &OneRun, b: &OneRun, case: &CaseId, by: Order) -> Ordering {
    let dates = (&a.facts.started, &a.facts.run).cmp(&(&b.facts.started, &b.facts.run));
    version::order(key(a, case, by), key(b, case, by)).then(dates)
}

/// What runs are ordered by before their date.
fn key<'a>(run: &'a OneRun, case: &CaseId, by: Order) -> &'a str {
    match by {
        Order::Date => "",
        Order::Version => run.version(&case.product),
        Order::Weir => &run.environment.weir_version,
        Order::Kernel => &run.environment.kernel,
    }
}

/// The values of the runs, those that have none, and whether they are divided by the reference's: they are where at least half of
/// the runs have it, and those without it are then left out.
fn points(
    runs: &[(&OneRun, &OfCase)],
    case: &CaseId,
    metric: Metric,
    options: &Options,
) -> (Vec<Point>, Vec<Without>, bool) {
    let known: Vec<&Number> = runs.iter().filter_map(|(_, of)| of.numbers.get(&metric)).collect();
    let beside: Vec<f64> =
        known.iter().filter_map(|number| number.by_reference.map(|(_, reference)| reference)).collect();
    let divided = !options.absolute && known.iter().any(|number| number.divides) && beside.len() * 2 >= known.len();
    let usual = weir_stats::median(&beside).filter(|_| divided && !beside.is_empty());
    let (mut points, mut without) = (Vec::new(), Vec::new());
    for (run, of) in runs {
        let mut lacks = |why: &str| without.push(Without { run: run.facts.run.clone(), why: why.to_owned() });
        let Some(number) = of.numbers.get(&metric) else {
            lacks(of.why_not.as_deref().unwrap_or("it has no such number"));
            continue;
        };
        let value = match (usual, number.by_reference) {
            (None, _) => number.measured,
            (Some(usual), Some((ratio, _))) => ratio * usual,
            (Some(_), None) => {
                lacks(&format!(
                    "{} has no number beside it, by which the others are divided",
                    sentences::reference(&options.reference)
                ));
                continue;
            }
        };
        points.push(Point {
            run: run.facts.run.clone(),
            started: run.facts.started.clone(),
            key: key(run, case, options.by).to_owned(),
            value,
            measured: number.measured,
            blocks: number.blocks,
            folder: run.facts.folder.clone(),
        });
    }
    (points, without, usual.is_some())
}

/// A change may be found so many runs before or after its cause.
const BESIDE: usize = 2;

/// The seed of every series: a history of the same runs says the same.
const SEED: u64 = 15;

/// Fills in the changes and the noise of every series; the claims that were made.
pub(super) fn judge(all: &mut [Series], options: &Options) -> Family {
    let claimed = all.iter().filter(|series| !series.of_machine && series.points.len() >= FEWEST_RUNS);
    let claims = Family::of(claimed.count(), options.level);
    let mut read = Runs::default();
    for series in all {
        series.changes = changes(series, options, claims.level_of_each, &mut read);
        series.noise = noise(series);
    }
    claims
}

fn changes(series: &Series, options: &Options, level: f64, read: &mut Runs) -> Vec<Change> {
    let logs: Vec<f64> = series.points.iter().map(|point| point.value.ln()).collect();
    let how = Changes { false_alarms: 1.0 - level, least: options.least.ln(), seed: SEED };
    let found = change_points(&logs, &how);
    let ends: Vec<usize> = found.iter().map(|point| point.at).chain([logs.len()]).collect();
    let mut from = 0;
    let mut all = Vec::new();
    for (point, end) in found.iter().zip(&ends[1..]) {
        let (before, after) = (&series.points[from..point.at], &series.points[point.at..*end]);
        from = point.at;
        let Some(ratio) = unpaired_ratio(&values(after), &values(before), level) else { continue };
        let last = *end == logs.len();
        all.push(Change {
            at: point.at,
            run: after[0].run.clone(),
            before: point.before.exp(),
            after: point.after.exp(),
            p: point.p,
            worse: (point.after < point.before) == series.metric.higher_is_better(),
            verdict: verdict(series, before, after, options.least),
            newest: last && after.len() <= options.newest,
            differences: read.differences(&beside(before, after), &series.case),
            ratio,
        });
    }
    all
}

fn values(points: &[Point]) -> Vec<f64> {
    points.iter().map(|point| point.value).collect()
}

/// A divided time must have changed as measured, too. Otherwise a product of constant speed would look slower when the reference alone
/// got faster, as it does when weir improves the direct path.
fn verdict(series: &Series, before: &[Point], after: &[Point], least: f64) -> Verdict {
    let median = |points: &[Point], of: fn(&Point) -> f64| {
        weir_stats::median(&points.iter().map(of).collect::<Vec<_>>()).map_or(f64::NAN, f64::ln)
    };
    let change = |of: fn(&Point) -> f64| median(after, of) - median(before, of);
    let (judged, measured) = (change(|point| point.value), change(|point| point.measured));
    if series.of_machine {
        Verdict::Machine
    } else if series.divided && series.metric.is_time() && measured * judged.signum() < least.ln() {
        Verdict::Unclear
    } else {
        Verdict::Changed
    }
}

/// The folders of the runs around a change: the last that is surely before it, and the first that is surely behind it.
fn beside(before: &[Point], after: &[Point]) -> (PathBuf, PathBuf) {
    let before = &before[before.len().saturating_sub(BESIDE)];
    let after = &after[(BESIDE - 1).min(after.len() - 1)];
    (before.folder.clone(), after.folder.clone())
}

/// Runs that were read again, whole, for what differs between them.
#[derive(Default)]
struct Runs(BTreeMap<PathBuf, Option<ComparedRun>>);

impl Runs {
    fn differences(&mut self, (before, after): &(PathBuf, PathBuf), case: &CaseId) -> Vec<Difference> {
        self.read(before);
        self.read(after);
        let run = |folder: &Path| self.0.get(folder).and_then(Option::as_ref);
        let both = run(before).zip(run(after));
        let cases = std::slice::from_ref(case);
        both.map(|(before, after)| differences::differences(before, after, cases)).unwrap_or_default()
    }

    fn read(&mut self, folder: &Path) {
        self.0.entry(folder.to_path_buf()).or_insert_with(|| ComparedRun::read(folder).ok());
    }
}

/// The standard deviation between changes, as a share: of each value by the median of its level.
fn noise(series: &Series) -> Option<f64> {
    let starts = std::iter::once(0).chain(series.changes.iter().map(|change| change.at));
    let ends = series.changes.iter().map(|change| change.at).chain([series.points.len()]);
    let mut all = Vec::new();
    for (start, end) in starts.zip(ends) {
        let values = values(&series.points[start..end]);
        let level = weir_stats::median(&values)?;
        all.extend(values.iter().map(|value| value / level));
    }
    weir_stats::relative_noise(&all)
}
