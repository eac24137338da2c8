//! What lies between two hosts: how long a small request and its response take, and how much fits through, each way. And what of it,
//! and of the hosts, would spoil a measurement. `weir hosts check` calls it.
//!
//! It is measured as trials are: weir's client on one host, its origin on the other, at the address that traffic uses. This module
//! does not know how hosts are reached, nor which pairs of them matter.

mod findings;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use weir_host::role::{ClientProcess, ClientReport, ClientSpec, OriginProcess};
use weir_host::stop::Stop;
use weir_host::{Clock, Host, Sampler};
use weir_model::load::{LoadProtocol, LoadResult, LoadSpec, Target};
use weir_model::origin::OriginSpec;
use weir_model::placement::Placement;
use weir_model::record::ResourceSecond;
use weir_model::suite::{Expect, Request};
use weir_vitals::Plan;

pub use self::findings::findings;
use crate::hosts::{is_same_host, path_on_host};

/// How long each of a pair's three loads is measured.
const MEASURED_S: f64 = 1.0;

/// How long it runs before: connections are slow at first (RFC 5681, slow start).
const WARMUP_S: f64 = 0.5;

/// How long a connection or a response may take. One that a firewall swallows takes as long.
const PATIENCE_S: f64 = 5.0;

/// How long a load may take with its start and its end.
const MOST: Duration = Duration::from_secs(20);

/// How often a request to stop is looked at.
const POLL: Duration = Duration::from_millis(100);

/// Body of a large request or answer, bytes.
const LARGE: u64 = 64 * 1024;

/// Connections with large bodies, and requests in flight on each: a cloud limits what one connection carries, and 4 MiB in flight
/// fill 10 Gbit/s over 3 ms.
const CONNECTIONS: u32 = 16;
const IN_FLIGHT: u32 = 4;

/// What was measured between two hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The host that connects.
    pub from: String,
    /// The host that listens.
    pub to: String,
    /// A small request and its response over one connection, one at a time: median, µs.
    pub p50_us: f64,
    /// 99th percentile, µs.
    pub p99_us: f64,
    /// What large requests got through, bits a second. Bodies alone, as all that follows.
    pub sent_bits_per_s: f64,
    /// What large responses got through, bits a second.
    pub received_bits_per_s: f64,
    /// Segments that both hosts sent meanwhile, with one request at a time.
    pub small: Segments,
    /// The same with large bodies. A link that is full loses some.
    pub large: Segments,
}

/// TCP segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Segments {
    /// Sent, with those sent again.
    pub sent: u64,
    /// Sent again.
    pub again: u64,
}

impl Segments {
    fn of(rows: &[ResourceSecond]) -> Segments {
        let sum = |of: fn(&ResourceSecond) -> Option<u64>| rows.iter().filter_map(of).sum();
        Segments { sent: sum(|row| row.tcp_segments_sent), again: sum(|row| row.tcp_retransmits) }
    }

    fn plus(self, other: Segments) -> Segments {
        Segments { sent: self.sent + other.sent, again: self.again + other.again }
    }

    /// Those sent again, 0 to 1.
    pub fn share(self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.again as f64 / self.sent as f64 }
    }
}

/// Why a pair was not measured.
#[derive(Debug, thiserror::Error)]
pub enum Unmeasured {
    /// A stop was requested.
    #[error("stopped")]
    Stopped,
    /// The client got no successful response.
    #[error("{0}")]
    Unanswered(String),
    /// What else went wrong.
    #[error("{0}")]
    Failed(String),
}

/// Measures from one host to another, in about five seconds. `scratch` is a folder of this machine whose name no other has; hosts
/// with a disk of their own get one of that name.
///
/// # Errors
/// When no response comes, a host is lost, or a stop is requested.
pub fn measure(from: &Arc<dyn Host>, to: &Arc<dyn Host>, scratch: &Path, stop: &Stop) -> Result<Pair, Unmeasured> {
    let failed = |error: &dyn std::fmt::Display| Unmeasured::Failed(error.to_string());
    let (client_cpus, origin_cpus) = cpus(from.as_ref(), to.as_ref());
    let listen = to.free_ports(to.facts().traffic(), 1).map_err(|e| failed(&e))?;
    let folder = path_on_host(to.as_ref(), scratch, scratch);
    to.create_dir(&folder).map_err(|e| failed(&e))?;
    let output = folder.join("origin.log");
    let spec = OriginSpec { listen, connections: CONNECTIONS, cpus: origin_cpus, ..OriginSpec::default() };
    let origin = OriginProcess::start(to, &spec, &output).map_err(|e| failed(&e))?;
    let mut watched = vec![Watched::start(from)?];
    if !is_same_host(from, to) {
        watched.push(Watched::start(to)?);
    }
    let spec = |request: Request, size: u64| {
        let expect = Expect { status: Some(200), size: Some(size), ..Expect::default() };
        LoadSpec {
            cpus: client_cpus.clone(),
            warmup_s: WARMUP_S,
            duration_s: MEASURED_S,
            timeout_s: PATIENCE_S,
            ..LoadSpec::new(Target::tcp(origin.addrs[0], origin.addrs[0].to_string()), request, expect)
        }
    };
    let large = |request: Request, size: u64| LoadSpec {
        connections: CONNECTIONS,
        threads: CONNECTIONS.min(client_cpus.len() as u32).max(1),
        protocol: LoadProtocol::Http1 { pipeline: IN_FLIGHT },
        ..spec(request, size)
    };
    let run = |spec: LoadSpec| load(from, spec, scratch, &watched, stop);
    let (small, small_segments) = run(spec(Request::get("/bytes/1"), 1))?;
    let body: Vec<u8> = (b'a'..=b'z').cycle().take(LARGE as usize).collect();
    let upload = Request { method: "POST".to_owned(), body, ..Request::get("/bytes/1") };
    let (up, up_segments) = run(large(upload, 1))?;
    let (down, down_segments) = run(large(Request::get(&format!("/bytes/{LARGE}")), LARGE))?;
    Ok(Pair {
        from: from.facts().name.clone(),
        to: to.facts().name.clone(),
        p50_us: small.service.p50_us,
        p99_us: small.service.p99_us,
        sent_bits_per_s: up.rate * LARGE as f64 * 8.0,
        received_bits_per_s: down.body_bytes_per_s * 8.0,
        small: small_segments,
        large: up_segments.plus(down_segments),
    })
}

