//! Runs load generators and origins in turn, and writes what they cost beside weir into `RESULTS.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::Parser;
use weir_bench::peers::cases::{self, Cell, OPEN, Part};
use weir_bench::peers::results::{self, Setting};
use weir_bench::peers::run::{self, Plan, Sample};
use weir_bench::peers::server::Programs;
use weir_bench::peers::tool::{self, Kind, Load, Tool};
use weir_bench::peers::{busy, capture};

#[derive(Parser)]
#[command(about = "Compares what load generators and origins cost, weir's among them")]
struct Args {
    /// Connections, such as 1,64,10000; alone or with --size: every pair of both
    #[arg(long, value_delimiter = ',')]
    connections: Vec<u32>,
    /// Bytes of an answer, such as 128,11268
    #[arg(long, value_delimiter = ',')]
    size: Vec<u64>,
    /// Rounds; every case is run once a round
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of one trial
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Part>,
    /// Only these load generators (weir is always one)
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// All load generators in every cell of clients, not only weir, null and wrk
    #[arg(long)]
    all: bool,
    /// A load generator that no registry offers: h1load, oha or fortio, as name=path. May be repeated
    #[arg(long)]
    extra: Vec<String>,
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
    /// Measure even when the machine is busy, and say so in the file
    #[arg(long)]
    anyway: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    raise_descriptor_limit();
    let reasons = busy::reasons()?;
    if !reasons.is_empty() && !args.anyway {
        bail!("the machine is busy: {}. Wait, or say --anyway; nothing was measured or written", reasons.join("; "));
    }
    let (plan, missing) = plan(&args)?;
    let (trials, seconds) = trials(&plan);
    println!("{trials} trials: about {} minutes", seconds / 60 + 1);
    let mut setting = Setting { busy: reasons, missing, ..Setting::default() };
    setting.facts = facts(&plan, &args);
    setting.requests = requests(&plan)?;
    let mut done = 0;
    let samples = run::run(&plan, |sample, cell| {
        done += 1;
        tell(done, trials, sample, cell);
    })?;
    std::fs::write(&args.out, results::markdown(&setting, &plan, &samples))
        .with_context(|| args.out.display().to_string())?;
    let raw = args.out.with_extension("csv");
    std::fs::write(&raw, results::csv(&plan, &samples)).with_context(|| raw.display().to_string())?;
    println!("{} and {} written", args.out.display(), raw.display());
    Ok(())
}

/// The plan, and what could not be had for it.
fn plan(args: &Args) -> anyhow::Result<(Plan, Vec<String>)> {
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
    let nginx = tool::find_in_path("nginx");
    let mut missing = Vec::new();
    if nginx.is_none() {
        missing.push("nginx is not installed (apt package nginx-light).".to_owned());
    }
    let tools = tools(args, &weir, &null, &mut missing)?;
    let parts = if args.only.is_empty() {
        vec![Part::Clients, Part::Nginx, Part::Origins, Part::Open]
    } else {
        args.only.clone()
    };
    let mut cells = cases::cells(&parts, &args.connections, &args.size);
    cells.retain(|cell| cell.part != Part::Nginx || nginx.is_some());
    let room = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    cells.retain(|cell| {
        let fits = u64::from(cell.connections) + 100 <= room;
        if !fits {
            missing.push(format!("{}: only {room} descriptors a process are allowed here.", cell.title()));
        }
        fits
    });
    let servers = Programs { weir, null, nginx };
    let plan = Plan {
        rounds: args.rounds,
        seconds: args.seconds,
        seed: args.seed,
        cpus: [client, server],
        cells,
        tools,
        servers,
        all: args.all,
        patience: args.patience,
        keep_disturbed: args.anyway,
    };
    Ok((plan, missing))
}

