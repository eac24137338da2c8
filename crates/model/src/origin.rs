//! What weir's own origin has to do in a run. Whoever starts one writes it, and the origin reads it. This module does not know how an
//! origin is started.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::load::DriverChoice;
use crate::protocol::Protocol;
use crate::suite::Tls;

/// An origin to start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginSpec {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// What it speaks there.
    pub protocol: Protocol,
    /// Connections to prepare for; it takes more if it can.
    pub connections: u32,
    /// Its CPUs, with a worker on each; empty for one worker on all.
    pub cpus: Vec<u32>,
    /// It runs before all ordinary processes of its CPUs, where the kernel allows it.
    pub real_time: bool,
    /// Its I/O driver.
    pub driver: DriverChoice,
    /// TLS settings; with them, the origin accepts only TLS.
    pub tls: Option<OriginTls>,
    /// The header with request IDs, if not the usual one.
    pub request_id_header: Option<String>,
    /// The key with which responses to them are tagged; zeros for none.
    pub response_key: [u64; 2],
    /// Faults of its addresses, which `member` counts from 1; their times count from a moment that it is told later.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Headers of its responses.
    pub headers: Vec<(String, String)>,
}

/// TLS settings of an origin that clients talk to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginTls {
    /// The certificate, PEM.
    pub cert: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// The authorities that clients' certificates must come from, PEM; `None`: clients need none.
    pub client_ca: Option<PathBuf>,
    /// Versions, and whether sessions can be resumed.
    pub tls: Tls,
}
