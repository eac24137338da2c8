//! The table of metrics: the name, unit, direction and source of every number of a trial, and where it is shown.
//! Tables, `summary.csv`, `--json` and charts of `weir-report`, conditions ([`crate::condition`]), `--fail-if` of
//! `weir-compare` and the published figures of `weir-published` read it, so a new metric is one new entry. The module
//! knows records, but no blocks or ranks, and not how a table is drawn.

use serde::{Serialize, Serializer};

use crate::counters::OriginCounters;
use crate::load::{ErrorKind, LoadResult, Quantiles};
use crate::record::{Measurement, Point, Role, RoleUsage};
use crate::text::{Unit, short};

/// One entry of the table.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Key in `--json`.
    pub key: &'static str,
    /// Header of its column.
    pub title: &'static str,
    /// Its full name, in headings and on the axes of charts.
    pub name: &'static str,
    /// What it is, one sentence; empty where `name` says it.
    pub help: &'static str,
    /// What is counted, which decides the unit.
    pub quantity: Quantity,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// Where its number comes from.
    pub source: Source,
    /// Where the report shows it.
    pub columns: Columns,
    /// Its name in conditions such as `p99<5ms`.
    pub condition: Option<&'static str>,
    /// How `weir compare` compares it.
    pub compared: Option<Compared>,
    /// Its names among published figures.
    pub published: &'static [&'static str],
}

