//! The thread that watches.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Resource;
use rustix::time::{ClockId, clock_gettime};
use weir_model::record::Role;

use crate::host::Host;
use crate::kept::Reader;
use crate::sys::limits;
use crate::tree::{Tree, Watched};
use crate::window::{Moment, Window, window};

/// Length of a row.
const ROW: Duration = Duration::from_secs(1);
/// Threads of one tree whose files stay open, at most.
const KEPT_THREADS: usize = 256;
/// Least time between two readings of the proportional set within a window.
const PSS_EVERY_NS: u64 = 5_000_000_000;
/// A reading of the proportional set that took longer is not repeated within the window.
const PSS_DEAR_NS: u64 = 5_000_000;

/// Watches process trees and the host from its own thread. Outside of a window it sleeps and reads nothing.
#[derive(Debug)]
pub struct Watch {
    orders: Sender<Order>,
    thread: JoinHandle<Cost>,
}

/// What watching cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of the watching thread over its life, us.
    pub cpu_us: u64,
    /// Files read and directories listed.
    pub reads: u64,
    /// Times that everything was looked at.
    pub looks: u64,
}

/// Somebody who knows how many connections a role has open. The kernel does not know it at a reasonable price: it lists
/// sockets by host, and which process has which only by looking at every descriptor.
///
/// Asked when a row ends, before everything else is looked at, and heard after that: so the answer is of the moment at which
/// the row ends, and nothing waits for it that is being measured.
pub trait Connections: Send {
    /// Asks, and does not wait.
    fn ask(&mut self);
    /// The answer; `None` when none comes in time.
    fn hear(&mut self) -> Option<u64>;
}

#[derive(Debug)]
enum Order {
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
        Watch::start_asking(watched, Vec::new())
    }

    /// [`Watch::start`], with somebody to ask for the connections of some of the roles.
    ///
    /// # Errors
    /// As [`Watch::start`].
    pub fn start_asking(watched: Vec<Watched>, asked: Vec<(Role, Box<dyn Connections>)>) -> io::Result<Watch> {
        let (orders, inbox) = channel();
        let mut sampler = Sampler::open(watched, asked)?;
        let thread = std::thread::Builder::new().name("weir-vitals".into()).spawn(move || sampler.serve(&inbox))?;
        Ok(Watch { orders, thread })
    }

    /// Begins a window: looks at everything now, and from now on each second. Returns when the look is done. A window
    /// that was open is dropped.
    ///
    /// # Errors
    /// When a root has ended, or a process that lives cannot be read.
    pub fn begin_window(&self) -> io::Result<()> {
        let (answer, answered) = channel();
        self.order(Order::Begin(answer))?;
        answered.recv().map_err(|_| thread_gone())?
    }

    /// Ends the window: looks at everything now, and says what was used in between.
    ///
    /// # Errors
    /// When no window is open, or a process that lives could not be read at some time in it. A root that ended meanwhile is no error: its tree keeps what it had used.
    pub fn end_window(&self) -> io::Result<Window> {
        let (answer, answered) = channel();
        self.order(Order::End(answer))?;
        answered.recv().map_err(|_| thread_gone())?
    }

    /// Stops watching, and says what it cost.
    pub fn stop(self) -> Cost {
        // When the thread is gone already there is nobody to tell.
        let _ = self.orders.send(Order::Stop);
        self.thread.join().unwrap_or_default()
    }

    fn order(&self, order: Order) -> io::Result<()> {
        self.orders.send(order).map_err(|_| thread_gone())
    }
}

fn thread_gone() -> io::Error {
    io::Error::other("the thread that watches has ended")
}

/// What the thread owns.
struct Sampler {
    watched: Vec<Watched>,
    trees: Vec<Tree>,
    asked: Vec<(Role, Box<dyn Connections>)>,
    host: Host,
    reader: Reader,
    looks: u64,
    open: Option<Open>,
}

/// A window that has begun.
struct Open {
    moments: Vec<Moment>,
    own_cpu_us: u64,
    pss_due_ns: u64,
    /// What went wrong at a second: the window is not whole.
    trouble: Option<io::Error>,
}

