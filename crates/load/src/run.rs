//! Runs a load from specification to result. The calling thread starts the workers, tells them when to begin and end,
//! merges their intervals, and reports progress. `weir load`, `weir client` and `search` call it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_model::At;
use weir_model::load::{ErrorKind, LoadProtocol, LoadResult, LoadSecond, LoadSpec};
use weir_model::suite::LoadKind;
use weir_net::{DriverKind, pin_to_cpu, probe};

use crate::aggregate::Aggregate;
use crate::capacity;
use crate::clock::{Clock, MILLI, NEVER};
use crate::detail::{Detail, Distributions};
use crate::drivers;
use crate::error::LoadError;
use crate::gate::Gate;
use crate::output::{self, Outputs, span_s};
use crate::plan::{Plan, Share};
use crate::preload;
use crate::protocol::{Http1, Http2, Juno, Memcached, Protocol, Redis};
use crate::recorder::{Interval, Phase};
use crate::result::{self, Span};
use crate::shared::{Message, Ready, Shared, WorkerResult};
use crate::stop::StopFlag;
use crate::worker::Worker;

/// How often the calling thread wakes up when no message arrives.
const POLL_INTERVAL: u64 = 50 * MILLI;

/// How far ahead an important time is announced to the workers: longer than any of their turns.
const LEAD_TIME: u64 = 50 * MILLI;

/// How far ahead a gate has to name the start. Workers that have their connections look for it that often.
const STARTS_AHEAD: u64 = 10 * MILLI;

/// How long a caller waits for connections to be closed, once the result is known.
const CLOSE_WAIT: Duration = Duration::from_millis(300);

/// The progress of a load. The window's marks are reported on time; the last row of warm-up or window may follow some
/// milliseconds after the mark that ends it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// Keys are being written, before the load; comes about every second.
    Preloading {
        /// Written so far.
        written: u64,
        /// To be written.
        of: u64,
    },
    /// Connections are being made; comes about every 50 ms until all are up.
    Connecting {
        /// Established so far.
        open: u32,
        /// Requested.
        of: u32,
    },
    /// All connections are up, and the load waits for its start. Only of a load with a gate.
    Ready,
    /// A second of warm-up is over.
    Warmup {
        /// Its number, 0-based.
        second: u32,
        /// What happened in it.
        row: LoadSecond,
    },
    /// The measured window begins.
    WindowStart {
        /// When, Unix time in milliseconds.
        unix_ms: u64,
    },
    /// A second of the window is over.
    Second(LoadSecond),
    /// More detail on the state after that second; follows [`Progress::Second`] directly.
    Detail(Box<Detail>),
    /// The measured window is over.
    WindowEnd,
    /// The load waits for requests in flight; reported about every 50 ms.
    Draining {
        /// Requests due that have not ended, sent or not.
        in_flight: u64,
    },
    /// The load is over. Has the whole distributions behind the result's percentiles. Reported once, last.
    Distributions(Box<Distributions>),
}

