//! The thread that samples process trees and the host each second, while a window is open. The lab starts one for each
//! trial.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Resource;
use rustix::time::{ClockId, clock_gettime};
use weir_model::record::Role;

use crate::file::Reader;
use crate::host::Host;
use crate::sys::limits;
use crate::tree::{Tree, Watched};
use crate::window::{Moment, Window, window};

/// Length of a row.
const ROW: Duration = Duration::from_secs(1);
/// Threads of one tree whose files stay open, at most.
const OPEN_THREADS: usize = 256;
/// Least time between two readings of the proportional set within a window.
const PSS_EVERY_NS: u64 = 5_000_000_000;
/// A reading of the proportional set that took longer is not repeated within the window.
const PSS_EXPENSIVE_NS: u64 = 5_000_000;

/// Watches process trees and the host from its own thread. Outside of a window it sleeps and reads nothing.
#[derive(Debug)]
pub struct Watch {
    commands: Sender<Command>,
    thread: JoinHandle<Cost>,
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
    Begin(Sender<io::Result<()>>),
    End(Sender<io::Result<Window>>),
    Stop,
}

impl Watch {
    /// Begins to watch the trees of these supervisors. The numbers of a tree are those of all descendants of its root.
    ///
    /// # Errors
    /// When a root does not exist or may not be read, or no thread can be made.
    pub fn start(watched: Vec<Watched>) -> io::Result<Watch> {
        Watch::start_with_connections(watched, Vec::new())
    }

    /// As [`Watch::start`], with counters of connections for some of the roles.
    ///
    /// # Errors
    /// As [`Watch::start`].
    pub fn start_with_connections(
        watched: Vec<Watched>,
        counters: Vec<(Role, Box<dyn Connections>)>,
    ) -> io::Result<Watch> {
        let (commands, inbox) = channel();
        let mut sampler = Sampler::open(watched, counters)?;
        let thread = std::thread::Builder::new().name("weir-vitals".into()).spawn(move || sampler.serve(&inbox))?;
        Ok(Watch { commands, thread })
    }

    /// Begins a window: samples everything now, and from now on each second. Returns when the first sample is done. A
    /// window that was open is dropped.
    ///
    /// # Errors
    /// When a root has ended, or a process that lives cannot be read.
    pub fn begin_window(&self) -> io::Result<()> {
        let (sender, reply) = channel();
        self.send(Command::Begin(sender))?;
        reply.recv().map_err(|_| thread_gone())?
    }

    /// Ends the window: samples everything now, and returns what was used in between.
    ///
    /// # Errors
    /// When no window is open, or a process that lives could not be read at some time in it. A root that ended
    /// meanwhile is no error: its tree keeps what it had used.
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
    trees: Vec<Tree>,
    counters: Vec<(Role, Box<dyn Connections>)>,
    host: Host,
    reader: Reader,
    samples: u64,
    open: Option<OpenWindow>,
}

/// A window that has begun.
struct OpenWindow {
    moments: Vec<Moment>,
    own_cpu_us: u64,
    pss_due_ns: u64,
    /// An error of an earlier second: the window is incomplete.
    error: Option<io::Error>,
}

impl Sampler {
    fn open(watched: Vec<Watched>, counters: Vec<(Role, Box<dyn Connections>)>) -> io::Result<Sampler> {
        // A twelfth of the descriptors this process may have, at three a thread and shared by the trees.
        let soft = limits(Resource::Nofile).0 / 12 / watched.len().max(1) as u64;
        let open_threads = usize::try_from(soft).unwrap_or(usize::MAX).min(OPEN_THREADS);
        let trees =
            watched.iter().map(|watched| Tree::open(watched.clone(), open_threads)).collect::<io::Result<_>>()?;
        Ok(Sampler { watched, trees, counters, host: Host::open(), reader: Reader::new(), samples: 0, open: None })
    }

