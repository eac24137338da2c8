//! The thread that samples process trees and the host each second, while a window is open. The lab starts one for each
//! trial.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Resource;
use serde::{Deserialize, Serialize};
use weir_model::At;
use weir_model::owners::Holder;
use weir_model::record::Role;

use crate::clock::{mono_ns, own_cpu_us};
use crate::file::Reader;
use crate::host::{Host, HostSample};
use crate::owners::{Outsiders, add_processes};
use crate::parse::host::CpuTicks;
use crate::quota::Quotas;
use crate::source::Source;
use crate::sys::limits;
use crate::tree::Watched;
use crate::window::{Moment, Window, window};

/// Length of a row.
const ROW_NS: u64 = 1_000_000_000;
/// Threads of one tree whose files stay open, at most.
const OPEN_THREADS: usize = 256;
/// Least time between two readings of the proportional set within a window.
const PSS_EVERY_NS: u64 = 5_000_000_000;
/// A reading of the proportional set that took longer is not repeated within the window.
const PSS_EXPENSIVE_NS: u64 = 5_000_000;
/// How long before a window the expensive reading begins, so that it is over then.
const PREPARES_NS: u64 = 100_000_000;

/// Watches process trees and the host from its own thread. Outside of a window it sleeps and reads nothing.
#[derive(Debug)]
pub struct Watch {
    commands: Sender<Command>,
    thread: JoinHandle<Cost>,
}

/// What is watched on a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The process trees of the roles.
    pub trees: Vec<Watched>,
    /// Roots of trees on the same machine that are roles, too, and are watched by another.
    pub elsewhere: Vec<u32>,
    /// Where a product on this host serves, and whom it asks; `None`: there is none.
    pub served: Option<Served>,
}

/// The ports by which a product's connections are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Its own.
    pub port: u16,
    /// Those of its origins.
    pub origins: Vec<u16>,
}

impl From<Vec<Watched>> for Plan {
    fn from(trees: Vec<Watched>) -> Plan {
        Plan { trees, ..Plan::default() }
    }
}

/// What watching has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of the watching thread over its life, µs.
    pub cpu_us: u64,
    /// Files read and directories listed.
    pub reads: u64,
    /// How often everything was sampled.
    pub samples: u64,
}

/// Knows how many connections a role has open. The kernel reports that only at a high price: it lists sockets by
/// host, and finding the process of a socket means looking at every descriptor.
///
/// The number is requested when a row ends, before everything else is sampled, and received after that. So it belongs
/// to the moment at which the row ends, and no measured process waits for it.
pub trait Connections: Send {
    /// Requests the number without waiting for it.
    fn request(&mut self);
    /// The number; `None` when it does not arrive in time.
    fn receive(&mut self) -> Option<u64>;
}

#[derive(Debug)]
enum Command {
    /// The sender is dropped once this is planned, and has begun where its time has come.
    Begin(At, Option<At>, Sender<()>),
    End(Sender<io::Result<Window>>),
    Stop,
}

impl Watch {
    /// Begins to watch the trees of these supervisors. The numbers of a tree are those of all descendants of its root.
    ///
    /// # Errors
    /// When a root does not exist or may not be read, or no thread can be made.
    pub fn start(watched: Vec<Watched>) -> io::Result<Watch> {
        Watch::start_with_connections(watched.into(), Vec::new())
    }

    /// As [`Watch::start`], with counters of connections for some of the roles.
    ///
    /// # Errors
    /// As [`Watch::start`].
    pub fn start_with_connections(plan: Plan, counters: Vec<(Role, Box<dyn Connections>)>) -> io::Result<Watch> {
        let (commands, inbox) = channel();
        let mut sampler = Sampler::open(plan, counters)?;
        let thread = std::thread::Builder::new().name("weir-vitals".into()).spawn(move || sampler.serve(&inbox))?;
        Ok(Watch { commands, thread })
    }

