//! What two runs are compared by, and how each number is read off a trial. Knows one trial at a time.

use serde::Serialize;
use weir_model::record::{Measurement, Role};

use weir_model::metric::Window;
use weir_model::text::{Unit, short};

/// What a load is after, which decides what of it compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// The most that is carried: closed loads.
    Most,
    /// The same, under more than can be carried.
    Flood,
    /// The highest rate that meets an objective.
    Objective,
    /// How a rate that is given is borne.
    Given,
}

/// A number that may change from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Right answers a second of a load that looks for the most.
    Capacity,
    /// Of a load whose rate is given: the share of its requests that were answered rightly.
    Rate,
    /// Median latency.
    P50,
    /// 90th percentile of latency.
    P90,
    /// 99th percentile of latency.
    P99,
    /// 99.9th percentile of latency.
    P999,
    /// CPU time of the proxy for one answer.
    Cpu,
    /// Largest resident set of the proxy.
    Memory,
}

impl Metric {
    /// All, as they are named in `--fail-if` and in records.
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

    /// As it is named.
    pub fn as_str(self) -> &'static str {
        Metric::ALL.iter().find(|(metric, _)| *metric == self).map_or("", |(_, name)| *name)
    }

    /// Those that every comparison looks at, of a load with such an aim.
    pub(super) fn usual(aim: Aim) -> &'static [Metric] {
        match aim {
            Aim::Most => &[Metric::Capacity, Metric::P50, Metric::P99, Metric::Cpu, Metric::Memory],
            Aim::Flood => &[Metric::Capacity, Metric::Cpu, Metric::Memory],
            Aim::Objective => &[Metric::Capacity, Metric::Memory],
            Aim::Given => &[Metric::P50, Metric::P99, Metric::Cpu, Metric::Memory],
        }
    }

    /// This metric of such a load: a rate that is looked for is a capacity. `None` where there is none that compares: latency
    /// of a flood is that of a queue which grows with the window, and what a search ends at is each time another rate.
    pub(super) fn of_load(self, aim: Aim) -> Option<Metric> {
        match (self, aim) {
            (Metric::Capacity, Aim::Given) => None,
            (Metric::Rate, Aim::Most | Aim::Flood | Aim::Objective) => Some(Metric::Capacity),
            (Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999, Aim::Flood | Aim::Objective) => None,
            (Metric::Cpu, Aim::Objective) => None,
            _ => Some(self),
        }
    }

    /// Whether a larger number is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Metric::Capacity | Metric::Rate)
    }

    /// Its number in one trial.
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

    /// What stands for the machine's mood in a trial of the direct path. That of CPU time is what the origin needed for an
    /// answer, because there is no proxy. Memory has no moods, and a share of what was offered has none to speak of.
    pub(super) fn mood(self, direct: &Measurement) -> Option<f64> {
        match self {
            Metric::Rate | Metric::Memory => None,
            Metric::Cpu => Window::of_trial(direct)?.all_cpu_us(Role::Origin),
            _ => self.value(direct),
        }
    }

    /// Whether it is a time: times of parts add up, so that a share of the direct path's is not one of the product's.
    pub(super) fn is_time(self) -> bool {
        matches!(self, Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999)
    }

    /// Half a step of what it is read from, as a share: closer than two of these two numbers are not known to differ.
    /// Times stand in histograms of three digits; resident sets are counted in pages, and a kernel that counts them
    /// by CPU is some dozens of pages off.
    pub(super) fn resolution(self) -> f64 {
        match self {
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => 0.000_5,
            Metric::Memory => 0.005,
            Metric::Capacity | Metric::Rate | Metric::Cpu => 0.0,
        }
    }

    /// A number of it for people, with its unit.
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

    /// What more and less of it is called.
    pub(super) fn words(self, more: bool) -> &'static str {
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
