//! A host for tests: it starts no process and writes no file. It records every call in order, and the test defines the results.
//! Tests of hosts, of the lab and of the command line use it.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use weir_model::At;
use weir_model::clock::ClockReading;
use weir_model::product::Signal;
use weir_model::record::{Role, RoleUsage};
use weir_vitals::{Plan, Watched, Window};

use weir_host::files::FileError;
use weir_host::ports::{self, NoPort};
use weir_host::role::RoleError;
use weir_host::supervisor::StartError;
use weir_host::{
    Clock, Disturbance, Ended, Host, HostError, HostFacts, Process, ProgramSpec, ReceiveError, RoleProcess, RoleSpec,
    Sampler, SystemClock,
};

/// The value behind a lock that no test poisons.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panicked with it")
}

/// How a started program behaves.
#[derive(Default)]
pub struct FakeProgram {
    /// Held as long as the program runs, for example a server in a thread.
    pub running: Option<Box<dyn Any + Send>>,
    /// How it ends at once, if it does.
    pub ended: Option<Ended>,
    /// Its output.
    pub output: String,
}

/// How a started role behaves.
#[derive(Default)]
pub struct FakeRole {
    /// Held as long as it runs.
    pub running: Option<Box<dyn Any + Send>>,
    /// The lines that it reports.
    pub reports: VecDeque<String>,
    /// What it reports in response to a line; `None`: it only takes it.
    pub responses: Option<Box<OnLine>>,
}

type OnProgram = dyn Fn(&ProgramSpec) -> FakeProgram + Send + Sync;
type OnLine = dyn Fn(&str) -> String + Send + Sync;
type OnRole = dyn Fn(&RoleSpec) -> FakeRole + Send + Sync;

/// The fake host. Clones share its state.
#[derive(Clone)]
pub struct FakeHost {
    on_program: Arc<OnProgram>,
    on_role: Arc<OnRole>,
    calls: Arc<Mutex<Vec<String>>>,
    files: Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>,
    last_pid: Arc<AtomicU32>,
    facts: Arc<HostFacts>,
    offset_ns: i64,
    clock: Arc<dyn Clock>,
    /// After which call it is lost, and why.
    lost_after: Option<(String, String)>,
}

impl fmt::Debug for FakeHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeHost").field("calls", &self.calls()).finish_non_exhaustive()
    }
}

impl FakeHost {
    /// A host on which programs and roles behave like this.
    pub fn new(
        on_program: impl Fn(&ProgramSpec) -> FakeProgram + Send + Sync + 'static,
        on_role: impl Fn(&RoleSpec) -> FakeRole + Send + Sync + 'static,
    ) -> FakeHost {
        FakeHost {
            on_program: Arc::new(on_program),
            on_role: Arc::new(on_role),
            calls: Arc::default(),
            files: Arc::default(),
            last_pid: Arc::default(),
            facts: Arc::new(HostFacts { name: "fake".to_owned(), cpus: vec![0, 1], ..HostFacts::default() }),
            offset_ns: 0,
            clock: Arc::new(SystemClock),
            lost_after: None,
        }
    }

    /// The same with other facts, and with a monotonic clock that is ahead by so many ns.
    pub fn with_facts(self, facts: HostFacts, offset_ns: i64) -> FakeHost {
        FakeHost { facts: Arc::new(facts), offset_ns, ..self }
    }

    /// The same, by another clock.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> FakeHost {
        FakeHost { clock, ..self }
    }

    /// The same, which is lost as soon as this call was recorded.
    pub fn lost_after(self, call: &str, why: &str) -> FakeHost {
        FakeHost { lost_after: Some((call.to_owned(), why.to_owned())), ..self }
    }

    /// What was started, watched and ended so far: `start nginx`, `watch client origin`, `end nginx`.
    pub fn calls(&self) -> Vec<String> {
        locked(&self.calls).clone()
    }

    /// The files on the host.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        locked(&self.files).clone()
    }

    fn record(&self, call: String) {
        locked(&self.calls).push(call);
    }

    fn handle(&self, name: &str, running: Option<Box<dyn Any + Send>>) -> Handle {
        self.record(format!("start {name}"));
        let pid = self.last_pid.fetch_add(1, Ordering::Relaxed) + 1;
        Handle { host: self.clone(), name: name.to_owned(), pid, running: Mutex::new(Some(running)) }
    }
}

