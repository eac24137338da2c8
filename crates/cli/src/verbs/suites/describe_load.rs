//! Describes a load in one line. `weir suites show` prints it.

use weir_model::suite::{Load, LoadKind, RateSpec, Series};
use weir_model::text::{counted, human_rate};
use weir_model::units::HumanDuration;

/// `closed, 640 connections, 15s`.
pub fn describe(load: &Load) -> String {
    let streams = if load.streams > 1 { format!(" of {} streams", load.streams) } else { String::new() };
    let connections = match &load.series {
        Series::Connections(counts) => format!("{} connections{streams}", list(counts)),
        _ => format!("{} connections{streams}", load.connections),
    };
    let length = match (&load.kind, &load.series) {
        (LoadKind::Count { .. }, _) => format!("at most {}", HumanDuration(load.duration)),
        (_, Series::Once) => HumanDuration(load.duration).to_string(),
        (_, series) => format!("{} times {}", series.points(), HumanDuration(load.duration)),
    };
    let steady = load.steady.map(|most| format!(", once steady (at most {})", HumanDuration(most))).unwrap_or_default();
    let cores = load.least_cores.map(|least| format!(", on {least} CPUs or more")).unwrap_or_default();
    let kept = if load.keep { ", products kept over the workloads" } else { "" };
    let clients =
        load.clients.map(|most| format!(" of {} at most", counted(u64::from(most), "client"))).unwrap_or_default();
    let stagger = load.stagger.map(|apart| format!(", clients {} apart", HumanDuration(apart))).unwrap_or_default();
    let close = if load.close { ", one for each request" } else { "" };
    format!("{}, {connections}{clients}{close}{stagger}, {length}{steady}{cores}{kept}", kind(load))
}

fn kind(load: &Load) -> String {
    match &load.kind {
        LoadKind::Closed => "closed".to_owned(),
        LoadKind::Count { requests } => format!("{} requests", weir_model::text::count(*requests)),
        LoadKind::Search { objective } => {
            let words: Vec<String> = objective.iter().map(ToString::to_string).collect();
            format!("highest rate with {}", words.join(", "))
        }
        LoadKind::Open { rate, arrivals } => {
            let rate = rate_words(rate, &load.series);
            format!("open, {rate}, {}", format!("{arrivals:?}").to_lowercase())
        }
    }
}

fn rate_words(rate: &RateSpec, series: &Series) -> String {
    let shares: Vec<f64> = if let Series::Shares(shares) = series { shares.clone() } else { vec![1.0] };
    match rate {
        RateSpec::Table(_) => "rates by workload and product".to_owned(),
        RateSpec::Fixed(rate) => list(&shares.iter().map(|share| human_rate(rate * share)).collect::<Vec<_>>()),
        RateSpec::Share { share, of, load } => {
            let percent: Vec<String> = shares.iter().map(|one| format!("{:.0}", share * one * 100.0)).collect();
            format!("{} % of {} {load}", list(&percent), format!("{of:?}").to_lowercase())
        }
    }
}

fn list<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
