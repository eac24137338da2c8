//! One number of one case in both runs: how much it changed, and how certain that is. `lib` collects the samples of
//! both runs, and evaluates them once the number of claims is known. `sentences`, `outcome` and `output` show the
//! result.

use serde::{Serialize, Serializer};
use weir_model::metric::Metric;
use weir_model::record::CaseId;
use weir_stats::{Estimate, detectable_change, unpaired_ratio};

use crate::compared_run::Blocks;
use crate::{ComparedRun, Options};

/// Of the direct path's change from run to run, this share may have affected a product and not be divided out, or the other way: what
/// slows a machine down does not slow all work alike. Source: of the difference between real runs of one product on a virtual
/// machine, half was of whole runs (`docs/compare.md`).
const NOT_DIVIDED_OUT: f64 = 0.5;

/// What two whole runs of one program may differ by although the direct path did not change: each run starts other processes at
/// other places of the memory, which no block shows. A ratio.
const OF_A_RUN: f64 = 1.02;

/// The same where the direct path does not show how the machine changed. Runs of one program were 7 % apart on virtual machines, and
/// 9 % at one time.
const OF_A_MACHINE: f64 = 1.10;

/// A number in one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Median {
    /// The median over blocks, as measured: requests a second, microseconds, bytes, or a share.
    pub median: f64,
    /// The number of blocks that have a value.
    pub blocks: usize,
}

/// How certain a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Certain when all claims of the comparison are taken together.
    Sure,
    /// Certain if it were the only claim.
    Likely,
    /// A time that changed when divided by the direct path's, but not as measured. A change of the direct path alone
    /// may explain it.
    Unclear,
    /// No change was found.
    None,
    /// No claim is possible: one of the runs has fewer than two blocks.
    Unclaimable,
    /// The change of the machine itself. It was divided out of the others and is no claim.
    Machine,
}

/// How much a number changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Which number.
    #[serde(serialize_with = "compared_name")]
    pub metric: Metric,
    /// A `--fail-if` condition refers to it.
    pub asked: bool,
    /// The value in the run before.
    pub before: Median,
    /// The value in the run after.
    pub after: Median,
    /// Each block was divided by the direct path's value of that block. `ratio` may then differ from `after / before`.
    pub divided: bool,
    /// After over before, with an interval at the level asked for.
    pub ratio: Estimate,
    /// The same ratio with the wider interval that each claim needs so that all of them together keep the level, wider still by what
    /// may be of the runs and not of the product.
    pub sure_ratio: Estimate,
    /// The smallest ratio above 1 that blocks such as these detect as sure in four comparisons of five; `None` if there
    /// is none.
    pub detectable_ratio: Option<f64>,
    /// How certain the change is.
    pub verdict: Verdict,
}

impl Change {
    /// True when the number became worse rather than better.
    pub fn worse(&self) -> bool {
        (self.ratio.value < 1.0) == self.metric.higher_is_better()
    }

    /// The size of the change, the same for "twice" and "half".
    pub(super) fn size(&self) -> f64 {
        self.ratio.value.ln().abs()
    }
}

/// A case's number in both runs, by block. The number of claims decides how certain a change must be, so it is
/// evaluated later.
pub(super) struct Samples {
    pub metric: Metric,
    pub asked: bool,
    raw: (Vec<f64>, Vec<f64>),
    used: (Vec<f64>, Vec<f64>),
    pub divided: bool,
    /// What may be of the runs and not of the product, as a ratio: a sure change is larger.
    of_runs: f64,
}

impl Samples {
    /// `None` when one of the runs has no such number.
    pub fn of(case: &CaseId, metric: Metric, runs: (&ComparedRun, &ComparedRun), how: &Options) -> Option<Samples> {
        let values = |run: &ComparedRun| run.values(case, metric, how.busy);
        let direct_values = |run: &ComparedRun| run.direct_values(case, metric, how.busy);
        let (a, b) = (values(runs.0), values(runs.1));
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let direct = (direct_values(runs.0), direct_values(runs.1));
        let (divided_a, divided_b) = (divided_by(&a, &direct.0), divided_by(&b, &direct.1));
        // Both are divided or neither is. Neither is divided if too few blocks would be left for an interval.
        let divided = !how.absolute && enough(&divided_a, &a) && enough(&divided_b, &b);
        let raw: (Vec<f64>, Vec<f64>) = (a.values().copied().collect(), b.values().copied().collect());
        let used = if divided { (divided_a, divided_b) } else { raw.clone() };
        let of_runs = of_runs(metric, divided.then_some(&direct));
        Some(Samples { metric, asked: false, raw, used, divided, of_runs })
    }

