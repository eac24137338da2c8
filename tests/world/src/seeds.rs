//! Random runs: a seed makes suite, product, misbehaviour, lost hosts, frozen processes, a full disk, clock steps and a crash after any
//! step that changes the run's folder. Whatever happens, certain things hold, and [`run_seed`] says which do not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_lab::journal::JournalError;
use weir_model::load::Counts;
use weir_model::record::{Measurement, Severity, Verdict};
use weir_net::sim::{Link, Split};

use crate::quantiles::{by_hand, numbers};
use crate::scenario::{Disk, Scenario, product, suite};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

/// Steps in which a run of a few trials changes its folder, about.
const STEPS: u64 = 60;

/// A misbehaviour that a short window shows, the check that has to name it, and a word of it.
const FAULTS: [(&str, &str); 10] = [
    ("cache", "conservation-requests"),
    ("forge", "conservation-requests"),
    ("strip", "conservation-requests"),
    ("mirror", "conservation-requests"),
    ("retry=5", "conservation-requests"),
    ("corrupt=10", "wrong-responses"),
    ("refuse=10", "refusals"),
    ("reset=10", "refusals"),
    ("truncate=10", "wrong-responses"),
    ("method=PUT", "altered-requests"),
];

/// What happens to a run from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Disturbance {
    Nothing,
    /// The process is gone from this step on; it is started again.
    Crash(u64),
    /// The disk is full from this step on, and has room when the run is continued.
    FullDisk(u64),
    /// One of the hosts is lost at this time.
    LostHost(usize, u64),
    /// The processes with this name are killed at this time.
    Killed(&'static str, u64),
    /// They stand still for so long.
    Frozen(&'static str, u64, Duration),
    /// The wall clock jumps by so much.
    ClockStep(u64, i64),
}

impl Disturbance {
    /// Nothing happens to what is measured.
    fn spares_measurements(self) -> bool {
        matches!(self, Disturbance::Nothing | Disturbance::Crash(_) | Disturbance::ClockStep(..))
    }
}

/// Requests that are due at equal distances: how many a second, and when those of the window are, since the load's start.
#[derive(Debug, Clone, Copy)]
struct EvenLoad {
    rate: u64,
    warmup: u64,
    window: u64,
}

/// What a seed makes.
#[derive(Debug)]
struct Case {
    hosts: usize,
    suite: String,
    /// Of an open load of HTTP/1.1 whose requests are due at equal distances.
    even: Option<EvenLoad>,
    fault: Option<(&'static str, &'static str)>,
    service_us: u64,
    disturbance: Disturbance,
    link: Link,
}

impl Case {
    fn new(seed: u64) -> Case {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let connections = random.random_range(1..=6);
        let rate = random.random_range(150..=250);
        let kind = match random.random_range(0..6) {
            0 => "kind = \"closed\"".to_owned(),
            1 => format!("kind = \"open\"\nrate = {rate}\narrivals = \"poisson\""),
            _ => format!("kind = \"open\"\nrate = {rate}"),
        };
        let warmup = random.random_range(0..=300);
        let window = random.random_range(1_000..=1_300);
        let load = format!(
            "{kind}\nconnections = {connections}\nwarmup = \"{warmup}ms\"\nduration = \"{window}ms\"\ntimeout = \"1s\""
        );
        let blocks = random.random_range(1..=2);
        // The simulated product speaks HTTP/1.1; what goes to the origin directly may be anything.
        let (products, workload) =
            *[("[\"direct\", \"simulated\"]", ""), ("[\"simulated\"]", ""), ("[\"direct\"]", "protocol = \"h2c\"")]
                .choose(random)
                .expect("one");
        let head =
            format!("title = \"A seed\"\nblocks = {blocks}\nseed = {seed}\nproducts = {products}\nprofile = \"tuned\"");
        let at = random.random_range(SECOND / 2..5 * SECOND);
        let role = *["client", "origin", "product"].choose(random).expect("one");
        let disturbance = match random.random_range(0..10) {
            0..=2 => Disturbance::Crash(random.random_range(1..=STEPS)),
            3 => Disturbance::FullDisk(random.random_range(1..=STEPS)),
            4 => Disturbance::LostHost(random.random_range(0..3), at),
            5 => Disturbance::Killed(role, at),
            6 => Disturbance::Frozen(role, at, Duration::from_millis(random.random_range(10..=2_000))),
            7 => Disturbance::ClockStep(at, *[-3_600, -1, 1, 3_600].choose(random).expect("one") * SECOND as i64),
            _ => Disturbance::Nothing,
        };
        let split = *[Split::Whole, Split::Every(50), Split::Random].choose(random).expect("one");
        // A closed load needs a link that takes time, or it sends forever at one instant. A longer one leaves a single connection
        // too few requests for a product that misbehaves only in the load, after its first hundred.
        let latency = random.random_range(if kind.contains("closed") { 1_000_000..=1_500_000 } else { 0..=300_000 });
        let is_even = kind.contains("open") && !kind.contains("poisson") && workload.is_empty();
        let [warmup, window] = [warmup, window].map(|ms: u64| ms * SECOND / 1_000);
        Case {
            even: is_even.then_some(EvenLoad { rate, warmup, window }),
            hosts: *[1, 3].choose(random).expect("one"),
            suite: suite(&head, workload, &load),
            fault: random.random_ratio(2, 5).then(|| *FAULTS.choose(random).expect("one")),
            service_us: random.random_range(10..=400),
            disturbance,
            link: Link { latency, jitter: latency / 4, split, ..Link::default() },
        }
    }
}

/// The command that runs a seed again, with its trace.
pub fn again(seed: u64) -> String {
    format!("cargo run -p weir-world --bin sim -- --seed {seed} --trace")
}

/// [`run_seed`] in a folder of its own.
///
/// # Errors
/// What does not hold.
pub fn run_alone(seed: u64, trace: bool) -> Result<u64, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    run_seed(seed, folder.path(), trace)
}

