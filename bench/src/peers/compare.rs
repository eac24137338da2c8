//! `peers` without a verb: chooses what to compare, runs it, and writes `RESULTS.md`, `.csv` and `.json`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use clap::ValueEnum;
use weir_model::text::count;

use super::cases::{self, Cell, Group};
use super::client::Client;
use super::machine::{self, apt_version, first_line};
use super::record::{Record, Run, Sample};
use super::server::Certificate;
use super::trial::{self, Plan};
use super::{Common, Fact, requests, results};

/// Flags of the comparison.
#[derive(Debug, clap::Args)]
pub struct Compare {
    /// Only these groups; * stands for any letters, such as 'clients*' or '*-h2'. They replace their part of the results
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    only: Vec<String>,
    /// Only cells with so many connections; the results are then printed and not written
    #[arg(long, value_delimiter = ',')]
    connections: Vec<u32>,
    /// Only cells with responses of so many bytes; likewise
    #[arg(long, value_delimiter = ',')]
    size: Vec<u64>,
    /// Only these load generators, and always weir; likewise
    #[arg(long, value_delimiter = ',', hide_possible_values = true)]
    tools: Vec<Client>,
    /// All load generators in every cell of plain clients, not only weir, null and wrk
    #[arg(long)]
    pub all: bool,
    /// Rounds; every case is run once a round
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Seconds of one trial; three times as many with 10,000 connections and for the open load
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,
    /// Seed of the order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where to write; the samples go beside it
    #[arg(long, default_value = "bench/RESULTS.md")]
    out: PathBuf,
    /// How often a trial that others disturb is tried again
    #[arg(long, alias = "patience", default_value_t = 3)]
    pub retries: u32,
    /// Flags of all comparisons.
    #[command(flatten)]
    pub common: Common,
}

/// Compares.
///
/// # Errors
/// When the machine is busy, flags name nothing, or a file cannot be written. A failing trial is in the results.
pub fn main(args: &Compare) -> anyhow::Result<()> {
    let busy = args.common.wait_until_quiet()?;
    let folder = super::scratch()?;
    let mut missing = Vec::new();
    let groups = groups(&args.only)?;
    let plan = plan(args, &groups, folder.path(), &mut missing)?;
    let (trials, seconds) = duration(&plan);
    println!("{trials} trials: about {} minutes", seconds / 60 + 1);
    let run = Run {
        rounds: args.rounds,
        facts: facts(&plan),
        busy,
        requests: requests::requests(&plan, folder.path()),
        missing,
        // Results of what cannot be measured here stay.
        groups: groups.into_iter().filter(|group| plan.cells.iter().any(|cell| cell.group == *group)).collect(),
    };
    let mut done = 0;
    let samples = trial::run(&plan, |sample| {
        done += 1;
        report(done, trials, sample);
    })?;
    let measured = Record::of(run, samples);
    if !args.connections.is_empty() || !args.size.is_empty() || !args.tools.is_empty() {
        print!("{}", results::markdown(&measured));
        println!("\n(Not written: these are not whole groups.)");
        return Ok(());
    }
    let csv = args.out.with_extension("csv");
    let mut record = Record::read(&csv)?;
    record.replace(measured);
    record.write(&csv)?;
    write(&args.out)?;
    println!("{}, .csv and .json written", args.out.display());
    Ok(())
}

/// Writes the page anew from the samples beside it.
///
/// # Errors
/// When they cannot be read or it cannot be written.
pub fn write(page: &Path) -> anyhow::Result<()> {
    super::write(page, &results::markdown(&Record::read(&page.with_extension("csv"))?))
}

/// The groups that patterns name; all without any.
fn groups(patterns: &[String]) -> anyhow::Result<Vec<Group>> {
    let all = Group::all();
    if let Some(pattern) = patterns.iter().find(|pattern| !all.iter().any(|group| group.is_named(pattern))) {
        let names: Vec<String> = all.iter().map(|group| cases::name(*group)).collect();
        bail!("--only {pattern}: no such group; there are {}", names.join(", "));
    }
    let wanted = |group: &&Group| patterns.is_empty() || patterns.iter().any(|pattern| group.is_named(pattern));
    Ok(all.iter().filter(wanted).copied().collect())
}

