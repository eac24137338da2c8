//! The reasons why a load could not run at all. [`crate::run()`] returns them. Failures of single requests are counted
//! instead.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use weir_model::load::{Endpoint, ErrorKind};

/// Why [`crate::run`] has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The specification itself is wrong.
    #[error("the load cannot be run as ordered: {0}")]
    InvalidSpec(SpecError),

    /// Fewer descriptors than connections.
    #[error(
        "{connections} connections need {need} open files, and the limit is {limit}; raise it (ulimit -Hn {need} as root, \
         or LimitNOFILE={need} in the unit), take io_uring on Linux 6.13 or later, which can do without, or ask for at \
         most {most} connections"
    )]
    Descriptors {
        /// Connections requested.
        connections: u32,
        /// Descriptors needed.
        need: u64,
        /// The hard limit.
        limit: u64,
        /// Connections that would fit.
        most: u64,
    },

    /// Fewer local ports than connections.
    #[error(
        "{connections} connections to {target} need more local ports than the {ports} that \
         net.ipv4.ip_local_port_range leaves; widen it (sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"), give \
         more source addresses, or ask for at most {ports} connections; only for targets in 127.0.0.0/8 can weir spread \
         them over several source addresses by itself"
    )]
    Ports {
        /// Connections requested.
        connections: u32,
        /// Where to.
        target: SocketAddr,
        /// Ports that the source addresses have, one unless more were given.
        ports: u32,
    },

    /// The I/O driver that was asked for does not work on this host.
    #[error(transparent)]
    NoDriver(#[from] weir_net::ProbeError),

    /// The I/O driver could not be made.
    #[error("the {driver} driver cannot be made: {source}")]
    Driver {
        /// Which one.
        driver: weir_net::DriverKind,
        /// The kernel's error.
        source: io::Error,
    },

    /// The driver failed during the load.
    #[error("the {driver} driver failed: {source}")]
    DriverFailed {
        /// Which one.
        driver: weir_net::DriverKind,
        /// The kernel's error.
        source: io::Error,
    },

    /// A worker thread could not be pinned.
    #[error(
        "worker thread {thread} cannot be pinned to CPU {cpu}: {source}; `nproc --all` and the process's own \
         affinity (taskset -p) say which CPUs there are"
    )]
    Cpu {
        /// Which worker, 0-based.
        thread: u32,
        /// Which CPU.
        cpu: u32,
        /// The kernel's error.
        source: io::Error,
    },

    /// Not one connection could be made before the load began.
    #[error("no connection to {target} within {seconds:.1} s ({attempts} attempts): {}: {detail}", kind.as_str())]
    NoConnection {
        /// Where to; the first target where there are several.
        target: Endpoint,
        /// Kind of the last failure.
        kind: ErrorKind,
        /// How long weir tried, seconds.
        seconds: f64,
        /// Failed attempts.
        attempts: u64,
        /// The last error of the kernel or the peer.
        detail: String,
    },

    /// Not all keys could be written that the load needs.
    #[error(
        "{written} of {of} keys were written before the load ({errors}); expected: all, because the load's reads are held to them"
    )]
    Preload {
        /// Keys written.
        written: u64,
        /// Keys to be written.
        of: u64,
        /// Failures by kind, with reasons.
        errors: String,
    },

    /// The order to start came too late for a start at its time.
    #[error(
        "the order to start came {:.1} ms too late (workers have to know {} ms ahead); expected: all clients start at the \
         time that was sent",
        *by_ns as f64 / 1e6, ahead_ns / 1_000_000
    )]
    Late {
        /// By so much, nanoseconds.
        by_ns: u64,
        /// How long before the start it has to come, nanoseconds.
        ahead_ns: u64,
    },

    /// The outputs of several clients cannot be merged.
    #[error("the client on {host}: {}: {detail}; expected: the whole output of one part of the load", path.display())]
    Merge {
        /// Whose output it is.
        host: String,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },

    /// Stopped before the load began; nothing was measured.
    #[error("stopped before the load began")]
    Stopped,

    /// An output file could not be written.
    #[error("cannot write {}: {source}; name a file in a folder that exists and may be written to", path.display())]
    Output {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// A worker thread could not be started, or died.
    #[error("worker thread {thread}: {detail}")]
    Worker {
        /// Which worker, 0-based.
        thread: u32,
        /// What is known of the cause.
        detail: String,
    },
}

/// A mistake in a load's specification, for people: what was found, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

/// A peer's violation of its protocol, for people. It ends the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Violation(String);

/// Makes an error of its words.
macro_rules! from_words {
    ($error:ident) => {
        impl From<String> for $error {
            fn from(words: String) -> $error {
                $error(words)
            }
        }

        impl From<&str> for $error {
            fn from(words: &str) -> $error {
                $error(words.to_owned())
            }
        }
    };
}

from_words!(SpecError);
from_words!(Violation);
