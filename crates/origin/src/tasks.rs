//! Makes the workers of an origin for any driver, with what they share. [`crate::origin`] gives them threads; a simulated world steps
//! them. This module does not know sockets.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_model::counters::OriginCounters;
use weir_model::protocol::Application;
use weir_net::{Clock, Driver, MakeTask, Task};
use weir_wire::tls::{ServerConfig, ServerOptions};

use crate::counters::AllCounters;
use crate::fault::FaultKind;
use crate::http::{HttpSession, HttpShared};
use crate::keyvalue::{self, Dialect, Juno, KeyValueSession, Memcached, Redis};
use crate::options::{Options, OriginError};
use crate::session::Session;
use crate::stall_watch::StallMeter;
use crate::state::WorkerState;
use crate::worker::{Layers, Worker};

/// What the workers of an origin have in common, and its owner.
#[derive(Debug)]
pub(crate) struct Common<S: Session> {
    pub(crate) below: Layers,
    pub(crate) all_counters: Arc<AllCounters>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) sessions: MakeShared<S>,
}

impl<S: Session> Clone for Common<S> {
    fn clone(&self) -> Common<S> {
        Common {
            below: self.below.clone(),
            all_counters: Arc::clone(&self.all_counters),
            stop: Arc::clone(&self.stop),
            sessions: self.sessions.clone(),
        }
    }
}

impl<S: Session> Common<S> {
    /// The worker with this number, on its thread.
    pub(crate) fn worker(self, number: usize, clock: Clock) -> Worker<S> {
        let shared = (self.sessions.0)(number, &clock);
        Worker::new(WorkerState::new(self.all_counters, number, shared, clock), self.below, self.stop)
    }
}

/// Makes what the sessions of a worker share, by the worker's number.
pub(crate) struct MakeShared<S: Session>(Arc<SharedMaker<S::Shared>>);

type SharedMaker<T> = dyn Fn(usize, &Clock) -> T + Send + Sync;

impl<S: Session> MakeShared<S> {
    pub(crate) fn new(make: impl Fn(usize, &Clock) -> S::Shared + Send + Sync + 'static) -> MakeShared<S> {
        MakeShared(Arc::new(make))
    }
}

impl<S: Session> Clone for MakeShared<S> {
    fn clone(&self) -> MakeShared<S> {
        MakeShared(Arc::clone(&self.0))
    }
}

impl<S: Session> fmt::Debug for MakeShared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeShared")
    }
}

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
}

impl OriginHandle {
    pub(crate) fn new(all_counters: Arc<AllCounters>, keys: Option<KeyCount>) -> OriginHandle {
        OriginHandle { all_counters, keys, stop: Arc::default() }
    }

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

    /// Asks the workers to stop. Their drivers have to be woken.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// What to do with an origin of any protocol.
pub(crate) trait WithSessions {
    /// What comes of it.
    type Output;

    /// Does it. `sessions` makes what the sessions of a worker share; `keys` counts the keys of a key-value origin.
    ///
    /// # Errors
    /// Those of the origin.
    fn carry_out<S: Session + 'static>(
        self,
        options: Options,
        sessions: MakeShared<S>,
        keys: Option<KeyCount>,
    ) -> Result<Self::Output, OriginError>;
}

/// Does something with an origin of the protocol that the options name.
///
/// # Errors
/// Faults that the protocol does not have, and those of what is done.
pub(crate) fn with_sessions<W: WithSessions>(options: Options, with: W) -> Result<W::Output, OriginError> {
    let responses = options.responses.clone();
    let application = options.protocol.application();
    responses.faults.check(application).map_err(OriginError::Fault)?;
    match application {
        Application::Redis => with_keyvalue::<Redis, W>(options, with),
        Application::Juno => with_keyvalue::<Juno, W>(options, with),
        Application::Memcached => with_keyvalue::<Memcached, W>(options, with),
        Application::Http1 | Application::Http2 | Application::Http3 => {
            let (names, key) = (options.names.clone(), options.answer_key);
            let shared = move |worker, clock: &Clock| HttpShared::new(responses.clone(), &names, key, worker, clock);
            with.carry_out::<HttpSession>(options, MakeShared::new(shared), None)
        }
    }
}

/// The same with a store for each address, which all workers share: to a proxy each address is a server.
fn with_keyvalue<D: Dialect, W: WithSessions>(options: Options, with: W) -> Result<W::Output, OriginError> {
    let responses = options.responses.clone();
    let store = |_| D::store(responses.faults.has(FaultKind::Stale));
    let stores: Arc<[D::Store]> = options.addresses().map(store).collect();
    let counted = Arc::clone(&stores);
    let shared = move |worker, _: &Clock| keyvalue::Shared::<D>::new(Arc::clone(&stores), responses.clone(), worker);
    let keys = KeyCount(Arc::new(move || counted.iter().map(D::keys).sum()));
    with.carry_out::<KeyValueSession<D>>(options, MakeShared::new(shared), Some(keys))
}

/// What is between sessions and their connections.
///
/// # Errors
/// TLS options that cannot be used.
pub(crate) fn layers<S: Session>(options: &Options) -> Result<Layers, OriginError> {
    let tls = options.tls.as_ref().map(|tls| configure(tls, S::ALPN)).transpose()?;
    Ok(Layers { tls, proxy_protocol: options.proxy_protocol, idle: options.idle })
}

/// Makes the TLS configuration from the options. `alpn` applies where they name no protocols.
fn configure(options: &ServerOptions, alpn: &[&str]) -> Result<ServerConfig, OriginError> {
    let mut options = options.clone();
    if options.alpn.is_empty() {
        options.alpn = alpn.iter().map(|name| (*name).to_owned()).collect();
    }
    Ok(ServerConfig::new(&options)?)
}

/// An origin as tasks for drivers of the caller's: what [`crate::Origin`] does with threads.
pub struct OriginTasks<D: Driver> {
    /// Reads its counters and stops it.
    pub handle: OriginHandle,
    /// Makes each worker's task for its driver, which listens at all of the origin's addresses, in their order.
    pub workers: Vec<MakeTask<D>>,
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
        with_sessions(options, MakeTasks(std::marker::PhantomData))
    }
}

struct MakeTasks<D>(std::marker::PhantomData<fn() -> D>);

impl<D: Driver + 'static> WithSessions for MakeTasks<D> {
    type Output = OriginTasks<D>;

    fn carry_out<S: Session + 'static>(
        self,
        options: Options,
        sessions: MakeShared<S>,
        keys: Option<KeyCount>,
    ) -> Result<OriginTasks<D>, OriginError> {
        let below = layers::<S>(&options)?;
        let addrs: Vec<SocketAddr> = options.addresses().collect();
        let number = options.workers();
        let all_counters = Arc::new(AllCounters::new(number, addrs, S::OPERATIONS));
        let handle = OriginHandle::new(Arc::clone(&all_counters), keys);
        let common = Common { below, all_counters, stop: Arc::clone(&handle.stop), sessions };
        let make = |number| -> MakeTask<D> {
            let common = common.clone();
            Box::new(move |driver: &D| Box::new(common.worker(number, driver.clock())) as Box<dyn Task<D>>)
        };
        let workers = (0..number).map(make).collect();
        let counters = Arc::clone(&handle.all_counters);
        let stall_meter: MakeTask<D> = Box::new(move |driver: &D| Box::new(StallMeter::new(counters, driver.now())));
        Ok(OriginTasks { handle, workers, stall_meter })
    }
}
