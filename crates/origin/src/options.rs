//! Options of an origin, and the errors that keep it from starting. The CLI and the lab fill them in.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use weir_model::fault::Fault;
use weir_model::load::{DriverChoice, REQUEST_ID_HEADER, RandomDuration};
use weir_model::protocol::Protocol;
use weir_wire::request_id::ResponseKey;
use weir_wire::tls::{ServerOptions, TlsError};

use crate::fault::Faults;

/// How an origin runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Where it listens; port 0 lets the kernel choose ([`crate::Origin::addr`] says which).
    pub listen: SocketAddr,
    /// Further addresses, as if each had an origin of its own; the counters tell them apart.
    pub also: Vec<SocketAddr>,
    /// What it speaks. All versions of HTTP are one; whether there is TLS, `tls` says.
    pub protocol: Protocol,
    /// Worker threads; 0 = one per entry of `cpus`, or 1 without any. More if `connections` needs more.
    pub threads: u32,
    /// CPUs to pin the workers to, in turn; empty = not pinned.
    pub cpus: Vec<u32>,
    /// The workers run before all ordinary processes of their CPUs, where the kernel allows it.
    pub real_time: bool,
    /// Driver.
    pub driver: DriverChoice,
    /// Delay and faults of responses whose target does not specify them.
    pub responses: ResponseOptions,
    /// Faults of its addresses, which `member` counts from 1. Their times count from [`crate::OriginHandle::begin_faults`].
    pub faults: Vec<Fault>,
    /// The header with the request IDs.
    pub request_id_header: String,
    /// The key with which responses to them are tagged.
    pub response_key: ResponseKey,
    /// A path of a Unix stream socket to listen on, too.
    pub unix: Option<PathBuf>,
    /// Connections to be ready for; `None`: as many as there are descriptors.
    pub connections: Option<u32>,
    /// Serves TLS, and nothing without it. If it names no ALPN protocols: `h2` and `http/1.1`.
    pub tls: Option<ServerOptions>,
    /// Serves HTTP/3, too, on the same ports of UDP, with as many further workers. It takes TLS.
    pub http3: bool,
    /// Each connection has to begin with a header of the PROXY protocol, below TLS; others are reset, and counted.
    pub proxy_protocol: bool,
    /// Connections on which nothing happens for so long are closed, at the latest after half as long again; `None`: never. A response
    /// that is delayed for longer than that is lost.
    pub idle: Option<Duration>,
}

/// Delay and faults of the responses whose target does not specify them, and the headers of all. Responses to the lab's own requests
/// have none of these.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseOptions {
    /// How long responses wait.
    pub delay: Option<RandomDuration>,
    /// The faults of responses.
    pub faults: Faults,
    /// The seed of all random draws, also for targets that specify delay or faults.
    pub seed: u64,
    /// Headers that they have; `Server` and `Content-Type` replace the origin's own. A `Date` of `now` is that of each response. At
    /// most 16, each as [`weir_model::load::origin_header`] allows it.
    pub headers: Vec<(String, String)>,
}

impl Default for ResponseOptions {
    /// No delay, no fault, and the origin's own headers.
    fn default() -> ResponseOptions {
        ResponseOptions { delay: None, faults: Faults::default(), seed: 1, headers: Vec::new() }
    }
}

impl ResponseOptions {
    /// Whether there is a delay or a fault.
    pub(crate) fn is_special(&self) -> bool {
        self.delay.is_some() || !self.faults.is_empty()
    }
}

impl Default for Options {
    /// One worker, not pinned, on a free port of 127.0.0.1.
    fn default() -> Options {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            also: Vec::new(),
            protocol: Protocol::default(),
            threads: 1,
            cpus: Vec::new(),
            real_time: false,
            driver: DriverChoice::Auto,
            responses: ResponseOptions::default(),
            faults: Vec::new(),
            request_id_header: REQUEST_ID_HEADER.to_owned(),
            response_key: ResponseKey::default(),
            unix: None,
            connections: None,
            tls: None,
            http3: false,
            proxy_protocol: false,
            idle: None,
        }
    }
}

impl Options {
    /// All addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.listen).chain(self.also.iter().copied())
    }

    /// The number of workers (at least 1).
    pub fn workers(&self) -> usize {
        let workers = if self.threads == 0 { self.cpus.len() } else { self.threads as usize };
        workers.max(1)
    }

    /// The number of further workers, which serve HTTP/3.
    pub fn http3_workers(&self) -> usize {
        if self.http3 { self.workers() } else { 0 }
    }

    /// The CPU of a worker.
    pub fn cpu(&self, worker: usize) -> Option<u32> {
        self.cpus.get(worker.checked_rem(self.cpus.len())?).copied()
    }
}

/// Why an origin does not start.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// The origin cannot listen on the address.
    #[error("cannot listen on {addr}: {source}{}", listen_advice(source, addr))]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// The origin cannot listen on the path.
    #[error(transparent)]
    Unix(#[from] weir_net::UnixError),
    /// The protocol's responses cannot have such a fault.
    #[error("{0}")]
    Fault(String),
    /// The TLS options are invalid.
    #[error("the origin cannot speak TLS: {0}")]
    Tls(#[from] TlsError),
    /// HTTP/3 without TLS.
    #[error("HTTP/3 takes TLS, and there is none; give a certificate, or let one be made (--tls)")]
    Http3WithoutTls,
    /// The requested driver does not work here.
    #[error("the origin cannot use the driver ordered: {0}")]
    Probe(#[from] weir_net::ProbeError),
    /// The driver should work and does not start.
    #[error("the origin's {driver} driver does not start: {source}")]
    Driver {
        /// Which one.
        driver: weir_net::DriverKind,
        /// The kernel's error.
        source: io::Error,
    },
    /// A worker cannot be pinned.
    #[error(
        "cannot pin an origin's thread to CPU {cpu}: {source}; `nproc` and `taskset -p $$` show which CPUs there are"
    )]
    Pin {
        /// The CPU.
        cpu: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// No thread can be started.
    #[error("cannot start an origin's thread: {0}")]
    Thread(io::Error),
}

fn listen_advice(source: &io::Error, addr: &SocketAddr) -> String {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            let port = addr.port();
            format!("; `ss -ltnp 'sport = :{port}'` shows who has the port, and port 0 takes a free one")
        }
        io::ErrorKind::AddrNotAvailable => "; the address is not one of this machine".to_owned(),
        io::ErrorKind::PermissionDenied => "; ports below 1024 need root".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_and_their_cpus() {
        let options = |threads, cpus: &[u32]| Options { threads, cpus: cpus.to_vec(), ..Options::default() };
        assert_eq!((options(0, &[]).workers(), options(0, &[]).cpu(0)), (1, None));
        assert_eq!((options(0, &[4, 6]).workers(), options(0, &[4, 6]).cpu(1)), (2, Some(6)));
        assert_eq!((options(3, &[4, 6]).workers(), options(3, &[4, 6]).cpu(2)), (3, Some(4)));
    }
}
