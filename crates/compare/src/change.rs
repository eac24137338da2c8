//! One number of one case, before and after: by how much it changed, and how sure that is. `lib` takes the samples of both runs and
//! evaluates them once it knows how many claims there are.

use serde::Serialize;
use weir_model::record::CaseId;
use weir_stats::{Estimate, detectable_change, unpaired_ratio};

use super::compared_run::Blocks;
use super::{ComparedRun, Metric, Options};

/// A number in one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Median {
    /// Median over blocks, as measured: requests a second, microseconds, bytes, or a share.
    pub median: f64,
    /// Blocks that have one.
    pub blocks: usize,
}

/// What can be said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Sure, all claims of the comparison taken together.
    Sure,
    /// Sure if it were the only claim.
    Likely,
    /// A time that changed when divided by the direct path's, and not as measured: nothing that can be told from a change of
    /// the direct path alone.
    Unclear,
    /// No change was found.
    None,
    /// Nothing can be said: fewer than two blocks in one of the runs.
    Unclaimable,
    /// It is the machine's own change, which was taken out of the others, and no claim.
    Machine,
}

/// By how much a number changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Of what.
    pub metric: Metric,
    /// `--fail-if` asks about it.
    pub asked: bool,
    /// In the run before.
    pub before: Median,
    /// In the run after.
    pub after: Median,
    /// Each block was divided by the direct path's own, which is why `ratio` need not be `after / before`.
    pub divided: bool,
    /// After over before, with an interval at the level asked for.
    pub ratio: Estimate,
    /// The interval at the level that this claim needs so that all of them together keep what was asked for.
    pub sure_ratio: Estimate,
    /// The smallest ratio above 1 that blocks such as these show for sure in four comparisons of five; `None`: none.
    pub detectable_ratio: Option<f64>,
    /// What can be said.
    pub verdict: Verdict,
}

impl Change {
    /// The change as a share of what was before.
    pub fn share(&self) -> f64 {
        self.ratio.value - 1.0
    }

    /// True when the number became worse rather than better.
    pub fn worse(&self) -> bool {
        (self.ratio.value < 1.0) == self.metric.higher_is_better()
    }

    /// How far from none it is, alike for "twice" and "half".
    pub(super) fn size(&self) -> f64 {
        self.ratio.value.ln().abs()
    }
}

/// A number of a case in both runs, by block. How sure a change must be depends on how many numbers are compared.
pub(super) struct Samples {
    pub metric: Metric,
    pub asked: bool,
    raw: (Vec<f64>, Vec<f64>),
    used: (Vec<f64>, Vec<f64>),
    pub divided: bool,
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
        let (divided_a, divided_b) = (divided_by(&a, &direct_values(runs.0)), divided_by(&b, &direct_values(runs.1)));
        // Both or neither; and never for the price of not being able to say anything.
        let divided = !how.absolute && enough(&divided_a, &a) && enough(&divided_b, &b);
        let raw: (Vec<f64>, Vec<f64>) = (a.values().copied().collect(), b.values().copied().collect());
        let used = if divided { (divided_a, divided_b) } else { raw.clone() };
        Some(Samples { metric, asked: false, raw, used, divided })
    }

    /// The same, asked about or not.
    pub fn asked(self, asked: bool) -> Samples {
        Samples { asked, ..self }
    }

    /// True when both have the two blocks that an interval needs.
    pub fn claimable(&self) -> bool {
        self.used.0.len() > 1 && self.used.1.len() > 1
    }

    /// The change, with intervals at `level`, and at `sure` where that is what surely needs.
    pub fn evaluate(&self, level: f64, sure: f64, machine: bool) -> Option<Change> {
        let median = |blocks: &[f64]| Some(Median { median: weir_stats::median(blocks)?, blocks: blocks.len() });
        let (ratio, sure_ratio) = (self.ratio(&self.used, level)?, self.ratio(&self.used, sure)?);
        let detectable = detectable_change(&self.used.1, &self.used.0, sure) * self.widening();
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

    /// Two numbers that are each half a step off.
    fn widening(&self) -> f64 {
        1.0 + 2.0 * self.metric.resolution()
    }

    /// Whether an interval leaves out that nothing changed. That of a time that was divided must do so as measured, too: where
    /// the direct path became faster by what weir itself saves, a product that kept its pace looks slower by that share.
    fn changed(&self, ratio: &Estimate, level: f64) -> bool {
        let side = direction(ratio);
        let twice = self.divided && self.metric.is_time();
        side != 0 && (!twice || self.ratio(&self.raw, level).is_some_and(|raw| direction(&raw) == side))
    }
}

/// To which side of no change a whole interval lies; 0 when it does not.
fn direction(ratio: &Estimate) -> i8 {
    i8::from(ratio.low > 1.0) - i8::from(ratio.high < 1.0)
}

/// Each block's number divided by the direct path's of the same block.
fn divided_by(values: &Blocks, direct_values: &Blocks) -> Vec<f64> {
    values.iter().filter_map(|(block, value)| Some(value / direct_values.get(block)?)).collect()
}

/// Whether what is left after dividing carries an interval, if the whole did.
fn enough(divided: &[f64], all: &Blocks) -> bool {
    divided.len() >= all.len().min(2)
}
