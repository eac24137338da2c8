//! The counters of what reached the origin, kept while it runs. Sessions write them, and the origin sums them up.
//!
//! Each worker writes its own [`WorkerCounters`]; any thread may add them all up into an [`OriginCounters`]. A
//! counter has one writer, so adding is a load and a store and not a locked instruction. The counters of each worker
//! have cache lines of their own. Two numbers are about all workers at once (open connections, and their maximum).
//! They are shared and locked: they change once per connection, not once per request.
//!
//! # What a snapshot promises
//! The sum is taken while workers run, so its fields are not of one instant. Every snapshot satisfies
//! `answered <= requests` and `connections_used <= connections_accepted`, because effects are read before their causes.
//! When nothing is in flight and the workers wait again, the sum is exact.
//!
//! # When things are counted
//! - *requests* (with version and `Connection` header): when the head is complete. *answered*: when the kernel has taken the
//!   last byte of the response. That is some microseconds before or after the client sees it, so a reader that has just
//!   received its response should wait a moment before it compares numbers. If the connection fails before the kernel
//!   has taken the last byte, the response is never counted.
//! - *malformed*: when the parser gives up. The 400 response counts in the bytes, and never in *answered*. A request with a
//!   valid head and an invalid body is in *requests* and in *malformed*.
//! - *bytes in*: as they are read from the parser; those of a head when it is complete or the connection ends.
//!   *Bytes out*: those that the kernel has taken, checked whenever something happens on the connection. If a failure
//!   cuts a response off, the bytes taken since the last event are unknown and not counted. Of a chunked response that
//!   is cut off, chunk framing may count as body.
//! - *names*: as the request with the name. Which names are different is found when the counters are read.
//! - *contents*: an altered head as the request with the name; an altered body when it is complete, or its connection or stream ends.
//! - *faults*: when the origin begins the fault.
//! - *resets*: connections that failed with ECONNRESET, EPIPE or ECONNABORTED.
//!
//! This module does not know connections or sockets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use strum::VariantNames as _;

use weir_model::counters::{
    AddressCounters, COUNTERS_SCHEMA, ContentCounters, OriginCounters, ProxyCounters, RequestIdCounters, TlsCounters,
};
use weir_model::load::{Stalls, StreamEnd};
use weir_model::protocol::Application;
use weir_wire::http1::{ConnectionHeader, Version};

use crate::fault::FaultKind;
use crate::request_ids::SeenRequestIds;

/// Names of [`WorkerCounters::versions`], in their order.
const VERSIONS: [&str; 4] = ["HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3"];
/// Powers of two that are counted separately: a connection carries less than 2^40 requests.
const POWERS: usize = 40;
/// Streams whose early ends are kept.
const MOST_ENDED_EARLY: usize = 65_536;
/// A protocol has at most so many operations.
const OPERATIONS: usize = 20;
/// Names of [`WorkerCounters::connection_headers`], in their order.
const CONNECTION_HEADERS: [&str; 4] = ["(none)", "close", "keep-alive", "other"];

/// A number with one writer and any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owner may call it.
    pub(crate) fn add(&self, n: u64) {
        // Release (a plain store on x86) is what keeps the promise of snapshots: a thread that sees this value sees
        // what the same worker counted before.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Release);
    }

    /// Raises the number to `n` if it is less. Only the owner may call it.
    pub(crate) fn raise(&self, n: u64) {
        if n > self.0.load(Ordering::Relaxed) {
            self.0.store(n, Ordering::Release);
        }
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// One worker's counters, with the names of [`OriginCounters`]. They are aligned so that no two workers share a cache
/// line, or a pair of lines that is fetched together.
#[derive(Debug, Default)]
#[repr(align(128))]
#[allow(missing_docs)] // see OriginCounters
pub(crate) struct WorkerCounters {
    pub(crate) requests: Counter,
    pub(crate) answered: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    pub(crate) body_bytes_in: Counter,
    pub(crate) body_bytes_out: Counter,
    pub(crate) max_in_flight: Counter,
    versions: [Counter; 4],
    connection_headers: [Counter; 4],
    pub(crate) own_requests: Counter,
    pub(crate) identified: Counter,
    pub(crate) malformed_ids: Counter,
    pub(crate) unremembered: Counter,
    pub(crate) altered_targets: Counter,
    pub(crate) altered_headers: Counter,
    pub(crate) altered_bodies: Counter,
    pub(crate) shortened: Counter,
    pub(crate) lengthened: Counter,
    pub(crate) unfinished: Counter,
    pub(crate) unchecked: Counter,
    operations: [Counter; OPERATIONS],
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) malformed: Counter,
    pub(crate) connections_accepted: Counter,
    pub(crate) connections_used: Counter,
    pub(crate) connections_reset: Counter,
    faults: [Counter; FaultKind::VARIANTS.len()],
    protocols: [Counter; Application::ALL.len()],
    reaching: Powers,
    max_requests: Counter,
}

