//! The rounds: every case once a round, in random order.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::busy;
use super::cases::{Cell, MAIN, OPEN, Part, Subject};
use super::output;
use super::process;
use super::server::{self, Server};
use super::tool::{self, Load, Tool};

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
    /// Length of a trial, s. With very many connections it is three times as long, so that connecting weighs less.
    pub fn length(&self, cell: &Cell) -> u32 {
        if cell.connections >= 5_000 { 3 * self.seconds } else { self.seconds }
    }
}

/// One trial.
#[derive(Debug, Clone)]
pub struct Sample {
    /// From 0.
    pub round: u32,
    /// Place in the round, from 0.
    pub place: u32,
    /// Number of its cell.
    pub cell: usize,
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
    /// Latencies, for weir's open and one-connection loads.
    pub load: Option<output::WeirLoad>,
}

/// Runs all rounds, telling `progress` of every trial.
///
/// # Errors
/// When a server does not come up; failing clients are in the samples.
pub fn run(plan: &Plan, mut progress: impl FnMut(&Sample, &Cell)) -> anyhow::Result<Vec<Sample>> {
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
    let tools: Vec<tool::Kind> = plan.tools.iter().map(|tool| tool.kind).collect();
    let servers: Vec<server::Kind> = server::KINDS
        .into_iter()
        .filter(|kind| plan.servers.nginx.is_some() || !matches!(kind, server::Kind::Nginx | server::Kind::NginxCopy))
        .collect();
    let mut samples = Vec::new();
    for round in 0..plan.rounds {
        let mut place = 0;
        let mut cells: Vec<usize> = (0..plan.cells.len()).collect();
        cells.shuffle(&mut random);
        for number in cells {
            let cell = &plan.cells[number];
            let mut subjects = cell.subjects(&tools, &servers, plan.all);
            subjects.shuffle(&mut random);
            for subject in subjects {
                let got = undisturbed(plan, cell, subject, folder.path()).map_err(|error| format!("{error:#}"));
                let sample = Sample { round, place, cell: number, subject, got };
                progress(&sample, cell);
                samples.push(sample);
                place += 1;
            }
        }
    }
    Ok(samples)
}

/// A trial, again while others disturb it and there is patience.
fn undisturbed(plan: &Plan, cell: &Cell, subject: Subject, folder: &std::path::Path) -> anyhow::Result<Got> {
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
fn trial(plan: &Plan, cell: &Cell, subject: Subject, folder: &std::path::Path) -> anyhow::Result<Got> {
    let kind = match (subject, cell.part) {
        (Subject::Origin(kind), _) => kind,
        (_, Part::Nginx) => server::Kind::NginxCopy,
        _ => server::Kind::Weir,
    };
    let server = Server::start(kind, &plan.servers, plan.cpus[1], cell.size)?;
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
    let load = match subject {
        Subject::One | Subject::Open => Some(output::weir(&ended.stdout)?),
        _ => None,
    };
    let requests = match subject {
        Subject::Client(kind) => kind.requests(&ended.stdout, &ended.stderr)?,
        _ => output::weir(&ended.stdout)?.requests,
    };
    Ok(Got {
        requests,
        client_us: ended.cpu_us,
        server_us,
        seconds: plan.length(cell).into(),
        wall_s: ended.wall.as_secs_f64(),
        others: ((after.busy_us - before.0.busy_us - ended.cpu_us - server_us) / elapsed_us).max(0.0),
        stolen: (after.stolen_us - before.0.stolen_us) / elapsed_us,
        load,
    })
}

/// The client of a trial: its program and arguments.
fn client<'a>(
    plan: &'a Plan,
    cell: &Cell,
    subject: Subject,
    url: String,
) -> anyhow::Result<(&'a std::path::Path, Vec<String>)> {
    let kind = match subject {
        Subject::Client(kind) => kind,
        _ => tool::Kind::Weir,
    };
    let tool = plan.tools.iter().find(|tool| tool.kind == kind).context("a tool that is not there")?;
    let arguments = match subject {
        Subject::One => kind.arguments(&Load { url, connections: 1, seconds: plan.length(cell) }),
        Subject::Open => open_arguments(plan.length(cell), url),
        _ => kind.arguments(&Load { url, connections: cell.connections, seconds: plan.length(cell) }),
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