/// Runs seeds on all CPUs, and reports each that fails. Returns those.
pub fn run_many(seeds: Range<u64>, report: &(dyn Fn(u64, &str) + Sync)) -> Vec<u64> {
    let (next, failed) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let ended = std::panic::catch_unwind(|| run_alone(seed, false));
            if let Err(why) = ended.unwrap_or_else(|_| Err("it panicked".to_owned())) {
                report(seed, &why);
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(seed);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    failed.into_inner().unwrap_or_default()
}

/// Runs what a seed makes in a folder, and continues it after a crash. Returns the hash of the world's trace.
///
/// # Errors
/// What does not hold.
pub fn run_seed(seed: u64, folder: &Path, trace: bool) -> Result<u64, String> {
    let case = Case::new(seed);
    if trace {
        println!("{case:#?}");
    }
    let disk = match case.disturbance {
        Disturbance::Crash(step) => Disk::crashing_at(step),
        Disturbance::FullDisk(step) => Disk::full_at(step),
        _ => Disk::sound(),
    };
    let simulated = product(case.fault.map_or("honest", |(fault, _)| fault), case.service_us, 2);
    let scenario = Scenario::new(seed, case.hosts, folder, &[("simulated", simulated)], disk);
    // Where nothing is lost and nothing begins anew, each latency can be computed from the trace.
    let traced = case.even.filter(|_| case.fault.is_none() && matches!(case.disturbance, Disturbance::Nothing));
    if trace || traced.is_some() {
        scenario.realm.world.keep_trace();
    }
    scenario.realm.world.set_default_link(case.link);
    disturb(&scenario, case.disturbance);
    let first = scenario.run(&case.suite);
    let outcome = match first {
        Ok(outcome) => outcome,
        Err(error) if case.disturbance.spares_measurements() && !matches!(case.disturbance, Disturbance::Crash(_)) => {
            return Err(format!("the run ended by itself: {error}"));
        }
        Err(_) => {
            scenario.disk.mend();
            let Some(outcome) = continue_run(&scenario)? else { return Ok(scenario.realm.world.trace_hash()) };
            outcome
        }
    };
    if trace {
        scenario.realm.world.trace().iter().for_each(|line| println!("{line}"));
    }
    if outcome.finished != outcome.planned {
        return Err(format!("{} of {} trials are finished", outcome.finished, outcome.planned));
    }
    let measured = scenario.measured();
    for one in &measured {
        check(&case, one).map_err(|why| format!("trial {} ({}): {why}", one.trial, one.case.product))?;
    }
    if let Some(load) = traced {
        check_latencies(load, &scenario, &measured)?;
    }
    check_rows(&scenario, &measured)?;
    scenario.draw()?;
    Ok(scenario.realm.world.trace_hash())
}

fn disturb(scenario: &Scenario, disturbance: Disturbance) {
    let world = &scenario.realm.world;
    let realm = Arc::downgrade(&scenario.realm);
    match disturbance {
        Disturbance::Nothing | Disturbance::Crash(_) | Disturbance::FullDisk(_) => {}
        Disturbance::LostHost(number, at) => scenario.hosts[number % scenario.hosts.len()].lose_at(at),
        Disturbance::ClockStep(at, by) => world.at(at, move |world| world.step_wall_clock(by)),
        Disturbance::Killed(name, at) => scenario.kill_at(name, at),
        Disturbance::Frozen(name, at, length) => world.at(at, move |_| {
            if let Some(realm) = realm.upgrade() {
                realm.running(name).into_iter().for_each(|pid| realm.freeze(pid, length));
            }
        }),
    }
}

/// Continues a run that has ended, if it had begun, and sees that finished trials stay as they are.
///
/// # Errors
/// What does not hold.
pub fn continue_run(scenario: &Scenario) -> Result<Option<weir_lab::run::Outcome>, String> {
    if !scenario.run_folder().join("run.toml").is_file() {
        // It had not become a run: there is nothing to lose.
        return Ok(None);
    }
    let before = finished_files(&scenario.run_folder());
    let outcome = match scenario.resume() {
        Ok(outcome) => outcome,
        // A plan that was cut off is no run either, and says so.
        Err(JournalError::Broken { path, .. }) if before.is_empty() && !path.exists() => return Ok(None),
        Err(error) => return Err(format!("it does not continue: {error}")),
    };
    let after = finished_files(&scenario.run_folder());
    for (path, bytes) in before {
        if after.get(&path) != Some(&bytes) {
            return Err(format!("{path} of a finished trial has changed"));
        }
    }
    Ok(Some(outcome))
}

/// All files of finished trials, with their bytes.
fn finished_files(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let trials = std::fs::read_dir(run.join("trials")).into_iter().flatten().flatten();
    for trial in trials.map(|entry| entry.path()).filter(|folder| folder.join("measurement.json").is_file()) {
        read_all(&trial, &mut files);
    }
    files
}

fn read_all(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            read_all(&path, files);
        } else {
            files.insert(path.display().to_string(), std::fs::read(&path).unwrap_or_default());
        }
    }
}

