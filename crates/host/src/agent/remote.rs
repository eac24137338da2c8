//! weir's side of a connection: a host at the other end of a transport. Every method is one request; what a program or role
//! does by itself arrives as it happens, so that asking for it costs no traffic. Nothing but heartbeats is sent unless somebody
//! calls a method.
//!
//! When the connection is lost, everything on the host counts as ended, because its agent ends it.

use std::collections::HashMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_model::At;
use weir_model::clock::ClockReading;
use weir_model::product::Signal;
use weir_model::record::Role;
use weir_model::speed::CpuSpeed;
use weir_vitals::clock::mono_ns;
use weir_vitals::{Plan, Window};

use super::channel::{Inbox, Outbox, SignsOfLife};
use super::clock;
use super::message::{Hello, PART, Refusal, Request, ToAgent, ToWeir};
use super::serve::GREETING;
use super::watchdog::{Ears, Watchdog};
use crate::files::FileError;
use crate::host::{
    Disturbance, Ended, Host, HostError, HostFacts, Process, ProgramSpec, ReceiveError, RoleProcess, RoleSpec, Sampler,
};
use crate::lock::locked;
use crate::ports::NoPort;
use crate::role::RoleError;
use crate::supervisor::StartError;

/// How long an agent may take to end everything when it is asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// A host at the other end of a connection. Dropping it ends everything there.
pub struct RemoteHost {
    line: Arc<Line>,
    facts: HostFacts,
    clock: Mutex<ClockReading>,
    _watchdog: Watchdog,
}

impl fmt::Debug for RemoteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteHost").field("name", &self.line.name).field("lost", &self.lost()).finish_non_exhaustive()
    }
}

/// What carries the bytes, such as a process of ssh.
pub trait Carrier: Send + Sync {
    /// Ends it, which ends the streams. Returns what is known about why it ended: its exit status and its last words.
    fn end(&self) -> String;
}

/// The connection, shared with what runs on the host.
struct Line {
    name: String,
    /// Put behind errors of the host: ` (on host m1)`.
    place: String,
    out: Outbox<ToAgent>,
    /// For requests, programs, roles and samplers.
    last: AtomicU32,
    state: Mutex<State>,
    changed: Condvar,
    carrier: Box<dyn Carrier>,
}

#[derive(Default)]
struct State {
    /// Somebody is finding out why it was lost.
    losing: bool,
    lost: Option<String>,
    /// The agent has ended everything, as it was asked to.
    gone: bool,
    replies: HashMap<u64, Sender<Response>>,
    /// Where the lines of roles that run go.
    roles: HashMap<u32, Sender<String>>,
    /// Programs that were started, and how those ended that have.
    processes: HashMap<u32, Option<Ended>>,
}

enum Response {
    Progress(Value),
    Reply(Result<Value, Refusal>, Vec<u8>),
}

/// Why a request has no result.
enum Failure {
    Refused(Refusal),
    Lost(String),
}

impl RemoteHost {
    /// Greets an agent at the other end of two streams. The connection counts as lost after `silence`.
    ///
    /// # Errors
    /// When the agent refuses, or the connection is lost before it welcomes.
    pub fn greet(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        hello: Hello,
        silence: Duration,
        carrier: Box<dyn Carrier>,
    ) -> Result<RemoteHost, HostError> {
        let failed = |error: std::io::Error| HostError::Failed(error.to_string());
        let ears = Ears::new();
        let (out, _) = Outbox::start(output, || ToAgent::Beat).map_err(failed)?;
        let place = if hello.own_disk { format!(" (on host {})", hello.name) } else { String::new() };
        let (last, state, changed) = Default::default();
        let line = Arc::new(Line { name: hello.name.clone(), place, out, last, state, changed, carrier });
        let watchdog = |limit: Duration| {
            let line = Arc::downgrade(&line);
            let silent = move || {
                let silent = || format!("nothing was heard of it for {} s", limit.as_secs());
                line.upgrade().inspect(|line| line.lose(&silent()));
            };
            Watchdog::start(&ears, limit, silent)
        };
        let greeting = watchdog(GREETING).map_err(failed)?;
        line.out.send(ToAgent::Hello(hello));
        let (sender, welcomed) = channel();
        let inbox = Inbox::new(SignsOfLife { input, ears: ears.clone() });
        let own = Arc::clone(&line);
        let read = move || own.read(inbox, &sender);
        std::thread::Builder::new().name("weir-frames-in".into()).spawn(read).map_err(failed)?;
        let welcome = welcomed.recv();
        drop(greeting);
        let facts = match welcome {
            Ok(Ok(facts)) => *facts,
            Ok(Err(why)) => {
                line.out.close();
                line.carrier.end();
                return Err(HostError::Failed(format!("the host {} is {why}", line.name)));
            }
            Err(_) => return Err(line.lost_error()),
        };
        let host = RemoteHost { _watchdog: watchdog(silence).map_err(failed)?, line, facts, clock: Mutex::default() };
        host.read_clock()?;
        Ok(host)
    }

