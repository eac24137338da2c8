//! What a load generator sends, byte for byte, by a listener that writes it down; and what it agrees on with TLS and
//! HTTP/2, by an nginx that does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use anyhow::Context;

use super::cases::Wire;
use super::process;
use super::server::{Kind, Programs, nginx};
use super::tool::{Load, Tool};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";

/// The last request that the tool sends within a second, with the listener's port as `PORT`.
///
/// # Errors
/// When the tool sends none.
pub fn request_of(tool: &Tool, path: &str, cpu: usize, folder: &Path) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (tell, told) = mpsc::channel();
    // Ends with this process.
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let tell = tell.clone();
            std::thread::spawn(move || answer(socket, &tell));
        }
    });
    run(tool, Wire::Plain, format!("http://127.0.0.1:{port}{path}"), cpu, folder);
    let last = told.try_iter().last().with_context(|| format!("{} sent no request", tool.kind.name()))?;
    Ok(last.replace(&port.to_string(), "PORT"))
}

/// How it ends is not the question here.
fn run(tool: &Tool, wire: Wire, url: String, cpu: usize, folder: &Path) {
    let load = Load { url, wire, connections: 1, streams: 1, seconds: 1 };
    let mut command = Command::new(&tool.program);
    command.args(tool.kind.arguments(&load));
    let _ = process::run_on(cpu, &mut command, folder, Duration::from_secs(20));
}

/// What nginx says was agreed with the tool, and how long its last request was.
///
/// # Errors
/// When there is no nginx, or it saw no request.
pub fn agreed(tool: &Tool, wire: Wire, programs: &Programs, cpu: usize, folder: &Path) -> anyhow::Result<String> {
    let log = folder.join("agreed.log");
    std::fs::write(&log, "")?;
    let program = programs.nginx.as_ref().context("what it agrees on is not known without nginx")?;
    let settings = nginx::Settings { wire, sendfile: false, certificate: &programs.certificate, log: Some(&log) };
    let server = nginx::serve(program, cpu, 128, &settings)?;
    run(tool, wire, server.url(), cpu, folder);
    drop(server);
    let log = std::fs::read_to_string(&log)?;
    let line = log.lines().next_back().with_context(|| format!("{} sent no request", tool.kind.name()))?;
    let words: Vec<&str> = line.split(' ').collect();
    let [version, suite, group, resumed, protocol, bytes] = words[..] else {
        anyhow::bail!("{} wrote {line:?}", Kind::Nginx.name());
    };
    let session = if resumed == "r" { ", resumed" } else { "" };
    let tls = if wire.is_tls() { format!("{version}, {suite}, {group}{session}, ") } else { String::new() };
    Ok(format!("({tls}{protocol}; {bytes} bytes of the last request, as nginx counts)"))
}

/// Answers up to a hundred requests of a connection, and not faster than tools can be told of.
fn answer(mut socket: TcpStream, tell: &Sender<String>) {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = socket.read(&mut piece) {
        head.extend_from_slice(&piece[..count]);
        if head.ends_with(b"\r\n\r\n") {
            let _ = tell.send(String::from_utf8_lossy(&head).into_owned());
            head.clear();
            std::thread::sleep(Duration::from_millis(10));
            if socket.write_all(ANSWER).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (tell, told) = mpsc::channel();
        let served = std::thread::spawn(move || answer(listener.accept().unwrap().0, &tell));
        client.write_all(b"GET / HTTP/1.1\r\nHost: x").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        client.write_all(b"\r\n\r\n").unwrap();
        let mut got = vec![0; ANSWER.len()];
        client.read_exact(&mut got).unwrap();
        drop(client);
        served.join().unwrap();
        assert_eq!(told.iter().collect::<Vec<_>>(), ["GET / HTTP/1.1\r\nHost: x\r\n\r\n"]);
    }
}
