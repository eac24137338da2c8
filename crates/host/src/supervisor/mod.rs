//! A product's process, under a supervisor that cannot leave anything behind.
//!
//! Products fork: killing a master leaves its workers. So each product runs below a small process of weir's own, the
//! supervisor (`weir supervise`, hidden), which is the *subreaper* of everything the product starts: orphans become its
//! children. The supervisor holds a pipe to weir. When weir ends, however it ends, the pipe closes, and the supervisor
//! kills every descendant and goes. Should the supervisor itself be killed, the kernel kills the product
//! (`PR_SET_PDEATHSIG`), and weir, a subreaper too, ends what the product leaves behind. `inside` says what is left when
//! both are killed at once.
//!
//! Rejected: process groups alone (daemons leave them), a PID namespace (needs root, and the product's pids would
//! not be those in its own output), cgroups (not writable everywhere weir runs).
//!
//! This module does not know what the process is or whether it works.

mod adopt;
mod inside;
mod tree;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::tail::last_lines;

pub use inside::supervise;
pub use tree::descendants;

/// How long a supervisor may take to say that it has started the program, on a machine that is very busy.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// How long a supervisor may take to kill everything and go.
const GOES_WITHIN: Duration = Duration::from_secs(10);

/// What the supervisor is to start. Travels as one line of JSON on its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Argument vector; the first is the program.
    pub argv: Vec<String>,
    /// The whole environment of the process.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub dir: PathBuf,
    /// Where standard output and standard error go, appended.
    pub output: PathBuf,
    /// CPUs it may use; empty for all.
    pub cpus: Vec<u32>,
    /// How far it stands behind other programs: 0 to 19, on top of weir's own.
    pub nice: u8,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Exit code, when it exited.
    pub code: Option<i32>,
    /// Signal, when it was killed.
    pub signal: Option<i32>,
    /// It did not end by itself within the time given and was killed.
    pub forced: bool,
    /// Descendants that were still there when it had ended, and were killed.
    pub left_over: u32,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => write!(f, "unknown end"),
        }
    }
}

/// What the supervisor says, one line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Started(u32),
    NotStarted(String),
    Ended(Ended),
}

/// A process under a supervisor. Dropping it kills the process and all its descendants.
#[derive(Debug)]
pub struct Kept {
    supervisor: Child,
    control: Option<ChildStdin>,
    words: Receiver<Word>,
    pid: u32,
    ended: Option<Ended>,
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The supervisor itself.
    #[error("weir's own supervisor process did not start: {0}")]
    Supervisor(std::io::Error),
    /// The program.
    #[error("{program} did not start: {why}")]
    Program {
        /// First of the argument vector.
        program: String,
        /// What the system said.
        why: String,
    },
}

impl Kept {
    /// Starts a process.
    ///
    /// `weir` is this program's own binary, which also is the supervisor's.
    ///
    /// # Errors
    /// When it cannot be executed; a process that starts and then ends at once is not an error here, see
    /// [`Kept::ended`].
    pub fn start(weir: &Path, order: &Order) -> Result<Kept, StartError> {
        adopt::become_subreaper().map_err(StartError::Supervisor)?;
        let line = serde_json::to_string(order).map_err(|e| StartError::Supervisor(e.into()))?;
        let mut supervisor = Command::new(weir)
            .arg("supervise")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(append_to(&order.output).map_err(StartError::Supervisor)?)
            .process_group(0)
            .spawn()
            .map_err(StartError::Supervisor)?;
        let control = supervisor.stdin.take();
        let words = listen(supervisor.stdout.take());
        // From here on drop ends the supervisor, whatever goes wrong.
        let mut kept = Kept { supervisor, control, words, pid: 0, ended: None };
        if let Some(control) = kept.control.as_mut() {
            writeln!(control, "{line}").map_err(StartError::Supervisor)?;
        }
        let silent = |what: String| {
            let last = last_lines(&order.output, 5);
            let words = if last.is_empty() { String::new() } else { format!("; its last words:\n{last}") };
            StartError::Supervisor(std::io::Error::other(format!("{what}{words}")))
        };
        match kept.words.recv_timeout(STARTS_WITHIN) {
            Ok(Word::Started(pid)) => {
                kept.pid = pid;
                Ok(kept)
            }
            Ok(Word::NotStarted(why)) => {
                let program = order.argv.first().cloned().unwrap_or_default();
                Err(StartError::Program { program, why })
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(silent(format!("it said nothing within {} s", STARTS_WITHIN.as_secs())))
            }
            Ok(Word::Ended(_)) | Err(RecvTimeoutError::Disconnected) => Err(silent("it ended at once".to_owned())),
        }
    }

    /// Pid of the process itself.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Pid of the supervisor: root of the process tree, not part of the product.
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor.id()
    }

    /// How it ended, if it has; does not wait.
    pub fn ended(&mut self) -> Option<Ended> {
        self.wait(Duration::ZERO)
    }

    /// Waits for it to end by itself.
    pub fn wait(&mut self, within: Duration) -> Option<Ended> {
        if self.ended.is_none() {
            match self.words.recv_timeout(within) {
                Ok(Word::Ended(ended)) => self.ended = Some(ended),
                // The supervisor is gone without a word: somebody killed it, and the kernel then killed the product.
                Err(RecvTimeoutError::Disconnected) => {
                    // Its pipe closes a moment before it is gone, and only then are its children ours.
                    let _ = self.supervisor.kill();
                    let _ = self.supervisor.wait();
                    adopt::end_orphans(self.pid);
                    self.ended = Some(Ended { code: None, signal: Some(libc::SIGKILL), forced: true, left_over: 0 });
                }
                _ => {}
            }
        }
        self.ended
    }

    /// Sends it a signal. By way of the supervisor, which alone knows that the pid still means this process.
    ///
    /// # Errors
    /// When the supervisor is gone, and the process with it.
    pub fn signal(&mut self, signal: rustix::process::Signal) -> std::io::Result<()> {
        match self.control.as_mut() {
            Some(control) => writeln!(control, "signal {}", signal.as_raw()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends it: SIGTERM, then SIGKILL for whatever of its tree is still there after `grace`.
    pub fn stop(mut self, grace: Duration) -> Ended {
        if self.ended().is_none() {
            if let Some(control) = self.control.as_mut() {
                // A supervisor that is gone cannot be told; wait() below finds out.
                let _ = writeln!(control, "{}", grace.as_millis());
            }
            self.wait(grace + Duration::from_secs(5));
        }
        self.ended.unwrap_or(Ended { code: None, signal: Some(libc::SIGKILL), forced: true, left_over: 0 })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Closing the pipe tells the supervisor to kill what is left; it then ends by itself, within a second or so.
        self.control = None;
        let deadline = Instant::now() + GOES_WITHIN;
        while matches!(self.supervisor.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                // It waits for a process that cannot be killed (stuck in the kernel), or was stopped itself.
                let _ = self.supervisor.kill();
                let _ = self.supervisor.wait();
                adopt::end_orphans(self.pid);
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.pid != 0 {
            // Nobody may have asked since the supervisor was lost: its orphans are found here.
            self.wait(Duration::from_secs(1));
        }
    }
}

fn append_to(path: &Path) -> std::io::Result<std::fs::File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn listen(stdout: Option<std::process::ChildStdout>) -> Receiver<Word> {
    let (sender, words) = channel();
    if let Some(stdout) = stdout {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Ok(word) = serde_json::from_str(&line) else { continue };
                if sender.send(word).is_err() {
                    return;
                }
            }
        });
    }
    words
}