    fn file<T: DeserializeOwned>(&self, path: &Path, what: Request, bytes: Vec<u8>) -> Result<(T, Vec<u8>), FileError> {
        let failed = |failure: Failure| FileError::at(path)(failure.into_io(&self.line));
        self.line.request_with(what, bytes, &mut |_| {}).map_err(failed)
    }
}

impl Drop for RemoteHost {
    fn drop(&mut self) {
        self.line.out.send(ToAgent::Bye);
        let deadline = Instant::now() + ENDS_WITHIN;
        self.line.wait_until(deadline, |state| (state.gone || state.losing).then_some(()));
        self.line.out.close();
        self.line.lose("weir has let go of it");
        // Whoever was first at that may not have ended the carrier yet.
        self.line.wait_until(Instant::now() + ENDS_WITHIN, |state| state.lost.as_ref().map(drop));
    }
}

impl Line {
    /// Handles what comes, until nothing more does.
    fn read(&self, mut inbox: Inbox<impl Read>, welcomed: &Sender<Result<Box<HostFacts>, String>>) {
        loop {
            match inbox.receive() {
                Ok((ToWeir::Welcome(facts), _)) => drop(welcomed.send(Ok(facts))),
                Ok((ToWeir::Refused(why), _)) => {
                    // Its end is no loss.
                    locked(&self.state).losing = true;
                    return drop(welcomed.send(Err(why)));
                }
                Ok((message, bytes)) => self.handle(message, bytes),
                Err(error) => return self.lose(&error.to_string()),
            }
        }
    }

    fn handle(&self, message: ToWeir, bytes: Vec<u8>) {
        let state = &mut *locked(&self.state);
        match message {
            ToWeir::Reply(id, result) => {
                if let Some(waits) = state.replies.remove(&id) {
                    let _ = waits.send(Response::Reply(result, bytes));
                }
            }
            ToWeir::Progress(id, value) => {
                if let Some(waits) = state.replies.get(&id) {
                    let _ = waits.send(Response::Progress(value));
                }
            }
            ToWeir::Line(role, line) => state.line(role, line),
            ToWeir::Beat(held) => held.into_iter().for_each(|(role, line)| state.line(role, line)),
            ToWeir::RoleEnded(role) => drop(state.roles.remove(&role)),
            ToWeir::ProgramEnded(process, ended) => {
                // One that was let go of meanwhile is not looked for any more.
                if let Some(known) = state.processes.get_mut(&process) {
                    *known = Some(ended);
                }
            }
            ToWeir::Gone => state.gone = true,
            ToWeir::Welcome(_) | ToWeir::Refused(_) => {}
        }
        self.changed.notify_all();
    }

    /// Nothing will come any more: everybody who waits is told.
    fn lose(&self, why: &str) {
        if std::mem::replace(&mut locked(&self.state).losing, true) {
            return;
        }
        let why = format!("{why}{}", self.carrier.end());
        let state = &mut *locked(&self.state);
        state.lost = Some(why);
        state.replies.clear();
        state.roles.clear();
        self.changed.notify_all();
    }

    /// Waits until `found` finds something, or the time is over.
    fn wait_until<T>(&self, deadline: Instant, mut found: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let mut state = locked(&self.state);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match found(&state) {
                None if !left.is_zero() => {
                    state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                found => return found,
            }
        }
    }

