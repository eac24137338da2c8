//! The client and the origin as processes: weir itself, started again (`weir client`, `weir origin`), so that what
//! each role costs can be read from the kernel, and so that a role can one day run on another host.
//!
//! Both end when their standard input closes, which the kernel does when weir ends, also by SIGKILL: neither outlives
//! weir. Neither starts a process, so nothing of theirs is left when one of them is killed itself.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_model::Condition;
use weir_model::load::{DriverChoice, LoadResult, LoadSecond, LoadSpec, Probe, ProbeKind, SearchOptions, SearchResult};
use weir_model::suite::Tls;

use crate::tail::last_lines;

mod open;

pub use open::{HOW_MANY, OpenCounter};

/// How long an origin may take until it listens. It takes milliseconds; a machine can be very busy.
pub const LISTENS_WITHIN: Duration = Duration::from_secs(10);

/// How long a role may take to end when its standard input is closed, before it is killed.
const GOES_WITHIN: Duration = Duration::from_secs(2);

/// A role's process and the lines of JSON that it says.
#[derive(Debug)]
struct Speaker<W> {
    child: Child,
    line: Arc<Mutex<Line<W>>>,
    output: PathBuf,
}

/// What is said to a role, and what it says.
#[derive(Debug)]
struct Line<W> {
    /// Its standard input; closed when it is to end.
    control: Option<ChildStdin>,
    words: Receiver<W>,
    /// Answers that are still to come.
    owed: u32,
}

impl<W> Line<W> {
    /// Says a line to it.
    fn say(&mut self, line: &str) -> std::io::Result<()> {
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let control = self.control.as_mut().ok_or_else(gone)?;
        writeln!(control, "{line}").and_then(|()| control.flush())
    }
}

/// Nobody is left with half a line: what a thread that panicked held is as good as before.
fn locked<W>(line: &Mutex<Line<W>>) -> MutexGuard<'_, Line<W>> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a role did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// Not started.
    #[error("weir could not start its {role}: {error}")]
    Start {
        /// Which role.
        role: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// Ended before its work was done.
    #[error("the {role} ended by itself{}", said(.last))]
    Ended {
        /// Which role.
        role: &'static str,
        /// Last lines of its output.
        last: String,
    },
    /// Said nothing.
    #[error("the {role} said nothing for {} s{}", .within.as_secs_f64(), said(.last))]
    Silent {
        /// Which role.
        role: &'static str,
        /// How long.
        within: Duration,
        /// Last lines of its output.
        last: String,
    },
}

fn said(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!("; its last words:\n{last}") }
}

impl<W: DeserializeOwned + Send + 'static> Speaker<W> {
    fn start(mut command: Command, role: &'static str, output: &Path) -> Result<Speaker<W>, RoleError> {
        let failed = |error| RoleError::Start { role, error };
        let log = std::fs::OpenOptions::new().create(true).append(true).open(output).map_err(failed)?;
        let mut stray = log.try_clone().map_err(failed)?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C at the terminal is for weir, which then ends its roles in order.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let control = child.stdin.take();
        let (sender, words) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    match serde_json::from_str(&line) {
                        Ok(word) => {
                            if sender.send(word).is_err() {
                                return;
                            }
                        }
                        // Not for weir, then for whoever reads what went wrong.
                        Err(_) => drop(writeln!(stray, "{line}")),
                    }
                }
            });
        }
        let line = Arc::new(Mutex::new(Line { control, words, owed: 0 }));
        Ok(Speaker { child, line, output: output.to_owned() })
    }
}

impl<W> Speaker<W> {
    fn hear(&self, role: &'static str, within: Duration) -> Result<W, RoleError> {
        let heard = locked(&self.line).words.recv_timeout(within);
        heard.map_err(|error| {
            let last = last_lines(&self.output, 5);
            match error {
                RecvTimeoutError::Disconnected => RoleError::Ended { role, last },
                RecvTimeoutError::Timeout => RoleError::Silent { role, within, last },
            }
        })
    }
}

