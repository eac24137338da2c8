//! Finds the number of a trial that stands beside a published figure: one of the window, of the product's processes, of the proxy's machine
//! as `top` shows it, of a mark of a histogram, or at a point of a curve.

use weir_model::metric::{Metric, Quantity, Window};
use weir_model::owners::{CpuUse, Owners, RoleProcess};
use weir_model::record::{ResourceSecond, Role};
use weir_model::text::counted;
use weir_report::formats::thread_rates;
use weir_report::run::{Run, Trial};
use weir_report::series;

use crate::figures::{Figure, FigureKind, Variant};
use crate::layout::{Draw, holds};
use crate::points::Published;
use crate::run_cases::{Context, RunCase, count_between};

/// Where the numbers beside a figure are.
pub(super) struct Numbers<'c, 'a> {
    pub context: &'c Context<'a>,
    pub case: &'c RunCase<'a>,
    pub figure: &'a Figure,
    /// The metric that ours is taken of.
    pub metric: &'a str,
}

impl Numbers<'_, '_> {
    /// The number of a trial, in the base unit.
    pub fn of_trial(&self, trial: &Trial) -> Option<f64> {
        let variant = Variant::parse(&self.figure.variant);
        match variant {
            Variant::Process(_) => self.of_process(trial),
            Variant::Connections(_) | Variant::Rate(_) => self.of_point(trial),
            _ if self.metric.starts_with("histogram-") => self.of_mark(trial, variant),
            _ => match self.metric {
                "connections-max" => most(trial.measurement.points.iter().map(|point| f64::from(point.connections))),
                "rate-max" => most(trial.measurement.points.iter().filter_map(|point| point.offered_rate)),
                metric => self.context.cases.value(trial, variant, metric),
            },
        }
    }

    /// The requests of the trial's window that were sent, by which counts are divided.
    pub fn requests(&self, trial: &Trial) -> Option<f64> {
        let window = Variant::parse(&self.figure.variant).window(&trial.measurement)?;
        Some(window.load.window.sent as f64).filter(|sent| *sent > 0.0)
    }

    /// Why no trial has a number.
    pub fn why_none(&self) -> String {
        match Variant::parse(&self.figure.variant) {
            Variant::Process(_) => "fewer processes of the product used the CPU here".to_string(),
            Variant::Connections(_) | Variant::Rate(_) => "this run has no such point".to_string(),
            Variant::Round(_) => format!("this run has {}", counted(u64::from(self.case.rounds()), "round")),
            _ if is_of_cpu(self.metric) => "the proxy was given fewer CPUs here".to_string(),
            _ => "this run did not record it".to_string(),
        }
    }

    /// Requests that took as long as from the document's mark before to this one.
    fn of_mark(&self, trial: &Trial, variant: Variant) -> Option<f64> {
        let mark = |figure: &Figure| figure.metric.strip_prefix("histogram-")?.parse::<f64>().ok();
        let Figure { case, product, .. } = self.figure;
        let own =
            |figure: &&Figure| figure.kind == FigureKind::Result && figure.case == *case && figure.product == *product;
        let marks = self.context.source.figures.iter().filter(own).filter_map(mark);
        let to = mark(self.figure)?;
        let before = marks.filter(|other| *other < to).reduce(f64::max);
        // The first mark is the fastest request, which the document prints with one digit more.
        let first = self.context.source.result(case, product, "", "latency-min").map_or(to, |figure| figure.value);
        let end = |mark: Option<f64>| mark.map(|mark| mark.max(first) * 1e6);
        let histogram = self.context.cases.histogram(trial, variant)?;
        let up_to = |us: f64| count_between(&histogram, 0.0, us);
        Some((up_to(end(Some(to))?) - end(before).map_or(0, up_to)) as f64)
    }

    /// At a point of the document's curve that is the same share of the most.
    fn of_point(&self, trial: &Trial) -> Option<f64> {
        let layouts = self.context.source.layout.pictures.iter().filter(|layout| layout.draw == Draw::Points);
        let curves = layouts.filter(|layout| holds(&layout.cases, &self.figure.case));
        let curves = curves.filter_map(|layout| Published::of(self.context, layout)).next()?;
        let variant = curves.variant_at(trial, &self.figure.variant)?;
        self.context.cases.value(trial, variant, self.metric)
    }

