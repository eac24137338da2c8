//! Finds the changes of all series together, so that few histories without a change have one. `history` calls it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_model::record::CaseId;
use weir_stats::{Changes, FEWEST_RUNS, change_points, unpaired_ratio};

use super::{Change, Options, Point, Series, Verdict};
use crate::{ComparedRun, Difference, Family, differences};

/// A change may be found so many runs beside its cause.
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

/// A divided time must have changed as measured, too: where the reference alone got faster, as weir makes the direct path, a product with the same speed would
/// look slower by that share.
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