impl<W> Drop for Speaker<W> {
    fn drop(&mut self) {
        locked(&self.line).control = None;
        let deadline = Instant::now() + GOES_WITHIN;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `weir origin --with-parent` says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OriginWord {
    /// First.
    Listens {
        /// Where it listens.
        listening: SocketAddr,
        /// `io_uring` or `epoll`.
        driver: String,
    },
    /// Whenever it is asked with [`HOW_MANY`].
    Open {
        /// Connections that it has open now.
        connections_open: u64,
    },
}

/// TLS of an origin that clients talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginTls {
    /// The certificate, PEM.
    pub cert: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// Versions, and whether sessions can be resumed.
    pub asked: Tls,
}

impl OriginTls {
    fn add_to(&self, command: &mut Command) {
        let (oldest, newest) = self.asked.versions;
        let versions = match oldest == newest {
            true => newest.as_str().to_owned(),
            false => format!("{}..{}", oldest.as_str(), newest.as_str()),
        };
        command.arg("--tls").arg("--cert").arg(&self.cert).arg("--key").arg(&self.key);
        command.arg("--tls-version").arg(versions);
        command.arg("--resume").arg(if self.asked.resumption { "on" } else { "off" });
    }
}

/// The origin's process.
#[derive(Debug)]
pub struct OriginProcess {
    speaker: Speaker<OriginWord>,
    /// Where it listens.
    pub addr: SocketAddr,
    /// Its I/O driver.
    pub driver: String,
}

impl OriginProcess {
    /// Starts an origin and waits until it listens. With `tls` it speaks nothing without.
    ///
    /// # Errors
    /// When it does not start or does not get to listen within [`LISTENS_WITHIN`].
    pub fn start(
        weir: &Path,
        listen: SocketAddr,
        cpus: &[u32],
        driver: DriverChoice,
        tls: Option<&OriginTls>,
        output: &Path,
    ) -> Result<OriginProcess, RoleError> {
        let mut command = Command::new(weir);
        command.arg("origin").arg("--with-parent").arg("--listen").arg(listen.to_string());
        command.arg("--threads").arg(cpus.len().max(1).to_string());
        command.arg("--driver").arg(driver_name(driver));
        if !cpus.is_empty() {
            command.arg("--cpus").arg(cpu_list(cpus));
        }
        if let Some(tls) = tls {
            tls.add_to(&mut command);
        }
        let speaker: Speaker<OriginWord> = Speaker::start(command, "origin", output)?;
        loop {
            if let OriginWord::Listens { listening: addr, driver } = speaker.hear("origin", LISTENS_WITHIN)? {
                return Ok(OriginProcess { speaker, addr, driver });
            }
        }
    }

    /// A way to ask how many connections it has open, for another thread. Nothing of it goes over the network or is in the
    /// counters.
    pub fn counter(&self) -> OpenCounter {
        OpenCounter::new(&self.speaker.line)
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.speaker.child.id()
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.speaker.child.try_wait(), Ok(None))
    }

    /// Last lines of its output.
    pub fn last_words(&self) -> String {
        last_lines(&self.speaker.output, 5)
    }
}

/// What a client is told to do: a load, or a search that is many of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientOrder {
    /// The load; of a search what all its loads have in common.
    #[serde(flatten)]
    pub spec: LoadSpec,
    /// What is to be searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchOrder>,
}

/// What a client is to search for: the highest open rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchOrder {
    /// What has to hold at it.
    pub objective: Vec<Condition>,
    /// How to go about it.
    pub options: SearchOptions,
}

impl From<LoadSpec> for ClientOrder {
    fn from(spec: LoadSpec) -> ClientOrder {
        ClientOrder { spec, search: None }
    }
}

/// The line by which a client that waits is told to go on. Any other asks it to end early.
pub const GO_ON: &str = "go on";

/// What `weir client` says while it works.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientWord {
    /// Connections are being made.
    Connecting {
        /// Made so far.
        open: u32,
        /// Ordered.
        of: u32,
    },
    /// A second of warm-up is over.
    Warmup(LoadSecond),
    /// The measured window begins now.
    WindowStart {
        /// Unix time in milliseconds.
        unix_ms: u64,
    },
    /// A second of the window is over.
    Second(LoadSecond),
    /// The window is over; what is in flight is waited for.
    WindowEnd,
    /// Of a search: a trial is to begin. The client waits for [`GO_ON`].
    Trial {
        /// Which, 0-based.
        number: usize,
        /// What it is for.
        kind: ProbeKind,
        /// Requests a second; `None` for the closed load.
        rate: Option<f64>,
    },
    /// Of a search: the trial is over.
    Tried(Probe),
    /// The search is over.
    Found(Box<SearchResult>),
    /// All is done and written.
    Done(Box<LoadResult>),
    /// It could not be done.
    Failed(String),
}

/// The client's process.
#[derive(Debug)]
pub struct ClientProcess {
    speaker: Speaker<ClientWord>,
}