    /// True when both runs have the two blocks that an interval needs.
    pub fn claimable(&self) -> bool {
        self.used.0.len() > 1 && self.used.1.len() > 1
    }

    /// The change, with an interval at `level` and one at `sure`, the level that a sure change needs.
    pub fn evaluate(&self, level: f64, sure: f64, machine: bool) -> Option<Change> {
        let median = |blocks: &[f64]| Some(Median { median: weir_stats::median(blocks)?, blocks: blocks.len() });
        let (ratio, own) = (self.ratio(&self.used, level)?, self.ratio(&self.used, sure)?);
        let sure_ratio = Estimate { low: own.low / self.of_runs, high: own.high * self.of_runs, ..own };
        let detectable = detectable_change(&self.used.1, &self.used.0, sure) * self.widening() * self.of_runs;
        let verdict = match () {
            () if machine => Verdict::Machine,
            () if !self.claimable() => Verdict::Unclaimable,
            () if self.changed(&sure_ratio, sure) => Verdict::Sure,
            () if self.changed(&ratio, level) => Verdict::Likely,
            () if direction(&ratio) != 0 => Verdict::Unclear,
            () => Verdict::None,
        };
        Some(Change {
            metric: self.metric,
            asked: self.asked,
            before: median(&self.raw.0)?,
            after: median(&self.raw.1)?,
            divided: self.divided,
            ratio,
            sure_ratio,
            detectable_ratio: Some(detectable).filter(|ratio| ratio.is_finite()),
            verdict,
        })
    }

    /// After over before.
    fn ratio(&self, (before, after): &(Vec<f64>, Vec<f64>), level: f64) -> Option<Estimate> {
        let ratio = unpaired_ratio(after, before, level)?;
        Some(Estimate { low: ratio.low / self.widening(), high: ratio.high * self.widening(), ..ratio })
    }

    /// Both numbers may be wrong by half a step each.
    fn widening(&self) -> f64 {
        1.0 + 2.0 * self.metric.entry().compared.map_or(0.0, |compared| compared.resolution)
    }

    /// True when the interval excludes "no change". A divided time must also have changed as measured: where weir
    /// itself made the direct path faster, a product with the same speed would look slower by that share.
    fn changed(&self, ratio: &Estimate, level: f64) -> bool {
        let side = direction(ratio);
        let twice = self.divided && self.metric.is_time();
        side != 0 && (!twice || self.ratio(&self.raw, level).is_some_and(|raw| direction(&raw) == side))
    }
}

fn compared_name<S: Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.compared_name())
}

/// The side of "no change" on which the whole interval lies; 0 when it includes "no change".
fn direction(ratio: &Estimate) -> i8 {
    i8::from(ratio.low > 1.0) - i8::from(ratio.high < 1.0)
}

/// What may be of the runs and not of the product, as a ratio. What does not depend on the machine's speed has nothing of it.
fn of_runs(metric: Metric, direct: Option<&(Blocks, Blocks)>) -> f64 {
    if metric.entry().compared.is_none_or(|compared| compared.direct.is_none()) {
        return 1.0;
    }
    let median = |blocks: &Blocks| weir_stats::median(&blocks.values().copied().collect::<Vec<_>>());
    let change = direct.and_then(|(before, after)| Some((median(after)? / median(before)?).ln().abs()));
    change
        .filter(|change| change.is_finite())
        .map_or(OF_A_MACHINE, |change| (NOT_DIVIDED_OUT * change).exp().max(OF_A_RUN))
}

/// The number of each block divided by the direct path's number of the same block.
fn divided_by(values: &Blocks, direct_values: &Blocks) -> Vec<f64> {
    values.iter().filter_map(|(block, value)| Some(value / direct_values.get(block)?)).collect()
}

/// True when enough blocks are left after dividing for an interval, if there were enough before.
fn enough(divided: &[f64], all: &Blocks) -> bool {
    divided.len() >= all.len().min(2)
}
