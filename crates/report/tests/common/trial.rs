//! One trial's folder: record, histograms, series, the product's files.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use weir_model::load::{Counts, ErrorKind, LOAD_SCHEMA, LoadResult, LoadSecond, Quantiles};
use weir_model::record::{CaseId, MEASUREMENT_SCHEMA, Measurement, ResourceSecond, Role, RoleUsage, Verdict};
use weir_model::speed::{CpuSpeed, HostSpeed, Speed};
use weir_model::suite::{Entry, Load, LoadKind, Protocol, RateSpec, Workload};

use super::WINDOW_S;
use super::random::Random;

/// What a product is like.
#[derive(Debug, Clone, Copy)]
pub struct Nature {
    /// Requests a second at most.
    pub rate: f64,
    /// Median latency.
    pub p50_us: f64,
    /// Standard deviation of the latency's logarithm.
    pub spread: f64,
    /// CPU time a response.
    pub cpu_us: f64,
    /// Resident set.
    pub rss_mib: f64,
}

/// Samples a second: enough for p99.9, few enough for a quick test.
const SAMPLES: u64 = 1_500;

const START_MS: u64 = 1_767_322_800_000;

/// Writes everything of a trial but `measurement.json`, which the caller may spoil first.
pub fn write_trial(
    run: &Path,
    number: u32,
    block: u32,
    entry: &Entry,
    workload: &Workload,
    load: &Load,
    nature: &Nature,
) -> Measurement {
    let case = CaseId {
        product: entry.product.clone(),
        profile: entry.profile.clone(),
        workload: workload.name.clone(),
        load: load.name.clone(),
    };
    let folder = run.join("trials").join(format!("{number}-{}", case.slug()));
    fs::create_dir_all(folder.join("product")).unwrap();
    let mut random = Random(u64::from(number) * 1_000_003);
    let heavy = if workload.name == "json" { 1.3 } else { 1.0 };
    let drift = 1.0 + 0.012 * random.normal();
    let offered = match &load.kind {
        LoadKind::Open { rate: RateSpec::Fixed(rate), .. } => Some(*rate),
        _ => None,
    };
    let rate = offered.unwrap_or(nature.rate / heavy * drift);
    let p50 = nature.p50_us * heavy / drift * if offered.is_some() { 0.55 } else { 1.0 };
    let seconds = record(&folder, &mut random, rate, p50, nature.spread);
    write_csv(&folder.join("load.csv"), &seconds.series);
    write_csv(&folder.join("resources.csv"), &resources(&mut random, rate, nature, entry.product != "direct"));
    if entry.product != "direct" {
        let config = format!("# rendered for {}\nworkers 1\nupstream 127.0.0.1:{}\nkeepalive 64\n", case.slug(), 9_000);
        fs::write(folder.join("product/proxy.conf"), config).unwrap();
        fs::write(folder.join("product/output.log"), "started\n").unwrap();
    }
    measurement(number, block, case, nature, &seconds, rate, offered)
}

struct Seconds {
    series: Vec<LoadSecond>,
    latency: Quantiles,
}

/// Both CPUs calculate 1,500 times a second and a little faster in each block.
fn speed(block: u32) -> HostSpeed {
    let by_cpu = 1_490.0 + 10.0 * f64::from(block);
    let speed = Speed { by_cpu, by_wall: by_cpu };
    let cpus = [0, 1].map(|cpu| CpuSpeed { cpu, alone: speed, together: speed });
    let roles = [(Role::Client, vec![0]), (Role::Proxy, vec![1]), (Role::Origin, vec![0])];
    HostSpeed { host: "local".to_owned(), roles: roles.into(), cpus: cpus.into() }
}

/// Draws latencies, writes them as the load generator does, and sums them up.
fn record(folder: &Path, random: &mut Random, rate: f64, p50_us: f64, spread: f64) -> Seconds {
    let mut all = Histogram::<u64>::new(3).unwrap();
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("Written by weir. Values are nanoseconds; the maximum in each line is in milliseconds.")
        .with_base_time(UNIX_EPOCH + Duration::from_millis(START_MS))
        .with_max_value_divisor(1e6);
    let mut log = builder.begin_log_with(&mut bytes, &mut serializer).unwrap();
    let mut series = Vec::new();
    for second in 0..WINDOW_S {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for _ in 0..SAMPLES {
            let tail = if random.share() < 0.002 { 6.0 } else { 1.0 };
            let ns = p50_us * 1_000.0 * (spread * random.normal()).exp() * tail;
            histogram.record(ns as u64).unwrap();
        }
        let (at, length) = (Duration::from_secs(u64::from(second)), Duration::from_secs(1));
        log.write_histogram(&histogram, at, length, Tag::new("latency")).unwrap();
        let us = |q: f64| histogram.value_at_quantile(q) as f64 / 1_000.0;
        let per_second = rate as u64;
        series.push(LoadSecond {
            second,
            length_s: 1.0,
            due: per_second,
            sent: per_second,
            successful: per_second,
            bytes_in: per_second * 200,
            p50_us: us(0.5),
            p99_us: us(0.99),
            max_us: us(1.0),
            lag_max_us: 40.0,
            connections_open: Some(64),
            ..LoadSecond::default()
        });
        all.add(&histogram).unwrap();
    }
    drop(log);
    fs::write(folder.join("latency.hlog"), bytes).unwrap();
    Seconds { series, latency: quantiles(&all) }
}

