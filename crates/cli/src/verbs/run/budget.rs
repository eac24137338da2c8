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
use weir_model::text::counted;
use weir_model::units::HumanDuration;

use super::resolve::{SuiteRequest, overheads};
use crate::args::parse_time;
use crate::exit::Failure;
use crate::progress::minutes;

/// Goal of `--scale fit` for a suite of the library. A file of the user's runs as written.
pub const DEFAULT: Duration = Duration::from_secs(20 * 60);

/// Reads `20m`.
pub fn parse(text: &str) -> Result<Duration, String> {
    parse_time(Duration::from_nanos(1).., "a time, such as 20m")(text)
}

/// The suite shortened to the budget, and a sentence when it takes longer all the same.
///
/// # Errors
/// A budget that was asked for and cannot be kept; one together with `--scale full`.
pub fn fit(
    request: &SuiteRequest,
    suite: Suite,
    skipped: &[Skipped],
    products: &BTreeMap<String, Product>,
) -> Result<(Suite, Option<String>), Failure> {
    let time = match (request.budget, request.scale()) {
        (Some(_), Scale::Full) => {
            let found = "--scale full runs the suite as written, however long that takes";
            return Err(Failure::wrong("--budget", found, "--scale fit, which is shortened to the budget"));
        }
        (Some(time), _) => time,
        (None, Scale::Fit) if is_of_library(request.name()) => DEFAULT,
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
    let TooLong { smallest, takes, loads } = too_long;
    let blocks = blocks.map(|blocks| format!(" in {}", counted(blocks.into(), "block"))).unwrap_or_default();
    let each: Vec<String> = loads.iter().map(|(name, takes)| format!("{name} {}", minutes(*takes))).collect();
    let found = format!(
        "{} cannot run{blocks} in {}: its {} trials take {} at their shortest ({})",
        smallest.name,
        minutes(time),
        smallest.trials(&[]),
        minutes(*takes),
        each.join(", "),
    );
    let enough = HumanDuration(Duration::from_secs(takes.as_secs().div_ceil(60).saturating_mul(60)));
    let fewer_loads = if loads.len() > 1 { "some of its loads with --only load=, " } else { "" };
    let wanted = format!(
        "--budget {enough}, or to skip {fewer_loads}workloads with --only workload= or products with --products"
    );
    Failure::wrong("--budget", found, wanted)
}
