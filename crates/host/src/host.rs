//! The host plug: everything weir does on the machine where a role runs, behind one trait.
//!
//! [`crate::local::LocalHost`] is this machine, and one for tests is in `tests/fake_host`. `docs/add-a-host.md` says how to add
//! another. No signature contains a handle of this machine, so an agent at the other end of a pipe can implement it:
//! processes are numbers, messages are lines, and paths are paths on that host. `weir-product` and `weir-lab` call it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumString, IntoStaticStr};
use weir_model::At;
use weir_model::clock::ClockReading;
use weir_model::product::{Capability, Signal};
use weir_model::record::{Environment, Role};
use weir_model::speed::CpuSpeed;
use weir_vitals::{Plan, Window};

use crate::clock::{Clock, SystemClock};
use crate::files::FileError;
use crate::ports::NoPort;
use crate::role::RoleError;
use crate::storage::{LocalStorage, Storage};
use crate::supervisor::StartError;

/// A host on which processes run.
pub trait Host: Debug + Send + Sync {
    /// What was read of it when it was reached.
    fn facts(&self) -> &HostFacts;

    /// Why it can no longer be spoken to; `None` while it can. Asks nobody.
    fn lost(&self) -> Option<String>;

    /// The clock of the machine where weir runs, by which it plans what this host does.
    fn local_clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// The disk of that machine with the run's folder.
    fn local_storage(&self) -> Arc<dyn Storage> {
        Arc::new(LocalStorage)
    }

    /// A number that no product can foresee.
    fn random(&self) -> u64 {
        rand::random()
    }

    /// A moment of this machine on the host's monotonic clock, by the last reading of it.
    fn at(&self, here: At) -> At;

    /// Compares its monotonic clock with ours.
    ///
    /// # Errors
    /// When it is lost.
    fn read_clock(&self) -> Result<ClockReading, HostError>;

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

    /// Measures how fast CPUs of the host are, by a calculation of some 10 ms for each of them.
    ///
    /// # Errors
    /// When one of them may not be used, or the host cannot do that.
    fn speeds(&self, _cpus: &[u32]) -> std::io::Result<Vec<CpuSpeed>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Samples what is planned and the host, once a second within a window. `counted` are origins that run on this host, by
    /// pid: at the end of each second they are asked how many connections they have open.
    ///
    /// # Errors
    /// When a tree's root has ended, or cannot be read.
    fn watch(&self, plan: Plan, counted: Vec<(Role, u32)>) -> std::io::Result<Box<dyn Sampler>>;

    /// Living descendants of a process.
    fn descendants(&self, root: u32) -> Vec<u32>;

    /// Checks that the socket listening on `addr` belongs to a descendant of `root`, and not to another process on that port.
    ///
    /// # Errors
    /// What was found instead.
    fn owns_listener(&self, root: u32, addr: SocketAddr) -> Result<(), String>;

    /// Whether something accepts connections at `addr`; tries it for at most `within`.
    fn accepts(&self, addr: SocketAddr, within: Duration) -> bool;

    /// Chooses different ports of an address of the host on which nothing listens now.
    ///
    /// # Errors
    /// When there are not enough free ports.
    fn free_ports(&self, at: IpAddr, count: usize) -> Result<Vec<SocketAddr>, NoPort>;

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

    /// Reads a file from a byte on, at most so many; nothing at its end.
    ///
    /// # Errors
    /// What the system said.
    fn read_part(&self, path: &Path, from: u64, most: usize) -> Result<Vec<u8>, FileError>;

    /// The files in a folder and below it, as paths relative to it. Links are not followed.
    ///
    /// # Errors
    /// What the system said.
    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileError>;

    /// Brings a folder with all its files to a folder of the machine where weir runs. Where that is the same folder, there is
    /// nothing to do.
    ///
    /// # Errors
    /// What the system said.
    fn fetch(&self, from: &Path, to: &Path) -> Result<(), FileError>;

    /// Removes a file, a link, or a folder with its contents. Links are not followed. What cannot be removed stays.
    fn remove(&self, path: &Path);

    /// The last lines of a file, for messages. Empty when there is none.
    fn last_lines(&self, path: &Path, lines: usize) -> String;

    /// Calls what the program around this crate offers on a host, by name: its doctor, its installer. Crates above this one
    /// define argument and result.
    ///
    /// # Errors
    /// When the host has no such thing, it failed, or the host is lost.
    fn call(&self, name: &str, argument: Value, progress: &mut dyn FnMut(Value)) -> Result<Value, HostError>;
}