/// Where a metric's number comes from.
#[derive(Clone, Copy)]
pub enum Source {
    /// A number of a distribution of times: of the latencies, and in a condition of any other times.
    Times(fn(&Quantiles) -> f64),
    /// The client's account, from which conditions can be judged while a load runs.
    Load(fn(&LoadResult) -> Option<f64>),
    /// Everything that was recorded of a window.
    Window(fn(&Window<'_>) -> Option<f64>),
}

/// Where the report shows a metric. If space is short, the columns with the largest number are dropped first; a column
/// with 0 is never dropped.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    /// In `--json`, for each product of each section.
    pub json: bool,
    /// The table of one workload under one load.
    pub ranking: Option<u8>,
    /// The table of the first screen, over all workloads, and its `--json`.
    pub overall: Option<u8>,
    /// The table of what each role costs.
    pub cost: Option<u8>,
    /// The table of a series' points, and their `--json`.
    pub points: bool,
    /// The end of the file name of its chart over the points of a series.
    pub curve: Option<&'static str>,
    /// Its column of `summary.csv`.
    pub csv: Option<&'static str>,
}

/// How `weir compare` compares a metric between two runs.
#[derive(Debug, Clone, Copy)]
pub struct Compared {
    /// Its name in `--fail-if` and in `--json`.
    pub name: &'static str,
    /// The words for less and for more of it.
    pub comparatives: [&'static str; 2],
    /// The number of the direct path by which each block is divided; `None` for what does not depend on the machine's
    /// speed.
    pub direct: Option<Metric>,
    /// Half a step of the source, as a share: values that differ by less than two half steps are not known to differ.
    pub resolution: f64,
    /// The loads under which it is always compared.
    pub always: &'static [Goal],
    /// The loads under which it is compared if `--fail-if` asks for it.
    pub if_asked: &'static [Goal],
    /// What is compared instead under all other loads.
    pub instead: Option<Metric>,
}

/// What a load measures, which decides which of its numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The highest rate of a closed load.
    Capacity,
    /// The highest rate of an open load beyond capacity. Its latency is that of a queue that grows with the window.
    Overload,
    /// The highest rate that meets an objective. It ends at another rate each time, so only the rate compares.
    Search,
    /// Latency at a given rate.
    FixedRate,
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
    /// Bytes a second.
    Transfer,
    /// Seconds.
    Duration,
    /// Requests or responses.
    Requests,
    /// A share of the requests that were due.
    Share,
    /// Calculations for 1,000 responses.
    Work,
    /// Responses in the time of a calculation.
    BySpeed,
}

impl Quantity {
    /// The unit of a column with such numbers, of which `least` is the least above 0.
    pub fn unit(self, least: f64) -> Unit {
        match self {
            Quantity::Rate => Unit::PER_SECOND,
            Quantity::Latency => Unit::for_time(least),
            Quantity::CpuTime => Unit::MICROS_PER_REQUEST,
            Quantity::Memory => Unit::MEBIBYTES,
            Quantity::Transfer => Unit { name: "MiB/s", ..Unit::MEBIBYTES },
            Quantity::Duration => Unit::SECONDS,
            Quantity::Requests => Unit { name: "requests", size: 1.0 },
            Quantity::Share => Unit { name: "%", size: 0.01 },
            Quantity::Work => Unit { name: "calc/1,000 requests", size: 1.0 },
            Quantity::BySpeed => Unit { name: "requests/calc", size: 1.0 },
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
    /// The origin's account; `None` where it kept none.
    pub origin: Option<&'a OriginCounters>,
    /// What the roles used.
    pub usage: &'a [RoleUsage],
    /// How fast the product's CPUs were (of the direct path the origin's), calculations a second; `None` where it is not known. One
    /// reading says little ([`crate::speed::BlockSpeeds`]): it is to be the mean of a block.
    pub speed: Option<f64>,
}

impl<'a> Window<'a> {
    /// The window of a trial that is no series. `None` when it has no number.
    pub fn of_trial(measurement: &'a Measurement) -> Option<Window<'a>> {
        let load = measurement.load.as_ref()?;
        let rate = measurement.search.as_ref().map_or(Some(load.rate), |search| search.rate);
        Some(Window { rate, load, origin: measurement.origin.as_ref(), usage: &measurement.usage, speed: None })
    }

    /// One window of a series.
    pub fn of_point(point: &'a Point) -> Window<'a> {
        let rate = Some(point.load.rate);
        Window { rate, load: &point.load, origin: point.origin.as_ref(), usage: &point.usage, speed: None }
    }

    /// What only the client's account says of a window.
    pub fn of_load(load: &'a LoadResult) -> Window<'a> {
        Window { rate: (load.window_s > 0.0).then_some(load.rate), load, origin: None, usage: &[], speed: None }
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
        let (usage, responses) = (self.role(role)?, self.responses());
        (responses > 0.0).then(|| (usage.cpu_user_us as f64 / responses, usage.cpu_system_us as f64 / responses))
    }

    /// The responses among which CPU time is divided.
    fn responses(&self) -> f64 {
        let window = &self.load.window;
        let wrong: u64 = window.errors.iter().filter(|(kind, _)| kind.is_response()).map(|(_, n)| n).sum();
        (window.successful_in_window + wrong) as f64
    }

    /// CPU microseconds of one of the proxy's parts for one response, user and system together, as [`Window::cpu_us`]. `None`
    /// without such a part, and without any response.
    pub fn part_cpu_us(&self, part: &str) -> Option<f64> {
        let (usage, responses) = (self.role(Role::Proxy)?.parts.get(part)?, self.responses());
        (responses > 0.0).then(|| (usage.cpu_user_us + usage.cpu_system_us) as f64 / responses)
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

/// Not in the report's tables.
const NOWHERE: Columns =
    Columns { json: false, ranking: None, overall: None, cost: None, points: false, curve: None, csv: None };

/// Nowhere but in `--json`.
const JSON: Columns = Columns { json: true, ..NOWHERE };

/// A number of a distribution of times, whose title is its name in conditions.
const fn time(key: &'static str, title: &'static str, name: &'static str, of: fn(&Quantiles) -> f64) -> Entry {
    let entry = window(key, title, name, Quantity::Latency, |_| None);
    Entry { source: Source::Times(of), columns: NOWHERE, condition: Some(title), ..entry }
}

/// A number of the client's account that no table shows.
const fn load(
    key: &'static str,
    name: &'static str,
    quantity: Quantity,
    published: &'static [&'static str],
    of: fn(&LoadResult) -> Option<f64>,
) -> Entry {
    Entry { source: Source::Load(of), columns: NOWHERE, published, ..window(key, name, name, quantity, |_| None) }
}

/// A number of a window, of which less is better.
const fn window(
    key: &'static str,
    title: &'static str,
    name: &'static str,
    quantity: Quantity,
    of: fn(&Window<'_>) -> Option<f64>,
) -> Entry {
    Entry {
        key,
        title,
        name,
        help: name,
        quantity,
        higher_is_better: false,
        source: Source::Window(of),
        columns: JSON,
        condition: None,
        compared: None,
        published: &[],
    }
}

/// Times are kept in histograms of three digits, and divided by those of the direct path.
const fn time_compared(name: &'static str, itself: Metric, always: bool) -> Option<Compared> {
    const GOALS: &[Goal] = &[Goal::Capacity, Goal::FixedRate];
    let (always, if_asked): (&[Goal], &[Goal]) = if always { (GOALS, &[]) } else { (&[], GOALS) };
    let comparatives = ["faster", "slower"];
    Some(Compared { name, comparatives, direct: Some(itself), resolution: 0.000_5, always, if_asked, instead: None })
}

/// Amounts, compared as measured.
const fn amount_compared(name: &'static str, always: &'static [Goal], if_asked: &'static [Goal]) -> Compared {
    Compared { name, comparatives: ["less", "more"], direct: None, resolution: 0.0, always, if_asked, instead: None }
}

metrics! {
    /// Right responses a second.
    Rate = Entry {
        help: "Successful responses/s.",
        higher_is_better: true,
        // The ranking's first column has a name of its own for each kind of load.
        columns: Columns { overall: Some(0), points: true, curve: Some("goodput"), csv: Some("rate"), ..JSON },
        condition: Some("rate"),
        compared: Some(Compared {
            comparatives: ["slower", "faster"],
            direct: Some(Metric::Rate),
            ..amount_compared("capacity", &[Goal::Capacity, Goal::Overload, Goal::Search], &[])
        }),
        published: &["rate"],
        ..window("rate", "Rate", "Successful responses", Quantity::Rate, |window| window.rate)
    };
    /// Share of the requests that were due and had a successful response.
    SuccessfulShare = Entry {
        higher_is_better: true,
        compared: Some(Compared {
            // Where the load looks for the highest rate, a rate is a capacity.
            instead: Some(Metric::Rate),
            ..amount_compared("rate", &[], &[Goal::FixedRate])
        }),
        ..load("successful_share", "Share of requests answered rightly", Quantity::Share, &[], |load| {
            share_of_due(load, load.window.successful)
        })
    };
    /// Shortest latency.
    Min = time("min", "min", "Shortest latency", |times| times.min_us);
    /// Mean latency.
    Mean = time("mean", "mean", "Mean latency", |times| times.mean_us);
    /// Standard deviation of latency.
    Stdev = time("stdev", "stdev", "Standard deviation of latency", |times| times.stdev_us);
    /// Longest latency.
    Max = time("max", "max", "Longest latency", |times| times.max_us);
    /// Median latency.
    P50 = Entry {
        help: "Median latency, due to answered.",
        columns: Columns {
            ranking: Some(1), overall: Some(4), points: true, curve: Some("p50"), csv: Some("p50_us"), ..JSON
        },
        compared: time_compared("p50", Metric::P50, true),
        ..time("p50", "p50", "Median latency", |times| times.p50_us)
    };
    /// 75th percentile of latency.
    P75 = time("p75", "p75", "75th percentile of latency", |times| times.p75_us);
    /// 90th percentile of latency.
    P90 = Entry {
        help: "90 % were answered within.",
        columns: Columns { ranking: Some(9), csv: Some("p90_us"), ..JSON },
        compared: time_compared("p90", Metric::P90, false),
        ..time("p90", "p90", "90th percentile of latency", |times| times.p90_us)
    };
    /// 95th percentile of latency.
    P95 = time("p95", "p95", "95th percentile of latency", |times| times.p95_us);
    /// 99th percentile of latency.
    P99 = Entry {
        help: "99 % were answered within.",
        columns: Columns {
            ranking: Some(0), overall: Some(0), points: true, curve: Some("p99"), csv: Some("p99_us"), ..JSON
        },
        compared: time_compared("p99", Metric::P99, true),
        ..time("p99", "p99", "99th percentile of latency", |times| times.p99_us)
    };
    /// 99.9th percentile of latency.
    P999 = Entry {
        help: "99.9 % were answered within.",
        columns: Columns { ranking: Some(6), points: true, curve: Some("p999"), csv: Some("p999_us"), ..JSON },
        compared: time_compared("p999", Metric::P999, false),
        ..time("p999", "p99.9", "99.9th percentile of latency", |times| times.p999_us)
    };
    /// 99.99th percentile of latency.
    P9999 = time("p9999", "p99.99", "99.99th percentile of latency", |times| times.p9999_us);
    /// 99th percentile of the delay of a stream's messages.
    MessageDelay = window(
        "message_delay_p99",
        "Delay p99",
        "99th percentile of a message's delay, sent to arrived",
        Quantity::Latency,
        |window| Some(&window.load.messages.as_ref()?.delay).filter(|delay| delay.count > 0).map(|delay| delay.p99_us),
    );
    /// CPU time of the proxy for one response.
    Cpu = Entry {
        help: "CPU time of the proxy, user and system, for one response in the window.",
        columns: Columns {
            ranking: Some(3), overall: Some(2), cost: Some(0), points: true, csv: Some("cpu_us_per_request"), ..JSON
        },
        compared: Some(Compared {
            // The direct path has no proxy: what the origin needs shows the machine's speed.
            direct: Some(Metric::OriginCpu),
            ..amount_compared("cpu", &[Goal::Capacity, Goal::Overload, Goal::FixedRate], &[])
        }),
        ..window("cpu_us", "CPU", "CPU time of the proxy", Quantity::CpuTime, |w| w.all_cpu_us(Role::Proxy))
    };
    /// User part of it.
    CpuUser = window("cpu_user_us", "CPU, user", "User part of the proxy's CPU time", Quantity::CpuTime, |window| {
        window.cpu_us(Role::Proxy).map(|(user, _)| user)
    });
    /// System part of it.
    CpuSystem = window("cpu_system_us", "CPU, system", "System part of the proxy's CPU time", Quantity::CpuTime, |w| {
        w.cpu_us(Role::Proxy).map(|(_, system)| system)
    });
    /// Responses for each second of the proxy's CPU time: what one core would give.
    PerCore = Entry {
        help: "Responses for each second of the proxy's CPU time: what one core would give.",
        higher_is_better: true,
        columns: Columns { overall: Some(6), cost: Some(0), ..JSON },
        ..window("per_core", "Per core", "Responses per core and second", Quantity::Rate, |window| {
            window.all_cpu_us(Role::Proxy).map(|us| 1e6 / us).filter(|rate| rate.is_finite())
        })
    };
    /// The same whatever the CPU's speed: calculations that could have been made meanwhile.
    CpuWork = Entry {
        help: "CPU time of the proxy in calculations of a fixed length, for 1,000 responses: for machines, or days, of another speed.",
        columns: Columns { cost: Some(5), csv: Some("cpu_calculations_per_1000_requests"), ..JSON },
        ..window("cpu_calculations", "Proxy work", "Work of the proxy", Quantity::Work, |window| {
            Some(window.all_cpu_us(Role::Proxy)? * 1_000.0 / 1e6 * window.speed?)
        })
    };
    /// The rate whatever the CPU's speed: successful responses in the time of one calculation.
    RateBySpeed = Entry {
        help: "Successful responses in the time that one of the proxy's CPUs takes for a calculation of a fixed length.",
        higher_is_better: true,
        columns: Columns { cost: Some(6), csv: Some("rate_per_calculation"), ..JSON },
        ..window("rate_by_speed", "Rate by speed", "Responses by calculation", Quantity::BySpeed, |window| {
            Some(window.rate? / window.speed?)
        })
    };
    /// CPU time of the client for one response.
    ClientCpu = Entry {
        help: "CPU time of the client, weir's own, for one response.",
        columns: Columns { cost: Some(3), ..JSON },
        ..window("client_cpu_us", "Client CPU", "CPU time of the client", Quantity::CpuTime, |window| {
            window.all_cpu_us(Role::Client)
        })
    };
    /// CPU time of the origin for one response.
    OriginCpu = Entry {
        help: "CPU time of the origin for one response.",
        columns: Columns { cost: Some(2), ..JSON },
        ..window("origin_cpu_us", "Origin CPU", "CPU time of the origin", Quantity::CpuTime, |window| {
            window.all_cpu_us(Role::Origin)
        })
    };
    /// Largest resident set of the proxy.
    Rss = Entry {
        help: "Largest resident set of the proxy's processes.",
        columns: Columns { points: true, csv: Some("rss_bytes"), ..JSON },
        compared: Some(Compared {
            // Kernels count pages by CPU, and are some dozens of them off.
            resolution: 0.005,
            ..amount_compared("memory", &[Goal::Capacity, Goal::Overload, Goal::Search, Goal::FixedRate], &[])
        }),
        ..window("rss_bytes", "RSS", "Resident set of the proxy", Quantity::Memory, |window| {
            window.role(Role::Proxy).map(|usage| usage.rss_max_bytes as f64)
        })
    };
    /// Length of the window; of a load of so many requests the time that they took.
    Total = Entry {
        help: "From the first request to the last response.",
        published: &["total-time"],
        ..window("total_s", "Total", "Length of the window", Quantity::Duration, |window| Some(window.load.window_s))
    };
    /// Requests without a successful response that were sent, or whose connection could not be opened.
    Errors = Entry {
        condition: Some("errors"),
        ..load("error_count", "Errors", Quantity::Requests, &[], |load| Some(load.window.error_count() as f64))
    };
    /// Requests that were due and never sent.
    Unsent = Entry {
        condition: Some("unsent"),
        ..load("unsent", "Unsent requests", Quantity::Requests, &[], |load| Some(load.window.unsent as f64))
    };
    /// Share of the requests that were due and had no successful response. Those that were never sent are a queue, and no
    /// errors: an open load beyond capacity has many of them.
    ErrorShare = load("error_share", "Share of errors", Quantity::Share, &[], |load| {
        share_of_due(load, load.window.error_count())
    });
    /// Requests that had no response in time.
    Timeouts = load("timeouts", "Timeouts", Quantity::Requests, &["timeouts", "errors-timeout"], |load| {
        Some(load.window.errors.get(&ErrorKind::Timeout).copied().unwrap_or(0) as f64)
    });
    /// Requests for which no connection could be opened.
    ConnectErrors = load("connect_errors", "Failed connects", Quantity::Requests, &["errors-connect"], |load| {
        Some(errors(load, ErrorKind::is_connect))
    });
    /// Requests whose connection broke before the response was whole, or that got something else than one.
    ReadErrors = load("read_errors", "Broken responses", Quantity::Requests, &["errors-read"], |load| {
        let broke = |kind: ErrorKind| !kind.is_response() && !kind.is_connect() && kind != ErrorKind::Timeout;
        Some(errors(load, broke))
    });
    /// Responses of any kind.
    Responses = load("responses", "Responses", Quantity::Requests, &["requests"], |load| {
        Some(responses(load) as f64)
    });
    /// Responses whose status is an error.
    BadStatuses = load("bad_statuses", "Bad statuses", Quantity::Requests, &["server-errors", "non-2xx-3xx"], |load| {
        Some(load.window.statuses.iter().filter(|(status, _)| **status >= 400).map(|(_, n)| n).sum::<u64>() as f64)
    });
    /// Bytes received a second; under TLS as they came.
    Transfer = load("transfer", "Transfer", Quantity::Transfer, &["transfer-wire"], |load| {
        Some(load.window.bytes_in as f64 / load.window_s.max(1e-6))
    });
    /// Bytes received a second after decryption, which is what the common tools count.
    PlaintextTransfer = load("plaintext_transfer", "Transfer (plaintext)", Quantity::Transfer, &["transfer"], |load| {
        Some(load.window.plaintext_in as f64 / load.window_s.max(1e-6))
    });
    /// Bytes received in the window, after decryption.
    BytesIn = load("bytes_in", "Bytes received", Quantity::Memory, &["bytes-in"], |load| {
        Some(load.window.plaintext_in as f64)
    });
    /// Bytes of all bodies.
    BodyBytes = load("body_bytes", "Bytes of bodies", Quantity::Memory, &["body-bytes"], |load| {
        Some(load.window.body_bytes as f64)
    });
    /// Bytes of a body.
    BodySize = load("body_size", "Bytes of a body", Quantity::Memory, &["body-size"], |load| {
        Some(load.window.body_bytes as f64 / responses(load).max(1) as f64)
    });
    /// Mean time from sent to the first byte; to the whole response where first bytes were not timed.
    Wait = load("wait_us", "Mean wait", Quantity::Latency, &["wait-mean"], |load| Some(waits(load).mean_us));
    /// Shortest such time.
    WaitMin = load("wait_min_us", "Shortest wait", Quantity::Latency, &["wait-min"], |load| Some(waits(load).min_us));
    /// Longest such time.
    WaitMax = load("wait_max_us", "Longest wait", Quantity::Latency, &["wait-max"], |load| Some(waits(load).max_us));
    /// Mean time from the first byte to the whole response.
    Read = load("read_us", "Mean read", Quantity::Latency, &["read-mean"], |load| {
        Some((load.service.mean_us - Metric::Wait.value(&Window::of_load(load))?).max(0.0))
    });
    /// Mean time to connect, over all requests: one on an open connection needed none.
    Dial = load("dial_us", "Mean dial", Quantity::Latency, &["dial-mean"], |load| {
        let requests = load.service.count.max(1);
        Some(load.connect.mean_us * load.connect.count.min(requests) as f64 / requests as f64)
    });
}

fn responses(load: &LoadResult) -> u64 {
    load.window.statuses.values().sum()
}

/// Requests of the window that failed in those ways.
fn errors(load: &LoadResult, wanted: impl Fn(ErrorKind) -> bool) -> f64 {
    load.window.errors.iter().filter(|(kind, _)| wanted(**kind)).map(|(_, n)| n).sum::<u64>() as f64
}

/// Times from sent to the first byte; to the whole response where first bytes were not timed.
fn waits(load: &LoadResult) -> &Quantiles {
    if load.first_byte.count > 0 { &load.first_byte } else { &load.service }
}

fn share_of_due(load: &LoadResult, requests: u64) -> Option<f64> {
    (load.window.due > 0).then(|| requests as f64 / load.window.due as f64)
}

impl Metric {
    /// Its number in one window.
    pub fn value(self, window: &Window<'_>) -> Option<f64> {
        match self.entry().source {
            Source::Times(of) => Some(of(&window.load.latency)),
            Source::Load(of) => of(window.load),
            Source::Window(of) => of(window),
        }
    }

    /// The metrics that `weir compare` compares, and how.
    pub fn compared() -> impl Iterator<Item = (Metric, &'static Compared)> {
        Metric::ALL.iter().filter_map(|metric| Some((*metric, metric.entry().compared.as_ref()?)))
    }

    /// Its name in `--fail-if`, and in the `--json` of `weir compare`.
    pub fn compared_name(self) -> &'static str {
        self.entry().compared.map_or(self.key(), |compared| compared.name)
    }

    /// Key in `--json`.
    pub fn key(self) -> &'static str {
        self.entry().key
    }

    /// Whether a larger number is better.
    pub fn higher_is_better(self) -> bool {
        self.entry().higher_is_better
    }

    /// Whether it is a number of a distribution of times.
    pub fn is_time(self) -> bool {
        matches!(self.entry().source, Source::Times(_))
    }

    /// A number for people, with the unit that fits it: `45,100/s`, `1.20 ms`.
    pub fn human(self, value: f64) -> String {
        let unit = self.entry().quantity.unit(value);
        let name = unit.name.trim_start_matches("requests").trim_end_matches("/request");
        format!("{}{}{name}", short(value / unit.size), if name.starts_with('/') { "" } else { " " })
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
            threads_max: Some(0),
            processes_max: Some(0),
            switches: Some((0, 0)),
            ..RoleUsage::default()
        }
    }

    #[test]
    fn responses_of_the_window_share_its_cpu_time() {
        let window = Counts {
            successful: 1_000,
            successful_in_window: 80,
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
        let window = Window { rate: None, load: &load, origin: None, usage: &used, speed: Some(500.0) };
        assert_eq!(window.cpu_us(Role::Proxy), Some((30.0, 10.0)));
        assert_eq!(
            [Metric::Cpu, Metric::OriginCpu, Metric::ClientCpu, Metric::CpuWork].map(|m| m.value(&window)),
            [Some(40.0), Some(1.0), None, Some(20.0)]
        );
        let fast = Window { rate: Some(1_000.0), ..window };
        assert_eq!(Metric::RateBySpeed.value(&fast), Some(2.0));
        assert_eq!(Metric::RateBySpeed.value(&Window { speed: None, ..fast }), None, "nobody knows how fast it was");
        assert_eq!(Window { usage: &used[..1], ..window }.cpu_us(Role::Proxy), None, "the direct path has no proxy");
        assert_eq!(Window { load: &LoadResult::default(), ..window }.cpu_us(Role::Proxy), None, "no response");
    }

    #[test]
    fn every_name_means_one_metric() {
        let unique = |names: Vec<&str>| {
            let once: std::collections::BTreeSet<&str> = names.iter().copied().collect();
            assert_eq!(once.len(), names.len(), "{names:?}");
        };
        let entries = || Metric::ALL.iter().map(|metric| metric.entry());
        unique(entries().map(|entry| entry.key).collect());
        unique(entries().filter_map(|entry| entry.columns.csv).collect());
        unique(entries().filter_map(|entry| entry.columns.curve).collect());
        unique(entries().filter_map(|entry| entry.condition).collect());
        unique(entries().filter_map(|entry| Some(entry.compared?.name)).collect());
        unique(entries().flat_map(|entry| entry.published.iter().copied()).collect());
    }

    #[test]
    fn numbers_are_shown_in_units_that_fit() {
        let shown =
            [(Metric::Rate, 45_123.0), (Metric::P99, 1_234.0), (Metric::SuccessfulShare, 0.5), (Metric::Cpu, 28.0)];
        let shown = shown.map(|(metric, value)| metric.human(value));
        assert_eq!(shown, ["45,100/s", "1.23 ms", "50.0 %", "28.0 \u{b5}s"]);
    }
}