    /// Of the process that stands at the same place among the busiest of the product's.
    fn of_process(&self, trial: &Trial) -> Option<f64> {
        let Figure { case, product, metric, variant, .. } = self.figure;
        let listing = self.context.source.results(metric).filter(|f| f.case == *case && f.product == *product);
        let listed: Vec<&str> = listing.map(|figure| figure.variant.as_str()).collect();
        let place = listed.iter().position(|other| other == variant)?;
        let mut own: Vec<&RoleProcess> = proxies(&trial.measurement.owners).collect();
        own.sort_by(|a, b| b.used.total_cmp(&a.used));
        let process = own.get(place)?;
        Some(match self.metric {
            "cpu" => process.used,
            "cpu-time" => process.cpu_s * 1e6,
            "priority" => process.priority as f64,
            "nice" => process.nice as f64,
            "virtual-memory" => process.virtual_bytes as f64,
            "resident-memory" => process.resident_bytes as f64,
            "shared-memory" => process.shared_bytes as f64,
            "memory-share" => process.resident_bytes as f64 / memory_bytes(self.context.cases.run)?,
            _ => return None,
        })
    }
}

/// A process that used less of a CPU is shown as idle by top.
const IDLE: f64 = 0.001;

/// The product's processes that used the CPU.
fn proxies(owners: &[Owners]) -> impl Iterator<Item = &RoleProcess> {
    let roles = owners.iter().flat_map(|owners| &owners.roles).filter(|role| role.role == Role::Proxy);
    roles.flat_map(|role| &role.processes).filter(|process| process.used >= IDLE)
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

/// The metrics by which products are compared, in the order in which they are shown.
pub(crate) const METRICS: [Metric; 3] = [Metric::Rate, Metric::P99, Metric::Mean];

/// The name of a metric in the files.
pub(crate) fn metric_name(metric: Metric) -> String {
    let entry = metric.entry();
    let latency = || format!("latency-{}", entry.condition.unwrap_or_default());
    entry.published.first().map_or_else(latency, |name| (*name).to_string())
}

/// The metric of that name in the files; `None` for one that weir does not measure, and for percentiles that a record
/// does not hold (see [`percentile`]).
fn metric(name: &str) -> Option<Metric> {
    let mut all = Metric::ALL.iter().copied();
    match name.strip_prefix("latency-") {
        Some(part) => all.find(|metric| metric.is_time() && metric.entry().condition == Some(part)),
        None => all.find(|metric| metric.entry().published.contains(&name)),
    }
}

/// A metric in a heading.
pub(crate) fn heading(metric: Metric) -> &'static str {
    if metric.is_time() { metric.entry().name } else { metric.entry().title }
}

/// A metric of that name as the label of an axis.
pub(crate) fn axis_label(name: &str) -> &str {
    metric(name).map_or(name, |metric| metric.entry().name)
}

/// The size of a published unit in microseconds, bytes, bytes a second, as a share, or as a count; `None` for units of which
/// weir measures nothing.
pub(crate) fn unit_size(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" => 1e6,
        "ms" => 1e3,
        "%" => 0.01,
        "KiB" | "KiB/s" => 1_024.0,
        "MiB" | "MiB/s" => 1_048_576.0,
        "B" | "B/s" | "requests/s" | "requests" | "responses" | "errors" | "connections" => 1.0,
        "load" | "tasks" | "priority" | "nice" => 1.0,
        _ => return None,
    })
}

/// The measured value of a metric, in microseconds, bytes, bytes a second, or as a count; `None` when there is none.
pub(super) fn value_in_window(name: &str, window: &Window<'_>) -> Option<f64> {
    if let Some(status) = name.strip_prefix("status-") {
        return Some(window.load.window.statuses.get(&status.parse().ok()?).copied().unwrap_or(0) as f64);
    }
    if let Some(part) = name.strip_prefix("thread-rate-") {
        let rates = thread_rates(window.load)?;
        return match part {
            "mean" => Some(rates.mean),
            "stdev" => Some(rates.stdev),
            "max" => Some(rates.max),
            "within-stdev" => Some(rates.within_stdev),
            _ => None,
        };
    }
    let metric = metric(name)?;
    if metric.is_time() && window.load.latency.count == 0 {
        return None;
    }
    let unit = if metric.entry().quantity == Quantity::Duration { 1e6 } else { 1.0 };
    Some(metric.value(window)? * unit)
}

