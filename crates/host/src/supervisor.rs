//! A product's process below a supervisor that leaves nothing behind. The local host and the builder of products call it.
//!
//! Products fork: killing a master leaves its workers. So each product runs below a small process of weir's own, the
//! supervisor (`weir supervise`, hidden), which is the *subreaper* of everything the product starts: orphans become its
//! children. The supervisor holds a pipe to weir. When weir ends, however it ends, the pipe closes, and the supervisor
//! kills every descendant and goes. Where weir may (as root), it starts the supervisor in a PID namespace, and the kernel
//! kills everything there when the supervisor itself is killed. Elsewhere the kernel kills the product alone
//! (`PR_SET_PDEATHSIG`), and weir, a subreaper too, ends what the product leaves behind. When both are killed at once, the
//! next weir finds what is left by its `mark`, and ends it.
//!
//! Rejected: process groups alone (daemons leave them), cgroups (not writable everywhere weir runs).
//!
//! This module does not know what the process is or whether it works.

pub mod account;
mod adopt;
mod disk;
mod inside;
mod mark;
mod namespace;
mod output;
mod tree;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use weir_model::At;
use weir_model::product::Signal;
use weir_vitals::clock;

use crate::host::{Disturbance, Ended, Process, ProgramSpec};
use crate::lock::locked;
use crate::tail::last_lines;

pub use inside::supervise;
pub use mark::end_left_behind;
pub use namespace::possible as pid_namespaces;
pub use tree::descendants;

/// How long a supervisor may take to report that it has started the program, on a very busy machine.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// How long a supervisor may take to kill everything and end.
const GOES_WITHIN: Duration = Duration::from_secs(10);

/// What the supervisor reports, one line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    Started(u32),
    NotStarted(String),
    Ended(Ended),
}

/// A process under a supervisor. Dropping it kills the process and all its descendants.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    /// Where it takes orders; emptied to end it.
    control: Arc<Mutex<Option<ChildStdin>>>,
    disturbed: Arc<Mutex<Vec<(Disturbance, At)>>>,
    reports: Receiver<Report>,
    /// Whether the kernel ends its tree with it.
    in_namespace: bool,
    /// The main process as the supervisor knows it; 0 before it has started.
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

impl Supervised {
    /// Starts a process.
    ///
    /// `weir` is this program's own binary, which also is the supervisor's.
    ///
    /// # Errors
    /// When it cannot be executed; a process that starts and then ends at once is not an error here, see
    /// [`Process::ended`].
    pub fn start(weir: &Path, spec: &ProgramSpec) -> Result<Supervised, StartError> {
        adopt::become_subreaper().map_err(StartError::Supervisor)?;
        let mut spec = spec.clone();
        if let Some(confined) = &mut spec.confined {
            confined.account = account::possible().is_ok().then_some(account::ACCOUNT);
        }
        let line = serde_json::to_string(&spec).map_err(|e| StartError::Supervisor(e.into()))?;
        let mut command = Command::new(weir);
        command
            .arg("supervise")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(append_to(&spec.output).map_err(StartError::Supervisor)?)
            .process_group(0);
        let in_namespace = pid_namespaces().is_ok();
        let spawned = if in_namespace { namespace::spawn(command) } else { command.spawn() };
        let mut supervisor = spawned.map_err(StartError::Supervisor)?;
        let control = Arc::new(Mutex::new(supervisor.stdin.take()));
        let (sender, reports) = channel();
        let stdout = supervisor.stdout.take();
        // From here on drop ends the supervisor, whatever goes wrong.
        let disturbed = Arc::default();
        let mut supervised = Supervised { supervisor, control, disturbed, reports, in_namespace, pid: 0, ended: None };
        stdout.map_or(Ok(()), |stdout| listen(stdout, sender)).map_err(StartError::Supervisor)?;
        order(&supervised.control, &line).map_err(StartError::Supervisor)?;
        let silent = |what: String| {
            let last = last_lines(&spec.output, 5);
            let words = if last.is_empty() { String::new() } else { format!("; its last words:\n{last}") };
            StartError::Supervisor(std::io::Error::other(format!("{what}{words}")))
        };
        match supervised.reports.recv_timeout(STARTS_WITHIN) {
            Ok(Report::Started(pid)) => {
                supervised.pid = pid;
                Ok(supervised)
            }
            Ok(Report::NotStarted(why)) => {
                let program = spec.argv.first().cloned().unwrap_or_default();
                Err(StartError::Program { program, why })
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(silent(format!("it said nothing within {} s", STARTS_WITHIN.as_secs())))
            }
            Ok(Report::Ended(_)) | Err(RecvTimeoutError::Disconnected) => Err(silent("it ended at once".to_owned())),
        }
    }