    fn number(&self) -> u32 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }

    fn request<T: DeserializeOwned>(&self, what: Request) -> Result<T, Failure> {
        self.request_with(what, Vec::new(), &mut |_| {}).map(|(value, _)| value)
    }

    /// Sends a request and waits for its reply: a value and raw bytes.
    fn request_with<T: DeserializeOwned>(
        &self,
        what: Request,
        bytes: Vec<u8>,
        progress: &mut dyn FnMut(Value),
    ) -> Result<(T, Vec<u8>), Failure> {
        let id = u64::from(self.number());
        let (sender, responses) = channel();
        {
            let mut state = locked(&self.state);
            if let Some(why) = &state.lost {
                return Err(Failure::Lost(why.clone()));
            }
            state.replies.insert(id, sender);
        }
        self.out.send_with(ToAgent::Request(id, what), bytes);
        loop {
            match responses.recv() {
                Ok(Response::Progress(value)) => progress(value),
                Ok(Response::Reply(Ok(value), bytes)) => {
                    let other =
                        |error| Failure::Refused(Refusal::Failed(format!("its response is not understood: {error}")));
                    return Ok((serde_json::from_value(value).map_err(other)?, bytes));
                }
                Ok(Response::Reply(Err(refusal), _)) => return Err(Failure::Refused(refusal)),
                Err(_) => return Err(Failure::Lost(locked(&self.state).lost.clone().unwrap_or_default())),
            }
        }
    }

    fn lost_error(&self) -> HostError {
        // Whoever is finding out does not take long.
        let why = self.wait_until(Instant::now() + ENDS_WITHIN, |state| state.lost.clone());
        HostError::Lost { host: self.name.clone(), why: why.unwrap_or_default() }
    }
}

impl State {
    fn line(&self, role: u32, line: String) {
        if let Some(lines) = self.roles.get(&role) {
            let _ = lines.send(line);
        }
    }
}

impl Failure {
    fn into_io(self, line: &Line) -> std::io::Error {
        match self {
            Failure::Refused(refusal) => refusal.into_io(&line.place),
            Failure::Lost(why) => std::io::Error::other(HostError::Lost { host: line.name.clone(), why }),
        }
    }

    fn into_host_error(self, line: &Line) -> HostError {
        match self {
            Failure::Refused(refusal) => HostError::Failed(refusal.into_io(&line.place).to_string()),
            Failure::Lost(why) => HostError::Lost { host: line.name.clone(), why },
        }
    }
}

impl Host for RemoteHost {
    fn facts(&self) -> &HostFacts {
        &self.facts
    }

    fn lost(&self) -> Option<String> {
        locked(&self.line.state).lost.clone()
    }

    fn at(&self, here: At) -> At {
        At { mono_ns: here.mono_ns.saturating_add_signed(locked(&self.clock).offset_ns), ..here }
    }

    fn read_clock(&self) -> Result<ClockReading, HostError> {
        let read = clock::read(mono_ns, || self.line.request(Request::Clock));
        let read = read.map_err(|failure| failure.into_host_error(&self.line))?;
        *locked(&self.clock) = read;
        Ok(read)
    }

    fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Process>, StartError> {
        let number = self.line.number();
        locked(&self.line.state).processes.insert(number, None);
        let started = self.line.request(Request::Start(number, spec.clone()));
        if started.is_err() {
            locked(&self.line.state).processes.remove(&number);
        }
        match started {
            Ok(root) => Ok(Box::new(RemoteProcess { line: Arc::clone(&self.line), number, root, taken: false })),
            Err(Failure::Refused(Refusal::Program(program, why))) => {
                Err(StartError::Program { program, why: format!("{why}{}", self.line.place) })
            }
            Err(failure) => Err(StartError::Supervisor(failure.into_io(&self.line))),
        }
    }

