//! A running origin: its threads, from start to stop.
//!
//! With several workers each has its own listener on the same address (`SO_REUSEPORT`). The kernel picks one for every
//! connection by a hash of its addresses and ports, so a few connections may be spread unevenly. The CLI and the lab
//! start and stop origins.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use weir_model::counters::OriginCounters;
use weir_model::protocol::Application;
use weir_net::{DescriptorKind, Driver, DriverKind, Listener, UnixSocket, Wake, Waker};
use weir_wire::tls::{ServerConfig, ServerOptions};

use crate::counters::AllCounters;
use crate::driver::{ConnectionLimit, serve_on};
use crate::fault::FaultKind;
use crate::http::{HttpSession, HttpShared};
use crate::keyvalue::{self, Dialect, Juno, KeyValueSession, Memcached, Redis};
use crate::options::{Options, OriginError};
use crate::pause::Pause;
use crate::session::Session;
use crate::stall_watch::StallWatch;
use crate::state::WorkerState;
use crate::worker::{self, Layers};

/// The requested length of the accept queue, in connections. The kernel caps it at `net.core.somaxconn`.
const BACKLOG: u32 = 65_535;

/// A running origin. Dropping it stops it as [`Origin::stop`] does.
#[derive(Debug)]
pub struct Origin {
    /// Where it listens, the first address first.
    addrs: Vec<SocketAddr>,
    kind: DriverKind,
    driver: &'static str,
    shared: Arc<Shared>,
    all_counters: Arc<AllCounters>,
    workers: Vec<Running>,
    /// Removes its file when it is dropped.
    unix: Option<UnixSocket>,
    limit: ConnectionLimit,
    keys: Option<KeyCount>,
    stall_watch: Option<StallWatch>,
}

/// Counts the keys in the store.
struct KeyCount(Box<dyn Fn() -> u64 + Send + Sync>);

impl fmt::Debug for KeyCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyCount")
    }
}

#[derive(Debug)]
struct Running {
    thread: JoinHandle<()>,
    waker: Waker,
}

/// What the threads and their owner share in addition to the counters.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    pause: Pause,
    failure: Mutex<Option<String>>,
}

/// What a worker reports just before it serves.
struct Ready {
    driver: &'static str,
    waker: Waker,
}

impl Origin {
    /// Binds, starts the threads, and returns when all of them serve.
    ///
    /// # Errors
    /// See [`OriginError`]; nothing is left running then.
    pub fn start(options: Options) -> Result<Origin, OriginError> {
        let responses = options.responses.clone();
        let application = options.protocol.application();
        responses.faults.check(application).map_err(OriginError::Fault)?;
        match application {
            Application::Redis => Origin::start_keyvalue::<Redis>(options),
            Application::Juno => Origin::start_keyvalue::<Juno>(options),
            Application::Memcached => Origin::start_keyvalue::<Memcached>(options),
            Application::Http1 | Application::Http2 | Application::Http3 => {
                let (names, key) = (options.names.clone(), options.answer_key);
                let shared = move |worker| HttpShared::new(responses.clone(), &names, key, worker);
                Origin::start_with::<HttpSession>(options, shared)
            }
        }
    }

    /// As [`Origin::start`], with a store for each address, which all workers share: to a proxy each address is a server.
    fn start_keyvalue<D: Dialect>(options: Options) -> Result<Origin, OriginError> {
        let responses = options.responses.clone();
        let store = |_| D::store(responses.faults.has(FaultKind::Stale));
        let stores: Arc<[D::Store]> = options.addresses().map(store).collect();
        let counted = Arc::clone(&stores);
        let shared = move |worker| keyvalue::Shared::<D>::new(Arc::clone(&stores), responses.clone(), worker);
        let mut origin = Origin::start_with::<KeyValueSession<D>>(options, shared)?;
        origin.keys = Some(KeyCount(Box::new(move || counted.iter().map(D::keys).sum())));
        Ok(origin)
    }

