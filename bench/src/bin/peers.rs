//! Runs load generators and origins in turn, and writes what they cost beside weir into `RESULTS.md`.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use weir_bench::peers::cases::{self, GROUPS, Group};
use weir_bench::peers::record::{Record, Run};
use weir_bench::peers::run::{self, Plan, Sample};
use weir_bench::peers::server::Programs;
use weir_bench::peers::tool::{self, Kind, Tool};
use weir_bench::peers::{busy, certificate, facts, fill, results};
use weir_bench::peers::{many, profile};

#[derive(Parser)]
#[command(about = "Compares what load generators and origins cost, weir's among them")]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    compare: Compare,
}

#[derive(Subcommand)]
enum Verb {
    /// Holds very many connections, and says what each costs
    Many(many::Args),
    /// Tells where the CPU of clients and origins goes
    Profile(profile::Args),
    /// Writes RESULTS.md anew from RESULTS.csv and RESULTS.json
    Write {
        /// The file to write
        #[arg(long, default_value = "bench/RESULTS.md")]
        out: PathBuf,
    },
}

#[derive(clap::Args)]
struct Compare {
    /// Only these groups; * stands for any letters, such as 'clients*' or '*-h2'. They replace their part of the results
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    only: Vec<String>,
    /// Only cells with so many connections; the results are then printed and not written
    #[arg(long, value_delimiter = ',')]
    connections: Vec<u32>,
    /// Only cells with answers of so many bytes; likewise
    #[arg(long, value_delimiter = ',')]
    size: Vec<u64>,
    /// Only these load generators (weir is always one); likewise
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// All load generators in every cell of plain clients, not only weir, null and wrk
    #[arg(long)]
    all: bool,
    /// Rounds; every case is run once a round
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of one trial; three times as many with 10,000 connections and for the open load
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// CPU of clients and CPU of servers
    #[arg(long, default_value = "0,1", value_delimiter = ',', num_args = 1)]
    cpus: Vec<usize>,
    /// Seed of the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// weir's binary; else the one beside this program
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Where to write; the raw samples go beside it
    #[arg(long, default_value = "bench/RESULTS.md")]
    out: PathBuf,
    /// How often a trial that others disturb is tried again
    #[arg(long, default_value_t = 3)]
    patience: u32,
    #[command(flatten)]
    quiet: busy::Args,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    raise_descriptor_limit();
    match args.verb {
        None => compare(&args.compare),
        Some(Verb::Many(args)) => many::main(&args),
        Some(Verb::Profile(args)) => profile::main(&args),
        Some(Verb::Write { out }) => {
            let record = Record::read(&out.with_extension("csv"))?;
            write(&record, &out)
        }
    }
}

fn compare(args: &Compare) -> anyhow::Result<()> {
    let reasons = args.quiet.reasons()?;
    let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
    let mut missing = Vec::new();
    let groups = groups(&args.only)?;
    let plan = plan(args, &groups, folder.path(), &mut missing)?;
    let (trials, seconds) = trials(&plan);
    println!("{trials} trials: about {} minutes", seconds / 60 + 1);
    let about = Run {
        rounds: plan.rounds,
        facts: facts::facts(&plan),
        busy: reasons,
        requests: facts::requests(&plan, folder.path())?,
        missing,
        // What cannot be measured here is left as it is.
        groups: groups.into_iter().filter(|group| plan.cells.iter().any(|cell| cell.group == *group)).collect(),
    };
    let mut done = 0;
    let samples = run::run(&plan, |sample| {
        done += 1;
        tell(done, trials, sample);
    })?;
    let measured = Record::of(about, samples);
    if !args.connections.is_empty() || !args.size.is_empty() || !args.tools.is_empty() {
        print!("{}", results::markdown(&measured));
        println!("\n(Not written: that was not all of the groups.)");
        return Ok(());
    }
    let csv = args.out.with_extension("csv");
    let mut record = Record::read(&csv)?;
    record.replace(measured);
    record.write(&csv)?;
    write(&record, &args.out)?;
    println!("{}, .csv and .json written", args.out.display());
    Ok(())
}

/// The results, and beside them what was to be reached on the page of the engine.
fn write(record: &Record, out: &std::path::Path) -> anyhow::Result<()> {
    std::fs::write(out, results::markdown(record)).with_context(|| out.display().to_string())?;
    match out.parent().filter(|folder| folder.ends_with("bench")) {
        Some(bench) => {
            fill::fill(&bench.with_file_name("docs").join("engine.md"), "targets", &results::targets(record))
        }
        None => Ok(()),
    }
}

