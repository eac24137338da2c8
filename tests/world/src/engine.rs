//! Origins and loads in a world: the same workers that have threads elsewhere, stepped on virtual time.
//!
//! It does not know trials.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_load::{
    Controller, LoadError, LoadTasks, Outputs, Progress, StopFlag, add_preload, check_preload, load_tasks, preload_spec,
};
use weir_model::At;
use weir_model::load::{LoadResult, LoadSpec, ProbeKind};
use weir_net::sim::{NodeOptions, SimDriver, SimWaker, World};
use weir_net::{Address, Driver, Io, Next, Task, Wake};
use weir_origin::{Options, OriginError, OriginHandle, OriginTasks};
use weir_search::{SearchBench, SearchProgress};

/// Connections that wait to be accepted, at most.
const BACKLOG: usize = 65_535;

/// An origin in a world.
#[derive(Debug)]
pub struct SimOrigin {
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// Its counters, and its end.
    pub handle: OriginHandle,
    /// Its tasks, one for each worker, and the nodes of these.
    pub tasks: Vec<usize>,
    /// The nodes of its workers.
    pub nodes: Vec<usize>,
}

impl SimOrigin {
    /// Starts one at the addresses of the options; port 0 is replaced by a free one.
    ///
    /// # Errors
    /// Options that cannot be used.
    pub fn start(world: &World, mut options: Options, node: NodeOptions) -> Result<SimOrigin, OriginError> {
        let listen = |addr: SocketAddr, shared| {
            let listener = world.listen(addr, BACKLOG, shared);
            listener.map_err(|source| OriginError::Listen { addr, source })
        };
        for addr in std::iter::once(&mut options.listen).chain(&mut options.also) {
            // Binding replaces a port of zero, and every worker then listens at the same.
            *addr = listen(*addr, true)?.address().tcp().unwrap_or(*addr);
        }
        let addresses = std::iter::once(options.listen).chain(options.also.iter().copied()).collect();
        let OriginTasks { handle, workers, http3_workers, stall_meter } = OriginTasks::<SimDriver>::new(options)?;
        let mut origin = SimOrigin { addresses, handle, tasks: Vec::new(), nodes: Vec::new() };
        let several = workers.len() > 1;
        for (number, make) in workers.into_iter().enumerate() {
            let mut driver = world.driver_with(&format!("origin {number}"), node);
            for addr in &origin.addresses {
                let source = driver.listen(listen(*addr, several)?).err();
                if let Some(source) = source {
                    return Err(OriginError::Listen { addr: *addr, source });
                }
            }
            origin.nodes.push(driver.node());
            let task = make(&driver);
            origin.tasks.push(world.add_task(driver, task));
        }
        for (number, make) in http3_workers.into_iter().enumerate() {
            let mut driver = world.driver_with(&format!("origin {number} of HTTP/3"), node);
            for addr in &origin.addresses {
                let bound = world.listen_datagrams(*addr, several).and_then(|socket| driver.listen(socket));
                bound.map_err(|source| OriginError::Listen { addr: *addr, source })?;
            }
            origin.nodes.push(driver.node());
            let task = make(&driver);
            origin.tasks.push(world.add_task(driver, task));
        }
        let driver = world.driver_with("stall meter", node);
        let task = stall_meter(&driver);
        origin.tasks.push(world.add_task(driver, task));
        Ok(origin)
    }
}

/// What a load has reported, and what it is told.
#[derive(Debug, Default)]
struct Desk {
    reports: VecDeque<Progress>,
    start: Option<At>,
    result: Option<Result<LoadResult, LoadError>>,
    /// Its workers' tasks so far, and their nodes.
    tasks: Vec<usize>,
    nodes: Vec<usize>,
}

/// A load in a world.
#[derive(Debug)]
pub struct SimLoad {
    desk: Arc<Mutex<Desk>>,
    stop: StopFlag,
    waker: SimWaker,
    /// The task of its controller.
    controller: usize,
}

