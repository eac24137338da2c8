//! `peers many`: runs one client and one origin with very many connections, and measures the cost of each connection.
//!
//! User memory is that of the processes alone (`/proc/<pid>/smaps_rollup`), less what they use with 64 connections,
//! divided by the additional connections. Kernel memory is the growth of its slabs and page tables. Both are sampled
//! while the load runs, and the highest values count. Over ten minutes or more, memory also has to stay as it is. What the end costs is the
//! CPU time of the client after its window.

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

/// Samples of memory in a load, about: reading what a process has costs CPU time.
const MOST_SAMPLES: u32 = 2_000;

/// Before the clock starts, s.
const WARMUP_S: u64 = 1;

/// How the many connections are made and used.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Connections; each number is a run of its own
    #[arg(long, value_delimiter = ',', default_value = "200000")]
    connections: Vec<u32>,
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
    /// End with status 1 when a target is not reached
    #[arg(long)]
    strict: bool,
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
    /// CPU time of the client from the end of its window to its own end, µs.
    end_cpu_us: f64,
    /// Over time.
    samples: Vec<Memory>,
    /// What the client reports.
    report: LoadResult,
}

/// Runs the loads and writes the page.
///
/// # Errors
/// When the machine is busy, a program cannot be started or fails, or the page cannot be written; when it has to be strict, also when a
/// target was not reached.
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
        for &connections in &args.connections {
            println!("{}: {FEW} connections, to compare with", protocol.title());
            let few = load(args, &programs, protocol, FEW, 3)?;
            println!("{}: {connections} connections", protocol.title());
            let many = load(args, &programs, protocol, connections, args.seconds)?;
            pairs.push(page::Pair { protocol, connections, rate: args.rate, few, many });
        }
    }
    let text = page::markdown(&facts, &busy, &pairs);
    print!("{text}");
    super::write(&args.out, &text)?;
    anyhow::ensure!(!args.strict || !text.contains(page::MISSED), "a target was not reached");
    Ok(())
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
    let (mut due, mut spent) = (Duration::ZERO, Vec::new());
    let every = Duration::from_millis(500).max(Duration::from_secs(seconds.into()) / MOST_SAMPLES);
    let ended = running.end(Duration::from_secs(u64::from(seconds) + 600), |at| {
        spent.extend(cpu_us(pids[0]).map(|cpu_us| (at, cpu_us)));
        if at >= due {
            // A process may end while it is read.
            samples.extend(memory::sample(at, pids));
            due = at + every;
        }
    })?;
    let report: LoadResult = serde_json::from_str(&ended.stdout).context("weir load ended without JSON")?;
    let set_up_s = (report.window_start_ms as f64 - start.as_secs_f64() * 1e3) / 1e3 - WARMUP_S as f64;
    let over = Duration::from_secs_f64(set_up_s + WARMUP_S as f64 + report.window_s);
    let before_end = spent.iter().rev().find(|(at, _)| *at <= over).map_or(0.0, |(_, cpu_us)| *cpu_us);
    let end_cpu_us = ended.cpu_us - before_end;
    Ok(Loaded { end_cpu_us, commands: [shown(&client), shown(&origin.argv[1..])], set_up_s, samples, report })
}

/// CPU time of a process so far, µs; `None` when it is gone.
fn cpu_us(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything: user and system time are fields 14 and 15 of all.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) * 1e6 / rustix::param::clock_ticks_per_second() as f64)
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
    fn the_cpu_time_of_a_process_grows() {
        let own = std::process::id();
        let before = cpu_us(own).unwrap();
        for _ in 0..1_000 {
            if cpu_us(own).unwrap() > before {
                return;
            }
            (0..100_000).fold(0_u64, |sum, number| std::hint::black_box(sum ^ number));
        }
        panic!("it stays at {before} µs");
    }

    #[test]
    fn a_command_is_shown_without_folders() {
        assert_eq!(shown(&words("origin --cert /b/cert.pem")), "weir origin --cert cert.pem");
    }
}
