//! From the description of a host to the host: starts its transport, sees that weir is there, and greets the agent.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use weir_model::topology::{HostSpec, Reach};
use weir_model::units::BitRate;

use super::VERSION;
use super::message::Hello;
use super::remote::{Carrier, RemoteHost};
use super::serve::GREETING;
use super::watchdog::{Ears, SILENCE, Watchdog};
use crate::host::{Host, HostError};
use crate::kubernetes::{self, Cluster};
use crate::lock::locked;
use crate::transport::{self, BOOTSTRAP_WORD, Binary};

/// Lines of a transport's standard error that are kept.
const LAST_WORDS: usize = 8;

/// How long a transport may take to end when its streams have, before it is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Bytes that a login shell may write before weir's own script does.
const NOISE: usize = 64 * 1024;

/// Reaches hosts.
pub trait Connect: Send + Sync {
    /// Reaches a host. Its agent keeps to `own_cpus`, if there are any.
    ///
    /// # Errors
    /// Why it cannot be reached, or who has it.
    fn connect(&self, spec: &HostSpec, own_cpus: &[u32]) -> Result<Arc<dyn Host>, HostError>;
}

/// Reaches hosts by agents.
#[derive(Debug, Clone)]
pub struct Agents {
    /// What is to run there.
    pub weir: Binary,
    /// Name of the run. The same run may take over its leases.
    pub run: String,
    /// Who runs it: `user@host`.
    pub who: String,
    /// Whether hosts are kept to this run.
    pub lease: bool,
}

impl Connect for Agents {
    fn connect(&self, spec: &HostSpec, own_cpus: &[u32]) -> Result<Arc<dyn Host>, HostError> {
        let vector = transport::vector(&spec.reach, &self.weir);
        let not_made = || HostError::Failed(format!("the host {} was not made", spec.name));
        let (program, arguments) = vector.split_first().ok_or_else(not_made)?;
        let (mut carried, mut streams) = Carried::start(program, arguments).map_err(|error| {
            HostError::Failed(format!("the host {} was not reached: {} did not start: {error}", spec.name, program))
        })?;
        carried.pod = kubernetes::pod(&spec.reach);
        if transport::copies(&spec.reach) {
            let brought = self.bring(&carried, &mut streams);
            if let Err(unreached) = brought {
                // Its input closed, the bootstrap removes what it has begun.
                drop(streams);
                let (name, end) = (&spec.name, carried.end());
                return Err(HostError::Failed(match unreached {
                    Unreached::Broken(why) => {
                        let expected = expected(&spec.reach, carried.wait(Duration::ZERO));
                        format!("the host {name} was not reached: {why}{end}{expected}")
                    }
                    Unreached::OtherMachine(there) => format!(
                        "the host {name} is {there}, and this weir is for {}\n  expected: a weir built for it (--weir FILE)",
                        self.weir.machine
                    ),
                }));
            }
        }
        let hello = Hello {
            version: VERSION.to_owned(),
            run: self.run.clone(),
            who: self.who.clone(),
            name: spec.name.clone(),
            address: spec.address,
            cpus: spec.cpus.clone().unwrap_or_default(),
            rate: spec.rate.map(BitRate::per_second),
            own_cpus: own_cpus.to_vec(),
            own_disk: !transport::shares_disk(&spec.reach),
            lease: self.lease,
        };
        let host = RemoteHost::greet(streams.output, streams.input, hello, SILENCE, Box::new(carried))?;
        Ok(Arc::new(host))
    }
}

/// What would be right, where ssh itself failed.
fn expected(reach: &Reach, status: Option<ExitStatus>) -> String {
    match (reach, status.and_then(|status| status.code())) {
        (Reach::Ssh { destination, .. }, Some(255)) => {
            format!("\n  expected: `ssh {destination} true` works without questions")
        }
        _ => String::new(),
    }
}

/// Why no agent runs on a host.
enum Unreached {
    Broken(String),
    /// It is another kind of machine.
    OtherMachine(String),
}

