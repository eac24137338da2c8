//! What weir and an agent say to each other. One frame carries one message as JSON; parts of files travel behind it as they
//! are. Both are the same program, known by its hash, so nothing here has to be read by another version.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_model::At;
use weir_model::product::Signal;
use weir_model::record::Role;
use weir_vitals::Plan;

use crate::files::FileError;
use crate::host::{Disturbance, Ended, HostError, HostFacts, ProgramSpec, ReceiveError, RoleSpec};
use crate::ports::NoPort;
use crate::role::RoleError;
use crate::supervisor::StartError;

/// Longest part of a file in one message, bytes: heartbeats behind one are not late on a slow link.
pub(super) const PART: usize = 512 * 1024;

/// The first message: who speaks, and what the agent is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`super::VERSION`] of the weir that speaks.
    pub version: String,
    /// Name of the run. The same run may take over its lease.
    pub run: String,
    /// Who runs it: `user@host`.
    pub who: String,
    /// The host's name in the topology.
    pub name: String,
    /// Its address for traffic.
    pub address: Option<IpAddr>,
    /// CPUs that roles may use; empty for all.
    pub cpus: Vec<u32>,
    /// What the link of its address carries, bits a second, where weir knows it and its interface may not.
    pub rate: Option<u64>,
    /// CPUs that the agent keeps to; empty for all.
    pub own_cpus: Vec<u32>,
    /// Whether the host has a disk of its own, so that the agent makes a folder for the run.
    pub own_disk: bool,
    /// Whether the host is to be kept to this run.
    pub lease: bool,
}

/// The number of a program, a role or a sampler, which weir chooses.
pub(super) type Handle = u32;

/// The number of a request, which its reply has, too.
pub(super) type RequestId = u64;

/// From weir to an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToAgent {
    Hello(Hello),
    Request(RequestId, Request),
    Beat,
    /// End everything, and say when that is done.
    Bye,
}

/// From an agent to weir.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToWeir {
    Welcome(Box<HostFacts>),
    Refused(String),
    Reply(RequestId, Result<Value, Refusal>),
    /// How a call goes on, before its reply.
    Progress(RequestId, Value),
    /// A line of a role.
    Line(Handle, String),
    RoleEnded(Handle),
    ProgramEnded(Handle, Ended),
    /// With the lines of roles that hold theirs, since the last one.
    Beat(Vec<(Handle, String)>),
    Gone,
}

/// The requests to an agent. The comments say what is replied.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// The host's monotonic clock, ns.
    Clock,
    /// The speed of each of these CPUs.
    Speeds(Vec<u32>),
    /// The root's pid.
    Start(Handle, ProgramSpec),
    Signal(Handle, Signal),
    Disturb(Handle, Disturbance, Option<At>),
    /// What was disturbed, and when.
    Disturbed(Handle),
    /// How it ended. SIGKILL comes after this time.
    Stop(Handle, Duration),
    Drop(Handle),
    /// The role's pid.
    StartRole(Handle, RoleSpec),
    Send(Handle, String),
    /// The role's line, which comes within this time.
    Ask(Handle, String, Duration),
    EndRole(Handle),
    /// Samples as planned, with the roles whose processes are counted.
    Watch(Handle, Plan, Vec<(Role, u32)>),
    /// A window from here to there.
    Begin(Handle, At, Option<At>),
    /// The window.
    End(Handle),
    StopWatch(Handle),
    /// The pids of a root's descendants.
    Descendants(u32),
    /// An error unless a root or one of its descendants listens there.
    OwnsListener(u32, SocketAddr),
    /// True if connections are accepted there within this time.
    Accepts(SocketAddr, Duration),
    /// So many addresses with free ports.
    FreePorts(IpAddr, usize),
    CreateDir(PathBuf),
    /// A part of a file behind the message. The file is written when the last part has come.
    Write {
        path: PathBuf,
        private: bool,
        last: bool,
    },
    /// Behind the reply: the part of the file from this byte on, empty at its end.
    Read(PathBuf, u64),
    /// The files below a folder.
    List(PathBuf),
    Remove(PathBuf),
    /// So many lines at a file's end.
    LastLines(PathBuf, usize),
    /// A call by this name, with this argument, to the program above this crate: its result.
    Call(String, Value),
}

/// Why a request was not carried out, in a form from which the host's own error can be made again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refusal {
    /// What the system said.
    System(SystemError),
    /// A program, by its name, did not start: why.
    Program(String, String),
    NoPort(NoPort),
    Receive(ReceiveError),
    /// Any other text.
    Failed(String),
}

/// An error of the system: its number, if it has one, and its text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SystemError {
    errno: Option<i32>,
    text: String,
}

impl From<std::io::Error> for SystemError {
    fn from(error: std::io::Error) -> SystemError {
        let (text, kind) = (error.to_string(), error.kind());
        let same = || KINDS.iter().find(|errno| std::io::Error::from_raw_os_error(**errno).kind() == kind).copied();
        SystemError { errno: error.raw_os_error().or_else(same), text }
    }
}

/// Errors of whose kind something is made, for those to which a text was added: they have no number any more.
const KINDS: [i32; 6] = [libc::ENOENT, libc::EACCES, libc::ENOSPC, libc::EDQUOT, libc::EINVAL, libc::EPIPE];

impl SystemError {
    /// The error again, with its kind. `place` is put behind the text.
    pub(super) fn into_io(self, place: &str) -> std::io::Error {
        let kind =
            self.errno.map_or(std::io::ErrorKind::Other, |errno| std::io::Error::from_raw_os_error(errno).kind());
        std::io::Error::new(kind, format!("{}{place}", self.text))
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Refusal {
        Refusal::System(error.into())
    }
}

impl From<StartError> for Refusal {
    fn from(error: StartError) -> Refusal {
        match error {
            StartError::Supervisor(error) => error.into(),
            StartError::Program { program, why } => Refusal::Program(program, why),
        }
    }
}

impl From<RoleError> for Refusal {
    fn from(error: RoleError) -> Refusal {
        match error {
            RoleError::Start { error, .. } => error.into(),
            RoleError::File(error) => error.into(),
            other => Refusal::Failed(other.to_string()),
        }
    }
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Refusal {
        error.error.into()
    }
}

impl From<NoPort> for Refusal {
    fn from(error: NoPort) -> Refusal {
        Refusal::NoPort(error)
    }
}

impl From<ReceiveError> for Refusal {
    fn from(error: ReceiveError) -> Refusal {
        Refusal::Receive(error)
    }
}

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Refusal {
        Refusal::Failed(error.to_string())
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Failed(text)
    }
}

impl Refusal {
    /// As an error of the system. `place` is put behind the text.
    pub(super) fn into_io(self, place: &str) -> std::io::Error {
        match self {
            Refusal::System(error) => error.into_io(place),
            Refusal::Program(program, why) => std::io::Error::other(format!("{program}: {why}{place}")),
            Refusal::NoPort(error) => std::io::Error::other(error.to_string()),
            Refusal::Receive(error) => std::io::Error::other(format!("{error:?}{place}")),
            Refusal::Failed(text) => std::io::Error::other(format!("{text}{place}")),
        }
    }
}
