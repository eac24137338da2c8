//! `peers profile`: where the CPU of clients and origins goes, by `perf record` on the CPU's clock, as one table.
//!
//! Samples are told apart by what stands in their call chain, so that work which the kernel does for the peer's packet in a
//! process's time (softirqs on loopback) has lines of its own.

mod place;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use super::cases::Wire;
use super::server::{self, Programs, Server};
use super::tool::{self, Kind, Load, Tool};
use super::{busy, certificate, facts, fill, process};
use place::{PLACES, Place, Shares};

/// Seconds of a load, and of the part of it that is looked at.
const SECONDS: u32 = 6;
const LOOK_S: u32 = 4;

/// Where and how.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// CPU of clients and CPU of servers
    #[arg(long, default_value = "0,1", value_delimiter = ',', num_args = 1)]
    cpus: Vec<usize>,
    /// weir's binary; else the one beside this program
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Where to write
    #[arg(long, default_value = "bench/PROFILE.md")]
    out: PathBuf,
    /// A folder that takes flame graphs of weir's client and origin, made with inferno if that is there
    #[arg(long)]
    flames: Option<PathBuf>,
    /// The page on the engine, in which the tables are filled in
    #[arg(long, default_value = "docs/engine.md")]
    engine: PathBuf,
    #[command(flatten)]
    quiet: busy::Args,
}

/// What is looked at: a client and a server.
#[derive(Debug, Clone, Copy)]
struct Case {
    client: Kind,
    server: server::Kind,
    wire: Wire,
    connections: u32,
    streams: u32,
}

const fn case(client: Kind, server: server::Kind, wire: Wire, (connections, streams): (u32, u32)) -> Case {
    Case { client, server, wire, connections, streams }
}

const CASES: [Case; 8] = [
    case(Kind::Weir, server::Kind::Weir, Wire::Plain, (64, 1)),
    case(Kind::Null, server::Kind::Null, Wire::Plain, (64, 1)),
    case(Kind::Wrk, server::Kind::Weir, Wire::Plain, (64, 1)),
    case(Kind::H1load, server::Kind::Weir, Wire::Plain, (64, 1)),
    case(Kind::Weir, server::Kind::NginxCopy, Wire::Plain, (64, 1)),
    case(Kind::Weir, server::Kind::Weir, Wire::Tls, (64, 1)),
    case(Kind::Weir, server::Kind::Weir, Wire::H2c, (64, 1)),
    case(Kind::Weir, server::Kind::Weir, Wire::H2c, (8, 32)),
];

/// Where the CPU of one process went.
#[derive(Debug)]
struct Column {
    name: String,
    /// CPU a request, us.
    cost: f64,
    shares: Shares,
}

/// Looks at all cases and writes the page.
///
/// # Errors
/// When the machine is busy, there is no perf, or a program fails.
pub fn main(args: &Args) -> anyhow::Result<()> {
    let [client_cpu, server_cpu] = args.cpus[..] else { bail!("--cpus: two CPUs, such as 0,1") };
    let reasons = args.quiet.reasons()?;
    let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
    let here = std::env::current_exe()?;
    let programs = Programs {
        weir: args.weir.clone().unwrap_or_else(|| here.with_file_name("weir")),
        null: here.with_file_name("null"),
        nginx: tool::find("nginx"),
        nghttpd: None,
        certificate: certificate::make(folder.path())?,
    };
    let (mut clients, mut servers, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for case in CASES {
        let program = match case.client {
            Kind::Weir => Some(programs.weir.clone()),
            Kind::Null => Some(programs.null.clone()),
            kind => tool::find(kind.name()),
        };
        let Some(program) = program else {
            missing.push(case.client.name());
            continue;
        };
        let tool = Tool { kind: case.client, program };
        let (client, server) = look(case, &tool, &programs, [client_cpu, server_cpu], folder.path(), args)?;
        println!("{}: {:.2} us; {}: {:.2} us", client.name, client.cost, server.name, server.cost);
        clients.push(client);
        if case.client == Kind::Weir || case.server == server::Kind::Null {
            servers.push(server);
        }
    }
    let mut facts = facts::machine();
    facts.push(facts::command());
    facts.push(facts::weir(&programs.weir));
    if !missing.is_empty() {
        facts.push(("not there".to_owned(), missing.join(", ")));
    }
    let text = markdown(&facts, &reasons, &clients, &servers);
    std::fs::write(&args.out, &text).with_context(|| args.out.display().to_string())?;
    let mut tables = String::new();
    table(&mut tables, &clients);
    tables.push('\n');
    table(&mut tables, &servers);
    fill::fill(&args.engine, "profile", &tables)?;
    print!("{text}");
    Ok(())
}

fn look(
    case: Case,
    tool: &Tool,
    programs: &Programs,
    [client_cpu, server_cpu]: [usize; 2],
    folder: &Path,
    args: &Args,
) -> anyhow::Result<(Column, Column)> {
    let server = Server::start(case.server, programs, case.wire, server_cpu, 128)?;
    let load = Load {
        url: server.url(),
        wire: case.wire,
        connections: case.connections,
        streams: case.streams,
        seconds: SECONDS,
    };
    let mut command = Command::new(&tool.program);
    command.args(tool.kind.arguments(&load));
    let server_before = server.cpu_us()?;
    let client = process::start_on(client_cpu, &mut command, folder)?;
    std::thread::sleep(Duration::from_secs(1));
    // nginx's worker is the child that works.
    let serving = process::busiest(server.id())?;
    let data = folder.join("perf.data");
    let pids = format!("{},{serving}", client.id());
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "4999", "-g", "-p", &pids, "-o"]).arg(&data);
    perf.args(["--", "sleep", &LOOK_S.to_string()]).stdout(Stdio::null());
    let status = perf.status().context("perf cannot be started (apt package linux-perf)")?;
    if !status.success() {
        bail!("perf record ended with {status}");
    }
    let client_id = client.id();
    let ended = client.end(Duration::from_secs(u64::from(SECONDS) + 30))?;
    let requests = tool.kind.requests(&ended.stdout, &ended.stderr)?.max(1) as f64;
    let server_us = server.cpu_us()? - server_before;
    let output = Command::new("perf").args(["script", "-F", "pid,ip,sym", "-i"]).arg(&data).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names = names(case);
    let drawn = case.client == Kind::Weir && case.server == server::Kind::Weir;
    if let Some(flames) = args.flames.as_ref().filter(|_| drawn) {
        std::fs::create_dir_all(flames)?;
        place::flame(&text, client_id, &flames.join(file_name(&names[0])))?;
        place::flame(&text, serving, &flames.join(file_name(&names[1])))?;
    }
    let column = |name: &str, pid, us: f64| Column {
        name: name.to_owned(),
        cost: us / requests,
        shares: place::shares(&text, pid),
    };
    Ok((column(&names[0], client_id, ended.cpu_us), column(&names[1], serving, server_us)))
}

