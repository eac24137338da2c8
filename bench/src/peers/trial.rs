//! Runs the rounds: every case once a round, in random order, each with a server of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use weir_model::cpu_time::CpuTime;
use weir_vitals::Watch;

use super::cases::{Cell, Group, Subject};
use super::client::{self, Client, Load, SUITE, WARMUP_S};
use super::compare::Compare;
use super::process::{Ended, Running};
use super::record::Sample;
use super::server::{Options, Programs, RunningServer};

/// What to run, and how.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The flags.
    pub args: &'a Compare,
    /// Cells.
    pub cells: Vec<Cell>,
    /// Clients that take part, with their programs; weir's first.
    pub clients: Vec<(Client, PathBuf)>,
    /// Programs of the servers.
    pub programs: Programs,
}

/// Share of one CPU used by others from which on a trial is disturbed. On a CPU that others want, the kernel seems to
/// charge network work of the client to another process (impossibly low costs were seen; ksoftirqd is likely), so that a
/// disturbed trial is wrong and not only noisy.
pub const DISTURBED: f64 = 0.15;

impl Plan<'_> {
    /// Length of a trial, s: three times as long with very many connections, so that connecting weighs less, and
    /// for the open load, so that its 99.9 % is one of sixty and not of twenty.
    pub fn length(&self, cell: &Cell) -> u32 {
        let long = cell.connections >= 5_000 || cell.group == Group::Open;
        if long { 3 * self.args.seconds } else { self.args.seconds }
    }

    /// What takes part in a cell.
    pub fn subjects(&self, cell: &Cell) -> Vec<Subject> {
        let is_there = |subject: &Subject| match subject {
            Subject::Client(client) => self.program(*client).is_some() && (self.args.all || cell.is_shown(*subject)),
            Subject::Origin(server) => server.program(&self.programs).is_some(),
            _ => true,
        };
        cell.candidates().into_iter().filter(is_there).collect()
    }

    fn program(&self, client: Client) -> Option<&PathBuf> {
        self.clients.iter().find(|(there, _)| *there == client).map(|(_, program)| program)
    }

    /// How the client of a trial is started: its program and arguments.
    fn command(&self, cell: &Cell, subject: Subject, url: &str) -> anyhow::Result<(&Path, Vec<String>)> {
        let client = match subject {
            Subject::Client(client) => client,
            _ => Client::Weir,
        };
        let connections = if subject == Subject::OneConnection { 1 } else { cell.connections };
        let Cell { protocol, streams, size, .. } = *cell;
        let seconds = self.length(cell);
        let arguments = match subject {
            Subject::OpenRate => client::open_arguments(seconds, url),
            Subject::Streams | Subject::Plain => {
                client::stream_arguments(subject == Subject::Streams, connections, seconds, url)
            }
            _ => {
                let (group, url) = (cell.group, url.to_owned());
                client.arguments(&Load { group, url, protocol, connections, streams, size, seconds })
            }
        };
        Ok((self.program(client).context("a client that is not installed")?, arguments))
    }
}

/// Runs all rounds; calls `progress` after each trial.
///
/// # Errors
/// When there is no temporary folder; failing servers and clients are in the samples.
pub fn run(plan: &Plan<'_>, mut progress: impl FnMut(&Sample)) -> anyhow::Result<Vec<Sample>> {
    let mut random = ChaCha8Rng::seed_from_u64(plan.args.seed);
    let mut samples = Vec::new();
    for round in 0..plan.args.rounds {
        let mut position = 0;
        let mut cells = plan.cells.clone();
        cells.shuffle(&mut random);
        for cell in cells {
            let mut subjects = plan.subjects(&cell);
            subjects.shuffle(&mut random);
            for subject in subjects {
                let empty = Sample::new(&cell, subject.name(), round, position);
                let sample = undisturbed(plan, &cell, subject, &empty)
                    .unwrap_or_else(|error| Sample { error: format!("{error:#}").replace('\n', " "), ..empty });
                progress(&sample);
                samples.push(sample);
                position += 1;
            }
        }
    }
    Ok(samples)
}

