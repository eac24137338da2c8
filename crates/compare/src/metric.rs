//! The numbers that are compared between two runs, and how each is read from a trial. All other modules of this crate
//! use it.

use serde::Serialize;
use weir_model::record::{Measurement, Role};

use weir_model::metric::Window;
use weir_model::text::{Unit, short};

/// What a load measures, which decides which of its numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadGoal {
    /// The highest rate of a closed load.
    Capacity,
    /// The highest rate of an open load beyond capacity.
    Overload,
    /// The highest rate that meets an objective.
    Search,
    /// Latency at a given rate.
    FixedRate,
}

/// A number that may differ between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Right answers a second, in a load that looks for the highest rate.
    Capacity,
    /// In a load with a given rate: the share of its requests that were answered rightly.
    Rate,
    /// Median latency.
    P50,
    /// 90th percentile of latency.
    P90,
    /// 99th percentile of latency.
    P99,
    /// 99.9th percentile of latency.
    P999,
    /// CPU time of the proxy per answer.
    Cpu,
    /// The largest resident set of the proxy.
    Memory,
}

impl Metric {
    /// All metrics, with their names in `--fail-if` and in records.
    pub const ALL: [(Metric, &str); 8] = [
        (Metric::Capacity, "capacity"),
        (Metric::Rate, "rate"),
        (Metric::P50, "p50"),
        (Metric::P90, "p90"),
        (Metric::P99, "p99"),
        (Metric::P999, "p999"),
        (Metric::Cpu, "cpu"),
        (Metric::Memory, "memory"),
    ];

    /// The name in `--fail-if` and in records.
    pub fn as_str(self) -> &'static str {
        Metric::ALL.iter().find(|(metric, _)| *metric == self).map_or("", |(_, name)| *name)
    }

    /// The metrics that are always compared for a kind of load.
    pub(super) fn usual(goal: LoadGoal) -> &'static [Metric] {
        match goal {
            LoadGoal::Capacity => &[Metric::Capacity, Metric::P50, Metric::P99, Metric::Cpu, Metric::Memory],
            LoadGoal::Overload => &[Metric::Capacity, Metric::Cpu, Metric::Memory],
            LoadGoal::Search => &[Metric::Capacity, Metric::Memory],
            LoadGoal::FixedRate => &[Metric::P50, Metric::P99, Metric::Cpu, Metric::Memory],
        }
    }

    /// The metric to use for this kind of load: a rate is a capacity where the load looks for the highest. `None` where
    /// no comparison makes sense: latency beyond capacity is that of a queue that grows with the window, and a search
    /// ends at another rate each time.
    pub(super) fn of_load(self, goal: LoadGoal) -> Option<Metric> {
        match (self, goal) {
            (Metric::Capacity, LoadGoal::FixedRate) => None,
            (Metric::Rate, LoadGoal::Capacity | LoadGoal::Overload | LoadGoal::Search) => Some(Metric::Capacity),
            (Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999, LoadGoal::Overload | LoadGoal::Search) => None,
            (Metric::Cpu, LoadGoal::Search) => None,
            _ => Some(self),
        }
    }

    /// True when a larger number is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Metric::Capacity | Metric::Rate)
    }

    /// The value in one trial.
    pub(super) fn value(self, measurement: &Measurement) -> Option<f64> {
        let window = Window::of_trial(measurement)?;
        let load = window.load;
        match self {
            Metric::Capacity => window.rate,
            Metric::Rate => (load.window.due > 0).then(|| load.window.right as f64 / load.window.due as f64),
            Metric::P50 => Some(load.latency.p50_us),
            Metric::P90 => Some(load.latency.p90_us),
            Metric::P99 => Some(load.latency.p99_us),
            Metric::P999 => Some(load.latency.p999_us),
            Metric::Cpu => window.all_cpu_us(Role::Proxy),
            Metric::Memory => window.role(Role::Proxy).map(|usage| usage.rss_max_bytes as f64),
        }
    }

    /// The value of the direct path by which a product's value is divided. For CPU time it is what the origin needed
    /// per response, because there is no proxy. `None` for memory and for the share of offered requests, which do not
    /// depend on the machine's speed.
    pub(super) fn direct_value(self, direct: &Measurement) -> Option<f64> {
        match self {
            Metric::Rate | Metric::Memory => None,
            Metric::Cpu => Window::of_trial(direct)?.all_cpu_us(Role::Origin),
            _ => self.value(direct),
        }
    }

    /// True for times. Times of parts add up, so a share of the direct path's time is not a share of the product's.
    pub(super) fn is_time(self) -> bool {
        matches!(self, Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999)
    }

    /// Half a step of the source of the value, as a share. Two values that differ by less than two half steps are not
    /// known to differ. Times are kept in histograms of three digits. Resident sets are counted in pages, and kernels
    /// that count by CPU are some dozens of pages off.
    pub(super) fn resolution(self) -> f64 {
        match self {
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => 0.000_5,
            Metric::Memory => 0.005,
            Metric::Capacity | Metric::Rate | Metric::Cpu => 0.0,
        }
    }

    /// A value for people, with its unit.
    pub(super) fn human(self, value: f64) -> String {
        let with = |unit: Unit, name: &str| format!("{} {name}", short(value / unit.size));
        match self {
            Metric::Capacity => format!("{}/s", short(value)),
            Metric::Rate => format!("{} %", short(value * 100.0)),
            Metric::Cpu => with(Unit::MICROS, Unit::MICROS.name),
            Metric::Memory => with(Unit::MEBIBYTES, Unit::MEBIBYTES.name),
            _ => {
                let unit = Unit::for_time(value);
                with(unit, unit.name)
            }
        }
    }

    /// The comparative for more or less of it.
    pub(super) fn comparative(self, more: bool) -> &'static str {
        match self {
            Metric::Capacity => ["slower", "faster"][usize::from(more)],
            Metric::Rate | Metric::Cpu | Metric::Memory => ["less", "more"][usize::from(more)],
            _ => ["faster", "slower"][usize::from(more)],
        }
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
