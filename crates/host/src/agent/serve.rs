//! The agent's side of a connection: it carries out requests with the host that it is given, and tells what happens there.
//!
//! Each request has a thread of its own, so that none waits for another, and so that the thread that reads is always ready for
//! a heartbeat. It does not know how the host was opened, nor what a run is: [`super::process`] does.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use weir_vitals::clock::now;

use super::VERSION;
use super::channel::{Inbox, Outbox, SignsOfLife};
use super::frame::FrameError;
use super::message::{Handle, Hello, Refusal, Request, ToAgent, ToWeir};
use super::watchdog::{Ears, Watchdog};
use crate::host::{Host, Process, ReceiveError, RoleProcess, Sampler};
use crate::lock::locked;
use crate::role::ClientReport;
use crate::threads::at_once;

/// How long a connection may be silent before it has begun: logins and copies take time.
pub(super) const GREETING: Duration = Duration::from_secs(60);

/// How long the report of a program's end may take when its supervisor has ended.
const REPORTED_WITHIN: Duration = Duration::from_secs(5);

/// How long a role's line is waited for at a time.
const LINE_WITHIN: Duration = Duration::from_secs(60);

/// A host that is open to a run.
pub struct Opened {
    /// What carries out the requests.
    pub host: Arc<dyn Host>,
    /// Dropped when everything on the host has ended.
    pub kept: Box<dyn Any>,
}

/// How a connection ended.
#[derive(Debug)]
pub enum End {
    /// weir said so, and everything has ended.
    Goodbye,
    /// The host was not opened: why.
    Refused,
    /// The connection broke. Everything has ended.
    Lost(FrameError),
}

/// What is done about silence: it gets the process groups of the roles that run.
pub type OnSilence = dyn Fn(&[u32]) + Send + Sync;

/// Serves one connection to its end. `open` opens the host or says why not; `on_silence` is called in a thread of its own when
/// nothing was heard for `silence`.
///
/// # Errors
/// When no thread can be made.
pub fn serve(
    input: impl Read,
    output: impl Write + Send + 'static,
    open: impl FnOnce(&Hello) -> Result<Opened, String>,
    silence: Duration,
    on_silence: Arc<OnSilence>,
) -> std::io::Result<End> {
    let (ears, groups, held) = (Ears::new(), Groups::default(), Held::default());
    let watchdog = |limit| {
        let (groups, on_silence) = (Arc::clone(&groups), Arc::clone(&on_silence));
        Watchdog::start(&ears, limit, move || on_silence(&locked(&groups).iter().copied().collect::<Vec<_>>()))
    };
    let greeting = watchdog(GREETING)?;
    let mut inbox = Inbox::new(SignsOfLife { input, ears: ears.clone() });
    let hello = match inbox.receive() {
        Ok((ToAgent::Hello(hello), _)) => hello,
        Ok(_) => return Ok(End::Lost(FrameError::Broken(std::io::Error::other("it does not begin with a hello")))),
        Err(error) => return Ok(End::Lost(error)),
    };
    let opened = match hello.version == VERSION {
        true => open(&hello),
        false => Err(format!(
            "of weir {VERSION}, and this is weir {}\n  expected: the same version there, as its image or by --weir FILE",
            hello.version
        )),
    };
    ears.hear();
    let _watchdog = watchdog(silence)?;
    drop(greeting);
    let own_held = Arc::clone(&held);
    let beat = move || ToWeir::Beat(std::mem::take(&mut *locked(&own_held)));
    let (out, writer) = Outbox::start(output, beat)?;
    let end = match opened {
        Err(why) => {
            out.send(ToWeir::Refused(why));
            End::Refused
        }
        Ok(Opened { host, kept }) => {
            out.send(ToWeir::Welcome(Box::new(host.facts().clone())));
            let agent = Arc::new(Agent::new(host, out.clone(), held, groups));
            let end = agent.converse(&mut inbox);
            agent.end_all();
            drop(kept);
            out.send(ToWeir::Gone);
            end
        }
    };
    out.close();
    // A full pipe that nobody reads ends by the watchdog.
    let _ = writer.join();
    Ok(end)
}

type Groups = Arc<Mutex<BTreeSet<u32>>>;
type Held = Arc<Mutex<Vec<(Handle, String)>>>;

/// What a request brings: a value, and raw bytes behind it.
type Outcome = Result<(Value, Vec<u8>), Refusal>;

/// `None` once it was taken out to be ended.
type Slot<T> = Arc<Mutex<Option<T>>>;