    /// As [`Origin::start`], with sessions of a protocol. `shared` makes the shared state of a worker, on its thread.
    pub(crate) fn start_with<S: Session + 'static>(
        options: Options,
        shared: impl Fn(usize) -> S::Shared + Clone + Send + 'static,
    ) -> Result<Origin, OriginError> {
        let kind = weir_net::probe(options.driver)?;
        let tls = options.tls.as_ref().map(|tls| configure(tls, S::ALPN)).transpose()?;
        let below = Layers { tls, proxy_protocol: options.proxy_protocol, idle: options.idle };
        let limit = ConnectionLimit::of(kind, &options);
        // By address, and then by worker.
        let listeners = options.addresses().map(|addr| bind(addr, limit.workers)).collect::<Result<Vec<_>, _>>()?;
        let unix = options.unix.as_deref().map(|path| weir_net::listen_unix(path, BACKLOG)).transpose()?;
        let refused = |source| OriginError::Listen { addr: options.listen, source };
        let addrs = listeners.iter().map(|one| one[0].local_addr()).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let mut origin = Origin {
            addrs: addrs.clone(),
            kind,
            driver: "",
            shared: Arc::default(),
            all_counters: Arc::new(AllCounters::new(limit.workers, addrs, S::OPERATIONS)),
            workers: Vec::new(),
            unix,
            limit,
            keys: None,
            stall_watch: None,
        };
        let mut listeners: Vec<_> = listeners.into_iter().map(Vec::into_iter).collect();
        for number in 0..limit.workers {
            let own = listeners.iter_mut().filter_map(Iterator::next).collect();
            // On an error `origin` is dropped, which stops the running threads.
            origin.launch::<S>(number, own, &options, below.clone(), shared.clone())?;
        }
        let watch = StallWatch::start(Arc::clone(&origin.all_counters), options.cpu(0), options.real_time);
        origin.stall_watch = Some(watch.map_err(OriginError::Thread)?);
        Ok(origin)
    }

    /// The address that it listens on, the first of several.
    pub fn addr(&self) -> SocketAddr {
        self.addrs[0]
    }

    /// All addresses that it listens on.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// How many threads serve.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Why it cannot hold as many connections as requested; `None`: it can.
    pub fn shortage(&self) -> Option<String> {
        let ConnectionLimit { most, wanted, .. } = self.limit;
        let wanted = wanted.filter(|wanted| *wanted > most)?;
        Some(format!("holds at most {most} of {wanted} connections; {}", self.limit.advice(self.kind)))
    }

    /// Reports that the origin is full, if it is. Further connections wait in the kernel's queue until others are
    /// closed.
    pub fn full(&self) -> Option<String> {
        let open = self.all_counters.open();
        let full = open >= self.limit.most;
        full.then(|| format!("{open} connections are open, more will have to wait; {}", self.limit.advice(self.kind)))
    }

    /// The path that it listens on, if any.
    pub fn unix(&self) -> Option<&Path> {
        self.unix.as_ref().map(UnixSocket::path)
    }

    /// The driver in use: `io_uring` or `epoll`.
    pub fn driver(&self) -> &'static str {
        self.driver
    }

    /// The counters of all threads so far; exact when nothing is in flight. While the threads run, the sum is not of
    /// one instant, but `answered <= requests` and `connections_used <= connections_accepted` always hold.
    pub fn counters(&self) -> OriginCounters {
        let keys = self.keys.as_ref().map_or(0, |keys| keys.0());
        OriginCounters { keys, ..self.all_counters.counters() }
    }

    /// The number of open connections, over all threads: accepted, and not closed or lost yet. Those over which the
    /// counters were read (`/_weir/counters`) are not included here; the counters include them.
    pub fn connections_open(&self) -> u64 {
        self.all_counters.open_to_others()
    }

    /// The error of the first thread that died, if any. The others continue.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops: accepts no more connections or requests. Responses under way get five seconds to finish. Then
    /// everything is closed and the threads are joined. The returned counters are final.
    pub fn stop(mut self) -> OriginCounters {
        self.halt();
        self.counters()
    }

    /// Answers nothing for so long, as if the process were stopped, and then goes on; 0 ends it at once.
    pub fn freeze(&self, length: Duration) {
        self.shared.pause.order(length);
        for running in &self.workers {
            running.waker.wake();
        }
    }

    fn halt(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.pause.order(Duration::ZERO);
        for running in &self.workers {
            running.waker.wake();
        }
        for running in self.workers.drain(..) {
            // A worker that panicked has nothing left to join.
            let _ = running.thread.join();
        }
    }

    fn launch<S: Session + 'static>(
        &mut self,
        number: usize,
        listeners: Vec<TcpListener>,
        options: &Options,
        below: Layers,
        sessions_shared: impl FnOnce(usize) -> S::Shared + Send + 'static,
    ) -> Result<(), OriginError> {
        let mut listeners: Vec<Listener> = listeners.into_iter().map(Listener::from).collect();
        if let Some(unix) = &self.unix {
            listeners.push(unix.listener().map_err(OriginError::Thread)?.into());
        }
        let (sender, started) = mpsc::channel();
        let (all_counters, shared) = (Arc::clone(&self.all_counters), Arc::clone(&self.shared));
        let (kind, descriptors) = (self.kind, self.limit.descriptors);
        let (cpu, real_time) = (options.cpu(number), options.real_time);
        let body = move || {
            let state = WorkerState::new(all_counters, number, sessions_shared(number));
            let serving = Serving::<S> { sender: &sender, listeners, state, below, shared: &shared };
            if real_time {
                // Where it is not allowed, the client is not either, and its result says so.
                let _ = weir_net::real_time();
            }
            run(cpu, kind, descriptors, serving);
        };
        let thread = Builder::new().name(format!("weir-origin-{number}")).spawn(body).map_err(OriginError::Thread)?;
        match started.recv() {
            Ok(Ok(Ready { driver, waker })) => {
                self.driver = driver;
                self.workers.push(Running { thread, waker });
                Ok(())
            }
            Ok(Err(error)) => {
                let _ = thread.join();
                Err(error)
            }
            Err(mpsc::RecvError) => Err(OriginError::Thread(io::Error::other("it died before it served"))),
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.halt();
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

/// Makes one listener per worker, all on one address.
fn bind(addr: SocketAddr, workers: usize) -> Result<Vec<TcpListener>, OriginError> {
    let refused = |source| OriginError::Listen { addr, source };
    if workers == 1 {
        return Ok(vec![weir_net::listen_socket(addr, BACKLOG, false).map_err(refused)?]);
    }
    if addr.port() != 0 {
        // With SO_REUSEPORT a second origin would share the port with a first and silently take half of its
        // connections. Without it the kernel reports an error.
        drop(weir_net::listen_socket(addr, 1, false).map_err(refused)?);
    }
    let first = weir_net::listen_socket(addr, BACKLOG, true).map_err(refused)?;
    let addr = first.local_addr().map_err(refused)?;
    let mut listeners = vec![first];
    for _ in 1..workers {
        listeners.push(weir_net::listen_socket(addr, BACKLOG, true).map_err(refused)?);
    }
    Ok(listeners)
}

/// The body of a worker thread.
fn run<S: Session>(cpu: Option<u32>, kind: DriverKind, descriptors: DescriptorKind, serving: Serving<'_, S>) {
    let sender = serving.sender;
    // Pinned before the driver is made, so that its memory is near.
    let pinned = cpu.map_or(Ok(()), |cpu| weir_net::pin_to_cpu(cpu).map_err(|source| OriginError::Pin { cpu, source }));
    if let Err(error) = pinned.and_then(|()| serve_on(kind, descriptors, serving)) {
        // If the channel is closed, the owner has given up already.
        let _ = sender.send(Err(error));
    }
}

/// What a worker needs once it has a driver.
pub(crate) struct Serving<'a, S: Session> {
    sender: &'a mpsc::Sender<Result<Ready, OriginError>>,
    listeners: Vec<Listener>,
    state: WorkerState<S::Shared>,
    below: Layers,
    shared: &'a Shared,
}

impl<S: Session> Serving<'_, S> {
    /// Serves until the origin stops.
    ///
    /// # Errors
    /// When the driver rejects the listener. Later errors are stored as the origin's failure.
    pub(crate) fn run<D: Driver<Listener = Listener, Waker = Waker>>(
        self,
        mut driver: D,
        kind: DriverKind,
    ) -> Result<(), OriginError> {
        for listener in self.listeners {
            driver.listen(listener).map_err(|source| OriginError::Driver { driver: kind, source })?;
        }
        let ready = Ready { driver: driver.name(), waker: driver.waker() };
        if self.sender.send(Ok(ready)).is_err() {
            return Ok(());
        }
        if let Err(error) =
            worker::serve::<S, D>(&mut driver, self.state, self.below, &self.shared.stop, &self.shared.pause)
        {
            let mut failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| format!("an origin's thread died: {error}"));
        }
        Ok(())
    }
}