fn quantiles(histogram: &Histogram<u64>) -> Quantiles {
    let us = |q: f64| histogram.value_at_quantile(q) as f64 / 1_000.0;
    Quantiles {
        count: histogram.len(),
        min_us: us(0.0),
        mean_us: histogram.mean() / 1_000.0,
        stdev_us: histogram.stdev() / 1_000.0,
        p50_us: us(0.5),
        p75_us: us(0.75),
        p90_us: us(0.9),
        p95_us: us(0.95),
        p99_us: us(0.99),
        p999_us: us(0.999),
        p9999_us: us(0.9999),
        max_us: us(1.0),
    }
}

fn resources(random: &mut Random, rate: f64, nature: &Nature, proxied: bool) -> Vec<ResourceSecond> {
    let mut rows = Vec::new();
    // From before the window to after it: only the window is drawn.
    for second in 0..WINDOW_S + 4 {
        for who in ["client", "proxy", "origin", "host"] {
            if who == "proxy" && !proxied {
                continue;
            }
            let cores = match who {
                "proxy" => rate * nature.cpu_us / 1e6,
                "client" => rate * 9e-6,
                _ => rate * 7e-6,
            };
            let cores = cores * (1.0 + 0.03 * random.normal());
            let mib = if who == "proxy" { nature.rss_mib } else { 20.0 };
            rows.push(ResourceSecond {
                time_ms: START_MS - 2_000 + 1_000 * u64::from(second),
                length_s: 1.0,
                who: who.to_string(),
                cpu_user: Some(cores * 0.4),
                cpu_system: Some(cores * 0.6),
                rss_bytes: Some(((mib + 0.3 * f64::from(second)) * 1_048_576.0) as u64),
                threads: Some(2),
                tcp_established: (who == "host").then_some(500),
                connections_open: match who {
                    "client" => Some(64),
                    "proxy" => Some(72),
                    "origin" => Some(8),
                    _ => None,
                },
                load_1m: (who == "host").then_some(1.5),
                load_5m: (who == "host").then_some(1.0),
                load_15m: (who == "host").then_some(0.5),
                memory_free_bytes: (who == "host").then_some(3 << 30),
                memory_cache_bytes: (who == "host").then_some(4 << 30),
                threads_running: (who == "host").then_some(u64::from(second % 2) * 6),
                ..ResourceSecond::default()
            });
        }
    }
    rows
}

fn measurement(
    number: u32,
    block: u32,
    case: CaseId,
    nature: &Nature,
    seconds: &Seconds,
    rate: f64,
    offered: Option<f64>,
) -> Measurement {
    let requests = (rate * f64::from(WINDOW_S)) as u64;
    let errors = if case.product == "cedar" { [(ErrorKind::Timeout, 12)].into() } else { Default::default() };
    let window = Counts {
        due: requests,
        sent: requests,
        successful: requests,
        successful_in_window: requests,
        errors,
        statuses: [(200, requests)].into(),
        ..Counts::default()
    };
    let cpu = requests as f64 * nature.cpu_us;
    let usage = RoleUsage {
        cpu_user_us: (cpu * 0.4) as u64,
        cpu_system_us: (cpu * 0.6) as u64,
        cores_busy: cpu / 1e6 / f64::from(WINDOW_S),
        rss_max_bytes: (nature.rss_mib * 1_048_576.0) as u64,
        threads_max: Some(2),
        processes_max: Some(1),
        switches: Some((1_000, 100)),
        ..RoleUsage::default()
    };
    let proxied = case.product != "direct";
    Measurement {
        schema: MEASUREMENT_SCHEMA,
        trial: number,
        block,
        protocol: Protocol::Http11,
        started: "2026-01-02T03:05:00Z".to_string(),
        took_s: 14.0,
        product_version: proxied.then(|| "2.4.1".to_string()),
        product_sha256: proxied.then(|| "9f".repeat(32)),
        cores: 1,
        load: Some(LoadResult {
            schema: LOAD_SCHEMA,
            driver: "io_uring".to_string(),
            threads: 2,
            window_start_ms: START_MS,
            window_s: f64::from(WINDOW_S),
            offered_rate: offered,
            total: window.clone(),
            window,
            rate,
            body_bytes_per_s: rate * 64.0,
            latency: seconds.latency.clone(),
            service: seconds.latency.clone(),
            tenths: seconds.series.iter().flat_map(|second| [second.successful / 10; 10]).collect(),
            series: seconds.series.clone(),
            thread_busy: vec![0.4, 0.4],
            cpu_us: (1, 1),
            ..LoadResult::default()
        }),
        usage: if proxied { vec![usage] } else { Vec::new() },
        speed: vec![vec![speed(block)]; 2],
        case,
        ..Measurement::default()
    }
}

fn write_csv<T: serde::Serialize>(file: &Path, rows: &[T]) {
    let mut writer = csv::Writer::from_path(file).unwrap();
    for row in rows {
        writer.serialize(row).unwrap();
    }
    writer.flush().unwrap();
}
