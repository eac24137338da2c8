//! A running origin: its threads, from start to stop.
//!
//! With several workers each has its own listener on the same address (`SO_REUSEPORT`). The kernel picks one for every
//! connection by a hash of its addresses and ports, so a few connections may be spread unevenly. The CLI and the lab
//! start and stop origins.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use weir_model::counters::OriginCounters;
use weir_model::load::DriverChoice;
use weir_net::{DescriptorKind, Driver, DriverKind, EpollDriver, Listener, MakeTask, Next, SchedulingClass, Task};
use weir_net::{UnixSocket, UringDriver, Wake, Waker};

use crate::driver::ConnectionLimit;
use crate::options::{Options, OriginError};
use crate::pause::Pause;
use crate::stall_watch::StallWatch;
use crate::tasks::{OriginHandle, OriginTasks};

/// The requested length of the accept queue, in connections. The kernel caps it at `net.core.somaxconn`.
const BACKLOG: u32 = 65_535;

/// Makes the driver of a worker, on its thread.
type MakeDriver<D> = fn(DescriptorKind) -> io::Result<D>;

/// A running origin. Dropping it stops it as [`Origin::stop`] does.
#[derive(Debug)]
pub struct Origin {
    /// Where it listens, the first address first.
    addrs: Vec<SocketAddr>,
    kind: DriverKind,
    driver: &'static str,
    shared: Arc<Shared>,
    handle: OriginHandle,
    workers: Vec<Running>,
    /// Removes its file when it is dropped.
    unix: Option<UnixSocket>,
    limit: ConnectionLimit,
    stall_watch: Option<StallWatch>,
}

#[derive(Debug)]
struct Running {
    thread: JoinHandle<()>,
    waker: Waker,
}

