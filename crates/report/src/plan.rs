//! Completes the suite of a run with what its measurements say, for a run whose `run.toml` could not be read.
//! Called by `run`.

use weir_model::record::Point;
use weir_model::suite::{Arrivals, Load, LoadKind, RateSpec, Series, Suite, Workload};

use crate::run::{BASELINE, Trial};

/// The suite with every entry, workload and load that the records have. Without a readable `run.toml` it has no name and no blocks.
pub(crate) fn with_recorded(mut suite: Suite, trials: &[Trial]) -> Suite {
    // By case and not by trial: within a block the order is random, and a report must not depend on it.
    let mut by_case: Vec<&Trial> = trials.iter().collect();
    by_case.sort_by(|a, b| a.measurement.case.cmp(&b.measurement.case));
    for trial in by_case {
        let (case, measurement) = (&trial.measurement.case, &trial.measurement);
        let entry = trial.entry();
        if !suite.entries.contains(&entry) {
            suite.entries.push(entry);
        }
        if !suite.workloads.iter().any(|workload| workload.name == case.workload) {
            let (name, protocol) = (case.workload.clone(), measurement.protocol);
            suite.workloads.push(Workload { name, protocol, ..Workload::default() });
        }
        if suite.load(&case.load).is_none() {
            let of_load = trials.iter().filter(|trial| trial.measurement.case.load == case.load);
            suite.loads.push(load_of(&case.load, of_load));
        }
    }
    suite.entries.sort_by_key(|entry| entry.product != BASELINE);
    suite
}

/// Rebuilds a load from its records if `run.toml` does not describe it. The number of connections is unknown.
fn load_of<'a>(name: &str, trials: impl Iterator<Item = &'a Trial>) -> Load {
    let mut load = Load { name: name.to_string(), streams: 1, ..Load::default() };
    for measurement in trials.map(|trial| &trial.measurement) {
        if let Some(search) = &measurement.search {
            load.kind = LoadKind::Search { objective: search.conditions.clone() };
        } else if let Some(rate) = measurement.load.as_ref().and_then(|load| load.offered_rate) {
            load.kind = LoadKind::Open { rate: RateSpec::Fixed(rate), arrivals: Arrivals::Constant };
        }
        if measurement.points.len() > 1 && load.series == Series::Once {
            load.series = series_of(&measurement.points);
        }
    }
    load
}

/// What changed from point to point.
fn series_of(points: &[Point]) -> Series {
    let connections: Vec<u32> = points.iter().map(|point| point.connections).collect();
    let rates: Vec<f64> = points.iter().filter_map(|point| point.offered_rate).collect();
    if connections.windows(2).any(|pair| pair[0] != pair[1]) {
        return Series::Connections(connections);
    }
    match rates.first() {
        Some(first) if rates.iter().any(|rate| rate != first) => {
            Series::Shares(rates.iter().map(|rate| rate / first).collect())
        }
        _ => Series::Rounds(u32::try_from(points.len()).unwrap_or(u32::MAX)),
    }
}