/// What is known of a host. None of it changes while weir speaks to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name in the topology.
    pub name: String,
    /// Kernel, CPUs, memory, limits and settings.
    pub environment: Environment,
    /// What tells machines apart: namespaces of one machine have the same.
    pub machine: String,
    /// CPUs that processes may use, ascending.
    pub cpus: Vec<u32>,
    /// The variables that products may see: see [`ProgramSpec::env`].
    pub env: BTreeMap<String, String>,
    /// Its address for traffic.
    pub address: Option<IpAddr>,
    /// A folder of its own for what a run writes there; `None` where the disk is the one of the machine where weir runs.
    pub work: Option<PathBuf>,
    /// Processes that an earlier weir had left behind there, and that were ended, each with its name and pid.
    pub left_behind: Vec<String>,
}

impl HostFacts {
    /// The address for traffic; loopback where none was given.
    pub fn traffic(&self) -> IpAddr {
        self.address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
    }
}

/// Why a host did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HostError {
    /// It can no longer be spoken to.
    #[error("the host {host} is lost: {why}")]
    Lost {
        /// Which.
        host: String,
        /// What was seen last.
        why: String,
    },
    /// It refused, or it failed.
    #[error("{0}")]
    Failed(String),
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

    /// What blocks until the program has ended or was dropped, while others speak to it. Where nobody needs that it returns at once.
    ///
    /// # Errors
    /// What the system said.
    fn until_ended(&self) -> std::io::Result<Box<dyn FnOnce() + Send>> {
        Ok(Box::new(|| ()))
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it is gone.
    fn signal(&mut self, signal: Signal) -> std::io::Result<()>;

    /// Provokes a fault in its whole tree, or ends one. A program that was killed so counts as running until it is started again,
    /// and its supervisor stays. It happens at the given time of the host; `None`: now.
    ///
    /// # Errors
    /// When its supervisor is gone.
    fn disturb(&mut self, _what: Disturbance, _at: Option<At>) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// What was disturbed so far, and when.
    fn disturbed(&mut self) -> Vec<(Disturbance, At)> {
        Vec::new()
    }

    /// Ends it: SIGTERM, then after `grace` SIGKILL for what is left of its tree.
    fn stop(self: Box<Self>, grace: Duration) -> Ended;
}

/// A fault in a program, or the end of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, EnumString, Serialize, Deserialize)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
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

    /// Writes a line that it answers with one line of JSON, and waits for the response. Several threads may ask; a response that
    /// comes after its time is dropped, and is never taken for another's.
    ///
    /// # Errors
    /// When no response comes within the time.
    fn ask(&self, line: &str, within: Duration) -> Result<String, ReceiveError>;

    /// Closes its standard input, and kills the process if that does not end it.
    fn end(&self);
}

/// Why no line was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiveError {
    /// The process runs and wrote nothing.
    Timeout,
    /// The process has ended.
    Ended,
}

/// Samples process trees and the host. It sleeps outside of a window.
pub trait Sampler: Debug + Send {
    /// Plans a window of the host's monotonic clock. Everything is sampled at `from`, then each second, and at `to`, if it is
    /// given. Returns at once. A `from` that has passed is now.
    ///
    /// # Errors
    /// When the sampler is gone. What fails in the window is told at its end.
    fn begin_window(&self, from: At, to: Option<At>) -> std::io::Result<()>;

    /// Ends the window, now if it has not ended yet, and returns it.
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
    /// All of the output is kept, however long it grows.
    #[serde(default)]
    pub keeps_output: bool,
    /// CPUs it may use; empty for all.
    pub cpus: Vec<u32>,
    /// Niceness on top of weir's own, 0 to 19.
    pub nice: u8,
    /// A disk of its own, of memory.
    pub disk: Option<Disk>,
    /// It is a product: it gets no rights but these, and where weir is root an account of its own. `dir` becomes the account's.
    pub confined: Option<Confined>,
}

/// What a product may do: see [`crate::supervisor::account`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// Folders that it reads, beside its own and that of its program.
    pub reads: Vec<PathBuf>,
    /// Capabilities that it needs; it gets no others.
    pub capabilities: Vec<Capability>,
    /// The account, by number; the host chooses it.
    pub account: Option<u32>,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleSpec {
    /// What messages call it: `client`, `origin`, `requester`.
    pub name: String,
    /// weir's arguments.
    pub args: Vec<String>,
    /// File to which standard error, and standard output that is not JSON, are appended.
    pub output: PathBuf,
    /// Whether what a client says in its measured window waits on another host for the next heartbeat, so that nothing else is
    /// sent meanwhile.
    pub hold: bool,
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
    /// weir lost it: its supervisor was ended from outside, or its host is gone, and the process with it.
    pub lost: bool,
}

impl Ended {
    /// How a process ends whose supervisor or host was lost.
    pub const LOST: Ended = Ended { code: None, signal: Some(libc::SIGKILL), forced: true, left_over: 0, lost: true };
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            _ if self.lost => write!(f, "weir's supervisor of it was ended from outside"),
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => write!(f, "unknown end"),
        }
    }
}