/// The quantile of a percentile metric. A histogram has it even where a record does not.
pub(super) fn percentile(metric: &str) -> Option<f64> {
    let percent: f64 = metric.strip_prefix("latency-p")?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// `who` of the rows of the proxy's machine.
const MACHINE: &str = "host";

/// A metric of the machine, in bytes, as a share or as a count; `None` for other metrics, and for what was not recorded.
pub(super) fn value_of_machine(run: &Run, trial: &Trial, metric: &str) -> Option<f64> {
    if let Some((place, state)) = cpu_state(metric) {
        return share_of_state(nth_cpu(&trial.measurement.owners, place)?, state);
    }
    if metric == "memory-total" {
        return memory_bytes(run);
    }
    let is_sampled = ["load-", "tasks-", "memory-", "swap-"].iter().any(|group| metric.starts_with(group));
    if !is_sampled {
        return None;
    }
    let rows = series::resource_seconds(run, trial).ok()?;
    let host: Vec<&ResourceSecond> = rows.iter().filter(|row| row.who == MACHINE).collect();
    let last = *host.last()?;
    let total = || memory_bytes(run).map(|bytes| bytes as u64);
    let bytes = match metric {
        "load-1m" => return last.load_1m,
        "load-5m" => return last.load_5m,
        "load-15m" => return last.load_15m,
        "tasks-running" => return mean(host.iter().filter_map(|row| row.threads_running)),
        "tasks-total" => last.processes,
        "memory-free" => last.memory_free_bytes,
        "memory-cache" => last.memory_cache_bytes,
        // As top counts it: what is neither free nor a cache.
        "memory-used" => total()?.checked_sub(last.memory_free_bytes?)?.checked_sub(last.memory_cache_bytes?),
        "memory-avail" => total()?.checked_sub(last.rss_bytes?),
        "swap-total" => last.swap_total_bytes,
        "swap-free" => last.swap_free_bytes,
        "swap-used" => last.swap_total_bytes?.checked_sub(last.swap_free_bytes?),
        _ => None,
    };
    bytes.map(|bytes| bytes as f64)
}

/// Memory of the proxy's machine.
pub(super) fn memory_bytes(run: &Run) -> Option<f64> {
    run.environment.as_ref().map(|environment| environment.memory_bytes as f64).filter(|bytes| *bytes > 0.0)
}

/// Whether a metric is of one of the proxy's CPUs.
pub(super) fn is_of_cpu(metric: &str) -> bool {
    cpu_state(metric).is_some()
}

/// Of `cpu2-idle` the place of the CPU among those that the proxy was given, and the state.
fn cpu_state(metric: &str) -> Option<(usize, &str)> {
    let (place, state) = metric.strip_prefix("cpu")?.split_once('-')?;
    Some((place.parse().ok()?, state))
}

fn nth_cpu(owners: &[Owners], place: usize) -> Option<&CpuUse> {
    owners.iter().find_map(|owners| {
        let role = owners.roles.iter().find(|role| role.role == Role::Proxy)?;
        let cpu = role.cpus.get(place)?;
        owners.cpus.iter().find(|of| of.cpu == *cpu)
    })
}

fn share_of_state(cpu: &CpuUse, state: &str) -> Option<f64> {
    let share = match state {
        "user" => cpu.user?,
        "nice" => cpu.nice?,
        "system" => cpu.processes? - cpu.user? - cpu.nice?,
        "idle" => cpu.idle? - cpu.iowait?,
        "iowait" => cpu.iowait?,
        "irq" => cpu.irq? - cpu.softirq?,
        "softirq" => cpu.softirq?,
        "steal" => cpu.steal?,
        _ => return None,
    };
    // A difference of rounded shares may be a little below nothing.
    Some(share.max(0.0))
}

fn mean(values: impl Iterator<Item = u64>) -> Option<f64> {
    let values: Vec<u64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64 / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::load::{Counts, ErrorKind, LoadResult, Quantiles};

    fn load() -> LoadResult {
        LoadResult {
            window_s: 2.0,
            rate: 45.0,
            window: Counts {
                due: 100,
                plaintext_in: 5_000,
                bytes_in: 6_000,
                body_bytes: 2_000,
                statuses: [(200, 90), (502, 10)].into(),
                errors: [
                    (ErrorKind::BadStatus, 10),
                    (ErrorKind::Timeout, 2),
                    (ErrorKind::ConnectRefused, 3),
                    (ErrorKind::ClosedEarly, 1),
                ]
                .into(),
                ..Counts::default()
            },
            latency: Quantiles { count: 100, p99_us: 9.0, mean_us: 3.0, ..Quantiles::default() },
            service: Quantiles { count: 100, mean_us: 3.0, ..Quantiles::default() },
            first_byte: Quantiles { count: 100, mean_us: 2.0, min_us: 1.0, max_us: 6.0, ..Quantiles::default() },
            threads: 2,
            tenths: vec![4, 6],
            connect: Quantiles { count: 10, mean_us: 50.0, ..Quantiles::default() },
            ..LoadResult::default()
        }
    }

    #[test]
    fn metrics_are_read_off_a_load() {
        let of = |metric: &str| value_in_window(metric, &Window::of_load(&load()));
        for (metric, expected) in [
            ("rate", 45.0),
            ("transfer", 2_500.0),
            ("total-time", 2e6),
            ("body-size", 20.0),
            ("status-502", 10.0),
            ("status-404", 0.0),
            ("non-2xx-3xx", 10.0),
            ("timeouts", 2.0),
            ("latency-p99", 9.0),
            ("wait-mean", 2.0),
            ("read-mean", 1.0),
            ("dial-mean", 5.0),
            ("wait-min", 1.0),
            ("wait-max", 6.0),
            ("bytes-in", 5_000.0),
            ("errors-connect", 3.0),
            ("errors-read", 1.0),
            ("thread-rate-mean", 25.0),
            ("thread-rate-max", 30.0),
            ("thread-rate-within-stdev", 1.0),
        ] {
            assert_eq!(of(metric), Some(expected), "{metric}");
        }
        assert_eq!([of("load-1m"), of("dns-mean"), of("latency-p10"), of("status-x")], [None; 4]);
        assert_eq!(
            value_in_window("latency-mean", &Window::of_load(&LoadResult::default())),
            None,
            "no request, no latency"
        );
        assert_eq!(percentile("latency-p10"), Some(0.1));
        assert_eq!([percentile("latency-mean"), percentile("latency-p400"), percentile("rate")], [None; 3]);
        assert_eq!(Metric::ErrorShare.value(&Window::of_load(&load())), Some(0.16));
    }

    #[test]
    fn every_compared_metric_is_measured() {
        assert!(
            METRICS.iter().all(|metric| value_in_window(&metric_name(*metric), &Window::of_load(&load())).is_some())
        );
        assert_eq!((unit_size("ms"), unit_size("MiB/s"), unit_size("clients")), (Some(1e3), Some(1_048_576.0), None));
    }
}

#[cfg(test)]
mod machine_tests {
    use super::*;
    use weir_model::owners::RoleCpus;

    #[test]
    fn states_are_those_of_the_cpus_that_the_proxy_was_given() {
        let all = |processes| CpuUse {
            processes: Some(processes),
            user: Some(0.2),
            nice: Some(0.1),
            idle: Some(0.3),
            iowait: Some(0.05),
            irq: Some(0.04),
            softirq: Some(0.03),
            steal: Some(0.01),
            ..CpuUse::default()
        };
        let cpus =
            vec![CpuUse { cpu: 3, ..all(0.5) }, CpuUse { cpu: 5, ..all(0.65) }, CpuUse { cpu: 6, ..CpuUse::default() }];
        let role = |role, cpus| RoleCpus { role, cpus, ..RoleCpus::default() };
        let roles = vec![role(Role::Client, vec![3]), role(Role::Proxy, vec![5, 6])];
        let owners = [Owners { cpus, roles, ..Owners::default() }];
        let of = |metric: &str| {
            let (place, state) = cpu_state(metric)?;
            share_of_state(nth_cpu(&owners, place)?, state).map(|share| (share * 100.0).round())
        };
        let states = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
        let seen = states.map(|state| of(&format!("cpu0-{state}")));
        assert_eq!(seen, [20.0, 10.0, 35.0, 25.0, 5.0, 1.0, 3.0, 1.0].map(Some));
        assert_eq!([of("cpu1-user"), of("cpu2-user"), of("cpu0-x"), of("cpu-time"), of("cpu")], [None; 5]);
        assert!(is_of_cpu("cpu3-idle") && !is_of_cpu("cpu-time"));
    }
}