/// The CPUs of client and origin: those of their hosts, divided where these are the same.
fn cpus(from: &dyn Host, to: &dyn Host) -> (Vec<u32>, Vec<u32>) {
    let (from, to) = (from.facts(), to.facts());
    if from.machine == to.machine && from.cpus == to.cpus {
        let placement = Placement::automatic(&from.cpus);
        return (placement.client, placement.proxy);
    }
    (from.cpus.clone(), to.cpus.clone())
}

/// A host whose network is sampled.
struct Watched(Arc<dyn Host>, Box<dyn Sampler>);

impl Watched {
    fn start(host: &Arc<dyn Host>) -> Result<Watched, Unmeasured> {
        let sampler = host.watch(Plan::default(), Vec::new()).map_err(|e| Unmeasured::Failed(e.to_string()))?;
        Ok(Watched(Arc::clone(host), sampler))
    }
}

/// Runs one load, and counts the segments of the hosts meanwhile.
fn load(
    from: &Arc<dyn Host>,
    spec: LoadSpec,
    scratch: &Path,
    watched: &[Watched],
    stop: &Stop,
) -> Result<(LoadResult, Segments), Unmeasured> {
    let failed = |error: &dyn std::fmt::Display| Unmeasured::Failed(error.to_string());
    let folder = path_on_host(from.as_ref(), scratch, scratch);
    from.create_dir(&folder).map_err(|e| failed(&e))?;
    for Watched(host, sampler) in watched {
        sampler.begin_window(host.at(host.local_clock().now()), None).map_err(|e| failed(&e))?;
    }
    let output = folder.join("client.log");
    let client = ClientProcess::start(from, &ClientSpec::from(spec), &folder, &output, true).map_err(|e| failed(&e))?;
    let result = done(&client, from.local_clock().as_ref(), stop)?;
    let mut segments = Segments::default();
    for Watched(_, sampler) in watched {
        segments = segments.plus(Segments::of(&sampler.end_window().map_err(|e| failed(&e))?.series));
    }
    match result.window.successful_in_window {
        0 => Err(Unmeasured::Unanswered(format!("no successful response within {MEASURED_S} s"))),
        _ => Ok((result, segments)),
    }
}

/// Waits for a client's result.
fn done(client: &ClientProcess, clock: &dyn Clock, stop: &Stop) -> Result<LoadResult, Unmeasured> {
    let deadline = clock.now().plus(MOST);
    loop {
        match client.receive(POLL).map_err(|e| Unmeasured::Failed(e.to_string()))? {
            Some(ClientReport::Done(result)) => return Ok(*result),
            Some(ClientReport::Failed(why)) => return Err(Unmeasured::Unanswered(why)),
            _ if stop.is_requested() => return Err(Unmeasured::Stopped),
            _ if clock.left(deadline).is_zero() => {
                return Err(Unmeasured::Failed(format!("the client was not done after {} s", MOST.as_secs())));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_fake_host::FakeHost;
    use weir_host::HostFacts;

    fn host(name: &str, machine: &str, cpus: &[u32]) -> FakeHost {
        let facts = HostFacts { name: name.into(), machine: machine.into(), cpus: cpus.into(), ..HostFacts::default() };
        FakeHost::new(|_| Default::default(), |_| Default::default()).with_facts(facts, 0)
    }

    #[test]
    fn cpus_are_divided_where_they_are_the_same() {
        let (a, b) = (host("a", "m1", &[0, 1]), host("b", "m1", &[0, 1]));
        let (own, other) = cpus(&a, &b);
        assert_eq!([own.len(), other.len()], [1, 1]);
        assert_ne!(own, other);
        assert_eq!(cpus(&a, &host("c", "m2", &[0, 1])), (vec![0, 1], vec![0, 1]), "another machine");
        // As pods have them.
        assert_eq!(cpus(&host("d", "m1", &[1]), &host("e", "m1", &[0])), (vec![1], vec![0]));
    }

    #[test]
    fn segments_are_added_over_rows_and_hosts() {
        let row = |sent, again| ResourceSecond {
            tcp_segments_sent: Some(sent),
            tcp_retransmits: Some(again),
            ..ResourceSecond::default()
        };
        let one = Segments::of(&[row(100, 1), ResourceSecond::default(), row(50, 2)]);
        assert_eq!(one, Segments { sent: 150, again: 3 });
        assert_eq!(one.plus(one).share(), 0.02);
        assert_eq!(Segments::default().share(), 0.0);
    }
}
