//! QUIC below a worker: its endpoint from the plan, what its handshakes have agreed on, and its counters as a load's result has them. It
//! does not know requests.

use std::sync::{Arc, Mutex, PoisonError};

use weir_model::load::{ErrorKind, QuicResult, TlsResult};
use weir_net::Io;
use weir_quic::{ClientOptions, Failure, FailureKind, Quic, Target};

use crate::error::LoadError;
use crate::interval::{Histo, histo};
use crate::plan::Plan;
use crate::tls::count;

/// What handshakes have agreed on, and how long they took. The endpoint writes it and the worker reads it, on one thread.
#[derive(Debug, Clone)]
pub(crate) struct Handshakes(Arc<Mutex<(TlsResult, Histo)>>);

impl Default for Handshakes {
    fn default() -> Handshakes {
        Handshakes(Arc::new(Mutex::new((TlsResult::default(), histo()))))
    }
}

impl Handshakes {
    /// All so far, and how many have failed beside them.
    pub(crate) fn result(&self, failed: u64) -> (TlsResult, Histo) {
        let (mut tls, times) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        tls.failed = failed;
        (tls, times)
    }
}

/// The endpoint of one worker.
///
/// # Errors
/// When the load's targets or options of TLS do not do for QUIC.
pub(crate) fn client(plan: &Plan, seed: u64, seen: &Handshakes) -> Result<Quic, LoadError> {
    let Some(tls) = &plan.tls else {
        return Err(LoadError::InvalidSpec("HTTP/3 without TLS: there is none; expected: https://".into()));
    };
    if plan.spec.proxy_protocol.is_some() {
        let text = "HTTP/3 with a header of the PROXY protocol, which is one of TCP; expected: one or the other";
        return Err(LoadError::InvalidSpec(text.into()));
    }
    let mut targets: Vec<Target> = Vec::new();
    for (planned, name) in plan.targets.iter().zip(&tls.names) {
        let Some(address) = planned.address.tcp() else {
            return Err(LoadError::InvalidSpec(
                format!("HTTP/3 to {}: it takes a host and a port", planned.address).into(),
            ));
        };
        match targets.iter().find(|target| target.address == address) {
            Some(target) if target.name == *name => {}
            Some(_) => {
                let text = format!("HTTP/3 to two names at {address}; expected: one for each address");
                return Err(LoadError::InvalidSpec(text.into()));
            }
            None => targets.push(Target { address, config: tls.config.for_thread(), name: name.clone() }),
        }
    }
    let seen = seen.clone();
    let observe = Box::new(move |negotiated: &_, took| {
        let (tls, times) = &mut *seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        count(tls, negotiated);
        times.saturating_record(took);
    });
    Quic::client(ClientOptions { targets, streams: plan.streams, seed, observe })
        .map_err(|error| LoadError::InvalidSpec(error.to_string().into()))
}

/// What QUIC and its sockets have counted.
pub(crate) fn result(io: &impl Io) -> QuicResult {
    let (datagrams, path) = (io.datagram_counts(), io.path_counts());
    let mean = |sum: u64, of: u64| if of > 0 { sum as f64 / of as f64 / 1e3 } else { 0.0 };
    QuicResult {
        connections: path.connections,
        datagrams_out: datagrams.sent,
        send_calls: datagrams.send_calls,
        datagrams_in: datagrams.received,
        trains_in: datagrams.received_trains,
        receive_calls: datagrams.receive_calls,
        refused: datagrams.refused,
        packets_out: path.sent,
        packets_lost: path.lost,
        congestion_events: path.congestion_events,
        rtt_us: mean(path.rtt_ns, path.connections),
        mtu: path.mtu,
        waited: path.waited,
        waited_us: mean(path.waited_ns, path.waited),
        longest_wait_us: path.longest_wait_ns as f64 / 1e3,
    }
}

/// The kind of an error of a connection of QUIC; `None`: it is none.
pub(crate) fn kind_of(error: &std::io::Error) -> Option<ErrorKind> {
    Some(match Failure::of(error)?.kind {
        FailureKind::Tls => ErrorKind::Tls,
        FailureKind::Protocol => ErrorKind::Protocol,
        FailureKind::Refused => ErrorKind::ConnectRefused,
        FailureKind::TimedOut => ErrorKind::ConnectTimeout,
        FailureKind::Closed => ErrorKind::ConnectFailed,
    })
}
