//! The rounds: every case once a round, in random order.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::busy;
use super::cases::{Cell, MAIN, OPEN, Part, Subject};
use super::output::{self, Times};
use super::process;
use super::server::{self, Server};
use super::tool::{self, Load, SUITE, Tool};

/// How to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Rounds.
    pub rounds: u32,
    /// Length of one trial, s.
    pub seconds: u32,
    /// Seed of the order.
    pub seed: u64,
    /// CPU of the client and CPU of the server.
    pub cpus: [usize; 2],
    /// Cells.
    pub cells: Vec<Cell>,
    /// Load generators; weir's first.
    pub tools: Vec<Tool>,
    /// Origins.
    pub servers: server::Programs,
    /// Every tool in every cell.
    pub all: bool,
    /// How often a disturbed trial is tried again.
    pub patience: u32,
    /// Whether a trial that stays disturbed counts nevertheless.
    pub keep_disturbed: bool,
}

/// Share of one CPU used by others from which on a trial is disturbed. On a CPU that others want, the kernel's
/// network work seems to move from the client's account to another (ksoftirqd's, we believe; impossibly low costs were
/// seen), so a disturbed trial is wrong and not only noisy.
pub const DISTURBED: f64 = 0.15;

impl Plan {
    /// Length of a trial, s: three times as long with very many connections, so that connecting weighs less, and
    /// for the open load, so that its 99.9 % is one of sixty and not of twenty.
    pub fn length(&self, cell: &Cell) -> u32 {
        let long = cell.connections >= 5_000 || cell.group.part() == Part::Open;
        if long { 3 * self.seconds } else { self.seconds }
    }

    /// What takes part in a cell.
    pub fn subjects(&self, cell: &Cell) -> Vec<Subject> {
        let tools: Vec<tool::Kind> = self.tools.iter().map(|tool| tool.kind).collect();
        cell.subjects(&tools, &self.servers.kinds(), self.all)
    }
}

/// One trial.
#[derive(Debug, Clone)]
pub struct Sample {
    /// From 0.
    pub round: u32,
    /// Place in the round, from 0.
    pub place: u32,
    /// Its cell.
    pub cell: Cell,
    /// What was measured.
    pub subject: Subject,
    /// What came of it, or why nothing did.
    pub got: Result<Got, String>,
}

/// What a trial gave.
#[derive(Debug, Clone, Copy)]
pub struct Got {
    /// Requests that the client says it did.
    pub requests: u64,
    /// CPU of the client, us.
    pub client_us: f64,
    /// CPU of the server, us.
    pub server_us: f64,
    /// Length of the load as ordered, s.
    pub seconds: f64,
    /// From the client's start to its end, s.
    pub wall_s: f64,
    /// Share of one CPU that neither of them used.
    pub others: f64,
    /// Share of one CPU that the machine's host took.
    pub stolen: f64,
    /// Latencies, for what the open load compares.
    pub times: Option<Times>,
}

/// Runs all rounds, telling `progress` of every trial.
///
/// # Errors
/// When there is no temporary folder; failing servers and clients are in the samples.
pub fn run(plan: &Plan, mut progress: impl FnMut(&Sample)) -> anyhow::Result<Vec<Sample>> {
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
    let mut samples = Vec::new();
    for round in 0..plan.rounds {
        let mut place = 0;
        let mut cells = plan.cells.clone();
        cells.shuffle(&mut random);
        for cell in cells {
            let mut subjects = plan.subjects(&cell);
            subjects.shuffle(&mut random);
            for subject in subjects {
                let got = undisturbed(plan, &cell, subject, folder.path()).map_err(|error| format!("{error:#}"));
                let sample = Sample { round, place, cell, subject, got };
                progress(&sample);
                samples.push(sample);
                place += 1;
            }
        }
    }
    Ok(samples)
}