/// Of the client and of the server.
fn names(case: Case) -> [String; 2] {
    let wire = match case.wire {
        Wire::Plain => "",
        Wire::Tls => " TLS",
        Wire::H2c => " h2c",
        Wire::H2Tls => " h2 TLS",
    };
    let shape = if case.wire.is_h2() { format!(" {} x {}", case.connections, case.streams) } else { String::new() };
    let against = if case.server == server::Kind::NginxCopy { " to nginx" } else { "" };
    let server = if case.server == server::Kind::NginxCopy { "nginx" } else { case.server.name() };
    [format!("{}{against}{wire}{shape}", case.client.name()), format!("{server} origin{wire}{shape}")]
}

fn file_name(name: &str) -> String {
    format!("{}.svg", name.replace(' ', "-"))
}

fn markdown(facts: &[(String, String)], busy: &[String], clients: &[Column], servers: &[Column]) -> String {
    let mut out = String::from(
        "# Where the CPU goes\n\nWritten by `peers profile` (`make bench-profile`): samples of the CPU's clock, told apart by their call chains. A cell is\n\
         us a request and the share of all. Unless a column says otherwise: plain HTTP/1.1, 64 connections, answers of 128 B, clients against weir's\n\
         origin. What each line means stands in `docs/engine.md`.\n",
    );
    if !busy.is_empty() {
        let _ =
            write!(out, "\n**The machine was busy when this was measured: {}.** Take it as a hint.\n", busy.join("; "));
    }
    out.push_str("\n| | |\n|---|---|\n");
    for (name, value) in facts {
        let _ = writeln!(out, "| {name} | {} |", value.replace('|', "\\|"));
    }
    out.push_str("\n## Clients\n\n");
    table(&mut out, clients);
    out.push_str("\n## Origins\n\n");
    table(&mut out, servers);
    out.push_str("\n## The functions at the top of each line\n");
    for column in clients.iter().chain(servers) {
        let _ = write!(out, "\n{}:\n\n", column.name);
        for place in PLACES {
            let tops = column.shares.tops(place);
            if !tops.is_empty() {
                let _ = writeln!(out, "- {}: {tops}", place.name());
            }
        }
    }
    out
}

fn table(out: &mut String, columns: &[Column]) {
    let line = |out: &mut String, first: &str, cells: Vec<String>| {
        let _ = writeln!(out, "| {first} | {} |", cells.join(" | "));
    };
    line(out, "us a request", columns.iter().map(|column| column.name.clone()).collect());
    line(out, "---", columns.iter().map(|_| "---".to_owned()).collect());
    for place in PLACES {
        let cell = |column: &Column| {
            let share = column.shares.of(place);
            if share == 0.0 { String::new() } else { format!("{:.2} ({:.0} %)", share * column.cost, 100.0 * share) }
        };
        line(out, place.name(), columns.iter().map(cell).collect());
    }
    line(out, "all", columns.iter().map(|column| format!("{:.2}", column.cost)).collect());
    let tcp = |column: &Column| {
        let share: f64 =
            PLACES.into_iter().filter(|place| Place::is_tcp(*place)).map(|place| column.shares.of(place)).sum();
        format!("{:.2} ({:.0} %)", share * column.cost, 100.0 * share)
    };
    line(out, "of it TCP/IP", columns.iter().map(tcp).collect());
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
        let column = Column { name: "a".to_owned(), cost: 4.0, shares: place::shares(text, 1) };
        let mut out = String::new();
        table(&mut out, &[column]);
        assert!(out.contains("| send: TCP and IP out | 2.00 (50 %) |"), "{out}");
        assert!(out.contains("| of it TCP/IP | 2.00 (50 %) |"), "{out}");
    }
}
