//! The course of a load, from the first connection to the result, as a state machine. It tells the workers when to begin and end, merges
//! their intervals and reports progress. `threads` turns it on the calling thread; a simulated world turns it as it likes.
//!
//! It reads no clock and waits for nothing: the time is an argument, and messages are taken as they are there.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use weir_model::At;
use weir_model::load::{ErrorKind, LoadProtocol, LoadResult, LoadSpec, SlowClients};
use weir_model::suite::LoadKind;
use weir_net::{DescriptorKind, Driver, DriverKind, MakeTask, Next, Task};
use weir_quic::OverTask;

use crate::aggregate::Aggregate;
use crate::capacity::Resources;
use crate::clock::{MILLI, NEVER, SECOND};
use crate::detail::{Detail, Distributions};
use crate::error::LoadError;
use crate::interval::{Interval, Phase};
use crate::output::{self, Outputs, Sinks, span_s};
use crate::plan::{Plan, Share};
use crate::progress::Progress;
use crate::protocol::{Http1, Http2, Http3, Instance, Juno, Memcached, Protocol, Redis, WebSocket};
use crate::quic::{self, Handshakes};
use crate::result::{self, Span};
use crate::shared::{Message, Ready, Shared, WorkerResult};
use crate::slow_clients::SlowTask;
use crate::stop::StopFlag;
use crate::worker::Worker;

/// How often the load is looked at when no message arrives.
const POLL_INTERVAL: u64 = 50 * MILLI;

/// How far ahead an important time is announced to the workers: longer than any of their turns.
const LEAD_TIME: u64 = 50 * MILLI;

/// How far ahead a start has to be named. Workers that have their connections look for it that often.
const STARTS_AHEAD: u64 = 10 * MILLI;

/// The longest window whose rows get their memory at the start: 17 MiB for a day.
const LONGEST_ROOM: u64 = 24 * 3_600;

/// Where a load stands.
#[derive(Debug)]
enum Stage {
    /// Connections are being made; these workers have theirs.
    Connecting(Vec<Ready>),
    /// All connections are up, and the load waits for its start.
    Ready,
    /// Requests are sent and not measured yet.
    WarmingUp(Span),
    /// Requests are measured.
    Window(Span),
    /// The load waits for requests in flight.
    Draining(Span),
    /// All workers have reported.
    Done(Span),
}

/// A load in progress. See the module.
#[derive(Debug)]
pub struct Controller {
    plan: Arc<Plan>,
    driver: DriverKind,
    /// It waits for [`Controller::start_at`].
    gated: bool,
    shared: Arc<Shared>,
    messages: Receiver<Message>,
    /// The message that [`Controller::wait`] received.
    first: Option<Message>,
    spares: Vec<Sender<Box<Interval>>>,
    aggregate: Aggregate,
    outcomes: Vec<WorkerResult>,
    /// The account of the slow clients; `None`: they are not gone yet.
    slow_clients: Option<Vec<SlowClients>>,
    sinks: Sinks,
    /// When it was made.
    begun: u64,
    stage: Stage,
}

/// The parts of one worker of a load.
#[derive(Debug)]
pub(crate) struct WorkerParts {
    pub plan: Arc<Plan>,
    pub shared: Arc<Shared>,
    pub share: Share,
    pub messages: Sender<Message>,
    /// Intervals for later seconds.
    pub spares: Receiver<Box<Interval>>,
}

/// The parts of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadOptions<'a> {
    pub spec: &'a LoadSpec,
    pub outputs: &'a Outputs,
    pub resources: &'a Resources,
    /// It waits for [`Controller::start_at`] when its connections are up.
    pub gated: bool,
    /// A number that differs from load to load.
    pub nonce: u64,
    /// For how long keys were written before it.
    pub preloaded: Option<Duration>,
    /// The time now, by the monotonic clock, nanoseconds.
    pub now: u64,
}