/// What will be run; what cannot be is added to `missing`.
fn plan<'a>(args: &'a Compare, groups: &[Group], folder: &Path, missing: &mut Vec<String>) -> anyhow::Result<Plan<'a>> {
    let programs = args.common.programs(folder)?;
    for (name, program) in [
        ("nginx", &programs.nginx),
        ("nghttpd", &programs.nghttpd),
        ("haterm", &programs.haterm),
        ("redis-server", &programs.redis),
    ] {
        if program.is_none() {
            missing.push(format!("{name} was not there."));
        }
    }
    let mut clients = Vec::new();
    let wanted = |client: &Client| args.tools.is_empty() || *client == Client::Weir || args.tools.contains(client);
    for client in Client::value_variants().iter().copied().filter(wanted) {
        match client.program(&programs) {
            Some(program) => clients.push((client, program)),
            None => missing.push(format!("{} was not there.", cases::name(client))),
        }
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let mut cells: Vec<Cell> = groups.iter().flat_map(|group| group.cells()).collect();
    cells.retain(|cell| cell.group.server().is_none_or(|server| server.program(&programs).is_some()));
    cells.retain(|cell| args.connections.is_empty() || args.connections.contains(&cell.connections));
    cells.retain(|cell| args.size.is_empty() || args.size.contains(&cell.size));
    cells.retain(|cell| {
        let fits = u64::from(cell.connections) + 100 <= limit;
        if !fits {
            missing.push(format!("{}: a process may have only {limit} descriptors here.", cell.title()));
        }
        fits
    });
    Ok(Plan { args, cells, clients, programs })
}

/// Machine, programs and run.
fn facts(plan: &Plan<'_>) -> Vec<Fact> {
    let mut facts = machine::facts(&plan.programs.weir);
    let mut add = |name: &str, value: String| facts.push((name.to_owned(), value));
    let [client, server] = plan.args.common.cpus;
    add("pinned", format!("client to CPU {}, server to CPU {}", client, server));
    let Compare { rounds, seconds, seed, .. } = plan.args;
    add("run", format!("{rounds} rounds of {seconds} s a trial, order shuffled from seed {seed}"));
    for (client, program) in &plan.clients {
        let version = match client {
            Client::Weir | Client::Null => continue,
            Client::Oha => first_line(Command::new(program).arg("--version")),
            Client::Fortio => first_line(Command::new(program).arg("version")),
            Client::Memtier | Client::ValkeyBenchmark => first_line(Command::new(program).arg("--version")),
            client => match client.package().filter(|_| program.starts_with("/usr")) {
                Some(package) => format!("apt {package} {}", apt_version(package)),
                None => "found in PEERS_PATH or PATH".to_owned(),
            },
        };
        add(&cases::name(*client), version);
    }
    if let Some(nginx) = &plan.programs.nginx {
        let version = first_line(Command::new(nginx).arg("-v")).replace("nginx version: ", "");
        let settings =
            "one worker, static file, open_file_cache, no access log; as a target of clients with sendfile off";
        add("nginx", format!("{version}, {settings}"));
    }
    if let Some(redis) = &plan.programs.redis {
        add("redis-server", format!("{}, nothing on disk", first_line(Command::new(redis).arg("--version"))));
    }
    if plan.programs.nghttpd.is_some() {
        add("nghttpd", format!("apt nghttp2-server {}, static file", apt_version("nghttp2-server")));
    }
    if plan.cells.iter().any(|cell| cell.protocol.is_tls()) {
        add("certificate", format!("{}, signed by itself, made for this run", Certificate::KEY));
    }
    facts
}

/// How many trials, and how long they take, s.
fn duration(plan: &Plan<'_>) -> (u64, u64) {
    let (mut trials, mut millis) = (0, 0);
    for cell in &plan.cells {
        let of_cell = plan.subjects(cell).len() as u64 * u64::from(plan.args.rounds);
        trials += of_cell;
        // Starting and ending both takes about a third of a second.
        millis += of_cell * (1_000 * u64::from(plan.length(cell)) + 350);
    }
    (trials, millis / 1_000)
}

fn report(done: u64, trials: u64, sample: &Sample) {
    let what = format!("{done:>4}/{trials} {}: {}", sample.cell().title(), sample.subject);
    match (sample.rate(), sample.costs()) {
        (Some(rate), Some([client, server])) => {
            println!("{what}: {}/s, client {client:.2} µs, server {server:.2} µs", count(rate as u64));
        }
        _ => println!("{what}: FAILED: {}", sample.error),
    }
}