    fn start_role(&self, spec: &RoleSpec) -> Result<Arc<dyn RoleProcess>, RoleError> {
        let number = self.line.number();
        let (sender, lines) = channel();
        locked(&self.line.state).roles.insert(number, sender);
        let started = self.line.request(Request::StartRole(number, spec.clone()));
        let error = |failure: Failure| {
            locked(&self.line.state).roles.remove(&number);
            RoleError::Start { role: spec.name.clone(), error: failure.into_io(&self.line) }
        };
        let (line, pid) = (Arc::clone(&self.line), started.map_err(error)?);
        Ok(Arc::new(RemoteRole { line, number, pid, lines: Mutex::new(lines), ended: Mutex::new(false) }))
    }

    fn speeds(&self, cpus: &[u32]) -> std::io::Result<Vec<CpuSpeed>> {
        self.line.ask_io(Request::Speeds(cpus.to_vec()))
    }

    fn watch(&self, plan: Plan, counted: Vec<(Role, u32)>) -> std::io::Result<Box<dyn Sampler>> {
        let sampler = self.line.number();
        self.line.ask_io::<()>(Request::Watch(sampler, plan, counted))?;
        Ok(Box::new(RemoteSampler { line: Arc::clone(&self.line), number: sampler }))
    }

    fn descendants(&self, root: u32) -> Vec<u32> {
        self.line.request(Request::Descendants(root)).unwrap_or_default()
    }

    fn owns_listener(&self, root: u32, addr: SocketAddr) -> Result<(), String> {
        self.line.ask_io(Request::OwnsListener(root, addr)).map_err(|error| error.to_string())
    }

    fn accepts(&self, addr: SocketAddr, within: Duration) -> bool {
        self.line.request(Request::Accepts(addr, within)).unwrap_or_default()
    }

    fn free_ports(&self, at: IpAddr, count: usize) -> Result<Vec<SocketAddr>, NoPort> {
        self.line.request(Request::FreePorts(at, count)).map_err(|failure| match failure {
            Failure::Refused(Refusal::NoPort(error)) => error,
            // The caller finds the host lost.
            _ => NoPort { at, top: 0 },
        })
    }

    fn create_dir(&self, folder: &Path) -> Result<(), FileError> {
        self.file(folder, Request::CreateDir(folder.to_owned()), Vec::new()).map(|((), _)| ())
    }

