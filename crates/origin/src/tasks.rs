//! Makes the workers of an origin for any driver, with what they share. [`crate::origin`] gives them threads; a simulated world steps
//! them. This module does not know sockets.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_model::counters::OriginCounters;
use weir_model::protocol::Application;
use weir_net::{Clock, Driver, MakeTask};
use weir_quic::{OverTask, Quic};
use weir_wire::tls::{ServerConfig, ServerOptions};

use crate::counters::AllCounters;
use crate::fault::FaultKind;
use crate::http::{HttpSession, HttpShared};
use crate::http2::MAX_STREAMS;
use crate::http3::Http3Session;
use crate::keyvalue::{self, Dialect, Juno, KeyValueSession, Memcached, Redis};
use crate::member_faults::{FaultClock, MemberFaults};
use crate::options::{Options, OriginError};
use crate::session::Session;
use crate::stall_watch::StallMeter;
use crate::state::WorkerState;
use crate::worker::{Layers, Worker};

/// Counts the keys in the store.
#[derive(Clone)]
pub(crate) struct KeyCount(Arc<dyn Fn() -> u64 + Send + Sync>);

impl fmt::Debug for KeyCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyCount")
    }
}

/// An origin's counters, and its end. Clones are of the same origin.
#[derive(Debug, Clone)]
pub struct OriginHandle {
    pub(crate) all_counters: Arc<AllCounters>,
    pub(crate) keys: Option<KeyCount>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) fault_clock: FaultClock,
}

impl OriginHandle {
    /// The counters of all workers so far; exact when nothing is in flight. While they run, the sum is not of one instant, but
    /// `answered <= requests` and `connections_used <= connections_accepted` always hold.
    pub fn counters(&self) -> OriginCounters {
        let keys = self.keys.as_ref().map_or(0, |keys| keys.0());
        OriginCounters { keys, ..self.all_counters.counters() }
    }

    /// The number of open connections: accepted, and not closed or lost yet. Those over which the counters were read
    /// (`/_weir/counters`) are not included here; the counters include them.
    pub fn connections_open(&self) -> u64 {
        self.all_counters.open_to_others()
    }

    /// The times of the faults of members count from this one, nanoseconds of the drivers' clock. The drivers have to be woken.
    pub fn begin_faults(&self, at: u64) {
        self.fault_clock.store(at, Ordering::Release);
    }

    /// Asks the workers to stop. Their drivers have to be woken.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// An origin as tasks for drivers of the caller's: what [`crate::Origin`] does with threads.
pub struct OriginTasks<D: Driver> {
    /// Reads its counters and stops it.
    pub handle: OriginHandle,
    /// Makes each worker's task for its driver, which listens at all of the origin's addresses, in their order.
    pub workers: Vec<MakeTask<D>>,
    /// The same of those that serve HTTP/3: their drivers listen for datagrams at these addresses, and at nothing else.
    pub http3_workers: Vec<MakeTask<D>>,
    /// Makes the task that notices when the origin's process stands still, for a driver of its own.
    pub stall_meter: MakeTask<D>,
}

impl<D: Driver> fmt::Debug for OriginTasks<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginTasks").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<D: Driver + 'static> OriginTasks<D> {
    /// The tasks of an origin with these options, at the addresses that they name. What the options say of threads, CPUs and drivers is
    /// the caller's, but for the number of threads.
    ///
    /// # Errors
    /// Options that cannot be used.
    pub fn new(options: Options) -> Result<OriginTasks<D>, OriginError> {
        OriginTasks::of(&options, options.workers(), options.addresses().collect())
    }

    /// The same for so many workers, which listen at these addresses.
    pub(crate) fn of(options: &Options, workers: usize, addrs: Vec<SocketAddr>) -> Result<OriginTasks<D>, OriginError> {
        let application = options.protocol.application();
        options.responses.faults.check(application).map_err(OriginError::Fault)?;
        match application {
            Application::Redis => OriginTasks::of_keys::<Redis>(options, workers, addrs),
            Application::Juno => OriginTasks::of_keys::<Juno>(options, workers, addrs),
            Application::Memcached => OriginTasks::of_keys::<Memcached>(options, workers, addrs),
            Application::Http1 | Application::Http2 | Application::Http3 => {
                let (responses, names, key) =
                    (options.responses.clone(), options.request_id_header.clone(), options.response_key);
                let shared =
                    move |worker, clock: &Clock| HttpShared::new(responses.clone(), &names, key, worker, clock);
                let shared = Arc::new(shared);
                let own = Arc::clone(&shared);
                let of_tcp = move |worker, clock: &Clock| own(worker, clock);
                let tasks = OriginTasks::of_sessions::<HttpSession>(options, workers, addrs, of_tcp, None)?;
                if options.http3 { tasks.with_http3(options, workers, shared) } else { Ok(tasks) }
            }
        }
    }