impl SimLoad {
    /// Starts one. A gated load waits for [`SimLoad::start_at`]. Keys that it begins with are written first.
    pub fn start(world: &World, spec: &LoadSpec, outputs: &Outputs, gated: bool, node: NodeOptions) -> SimLoad {
        let driver = world.driver_with("client", node);
        let (desk, stop, waker) = (Arc::<Mutex<Desk>>::default(), StopFlag::new(), driver.waker());
        let task = ControllerTask {
            world: world.clone(),
            spec: spec.clone(),
            outputs: outputs.clone(),
            gated,
            node,
            desk: Arc::clone(&desk),
            stop: stop.clone(),
            waker: waker.clone(),
            stage: Stage::New,
        };
        let controller = world.add_task(driver, Box::new(task));
        SimLoad { desk, stop, waker, controller }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }

    /// The next report.
    pub fn next_report(&self) -> Option<Progress> {
        self.desk().reports.pop_front()
    }

    /// Starts a gated load at a time of its node's clock.
    pub fn start_at(&self, start: At) {
        self.desk().start = Some(start);
        self.waker.wake();
    }

    /// Asks it to stop; the second time, at once.
    pub fn stop(&self) {
        self.stop.set();
        self.waker.wake();
    }

    /// Takes its result, once it is over.
    pub fn take_result(&self) -> Option<Result<LoadResult, LoadError>> {
        self.desk().result.take()
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.desk().result.is_some()
    }

    /// The task that its calling thread would be.
    pub fn controller(&self) -> usize {
        self.controller
    }

    /// The nodes of its workers.
    pub fn nodes(&self) -> Vec<usize> {
        self.desk().nodes.clone()
    }