/// A fake process. Its end is recorded once.
#[derive(Debug)]
struct Handle {
    host: FakeHost,
    name: String,
    pid: u32,
    /// `None` once it has ended.
    running: Mutex<Option<Option<Box<dyn Any + Send>>>>,
}

impl Handle {
    fn end(&self) {
        if locked(&self.running).take().is_some() {
            self.host.record(format!("end {}", self.name));
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Debug)]
struct FakeProcess {
    handle: Handle,
    ended: Option<Ended>,
    disturbed: Vec<(Disturbance, At)>,
}

impl Process for FakeProcess {
    fn root(&self) -> u32 {
        self.handle.pid
    }

    fn wait(&mut self, _within: Duration) -> Option<Ended> {
        self.ended
    }

    fn signal(&mut self, signal: Signal) -> std::io::Result<()> {
        self.handle.host.record(format!("signal {} {}", self.handle.name, signal.as_str()));
        Ok(())
    }

    fn disturb(&mut self, what: Disturbance, at: Option<At>) -> std::io::Result<()> {
        self.handle.host.record(format!("{} {}", what.as_str(), self.handle.name));
        self.disturbed.push((what, at.unwrap_or_else(|| self.handle.host.clock.now())));
        Ok(())
    }

    fn disturbed(&mut self) -> Vec<(Disturbance, At)> {
        self.disturbed.clone()
    }

    fn stop(self: Box<Self>, _grace: Duration) -> Ended {
        self.ended.unwrap_or(Ended { code: Some(0), signal: None, forced: false, left_over: 0, lost: false })
    }
}

struct FakeRoleProcess {
    handle: Handle,
    reports: Mutex<VecDeque<String>>,
    responses: Option<Box<OnLine>>,
}

impl fmt::Debug for FakeRoleProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeRoleProcess").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl RoleProcess for FakeRoleProcess {
    fn pid(&self) -> u32 {
        self.handle.pid
    }

    fn alive(&self) -> bool {
        locked(&self.handle.running).is_some()
    }

    fn send(&self, line: &str) -> std::io::Result<()> {
        match &self.responses {
            Some(responses) => locked(&self.reports).push_back(responses(line)),
            None => self.handle.host.record(format!("send {} {line}", self.handle.name)),
        }
        Ok(())
    }

    /// A role with responses runs until it is ended; another one until its reports are received.
    fn receive(&self, within: Duration) -> Result<String, ReceiveError> {
        let clock = &self.handle.host.clock;
        let deadline = clock.now().plus(within);
        loop {
            if let Some(report) = locked(&self.reports).pop_front() {
                return Ok(report);
            }
            if self.responses.is_none() || !self.alive() {
                return Err(ReceiveError::Ended);
            }
            if clock.left(deadline).is_zero() {
                return Err(ReceiveError::Timeout);
            }
            clock.sleep(Duration::from_millis(1));
        }
    }

    fn ask(&self, line: &str, within: Duration) -> Result<String, ReceiveError> {
        match &self.responses {
            Some(responses) => Ok(responses(line)),
            None => self.receive(within),
        }
    }

    fn end(&self) {
        self.handle.end();
    }
}

/// Reports windows of one second without any usage.
#[derive(Debug)]
struct FakeSampler(Vec<Watched>);

impl Sampler for FakeSampler {
    fn begin_window(&self, _from: At, _to: Option<At>) -> std::io::Result<()> {
        Ok(())
    }