impl Sampler {
    fn open(watched: Vec<Watched>, asked: Vec<(Role, Box<dyn Connections>)>) -> io::Result<Sampler> {
        // A twelfth of the descriptors this process may have, at three a thread and shared by the trees.
        let soft = limits(Resource::Nofile).0 / 12 / watched.len().max(1) as u64;
        let keep = usize::try_from(soft).unwrap_or(usize::MAX).min(KEPT_THREADS);
        let trees = watched.iter().map(|&watched| Tree::open(watched, keep)).collect::<io::Result<_>>()?;
        Ok(Sampler { watched, trees, asked, host: Host::open(), reader: Reader::new(), looks: 0, open: None })
    }

    fn serve(&mut self, inbox: &Receiver<Order>) -> Cost {
        loop {
            // Nobody can order anything any more when the watch was dropped: that is a stop, too.
            match self.next_order(inbox) {
                Ok(Order::Begin(answer)) => {
                    let _ = answer.send(self.begin());
                }
                Ok(Order::End(answer)) => {
                    let _ = answer.send(self.end());
                }
                Err(RecvTimeoutError::Timeout) => self.second(),
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Cost { cpu_us: own_cpu_us(), reads: self.reader.reads, looks: self.looks }
    }

    fn next_order(&self, inbox: &Receiver<Order>) -> Result<Order, RecvTimeoutError> {
        match &self.open {
            Some(open) if open.trouble.is_none() => {
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
        // The dear reading first, so that it is over when the window begins.
        for tree in &mut self.trees {
            tree.look(&mut self.reader)?;
        }
        let (pss, took_ns) = self.proportional();
        let host = self.host.look(&mut self.reader);
        let begun = self.trees.iter_mut().map(|tree| tree.begin(&mut self.reader));
        let mut trees = begun.collect::<io::Result<Vec<_>>>()?;
        for (tree, pss) in trees.iter_mut().zip(pss) {
            tree.pss_bytes = pss;
        }
        self.looks += 1;
        let moment = Moment { at_ns: now_ns(), unix_ms: unix_ms(), trees, host };
        let pss_due_ns = next_pss(moment.at_ns, took_ns);
        self.open = Some(Open { moments: vec![moment], own_cpu_us: own_cpu_us(), pss_due_ns, trouble: None });
        Ok(())
    }

    fn second(&mut self) {
        let looked = self.look();
        // Orders are served one after the other, so the window is still open.
        let Some(mut open) = self.open.take() else { return };
        match looked {
            Ok(mut moment) => {
                if moment.at_ns >= open.pss_due_ns {
                    let (pss, took_ns) = self.proportional();
                    set_pss(&mut moment, pss);
                    open.pss_due_ns = next_pss(moment.at_ns, took_ns);
                }
                open.moments.push(moment);
            }
            Err(error) => open.trouble = Some(error),
        }
        self.open = Some(open);
    }

    fn end(&mut self) -> io::Result<Window> {
        let Some(mut open) = self.open.take() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no window is open"));
        };
        if let Some(error) = open.trouble {
            return Err(error);
        }
        let mut moment = self.look()?;
        let own_now = own_cpu_us();
        // The dear reading last: what it costs the processes is after the window.
        let (pss, _) = self.proportional();
        set_pss(&mut moment, pss);
        open.moments.push(moment);
        Ok(window(&self.watched, open.moments, own_now.saturating_sub(open.own_cpu_us)))
    }

    fn look(&mut self) -> io::Result<Moment> {
        self.looks += 1;
        for (_, connections) in &mut self.asked {
            connections.ask();
        }
        let host = self.host.look(&mut self.reader);
        let looks = self.trees.iter_mut().map(|tree| tree.look(&mut self.reader));
        let trees = looks.collect::<io::Result<_>>()?;
        let mut moment = Moment { at_ns: now_ns(), unix_ms: unix_ms(), trees, host };
        self.hear(&mut moment);
        Ok(moment)
    }

    /// Puts down how many connections there were when [`Connections::ask`] was called.
    fn hear(&mut self, moment: &mut Moment) {
        for (role, connections) in &mut self.asked {
            let open = connections.hear();
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
    if took_ns > PSS_DEAR_NS { u64::MAX } else { now + PSS_EVERY_NS }
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
