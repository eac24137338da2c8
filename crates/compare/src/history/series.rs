//! Makes series of runs: each number of each case on each machine, in order, with what is divided and what is left out. `history`
//! calls it; `judge` finds the changes in them.

use std::cmp::Ordering;

use weir_model::metric::{Goal, Metric};
use weir_model::record::CaseId;
use weir_model::text::unique;
use weir_model::version;
use weir_report::run::BASELINE;

use super::machine::Group;
use super::read::{Number, OfCase, OneRun};
use super::{Options, Order, Point, Series, Without, sentences};
use crate::comparable;

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
    let same = comparable::definitions(&first.0.suite, &other.0.suite, case);
    let rates = || match other.1.goal {
        Goal::FixedRate => comparable::rates(first.1.offered, other.1.offered).map(|_| ()),
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
    let dates = (&a.environment.started, &a.name).cmp(&(&b.environment.started, &b.name));
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
        let mut lacks = |why: &str| without.push(Without { run: run.name.clone(), why: why.to_owned() });
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
            run: run.name.clone(),
            started: run.environment.started.clone(),
            key: key(run, case, options.by).to_owned(),
            value,
            measured: number.measured,
            blocks: number.blocks,
            folder: run.folder.clone(),
        });
    }
    (points, without, usual.is_some())
}
