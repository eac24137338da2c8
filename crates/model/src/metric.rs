//! The table of metrics: the name, unit, direction and source of every number of a trial, and where it is shown.
//! `weir-report`, `weir-compare` and `weir-published` read it for tables, `summary.csv`, `--json` and charts, so a new
//! metric is one new entry. The module knows records, but no blocks or ranks, and not how a table is drawn.

use serde::{Serialize, Serializer};

use crate::load::LoadResult;
use crate::record::{Measurement, Point, Role, RoleUsage};
use crate::text::{Unit, short};

/// One entry of the table.
pub struct Entry {
    /// Key in `--json`.
    pub key: &'static str,
    /// Header of its column.
    pub title: &'static str,
    /// What it is, one sentence.
    pub help: &'static str,
    /// What is counted, which decides the unit.
    pub quantity: Quantity,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// Its number in one measured window; `None` where the window has none.
    pub value: fn(&Window<'_>) -> Option<f64>,
    /// In which tables it has a column.
    pub columns: Columns,
}

/// The tables in which a metric has a column. If space is short, the columns with the largest number are dropped first; a column
/// with 0 is never dropped.
#[derive(Debug, Clone, Copy, Default)]
pub struct Columns {
    /// The table of one workload under one load.
    pub ranking: Option<u8>,
    /// The table of the first screen, over all workloads, and its `--json`.
    pub overall: Option<u8>,
    /// The table of what each role costs.
    pub cost: Option<u8>,
    /// The table of a series' points, and their `--json`.
    pub points: bool,
    /// Its column of `summary.csv`.
    pub csv: Option<&'static str>,
}

/// What a metric counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Requests a second.
    Rate,
    /// A request's time, microseconds.
    Latency,
    /// CPU time for one response, microseconds.
    CpuTime,
    /// Bytes.
    Memory,
    /// Seconds.
    Duration,
}

impl Quantity {
    /// The unit of a column with such numbers, of which `least` is the least above 0.
    pub fn unit(self, least: f64) -> Unit {
        match self {
            Quantity::Rate => Unit::PER_SECOND,
            Quantity::Latency => Unit::for_time(least),
            Quantity::CpuTime => Unit::MICROS_PER_REQUEST,
            Quantity::Memory => Unit::MEBIBYTES,
            Quantity::Duration => Unit { name: "s", size: 1.0 },
        }
    }
}

/// A measured window: of a trial the one that stands for it, or a point of a series.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// Right responses a second; of a search the rate that it found, `None` when no rate met the objective.
    pub rate: Option<f64>,
    /// The client's account.
    pub load: &'a LoadResult,
    /// What the roles used.
    pub usage: &'a [RoleUsage],
}

impl<'a> Window<'a> {
    /// The window of a trial that is no series. `None` when it has no number.
    pub fn of_trial(measurement: &'a Measurement) -> Option<Window<'a>> {
        let load = measurement.load.as_ref()?;
        let rate = measurement.search.as_ref().map_or(Some(load.rate), |search| search.rate);
        Some(Window { rate, load, usage: &measurement.usage })
    }

    /// One window of a series.
    pub fn of_point(point: &'a Point) -> Window<'a> {
        Window { rate: Some(point.load.rate), load: &point.load, usage: &point.usage }
    }

    /// What a role's process tree used; `None` where it had none.
    pub fn role(&self, role: Role) -> Option<&'a RoleUsage> {
        self.usage.iter().find(|usage| usage.role == role)
    }

    /// CPU microseconds of a role's process tree for one response: user, system.
    ///
    /// What the kernel charged it with during the window, by the responses of the window: right ones that came inside it, and
    /// wrong ones (of another status, body or header than expected), because a proxy works for these as well. A response that
    /// came after the window took its CPU time after it, and does not count; of wrong ones only the window of their requests is
    /// known. A request without any response counts nowhere, although it may have cost something.
    ///
    /// `None` for a role that had no process, as the proxy of the direct path, and without any response.
    pub fn cpu_us(&self, role: Role) -> Option<(f64, f64)> {
        let usage = self.role(role)?;
        let window = &self.load.window;
        let wrong: u64 = window.errors.iter().filter(|(kind, _)| kind.is_response()).map(|(_, n)| n).sum();
        let responses = (window.right_in_window + wrong) as f64;
        (responses > 0.0).then(|| (usage.cpu_user_us as f64 / responses, usage.cpu_system_us as f64 / responses))
    }

    /// User and system together.
    pub fn all_cpu_us(&self, role: Role) -> Option<f64> {
        self.cpu_us(role).map(|(user, system)| user + system)
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])+ $name:ident = $entry:expr;)+) => {
        /// A metric: its entry in the table is [`Metric::entry`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[$doc])+ $name,)+
        }

        impl Metric {
            /// All, in the order in which they are shown.
            pub const ALL: &[Metric] = &[$(Metric::$name,)+];

            /// What the table says of it.
            pub fn entry(self) -> &'static Entry {
                match self {
                    $(Metric::$name => {
                        const ENTRY: Entry = $entry;
                        &ENTRY
                    })+
                }
            }
        }
    };
}