    /// The tasks of its workers.
    pub fn tasks(&self) -> Vec<usize> {
        self.desk().tasks.clone()
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread that calls a load does.
#[derive(Debug)]
struct ControllerTask {
    world: World,
    spec: LoadSpec,
    outputs: Outputs,
    gated: bool,
    node: NodeOptions,
    desk: Arc<Mutex<Desk>>,
    stop: StopFlag,
    waker: SimWaker,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    New,
    /// So many keys are being written, since then.
    Preloading {
        controller: Box<Controller>,
        begun: u64,
        keys: u64,
    },
    /// The load runs; keys were written before it.
    Loading {
        controller: Box<Controller>,
        preload: Option<Box<LoadResult>>,
    },
}

impl ControllerTask {
    /// Makes a load's workers, and gives them to the world.
    fn begin(
        &self,
        spec: &LoadSpec,
        outputs: &Outputs,
        gated: bool,
        preloaded: Option<Duration>,
        now: u64,
    ) -> Result<Box<Controller>, LoadError> {
        let nonce = self.world.random(u64::MAX);
        let LoadTasks { controller, workers } = load_tasks(spec, outputs, gated, preloaded, nonce, now)?;
        for (number, make) in workers.into_iter().enumerate() {
            let driver = self.world.driver_with(&format!("client {number}"), self.node);
            lock(&self.desk).nodes.push(driver.node());
            let task = WorkerTask { task: make(&driver), controller: self.waker.clone() };
            let number = self.world.add_task(driver, Box::new(task));
            lock(&self.desk).tasks.push(number);
        }
        Ok(Box::new(controller))
    }

    /// One turn; the result once there is one.
    fn advance(&mut self, now: At) -> Result<Result<LoadResult, Next>, LoadError> {
        let desk = Arc::clone(&self.desk);
        let mut report = |news: Progress| lock(&desk).reports.push_back(news);
        match std::mem::replace(&mut self.stage, Stage::New) {
            Stage::New => {
                self.stage = match preload_spec(&self.spec) {
                    Some(spec) => Stage::Preloading {
                        controller: self.begin(&spec, &Outputs::default(), false, None, now.mono_ns)?,
                        begun: now.mono_ns,
                        keys: spec.keyvalue.and_then(|keyvalue| keyvalue.key_count).unwrap_or_default(),
                    },
                    None => Stage::Loading {
                        controller: self.begin(&self.spec, &self.outputs, self.gated, None, now.mono_ns)?,
                        preload: None,
                    },
                };
                Ok(Err(Next::Poll(Some(now.mono_ns))))
            }
            Stage::Preloading { mut controller, begun, keys } => {
                let next = controller.turn(now, &self.stop, &mut |_| ())?;
                if next != Next::Over {
                    self.stage = Stage::Preloading { controller, begun, keys };
                    return Ok(Err(next));
                }
                let preload = controller.finish(&mut |_| ())?;
                check_preload(&preload, keys)?;
                let took = Some(Duration::from_nanos(now.mono_ns - begun));
                let controller = self.begin(&self.spec, &self.outputs, self.gated, took, now.mono_ns)?;
                self.stage = Stage::Loading { controller, preload: Some(Box::new(preload)) };
                Ok(Err(Next::Poll(Some(now.mono_ns))))
            }
            Stage::Loading { mut controller, preload } => {
                let start = lock(&self.desk).start.take_if(|_| controller.is_ready());
                if let Some(start) = start {
                    controller.start_at(start, now.mono_ns)?;
                }
                let next = controller.turn(now, &self.stop, &mut report)?;
                if next != Next::Over {
                    self.stage = Stage::Loading { controller, preload };
                    return Ok(Err(next));
                }
                let mut result = controller.finish(&mut report)?;
                if let Some(preload) = preload {
                    add_preload(&mut result, *preload);
                }
                Ok(Ok(result))
            }
        }
    }
}

impl weir_net::Handler for ControllerTask {
    fn on_event<I: Io>(&mut self, _: &mut I, _: weir_net::Conn, _: weir_net::Event<'_>) {}
}

impl Task<SimDriver> for ControllerTask {
    fn turn(&mut self, driver: &mut SimDriver) -> io::Result<Next> {
        let now = At { mono_ns: driver.now(), unix_ns: driver.unix_now() };
        let result = match self.advance(now) {
            Ok(Err(next)) => return Ok(next),
            Ok(Ok(result)) => Ok(result),
            Err(error) => {
                for task in &lock(&self.desk).tasks {
                    self.world.kill(*task);
                }
                Err(error)
            }
        };
        lock(&self.desk).result = Some(result);
        Ok(Next::Over)
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}

/// A worker, whose end wakes its controller.
struct WorkerTask {
    task: Box<dyn Task<SimDriver>>,
    controller: SimWaker,
}

impl Task<SimDriver> for WorkerTask {
    fn turn(&mut self, driver: &mut SimDriver) -> io::Result<Next> {
        let next = self.task.turn(driver);
        if !matches!(next, Ok(Next::Poll(_))) {
            self.controller.wake();
        }
        next
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> io::Result<()> {
        self.task.poll(driver, until)
    }
}

/// Runs a load to its end in a world, and returns its result.
///
/// # Errors
/// Those of the load.
///
/// # Panics
/// When it is not over after a day.
pub fn run_load(world: &World, spec: &LoadSpec) -> Result<LoadResult, LoadError> {
    let load = SimLoad::start(world, spec, &Outputs::default(), false, NodeOptions::default());
    let day = world.now() + 86_400_000_000_000;
    assert!(world.run_until(day, || load.is_over()), "the load does not end");
    load.take_result().expect("it is over")
}

/// Where a search runs its loads in a world.
#[derive(Debug)]
pub struct SimBench<'w>(pub &'w World);

impl SearchBench for SimBench<'_> {
    fn run(
        &mut self,
        spec: &LoadSpec,
        _kind: ProbeKind,
        _progress: &mut dyn FnMut(SearchProgress),
    ) -> Result<LoadResult, LoadError> {
        run_load(self.0, spec)
    }

    fn now(&self) -> u64 {
        self.0.now()
    }

    fn sleep(&mut self, time: Duration) {
        self.0.run_to(self.0.now() + time.as_nanos() as u64);
    }
}

/// An address of a world.
pub fn address(text: &str) -> Address {
    Address::Tcp(text.parse().expect("an address"))
}