    fn end_window(&self) -> std::io::Result<Window> {
        let usage = |watched: &Watched| RoleUsage {
            role: watched.role,
            threads_max: Some(1),
            processes_max: Some(1),
            switches: Some((0, 0)),
            ..RoleUsage::default()
        };
        let usage = self.0.iter().map(usage).collect();
        Ok(Window { usage, length_s: 1.0, ..Window::default() })
    }

    fn stop(self: Box<Self>) {}
}

impl Host for FakeHost {
    fn facts(&self) -> &HostFacts {
        &self.facts
    }

    fn local_clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn lost(&self) -> Option<String> {
        let (call, why) = self.lost_after.as_ref()?;
        locked(&self.calls).contains(call).then(|| why.clone())
    }

    fn at(&self, here: At) -> At {
        let mono_ns = i128::from(here.mono_ns) + i128::from(self.offset_ns);
        At { mono_ns: u64::try_from(mono_ns).unwrap_or(0), ..here }
    }

    fn read_clock(&self) -> Result<ClockReading, HostError> {
        Ok(ClockReading { offset_ns: self.offset_ns, error_ns: 0 })
    }

    fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Process>, StartError> {
        let FakeProgram { running, ended, output } = (self.on_program)(spec);
        locked(&self.files).insert(spec.output.clone(), output.into_bytes());
        let program = spec.argv.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        Ok(Box::new(FakeProcess {
            handle: self.handle(&program.to_string_lossy(), running),
            ended,
            disturbed: Vec::new(),
        }))
    }

    fn start_role(&self, spec: &RoleSpec) -> Result<Arc<dyn RoleProcess>, RoleError> {
        let FakeRole { running, reports, responses } = (self.on_role)(spec);
        let handle = self.handle(&spec.name, running);
        Ok(Arc::new(FakeRoleProcess { handle, reports: Mutex::new(reports), responses }))
    }

    fn watch(&self, Plan { trees, .. }: Plan, _counted: Vec<(Role, u32)>) -> std::io::Result<Box<dyn Sampler>> {
        let roles: Vec<&str> = trees.iter().map(|tree| tree.role.as_str()).collect();
        self.record(format!("watch {}", roles.join(" ")));
        Ok(Box::new(FakeSampler(trees)))
    }

    fn descendants(&self, root: u32) -> Vec<u32> {
        vec![root]
    }

    fn owns_listener(&self, _root: u32, _addr: SocketAddr) -> Result<(), String> {
        Ok(())
    }

    fn accepts(&self, _addr: SocketAddr, _within: Duration) -> bool {
        true
    }

    fn free_ports(&self, at: IpAddr, count: usize) -> Result<Vec<SocketAddr>, NoPort> {
        ports::free(at, count)
    }

    fn create_dir(&self, _folder: &Path) -> Result<(), FileError> {
        Ok(())
    }

    fn write(&self, path: &Path, bytes: &[u8], _private: bool) -> Result<(), FileError> {
        locked(&self.files).insert(path.to_owned(), bytes.to_owned());
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        let missing = || FileError::at(path)(std::io::ErrorKind::NotFound.into());
        locked(&self.files).get(path).cloned().ok_or_else(missing)
    }

    fn read_part(&self, path: &Path, from: u64, most: usize) -> Result<Vec<u8>, FileError> {
        let whole = self.read(path)?;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(whole.len());
        Ok(whole[from..].iter().take(most).copied().collect())
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileError> {
        let below = |path: &PathBuf| path.strip_prefix(folder).ok().map(Path::to_owned);
        Ok(locked(&self.files).keys().filter_map(below).collect())
    }

    fn fetch(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.record(format!("fetch {} {}", from.display(), to.display()));
        Ok(())
    }

    fn remove(&self, path: &Path) {
        locked(&self.files).retain(|file, _| !file.starts_with(path));
    }

    fn last_lines(&self, path: &Path, lines: usize) -> String {
        let text = self.read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    fn call(&self, name: &str, argument: Value, progress: &mut dyn FnMut(Value)) -> Result<Value, HostError> {
        self.record(format!("call {name}"));
        progress(argument.clone());
        Ok(argument)
    }
}