    /// Plans a window: samples everything at `from`, then each second, and at `to`, if it is given. A `from` that has passed is
    /// now: then the window has begun when this returns, so that it has all that the caller does next. A window that was open is
    /// dropped.
    ///
    /// # Errors
    /// When the watching thread has ended. Whether the window can be sampled is told at its end.
    pub fn begin_window(&self, from: At, to: Option<At>) -> io::Result<()> {
        let (planned, begun) = channel();
        self.send(Command::Begin(from, to, planned))?;
        // Nothing is ever sent: the end of the sender is the response.
        let _ = begun.recv();
        Ok(())
    }

    /// Ends the window, now if it has not ended yet, and returns what was used in it.
    ///
    /// # Errors
    /// When no window has begun, a root had ended before it began, or a process that lives could not be read at some time in
    /// it. A root that ended meanwhile is no error: its tree keeps what it had used.
    pub fn end_window(&self) -> io::Result<Window> {
        let (sender, reply) = channel();
        self.send(Command::End(sender))?;
        reply.recv().map_err(|_| thread_gone())?
    }

    /// Stops watching, and returns what it cost.
    pub fn stop(self) -> Cost {
        // A thread that has ended needs no command.
        let _ = self.commands.send(Command::Stop);
        self.thread.join().unwrap_or_default()
    }

    fn send(&self, command: Command) -> io::Result<()> {
        self.commands.send(command).map_err(|_| thread_gone())
    }
}

fn thread_gone() -> io::Error {
    io::Error::other("the thread that watches has ended")
}

/// What the thread owns.
struct Sampler {
    watched: Vec<Watched>,
    trees: Vec<Source>,
    counters: Vec<(Role, Box<dyn Connections>)>,
    host: Host,
    outsiders: Outsiders,
    reader: Reader,
    samples: u64,
    state: State,
}

/// Where the window is.
enum State {
    /// There is none.
    Idle,
    /// It begins later.
    Planned { from: At, to: Option<At>, prepared: Option<Prepared> },
    /// It has begun.
    Open(OpenWindow),
    /// It has ended, and nobody has asked for it yet.
    Ended(io::Result<Window>),
}

/// What was read before a window, because it is expensive.
struct Prepared {
    /// The trees' proportional sets, and how many nanoseconds reading them took.
    pss: (Vec<Option<u64>>, u64),
    /// Who else held the product's connections.
    holders: Vec<Holder>,
    /// Groups that limit CPU time.
    quotas: Quotas,
}

/// A window that has begun.
struct OpenWindow {
    /// When it was to begin; the clock of its rows.
    from: At,
    to: Option<At>,
    moments: Vec<Moment>,
    /// How each CPU had spent its time at the begin.
    cpus: BTreeMap<u32, CpuTicks>,
    holders: Vec<Holder>,
    quotas: Quotas,
    own_cpu_us: u64,
    pss_due_ns: u64,
}

impl OpenWindow {
    /// By how much the first or the last sample came after its time, whichever was later.
    fn late_ns(&self, last_ns: u64) -> u64 {
        let first_ns = self.moments.first().map_or(0, |moment| moment.at_ns);
        let end = self.to.map_or(0, |to| last_ns.saturating_sub(to.mono_ns));
        first_ns.saturating_sub(self.from.mono_ns).max(end)
    }

    /// When the next sample is due. Rows are due at whole seconds after the begin, however late the last one came.
    fn due_ns(&self) -> u64 {
        let first = self.moments.first().map_or(0, |m| m.at_ns);
        let last = self.moments.last().map_or(0, |m| m.at_ns).saturating_sub(first);
        let row = first + ((last + ROW_SLACK_NS) / ROW_NS + 1) * ROW_NS;
        self.to.map_or(row, |to| row.min(to.mono_ns))
    }
}

impl Sampler {
    fn open(plan: Plan, counters: Vec<(Role, Box<dyn Connections>)>) -> io::Result<Sampler> {
        let Plan { trees: watched, elsewhere, served } = plan;
        // A twelfth of the descriptors this process may have, at three a thread and shared by the trees.
        let soft = limits(Resource::Nofile).0 / 12 / watched.len().max(1) as u64;
        let open_threads = usize::try_from(soft).unwrap_or(usize::MAX).min(OPEN_THREADS);
        let trees = watched.iter().map(|watched| Source::open(watched, open_threads)).collect::<io::Result<_>>()?;
        let (host, reader) = (Host::open(), Reader::new());
        let outsiders = Outsiders::open(&watched, elsewhere, served);
        Ok(Sampler { watched, trees, counters, host, outsiders, reader, samples: 0, state: State::Idle })
    }

