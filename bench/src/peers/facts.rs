//! What describes a run: machine, programs, and what each tool sends.

use std::path::Path;
use std::process::Command;

use super::capture;
use super::cases::{OPEN, Part, Wire};
use super::certificate;
use super::run::{self, Plan};
use super::tool::{Kind, Load};

/// Machine, programs and run.
pub fn facts(plan: &Plan) -> Vec<(String, String)> {
    let mut facts = machine();
    facts.push(("pinned".to_owned(), format!("client to CPU {}, server to CPU {}", plan.cpus[0], plan.cpus[1])));
    facts.push((
        "run".to_owned(),
        format!("{} rounds of {} s a trial, order shuffled from seed {}", plan.rounds, plan.seconds, plan.seed),
    ));
    facts.push(command());
    facts.push(weir(&plan.servers.weir));
    for tool in &plan.tools {
        let version = match tool.kind {
            Kind::Weir | Kind::Null => continue,
            Kind::Oha => first_line(Command::new(&tool.program).arg("--version")),
            Kind::Fortio => first_line(Command::new(&tool.program).arg("version")),
            kind => match kind.package() {
                Some(package) if tool.program.starts_with("/usr") => format!("apt {package} {}", apt_version(package)),
                _ => "found in PEERS_PATH or PATH".to_owned(),
            },
        };
        facts.push((tool.kind.name().to_owned(), version));
    }
    if let Some(nginx) = &plan.servers.nginx {
        let output = Command::new(nginx).arg("-v").output().map(|output| output.stderr).unwrap_or_default();
        let version = String::from_utf8_lossy(&output).trim().replace("nginx version: ", "");
        facts.push((
            "nginx".to_owned(),
            format!("{version}, one worker, static file, open_file_cache, no access log; as a target of clients with sendfile off"),
        ));
    }
    if plan.servers.nghttpd.is_some() {
        facts
            .push(("nghttpd".to_owned(), format!("apt nghttp2-server {}, static file", apt_version("nghttp2-server"))));
    }
    if plan.cells.iter().any(|cell| cell.wire.is_tls()) {
        facts.push(("certificate".to_owned(), format!("{}, signed by itself, made for this run", certificate::KEY)));
    }
    facts
}

/// Date, CPUs, kernel.
pub fn machine() -> Vec<(String, String)> {
    let uname = rustix::system::uname();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, name)| name);
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("date", jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string()),
        fact("CPUs", format!("{count} x {model}")),
        fact("kernel", uname.release().to_string_lossy().into_owned()),
        // It costs differently: bbr computes a rate for every acknowledgement.
        fact("congestion control", read("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned()),
    ]
}

/// weir's version and source.
pub fn weir(program: &Path) -> (String, String) {
    let commit = first_line(Command::new("git").args(["describe", "--always", "--dirty"]));
    let version = first_line(Command::new(program).arg("--version"));
    ("weir".to_owned(), format!("{version}, source {commit}"))
}

/// This program's own command line.
pub fn command() -> (String, String) {
    let words: Vec<String> = std::env::args().skip(1).map(without_folder).collect();
    ("command".to_owned(), format!("`peers {}`", words.join(" ")).replace(" `", "`"))
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

/// How each tool is started, and what it then sends: with plain HTTP/1.1 every byte, else what was agreed on.
///
/// # Errors
/// When there is no folder to work in.
pub fn requests(plan: &Plan, folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut told = Vec::new();
    for wire in [Wire::Plain, Wire::Tls, Wire::H2c, Wire::H2Tls] {
        let cells: Vec<_> = plan.cells.iter().filter(|cell| cell.wire == wire).collect();
        let Some(cell) = cells.iter().find(|cell| cell.connections == 64).or(cells.first()) else { continue };
        let scheme = if wire.is_tls() { "https" } else { "http" };
        for tool in plan.tools.iter().filter(|tool| tool.kind.speaks(wire)) {
            let request = match wire {
                Wire::Plain => capture::request_of(tool, "/bytes/128", plan.cpus[0], folder),
                _ => capture::agreed(tool, wire, &plan.servers, plan.cpus[0], folder),
            };
            let load = Load {
                url: format!("{scheme}://127.0.0.1:PORT/bytes/128"),
                wire,
                connections: cell.connections,
                streams: cell.streams,
                seconds: plan.seconds,
            };
            let command = format!("{} {}", tool.kind.name(), tool.kind.arguments(&load).join(" "));
            told.push((command, request.unwrap_or_else(|error| format!("({error:#})"))));
        }
    }
    if let Some(cell) = plan.cells.iter().find(|cell| cell.group.part() == Part::Open) {
        let open = run::open_arguments(plan.length(cell), "http://127.0.0.1:PORT/bytes/128".to_owned()).join(" ");
        told.push((format!("weir {open}"), format!("(as above, {} a second)", OPEN.0)));
        for tool in plan.tools.iter().filter(|tool| tool.kind == Kind::Wrk2) {
            let request = capture::request_of(tool, "/bytes/128", plan.cpus[0], folder);
            let load = Load {
                url: "http://127.0.0.1:PORT/bytes/128".to_owned(),
                wire: Wire::Plain,
                connections: OPEN.1,
                streams: 1,
                seconds: plan.length(cell),
            };
            let command = format!("wrk2 {}", tool.kind.arguments(&load).join(" "));
            told.push((command, request.unwrap_or_else(|error| format!("({error:#})"))));
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_skipped() {
        let shown = |argument: &str| without_folder(argument.to_owned());
        assert_eq!(shown("--weir=/a/b/weir"), "--weir=weir");
        assert_eq!(shown("/a/b/weir"), "weir");
        assert_eq!(shown("clients,open"), "clients,open");
        assert_eq!(shown("--only=open"), "--only=open");
    }
}
