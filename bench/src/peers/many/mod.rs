//! `peers many`: one client and one origin with very many connections, and what each connection costs.
//!
//! Two processes and no more. Memory of users is the processes' own (`/proc/<pid>/smaps_rollup`), less what the same
//! processes take with 64 connections, divided by the connections that were more; memory of the kernel is what its
//! slabs and page tables grew. Everything is sampled while the load runs and told at its highest.

mod memory;
mod page;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use serde_json::Value;

use super::{busy, certificate, facts, fill, process, tool};
use certificate::Certificate;
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
    /// What is spoken; each is a run of its own
    #[arg(long, value_delimiter = ',', default_value = "plain,tls")]
    wire: Vec<Spoken>,
    /// Threads of the client and of the origin; else as many as they choose
    #[arg(long)]
    threads: Option<u32>,
    /// CPUs of the client and of the origin
    #[arg(long, default_value = "0,1", value_delimiter = ',', num_args = 1)]
    cpus: Vec<usize>,
    /// weir's binary; else the one beside this program
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Where to write
    #[arg(long, default_value = "bench/MANY.md")]
    out: PathBuf,
    /// The page on the engine, in which what was to be reached is filled in
    #[arg(long, default_value = "docs/engine.md")]
    engine: PathBuf,
    #[command(flatten)]
    quiet: busy::Args,
}

/// With TLS or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Spoken {
    /// HTTP/1.1
    Plain,
    /// HTTP/1.1 over TLS 1.3
    Tls,
}

/// What one load came to.
#[derive(Debug)]
struct Done {
    /// How client and origin were started.
    commands: [String; 2],
    /// From the client's start to the first moment of its warm-up, s.
    set_up_s: f64,
    /// Over time.
    samples: Vec<Memory>,
    /// What the client says, as JSON.
    told: Value,
}

/// Runs what is asked for and writes the page.
///
/// # Errors
/// When the machine is busy, a program cannot be started or fails, or the page cannot be written.
pub fn main(args: &Args) -> anyhow::Result<()> {
    let reasons = args.quiet.reasons()?;
    let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
    let weir = match &args.weir {
        Some(weir) => weir.clone(),
        None => std::env::current_exe()?.with_file_name("weir"),
    };
    let place = Place { weir, certificate: certificate::make(folder.path())?, folder: folder.path() };
    let mut facts = facts::machine();
    facts.push(("memory".to_owned(), format!("{:.1} GiB", memory::total_bytes()? as f64 / f64::from(1 << 30))));
    facts.push(("descriptors a process".to_owned(), memory::descriptor_limit()));
    facts.push(facts::command());
    facts.push(facts::weir(&place.weir));
    let mut parts = Vec::new();
    for &spoken in &args.wire {
        println!("{spoken:?}: {FEW} connections, to compare with");
        let few = load(args, &place, spoken, FEW, 3)?;
        println!("{spoken:?}: {} connections", args.connections);
        let many = load(args, &place, spoken, args.connections, args.seconds)?;
        parts.push(page::Part { spoken, connections: args.connections, rate: args.rate, few, many });
    }
    let text = page::markdown(&facts, &reasons, &parts);
    std::fs::write(&args.out, &text).with_context(|| args.out.display().to_string())?;
    fill::fill(&args.engine, "many", &page::targets(&parts))?;
    print!("{text}");
    Ok(())
}

/// What all loads have in common.
struct Place<'a> {
    weir: PathBuf,
    certificate: Certificate,
    folder: &'a Path,
}