/// The load generators that are there and wanted.
fn tools(args: &Args, weir: &Path, null: &Path, missing: &mut Vec<String>) -> anyhow::Result<Vec<Tool>> {
    if let Some(name) = args.tools.iter().find(|name| Kind::from_name(name).is_none()) {
        bail!("--tools: {name} is not known");
    }
    let extras: Vec<Tool> = args.extra.iter().map(|text| tool::extra(text)).collect::<anyhow::Result<_>>()?;
    let mut tools = Vec::new();
    for kind in tool::KINDS {
        let wanted = args.tools.is_empty() || kind == Kind::Weir || args.tools.iter().any(|name| name == kind.name());
        if !wanted {
            continue;
        }
        let program = match kind {
            Kind::Weir => Some(weir.to_owned()),
            Kind::Null => Some(null.to_owned()),
            _ => extras
                .iter()
                .find(|extra| extra.kind == kind)
                .map(|extra| extra.program.clone())
                .or_else(|| tool::find_in_path(kind.name())),
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
    let tools: Vec<Kind> = plan.tools.iter().map(|tool| tool.kind).collect();
    let servers = weir_bench::peers::server::KINDS;
    let (mut trials, mut millis) = (0, 0);
    for cell in &plan.cells {
        let in_round = cell.subjects(&tools, &servers, plan.all).len() as u64;
        trials += in_round * u64::from(plan.rounds);
        // Starting and ending both takes about a third of a second.
        millis += in_round * u64::from(plan.rounds) * (1_000 * u64::from(plan.length(cell)) + 350);
    }
    (trials, millis / 1_000)
}

/// Machine, programs and run.
fn facts(plan: &Plan, args: &Args) -> Vec<(String, String)> {
    let uname = rustix::system::uname();
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, name)| name);
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    let mut facts = vec![
        ("date".to_owned(), jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string()),
        ("CPUs".to_owned(), format!("{count} x {model}")),
        ("kernel".to_owned(), uname.release().to_string_lossy().into_owned()),
        ("pinned".to_owned(), format!("client to CPU {}, server to CPU {}", plan.cpus[0], plan.cpus[1])),
        (
            "run".to_owned(),
            format!("{} rounds of {} s a trial, order shuffled from seed {}", plan.rounds, plan.seconds, plan.seed),
        ),
        (
            "command".to_owned(),
            format!("`peers {}`", std::env::args().skip(1).map(without_folder).collect::<Vec<_>>().join(" ")),
        ),
    ];
    let commit = first_line(Command::new("git").args(["describe", "--always", "--dirty"]));
    let version = first_line(Command::new(&plan.servers.weir).arg("--version"));
    facts.push(("weir".to_owned(), format!("{version}, source {commit}")));
    for tool in &plan.tools {
        if let Some(package) = tool.kind.package() {
            facts.push((tool.kind.name().to_owned(), format!("apt {package} {}", apt_version(package))));
        } else if !matches!(tool.kind, Kind::Weir | Kind::Null) {
            let extra = args.extra.iter().any(|text| text.starts_with(tool.kind.name()));
            facts.push((
                tool.kind.name().to_owned(),
                if extra { "given with --extra" } else { "found in PATH" }.to_owned(),
            ));
        }
    }
    if let Some(nginx) = &plan.servers.nginx {
        let output = Command::new(nginx).arg("-v").output().map(|output| output.stderr).unwrap_or_default();
        let version = String::from_utf8_lossy(&output).trim().replace("nginx version: ", "");
        facts.push((
            "nginx".to_owned(),
            format!("{version}, one worker, static file, open_file_cache, no access log; as a target of clients with sendfile off"),
        ));
    }
    facts
}

/// An argument without the folder of a path in it, which says something about one machine only.
fn without_folder(argument: String) -> String {
    let (name, value) = argument.split_once('=').map_or(("", &argument[..]), |(name, value)| (name, value));
    let file = Path::new(value).file_name().map_or(value.into(), |file| file.to_string_lossy());
    if name.is_empty() { file.into_owned() } else { format!("{name}={file}") }
}

fn apt_version(package: &str) -> String {
    first_line(Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]))
}

fn first_line(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or("?").to_owned()
}

/// How each tool is started, and what it then sends.
fn requests(plan: &Plan) -> anyhow::Result<Vec<(String, String)>> {
    let folder = tempfile::tempdir()?;
    let url = || "http://127.0.0.1:PORT/bytes/128".to_owned();
    let mut told = Vec::new();
    for tool in &plan.tools {
        let name = tool.kind.name();
        let request = capture::request_of(tool, "/bytes/128", plan.cpus[0], folder.path())
            .unwrap_or_else(|error| format!("({error:#})"));
        let load = Load { url: url(), connections: 64, seconds: plan.seconds };
        told.push((format!("{name} {}", tool.kind.arguments(&load).join(" ")), request));
    }
    if plan.cells.iter().any(|cell| cell.part == Part::Open) {
        let open = run::open_arguments(plan.seconds, url()).join(" ");
        told.push((format!("weir {open}"), format!("(as above, {} a second)", OPEN.0)));
    }
    Ok(told)
}

fn tell(done: u64, trials: u64, sample: &Sample, cell: &Cell) {
    let what = format!("{done:>4}/{trials} {}: {}", cell.title(), sample.subject.name());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_left_out() {
        let shown = |argument: &str| without_folder(argument.to_owned());
        assert_eq!(shown("h1load=/a/b/h1load"), "h1load=h1load");
        assert_eq!(shown("/a/b/weir"), "weir");
        assert_eq!(shown("clients,open"), "clients,open");
        assert_eq!(shown("--only=open"), "--only=open");
    }
}
