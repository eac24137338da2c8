//! The client and the origin as processes: weir itself, started again (`weir client`, `weir origin`), so that what
//! each role costs can be read from the kernel, and so that a role can one day run on another host.
//!
//! Both end when their standard input closes, which the kernel does when weir ends, also by SIGKILL: neither outlives
//! weir. Neither starts a process, so nothing of theirs is left when one of them is killed itself.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_model::load::{DriverChoice, LoadResult, LoadSecond, LoadSpec};

use crate::tail::last_lines;

/// A role's process and the lines of JSON that it says.
#[derive(Debug)]
struct Speaker<W> {
    child: Child,
    control: Option<ChildStdin>,
    words: Receiver<W>,
    output: PathBuf,
}

/// Why a role did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// Not started.
    #[error("weir could not start its {role}: {error}")]
    Start {
        /// Which role.
        role: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// Ended before its work was done.
    #[error("the {role} ended by itself{}", said(.last))]
    Ended {
        /// Which role.
        role: &'static str,
        /// Last lines of its output.
        last: String,
    },
    /// Said why it could not.
    #[error("{0}")]
    Failed(String),
    /// Said nothing.
    #[error("the {role} said nothing for {seconds} s{}", said(.last))]
    Silent {
        /// Which role.
        role: &'static str,
        /// How long.
        seconds: u64,
        /// Last lines of its output.
        last: String,
    },
}

fn said(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!("; its last words:\n{last}") }
}

impl<W: DeserializeOwned + Send + 'static> Speaker<W> {
    fn start(mut command: Command, role: &'static str, output: &Path) -> Result<Speaker<W>, RoleError> {
        let failed = |error| RoleError::Start { role, error };
        let log = std::fs::OpenOptions::new().create(true).append(true).open(output).map_err(failed)?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C at the terminal is for weir, which then ends its roles in order.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let control = child.stdin.take();
        let (sender, words) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    let Ok(word) = serde_json::from_str(&line) else { continue };
                    if sender.send(word).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Speaker { child, control, words, output: output.to_owned() })
    }
}

impl<W> Speaker<W> {
    fn hear(&self, role: &'static str, within: Duration) -> Result<W, RoleError> {
        self.words.recv_timeout(within).map_err(|error| {
            let last = last_lines(&self.output, 5);
            match error {
                RecvTimeoutError::Disconnected => RoleError::Ended { role, last },
                RecvTimeoutError::Timeout => RoleError::Silent { role, seconds: within.as_secs(), last },
            }
        })
    }
}

impl<W> Drop for Speaker<W> {
    fn drop(&mut self) {
        self.control = None;
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `weir origin --with-parent` says first.
#[derive(Debug, Serialize, Deserialize)]
pub struct OriginWord {
    /// Where it listens.
    pub listening: SocketAddr,
    /// `io_uring` or `epoll`.
    pub driver: String,
}

/// The origin's process.
#[derive(Debug)]
pub struct OriginProcess {
    speaker: Speaker<OriginWord>,
    /// Where it listens.
    pub addr: SocketAddr,
    /// Its I/O driver.
    pub driver: String,
}

impl OriginProcess {
    /// Starts an origin and waits until it listens.
    ///
    /// # Errors
    /// When it does not start or does not get to listen within 10 s.
    pub fn start(
        weir: &Path,
        listen: SocketAddr,
        cpus: &[u32],
        driver: DriverChoice,
        output: &Path,
    ) -> Result<OriginProcess, RoleError> {
        let mut command = Command::new(weir);
        command.arg("origin").arg("--with-parent").arg("--listen").arg(listen.to_string());
        command.arg("--threads").arg(cpus.len().max(1).to_string());
        command.arg("--driver").arg(driver_name(driver));
        if !cpus.is_empty() {
            command.arg("--cpus").arg(cpu_list(cpus));
        }
        let speaker: Speaker<OriginWord> = Speaker::start(command, "origin", output)?;
        let word = speaker.hear("origin", Duration::from_secs(10))?;
        Ok(OriginProcess { speaker, addr: word.listening, driver: word.driver })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.speaker.child.id()
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.speaker.child.try_wait(), Ok(None))
    }

    /// Last lines of its output.
    pub fn last_words(&self) -> String {
        last_lines(&self.speaker.output, 5)
    }
}

/// What `weir client` says while it works.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientWord {
    /// Connections are being made.
    Connecting {
        /// Made so far.
        open: u32,
        /// Ordered.
        of: u32,
    },
    /// A second of warm-up is over.
    Warmup(LoadSecond),
    /// The measured window begins now.
    WindowStart {
        /// Unix time in milliseconds.
        unix_ms: u64,
    },
    /// A second of the window is over.
    Second(LoadSecond),
    /// The window is over; what is in flight is waited for.
    WindowEnd,
    /// All is done and written.
    Done(Box<LoadResult>),
    /// It could not be done.
    Failed(String),
}

/// The client's process.
#[derive(Debug)]
pub struct ClientProcess {
    speaker: Speaker<ClientWord>,
}

/// Name of the file, in the trial's folder, with the client's order.
pub const ORDER_FILE: &str = "load-order.json";

impl ClientProcess {
    /// Starts a client that carries `spec` out and writes `latency.hlog` and `load.csv` into `dir`.
    ///
    /// # Errors
    /// When the order cannot be written or the process not started.
    pub fn start(weir: &Path, spec: &LoadSpec, dir: &Path, output: &Path) -> Result<ClientProcess, RoleError> {
        let failed = |error| RoleError::Start { role: "client", error };
        let order = serde_json::to_vec_pretty(spec).map_err(|e| failed(e.into()))?;
        std::fs::write(dir.join(ORDER_FILE), order).map_err(failed)?;
        let mut command = Command::new(weir);
        command.arg("client").arg(dir);
        Ok(ClientProcess { speaker: Speaker::start(command, "client", output)? })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.speaker.child.id()
    }

    /// The next thing it says, or `None` when it said nothing for so long.
    ///
    /// # Errors
    /// When it ended without a last word.
    pub fn hear(&self, within: Duration) -> Result<Option<ClientWord>, RoleError> {
        match self.speaker.hear("client", within) {
            Ok(word) => Ok(Some(word)),
            Err(RoleError::Silent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn driver_name(driver: DriverChoice) -> &'static str {
    match driver {
        DriverChoice::Auto => "auto",
        DriverChoice::Uring => "io_uring",
        DriverChoice::Epoll => "epoll",
    }
}

fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