struct Agent {
    host: Arc<dyn Host>,
    out: Outbox<ToWeir>,
    /// Lines that wait for a heartbeat.
    held: Held,
    /// Roles that run, by the process group that each of them leads.
    groups: Groups,
    processes: Mutex<BTreeMap<u32, Slot<Box<dyn Process>>>>,
    roles: Mutex<BTreeMap<u32, Arc<dyn RoleProcess>>>,
    samplers: Mutex<BTreeMap<u32, Slot<Box<dyn Sampler>>>>,
    /// Files of which not all parts have come.
    written: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Agent {
    fn new(host: Arc<dyn Host>, out: Outbox<ToWeir>, held: Held, groups: Groups) -> Agent {
        let (processes, roles, samplers, written) = Default::default();
        Agent { host, out, held, groups, processes, roles, samplers, written }
    }

    /// Reads requests until the connection ends.
    fn converse(self: &Arc<Agent>, inbox: &mut Inbox<impl Read>) -> End {
        loop {
            match inbox.receive() {
                // At once: what it takes is counted as the error of the reading.
                Ok((ToAgent::Request(id, Request::Clock), _)) => {
                    self.reply(id, done(self.host.at(now()).mono_ns));
                }
                Ok((ToAgent::Request(id, what), bytes)) => {
                    let agent = Arc::clone(self);
                    let carry_out = move || agent.reply(id, agent.carry_out(id, what, bytes));
                    let thread = std::thread::Builder::new().name("weir-request".into()).spawn(carry_out);
                    if let Err(error) = thread {
                        self.reply(id, Err(error.into()));
                    }
                }
                Ok((ToAgent::Beat | ToAgent::Hello(_), _)) => {}
                Ok((ToAgent::Bye, _)) => return End::Goodbye,
                Err(error) => return End::Lost(error),
            }
        }
    }

    fn reply(&self, id: u64, outcome: Outcome) {
        match outcome {
            Ok((value, bytes)) => self.out.send_with(ToWeir::Reply(id, Ok(value)), bytes),
            Err(refusal) => self.out.send(ToWeir::Reply(id, Err(refusal))),
        }
    }

    fn carry_out(self: &Arc<Agent>, id: u64, what: Request, bytes: Vec<u8>) -> Outcome {
        let host = &self.host;
        match what {
            Request::Clock => done(host.at(now()).mono_ns),
            Request::Speeds(cpus) => done(host.speeds(&cpus)?),
            Request::Start(process, spec) => self.start(process, &spec),
            Request::Signal(process, signal) => done(self.process(process, |it| it.signal(signal))??),
            Request::Disturb(process, what, at) => done(self.process(process, |it| it.disturb(what, at))??),
            Request::Disturbed(process) => done(self.process(process, |it| it.disturbed())?),
            Request::Stop(process, grace) => {
                let it = self.take_process(process).ok_or_else(|| unknown("program", process))?;
                done(it.stop(grace))
            }
            Request::Drop(process) => {
                drop(self.take_process(process));
                done(())
            }
            Request::StartRole(role, spec) => {
                let it = host.start_role(&spec)?;
                locked(&self.roles).insert(role, Arc::clone(&it));
                locked(&self.groups).insert(it.pid());
                let pid = it.pid();
                self.spawn(move |agent| agent.pass_lines(role, &*it, spec.hold))?;
                done(pid)
            }
            Request::Send(role, line) => done(self.role(role)?.send(&line)?),
            Request::Ask(role, line, within) => done(self.role(role)?.ask(&line, within)?),
            Request::EndRole(role) => {
                let it = self.role(role)?;
                it.end();
                locked(&self.roles).remove(&role);
                done(())
            }
            Request::Watch(sampler, plan, counted) => {
                let it = host.watch(plan, counted)?;
                locked(&self.samplers).insert(sampler, Arc::new(Mutex::new(Some(it))));
                done(())
            }
            Request::Begin(sampler, from, to) => done(self.sampler(sampler, |it| it.begin_window(from, to))??),
            Request::End(sampler) => done(self.sampler(sampler, |it| it.end_window())??),
            Request::StopWatch(sampler) => {
                let slot = locked(&self.samplers).remove(&sampler);
                if let Some(it) = slot.and_then(|slot| locked(&slot).take()) {
                    it.stop();
                }
                done(())
            }
            Request::Descendants(root) => done(host.descendants(root)),
            Request::OwnsListener(root, addr) => done(host.owns_listener(root, addr)?),
            Request::Accepts(addr, within) => done(host.accepts(addr, within)),
            Request::FreePorts(at, count) => done(host.free_ports(at, count)?),
            Request::CreateDir(path) => done(host.create_dir(&path)?),
            Request::Write { path, private, last } => {
                let mut whole = locked(&self.written).remove(&path).unwrap_or_default();
                whole.extend(bytes);
                if last {
                    return done(host.write(&path, &whole, private)?);
                }
                locked(&self.written).insert(path, whole);
                done(())
            }
            Request::Read(path, from) => Ok((Value::Null, host.read_part(&path, from, super::message::PART)?)),
            Request::List(path) => done(host.list(&path)?),
            Request::Remove(path) => {
                host.remove(&path);
                done(())
            }
            Request::LastLines(path, lines) => done(host.last_lines(&path, lines)),
            Request::Call(name, argument) => {
                let mut progress = |value| self.out.send(ToWeir::Progress(id, value));
                Ok((host.call(&name, argument, &mut progress)?, Vec::new()))
            }
        }
    }

    fn start(self: &Arc<Agent>, process: u32, spec: &crate::ProgramSpec) -> Outcome {
        let it = self.host.start(spec)?;
        let root = it.root();
        let until_ended = it.until_ended()?;
        let slot = Arc::new(Mutex::new(Some(it)));
        locked(&self.processes).insert(process, Arc::clone(&slot));
        self.spawn(move |agent| {
            until_ended();
            // It may have been taken out to be ended.
            let ended = locked(&slot).as_mut().and_then(|it| it.wait(REPORTED_WITHIN));
            if let Some(ended) = ended {
                agent.out.send(ToWeir::ProgramEnded(process, ended));
            }
        })?;
        done(root)
    }

    /// Passes on what a role says, until it ends.
    fn pass_lines(&self, role: u32, it: &dyn RoleProcess, hold: bool) {
        let mut holding = false;
        loop {
            match it.receive(LINE_WITHIN) {
                Ok(line) => {
                    holding = hold && holds(&line, holding);
                    if holding {
                        locked(&self.held).push((role, line));
                    } else {
                        self.let_go(role);
                        self.out.send(ToWeir::Line(role, line));
                    }
                }
                Err(ReceiveError::Timeout) => {}
                Err(ReceiveError::Ended) => break,
            }
        }
        locked(&self.groups).remove(&it.pid());
        self.let_go(role);
        self.out.send(ToWeir::RoleEnded(role));
    }

    /// Sends the lines of a role that wait for a heartbeat, before what follows them.
    fn let_go(&self, role: u32) {
        let mut held = locked(&self.held);
        for (role, line) in held.extract_if(.., |(of, _)| *of == role) {
            self.out.send(ToWeir::Line(role, line));
        }
    }

    fn spawn(self: &Arc<Agent>, work: impl FnOnce(&Agent) + Send + 'static) -> std::io::Result<()> {
        let agent = Arc::clone(self);
        std::thread::Builder::new().name("weir-agent".into()).spawn(move || work(&agent)).map(drop)
    }

    fn role(&self, role: u32) -> Result<Arc<dyn RoleProcess>, Refusal> {
        locked(&self.roles).get(&role).cloned().ok_or_else(|| unknown("role", role))
    }

    fn process<T>(&self, process: u32, act: impl FnOnce(&mut dyn Process) -> T) -> Result<T, Refusal> {
        let slot = locked(&self.processes).get(&process).cloned();
        let slot = slot.ok_or_else(|| unknown("program", process))?;
        let mut it = locked(&slot);
        Ok(act(&mut **it.as_mut().ok_or_else(|| unknown("program", process))?))
    }

    fn take_process(&self, process: u32) -> Option<Box<dyn Process>> {
        let slot = locked(&self.processes).remove(&process)?;
        locked(&slot).take()
    }

    fn sampler<T>(&self, sampler: u32, act: impl FnOnce(&dyn Sampler) -> T) -> Result<T, Refusal> {
        let slot = locked(&self.samplers).get(&sampler).cloned();
        let slot = slot.ok_or_else(|| unknown("sampler", sampler))?;
        let it = locked(&slot);
        Ok(act(&**it.as_ref().ok_or_else(|| unknown("sampler", sampler))?))
    }

    /// Ends everything that was started, all at once, because each may take seconds.
    fn end_all(&self) {
        type End = Box<dyn Fn() + Sync>;
        let processes = std::mem::take(&mut *locked(&self.processes)).into_values();
        let roles = std::mem::take(&mut *locked(&self.roles)).into_values();
        locked(&self.samplers).clear();
        let processes = processes.map(|slot| -> End { Box::new(move || drop(locked(&slot).take())) });
        let ends: Vec<End> = processes.chain(roles.map(|role| -> End { Box::new(move || role.end()) })).collect();
        at_once(&ends, |end| end());
    }
}

/// Whether a client's line is to wait for a heartbeat, and those behind it: from the start of its window until its end.
fn holds(line: &str, holding: bool) -> bool {
    match serde_json::from_str(line) {
        Ok(ClientReport::WindowStart { .. }) => true,
        Ok(ClientReport::Second(_)) => holding,
        // Also where the window was never ended: what comes now has been waited for.
        _ => false,
    }
}

fn unknown(what: &str, number: u32) -> Refusal {
    Refusal::Failed(format!("there is no {what} {number}"))
}

fn done(value: impl Serialize) -> Outcome {
    let value = serde_json::to_value(value).map_err(|error| Refusal::Failed(error.to_string()))?;
    Ok((value, Vec::new()))
}