    fn serve(&mut self, inbox: &Receiver<Command>) -> Cost {
        loop {
            // A dropped watch sends no more commands: that is a stop, too.
            match self.next_command(inbox) {
                Ok(Command::Begin(from, to, _planned)) => {
                    self.state = State::Planned { from, to, prepared: None };
                    self.begin_if_due();
                }
                Ok(Command::End(sender)) => {
                    // A window whose time has come begins before it ends, also where this thread had no CPU until now.
                    self.begin_if_due();
                    let _ = sender.send(self.end());
                }
                Err(RecvTimeoutError::Timeout) => self.advance(),
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Cost { cpu_us: own_cpu_us(), reads: self.reader.reads, samples: self.samples }
    }

    fn next_command(&self, inbox: &Receiver<Command>) -> Result<Command, RecvTimeoutError> {
        match self.due_ns() {
            Some(due) => inbox.recv_timeout(Duration::from_nanos(due.saturating_sub(mono_ns()))),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Prepares and begins the planned window, as far as its time has come.
    fn begin_if_due(&mut self) {
        while matches!(self.state, State::Planned { .. }) && self.due_ns() <= Some(mono_ns()) {
            self.advance();
        }
    }

    /// When something is to be done next.
    fn due_ns(&self) -> Option<u64> {
        match &self.state {
            State::Planned { from, prepared: None, .. } => Some(from.mono_ns.saturating_sub(PREPARES_NS)),
            State::Planned { from, .. } => Some(from.mono_ns),
            State::Open(open) => Some(open.due_ns()),
            State::Idle | State::Ended(_) => None,
        }
    }

    /// Does what is due.
    fn advance(&mut self) {
        let next = match std::mem::replace(&mut self.state, State::Idle) {
            State::Planned { from, to, prepared: None } => {
                self.prepare().map(|prepared| State::Planned { from, to, prepared: Some(prepared) })
            }
            State::Planned { from, to, prepared: Some(prepared) } => self.begin(from, to, prepared).map(State::Open),
            State::Open(open) if open.to.is_some_and(|to| mono_ns() + ROW_SLACK_NS >= to.mono_ns) => {
                Ok(State::Ended(self.finish(open)))
            }
            State::Open(open) => self.second(open).map(State::Open),
            done @ (State::Idle | State::Ended(_)) => Ok(done),
        };
        self.state = next.unwrap_or_else(|error| State::Ended(Err(error)));
    }

    /// The expensive reading, before the window begins.
    fn prepare(&mut self) -> io::Result<Prepared> {
        for tree in &self.trees {
            tree.check_root(&mut self.reader)?;
        }
        for tree in &mut self.trees {
            tree.sample(&mut self.reader)?;
        }
        let holders = self.outsiders.prepare(&self.trees, &mut self.reader);
        let quotas = Quotas::find(&self.watched, &self.trees);
        Ok(Prepared { pss: self.proportional(), holders, quotas })
    }

    fn begin(&mut self, from: At, to: Option<At>, prepared: Prepared) -> io::Result<OpenWindow> {
        let Prepared { pss: (pss, took_ns), holders, mut quotas } = prepared;
        quotas.begin();
        let cpus = self.host.cpus(&mut self.reader);
        let host = self.host.sample(&mut self.reader);
        let begun = self.trees.iter_mut().map(|tree| tree.begin(&mut self.reader));
        let mut trees = begun.collect::<io::Result<Vec<_>>>()?;
        for (tree, pss) in trees.iter_mut().zip(pss) {
            tree.pss_bytes = pss;
        }
        let others = self.outsiders.begin(&self.trees, &mut self.reader);
        self.samples += 1;
        let host = HostSample { processes: self.outsiders.processes(), ..host };
        let at_ns = mono_ns();
        let moment = Moment { at_ns, unix_ms: from.unix_ms_at(at_ns), trees, host, others };
        let pss_due_ns = next_pss(moment.at_ns, took_ns);
        Ok(OpenWindow { from, to, moments: vec![moment], cpus, holders, quotas, own_cpu_us: own_cpu_us(), pss_due_ns })
    }

    fn second(&mut self, mut open: OpenWindow) -> io::Result<OpenWindow> {
        let mut moment = self.sample(open.from)?;
        if moment.at_ns >= open.pss_due_ns {
            let (pss, took_ns) = self.proportional();
            set_pss(&mut moment, pss);
            open.pss_due_ns = next_pss(moment.at_ns, took_ns);
        }
        open.moments.push(moment);
        Ok(open)
    }

    fn end(&mut self) -> io::Result<Window> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Open(open) => self.finish(open),
            State::Ended(window) => window,
            State::Idle | State::Planned { .. } => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "no window is open"))
            }
        }
    }

    fn finish(&mut self, mut open: OpenWindow) -> io::Result<Window> {
        let mut moment = self.sample(open.from)?;
        let own_now = own_cpu_us();
        let late_s = open.late_ns(moment.at_ns) as f64 / 1e9;
        let cpus = self.host.cpus(&mut self.reader);
        let quotas = open.quotas.finish();
        // While the connections are still there.
        let holders = self.outsiders.finish(open.holders, &mut self.reader);
        // The expensive reading last: what it costs the processes is after the window.
        let (pss, _) = self.proportional();
        set_pss(&mut moment, pss);
        let last = moment.clone();
        open.moments.push(moment);
        let window = window(&self.watched, open.moments, own_now.saturating_sub(open.own_cpu_us));
        let (ticks, length_s) = ([&open.cpus, &cpus], window.length_s);
        let mut owners = self.outsiders.account(&self.watched, &self.trees, ticks, &last, holders, length_s);
        owners.iter_mut().for_each(|of| add_processes(of, &self.watched, &self.trees, &mut self.reader, length_s));
        if !quotas.is_empty() {
            owners.get_or_insert_default().quotas = quotas;
        }
        Ok(Window { owners: owners.into_iter().collect(), late_s, ..window })
    }

    fn sample(&mut self, from: At) -> io::Result<Moment> {
        self.samples += 1;
        for (_, connections) in &mut self.counters {
            connections.request();
        }
        let host = self.host.sample(&mut self.reader);
        let samples = self.trees.iter_mut().map(|tree| tree.sample(&mut self.reader));
        let trees = samples.collect::<io::Result<_>>()?;
        let others = self.outsiders.sample(&self.trees, &mut self.reader);
        let host = HostSample { processes: self.outsiders.processes(), ..host };
        let at_ns = mono_ns();
        let mut moment = Moment { at_ns, unix_ms: from.unix_ms_at(at_ns), trees, host, others };
        self.receive(&mut moment);
        Ok(moment)
    }

    /// Stores the number of connections at the time of [`Connections::request`].
    fn receive(&mut self, moment: &mut Moment) {
        for (role, connections) in &mut self.counters {
            let open = connections.receive();
            let trees = self.watched.iter().zip(&mut moment.trees);
            for (_, tree) in trees.filter(|(watched, _)| watched.role == *role) {
                tree.connections = open;
            }
        }
    }

    /// The trees' proportional sets, and how many nanoseconds reading them took.
    fn proportional(&mut self) -> (Vec<Option<u64>>, u64) {
        let begin = mono_ns();
        let all = self.trees.iter().map(|tree| tree.proportional_bytes(&mut self.reader)).collect();
        (all, mono_ns().saturating_sub(begin))
    }
}

/// A row that came this much early (a timer may) still counts as its second's.
const ROW_SLACK_NS: u64 = 10_000_000;

fn set_pss(moment: &mut Moment, pss: Vec<Option<u64>>) {
    for (tree, pss) in moment.trees.iter_mut().zip(pss) {
        tree.pss_bytes = pss;
    }
}

fn next_pss(now: u64, took_ns: u64) -> u64 {
    if took_ns > PSS_EXPENSIVE_NS { u64::MAX } else { now + PSS_EVERY_NS }
}

#[cfg(test)]
mod tests;