/// Name of the file, in the trial's folder, with the client's order.
pub const ORDER_FILE: &str = "load-order.json";

impl ClientProcess {
    /// Starts a client that carries `order` out and writes `latency.hlog` and `load.csv` into `dir`.
    ///
    /// # Errors
    /// When the order cannot be written or the process not started.
    pub fn start(weir: &Path, order: &ClientOrder, dir: &Path, output: &Path) -> Result<ClientProcess, RoleError> {
        let failed = |error| RoleError::Start { role: "client", error };
        let order = serde_json::to_vec_pretty(order).map_err(|e| failed(e.into()))?;
        std::fs::write(dir.join(ORDER_FILE), order).map_err(failed)?;
        let mut command = Command::new(weir);
        command.arg("client").arg(dir);
        Ok(ClientProcess { speaker: Speaker::start(command, "client", output)? })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.speaker.child.id()
    }

    /// Asks it to end its load early, and to keep what it has.
    ///
    /// # Errors
    /// When it is gone.
    pub fn ask_to_end(&mut self) -> Result<(), RoleError> {
        self.say("end")
    }

    /// Tells one that waits to go on.
    ///
    /// # Errors
    /// When it is gone.
    pub fn go_on(&mut self) -> Result<(), RoleError> {
        self.say(GO_ON)
    }

    fn say(&mut self, line: &str) -> Result<(), RoleError> {
        let last = |speaker: &Speaker<ClientWord>| last_lines(&speaker.output, 5);
        locked(&self.speaker.line).say(line).map_err(|_| RoleError::Ended { role: "client", last: last(&self.speaker) })
    }

    /// The next thing it says, or `None` when it said nothing for so long.
    ///
    /// # Errors
    /// When it ended without a last word.
    pub fn hear(&self, within: Duration) -> Result<Option<ClientWord>, RoleError> {
        match self.speaker.hear("client", within) {
            Ok(word) => Ok(Some(word)),
            Err(RoleError::Silent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn driver_name(driver: DriverChoice) -> &'static str {
    match driver {
        DriverChoice::Auto => "auto",
        DriverChoice::Uring => "io_uring",
        DriverChoice::Epoll => "epoll",
    }
}

fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A role that is a few lines of shell. No script on the disk: a file just written cannot be executed while a
    /// test beside this one forks.
    pub(super) fn shell(script: &str) -> (tempfile::TempDir, Speaker<OriginWord>) {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script);
        let speaker = Speaker::start(command, "origin", &scratch.path().join("origin.log")).expect("sh starts");
        (scratch, speaker)
    }

    /// Generous: far more than any test needs, far less than what the roles of these tests would take.
    const LONG: Duration = Duration::from_secs(20);

    fn hear(script: &str, within: Duration) -> Result<OriginWord, String> {
        let begun = Instant::now();
        let (_scratch, speaker) = shell(script);
        let heard = speaker.hear("origin", within).map_err(|e| e.to_string());
        drop(speaker);
        assert!(begun.elapsed() < LONG + within, "{:?}", begun.elapsed());
        heard
    }

    const WORD: &str = r#"echo '{"listening":"127.0.0.1:9","driver":"epoll"}'"#;

    #[test]
    fn a_word_is_heard_between_lines_that_are_none() {
        let word = hear(&format!("echo; echo hello; echo '{{}}'; {WORD}; exec sleep 300"), LONG).expect("heard");
        let listening = SocketAddr::from(([127, 0, 0, 1], 9));
        assert_eq!(word, OriginWord::Listens { listening, driver: "epoll".into() });
    }

    #[test]
    fn silence_ends_in_time_with_the_last_words() {
        let said = hear("echo 'thinking it over' >&2; exec sleep 300", Duration::from_millis(500)).expect_err("silent");
        assert_eq!(said, "the origin said nothing for 0.5 s; its last words:\nthinking it over");
    }

    #[test]
    fn an_end_is_seen_at_once_with_the_last_words() {
        let said = hear("echo 'no ring' >&2; exit 3", Duration::from_secs(600)).expect_err("ended");
        assert_eq!(said, "the origin ended by itself; its last words:\nno ring");
        assert_eq!(hear("exit 0", Duration::from_secs(600)).expect_err("ended"), "the origin ended by itself");
    }

    #[test]
    fn rubbish_is_quoted() {
        let said = hear("echo 'Segmentation fault, or so'; exit 1", Duration::from_secs(600)).expect_err("ended");
        assert_eq!(said, "the origin ended by itself; its last words:\nSegmentation fault, or so");
    }

    #[test]
    fn one_that_does_not_go_when_asked_is_killed() {
        let (_scratch, speaker) = shell(&format!("trap '' TERM; {WORD}; exec sleep 300 <&-"));
        speaker.hear("origin", LONG).expect("it runs");
        let pid = speaker.child.id();
        let begun = Instant::now();
        drop(speaker);
        assert!(begun.elapsed() >= GOES_WITHIN, "it was given time");
        assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "gone and reaped");
    }