    /// The same with a store for each address, which all workers share: to a proxy each address is a server.
    fn of_keys<P: Dialect>(
        options: &Options,
        workers: usize,
        addrs: Vec<SocketAddr>,
    ) -> Result<OriginTasks<D>, OriginError> {
        let responses = options.responses.clone();
        let stores: Arc<[P::Store]> = addrs.iter().map(|_| P::store(responses.faults.has(FaultKind::Stale))).collect();
        let counted = Arc::clone(&stores);
        let keys = KeyCount(Arc::new(move || counted.iter().map(P::keys).sum()));
        let shared =
            move |worker, _: &Clock| keyvalue::Shared::<P>::new(Arc::clone(&stores), responses.clone(), worker);
        OriginTasks::of_sessions::<KeyValueSession<P>>(options, workers, addrs, shared, Some(keys))
    }

    /// The same with what the sessions of a worker share, by the worker's number.
    fn of_sessions<S: Session + 'static>(
        options: &Options,
        workers: usize,
        addrs: Vec<SocketAddr>,
        shared: impl Fn(usize, &Clock) -> S::Shared + Send + Sync + 'static,
        keys: Option<KeyCount>,
    ) -> Result<OriginTasks<D>, OriginError> {
        let tls = options.tls.as_ref().map(|tls| configure(tls, S::ALPN)).transpose()?;
        let below = Layers { tls, proxy_protocol: options.proxy_protocol, idle: options.idle };
        let counted = if options.http3 { 2 * workers } else { workers };
        let all_counters = Arc::new(AllCounters::new(counted, addrs, S::OPERATIONS));
        let fault_clock = FaultClock::new(AtomicU64::new(u64::MAX));
        let faults = MemberFaults::new(options.faults.clone(), Arc::clone(&fault_clock));
        let handle = OriginHandle { all_counters: Arc::clone(&all_counters), keys, stop: Arc::default(), fault_clock };
        let shared = Arc::new(shared);
        let make = |number| -> MakeTask<D> {
            let (below, shared, handle, faults) = (below.clone(), Arc::clone(&shared), handle.clone(), faults.clone());
            Box::new(move |driver: &D| {
                let clock = driver.clock();
                let shared = shared(number, &clock);
                let state = WorkerState::new(handle.all_counters, number, shared, clock).with_faults(faults);
                Box::new(Worker::<S>::new(state, below, handle.stop))
            })
        };
        let workers = (0..workers).map(make).collect();
        let stall_meter: MakeTask<D> =
            Box::new(move |driver: &D| Box::new(StallMeter::new(all_counters, driver.now())));
        Ok(OriginTasks { handle, workers, http3_workers: Vec::new(), stall_meter })
    }

    /// The same with as many workers for HTTP/3, which count with the others.
    fn with_http3(
        mut self,
        options: &Options,
        workers: usize,
        shared: Arc<impl Fn(usize, &Clock) -> HttpShared + Send + Sync + 'static>,
    ) -> Result<OriginTasks<D>, OriginError> {
        let Some(tls) = &options.tls else { return Err(OriginError::Http3WithoutTls) };
        let config = configure(&ServerOptions { alpn: Vec::new(), ..tls.clone() }, Http3Session::ALPN)?;
        for number in workers..2 * workers {
            let quic = Quic::server(weir_quic::ServerOptions {
                config: config.clone(),
                streams: MAX_STREAMS,
                seed: options.responses.seed ^ (number as u64).rotate_left(32),
            })?;
            let (shared, handle) = (Arc::clone(&shared), self.handle.clone());
            let faults = MemberFaults::new(options.faults.clone(), Arc::clone(&handle.fault_clock));
            let below = Layers { idle: options.idle, ..Layers::default() };
            self.http3_workers.push(Box::new(move |driver: &D| {
                let clock = driver.clock();
                let shared = shared(number, &clock);
                let state = WorkerState::new(handle.all_counters, number, shared, clock).with_faults(faults);
                Box::new(OverTask::new(quic, Worker::<Http3Session>::new(state, below, handle.stop)))
            }));
        }
        Ok(self)
    }
}

/// Makes the TLS configuration from the options. `alpn` applies where they name no protocols.
fn configure(options: &ServerOptions, alpn: &[&str]) -> Result<ServerConfig, OriginError> {
    let mut options = options.clone();
    if options.alpn.is_empty() {
        options.alpn = alpn.iter().map(|name| (*name).to_owned()).collect();
    }
    Ok(ServerConfig::new(&options)?)
}