/// What holds of every trial.
fn check(case: &Case, measured: &Measurement) -> Result<(), String> {
    let quiet = case.disturbance.spares_measurements();
    if let Some(error) = &measured.error {
        // What a resumed run finds of an interrupted trial is measured again.
        return if quiet { Err(format!("an error: {}: {}", error.message, error.evidence)) } else { Ok(()) };
    }
    let load = measured.load.as_ref().ok_or("it has no load")?;
    for counts in [&load.window, &load.total] {
        if counts.due != counts.successful + counts.error_count() + counts.unsent {
            return Err(format!("what was due has not ended as one thing each: {counts:?}"));
        }
    }
    if load.latency.count != load.window.due || load.service.count != load.window.sent {
        return Err(format!(
            "{} latencies and {} service times of {:?}",
            load.latency.count, load.service.count, load.window
        ));
    }
    let rows: u64 = load.series.iter().map(|row| row.due).sum();
    if rows != load.window.due {
        return Err(format!("its seconds have {rows} due requests, and the window {}", load.window.due));
    }
    check_conservation(case, measured, &load.total)?;
    check_findings(case, measured, quiet)
}

/// Client and origin count the same, where nothing is between them that may lose or add.
fn check_conservation(case: &Case, measured: &Measurement, total: &Counts) -> Result<(), String> {
    let honest = case.fault.is_none() || measured.case.product == "direct";
    let Some(origin) = measured.origin.as_ref().filter(|_| honest) else { return Ok(()) };
    let lost = total.error_count();
    if origin.requests > total.sent || origin.requests + lost < total.sent {
        return Err(format!("the origin counted {} requests of {} sent, {lost} failed", origin.requests, total.sent));
    }
    Ok(())
}