/// What the threads and their owner share in addition to the counters.
#[derive(Debug, Default)]
struct Shared {
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
        let wanted = match options.driver {
            DriverChoice::Auto => None,
            DriverChoice::IoUring => Some(DriverKind::Uring),
            DriverChoice::Epoll => Some(DriverKind::Epoll),
        };
        match weir_net::probe(wanted)? {
            kind @ DriverKind::Uring => Origin::start_on(&options, kind, UringDriver::with_descriptors),
            kind @ DriverKind::Epoll => Origin::start_on(&options, kind, |_| EpollDriver::new()),
        }
    }

    /// As [`Origin::start`], on these drivers.
    fn start_on<D: Driver<Listener = Listener, Waker = Waker> + 'static>(
        options: &Options,
        kind: DriverKind,
        make_driver: MakeDriver<D>,
    ) -> Result<Origin, OriginError> {
        let limit = ConnectionLimit::of(kind, options);
        // By address, and then by worker.
        let listeners = options.addresses().map(|addr| bind(addr, limit.workers)).collect::<Result<Vec<_>, _>>()?;
        let unix = options.unix.as_deref().map(|path| weir_net::listen_unix(path, BACKLOG)).transpose()?;
        let refused = |source| OriginError::Listen { addr: options.listen, source };
        let addrs = listeners.iter().map(|one| one[0].local_addr()).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let OriginTasks { handle, workers, http3_workers, .. } =
            OriginTasks::of(options, limit.workers, addrs.clone())?;
        let sockets = addrs.iter().map(|addr| bind_datagrams(*addr, http3_workers.len()));
        let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
        let mut origin = Origin {
            addrs,
            kind,
            driver: "",
            shared: Arc::default(),
            handle,
            workers: Vec::new(),
            unix,
            limit,
            stall_watch: None,
        };
        let mut listeners: Vec<_> = listeners.into_iter().map(Vec::into_iter).collect();
        for (number, make) in workers.into_iter().enumerate() {
            let own = listeners.iter_mut().filter_map(Iterator::next).map(Listener::from).collect();
            // On an error `origin` is dropped, which stops the running threads.
            origin.launch(number, own, options, make_driver, make)?;
        }
        let mut sockets: Vec<_> = sockets.into_iter().map(Vec::into_iter).collect();
        for (number, make) in http3_workers.into_iter().enumerate() {
            let own = sockets.iter_mut().filter_map(Iterator::next).map(Listener::from).collect();
            origin.launch_on(number, own, options, make_driver, make)?;
        }
        let watch = StallWatch::start(Arc::clone(&origin.handle.all_counters), options.cpu(0), options.real_time);
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
        let open = self.handle.all_counters.open();
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
        self.handle.counters()
    }

    /// The number of open connections, over all threads: accepted, and not closed or lost yet. Those over which the
    /// counters were read (`/_weir/counters`) are not included here; the counters include them.
    pub fn connections_open(&self) -> u64 {
        self.handle.connections_open()
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

    /// The times of the faults of members count from this one, nanoseconds of `CLOCK_MONOTONIC`.
    pub fn begin_faults(&self, at: u64) {
        self.handle.begin_faults(at);
        for running in &self.workers {
            running.waker.wake();
        }
    }

    fn halt(&mut self) {
        self.handle.stop();
        self.shared.pause.order(Duration::ZERO);
        for running in &self.workers {
            running.waker.wake();
        }
        for running in self.workers.drain(..) {
            // A worker that panicked has nothing left to join.
            let _ = running.thread.join();
        }
    }

    fn launch<D: Driver<Listener = Listener, Waker = Waker> + 'static>(
        &mut self,
        number: usize,
        mut listeners: Vec<Listener>,
        options: &Options,
        make_driver: MakeDriver<D>,
        make: MakeTask<D>,
    ) -> Result<(), OriginError> {
        if let Some(unix) = &self.unix {
            listeners.push(unix.listener().map_err(OriginError::Thread)?.into());
        }
        self.launch_on(number, listeners, options, make_driver, make)
    }

    /// Starts a worker on its thread, with these listeners alone.
    fn launch_on<D: Driver<Listener = Listener, Waker = Waker> + 'static>(
        &mut self,
        number: usize,
        listeners: Vec<Listener>,
        options: &Options,
        make_driver: MakeDriver<D>,
        make: MakeTask<D>,
    ) -> Result<(), OriginError> {
        let (sender, started) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let (kind, descriptors) = (self.kind, self.limit.descriptors);
        let (cpu, real_time) = (options.cpu(number), options.real_time);
        let body = move || {
            if real_time {
                // Where it is not allowed, the client is not either, and its result says so.
                let _ = weir_net::set_scheduling_class(SchedulingClass::RealTime);
            }
            // Pinned before the driver is made, so that its memory is near.
            let pinned =
                cpu.map_or(Ok(()), |cpu| weir_net::pin_to_cpu(cpu).map_err(|source| OriginError::Pin { cpu, source }));
            let refused = |source| OriginError::Driver { driver: kind, source };
            let driver = pinned.and_then(|()| {
                let mut driver = make_driver(descriptors).map_err(refused)?;
                listeners.into_iter().try_for_each(|listener| driver.listen(listener)).map_err(refused)?;
                Ok(driver)
            });
            // If the channel is closed, the owner has given up already.
            let mut driver = match driver {
                Ok(driver) => driver,
                Err(error) => return drop(sender.send(Err(error))),
            };
            if sender.send(Ok(Ready { driver: driver.name(), waker: driver.waker() })).is_err() {
                return;
            }
            if let Err(error) = serve(&mut *make(&driver), &mut driver, &shared.pause) {
                let mut failure = shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert_with(|| format!("an origin's thread died: {error}"));
            }
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

/// Makes so many sockets of datagrams on one address, one for each worker.
fn bind_datagrams(addr: SocketAddr, workers: usize) -> Result<Vec<UdpSocket>, OriginError> {
    let bind = || weir_net::datagram_socket(addr, workers > 1).map_err(|source| OriginError::Listen { addr, source });
    (0..workers).map(|_| bind()).collect()
}

/// Runs a worker to its end, and lets it do nothing while the origin is paused.
fn serve<D: Driver>(worker: &mut dyn Task<D>, driver: &mut D, pause: &Pause) -> io::Result<()> {
    while let Next::Poll(until) = worker.turn(driver)? {
        worker.poll(driver, until)?;
        pause.wait();
    }
    Ok(())
}
