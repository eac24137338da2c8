//! `peers profile`: samples clients and origins with `perf record` on the CPU's clock, and tabulates their CPU time by
//! layer.
//!
//! Samples are assigned by call chain. So the kernel's work on the peer's packets during a process's time (softirqs on
//! loopback) has lines of its own.

mod layers;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use weir_model::protocol::Protocol;
use weir_vitals::Watch;

use super::cases::{Group, name, wire_name};
use super::client::{Client, Load};
use super::process::Running;
use super::server::{Options, Programs, RunningServer, Server};
use super::{Common, Fact, machine};
use layers::{LAYERS, Shares};

/// Seconds of a load, and of the part of it that is sampled.
const LOAD_S: u32 = 6;
const SAMPLED_S: u32 = 4;

/// Where and how.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Where to write
    #[arg(long, default_value = "bench/PROFILE.md")]
    out: PathBuf,
    /// A folder for flame graphs of weir's client and origin, made with inferno if that is installed
    #[arg(long)]
    flames: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// What is sampled: a client and a server, with so many connections and streams of each.
type Case = (Client, Server, Protocol, (u32, u32));

const CASES: [Case; 8] = [
    (Client::Weir, Server::Weir, Protocol::Http11, (64, 1)),
    (Client::Null, Server::Null, Protocol::Http11, (64, 1)),
    (Client::Wrk, Server::Weir, Protocol::Http11, (64, 1)),
    (Client::H1load, Server::Weir, Protocol::Http11, (64, 1)),
    (Client::Weir, Server::NginxCopy, Protocol::Http11, (64, 1)),
    (Client::Weir, Server::Weir, Protocol::Https11, (64, 1)),
    (Client::Weir, Server::Weir, Protocol::H2c, (64, 1)),
    (Client::Weir, Server::Weir, Protocol::H2c, (8, 32)),
];

/// Where the CPU time of one process went.
#[derive(Debug)]
struct Column {
    name: String,
    /// CPU time a request, µs.
    cost: f64,
    shares: Shares,
}

/// Samples all cases and writes the page.
///
/// # Errors
/// When the machine is busy, perf is not installed, or a program fails.
pub fn main(args: &Args) -> anyhow::Result<()> {
    let busy = args.common.wait_until_quiet()?;
    let folder = super::scratch()?;
    let programs = args.common.programs(folder.path())?;
    let (mut clients, mut servers, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for case in CASES {
        let (client, server, ..) = case;
        let (Some(program), Some(_)) = (client.program(&programs), server.program(&programs)) else {
            missing.push(names(case)[0].clone());
            continue;
        };
        let [of_client, of_server] = sample(case, &program, &programs, folder.path(), args)?;
        println!("{}: {:.2} µs; {}: {:.2} µs", of_client.name, of_client.cost, of_server.name, of_server.cost);
        clients.push(of_client);
        if client == Client::Weir || server == Server::Null {
            servers.push(of_server);
        }
    }
    let mut facts = machine::facts(&programs.weir);
    if !missing.is_empty() {
        facts.push(("not installed".to_owned(), missing.join(", ")));
    }
    let text = markdown(&facts, &busy, &clients, &servers);
    print!("{text}");
    super::write(&args.out, &text)
}

fn sample(case: Case, program: &Path, programs: &Programs, folder: &Path, args: &Args) -> anyhow::Result<[Column; 2]> {
    let (client, server, protocol, (connections, streams)) = case;
    let [client_cpu, cpu] = args.common.cpus;
    let options = Options { protocol, cpu, size: 128, arguments: Vec::new(), log: None };
    let running = RunningServer::start(server, programs, &options)?;
    let (group, url) = (Group::Clients, running.url.clone());
    let load = Load { group, url, protocol, connections, streams, size: 128, seconds: LOAD_S };
    let watch = Watch::start(vec![running.watched()])?;
    watch.begin_window(weir_vitals::clock::now(), None)?;
    let started = Running::start(Command::new(program).args(client.arguments(&load)), client_cpu)?;
    std::thread::sleep(Duration::from_secs(1));
    let pids = [started.id(), running.worker()];
    let data = folder.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "4999", "-g", "-p", &format!("{},{}", pids[0], pids[1]), "-o"]);
    perf.arg(&data).args(["--", "sleep", &SAMPLED_S.to_string()]).stdout(Stdio::null());
    // Not waited for before the client has ended: its CPU time would count as the client's.
    let mut perf = perf.spawn().context("perf cannot be started (apt package linux-perf)")?;
    let ended = started.end(Duration::from_secs(u64::from(LOAD_S) + 30), |_| {})?;
    let status = perf.wait()?;
    if !status.success() {
        bail!("perf record ended with {status}");
    }
    let usage = &watch.end_window()?.usage[0];
    let cpu_us = [ended.cpu_us, (usage.cpu_user_us + usage.cpu_system_us) as f64];
    let requests = client.requests(&ended.stdout, &ended.stderr)?.max(1) as f64;
    let output = Command::new("perf").args(["script", "-F", "pid,ip,sym", "-i"]).arg(&data).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names = names(case);
    if let Some(flames) = args.flames.as_ref().filter(|_| client == Client::Weir && server == Server::Weir) {
        std::fs::create_dir_all(flames)?;
        for (name, pid) in names.iter().zip(pids) {
            layers::flame_graph(&text, pid, &flames.join(file_name(name)))?;
        }
    }
    Ok([0, 1].map(|at| Column {
        name: names[at].clone(),
        cost: cpu_us[at] / requests,
        shares: layers::shares(&text, pids[at]),
    }))
}

