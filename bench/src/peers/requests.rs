//! Records what each client sends: every byte with plain HTTP/1.1 (by a listener), and the negotiated parameters with
//! TLS and HTTP/2 (by an nginx that logs them). [`super::compare`] calls it once at its start and stores the result in
//! `RESULTS.json`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use anyhow::{Context, bail};

use weir_model::protocol::Protocol;

use super::Fact;
use super::cases::{Cell, Group, MAIN, OPEN_RATE, PROTOCOLS, Subject, name, url};
use super::client::{self, Client, Load};
use super::process::Running;
use super::server::{Options, RunningServer, Server};
use super::trial::Plan;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";

/// How each client is started, and what it then sends.
pub fn requests(plan: &Plan<'_>, folder: &Path) -> Vec<Fact> {
    let mut all = Vec::new();
    let (apart, plain): (Vec<&Cell>, _) =
        plan.cells.iter().filter(|cell| cell.group != Group::Open).partition(|cell| cell.group.has_messages());
    let plain = PROTOCOLS.iter().filter_map(|(_, protocol)| {
        let cells = plain.iter().filter(|cell| cell.protocol == *protocol);
        cells.min_by_key(|cell| cell.connections.abs_diff(MAIN.0)).copied()
    });
    for cell in plain.chain(apart) {
        let protocol = cell.protocol;
        let load = Load {
            group: cell.group,
            url: url(protocol, "PORT", MAIN.1),
            protocol,
            connections: cell.connections,
            streams: cell.streams,
            size: cell.size,
            seconds: plan.args.seconds,
        };
        let takes_part = |client: &Client| cell.candidates().contains(&Subject::Client(*client));
        for (client, program) in plan.clients.iter().filter(|(client, _)| takes_part(client)) {
            all.push(entry(plan, *client, program, &load, folder));
        }
    }
    if let Some(cell) = plan.cells.iter().find(|cell| cell.group == Group::Open) {
        let (group, protocol, connections, seconds) = (cell.group, cell.protocol, cell.connections, plan.length(cell));
        let (url, size) = (url(protocol, "PORT", MAIN.1), cell.size);
        let load = Load { group, url, protocol, connections, streams: 1, size, seconds };
        let open = client::open_arguments(seconds, &load.url).join(" ");
        all.push((format!("weir {open}"), format!("(as above, {OPEN_RATE} a second)")));
        for (client, program) in plan.clients.iter().filter(|(client, _)| *client == Client::Wrk2) {
            all.push(entry(plan, *client, program, &load, folder));
        }
    }
    all
}

fn entry(plan: &Plan<'_>, client: Client, program: &Path, load: &Load, folder: &Path) -> Fact {
    let sent = match load.protocol {
        protocol if protocol.is_keyvalue() || load.group.has_messages() => Ok("(not recorded)".to_owned()),
        Protocol::Http11 => sent(client, program, plan.args.common.cpus[0]),
        _ => agreed(client, program, load.protocol, plan, folder),
    };
    let command = format!("{} {}", name(client), client.arguments(load).join(" "));
    (command, sent.unwrap_or_else(|error| format!("({error:#})")))
}

/// How it ends does not matter here.
fn run(client: Client, program: &Path, protocol: Protocol, url: String, cpu: u32) {
    let group = Group::Clients;
    let arguments =
        client.arguments(&Load { group, url, protocol, connections: 1, streams: 1, size: MAIN.1, seconds: 1 });
    let started = Running::start(Command::new(program).args(arguments), cpu);
    let _ = started.and_then(|running| running.end(Duration::from_secs(20), |_| {}));
}

/// The last request that the client sends within a second, with the listener's port as `PORT`.
fn sent(client: Client, program: &Path, cpu: u32) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (sender, received) = mpsc::channel();
    // Ends with this process.
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || respond(socket, &sender));
        }
    });
    run(client, program, Protocol::Http11, url(Protocol::Http11, port, MAIN.1), cpu);
    let last = received.try_iter().last().with_context(|| format!("{} sent no request", name(client)))?;
    Ok(last.replace(&port.to_string(), "PORT"))
}

/// Responds to a connection's requests, not faster than a hundred a second.
fn respond(mut socket: TcpStream, sender: &Sender<String>) {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = socket.read(&mut piece) {
        head.extend_from_slice(&piece[..count]);
        if head.ends_with(b"\r\n\r\n") {
            let _ = sender.send(String::from_utf8_lossy(&head).into_owned());
            head.clear();
            std::thread::sleep(Duration::from_millis(10));
            if socket.write_all(RESPONSE).is_err() {
                return;
            }
        }
    }
}

/// What nginx agreed on with the client, and how long its last request was.
fn agreed(
    client: Client,
    program: &Path,
    protocol: Protocol,
    plan: &Plan<'_>,
    folder: &Path,
) -> anyhow::Result<String> {
    let log = folder.join("agreed.log");
    std::fs::write(&log, "")?;
    let options =
        Options { protocol, cpu: plan.args.common.cpus[1], size: MAIN.1, arguments: Vec::new(), log: Some(&log) };
    let server = RunningServer::start(Server::NginxCopy, &plan.programs, &options)?;
    run(client, program, protocol, server.url.clone(), plan.args.common.cpus[0]);
    drop(server);
    let log = std::fs::read_to_string(&log)?;
    let line = log.lines().next_back().with_context(|| format!("{} sent no request", name(client)))?;
    let words: Vec<&str> = line.split(' ').collect();
    let [version, suite, group, resumed, spoken, bytes] = words[..] else { bail!("nginx wrote {line:?}") };
    let session = if resumed == "r" { ", resumed" } else { "" };
    let tls = if protocol.is_tls() { format!("{version}, {suite}, {group}{session}, ") } else { String::new() };
    Ok(format!("({tls}{spoken}; {bytes} bytes of the last request, as nginx counts)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_captured_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (sender, received) = mpsc::channel();
        let served = std::thread::spawn(move || respond(listener.accept().unwrap().0, &sender));
        client.write_all(b"GET / HTTP/1.1\r\nHost: x").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        client.write_all(b"\r\n\r\n").unwrap();
        let mut got = vec![0; RESPONSE.len()];
        client.read_exact(&mut got).unwrap();
        drop(client);
        served.join().unwrap();
        assert_eq!(received.iter().collect::<Vec<_>>(), ["GET / HTTP/1.1\r\nHost: x\r\n\r\n"]);
    }
}