impl Controller {
    /// Makes a load and what its workers are made from. Nothing happens yet but that output files are opened.
    ///
    /// # Errors
    /// An output file that cannot be written.
    pub(crate) fn new(plan: Plan, options: LoadOptions<'_>) -> Result<(Controller, Vec<WorkerParts>), LoadError> {
        let plan = Arc::new(plan);
        let sinks = options.outputs.open()?;
        let shared = Arc::new(Shared::new(plan.threads));
        let (sender, messages) = channel();
        let (mut spares, mut workers) = (Vec::new(), Vec::new());
        for share in plan.shares.iter().copied() {
            let (give, take) = channel();
            for _ in 0..2 {
                // The other end is in this scope.
                let _ = give.send(Interval::new(plan.recorded()));
            }
            spares.push(give);
            workers.push(WorkerParts {
                plan: plan.clone(),
                shared: shared.clone(),
                share,
                messages: sender.clone(),
                spares: take,
            });
        }
        // A counted load ends long before its bound, and some have none.
        let (seconds, counted) = (plan.duration.div_ceil(SECOND), matches!(plan.spec.kind, LoadKind::Count { .. }));
        let rows = if counted || seconds > LONGEST_ROOM { 0 } else { seconds as usize };
        let controller = Controller {
            aggregate: Aggregate::new(plan.threads, sinks.hlog.is_some(), plan.timetable.is_some(), rows),
            driver: options.resources.driver,
            gated: options.gated,
            shared,
            messages,
            first: None,
            spares,
            outcomes: Vec::new(),
            slow_clients: (plan.slow_clients == 0).then(Vec::new),
            sinks,
            begun: options.now,
            stage: Stage::Connecting(Vec::new()),
            plan,
        };
        Ok((controller, workers))
    }