fn check_findings(case: &Case, measured: &Measurement, quiet: bool) -> Result<(), String> {
    let blamed: Vec<_> = measured.findings.iter().filter(|finding| finding.severity != Severity::Note).collect();
    let told = || {
        blamed.iter().fold(String::new(), |mut text, finding| {
            let _ = write!(text, "\n  {}: {}", finding.check, finding.message);
            text
        })
    };
    let faulty = case.fault.filter(|_| measured.case.product != "direct");
    match faulty {
        None if quiet && measured.verdict != Verdict::Valid => Err(format!("an honest product is blamed:{}", told())),
        Some((fault, check)) if quiet && !blamed.iter().any(|finding| finding.check == check) => {
            Err(format!("{fault} is not called {check}:{}", told()))
        }
        _ => Ok(()),
    }
}

/// Each latency is the one that the trace shows: from when the request was due until the last byte of its response came.
fn check_latencies(even: EvenLoad, scenario: &Scenario, measured: &[Measurement]) -> Result<(), String> {
    let world = &scenario.realm.world;
    let (starts, responses) = (scenario.realm.load_starts(), traced_responses(&world.trace()));
    for one in measured {
        let load = one.load.as_ref().ok_or("it has no load")?;
        // A control's load starts in the world, too, and is in no record.
        let window = load.window_start_ms * MILLI - (world.unix_now() - world.now());
        let nth = starts.iter().rposition(|start| start + even.warmup < window + MILLI).ok_or("it started later")?;
        let (start, end) = (starts[nth], starts.get(nth + 1).copied().unwrap_or(u64::MAX));
        let of_trial = responses.iter().filter(|response| (start..end).contains(&response.at));
        let latencies = of_trial.filter_map(|response| {
            // Threads take turns in what is due.
            let nth = response.number * u64::from(load.threads) + response.thread;
            let due = (nth as f64 * 1e9 / even.rate as f64).round() as u64;
            let measured = (even.warmup..even.warmup + even.window).contains(&due);
            measured.then(|| response.at - start - due)
        });
        let (traced, recorded) = (by_hand(latencies), numbers(&load.latency));
        if recorded != traced {
            return Err(format!("trial {}: latencies {recorded:?}, and by the trace {traced:?}", one.trial));
        }
    }
    Ok(())
}

/// A response in a trace.
struct TracedResponse {
    thread: u64,
    /// Of the request, counted by its thread from the load's start.
    number: u64,
    /// When it was complete.
    at: u64,
}

/// The complete responses with a request ID that clients had.
fn traced_responses(trace: &[String]) -> Vec<TracedResponse> {
    const BODY: usize = 128;
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut responses = Vec::new();
    for line in trace {
        let Some((at, rest)) = line.split_once(" ns  client ") else { continue };
        let Some((conn, data)) = rest.split_once(": data ") else { continue };
        let text = texts.entry(conn).or_default();
        let data = data.split_once(' ').map_or("", |(_, quoted)| quoted.trim_matches('"'));
        text.push_str(&data.replace("\\r", "\r").replace("\\n", "\n"));
        if text.find("\r\n\r\n").is_some_and(|head| text.len() == head + 4 + BODY) {
            // The second half of a request ID counts the requests of a thread.
            let thread = conn.split(' ').next().and_then(|thread| thread.parse().ok()).expect("a thread");
            let at = at.trim().parse().expect("nanoseconds");
            if let Some(digits) = text.split_once("x-weir-origin: ").and_then(|(_, id)| id.get(8..16)) {
                let number = u64::from_str_radix(digits, 16).expect("a request ID");
                responses.push(TracedResponse { thread, number, at });
            }
            text.clear();
        }
    }
    responses
}

/// The table has one row for each trial.
fn check_rows(scenario: &Scenario, measured: &[Measurement]) -> Result<(), String> {
    let path = scenario.run_folder().join("measurements.csv");
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let rows = text.lines().count().saturating_sub(1);
    if rows == measured.len() { Ok(()) } else { Err(format!("{rows} rows for {} trials", measured.len())) }
}