/// A trial, repeated while others disturb it and retries are left.
fn undisturbed(plan: &Plan<'_>, cell: &Cell, subject: Subject, empty: &Sample) -> anyhow::Result<Sample> {
    let mut tries = 0;
    loop {
        let sample = trial(plan, cell, subject, empty)?;
        let others = sample.others_share.unwrap_or(0.0);
        if others <= DISTURBED || (tries >= plan.args.retries && plan.args.common.anyway) {
            return Ok(sample);
        }
        if tries >= plan.args.retries {
            bail!("others used {:.0} % of a CPU, in {} trials", 100.0 * others, tries + 1);
        }
        tries += 1;
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn trial(plan: &Plan<'_>, cell: &Cell, subject: Subject, empty: &Sample) -> anyhow::Result<Sample> {
    let server = match subject {
        Subject::Origin(server) => server,
        _ => cell.group.server().context("a client in a group of servers")?,
    };
    let (protocol, size) = (cell.protocol, cell.size);
    let options = Options { protocol, cpu: plan.args.common.cpus[1], size, arguments: Vec::new(), log: None };
    let server = RunningServer::start(server, &plan.programs, &options)?;
    let (program, arguments) = plan.command(cell, subject, &server.url)?;
    let watch = Watch::start(vec![server.watched()])?;
    watch.begin_window(weir_vitals::clock::now(), None)?;
    let seconds = f64::from(plan.length(cell));
    let most = Duration::from_secs_f64(seconds + 60.0);
    let ended = Running::start(Command::new(program).args(arguments), plan.args.common.cpus[0])?.end(most, |_| {})?;
    // The server is still closing connections.
    std::thread::sleep(Duration::from_millis(20));
    let window = watch.end_window()?;
    let server_us = window.usage.iter().map(|usage| usage.cpu_user_us + usage.cpu_system_us).sum::<u64>() as f64;
    let host = CpuTime::of(&window.series).context("the host's CPU time cannot be read")?;
    let used = host.processes + host.interrupts - (ended.cpu_us + server_us) / 1e6;
    let rounded = |value: f64, digits: f64| Some((value * digits).round() / digits);
    let mut sample = Sample {
        client_cpu_us: rounded(ended.cpu_us, 1.0),
        server_cpu_us: rounded(server_us, 1.0),
        load_s: Some(seconds),
        wall_s: rounded(ended.wall.as_secs_f64(), 1e3),
        others_share: rounded((used / window.length_s).max(0.0), 1e3),
        stolen_share: rounded(host.stolen / window.length_s, 1e3),
        ..empty.clone()
    };
    reported(&mut sample, subject, &ended)?;
    Ok(sample)
}

/// What a client reports: requests and, where latencies are compared, those.
fn reported(sample: &mut Sample, subject: Subject, ended: &Ended) -> anyhow::Result<()> {
    if let Subject::Client(client) = subject
        && client != Client::Weir
    {
        sample.requests = Some(client.requests(&ended.stdout, &ended.stderr)?);
        if client.is_counted() {
            sample.load_s = sample.wall_s;
        }
        sample.latency_p50_us = match client {
            Client::Wrk2 => Some(client::wrk2_median_us(&ended.stdout)?),
            Client::Shb | Client::Shb100 => Some(client::shb_median_us(&ended.stdout)?),
            _ => None,
        };
        return Ok(());
    }
    let result = client::weir(&ended.stdout)?;
    // Its counts and its CPU time are of its whole life.
    sample.load_s = sample.load_s.map(|seconds| seconds + WARMUP_S);
    let suites: Vec<&String> = result.tls.iter().flat_map(|tls| tls.suites.keys()).collect();
    if sample.protocol.is_tls() && suites != [SUITE] {
        bail!("the cipher suites {suites:?} were used, not {SUITE}");
    }
    let streams = result.messages.as_ref().filter(|_| subject == Subject::Streams);
    sample.requests = Some(streams.map_or(result.total.successful, |messages| messages.total.received));
    sample.latency_p50_us = Some(result.latency.p50_us);
    if sample.group == Group::Open {
        sample.lag_p50_us = Some(result.lag.p50_us);
        sample.lag_p99_us = Some(result.lag.p99_us);
        sample.lag_p999_us = Some(result.lag.p999_us);
    }
    Ok(())
}