/// Connections by the powers of two of requests that they have reached.
#[derive(Debug)]
struct Powers([Counter; POWERS]);

impl Default for Powers {
    fn default() -> Powers {
        Powers(std::array::from_fn(|_| Counter::default()))
    }
}

impl WorkerCounters {
    /// Counts a request that is not the lab's own. `number` is its position on its connection, from 1.
    #[inline]
    pub(crate) fn request(&self, number: u64, application: Application) {
        self.requests.add(1);
        self.max_requests.raise(number);
        if number.is_power_of_two() {
            self.reached(number, application);
        }
    }

    #[cold]
    fn reached(&self, number: u64, application: Application) {
        if number == 1 {
            self.connections_used.add(1);
            self.protocols[application as usize].add(1);
        }
        let power = (number.trailing_zeros() as usize).min(POWERS - 1);
        self.reaching.0[power].add(1);
    }

    /// Counts a request of HTTP/2 or HTTP/3 that is not the lab's own. It has no `Connection` header.
    #[inline]
    pub(crate) fn request_streams(&self, application: Application) {
        self.versions[if application == Application::Http3 { 3 } else { 2 }].add(1);
        self.connection_headers[0].add(1);
    }

    /// Counts a request of HTTP/1 that is not the lab's own.
    #[inline]
    pub(crate) fn request_http1(&self, version: Version, connection: ConnectionHeader) {
        let version = match version {
            Version::Http10 => 0,
            Version::Http11 => 1,
        };
        self.versions[version].add(1);
        let header = match connection {
            ConnectionHeader::None => 0,
            ConnectionHeader::Close => 1,
            ConnectionHeader::KeepAlive => 2,
            ConnectionHeader::Other => 3,
        };
        self.connection_headers[header].add(1);
    }

    /// Counts an operation of a key-value protocol.
    #[inline]
    pub(crate) fn operation(&self, index: usize) {
        self.operations[index].add(1);
    }

    /// Counts a response with a fault.
    pub(crate) fn fault(&self, kind: FaultKind) {
        self.faults[kind as usize].add(1);
    }
}

/// All workers' counters.
#[derive(Debug)]
pub(crate) struct AllCounters {
    /// Of the first worker, for each address that the origin listens on; then of the second one.
    workers: Box<[WorkerCounters]>,
    addresses: Vec<SocketAddr>,
    /// Names of the protocol's operations.
    operations: &'static [&'static str],
    open: AtomicU64,
    max_open: AtomicU64,
    /// Open connections over which the counters were read.
    readers: AtomicU64,
    /// The IDs that requests had.
    pub(crate) ids: SeenRequestIds,
    /// Locked once per handshake.
    tls: Mutex<TlsCounters>,
    /// Locked once per connection that begins with a header.
    proxy_protocol: Mutex<ProxyCounters>,
    /// Locked when the process has stood still.
    stalls: Mutex<Stalls>,
    /// Locked when a WebSocket is closed.
    close_codes: Mutex<BTreeMap<String, u64>>,
    /// Locked when a peer ends a stream before its last message.
    ended_early: Mutex<Vec<StreamEnd>>,
}