/// Shown nowhere but in `--json`.
const JSON_ONLY: Columns = Columns { ranking: None, overall: None, cost: None, points: false, csv: None };

metrics! {
    /// Right responses a second.
    Rate = Entry {
        key: "rate",
        title: "Rate",
        help: "Right answers a second.",
        quantity: Quantity::Rate,
        higher_is_better: true,
        value: |window| window.rate,
        // The ranking's first column has a name of its own for each kind of load.
        columns: Columns { overall: Some(0), points: true, csv: Some("rate"), ..JSON_ONLY },
    };
    /// Median latency.
    P50 = Entry {
        key: "p50",
        title: "p50",
        help: "Median latency, due to answered.",
        quantity: Quantity::Latency,
        higher_is_better: false,
        value: |window| Some(window.load.latency.p50_us),
        columns: Columns { ranking: Some(1), overall: Some(4), points: true, csv: Some("p50_us"), ..JSON_ONLY },
    };
    /// 90th percentile of latency.
    P90 = Entry {
        key: "p90",
        title: "p90",
        help: "90 % were answered within.",
        quantity: Quantity::Latency,
        higher_is_better: false,
        value: |window| Some(window.load.latency.p90_us),
        columns: Columns { ranking: Some(9), csv: Some("p90_us"), ..JSON_ONLY },
    };
    /// 99th percentile of latency.
    P99 = Entry {
        key: "p99",
        title: "p99",
        help: "99 % were answered within.",
        quantity: Quantity::Latency,
        higher_is_better: false,
        value: |window| Some(window.load.latency.p99_us),
        columns: Columns { ranking: Some(0), overall: Some(0), points: true, csv: Some("p99_us"), ..JSON_ONLY },
    };
    /// 99.9th percentile of latency.
    P999 = Entry {
        key: "p999",
        title: "p99.9",
        help: "99.9 % were answered within.",
        quantity: Quantity::Latency,
        higher_is_better: false,
        value: |window| Some(window.load.latency.p999_us),
        columns: Columns { ranking: Some(6), points: true, csv: Some("p999_us"), ..JSON_ONLY },
    };
    /// CPU time of the proxy for one response.
    Cpu = Entry {
        key: "cpu_us",
        title: "CPU",
        help: "CPU time of the proxy, user and system, for one answer in the window.",
        quantity: Quantity::CpuTime,
        higher_is_better: false,
        value: |window| window.all_cpu_us(Role::Proxy),
        columns: Columns {
            ranking: Some(3),
            overall: Some(2),
            cost: Some(0),
            points: true,
            csv: Some("cpu_us_per_request"),
        },
    };
    /// User part of it.
    CpuUser = Entry {
        key: "cpu_user_us",
        title: "CPU, user",
        help: "User part of the proxy's CPU time for one answer.",
        quantity: Quantity::CpuTime,
        higher_is_better: false,
        value: |window| window.cpu_us(Role::Proxy).map(|(user, _)| user),
        columns: JSON_ONLY,
    };
    /// System part of it.
    CpuSystem = Entry {
        key: "cpu_system_us",
        title: "CPU, system",
        help: "System part of the proxy's CPU time for one answer.",
        quantity: Quantity::CpuTime,
        higher_is_better: false,
        value: |window| window.cpu_us(Role::Proxy).map(|(_, system)| system),
        columns: JSON_ONLY,
    };
    /// Responses for each second of the proxy's CPU time: what one core would give.
    PerCore = Entry {
        key: "per_core",
        title: "Per core",
        help: "Answers for each second of the proxy's CPU time: what one core would give.",
        quantity: Quantity::Rate,
        higher_is_better: true,
        value: |window| window.all_cpu_us(Role::Proxy).map(|us| 1e6 / us).filter(|rate| rate.is_finite()),
        columns: Columns { overall: Some(6), cost: Some(0), ..JSON_ONLY },
    };
    /// CPU time of the client for one response.
    ClientCpu = Entry {
        key: "client_cpu_us",
        title: "Client CPU",
        help: "CPU time of the client, weir's own, for one answer.",
        quantity: Quantity::CpuTime,
        higher_is_better: false,
        value: |window| window.all_cpu_us(Role::Client),
        columns: Columns { cost: Some(3), ..JSON_ONLY },
    };
    /// CPU time of the origin for one response.
    OriginCpu = Entry {
        key: "origin_cpu_us",
        title: "Origin CPU",
        help: "CPU time of the origin for one answer.",
        quantity: Quantity::CpuTime,
        higher_is_better: false,
        value: |window| window.all_cpu_us(Role::Origin),
        columns: Columns { cost: Some(2), ..JSON_ONLY },
    };
    /// Largest resident set of the proxy.
    Rss = Entry {
        key: "rss_bytes",
        title: "RSS",
        help: "Largest resident set of the proxy's processes.",
        quantity: Quantity::Memory,
        higher_is_better: false,
        value: |window| window.role(Role::Proxy).map(|usage| usage.rss_max_bytes as f64),
        columns: Columns { points: true, csv: Some("rss_bytes"), ..JSON_ONLY },
    };
    /// Length of the window; of a load of so many requests the time that they took.
    Total = Entry {
        key: "total_s",
        title: "Total",
        help: "From the first request to the last answer.",
        quantity: Quantity::Duration,
        higher_is_better: false,
        value: |window| Some(window.load.window_s),
        columns: JSON_ONLY,
    };
}