    #[test]
    fn one_that_reads_its_input_goes_by_itself() {
        let (_scratch, speaker) = shell(&format!("{WORD}; read line; exit 0"));
        speaker.hear("origin", LONG).expect("it runs");
        let begun = Instant::now();
        drop(speaker);
        assert!(begun.elapsed() < GOES_WITHIN, "not killed: {:?}", begun.elapsed());
    }

    #[test]
    fn an_origin_is_started_with_what_it_was_ordered() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let start = |weir: &str, tls: Option<&OriginTls>| {
            let listen = SocketAddr::from(([127, 0, 0, 1], 15_001));
            let output = scratch.path().join("origin.log");
            let _ = std::fs::remove_file(&output);
            let started = OriginProcess::start(Path::new(weir), listen, &[2, 5], DriverChoice::Epoll, tls, &output);
            started.expect_err("no origin").to_string()
        };
        assert_eq!(
            start("/bin/echo", None),
            "the origin ended by itself; its last words:\n\
             origin --with-parent --listen 127.0.0.1:15001 --threads 2 --driver epoll --cpus 2,5"
        );
        let tls = OriginTls { cert: "/c.pem".into(), key: "/k.pem".into(), asked: Tls::default() };
        let said = start("/bin/echo", Some(&tls));
        assert!(said.ends_with(" --tls --cert /c.pem --key /k.pem --tls-version 1.2..1.3 --resume off"), "{said}");
        assert!(start("/no/such/weir", None).starts_with("weir could not start its origin: No such file"));
    }

    #[test]
    fn a_client_finds_its_order_in_the_folder() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let order = ClientOrder::from(spec());
        let client =
            ClientProcess::start(Path::new("/bin/echo"), &order, scratch.path(), &scratch.path().join("client.log"))
                .expect("echo starts");
        let ended = loop {
            match client.hear(Duration::from_millis(50)) {
                Ok(None) => {}
                Ok(Some(word)) => panic!("echo says {word:?}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(ended.contains(&format!("client {}", scratch.path().display())), "{ended}");
        let written = std::fs::read(scratch.path().join(ORDER_FILE)).expect("written");
        assert_eq!(serde_json::from_slice::<ClientOrder>(&written).expect("an order"), order);
        assert_eq!(serde_json::from_slice::<LoadSpec>(&written).expect("a load's order as ever"), order.spec);
    }

    #[test]
    fn a_search_is_ordered_with_its_objective() {
        let objective = Condition::list("p99<5ms, errors<0.1%").expect("conditions");
        let search = SearchOrder { objective, options: SearchOptions::default() };
        let order = ClientOrder { spec: spec(), search: Some(search) };
        let text = serde_json::to_string(&order).expect("JSON");
        assert_eq!(serde_json::from_str::<ClientOrder>(&text).expect("an order"), order);
    }

    #[test]
    fn a_client_that_is_gone_cannot_be_told() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let order = ClientOrder::from(spec());
        let output = scratch.path().join("client.log");
        let mut client = ClientProcess::start(Path::new("/bin/true"), &order, scratch.path(), &output).expect("starts");
        while client.hear(Duration::from_millis(50)).is_ok() {}
        // A child of a test beside this one has the pipe, too, between fork and exec.
        let begun = Instant::now();
        let said = loop {
            match client.go_on() {
                Ok(()) => assert!(begun.elapsed() < LONG, "somebody still listens"),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(said, "the client ended by itself");
        assert!(client.ask_to_end().is_err());
    }

    fn spec() -> LoadSpec {
        use weir_model::load::Target;
        use weir_model::suite::{Expect, Request};
        let target = Target::tcp(SocketAddr::from(([127, 0, 0, 1], 9)), "a");
        let request = Request { method: "GET".into(), path: "/".into(), headers: Vec::new(), body: Vec::new() };
        LoadSpec::new(target, request, Expect::default())
    }
}