    /// Kills the supervisor and what it leaves behind.
    fn end_lost(&mut self) {
        let _ = self.supervisor.kill();
        // In a namespace it ends after all others there, one of which may be stuck in the kernel.
        if self.supervisor_ends_within(GOES_WITHIN) && !self.in_namespace && self.pid != 0 {
            adopt::end_orphans(self.pid);
        }
    }

    fn supervisor_ends_within(&mut self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while matches!(self.supervisor.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

impl Process for Supervised {
    fn root(&self) -> u32 {
        self.supervisor.id()
    }

    fn wait(&mut self, within: Duration) -> Option<Ended> {
        if self.ended.is_none() {
            match self.reports.recv_timeout(within) {
                Ok(Report::Ended(ended)) => self.ended = Some(ended),
                // The supervisor ended without a report, so it was killed, and the kernel then killed the product.
                Err(RecvTimeoutError::Disconnected) => {
                    // Its pipe closes a moment before it ends, and only then do its children become ours.
                    self.end_lost();
                    self.ended = Some(Ended::LOST);
                }
                _ => {}
            }
        }
        self.ended
    }

    /// The supervisor ends with its program.
    fn until_ended(&self) -> std::io::Result<Box<dyn FnOnce() + Send>> {
        let supervisor = pidfd_open(Pid::from_child(&self.supervisor), PidfdFlags::empty())?;
        Ok(Box::new(move || while poll(&mut [PollFd::new(&supervisor, PollFlags::IN)], None) == Err(Errno::INTR) {}))
    }

    /// Through the supervisor, because only it knows that the pid still belongs to this process.
    fn signal(&mut self, signal: Signal) -> std::io::Result<()> {
        order(&self.control, &format!("signal {}", number(signal)))
    }

    fn disturb(&mut self, what: Disturbance, at: Option<At>) -> std::io::Result<()> {
        let (control, disturbed) = (Arc::clone(&self.control), Arc::clone(&self.disturbed));
        let act = move |now: At| {
            order(&control, what.as_str())?;
            locked(&disturbed).push((what, now));
            Ok(())
        };
        let Some(at) = at else { return act(clock::now()) };
        std::thread::Builder::new().name("weir-disturb".into()).spawn(move || {
            let now = clock::mono_ns();
            std::thread::sleep(Duration::from_nanos(at.mono_ns.saturating_sub(now)));
            // What has ended meanwhile cannot be disturbed; the trial fails by that.
            let _ = act(at.plus(Duration::from_nanos(clock::mono_ns().saturating_sub(at.mono_ns))));
        })?;
        Ok(())
    }

    fn disturbed(&mut self) -> Vec<(Disturbance, At)> {
        locked(&self.disturbed).clone()
    }

    fn stop(mut self: Box<Self>, grace: Duration) -> Ended {
        if self.ended().is_none() {
            // If the supervisor has ended, wait() below finds out.
            let _ = order(&self.control, &grace.as_millis().to_string());
            self.wait(grace + Duration::from_secs(5));
        }
        self.ended.unwrap_or(Ended::LOST)
    }
}

/// Writes a line to a supervisor.
fn order(control: &Mutex<Option<ChildStdin>>, line: &str) -> std::io::Result<()> {
    let mut control = locked(control);
    writeln!(control.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?, "{line}")
}

fn number(signal: Signal) -> i32 {
    match signal {
        Signal::Term => libc::SIGTERM,
        Signal::Int => libc::SIGINT,
        Signal::Quit => libc::SIGQUIT,
        Signal::Hup => libc::SIGHUP,
        Signal::Usr1 => libc::SIGUSR1,
        Signal::Usr2 => libc::SIGUSR2,
        Signal::Winch => libc::SIGWINCH,
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // Closing the pipe makes the supervisor kill what is left and end, within about a second.
        *locked(&self.control) = None;
        if !self.supervisor_ends_within(GOES_WITHIN) {
            // It waits for a process that cannot be killed (stuck in the kernel), or was stopped itself.
            return self.end_lost();
        }
        if self.pid != 0 {
            // If the supervisor was lost since the last call, its orphans are found here.
            self.wait(Duration::from_secs(1));
        }
    }
}

fn append_to(path: &Path) -> std::io::Result<std::fs::File> {
    // Products write in that folder, too, and weir writes to no file that one of them has a link to.
    OpenOptions::new().create(true).append(true).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Passes on what the supervisor reports, in a thread.
fn listen(stdout: std::process::ChildStdout, reports: Sender<Report>) -> std::io::Result<()> {
    let pass = move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let Ok(report) = serde_json::from_str(&line) else { continue };
            if reports.send(report).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("weir-reports".into()).spawn(pass).map(drop)
}