    /// Does everything that is due at `now`, and returns when it has to be done again at the latest.
    ///
    /// # Errors
    /// No connection could be made, or the load was stopped before its start.
    pub fn turn(&mut self, now: At, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Result<Next, LoadError> {
        match self.stage {
            Stage::Connecting(_) => self.connect_turn(now, stop, progress),
            Stage::Ready if stop.is_set() => Err(LoadError::Stopped),
            Stage::Ready => Ok(()),
            Stage::WarmingUp(_) | Stage::Window(_) | Stage::Draining(_) => {
                self.load_turn(now.mono_ns, stop, progress);
                Ok(())
            }
            Stage::Done(_) => Ok(()),
        }?;
        if let Stage::Done(_) = self.stage {
            return Ok(Next::Over);
        }
        Ok(Next::Poll(Some(self.next_mark().min(now.mono_ns + POLL_INTERVAL))))
    }

    /// The time of the next report that has to be on time.
    fn next_mark(&self) -> u64 {
        match &self.stage {
            Stage::WarmingUp(span) => span.window.min(span.end),
            Stage::Window(span) => span.end,
            Stage::Connecting(_) | Stage::Ready | Stage::Draining(_) | Stage::Done(_) => NEVER,
        }
    }

    /// Whether it waits for [`Controller::start_at`].
    pub fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready)
    }

    /// Waits for a message of a worker, for a caller whose thread has nothing else to do. Returns whether there is one.
    pub(crate) fn wait(&mut self, within: Duration) -> bool {
        if self.first.is_none() {
            self.first = self.messages.recv_timeout(within).ok();
        }
        self.first.is_some()
    }

    fn next_message(&mut self) -> Option<Message> {
        self.first.take().or_else(|| self.messages.try_recv().ok())
    }

    /// True once a worker has reported its result. The slow clients have the number after the last worker's.
    pub(crate) fn has_reported(&self, worker: u32) -> bool {
        let is_slow = worker as usize >= self.plan.shares.len();
        is_slow && self.slow_clients.is_some() || self.outcomes.iter().any(|outcome| outcome.thread == worker)
    }

    /// The CPUs of the workers' threads, in turn.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        self.plan.spec.cpus.clone()
    }

    /// The table in which each worker's driver holds its connections.
    pub(crate) fn descriptors(&self) -> DescriptorKind {
        self.plan.descriptors
    }

    /// The number of the first worker's thread among those of all clients.
    pub(crate) fn first_thread(&self) -> u32 {
        self.plan.shares.first().map_or(0, |share| share.thread)
    }

    /// Asks the workers to stop waiting and give up.
    pub(crate) fn abandon(&self) {
        self.shared.abandon();
    }

    fn connect_turn(&mut self, now: At, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Result<(), LoadError> {
        if stop.is_set() {
            return Err(LoadError::Stopped);
        }
        let Stage::Connecting(ready) = &mut self.stage else { return Ok(()) };
        for message in self.first.take().into_iter().chain(self.messages.try_iter()) {
            match message {
                Message::Connected(one) => ready.push(one),
                // Intervals and results come only after the start.
                Message::Interval(..) | Message::Done(_) | Message::SlowClients(_) => {}
            }
        }
        let of = self.plan.shares.iter().map(|share| self.plan.first_connections(share)).sum();
        let is_complete = ready.len() == self.plan.shares.len();
        let open = if is_complete { ready.iter().map(|one| one.open).sum() } else { self.shared.open() };
        progress(Progress::Connecting { open, of });
        if !is_complete {
            return Ok(());
        }
        if open == 0 {
            let ready = std::mem::take(ready);
            return Err(self.no_connection(ready, now.mono_ns));
        }
        if self.gated {
            self.stage = Stage::Ready;
            progress(Progress::Ready);
        } else {
            self.begin(At { mono_ns: now.mono_ns + LEAD_TIME, unix_ns: now.unix_ns + LEAD_TIME });
        }
        Ok(())
    }

    fn no_connection(&self, ready: Vec<Ready>, now: u64) -> LoadError {
        let attempts = ready.iter().map(|one| one.attempts).sum();
        let failure = ready.into_iter().find_map(|one| one.failure);
        let (kind, detail) = failure.unwrap_or_else(|| {
            let detail = "no response to any attempt to connect".to_owned();
            (ErrorKind::ConnectTimeout, detail)
        });
        LoadError::NoConnection {
            target: self.plan.spec.targets[0].address.clone(),
            kind,
            seconds: span_s(self.begun, now),
            attempts,
            detail,
        }
    }

    /// Starts a load that is ready at this time, from which requests are due, those of the warm-up first.
    ///
    /// # Errors
    /// [`LoadError::Late`], when workers could not begin in time.
    pub fn start_at(&mut self, start: At, now: u64) -> Result<(), LoadError> {
        let earliest = now + STARTS_AHEAD;
        if start.mono_ns < earliest {
            return Err(LoadError::Late { by_ns: earliest - start.mono_ns, ahead_ns: STARTS_AHEAD });
        }
        if self.is_ready() {
            self.begin(start);
        }
        Ok(())
    }

    fn begin(&mut self, start: At) {
        let window = start.mono_ns + self.plan.warmup;
        let span = Span {
            window,
            end: window + self.plan.duration,
            unix_ns: start.unix_ns + self.plan.warmup,
            cut_short: false,
        };
        self.shared.begin(start.mono_ns, span.end);
        self.stage = Stage::WarmingUp(span);
    }

    /// Follows the load until all workers are done.
    fn load_turn(&mut self, now: u64, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) {
        self.follow_end(now, stop);
        // Marks are reported before any later message.
        self.pass_marks(now, progress);
        let mut came = false;
        while let Some(message) = self.next_message() {
            came = true;
            match message {
                Message::Interval(worker, interval) => self.take_interval(worker, interval, progress),
                Message::Done(outcome) => self.outcomes.push(*outcome),
                Message::SlowClients(gone) => self.slow_clients = Some(gone),
                Message::Connected(_) => {}
            }
        }
        self.end_with_the_last();
        self.pass_marks(now, progress);
        let Some(mut span) = self.span().copied() else { return };
        if self.outcomes.len() == self.plan.shares.len() && self.slow_clients.is_some() {
            if !matches!(self.stage, Stage::Draining(_)) {
                progress(Progress::WindowEnd);
            }
            span.window = span.window.min(span.end);
            self.stage = Stage::Done(span);
        } else if !came && matches!(self.stage, Stage::Draining(_)) {
            progress(Progress::Draining { in_flight: self.shared.waiting() });
        }
    }

    /// The times of the load, from its start on.
    fn span(&mut self) -> Option<&mut Span> {
        match &mut self.stage {
            Stage::WarmingUp(span) | Stage::Window(span) | Stage::Draining(span) | Stage::Done(span) => Some(span),
            Stage::Connecting(_) | Stage::Ready => None,
        }
    }

    fn pass_marks(&mut self, now: u64, progress: &mut dyn FnMut(Progress)) {
        if let Stage::WarmingUp(span) = self.stage
            && now >= span.window
            && span.window < span.end
        {
            self.stage = Stage::Window(span);
            progress(Progress::WindowStart { unix_ms: span.unix_ns / MILLI });
        }
        if let Stage::WarmingUp(span) | Stage::Window(span) = self.stage
            && now >= span.end
        {
            self.stage = Stage::Draining(span);
            progress(Progress::WindowEnd);
        }
    }

    /// A load of a fixed number of requests ends with its last response.
    fn end_with_the_last(&mut self) {
        if self.plan.spec.kind.is_finite()
            && let Some(last) = self.shared.all_finished()
            && let Some(span) = self.span()
        {
            span.end = span.end.min(last);
        }
    }

    fn follow_end(&mut self, now: u64, stop: &StopFlag) {
        let shared = self.shared.clone();
        let Some(span) = self.span() else { return };
        if stop.is_set() && !span.cut_short && now < span.end {
            // The end is set in the near future, so that all workers learn of it in time and end together.
            span.cut_short = true;
            span.end = span.end.min(now + LEAD_TIME);
            span.window = span.window.min(span.end);
            shared.end_at(span.end);
        }
        if stop.is_urgent() && now >= span.end {
            span.cut_short = true;
            shared.abandon();
        }
    }

    fn take_interval(&mut self, worker: u32, mut interval: Box<Interval>, progress: &mut dyn FnMut(Progress)) {
        match self.aggregate.take(&interval) {
            Some((Phase::Warmup, row)) => progress(Progress::Warmup { second: row.second, row }),
            Some((Phase::Window, row)) => {
                progress(Progress::Second(row));
                let detail: Detail = self.aggregate.detail(self.shared.open(), self.shared.waiting());
                progress(Progress::Detail(Box::new(detail)));
            }
            Some((Phase::Connect | Phase::Drain, _)) | None => {}
        }
        interval.clear();
        // A finished worker takes no spares.
        let _ = self.spares[worker as usize].send(interval);
    }

    /// The result of a load that is over, with its files written.
    ///
    /// # Errors
    /// When an output file cannot be written, and when the load is not over.
    pub fn finish(mut self, progress: &mut dyn FnMut(Progress)) -> Result<LoadResult, LoadError> {
        let Stage::Done(span) = self.stage else { return Err(LoadError::Stopped) };
        self.aggregate.close(span.window, span.end);
        self.outcomes.sort_by_key(|outcome| outcome.thread);
        if let (Some(sink), Some(mut log)) = (&mut self.sinks.hlog, self.aggregate.log.take()) {
            if self.plan.spec.part.is_some() {
                log.push(result::for_the_merge(&span, &self.outcomes, &self.aggregate));
            }
            output::write_log(sink, &log, span.window, span.unix_ns)?;
        }
        if let Some(sink) = &mut self.sinks.series {
            output::write_series(sink, &self.aggregate.series)?;
        }
        progress(Progress::Distributions(Box::new(Distributions::of(&self.aggregate.samples))));
        let slow_clients = self.slow_clients.unwrap_or_default();
        let most_open = self.shared.most_open();
        let result = result::result(&self.plan, self.driver, &span, self.aggregate, &self.outcomes, most_open);
        Ok(LoadResult { slow_clients, ..result })
    }
}