/// Of the client and of the server.
fn names((client, server, protocol, (connections, streams)): Case) -> [String; 2] {
    let spoken = match wire_name(protocol) {
        "plain" => String::new(),
        name => format!(" {}", name.replace("-tls", " TLS").replace("tls", "TLS")),
    };
    let shape = if protocol.is_multiplexed() { format!(" {connections} x {streams}") } else { String::new() };
    let (against, server) = match server {
        Server::NginxCopy => (" to nginx", "nginx".to_owned()),
        server => ("", name(server)),
    };
    [format!("{}{against}{spoken}{shape}", name(client)), format!("{server} origin{spoken}{shape}")]
}

fn file_name(name: &str) -> String {
    format!("{}.svg", name.replace(' ', "-"))
}

fn markdown(facts: &[Fact], busy: &[String], clients: &[Column], servers: &[Column]) -> String {
    let mut out = String::from(
        "# Where the CPU time goes\n\nWritten by `make bench-profile`: samples of the CPU's clock, assigned by their call chains. A cell has\n\
         µs a request and the share of all. Unless a column says otherwise: plain HTTP/1.1, 64 connections, responses of 128 B, clients\n\
         against weir's origin. `docs/engine.md` explains the lines.\n",
    );
    super::described(&mut out, facts, busy);
    out.push_str("\n## Clients\n\n");
    table(&mut out, clients);
    out.push_str("\n## Origins\n\n");
    table(&mut out, servers);
    out.push_str("\n## Functions with 1 % and more\n");
    for column in clients.iter().chain(servers) {
        let _ = write!(out, "\n{}:\n\n", column.name);
        for (layer, name, _) in LAYERS {
            let functions = column.shares.top_functions(layer);
            if !functions.is_empty() {
                let _ = writeln!(out, "- {name}: {functions}");
            }
        }
    }
    out
}

fn table(out: &mut String, columns: &[Column]) {
    let mut line = |first: &str, cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns.iter().map(cell).collect();
        let _ = writeln!(out, "| {first} | {} |", cells.join(" | "));
    };
    let share_and_cost = |share: f64, column: &Column| match share {
        0.0 => String::new(),
        _ => format!("{:.2} ({:.0} %)", share * column.cost, 100.0 * share),
    };
    line("µs a request", &|column| column.name.clone());
    line("---", &|_| "---".to_owned());
    for (layer, name, _) in LAYERS {
        line(name, &|column| share_and_cost(column.shares.of(layer), column));
    }
    line("all", &|column| format!("{:.2}", column.cost));
    let tcp = LAYERS.iter().filter(|(_, _, is_tcp)| *is_tcp).map(|(layer, ..)| *layer);
    line("of it TCP/IP", &|column| share_and_cost(tcp.clone().map(|layer| column.shares.of(layer)).sum(), column));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_files_have_names() {
        let named = names(CASES[7]);
        assert_eq!(named, ["weir h2c 8 x 32", "weir origin h2c 8 x 32"]);
        assert_eq!(file_name(&named[0]), "weir-h2c-8-x-32.svg");
        assert_eq!(names(CASES[4]), ["weir to nginx", "nginx origin"]);
    }

    #[test]
    fn a_table_has_costs_and_shares() {
        let text = "1 \n\tffff tcp_sendmsg\n\n1 \n\tffff main\n\n";
        let column = Column { name: "a".to_owned(), cost: 4.0, shares: layers::shares(text, 1) };
        let mut out = String::new();
        table(&mut out, &[column]);
        assert!(out.contains("| send: TCP and IP out | 2.00 (50 %) |"), "{out}");
        assert!(out.contains("| of it TCP/IP | 2.00 (50 %) |"), "{out}");
    }
}