    fn write(&self, path: &Path, bytes: &[u8], private: bool) -> Result<(), FileError> {
        let mut rest = bytes;
        loop {
            let (part, behind) = rest.split_at(rest.len().min(PART));
            let last = behind.is_empty();
            let ((), _) = self.file(path, Request::Write { path: path.to_owned(), private, last }, part.to_vec())?;
            if last {
                return Ok(());
            }
            rest = behind;
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        let mut whole = Vec::new();
        loop {
            let part = self.read_part(path, whole.len() as u64, PART)?;
            if part.is_empty() {
                return Ok(whole);
            }
            whole.extend(part);
        }
    }

    fn read_part(&self, path: &Path, from: u64, _most: usize) -> Result<Vec<u8>, FileError> {
        let ((), bytes) = self.file(path, Request::Read(path.to_owned(), from), Vec::new())?;
        Ok(bytes)
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileError> {
        self.file(folder, Request::List(folder.to_owned()), Vec::new()).map(|(files, _)| files)
    }

    /// Where the disk is the same, there is nothing to do.
    fn fetch(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        if self.facts.work.is_none() && from == to {
            return Ok(());
        }
        for file in self.list(from)? {
            let here = to.join(&file);
            let own = || FileError::at(&here);
            std::fs::create_dir_all(here.parent().unwrap_or(to)).map_err(own())?;
            let mut copy = std::fs::File::create(&here).map_err(own())?;
            let mut length = 0;
            loop {
                let part = self.read_part(&from.join(&file), length, PART)?;
                if part.is_empty() {
                    break;
                }
                copy.write_all(&part).map_err(own())?;
                length += part.len() as u64;
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) {
        // A host that is lost is cleaned up by its agent.
        let _: Result<(), Failure> = self.line.request(Request::Remove(path.to_owned()));
    }

    fn last_lines(&self, path: &Path, lines: usize) -> String {
        self.line.request(Request::LastLines(path.to_owned(), lines)).unwrap_or_default()
    }

    fn call(&self, name: &str, argument: Value, progress: &mut dyn FnMut(Value)) -> Result<Value, HostError> {
        let request = Request::Call(name.to_owned(), argument);
        let called = self.line.request_with(request, Vec::new(), progress);
        called.map(|(value, _)| value).map_err(|failure| failure.into_host_error(&self.line))
    }
}

impl Line {
    fn ask_io<T: DeserializeOwned>(&self, what: Request) -> std::io::Result<T> {
        self.request(what).map_err(|failure| failure.into_io(self))
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct RemoteProcess {
    line: Arc<Line>,
    number: u32,
    root: u32,
    /// It was stopped, so that there is nothing to drop over there.
    taken: bool,
}

impl Process for RemoteProcess {
    fn root(&self) -> u32 {
        self.root
    }

    fn wait(&mut self, within: Duration) -> Option<Ended> {
        self.line.wait_until(Instant::now() + within, |state| {
            let ended = state.processes.get(&self.number).copied().flatten();
            ended.or_else(|| state.lost.as_ref().map(|_| Ended::LOST))
        })
    }

    fn signal(&mut self, signal: Signal) -> std::io::Result<()> {
        self.line.ask_io(Request::Signal(self.number, signal))
    }

    fn disturb(&mut self, what: Disturbance, at: Option<At>) -> std::io::Result<()> {
        self.line.ask_io(Request::Disturb(self.number, what, at))
    }

    fn disturbed(&mut self) -> Vec<(Disturbance, At)> {
        self.line.request(Request::Disturbed(self.number)).unwrap_or_default()
    }

    fn stop(mut self: Box<Self>, grace: Duration) -> Ended {
        self.taken = true;
        let stop = Request::Stop(self.number, grace);
        self.line.request(stop).unwrap_or(Ended::LOST)
    }
}

impl Drop for RemoteProcess {
    fn drop(&mut self) {
        if !self.taken {
            let _: Result<(), Failure> = self.line.request(Request::Drop(self.number));
        }
        locked(&self.line.state).processes.remove(&self.number);
    }
}

#[derive(Debug)]
struct RemoteRole {
    line: Arc<Line>,
    number: u32,
    pid: u32,
    lines: Mutex<Receiver<String>>,
    ended: Mutex<bool>,
}

impl RoleProcess for RemoteRole {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn alive(&self) -> bool {
        locked(&self.line.state).roles.contains_key(&self.number)
    }

    fn send(&self, line: &str) -> std::io::Result<()> {
        self.line.ask_io(Request::Send(self.number, line.to_owned()))
    }

    fn receive(&self, within: Duration) -> Result<String, ReceiveError> {
        locked(&self.lines).recv_timeout(within).map_err(|error| match error {
            RecvTimeoutError::Timeout => ReceiveError::Timeout,
            RecvTimeoutError::Disconnected => ReceiveError::Ended,
        })
    }

    fn ask(&self, line: &str, within: Duration) -> Result<String, ReceiveError> {
        let ask = Request::Ask(self.number, line.to_owned(), within);
        self.line.request(ask).map_err(|failure| match failure {
            Failure::Refused(Refusal::Receive(error)) => error,
            _ => ReceiveError::Ended,
        })
    }

    fn end(&self) {
        let mut ended = locked(&self.ended);
        if !std::mem::replace(&mut *ended, true) {
            let _: Result<(), Failure> = self.line.request(Request::EndRole(self.number));
        }
    }
}

impl Drop for RemoteRole {
    fn drop(&mut self) {
        self.end();
        locked(&self.line.state).roles.remove(&self.number);
    }
}

#[derive(Debug)]
struct RemoteSampler {
    line: Arc<Line>,
    number: u32,
}

impl Sampler for RemoteSampler {
    fn begin_window(&self, from: At, to: Option<At>) -> std::io::Result<()> {
        self.line.ask_io(Request::Begin(self.number, from, to))
    }

    fn end_window(&self) -> std::io::Result<Window> {
        self.line.ask_io(Request::End(self.number))
    }

    /// Dropping it does.
    fn stop(self: Box<Self>) {}
}

impl Drop for RemoteSampler {
    fn drop(&mut self) {
        let _: Result<(), Failure> = self.line.request(Request::StopWatch(self.number));
    }
}
