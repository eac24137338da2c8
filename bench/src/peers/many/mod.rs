//! `peers many`: runs one client and one origin with very many connections, and measures the cost of each connection.
//! Called by the program `peers`.
//!
//! User memory is that of the processes alone (`/proc/<pid>/smaps_rollup`), less what they use with 64 connections,
//! divided by the additional connections. Kernel memory is the growth of its slabs and page tables. Both are sampled
//! while the load runs, and the highest values count.

mod memory;
mod page;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use weir_model::load::LoadResult;
use weir_model::protocol::Protocol;

use super::cases;
use super::client::SUITE;
use super::process::Running;
use super::server::{Options, Programs, RunningServer, Server};
use super::{Common, machine};
use memory::Memory;

/// Connections of the run that memory is compared with.
const FEW: u32 = 64;

/// Before the clock starts, s.
const WARMUP_S: u64 = 1;

/// How the many connections are made and used.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Connections
    #[arg(long, default_value_t = 200_000)]
    connections: u32,
    /// Requests a second, spread over all of them
    #[arg(long, default_value_t = 15_000)]
    rate: u32,
    /// Seconds of load after all are connected
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// plain, tls or juno; each is a run of its own
    #[arg(long, value_delimiter = ',', default_value = "plain,tls,juno", value_parser = cases::protocol)]
    wire: Vec<Protocol>,
    /// Threads of the client and of the origin; else as many as they choose
    #[arg(long)]
    threads: Option<u32>,
    /// Where to write
    #[arg(long, default_value = "bench/MANY.md")]
    out: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// The result of one load.
#[derive(Debug)]
struct Loaded {
    /// How client and origin were started.
    commands: [String; 2],
    /// From the client's start to the first moment of its warm-up, s.
    set_up_s: f64,
    /// Over time.
    samples: Vec<Memory>,
    /// What the client reports.
    report: LoadResult,
}

/// Runs the loads and writes the page.
///
/// # Errors
/// When the machine is busy, a program cannot be started or fails, or the page cannot be written.
pub fn main(args: &Args) -> anyhow::Result<()> {
    let busy = args.common.wait_until_quiet()?;
    let folder = super::scratch()?;
    let programs = args.common.programs(folder.path())?;
    let mut facts = machine::facts(&programs.weir);
    let limits = weir_vitals::environment();
    facts.push(("memory".to_owned(), format!("{:.1} GiB", limits.memory_bytes as f64 / f64::from(1 << 30))));
    facts.push(("descriptors a process".to_owned(), format!("at most {}", limits.descriptors.1)));
    let mut pairs = Vec::new();
    for &protocol in &args.wire {
        println!("{}: {FEW} connections, to compare with", protocol.title());
        let few = load(args, &programs, protocol, FEW, 3)?;
        println!("{}: {} connections", protocol.title(), args.connections);
        let many = load(args, &programs, protocol, args.connections, args.seconds)?;
        pairs.push(page::Pair { protocol, connections: args.connections, rate: args.rate, few, many });
    }
    let text = page::markdown(&facts, &busy, &pairs);
    print!("{text}");
    super::write(&args.out, &text)
}

fn load(
    args: &Args,
    programs: &Programs,
    protocol: Protocol,
    connections: u32,
    seconds: u32,
) -> anyhow::Result<Loaded> {
    let [client_cpu, cpu] = args.common.cpus;
    let threads = args.threads.map(|threads| format!(" -t {threads}")).unwrap_or_default();
    let arguments = words(&format!("--connections {connections}{threads}"));
    let origin =
        RunningServer::start(Server::Weir, programs, &Options { protocol, cpu, size: 128, arguments, log: None })?;
    let tls = if protocol.is_tls() { format!(" --tls-version 1.3 --tls-suite {SUITE}") } else { String::new() };
    let client = words(&format!(
        "load --quiet --json -c {connections} -d {seconds}s --rate {} --warmup {WARMUP_S}s --timeout 60s{threads}{tls} {}",
        args.rate, origin.url
    ));
    let start = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let running = Running::start(Command::new(&programs.weir).args(&client), client_cpu)?;
    let (pids, mut samples) = ([running.id(), origin.worker()], Vec::new());
    let mut due = Duration::ZERO;
    let ended = running.end(Duration::from_secs(u64::from(seconds) + 300), |at| {
        if at >= due {
            // A process may end while it is read.
            samples.extend(memory::sample(at, pids));
            due = at + Duration::from_millis(500);
        }
    })?;
    let report: LoadResult = serde_json::from_str(&ended.stdout).context("weir load ended without JSON")?;
    let set_up_s = (report.window_start_ms as f64 - start.as_secs_f64() * 1e3) / 1e3 - WARMUP_S as f64;
    Ok(Loaded { commands: [shown(&client), shown(&origin.argv[1..])], set_up_s, samples, report })
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn shown(arguments: &[String]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| machine::without_folder(word)).collect();
    format!("weir {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_folders() {
        assert_eq!(shown(&words("origin --cert /b/cert.pem")), "weir origin --cert cert.pem");
    }
}
