//! `weir suites list`: prints every suite of the library, with its trials and its time at `--scale fit`. Called by
//! `verbs::suites`.

use std::time::Duration;

use serde::Serialize;
use weir_model::fit::Budget;
use weir_model::suite::Scale;
use weir_product::catalogue::Catalogue;

use crate::exit::{Exit, Failure, VerbResult};
use crate::out;
use crate::progress::minutes;
use crate::verbs::run::budget;
use crate::verbs::run::resolve::overheads;

#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    title: String,
    /// At the scale `fit`, with all products.
    trials: usize,
    seconds: u64,
}

/// Prints it.
///
/// # Errors
/// What is wrong in a suite of an overlay.
pub fn list(catalogue: &Catalogue, json: bool) -> VerbResult {
    let names = catalogue.suites().keys();
    let listed = names.map(|name| listed(catalogue, name)).collect::<Result<Vec<_>, _>>()?;
    if json {
        return out::json(&listed);
    }
    let row = |one: Listed| {
        let (trials, time) = (format!("{} trials", one.trials), minutes(Duration::from_secs(one.seconds)));
        vec![one.name, trials, time, one.title]
    };
    output!("{}", out::columns("lrrl", out::WIDTH, &listed.into_iter().map(row).collect::<Vec<_>>()));
    Ok(Exit::Ok)
}

fn listed(catalogue: &Catalogue, name: &str) -> Result<Listed, Failure> {
    let suite = catalogue.suite(name).map_err(Failure::input)?;
    let (scaled, _) = suite.at_scale(Scale::Fit);
    let overhead = overheads(catalogue.products());
    let budget = Budget { time: budget::DEFAULT, overhead: &overhead, skipped: &[], keep_blocks: false };
    let fitted = scaled.fitted(&budget).unwrap_or_else(|too_long| too_long.smallest);
    Ok(Listed {
        name: name.to_owned(),
        title: suite.title.clone(),
        trials: fitted.trials(&[]),
        seconds: fitted.takes(&[], &overhead).as_secs_f64().round() as u64,
    })
}
