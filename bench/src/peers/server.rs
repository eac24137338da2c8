//! The origins, started on a CPU of their own and ended by their id.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::process;

/// Which origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `weir origin`
    Weir,
    /// `null origin`, the floor
    Null,
    /// nginx with a static file, `sendfile` and `tcp_nopush` on, as distributions ship it
    Nginx,
    /// nginx with a static file and `sendfile` off, which costs it less for small files
    NginxCopy,
}

/// All, in the order of tables.
pub const KINDS: [Kind; 4] = [Kind::Weir, Kind::Null, Kind::Nginx, Kind::NginxCopy];

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Weir => "weir",
            Kind::Null => "null",
            Kind::Nginx => "nginx",
            Kind::NginxCopy => "nginx, sendfile off",
        }
    }

    /// In what it differs from weir's origin, where that matters to its cost.
    pub fn differs(self) -> &'static str {
        match self {
            Kind::Weir => "",
            Kind::Null => "reads no path; one fixed answer",
            Kind::Nginx => "sends Date, Last-Modified, ETag and Accept-Ranges too; sendfile and tcp_nopush on",
            Kind::NginxCopy => "sends Date, Last-Modified, ETag and Accept-Ranges too; sendfile off",
        }
    }
}

/// Programs of the origins.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `weir`
    pub weir: PathBuf,
    /// `null`
    pub null: PathBuf,
    /// `nginx`, if there is one.
    pub nginx: Option<PathBuf>,
}

/// An origin that serves; dropped, it ends.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    size: u64,
    // After the child: it writes there.
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts it on a CPU and waits until it listens; it has `/bytes/<size>`.
    ///
    /// # Errors
    /// When it is not there or does not come up.
    pub fn start(kind: Kind, programs: &Programs, cpu: usize, size: u64) -> anyhow::Result<Server> {
        let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
        let (child, port) = match kind {
            Kind::Weir => {
                let mut command = Command::new(&programs.weir);
                command.args(["origin", "--listen", "127.0.0.1:0", "-t", "1", "--json"]);
                announced(cpu, &mut command)?
            }
            Kind::Null => {
                let mut command = Command::new(&programs.null);
                command.args(["origin", "--size", &size.to_string()]);
                announced(cpu, &mut command)?
            }
            Kind::Nginx | Kind::NginxCopy => {
                let program = programs.nginx.as_ref().context("there is no nginx")?;
                nginx(program, cpu, folder.path(), size, kind == Kind::Nginx)?
            }
        };
        let mut server = Server { child, port, size, _folder: folder };
        server.wait_until_up()?;
        Ok(server)
    }

    /// Path of what it serves.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/bytes/{}", self.port, self.size)
    }

    /// CPU it has used so far, us.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cpu_us(&self) -> anyhow::Result<f64> {
        process::cpu_so_far_us(self.child.id()).context("the server is gone")
    }

    fn wait_until_up(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended at once: {status}");
            }
            if start.elapsed() > Duration::from_secs(10) {
                bail!("the server does not listen after 10 s");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::TERM));
        }
        for _ in 0..200 {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server that prints where it listens in its first line.
fn announced(cpu: usize, command: &mut Command) -> anyhow::Result<(Child, u16)> {
    let mut child = process::spawn_on(cpu, command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    match port_in(&line) {
        Some(port) => Ok((child, port)),
        None => {
            child.kill()?;
            child.wait()?;
            bail!("{} does not say where it listens: {line:?}", command.get_program().display())
        }
    }
}

fn port_in(line: &str) -> Option<u16> {
    let rest = line.split_once("127.0.0.1:")?.1;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

fn nginx(program: &Path, cpu: usize, folder: &Path, size: u64, sendfile: bool) -> anyhow::Result<(Child, u16)> {
    let files = folder.join("root/bytes");
    fs::create_dir_all(&files)?;
    fs::write(files.join(size.to_string()), vec![b'x'; usize::try_from(size)?])?;
    // Free now; nginx cannot be asked for any free one.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let config = folder.join("nginx.conf");
    fs::write(&config, nginx_config(folder, port, sendfile))?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).arg("-c").arg(&config).arg("-e").arg(folder.join("error.log"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((process::spawn_on(cpu, &mut command)?, port))
}

/// The configuration of nginx as an origin.
pub fn nginx_config(folder: &Path, port: u16, sendfile: bool) -> String {
    let folder = folder.display();
    let switch = if sendfile { "on" } else { "off" };
    // Workers of root's nginx would be somebody else, who cannot read a temporary folder.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {folder}/{name};\n"))
        .concat();
    format!(
        "daemon off;\n{user}pid {folder}/pid;\nerror_log {folder}/error.log;\nworker_processes 1;\n\
         worker_rlimit_nofile 20000;\nevents {{\n    worker_connections 16384;\n}}\nhttp {{\n    access_log off;\n\
         \x20   sendfile {switch};\n    tcp_nopush {switch};\n    keepalive_requests 1000000000;\n    keepalive_timeout 75s;\n\
         \x20   open_file_cache max=16;\n    open_file_cache_valid 1h;\n    default_type application/octet-stream;\n\
         {temporary}    server {{\n        listen 127.0.0.1:{port} backlog=16384;\n        root {folder}/root;\n    }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_in_the_first_line() {
        assert_eq!(port_in("{\"listening\":\"127.0.0.1:39127\",\"driver\":\"io_uring\"}\n"), Some(39127));
        assert_eq!(port_in("listening 127.0.0.1:4\n"), Some(4));
        assert_eq!(port_in("error\n"), None);
    }

    #[test]
    fn a_server_that_says_nothing_is_an_error() {
        let programs = Programs { weir: "/bin/true".into(), null: "/bin/true".into(), nginx: None };
        for kind in KINDS {
            assert!(Server::start(kind, &programs, 0, 1).is_err());
        }
    }
}