impl Metric {
    /// Its number in one window.
    pub fn value(self, window: &Window<'_>) -> Option<f64> {
        (self.entry().value)(window)
    }

    /// Key in `--json`.
    pub fn key(self) -> &'static str {
        self.entry().key
    }

    /// Whether a larger number is better.
    pub fn higher_is_better(self) -> bool {
        self.entry().higher_is_better
    }

    /// A number for people, with the unit that fits it.
    pub fn human(self, value: f64) -> String {
        let unit = self.entry().quantity.unit(value);
        format!("{} {}", short(value / unit.size), unit.name)
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Counts, ErrorKind};

    fn usage(role: Role, user: u64, system: u64) -> RoleUsage {
        RoleUsage {
            role,
            cpu_user_us: user,
            cpu_system_us: system,
            cores_busy: 0.0,
            rss_max_bytes: 0,
            pss_max_bytes: None,
            threads_max: 0,
            processes_max: 0,
            fds_max: None,
            switches: (0, 0),
            parts: Default::default(),
        }
    }

    #[test]
    fn responses_of_the_window_share_its_cpu_time() {
        let window = Counts {
            right: 1_000,
            right_in_window: 80,
            errors: [
                (ErrorKind::BadStatus, 10),
                (ErrorKind::WrongBody, 6),
                (ErrorKind::WrongHeader, 4),
                (ErrorKind::Timeout, 900),
            ]
            .into(),
            // Those of the requests that were due in the window, whenever they came.
            statuses: [(200, 1_000), (502, 10)].into(),
            ..Counts::default()
        };
        let load = LoadResult { window, ..LoadResult::default() };
        let used = [usage(Role::Origin, 50, 50), usage(Role::Proxy, 3_000, 1_000)];
        let window = Window { rate: None, load: &load, usage: &used };
        assert_eq!(window.cpu_us(Role::Proxy), Some((30.0, 10.0)));
        assert_eq!(
            [Metric::Cpu, Metric::OriginCpu, Metric::ClientCpu].map(|m| m.value(&window)),
            [Some(40.0), Some(1.0), None]
        );
        assert_eq!(Window { usage: &used[..1], ..window }.cpu_us(Role::Proxy), None, "the direct path has no proxy");
        assert_eq!(Window { load: &LoadResult::default(), ..window }.cpu_us(Role::Proxy), None, "no response");
    }

    #[test]
    fn keys_and_columns_are_unique() {
        for column in [|m: Metric| Some(m.key()), |m: Metric| m.entry().columns.csv] {
            let mut names: Vec<&str> = Metric::ALL.iter().filter_map(|metric| column(*metric)).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }
}