/// A trial, again while others disturb it and there is patience.
fn undisturbed(plan: &Plan, cell: &Cell, subject: Subject, folder: &Path) -> anyhow::Result<Got> {
    let mut tries = 0;
    loop {
        let got = trial(plan, cell, subject, folder)?;
        let disturbed = got.others > DISTURBED;
        if !disturbed || (tries >= plan.patience && plan.keep_disturbed) {
            return Ok(got);
        }
        if tries >= plan.patience {
            bail!("others used {:.0} % of a CPU, in {} trials", 100.0 * got.others, tries + 1);
        }
        tries += 1;
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// One trial with a fresh server.
fn trial(plan: &Plan, cell: &Cell, subject: Subject, folder: &Path) -> anyhow::Result<Got> {
    let kind = match (subject, cell.group.part()) {
        (Subject::Origin(kind), _) => kind,
        (_, Part::Nginx) => server::Kind::NginxCopy,
        _ => server::Kind::Weir,
    };
    let server = Server::start(kind, &plan.servers, cell.wire, plan.cpus[1], cell.size)?;
    let (program, arguments) = client(plan, cell, subject, server.url())?;
    let before = (busy::cpu_time()?, server.cpu_us()?, Instant::now());
    let mut command = Command::new(program);
    command.args(arguments);
    let most = Duration::from_secs(u64::from(plan.length(cell)) + 60);
    let ended = process::run_on(plan.cpus[0], &mut command, folder, most)?;
    // The server is still closing connections.
    std::thread::sleep(Duration::from_millis(20));
    let server_us = server.cpu_us()? - before.1;
    let (after, elapsed_us) = (busy::cpu_time()?, before.2.elapsed().as_secs_f64() * 1e6);
    let (requests, times) = told(cell, subject, &ended)?;
    Ok(Got {
        requests,
        client_us: ended.cpu_us,
        server_us,
        seconds: plan.length(cell).into(),
        wall_s: ended.wall.as_secs_f64(),
        others: ((after.busy_us - before.0.busy_us - ended.cpu_us - server_us) / elapsed_us).max(0.0),
        stolen: (after.stolen_us - before.0.stolen_us) / elapsed_us,
        times,
    })
}

/// What a client says: requests and, where latencies are compared, those.
fn told(cell: &Cell, subject: Subject, ended: &process::Ended) -> anyhow::Result<(u64, Option<Times>)> {
    match subject {
        Subject::Client(tool::Kind::Wrk2) => {
            let times = Times { latency_p50_us: output::wrk2_median_us(&ended.stdout)?, lag_us: [f64::NAN; 3] };
            Ok((output::wrk(&ended.stdout)?, Some(times)))
        }
        Subject::Client(kind) if kind != tool::Kind::Weir => Ok((kind.requests(&ended.stdout, &ended.stderr)?, None)),
        _ => {
            let load = output::weir(&ended.stdout)?;
            if cell.wire.is_tls() && load.suites != [SUITE] {
                bail!("the cipher suites {:?} were spoken, not {SUITE}", load.suites);
            }
            let compared = cell.group.part() == Part::Open;
            Ok((load.requests, compared.then_some(load.times)))
        }
    }
}

/// The client of a trial: its program and arguments.
fn client<'a>(plan: &'a Plan, cell: &Cell, subject: Subject, url: String) -> anyhow::Result<(&'a Path, Vec<String>)> {
    let kind = match subject {
        Subject::Client(kind) => kind,
        _ => tool::Kind::Weir,
    };
    let tool = plan.tools.iter().find(|tool| tool.kind == kind).context("a tool that is not there")?;
    let load = |connections| Load {
        url: url.clone(),
        wire: cell.wire,
        connections,
        streams: cell.streams,
        seconds: plan.length(cell),
    };
    let arguments = match subject {
        Subject::One => kind.arguments(&load(1)),
        Subject::Open => open_arguments(plan.length(cell), url),
        _ => kind.arguments(&load(cell.connections)),
    };
    Ok((&tool.program, arguments))
}

/// Arguments of the open load.
pub fn open_arguments(seconds: u32, url: String) -> Vec<String> {
    debug_assert_eq!(MAIN.0, OPEN.1);
    let (rate, connections, time) = (OPEN.0.to_string(), OPEN.1.to_string(), format!("{seconds}s"));
    [
        "load",
        "--quiet",
        "--json",
        "--warmup",
        "500ms",
        "-t",
        "1",
        "-c",
        &connections,
        "-d",
        &time,
        "--rate",
        &rate,
        &url,
    ]
    .map(str::to_owned)
    .to_vec()
}
