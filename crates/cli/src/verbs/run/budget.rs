//! `--budget`: shortens a suite to a given time. A user's budget that cannot be met is an error before anything starts.
//! The default of `--scale fit` is only a goal: a longer suite runs, and reports that it is longer. Used by `weir run`
//! and `weir suites`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use weir_model::fit::{Budget, TooLong};
use weir_model::product::Product;
use weir_model::record::Skipped;
use weir_model::suite::{Scale, Suite};
use weir_model::units::HumanDuration;

use super::resolve::{SuiteRequest, overheads};
use crate::exit::Failure;
use crate::progress::minutes;

/// Goal of `--scale fit` for a suite of the library. A file of the user's runs as written.
pub const DEFAULT: Duration = Duration::from_secs(20 * 60);

/// Reads `20m`.
pub fn parse(text: &str) -> Result<Duration, String> {
    let HumanDuration(time) = text.parse().map_err(|error| format!("{error}; 20m would be right"))?;
    if time.is_zero() { Err("the budget is zero; 20m would be right".to_owned()) } else { Ok(time) }
}

/// The suite shortened to the budget, and a sentence when it takes longer all the same.
///
/// # Errors
/// A budget that was asked for and cannot be kept; one together with `--scale full`.
pub fn fit(
    request: &SuiteRequest<'_>,
    suite: Suite,
    skipped: &[Skipped],
    products: &BTreeMap<String, Product>,
) -> Result<(Suite, Option<String>), Failure> {
    let time = match (request.budget, request.scale) {
        (Some(_), Scale::Full) => {
            return Err(Failure::input(
                "--budget: --scale full runs the suite as written, however long that takes\n  expected: --scale fit, which is shortened to the budget",
            ));
        }
        (Some(time), _) => time,
        (None, Scale::Fit) if is_of_library(request.suite) => DEFAULT,
        (None, _) => return Ok((suite, None)),
    };
    let overhead = overheads(products);
    let budget = Budget { time, overhead: &overhead, skipped, keep_blocks: request.blocks.is_some() };
    match suite.fitted(&budget) {
        Ok(fitted) => Ok((fitted, None)),
        Err(too_long) if request.budget.is_some() => Err(too_small(time, &too_long, request.blocks)),
        Err(too_long) => {
            let words = format!(
                "it takes about {}, longer than the goal of {} of --scale fit, although its trials are as short as possible",
                minutes(too_long.takes),
                minutes(time)
            );
            Ok((too_long.smallest, Some(words)))
        }
    }
}

fn is_of_library(suite: &str) -> bool {
    !suite.contains('/') && Path::new(suite).extension().is_none()
}

fn too_small(time: Duration, too_long: &TooLong, blocks: Option<u32>) -> Failure {
    let blocks =
        blocks.map(|n| format!(" in {}", weir_model::text::counted(u64::from(n), "block"))).unwrap_or_default();
    let loads: Vec<String> = too_long.loads.iter().map(|(name, takes)| format!("{name} {}", minutes(*takes))).collect();
    let (trials, half) =
        (too_long.smallest.trials(&[]), if loads.len() > 1 { "some of its loads with --only load=, " } else { "" });
    Failure::input(format!(
        "--budget: {} cannot run{blocks} in {}: its {trials} trials take {} at their shortest ({})\n  expected: --budget {}, or to skip {half}workloads with --only workload= or products with --products",
        too_long.smallest.name,
        minutes(time),
        minutes(too_long.takes),
        loads.join(", "),
        HumanDuration(Duration::from_secs(too_long.takes.as_secs().div_ceil(60).saturating_mul(60)))
    ))
}