impl AllCounters {
    /// Makes empty counters for this number of workers, each of which listens on all addresses.
    pub(crate) fn new(workers: usize, addresses: Vec<SocketAddr>, operations: &'static [&'static str]) -> AllCounters {
        AllCounters {
            ids: SeenRequestIds::new(workers),
            workers: (0..workers * addresses.len().max(1)).map(|_| WorkerCounters::default()).collect(),
            addresses,
            operations,
            open: AtomicU64::new(0),
            max_open: AtomicU64::new(0),
            readers: AtomicU64::new(0),
            tls: Mutex::default(),
            proxy_protocol: Mutex::default(),
            stalls: Mutex::default(),
            close_codes: Mutex::default(),
            ended_early: Mutex::default(),
        }
    }

    /// A close frame came.
    pub(crate) fn close_frame(&self, code: Option<u16>) {
        let code = code.map_or("none".to_owned(), |code| code.to_string());
        *self.close_codes.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }

    /// A stream's peer was seen to end it before its last message.
    pub(crate) fn ended_early(&self, stream: u64, at: u64) {
        let mut ended = self.ended_early.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() < MOST_ENDED_EARLY {
            ended.push(StreamEnd { stream, at });
        }
    }

    /// How many addresses each worker listens on.
    pub(crate) fn addresses(&self) -> usize {
        self.addresses.len().max(1)
    }

    /// The counters of one worker for one address, numbered as they are kept. Only that worker may write them.
    pub(crate) fn worker(&self, index: usize) -> &WorkerCounters {
        &self.workers[index]
    }

    /// A connection of a worker was opened.
    pub(crate) fn opened(&self, worker: usize) {
        self.workers[worker].connections_accepted.add(1);
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.max_open.fetch_max(open, Ordering::Relaxed);
    }

    /// The counters are read over a connection for the first time.
    pub(crate) fn has_reader(&self) {
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection of a worker was closed. `reader`: the counters were read over it.
    pub(crate) fn closed(&self, reader: bool) {
        if reader {
            self.readers.fetch_sub(1, Ordering::Relaxed);
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Changes the counters of TLS.
    pub(crate) fn tls(&self, change: impl FnOnce(&mut TlsCounters)) {
        change(&mut self.tls.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Changes the counters of headers of the PROXY protocol.
    pub(crate) fn proxy_protocol(&self, change: impl FnOnce(&mut ProxyCounters)) {
        change(&mut self.proxy_protocol.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The process stood still for so long.
    pub(crate) fn stalled(&self, length: Duration) {
        let us = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).record(us);
    }

    /// Connections open, over all workers.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Open connections, without those over which the counters were read.
    pub(crate) fn open_to_others(&self) -> u64 {
        let readers = self.readers.load(Ordering::Relaxed);
        self.open().saturating_sub(readers)
    }

    /// Adds everything up.
    pub(crate) fn counters(&self) -> OriginCounters {
        let sum =
            |field: fn(&WorkerCounters) -> &Counter| self.workers.iter().map(|worker| field(worker).get()).sum::<u64>();
        let max = |field: fn(&WorkerCounters) -> &Counter| self.workers.iter().map(|worker| field(worker).get()).max();
        // Effects before their causes, so that no effect is seen without its cause.
        let answered = sum(|w| &w.answered);
        let connections_used = sum(|w| &w.connections_used);
        let ids = RequestIdCounters {
            malformed: sum(|w| &w.malformed_ids),
            unremembered: sum(|w| &w.unremembered),
            ..self.ids.counters()
        };
        OriginCounters {
            request_ids: RequestIdCounters { identified: sum(|w| &w.identified), ..ids },
            contents: ContentCounters {
                target: sum(|w| &w.altered_targets),
                headers: sum(|w| &w.altered_headers),
                body: sum(|w| &w.altered_bodies),
                shortened: sum(|w| &w.shortened),
                lengthened: sum(|w| &w.lengthened),
                unfinished: sum(|w| &w.unfinished),
                unchecked: sum(|w| &w.unchecked),
            },
            schema: COUNTERS_SCHEMA,
            answered,
            connections_used,
            connections_reset: sum(|w| &w.connections_reset),
            connections_open: self.open.load(Ordering::Relaxed),
            connections_accepted: sum(|w| &w.connections_accepted),
            requests: sum(|w| &w.requests),
            own_requests: sum(|w| &w.own_requests),
            operations: self.by_name(self.operations, |w| &w.operations),
            hits: sum(|w| &w.hits),
            misses: sum(|w| &w.misses),
            keys: 0,
            addresses: self.by_address(),
            malformed: sum(|w| &w.malformed),
            body_bytes_in: sum(|w| &w.body_bytes_in),
            body_bytes_out: sum(|w| &w.body_bytes_out),
            bytes_in: sum(|w| &w.bytes_in),
            bytes_out: sum(|w| &w.bytes_out),
            versions: self.by_name(&VERSIONS, |w| &w.versions),
            connection_headers: self.by_name(&CONNECTION_HEADERS, |w| &w.connection_headers),
            max_in_flight_per_connection: max(|w| &w.max_in_flight).unwrap_or(0),
            max_connections_open: self.max_open.load(Ordering::Relaxed),
            faults: self.by_name(FaultKind::VARIANTS, |w| &w.faults),
            connections_by_protocol: self.by_name(&Application::ALL.map(Application::id), |w| &w.protocols),
            connections_reaching: self.reaching(),
            max_requests_per_connection: max(|w| &w.max_requests).unwrap_or(0),
            tls: self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            proxy_protocol: *self.proxy_protocol.lock().unwrap_or_else(PoisonError::into_inner),
            stalls: *self.stalls.lock().unwrap_or_else(PoisonError::into_inner),
            close_codes: self.close_codes.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ended_early: self.ended_early.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// What reached each address; empty where there is only one.
    fn by_address(&self) -> Vec<AddressCounters> {
        let (count, one) = (self.addresses.len(), self.addresses.len() < 2);
        let of = |(number, address): (usize, &SocketAddr)| {
            let workers = || self.workers.iter().skip(number).step_by(count);
            // Effects before their causes.
            let answered = workers().map(|worker| worker.answered.get()).sum();
            let connections_used = workers().map(|worker| worker.connections_used.get()).sum();
            AddressCounters {
                address: address.to_string(),
                connections_accepted: workers().map(|worker| worker.connections_accepted.get()).sum(),
                connections_used,
                requests: workers().map(|worker| worker.requests.get()).sum(),
                answered,
            }
        };
        if one { Vec::new() } else { self.addresses.iter().enumerate().map(of).collect() }
    }

    fn reaching(&self) -> BTreeMap<u64, u64> {
        let sum = |k: usize| self.workers.iter().map(|worker| worker.reaching.0[k].get()).sum::<u64>();
        (0..POWERS).map(|k| (1 << k, sum(k))).filter(|(_, n)| *n > 0).collect()
    }

    /// Sums by name, without those that are 0.
    fn by_name(&self, names: &[&str], field: fn(&WorkerCounters) -> &[Counter]) -> BTreeMap<String, u64> {
        let sum = |k: usize| self.workers.iter().map(|worker| field(worker)[k].get()).sum::<u64>();
        debug_assert!(names.len() <= field(&self.workers[0]).len());
        let counted = names.iter().enumerate().map(|(k, name)| ((*name).to_owned(), sum(k)));
        counted.filter(|(_, n)| *n > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_snapshot_has_more_responses_than_requests() {
        let all_counters = AllCounters::new(1, Vec::new(), &[]);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for _ in 0..200_000 {
                    all_counters.worker(0).requests.add(1);
                    all_counters.worker(0).answered.add(1);
                }
            });
            while !writer.is_finished() {
                let counters = all_counters.counters();
                assert!(counters.answered <= counters.requests, "{counters:?}");
            }
        });
        assert_eq!((all_counters.counters().answered, all_counters.counters().requests), (200_000, 200_000));
    }
}
