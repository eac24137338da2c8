//! A product that was started: waiting until it is ready, verifying, signalling, reloading and ending it. The trial and the
//! conformance tests call it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weir_host::files::pretty;
use weir_host::stop::Stop;
use weir_host::supervisor::StartError;
use weir_host::{Disturbance, Ended, Host, Process, ProgramSpec};
use weir_model::At;
use weir_model::product::{Product, ProductKind, Reload, Signal};
use weir_model::record::{Finding, Role, Severity};
use weir_model::suite::Protocol;
use weir_vitals::Watched;

use crate::access_log::shorten;
use crate::failure::Failure;
use crate::launch::{ENDED_FROM_OUTSIDE, EVIDENCE_LINES};
use crate::render::{self, RenderedPart};
use crate::requester::{LONGEST_TRY, Requester};

/// How long a command that makes a product reload may take.
const RELOADS_WITHIN: Duration = Duration::from_secs(10);

/// A product that was started.
#[derive(Debug)]
pub struct Running {
    /// The host of the part that clients talk to.
    pub(crate) host: Arc<dyn Host>,
    /// In the order in which they were started; the last is the one that clients talk to.
    pub(crate) parts: Vec<RunningPart>,
    /// Where the client finds it.
    pub addr: SocketAddr,
    pub(crate) title: String,
    /// The files of each change of its route that is still to come: where they go, and their texts.
    pub(crate) changes: VecDeque<Vec<(PathBuf, String)>>,
    /// The access log of its profile, in its folder.
    pub(crate) log: Option<String>,
    /// What clients speak with it.
    pub(crate) protocol: Protocol,
}

/// One of its processes.
#[derive(Debug)]
pub(crate) struct RunningPart {
    /// `None` where the product has one part.
    pub name: Option<String>,
    /// Title of the part, for messages.
    pub title: String,
    pub host: Arc<dyn Host>,
    pub process: Box<dyn Process>,
    pub rendered: RenderedPart,
    /// File with its output.
    pub output: PathBuf,
    /// File with its exit status.
    pub exit: PathBuf,
    pub stop_within: Duration,
    /// What all its commands have: environment, folder, and what they may do.
    pub base: ProgramSpec,
}

impl RunningPart {
    /// Where to look, and the last lines of the output.
    fn evidence(&self) -> String {
        let lines = self.host.last_lines(&self.output, EVIDENCE_LINES);
        let path = self.output.display();
        if lines.is_empty() { format!("{path} is empty") } else { format!("{path}:\n{lines}") }
    }
}

