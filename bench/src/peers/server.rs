//! The origins, started on a CPU of their own and ended by their id.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::cases::Wire;
use super::certificate::Certificate;
use super::process;

pub mod nginx;

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
    /// nghttpd with a static file
    Nghttpd,
}

/// All, in the order of tables.
pub const KINDS: [Kind; 5] = [Kind::Weir, Kind::Null, Kind::Nginx, Kind::NginxCopy, Kind::Nghttpd];

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Weir => "weir",
            Kind::Null => "null",
            Kind::Nginx => "nginx",
            Kind::NginxCopy => "nginx sendfile off",
            Kind::Nghttpd => "nghttpd",
        }
    }

    /// In what it differs from weir's origin, where that matters to its cost.
    pub fn differs(self) -> &'static str {
        match self {
            Kind::Weir => "",
            Kind::Null => "reads no path; one fixed answer",
            Kind::Nginx => "sends Date, Last-Modified, ETag and Accept-Ranges too; sendfile and tcp_nopush on",
            Kind::NginxCopy => "sends Date, Last-Modified, ETag and Accept-Ranges too; sendfile off",
            Kind::Nghttpd => "sends Date, Last-Modified and Cache-Control too",
        }
    }

    /// Whether it takes part with that protocol. With TLS nginx copies whatever `sendfile` says.
    pub fn speaks(self, wire: Wire) -> bool {
        match self {
            Kind::Weir | Kind::NginxCopy => true,
            Kind::Null | Kind::Nginx => wire == Wire::Plain,
            Kind::Nghttpd => wire == Wire::H2c,
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
    /// `nghttpd`, if there is one.
    pub nghttpd: Option<PathBuf>,
    /// What servers with TLS show.
    pub certificate: Certificate,
}

impl Programs {
    /// Which origins can be started.
    pub fn kinds(&self) -> Vec<Kind> {
        let is_there = |kind: &Kind| match kind {
            Kind::Weir | Kind::Null => true,
            Kind::Nginx | Kind::NginxCopy => self.nginx.is_some(),
            Kind::Nghttpd => self.nghttpd.is_some(),
        };
        KINDS.into_iter().filter(is_there).collect()
    }
}

/// An origin that serves; dropped, it ends.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    wire: Wire,
    size: u64,
    // After the child: it writes there.
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts it on a CPU and waits until it listens; it has `/bytes/<size>`.
    ///
    /// # Errors
    /// When it is not there or does not come up.
    pub fn start(kind: Kind, programs: &Programs, wire: Wire, cpu: usize, size: u64) -> anyhow::Result<Server> {
        let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
        let (child, port) = match kind {
            Kind::Weir => {
                let mut command = Command::new(&programs.weir);
                command.args(["origin", "--listen", "127.0.0.1:0", "-t", "1", "--json"]);
                if wire.is_tls() {
                    command.args(["--tls", "--tls-version", "1.3", "--resume", "off"]);
                    command.arg("--cert").arg(&programs.certificate.cert);
                    command.arg("--key").arg(&programs.certificate.key);
                }
                announced(cpu, &mut command)?
            }
            Kind::Null => {
                let mut command = Command::new(&programs.null);
                command.args(["origin", "--size", &size.to_string()]);
                announced(cpu, &mut command)?
            }
            Kind::Nginx | Kind::NginxCopy => {
                let program = programs.nginx.as_ref().context("there is no nginx")?;
                let sendfile = kind == Kind::Nginx;
                let settings = nginx::Settings { wire, sendfile, certificate: &programs.certificate, log: None };
                nginx::spawn(program, cpu, folder.path(), size, &settings)?
            }
            Kind::Nghttpd => {
                let program = programs.nghttpd.as_ref().context("there is no nghttpd")?;
                nghttpd(program, cpu, folder.path(), size)?
            }
        };
        Server::up(child, port, wire, size, folder)
    }

    /// Waits until what was started listens.
    fn up(child: Child, port: u16, wire: Wire, size: u64, folder: tempfile::TempDir) -> anyhow::Result<Server> {
        let mut server = Server { child, port, wire, size, _folder: folder };
        server.wait_until_up()?;
        Ok(server)
    }

    /// Path of what it serves.
    pub fn url(&self) -> String {
        let scheme = if self.wire.is_tls() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}/bytes/{}", self.port, self.size)
    }

    /// Its process; nginx's work is done by a child of it.
    pub fn id(&self) -> u32 {
        self.child.id()
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

fn nghttpd(program: &Path, cpu: usize, folder: &Path, size: u64) -> anyhow::Result<(Child, u16)> {
    let root = files(folder, size)?;
    let port = free_port()?;
    let mut command = Command::new(program);
    command.args(["--no-tls", "--workers=1", "--address=127.0.0.1", "--htdocs"]).arg(root).arg(port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((process::spawn_on(cpu, &mut command)?, port))
}

/// A folder with the file `bytes/<size>`.
fn files(folder: &Path, size: u64) -> anyhow::Result<PathBuf> {
    let root = folder.join("root");
    fs::create_dir_all(root.join("bytes"))?;
    fs::write(root.join("bytes").join(size.to_string()), vec![b'x'; usize::try_from(size)?])?;
    Ok(root)
}

/// Free now; for servers that cannot be asked for any free one.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
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
        let certificate = Certificate { cert: "c".into(), key: "k".into() };
        let programs =
            Programs { weir: "/bin/true".into(), null: "/bin/true".into(), nginx: None, nghttpd: None, certificate };
        for kind in KINDS {
            assert!(Server::start(kind, &programs, Wire::Plain, 0, 1).is_err());
        }
    }
}