/// A load as tasks for drivers of the caller's: what [`crate::run`] does with threads.
pub struct LoadTasks<D: Driver> {
    /// Turns until it is over, and then has the result.
    pub controller: Controller,
    /// Makes each worker's task for its driver, and behind them that of the slow clients, if there are any.
    pub workers: Vec<MakeTask<D>>,
}

impl<D: Driver> std::fmt::Debug for LoadTasks<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadTasks").field("controller", &self.controller).finish_non_exhaustive()
    }
}

impl<D: Driver + 'static> LoadTasks<D> {
    /// # Errors
    /// A wrong specification, too few descriptors or ports, and an output file that cannot be written.
    pub(crate) fn new(options: LoadOptions<'_>) -> Result<LoadTasks<D>, LoadError> {
        match options.spec.protocol {
            LoadProtocol::Http1 { .. } if options.spec.stream.is_some_and(|stream| !stream.kind.in_responses()) => {
                LoadTasks::of::<WebSocket>(options)
            }
            LoadProtocol::Http1 { .. } => LoadTasks::of::<Http1>(options),
            LoadProtocol::Http2 { .. } => LoadTasks::of::<Http2>(options),
            LoadProtocol::Http3 { .. } => LoadTasks::over_quic(options),
            LoadProtocol::Redis { .. } => LoadTasks::of::<Redis>(options),
            LoadProtocol::Juno { .. } => LoadTasks::of::<Juno>(options),
            LoadProtocol::Memcached { .. } => LoadTasks::of::<Memcached>(options),
        }
    }

    /// HTTP/3: each worker on connections of QUIC over its driver's datagrams.
    fn over_quic(options: LoadOptions<'_>) -> Result<LoadTasks<D>, LoadError> {
        let nonce = options.nonce;
        let (protocol, controller, workers) = parts::<Http3>(options)?;
        let make = |parts: WorkerParts| -> Result<MakeTask<D>, LoadError> {
            let (protocol, seen) = (protocol.clone(), Handshakes::default());
            let quic = quic::client(&parts.plan, nonce ^ u64::from(parts.share.thread).rotate_left(32), &seen)?;
            Ok(Box::new(move |driver: &D| {
                let worker = Worker::new(parts, protocol, driver).with_handshakes(seen);
                Box::new(OverTask::new(quic, worker)) as Box<dyn Task<D>>
            }))
        };
        Ok(LoadTasks { controller, workers: workers.into_iter().map(make).collect::<Result<_, _>>()? })
    }

    /// The same, of this protocol.
    pub(crate) fn of<P: Protocol>(options: LoadOptions<'_>) -> Result<LoadTasks<D>, LoadError> {
        let (protocol, controller, workers) = parts::<P>(options)?;
        let slow = match workers.first() {
            Some(parts) if parts.plan.slow_clients > 0 => Some(SlowTask::new(parts).map_err(LoadError::InvalidSpec)?),
            _ => None,
        };
        let slow = slow.map(|slow| -> MakeTask<D> { Box::new(move |_| Box::new(slow)) });
        let make = |parts: WorkerParts| -> MakeTask<D> {
            let protocol = protocol.clone();
            Box::new(move |driver: &D| Box::new(Worker::new(parts, protocol, driver)) as Box<dyn Task<D>>)
        };
        Ok(LoadTasks { controller, workers: workers.into_iter().map(make).chain(slow).collect() })
    }
}

/// A load's protocol, its controller, and the parts of its workers.
fn parts<P: Protocol>(options: LoadOptions<'_>) -> Result<(P, Controller, Vec<WorkerParts>), LoadError> {
    let LoadOptions { spec, resources, nonce, preloaded, now, .. } = options;
    let plan = Plan::new(spec, resources)?;
    let mut protocol = P::new(spec, Instance { nonce, now }).map_err(LoadError::InvalidSpec)?;
    if let Some(took) = preloaded {
        protocol.preloaded(took);
    }
    let (controller, workers) = Controller::new(plan, options)?;
    Ok((protocol, controller, workers))
}

#[cfg(test)]
mod tests;