/// The groups that patterns name; all without any.
fn groups(patterns: &[String]) -> anyhow::Result<Vec<Group>> {
    if let Some(pattern) = patterns.iter().find(|pattern| !GROUPS.iter().any(|group| group.is_named(pattern))) {
        bail!("--only {pattern}: no group is named so; there are {}", GROUPS.map(Group::name).join(", "));
    }
    let wanted = |group: &Group| patterns.is_empty() || patterns.iter().any(|pattern| group.is_named(pattern));
    Ok(GROUPS.into_iter().filter(wanted).collect())
}

/// What will be run; what cannot be had for it is told.
fn plan(args: &Compare, groups: &[Group], folder: &std::path::Path, missing: &mut Vec<String>) -> anyhow::Result<Plan> {
    let [client, server] = args.cpus[..] else { bail!("--cpus: two CPUs, such as 0,1") };
    let here = std::env::current_exe()?;
    let here = here.parent().context("this program is in no folder")?;
    let weir = args.weir.clone().unwrap_or_else(|| here.join("weir"));
    let null = here.join("null");
    for program in [&weir, &null] {
        if !program.is_file() {
            bail!("there is no {}: cargo build --release -p weir -p weir-bench", program.display());
        }
    }
    let servers = Programs {
        nginx: tool::find("nginx"),
        nghttpd: tool::find("nghttpd"),
        certificate: certificate::make(folder)?,
        weir,
        null,
    };
    if servers.nginx.is_none() {
        missing.push("nginx was not there (apt package nginx-light).".to_owned());
    }
    if servers.nghttpd.is_none() {
        missing.push("nghttpd was not there (apt package nghttp2-server).".to_owned());
    }
    let tools = tools(args, &servers, missing)?;
    let room = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let mut cells: Vec<cases::Cell> = groups.iter().flat_map(|group| group.cells()).collect();
    cells.retain(|cell| servers.nginx.is_some() || cell.group.part() != cases::Part::Nginx);
    cells.retain(|cell| args.connections.is_empty() || args.connections.contains(&cell.connections));
    cells.retain(|cell| args.size.is_empty() || args.size.contains(&cell.size));
    cells.retain(|cell| {
        let fits = u64::from(cell.connections) + 100 <= room;
        if !fits {
            missing.push(format!("{}: only {room} descriptors a process are allowed here.", cell.title()));
        }
        fits
    });
    Ok(Plan {
        rounds: args.rounds,
        seconds: args.seconds,
        seed: args.seed,
        cpus: [client, server],
        cells,
        tools,
        servers,
        all: args.all,
        patience: args.patience,
        keep_disturbed: args.quiet.anyway,
    })
}

/// The load generators that are there and wanted.
fn tools(args: &Compare, servers: &Programs, missing: &mut Vec<String>) -> anyhow::Result<Vec<Tool>> {
    if let Some(name) = args.tools.iter().find(|name| Kind::from_name(name).is_none()) {
        bail!("--tools: {name} is not known");
    }
    let mut tools = Vec::new();
    for kind in tool::KINDS {
        let wanted = args.tools.is_empty() || kind == Kind::Weir || args.tools.iter().any(|name| name == kind.name());
        if !wanted {
            continue;
        }
        let program = match kind {
            Kind::Weir => Some(servers.weir.clone()),
            Kind::Null => Some(servers.null.clone()),
            _ => tool::find(kind.name()),
        };
        match program {
            Some(program) => tools.push(Tool { kind, program }),
            None => missing.push(format!("{} was not there.", kind.name())),
        }
    }
    Ok(tools)
}

/// How many trials, and how long they take, s.
fn trials(plan: &Plan) -> (u64, u64) {
    let (mut trials, mut millis) = (0, 0);
    for cell in &plan.cells {
        let in_all = plan.subjects(cell).len() as u64 * u64::from(plan.rounds);
        trials += in_all;
        // Starting and ending both takes about a third of a second.
        millis += in_all * (1_000 * u64::from(plan.length(cell)) + 350);
    }
    (trials, millis / 1_000)
}

fn tell(done: u64, trials: u64, sample: &Sample) {
    let what = format!("{done:>4}/{trials} {}: {}", sample.cell.title(), sample.subject.name());
    match &sample.got {
        Ok(got) => {
            let requests = got.requests as f64;
            let rate = cases::grouped((requests / got.seconds) as u64);
            println!(
                "{what}: {rate}/s, client {:.2} us, server {:.2} us",
                got.client_us / requests,
                got.server_us / requests
            );
        }
        Err(error) => println!("{what}: FAILED: {error}"),
    }
}

/// As far as it goes; children inherit it.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