impl Running {
    /// Waits until the part that was started last accepts connections on these ports.
    pub(crate) fn wait_listening(
        &mut self,
        ports: &[SocketAddr],
        within: Duration,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let clock = self.host.local_clock();
        let deadline = clock.now().plus(within);
        let host = Arc::clone(self.parts.last().map_or(&self.host, |part| &part.host));
        for port in ports {
            while !host.accepts(*port, LONGEST_TRY) {
                if stop.is_requested() {
                    return Err(Failure::Stopped);
                }
                self.still_runs("ready")?;
                if clock.left(deadline).is_zero() {
                    let title = self.parts.last().map_or(&self.title, |part| &part.title);
                    let found = format!("{title} did not listen on {port} within {} s", within.as_secs_f64());
                    let remedy =
                        "see its output and its rendered configuration; raise `ready_within` if it is only slow";
                    return Err(Failure::at("ready", found, self.evidence(), remedy));
                }
                clock.sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }

    /// Waits until a real request through the product is answered: by the origin, or from what it keeps itself.
    pub fn wait_ready(&mut self, requester: &Requester, within: Duration, stop: &Stop) -> Result<(), Failure> {
        let to = (self.addr, self.protocol);
        let ready = requester.wait_ready(to, within, stop, || self.still_runs("ready"))?;
        let Err(last) = ready else { return Ok(()) };
        let within = within.as_secs_f64();
        let found = format!("{} did not get ready within {within} s; last try: {last}", self.title);
        let remedy = "see its output and its rendered configuration in the trial's folder; raise `ready_within` if it is only slow";
        Err(Failure::at("ready", found, self.evidence(), remedy))
    }

    /// Turns to another of its listeners: what follows asks there.
    pub fn turn_to(&mut self, protocol: Protocol, addr: SocketAddr) {
        (self.protocol, self.addr) = (protocol, addr);
    }

    /// Fails when one of its processes has ended.
    pub fn still_runs(&mut self, stage: &str) -> Result<(), Failure> {
        for part in &mut self.parts {
            if let Some(ended) = part.process.ended() {
                let (message, remedy) = match ended.lost {
                    true => (
                        format!("{} was ended from outside, with weir's supervisor of it", part.title),
                        ENDED_FROM_OUTSIDE,
                    ),
                    false => (
                        format!("{} ended by itself ({ended}) while weir needed it", part.title),
                        "see its output and its rendered configuration in the trial's folder",
                    ),
                };
                return Err(Failure::at(stage, message, part.evidence(), remedy));
            }
        }
        Ok(())
    }

    /// Fails when the listening socket does not belong to the part that clients talk to.
    pub fn verify_listener(&self) -> Result<(), Failure> {
        let front = self.parts.last().map_or(0, |part| part.process.root());
        self.host
            .owns_listener(front, self.addr)
            .map_err(|e| Failure::at("verify", e, self.evidence(), "end the other process, or try again"))
    }

    /// Its process trees on a host, for vitals: one for each part.
    pub fn watched(&self, role: Role, host: &dyn Host) -> Vec<Watched> {
        let watched =
            |part: &RunningPart| Watched { part: part.name.clone(), ..Watched::below(role, part.process.root()) };
        let here = self.parts.iter().filter(|part| part.host.facts().name == host.facts().name);
        here.map(watched).collect()
    }

    /// The parts that tell numbers about themselves, each by name and with the address to ask.
    pub fn monitors(&self) -> Vec<(String, String)> {
        let told = |part: &RunningPart| Some((part.name.clone()?, part.rendered.monitor.clone()?));
        self.parts.iter().filter_map(told).collect()
    }

    /// All its processes at this moment.
    pub fn processes(&self) -> Vec<u32> {
        self.parts.iter().flat_map(|part| part.host.descendants(part.process.root())).collect()
    }

    /// Where to look, and the last lines of the output of the part that was started last.
    pub fn evidence(&self) -> String {
        self.parts.last().map_or_else(String::new, RunningPart::evidence)
    }

    /// Ends its parts in reverse order of their start, and records how each ended. Returns a finding when one had to be killed.
    pub fn stop(mut self, product: &Product) -> Option<Finding> {
        let mut killed = Vec::new();
        let mut folders = BTreeMap::new();
        while let Some(RunningPart { title, host, process, exit, stop_within, base, .. }) = self.parts.pop() {
            let ended = process.stop(stop_within);
            if let Ok(json) = pretty(&ended) {
                // Evidence, not a result: a full disk shows when the measurement itself is written.
                let _ = host.write(&exit, &json, false);
            }
            if ended.forced {
                killed.push(format!("{title} did not end within {} s of SIGTERM", stop_within.as_secs_f64()));
            }
            if let Some(log) = &self.log {
                shorten(host.as_ref(), &base.dir.join(log));
            }
            folders.insert(host.facts().name.clone(), (host, base.dir));
        }
        if let ProductKind::Proxy(program) = &product.kind {
            // Scratch files can be large, for example databases of 60 MB in each of a hundred trials.
            for (host, folder) in folders.values() {
                let scratch = program.parts.iter().flat_map(|part| &part.process.scratch);
                scratch.for_each(|name| host.remove(&folder.join(name)));
            }
        }
        (!killed.is_empty()).then(|| Finding {
            check: "stop".to_owned(),
            severity: Severity::Note,
            message: format!("{} and was killed", killed.join(", ")),
            remedy: "raise `stop_within` in its product file".to_owned(),
        })
    }

    /// How the first part that has ended did so, if one has.
    pub fn ended(&mut self) -> Option<Ended> {
        self.parts.iter_mut().find_map(|part| part.process.ended())
    }

    /// The part that clients talk to.
    fn front(&mut self) -> std::io::Result<&mut RunningPart> {
        self.parts.last_mut().ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    /// Sends a signal to the part that clients talk to.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&mut self, signal: Signal) -> std::io::Result<()> {
        self.front()?.process.signal(signal)
    }

    /// A time of this machine, by the clock of each part's host.
    pub fn part_times(&self, here: At) -> Vec<At> {
        self.parts.iter().map(|part| part.host.at(here)).collect()
    }

    /// Provokes a fault in a part, by its index, or ends one, at this time of its host.
    ///
    /// # Errors
    /// The part's supervisor is gone.
    pub fn disturb(&mut self, part: usize, what: Disturbance, at: At) -> Result<(), Failure> {
        let part = &mut self.parts[part];
        part.process.disturb(what, Some(at)).map_err(|error| {
            let message = format!("{}: {} failed: {error}", part.title, what.as_str());
            Failure::at("load", message, part.evidence(), "see its output in the trial's folder")
        })
    }

    /// A part's disturbances so far, with their times by its host's clock.
    pub fn disturbed(&mut self, part: usize) -> Vec<(Disturbance, At)> {
        self.parts.get_mut(part).map(|part| part.process.disturbed()).unwrap_or_default()
    }

    /// Makes the next change of its route: writes its files anew, and tells it as its file says, unless it watches them.
    ///
    /// # Errors
    /// There is no other change, a file cannot be written, or it does not reload.
    pub fn change(&mut self, stop: &Stop) -> Result<(), String> {
        let watches = self.front().map_err(|e| e.to_string())?.rendered.watches;
        let files = self.changes.pop_front().ok_or("it has no other change")?;
        for (path, text) in files {
            render::write(self.host.as_ref(), &path, &text).map_err(|e| e.to_string())?;
        }
        if watches { Ok(()) } else { self.reload(stop) }
    }

    /// Makes it reload its configuration, as its file says. A signal is only sent; a command has to succeed.
    ///
    /// # Errors
    /// Why it does not reload.
    pub fn reload(&mut self, stop: &Stop) -> Result<(), String> {
        let front = self.front().map_err(|e| e.to_string())?;
        let (reload, base) = (front.rendered.reload.clone(), front.base.clone());
        match reload {
            None => Err("its file names no way to reload".to_owned()),
            Some(Reload::Signal(signal)) => self.signal(signal).map_err(|e| e.to_string()),
            Some(Reload::Command(argv)) => self.run_command(argv, base, stop),
        }
    }

    /// Runs the product's command for reloading in its folder and environment.
    fn run_command(&self, argv: Vec<String>, base: ProgramSpec, stop: &Stop) -> Result<(), String> {
        let output = base.dir.join("reload.log");
        let name = argv.first().cloned().unwrap_or_default();
        let spec = ProgramSpec { argv, output: output.clone(), ..base };
        run_to_end(self.host.as_ref(), &spec, RELOADS_WITHIN, stop).map_err(|error| match error {
            CommandError::Failed(ended) => format!("{name}: {ended}; {}", self.host.last_lines(&output, 3)),
            other => format!("{name} {other}"),
        })
    }
}

/// Why a command of a product's did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("cannot be run: {0}")]
    NotStarted(StartError),
    #[error("failed: {0}")]
    Failed(Ended),
    #[error("was not done after {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("was stopped on request")]
    Stopped,
}

/// Runs one of a product's own commands under a supervisor. It is ended when it takes too long, when a stop is requested, and
/// when weir ends.
pub(crate) fn run_to_end(
    host: &dyn Host,
    spec: &ProgramSpec,
    within: Duration,
    stop: &Stop,
) -> Result<(), CommandError> {
    let mut process = host.start(spec).map_err(CommandError::NotStarted)?;
    let clock = host.local_clock();
    let deadline = clock.now().plus(within);
    loop {
        match process.wait(Duration::from_millis(50)) {
            Some(Ended { code: Some(0), .. }) => return Ok(()),
            Some(ended) => return Err(CommandError::Failed(ended)),
            None if stop.is_requested() => return Err(CommandError::Stopped),
            None if clock.left(deadline).is_zero() => return Err(CommandError::TooSlow(within)),
            None => {}
        }
    }
}