/// Runs a load, and blocks until it is over. Worker threads make the load; the calling thread merges their intervals
/// and calls `progress`.
///
/// # Errors
/// When no load was possible: a wrong specification, too few descriptors or ports, no driver, not one connection, a
/// stop before the start, or an output file that cannot be written. Failures of requests are counted instead.
pub fn run(
    spec: &LoadSpec,
    outputs: &Outputs,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadResult, LoadError> {
    run_gated(spec, outputs, None, stop, progress)
}

/// Like [`run`]. With a gate the load makes its connections, reports [`Progress::Ready`], and starts when the gate says.
///
/// # Errors
/// As for [`run`], and [`LoadError::Late`].
pub fn run_gated(
    spec: &LoadSpec,
    outputs: &Outputs,
    gate: Option<&Gate>,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadResult, LoadError> {
    Job { spec, outputs, gate, stop, ports: capacity::port_range() }.run(progress)
}

/// What [`run`] is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub spec: &'a LoadSpec,
    pub outputs: &'a Outputs,
    pub gate: Option<&'a Gate>,
    pub stop: &'a StopFlag,
    /// The kernel's range of local ports; tests make ports run short.
    pub ports: (u16, u16),
}

impl Job<'_> {
    pub(crate) fn run(&self, progress: &mut dyn FnMut(Progress)) -> Result<LoadResult, LoadError> {
        match self.spec.protocol {
            LoadProtocol::Http1 { .. } => self.run_protocol::<Http1>(progress),
            LoadProtocol::Http2 { .. } => self.run_protocol::<Http2>(progress),
            LoadProtocol::Redis { .. } => self.run_keyvalue::<Redis>(progress),
            LoadProtocol::Juno { .. } => self.run_keyvalue::<Juno>(progress),
            LoadProtocol::Memcached { .. } => self.run_keyvalue::<Memcached>(progress),
        }
    }

    /// The same with a protocol of keys and values: those to preload are written first, by a load of their own.
    fn run_keyvalue<P: Protocol>(&self, progress: &mut dyn FnMut(Progress)) -> Result<LoadResult, LoadError> {
        let Some(spec) = preload::spec(self.spec) else {
            return self.run_protocol::<P>(progress);
        };
        // Nothing is written for a load that cannot be run.
        let kind = probe(self.spec.driver)?;
        Plan::new::<P>(self.spec, kind, self.ports)?;
        let of = Plan::new::<P>(&spec, kind, self.ports)?.shares.iter().map(|share| share.requests).sum();
        let begun = Instant::now();
        let mut written = 0;
        let outputs = Outputs::default();
        let first = Job { spec: &spec, outputs: &outputs, gate: None, ..*self }.run_protocol::<P>(&mut |news| {
            if let Progress::Second(row) = news {
                written += row.right;
                progress(Progress::Preloading { written, of });
            }
        })?;
        preload::check(&first, of)?;
        let mut result = self.run_after::<P>(Some(begun.elapsed()), progress)?;
        preload::add(&mut result, first);
        Ok(result)
    }

    /// The same with this protocol.
    pub(crate) fn run_protocol<P: Protocol>(
        &self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<LoadResult, LoadError> {
        self.run_after::<P>(None, progress)
    }

    /// The same after keys were written for so long.
    fn run_after<P: Protocol>(
        &self,
        preloaded: Option<Duration>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<LoadResult, LoadError> {
        let Job { spec, outputs, gate, stop, ports } = *self;
        let kind = probe(spec.driver)?;
        let plan = Arc::new(Plan::new::<P>(spec, kind, ports)?);
        let mut protocol = P::new(spec).map_err(LoadError::Order)?;
        if let Some(took) = preloaded {
            protocol.preloaded(took);
        }
        let mut sinks = outputs.open()?;
        let mut load = Load::start(&plan, &protocol, kind, sinks.hlog.is_some())?;
        let outcome = load.drive(gate, stop, progress);
        if outcome.is_err() {
            load.shared.abandon();
        }
        load.end_threads(outcome.is_ok())?;
        let span = outcome?;
        load.aggregate.close(span.window, span.end);

        load.outcomes.sort_by_key(|outcome| outcome.thread);
        if let (Some(sink), Some(mut log)) = (&mut sinks.hlog, load.aggregate.log.take()) {
            if spec.part.is_some() {
                log.push(result::for_the_merge(&span, &load.outcomes, &load.aggregate));
            }
            output::write_log(sink, &log, span.window, span.unix)?;
        }
        if let Some(sink) = &mut sinks.series {
            output::write_series(sink, &load.aggregate.series)?;
        }
        progress(Progress::Distributions(Box::new(Distributions::of(&load.aggregate.samples))));
        Ok(result::result(&plan, kind, &span, load.aggregate, &load.outcomes, load.shared.most_open()))
    }
}

/// A running load.
struct Load {
    plan: Arc<Plan>,
    clock: Clock,
    shared: Arc<Shared>,
    messages: Receiver<Message>,
    spares: Vec<Sender<Box<Interval>>>,
    threads: Vec<JoinHandle<()>>,
    aggregate: Aggregate,
    outcomes: Vec<WorkerResult>,
}

impl Load {
    fn start<P: Protocol>(plan: &Arc<Plan>, protocol: &P, kind: DriverKind, log: bool) -> Result<Load, LoadError> {
        let clock = Clock::start();
        let shared = Arc::new(Shared::new(plan.threads));
        let (sender, messages) = channel();
        let mut load = Load {
            plan: plan.clone(),
            clock,
            shared: shared.clone(),
            messages,
            spares: Vec::new(),
            threads: Vec::new(),
            aggregate: Aggregate::new(plan.threads, log, plan.timetable.is_some()),
            outcomes: Vec::new(),
        };
        for share in plan.shares.iter().copied() {
            let (give, take) = channel();
            for _ in 0..2 {
                // The other end is in this scope.
                let _ = give.send(Interval::new(plan.recorded()));
            }
            load.spares.push(give);
            let (plan, protocol) = (plan.clone(), protocol.clone());
            let (shared, sender) = (shared.clone(), sender.clone());
            let thread = std::thread::Builder::new().name(format!("weir-load-{}", share.thread)).spawn(move || {
                // Where it is not allowed the result says so.
                let share = Share { real_time: plan.spec.real_time && weir_net::real_time().is_ok(), ..share };
                let worker = |sender| Worker::new(plan.clone(), protocol, shared, share, clock, sender, take);
                let done =
                    pin(&plan, share).and_then(|()| drivers::work(kind, plan.descriptors, worker(sender.clone())));
                if let Err(error) = done {
                    // A closed channel means that the load is over.
                    let _ = sender.send(Message::Failed(error));
                }
            });
            match thread {
                Ok(thread) => load.threads.push(thread),
                Err(error) => {
                    load.shared.abandon();
                    load.join(false)?;
                    return Err(LoadError::Worker {
                        thread: share.local,
                        detail: format!("cannot be started: {error}"),
                    });
                }
            }
        }
        Ok(load)
    }

    fn drive(
        &mut self,
        gate: Option<&Gate>,
        stop: &StopFlag,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Span, LoadError> {
        self.connect(stop, progress)?;
        let (start, unix) = match gate {
            None => (self.clock.now() + LEAD_TIME, SystemTime::now() + Duration::from_nanos(LEAD_TIME)),
            Some(gate) => self.wait_for_start(gate, stop, progress)?,
        };
        let window = start + self.plan.warmup;
        let mut span = Span {
            window,
            end: window + self.plan.duration,
            unix: unix + Duration::from_nanos(self.plan.warmup),
            cut_short: false,
        };
        self.shared.begin(start, span.end);
        self.watch(&mut span, stop, progress)?;
        self.end_with_the_last(&mut span);
        span.window = span.window.min(span.end);
        Ok(span)
    }

    /// Waits until every worker has its connections.
    fn connect(&mut self, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Result<(), LoadError> {
        let of = self.plan.shares.iter().map(|share| share.connections).sum();
        let mut ready: Vec<Ready> = Vec::new();
        while ready.len() < self.threads.len() {
            if stop.is_set() {
                return Err(LoadError::Stopped);
            }
            let open = self.shared.open();
            progress(Progress::Connecting { open, of });
            match self.next_message(POLL_INTERVAL)? {
                Some(Message::Connected(one)) => ready.push(one),
                Some(Message::Failed(error)) => return Err(error),
                // Slabs and results come only after the start.
                Some(Message::Interval(..) | Message::Done(_)) | None => {}
            }
        }
        let open = ready.iter().map(|one| one.open).sum();
        progress(Progress::Connecting { open, of });
        if open > 0 {
            return Ok(());
        }
        let attempts = ready.iter().map(|one| one.attempts).sum();
        let failure = ready.into_iter().find_map(|one| one.failure);
        let (kind, detail) = failure.unwrap_or_else(|| {
            let detail = "no answer to any attempt to connect".to_owned();
            (ErrorKind::ConnectTimeout, detail)
        });
        Err(LoadError::NoConnection {
            target: self.plan.spec.targets[0].address.clone(),
            kind,
            seconds: span_s(0, self.clock.now()),
            attempts,
            detail,
        })
    }

    /// Waits for the time of the start, and returns it with the wall clock's at that time.
    fn wait_for_start(
        &mut self,
        gate: &Gate,
        stop: &StopFlag,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(u64, SystemTime), LoadError> {
        progress(Progress::Ready);
        loop {
            if stop.is_set() {
                return Err(LoadError::Stopped);
            }
            match gate.recv_timeout(Duration::from_nanos(POLL_INTERVAL)) {
                Ok(At { mono_ns, unix_ns }) => {
                    let earliest = self.clock.monotonic_at(self.clock.now() + STARTS_AHEAD);
                    if mono_ns < earliest {
                        return Err(LoadError::Late { by_ns: earliest - mono_ns, ahead_ns: STARTS_AHEAD });
                    }
                    return Ok((self.clock.at_monotonic(mono_ns), UNIX_EPOCH + Duration::from_nanos(unix_ns)));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(LoadError::Stopped),
            }
            // A worker may fail meanwhile.
            if let Some(Message::Failed(error)) = self.next_message(1)? {
                return Err(error);
            }
        }
    }

    /// Follows the load until all workers are done.
    fn watch(&mut self, span: &mut Span, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Result<(), LoadError> {
        let (mut begun, mut ended) = (false, false);
        while self.outcomes.len() < self.threads.len() {
            let now = self.clock.now();
            self.follow_end(stop, span, now);
            // The mark is reported before any later message.
            if !begun && now >= span.window && span.window < span.end {
                begun = true;
                progress(Progress::WindowStart { unix_ms: result::unix_ms(span.unix) });
            }
            self.end_with_the_last(span);
            if !ended && now >= span.end {
                ended = true;
                progress(Progress::WindowEnd);
            }
            let mark = match (begun, ended) {
                (false, _) => span.window.min(span.end),
                (true, false) => span.end,
                (true, true) => NEVER,
            };
            let wait = POLL_INTERVAL.min(mark.saturating_sub(now)).max(1);
            match self.next_message(wait)? {
                Some(Message::Interval(worker, interval)) => self.take_interval(worker, interval, progress),
                Some(Message::Done(outcome)) => self.outcomes.push(*outcome),
                Some(Message::Failed(error)) => return Err(error),
                Some(Message::Connected(_)) => {}
                None if ended => progress(Progress::Draining { in_flight: self.shared.waiting() }),
                None => {}
            }
        }
        if !ended {
            progress(Progress::WindowEnd);
        }
        Ok(())
    }

    /// A counted load ends with its last request.
    fn end_with_the_last(&self, span: &mut Span) {
        if let (LoadKind::Count { .. }, Some(last)) = (&self.plan.spec.kind, self.shared.all_finished()) {
            span.end = span.end.min(last);
        }
    }

    fn follow_end(&self, stop: &StopFlag, span: &mut Span, now: u64) {
        if stop.is_set() && !span.cut_short && now < span.end {
            // The end is set in the near future, so that all workers learn of it in time and end together.
            span.cut_short = true;
            span.end = span.end.min(now + LEAD_TIME);
            span.window = span.window.min(span.end);
            self.shared.end_at(span.end);
        }
        if stop.is_urgent() && now >= span.end {
            span.cut_short = true;
            self.shared.abandon();
        }
    }

    fn take_interval(&mut self, worker: u32, mut interval: Box<Interval>, progress: &mut dyn FnMut(Progress)) {
        match self.aggregate.take(&interval) {
            Some((Phase::Warmup, row)) => progress(Progress::Warmup { second: row.second, row }),
            Some((Phase::Window, row)) => {
                progress(Progress::Second(row));
                let detail = self.aggregate.detail(self.shared.open(), self.shared.waiting());
                progress(Progress::Detail(Box::new(detail)));
            }
            Some((Phase::Connect | Phase::Drain, _)) | None => {}
        }
        interval.clear();
        // A worker that is done takes no more spares.
        let _ = self.spares[worker as usize].send(interval);
    }

    fn next_message(&self, wait: u64) -> Result<Option<Message>, LoadError> {
        match self.messages.recv_timeout(Duration::from_nanos(wait)) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => match self.dead_worker() {
                // It may have sent its last message just before it ended.
                Some(thread) => match self.messages.try_recv() {
                    Ok(message) => Ok(Some(message)),
                    Err(_) => Err(died(thread)),
                },
                None => Ok(None),
            },
            Err(RecvTimeoutError::Disconnected) => Err(died(0)),
        }
    }

    /// A worker that has ended without a result.
    fn dead_worker(&self) -> Option<u32> {
        let reported = |thread: u32| self.outcomes.iter().any(|outcome| outcome.thread == thread);
        (0u32..)
            .zip(&self.threads)
            .find(|(thread, handle)| handle.is_finished() && !reported(*thread))
            .map(|(thread, _)| thread)
    }

    /// Gives the threads a moment to close their connections. A thread that has reported its result but needs longer,
    /// because it has very many connections, continues by itself: the caller gets the result without waiting for it.
    fn end_threads(&mut self, reported: bool) -> Result<(), LoadError> {
        if reported {
            let until = Instant::now() + CLOSE_WAIT;
            while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
                std::thread::sleep(Duration::from_micros(200));
            }
            let (ended, _still_closing) = self.threads.drain(..).partition(JoinHandle::is_finished);
            self.threads = ended;
        }
        self.join(reported)
    }

    /// Waits for the threads, which were asked to end. `strict`: a panic is an error.
    fn join(&mut self, strict: bool) -> Result<(), LoadError> {
        for (thread, handle) in (0u32..).zip(self.threads.drain(..)) {
            if handle.join().is_err() && strict {
                return Err(died(thread));
            }
        }
        Ok(())
    }
}

fn died(thread: u32) -> LoadError {
    LoadError::Worker { thread, detail: "ended without a result; its own message is on standard error".to_owned() }
}

fn pin(plan: &Plan, share: Share) -> Result<(), LoadError> {
    let cpus = &plan.spec.cpus;
    if cpus.is_empty() {
        return Ok(());
    }
    let cpu = cpus[share.local as usize % cpus.len()];
    pin_to_cpu(cpu).map_err(|source| LoadError::Cpu { thread: share.local, cpu, source })
}