fn load(args: &Args, place: &Place<'_>, spoken: Spoken, connections: u32, seconds: u32) -> anyhow::Result<Done> {
    let [client_cpu, origin_cpu] = args.cpus[..] else { bail!("--cpus: two CPUs, such as 0,1") };
    let mut command = origin(args, place, spoken, connections);
    let shown = text(&command);
    let mut origin = Ending(process::spawn_on(origin_cpu, &mut command)?);
    let port = listening(&mut origin.0)?;
    let out = place.folder.join("load.json");
    let mut command = client(args, spoken, connections, seconds, port, &place.weir);
    let commands = [text(&command), shown];
    command.stdout(std::fs::File::create(&out)?).stdin(Stdio::null()).stderr(Stdio::inherit());
    let (start, clock) = (SystemTime::now().duration_since(UNIX_EPOCH)?, Instant::now());
    let mut client = Ending(process::spawn_on(client_cpu, &mut command)?);
    let mut samples = Vec::new();
    let status = loop {
        if let Some(status) = client.0.try_wait()? {
            break status;
        }
        if clock.elapsed() > Duration::from_secs(u64::from(seconds) + 300) {
            bail!("the client with {connections} connections did not end");
        }
        // It may end while it is looked at.
        if let Ok(sample) = memory::sample(clock.elapsed(), [client.0.id(), origin.0.id()]) {
            samples.push(sample);
        }
        std::thread::sleep(Duration::from_millis(500));
    };
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&out)?)
        .with_context(|| format!("weir load ended with {status} and without JSON"))?;
    let window = told["window_start_ms"].as_u64().context("weir load: no window_start_ms")?;
    let set_up_s = (window as f64 - start.as_secs_f64() * 1e3) / 1e3 - WARMUP_S as f64;
    Ok(Done { commands, set_up_s, samples, told })
}

fn origin(args: &Args, place: &Place<'_>, spoken: Spoken, connections: u32) -> Command {
    let mut command = Command::new(&place.weir);
    command.args(["origin", "--listen", "127.0.0.1:0", "--json", "--connections", &connections.to_string()]);
    if let Some(threads) = args.threads {
        command.args(["-t", &threads.to_string()]);
    }
    if spoken == Spoken::Tls {
        command.args(["--tls", "--tls-version", "1.3", "--resume", "off"]);
        command.arg("--cert").arg(&place.certificate.cert).arg("--key").arg(&place.certificate.key);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

fn client(args: &Args, spoken: Spoken, connections: u32, seconds: u32, port: u16, weir: &Path) -> Command {
    let mut command = Command::new(weir);
    command.args(["load", "--quiet", "--json", "-c", &connections.to_string(), "-d", &format!("{seconds}s")]);
    command.args(["--rate", &args.rate.to_string(), "--warmup", &format!("{WARMUP_S}s"), "--timeout", "60s"]);
    if let Some(threads) = args.threads {
        command.args(["-t", &threads.to_string()]);
    }
    let scheme = match spoken {
        Spoken::Plain => "http",
        Spoken::Tls => {
            command.args(["--tls-version", "1.3", "--tls-suite", tool::SUITE]);
            "https"
        }
    };
    command.arg(format!("{scheme}://127.0.0.1:{port}/bytes/128"));
    command
}

fn listening(child: &mut Child) -> anyhow::Result<u16> {
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    let said: Value = serde_json::from_str(&line).with_context(|| format!("the origin says {line:?}"))?;
    let address = said["listening"].as_str().context("the origin does not say where it listens")?;
    Ok(address.parse::<std::net::SocketAddr>().context(address.to_owned())?.port())
}

fn text(command: &Command) -> String {
    let words = command.get_args().map(|word| {
        let word = Path::new(word);
        // A folder says something about one machine only.
        let name = if word.is_absolute() { word.file_name() } else { None };
        name.unwrap_or(word.as_os_str()).to_string_lossy().into_owned()
    });
    format!("weir {}", words.collect::<Vec<_>>().join(" "))
}

/// A child that ends when it is dropped.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_folders() {
        let mut command = Command::new("/a/weir");
        command.args(["origin", "--cert", "/b/cert.pem"]);
        assert_eq!(text(&command), "weir origin --cert cert.pem");
    }
}