impl Agents {
    /// Speaks to the bootstrap: sends weir's binary if it is not there, and leaves the streams at the agent's beginning.
    fn bring(&self, carried: &Carried, streams: &mut Streams) -> Result<(), Unreached> {
        let ears = Ears::new();
        let group = carried.group;
        let broken = |error: std::io::Error| Unreached::Broken(error.to_string());
        let _watchdog = Watchdog::start(&ears, GREETING, move || kill(group)).map_err(broken)?;
        let said = streams.word()?;
        let (what, machine) = said.split_once(' ').unwrap_or((&said, ""));
        if machine != self.weir.machine {
            return Err(Unreached::OtherMachine(machine.to_owned()));
        }
        if what == "want" {
            let failed = |error: std::io::Error| Unreached::Broken(format!("copying weir to it broke off: {error}"));
            let mut file = std::fs::File::open(&self.weir.path).map_err(failed)?;
            let mut part = vec![0; 64 * 1024];
            loop {
                let length = file.read(&mut part).map_err(failed)?;
                if length == 0 {
                    break;
                }
                streams.input.write_all(&part[..length]).map_err(failed)?;
                ears.hear();
            }
        }
        match streams.word()? == "ready" {
            true => Ok(()),
            false => Err(Unreached::Broken("its bootstrap said something else than ready".to_owned())),
        }
    }
}

/// What is written to and read from a transport.
struct Streams {
    input: ChildStdin,
    output: ChildStdout,
}

impl Streams {
    /// What the bootstrap says next. Reads no byte beyond that line, because the agent's frames follow.
    fn word(&mut self) -> Result<String, Unreached> {
        let (mut line, mut byte) = (Vec::new(), [0]);
        for _ in 0..NOISE {
            match self.output.read(&mut byte) {
                Ok(0) => break,
                Ok(_) if byte[0] == b'\n' => {
                    let text = String::from_utf8_lossy(&line);
                    if let Some(said) = text.strip_prefix(BOOTSTRAP_WORD) {
                        return Ok(said.trim().to_owned());
                    }
                    line.clear();
                }
                Ok(_) => line.push(byte[0]),
                Err(error) => return Err(Unreached::Broken(error.to_string())),
            }
        }
        Err(Unreached::Broken("the connection ended before weir ran there".to_owned()))
    }
}

/// The process of a transport. It has a process group of its own, so that Ctrl-C at the terminal reaches weir alone.
struct Carried {
    program: String,
    group: Option<Pid>,
    /// Of which Kubernetes may say more than kubectl does.
    pod: Option<(Cluster, String)>,
    child: Mutex<Child>,
    words: Arc<Mutex<VecDeque<String>>>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl Carried {
    fn start(program: &str, arguments: &[String]) -> std::io::Result<(Carried, Streams)> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn()?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let words = Arc::default();
        let listener = listen(errors, Arc::clone(&words))?;
        let group = Some(Pid::from_child(&child));
        let program = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (child, listener) = (Mutex::new(child), Mutex::new(Some(listener)));
        let carried = Carried { program, group, pod: None, child, words, listener };
        Ok((carried, Streams { input, output }))
    }

    fn wait(&self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            match locked(&self.child).try_wait() {
                Ok(Some(status)) => return Some(status),
                _ if Instant::now() >= deadline => return None,
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// Keeps the last lines of what a transport says about itself.
fn listen(errors: ChildStderr, words: Arc<Mutex<VecDeque<String>>>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("weir-transport".into()).spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
            let mut words = locked(&words);
            words.push_back(line.chars().filter(|c| !c.is_control()).take(400).collect());
            if words.len() > LAST_WORDS {
                words.pop_front();
            }
        }
    })
}

fn kill(group: Option<Pid>) {
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

impl Carrier for Carried {
    fn end(&self) -> String {
        let status = self.wait(ENDS_WITHIN);
        // Also where it has ended: what it started (a jump host's ssh) may not have.
        kill(self.group);
        let _ = locked(&self.child).wait();
        if let Some(listener) = locked(&self.listener).take() {
            let begun = Instant::now();
            while !listener.is_finished() && begun.elapsed() < ENDS_WITHIN {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let end = match status {
            Some(status) => format!("; {} ended with {status}", self.program),
            None => format!("; {} was killed", self.program),
        };
        let failed = status.is_none_or(|status| !status.success());
        let fate = self.pod.as_ref().filter(|_| failed).and_then(|(cluster, pod)| kubernetes::fate(cluster, pod));
        let end = fate.map_or_else(|| end.clone(), |fate| format!("{end}; Kubernetes says of its pod: {fate}"));
        let words = locked(&self.words);
        match words.is_empty() {
            true => end,
            false => format!("{end}; its last words:\n{}", words.iter().cloned().collect::<Vec<_>>().join("\n")),
        }
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        kill(self.group);
        let _ = locked(&self.child).wait();
    }
}
