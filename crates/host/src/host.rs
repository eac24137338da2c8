//! The host plug: everything weir does on the machine where a role runs, behind one trait.
//!
//! [`crate::local::LocalHost`] is this machine, [`crate::fake::FakeHost`] is for tests. `docs/add-a-host.md` says how to add
//! another. No signature contains a handle of this machine, so an agent at the other end of a pipe can implement it:
//! processes are numbers, messages are lines, and paths are paths on that host. `weir-product` and `weir-lab` call it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};
use weir_model::product::Signal;
use weir_model::record::Role;
use weir_vitals::{Connections, Watched, Window};

use crate::files::FileError;
use crate::ports::NoPort;
use crate::role::RoleError;
use crate::supervisor::StartError;

/// A host on which processes run.
pub trait Host: Debug + Send + Sync {
    /// Starts a program below a supervisor.
    ///
    /// # Errors
    /// When the program cannot be executed. A program that starts and ends at once is no error here, see [`Process::wait`].
    fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Process>, StartError>;

    /// Starts weir itself in a role.
    ///
    /// # Errors
    /// When it cannot be executed.
    fn start_role(&self, spec: &RoleSpec) -> Result<Arc<dyn RoleProcess>, RoleError>;

    /// Samples process trees and the host, once a second within a window. `connections` are queried on weir's side at the end of
    /// each second.
    ///
    /// # Errors
    /// When a tree's root has ended, or cannot be read.
    fn watch(
        &self,
        trees: Vec<Watched>,
        connections: Vec<(Role, Box<dyn Connections>)>,
    ) -> std::io::Result<Box<dyn Sampler>>;

    /// Living descendants of a process.
    fn descendants(&self, root: u32) -> Vec<u32>;

    /// Checks that the socket listening on `addr` belongs to a descendant of `root`, and not to another process on that port.
    ///
    /// # Errors
    /// What was found instead.
    fn owns_listener(&self, root: u32, addr: SocketAddr) -> Result<(), String>;

    /// Whether something accepts connections at `addr`; tries it for at most `within`.
    fn accepts(&self, addr: SocketAddr, within: Duration) -> bool;

    /// Chooses different ports on which nothing listens now.
    ///
    /// # Errors
    /// When there are not enough free ports.
    fn free_ports(&self, count: usize) -> Result<Vec<SocketAddr>, NoPort>;

    /// CPUs that processes may use, ascending.
    fn cpus(&self) -> Vec<u32>;

    /// Makes a folder and its parents.
    ///
    /// # Errors
    /// What the system said.
    fn create_dir(&self, folder: &Path) -> Result<(), FileError>;

    /// Writes a whole file and makes its folder. Only the owner may read a `private` file.
    ///
    /// # Errors
    /// What the system said.
    fn write(&self, path: &Path, bytes: &[u8], private: bool) -> Result<(), FileError>;

    /// Reads a whole file.
    ///
    /// # Errors
    /// What the system said.
    fn read(&self, path: &Path) -> Result<Vec<u8>, FileError>;

    /// Removes a file, a link, or a folder with its contents. Links are not followed. What cannot be removed stays.
    fn remove(&self, path: &Path);

    /// The last lines of a file, for messages. Empty when there is none.
    fn last_lines(&self, path: &Path, lines: usize) -> String;
}

/// A program below a supervisor. Dropping it kills the program and all its descendants.
pub trait Process: Debug + Send {
    /// Pid of the supervisor: root of the process tree, not part of the program.
    fn root(&self) -> u32;

    /// Waits for the program to end by itself.
    fn wait(&mut self, within: Duration) -> Option<Ended>;

    /// How it ended, if it has ended. Does not wait.
    fn ended(&mut self) -> Option<Ended> {
        self.wait(Duration::ZERO)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it is gone.
    fn signal(&mut self, signal: Signal) -> std::io::Result<()>;

    /// Provokes a fault in its whole tree, or ends one. A program that was killed so counts as running until it is started again,
    /// and its supervisor stays.
    ///
    /// # Errors
    /// When its supervisor is gone.
    fn disturb(&mut self, what: Disturbance) -> std::io::Result<()>;

    /// Ends it: SIGTERM, then after `grace` SIGKILL for what is left of its tree.
    fn stop(self: Box<Self>, grace: Duration) -> Ended;
}

/// A fault in a program, or the end of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Disturbance {
    /// SIGKILL to all of it.
    Kill,
    /// It is started again as it was at first.
    Start,
    /// SIGSTOP to all of it.
    Freeze,
    /// SIGCONT to all of it.
    Thaw,
    /// Its disk ([`ProgramSpec::disk`]) is filled.
    FillDisk,
    /// What filled its disk is removed.
    FreeDisk,
}

impl Disturbance {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// weir in a role. It reads lines from its standard input and writes lines of JSON to its standard output.
pub trait RoleProcess: Debug + Send + Sync {
    /// Its pid.
    fn pid(&self) -> u32;

    /// Whether it still runs.
    fn alive(&self) -> bool;

    /// Writes a line to its standard input.
    ///
    /// # Errors
    /// When it is gone.
    fn send(&self, line: &str) -> std::io::Result<()>;

    /// Receives the next line of JSON that it writes.
    ///
    /// # Errors
    /// When none comes within the time.
    fn receive(&self, within: Duration) -> Result<String, ReceiveError>;

    /// Closes its standard input, and kills the process if that does not end it.
    fn end(&self);
}

/// Why no line was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveError {
    /// The process runs and wrote nothing.
    Timeout,
    /// The process has ended.
    Ended,
}

/// Samples process trees and the host. It sleeps outside of a window.
pub trait Sampler: Debug {
    /// Begins a window. Returns once everything was sampled.
    ///
    /// # Errors
    /// When a root has ended, or a living process cannot be read.
    fn begin_window(&self) -> std::io::Result<()>;

    /// Ends the window.
    ///
    /// # Errors
    /// When none is open, or a sample in it failed.
    fn end_window(&self) -> std::io::Result<Window>;

    /// Stops sampling. Returns once it has stopped.
    fn stop(self: Box<Self>);
}

/// A program to start below a supervisor. The supervisor receives it as one line of JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProgramSpec {
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
    /// Niceness on top of weir's own, 0 to 19.
    pub nice: u8,
    /// A disk of its own, of memory.
    #[serde(default)]
    pub disk: Option<Disk>,
}

/// A small disk of memory (tmpfs), which the program alone sees, and which can be filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The folder that it is mounted on; it is made if it is missing.
    pub at: PathBuf,
    /// Bytes.
    pub size: u64,
}

/// A role to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleSpec {
    /// Client or origin.
    pub role: Role,
    /// weir's arguments.
    pub args: Vec<String>,
    /// File to which standard error, and standard output that is not JSON, are appended.
    pub output: PathBuf,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Exit code, when it exited.
    pub code: Option<i32>,
    /// Signal, when it was killed.
    pub signal: Option<i32>,
    /// It did not end by itself in time and was killed.
    pub forced: bool,
    /// Descendants that outlived it and were killed.
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