    fn serve(&mut self, inbox: &Receiver<Command>) -> Cost {
        loop {
            // A dropped watch sends no more commands: that is a stop, too.
            match self.next_command(inbox) {
                Ok(Command::Begin(sender)) => {
                    let _ = sender.send(self.begin());
                }
                Ok(Command::End(sender)) => {
                    let _ = sender.send(self.end());
                }
                Err(RecvTimeoutError::Timeout) => self.second(),
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Cost { cpu_us: own_cpu_us(), reads: self.reader.reads, samples: self.samples }
    }

    fn next_command(&self, inbox: &Receiver<Command>) -> Result<Command, RecvTimeoutError> {
        match &self.open {
            Some(open) if open.error.is_none() => {
                // Rows are due at whole seconds after the begin, however late the last one came.
                let begin = open.moments.first().map_or(0, |m| m.at_ns);
                let passed = Duration::from_nanos(now_ns().saturating_sub(begin));
                let last = open.moments.last().map_or(0, |m| m.at_ns).saturating_sub(begin);
                let due = ROW * u32::try_from((last + ROW_SLACK_NS) / nanos(ROW) + 1).unwrap_or(u32::MAX);
                inbox.recv_timeout(due.saturating_sub(passed))
            }
            // Nothing is due.
            _ => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.open = None;
        for tree in &self.trees {
            tree.check_root(&mut self.reader)?;
        }
        // The expensive reading first, so that it is over when the window begins.
        for tree in &mut self.trees {
            tree.sample(&mut self.reader)?;
        }
        let (pss, took_ns) = self.proportional();
        let host = self.host.sample(&mut self.reader);
        let begun = self.trees.iter_mut().map(|tree| tree.begin(&mut self.reader));
        let mut trees = begun.collect::<io::Result<Vec<_>>>()?;
        for (tree, pss) in trees.iter_mut().zip(pss) {
            tree.pss_bytes = pss;
        }
        self.samples += 1;
        let moment = Moment { at_ns: now_ns(), unix_ms: unix_ms(), trees, host };
        let pss_due_ns = next_pss(moment.at_ns, took_ns);
        self.open = Some(OpenWindow { moments: vec![moment], own_cpu_us: own_cpu_us(), pss_due_ns, error: None });
        Ok(())
    }

    fn second(&mut self) {
        let sampled = self.sample();
        // Commands are served one after the other, so the window is still open.
        let Some(mut open) = self.open.take() else { return };
        match sampled {
            Ok(mut moment) => {
                if moment.at_ns >= open.pss_due_ns {
                    let (pss, took_ns) = self.proportional();
                    set_pss(&mut moment, pss);
                    open.pss_due_ns = next_pss(moment.at_ns, took_ns);
                }
                open.moments.push(moment);
            }
            Err(error) => open.error = Some(error),
        }
        self.open = Some(open);
    }

    fn end(&mut self) -> io::Result<Window> {
        let Some(mut open) = self.open.take() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no window is open"));
        };
        if let Some(error) = open.error {
            return Err(error);
        }
        let mut moment = self.sample()?;
        let own_now = own_cpu_us();
        // The expensive reading last: what it costs the processes is after the window.
        let (pss, _) = self.proportional();
        set_pss(&mut moment, pss);
        open.moments.push(moment);
        Ok(window(&self.watched, open.moments, own_now.saturating_sub(open.own_cpu_us)))
    }

    fn sample(&mut self) -> io::Result<Moment> {
        self.samples += 1;
        for (_, connections) in &mut self.counters {
            connections.request();
        }
        let host = self.host.sample(&mut self.reader);
        let samples = self.trees.iter_mut().map(|tree| tree.sample(&mut self.reader));
        let trees = samples.collect::<io::Result<_>>()?;
        let mut moment = Moment { at_ns: now_ns(), unix_ms: unix_ms(), trees, host };
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
        let begin = now_ns();
        let all = self.trees.iter().map(|tree| tree.proportional_bytes(&mut self.reader)).collect();
        (all, now_ns().saturating_sub(begin))
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

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

fn own_cpu_us() -> u64 {
    clock_ns(ClockId::ThreadCPUTime) / 1000
}

fn clock_ns(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
