//! The client and the origin as processes: weir started again as `weir client` and `weir origin`. As separate processes,
//! their resource usage can be read from the kernel, and a role can run on another host. `weir-lab` and `weir-conformance`
//! start them.
//!
//! Both end when their standard input closes. The kernel closes it when weir ends, even by SIGKILL, so neither outlives weir.
//! Neither starts a process of its own, so nothing is left when one of them is killed.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_model::counters::OriginCounters;
use weir_model::load::{LoadResult, LoadSecond, LoadSpec, Probe, ProbeKind, SearchOptions, SearchResult};
use weir_model::origin::OriginSpec;
use weir_model::{At, Condition};

use crate::files::{FileError, pretty};
use crate::host::{Host, ReceiveError, RoleProcess, RoleSpec};

mod local;
mod open;

pub(crate) use local::LocalRole;
pub(crate) use open::OpenCount;
pub use open::OriginCommand;

/// How long an origin may take until it listens. It usually takes milliseconds, but the machine can be very busy.
pub const LISTENS_WITHIN: Duration = Duration::from_secs(10);

/// How many lines of the role's output an error quotes.
const LAST_LINES: usize = 5;

/// A role's process and the reports that it writes, one line of JSON each.
#[derive(Debug)]
struct Link<R> {
    host: Arc<dyn Host>,
    process: Arc<dyn RoleProcess>,
    spec: RoleSpec,
    reports: PhantomData<fn() -> R>,
}

/// Why a role failed.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// A file that the role needs cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The process could not be started.
    #[error("weir could not start its {role}: {error}")]
    Start {
        /// Which role.
        role: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The process ended before its work was done.
    #[error("the {role} ended by itself{}", quoted(.last))]
    Ended {
        /// Which role.
        role: String,
        /// Last lines of its output.
        last: String,
    },
    /// The process wrote nothing in time.
    #[error("the {role} said nothing for {} s{}", .within.as_secs_f64(), quoted(.last))]
    Silent {
        /// Which role.
        role: String,
        /// How long.
        within: Duration,
        /// Last lines of its output.
        last: String,
    },
}

fn quoted(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!("; its last words:\n{last}") }
}

impl<R: DeserializeOwned> Link<R> {
    fn start(host: &Arc<dyn Host>, spec: RoleSpec) -> Result<Link<R>, RoleError> {
        let process = host.start_role(&spec)?;
        Ok(Link { host: Arc::clone(host), process, spec, reports: PhantomData })
    }

    /// Receives the next report. Lines that are not reports are skipped.
    fn receive(&self, within: Duration) -> Result<R, RoleError> {
        let clock = self.host.local_clock();
        let deadline = clock.now().plus(within);
        loop {
            match self.process.receive(clock.left(deadline)) {
                Ok(line) => {
                    if let Ok(report) = serde_json::from_str(&line) {
                        return Ok(report);
                    }
                }
                Err(ReceiveError::Ended) => return Err(self.ended()),
                Err(ReceiveError::Timeout) => return Err(self.silent(within)),
            }
        }
    }
}

impl<R> Link<R> {
    fn ended(&self) -> RoleError {
        RoleError::Ended { role: self.spec.name.clone(), last: self.last_lines() }
    }

    fn silent(&self, within: Duration) -> RoleError {
        RoleError::Silent { role: self.spec.name.clone(), within, last: self.last_lines() }
    }

    fn last_lines(&self) -> String {
        self.host.last_lines(&self.spec.output, LAST_LINES)
    }
}

impl<R> Drop for Link<R> {
    /// Ends the process even if a sampler still holds it.
    fn drop(&mut self) {
        self.process.end();
    }
}

/// What `weir origin --with-parent` reports.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OriginReport {
    /// The first report: the origin listens.
    Listens {
        /// Where it listens.
        listening: SocketAddr,
        /// The other addresses, if there are several.
        also: Vec<SocketAddr>,
        /// `io_uring` or `epoll`.
        driver: String,
    },
    /// In response to each [`OriginCommand::Count`].
    Open {
        /// Connections that it has open now.
        connections_open: u64,
    },
}

/// What it reports in response to each [`OriginCommand::Counters`]. Not one of [`OriginReport`], because serde cannot read maps by
/// number, which counters have, within one of several shapes.
#[derive(Debug, Serialize, Deserialize)]
pub struct CountersReport {
    /// Its counters now.
    pub counters: OriginCounters,
}

/// The origin's process.
#[derive(Debug)]
pub struct OriginProcess {
    link: Link<OriginReport>,
    /// Where it listens.
    pub addrs: Vec<SocketAddr>,
    /// Its I/O driver.
    pub driver: String,
}

impl OriginProcess {
    /// Starts an origin and waits until it listens. Its output goes to `output`.
    ///
    /// # Errors
    /// When it does not start or does not get to listen within [`LISTENS_WITHIN`].
    pub fn start(host: &Arc<dyn Host>, spec: &OriginSpec, output: &Path) -> Result<OriginProcess, RoleError> {
        let name = "origin".to_owned();
        let failed = |error: serde_json::Error| RoleError::Start { role: name.clone(), error: error.into() };
        let spec = serde_json::to_string(spec).map_err(failed)?;
        let args = vec![name.clone(), "--with-parent".to_owned(), "--spec".to_owned(), spec];
        let link = Link::start(host, RoleSpec { name, args, output: output.to_owned(), hold: false })?;
        let clock = host.local_clock();
        let deadline = clock.now().plus(LISTENS_WITHIN);
        loop {
            if let OriginReport::Listens { listening, also, driver } = link.receive(clock.left(deadline))? {
                let addrs = std::iter::once(listening).chain(also).collect();
                return Ok(OriginProcess { link, addrs, driver });
            }
        }
    }

    /// Its counters now.
    ///
    /// # Errors
    /// When it has ended or says nothing.
    pub fn counters(&self) -> Result<OriginCounters, RoleError> {
        let line =
            self.link.process.ask(&OriginCommand::Counters.line(), open::COUNTERS_WITHIN).map_err(
                |error| match error {
                    ReceiveError::Ended => self.link.ended(),
                    ReceiveError::Timeout => self.link.silent(open::COUNTERS_WITHIN),
                },
            )?;
        let report: Option<CountersReport> = serde_json::from_str(&line).ok();
        Ok(report.ok_or_else(|| self.link.silent(open::COUNTERS_WITHIN))?.counters)
    }

    /// Makes it answer nothing for so long, as if it were stopped; it goes on afterwards.
    ///
    /// # Errors
    /// When it is gone.
    pub fn freeze(&self, length: Duration) -> Result<(), RoleError> {
        self.link.process.send(&OriginCommand::Freeze(length).line()).map_err(|_| self.link.ended())
    }

    /// The times of the faults of its members count from this one, by this machine's clock.
    ///
    /// # Errors
    /// When it is gone.
    pub fn begin_faults(&self, at: At) -> Result<(), RoleError> {
        let command = OriginCommand::Faults(self.link.host.at(at).mono_ns);
        self.link.process.send(&command.line()).map_err(|_| self.link.ended())
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.link.process.pid()
    }

    /// Whether it still runs.
    pub fn alive(&self) -> bool {
        self.link.process.alive()
    }

    /// Last lines of its output.
    pub fn last_lines(&self) -> String {
        self.link.last_lines()
    }
}

/// What a client has to run: one load, or a search that runs many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientSpec {
    /// The load; for a search, what all its loads share.
    #[serde(flatten)]
    pub spec: LoadSpec,
    /// The search, if there is one.
    pub search: Option<SearchSpec>,
    /// With its connections up, each load reports [`ClientReport::Ready`] and waits for its start.
    pub waits: bool,
}

/// A search for the highest open rate that meets an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchSpec {
    /// The conditions that the rate has to meet.
    pub objective: Vec<Condition>,
    /// How to search.
    pub options: SearchOptions,
}

impl From<LoadSpec> for ClientSpec {
    fn from(spec: LoadSpec) -> ClientSpec {
        ClientSpec { spec, search: None, waits: false }
    }
}

/// What a client is told while it works: a line each. A line that is none of these ends it early, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCommand {
    /// A waiting search continues.
    Continue,
    /// A waiting load starts at this time: `CLOCK_MONOTONIC` of the client's host, and the wall clock's time that its records show.
    Start(At),
    /// It ends early, and keeps its results so far.
    End,
}

impl ClientCommand {
    /// Reads a line.
    pub fn parse(line: &str) -> ClientCommand {
        let start = |times: &str| {
            let (mono, unix) = times.split_once(' ')?;
            Some(At { mono_ns: mono.parse().ok()?, unix_ns: unix.parse().ok()? })
        };
        match line.strip_prefix("start ").and_then(start) {
            Some(at) => ClientCommand::Start(at),
            None if line == "go on" => ClientCommand::Continue,
            None => ClientCommand::End,
        }
    }

    /// The line.
    pub fn line(self) -> String {
        match self {
            ClientCommand::Continue => "go on".to_owned(),
            ClientCommand::Start(at) => format!("start {} {}", at.mono_ns, at.unix_ns),
            ClientCommand::End => "end".to_owned(),
        }
    }
}

/// What `weir client` reports while it works.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientReport {
    /// Connections are being made.
    Connecting {
        /// Made so far.
        open: u32,
        /// Wanted.
        of: u32,
    },
    /// The connections of a load that waits are up, and its keys are written. The client waits for [`ClientCommand::Start`].
    Ready,
    /// A second of warm-up is over.
    Warmup(LoadSecond),
    /// The measured window begins now.
    WindowStart {
        /// Unix time in milliseconds.
        unix_ms: u64,
    },
    /// A second of the window is over.
    Second(LoadSecond),
    /// The window is over; the client waits for the requests in flight.
    WindowEnd,
    /// A trial of a search is about to begin. The client waits for [`ClientCommand::Continue`].
    Trial {
        /// Which, 0-based.
        number: usize,
        /// What it is for.
        kind: ProbeKind,
        /// Requests a second; `None` for the closed load.
        rate: Option<f64>,
    },
    /// A trial of a search is over.
    Tried(Probe),
    /// The search is over.
    Found(Box<SearchResult>),
    /// The load is done and its files are written.
    Done(Box<LoadResult>),
    /// The load failed; the text says why.
    Failed(String),
}

/// The client's process.
#[derive(Debug)]
pub struct ClientProcess {
    link: Link<ClientReport>,
}

/// Name of the file with the [`ClientSpec`], in the trial's folder.
pub const SPEC_FILE: &str = "load-order.json";

impl ClientProcess {
    /// Starts a client that runs `spec` and writes `latency.hlog` and `load.csv` into `dir`. With `hold`, what it reports in its
    /// window may come with heartbeats ([`RoleSpec::hold`]).
    ///
    /// # Errors
    /// When the spec cannot be written or the process cannot be started.
    pub fn start(
        host: &Arc<dyn Host>,
        spec: &ClientSpec,
        dir: &Path,
        output: &Path,
        hold: bool,
    ) -> Result<ClientProcess, RoleError> {
        host.write(&dir.join(SPEC_FILE), &pretty(spec)?, false)?;
        let args = vec!["client".to_owned(), dir.display().to_string()];
        let spec = RoleSpec { name: "client".to_owned(), args, output: output.to_owned(), hold };
        Ok(ClientProcess { link: Link::start(host, spec)? })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.link.process.pid()
    }

    /// Tells it to start at a time of its host, to continue, or to end.
    ///
    /// # Errors
    /// When it is gone.
    pub fn send(&self, command: ClientCommand) -> Result<(), RoleError> {
        self.link.process.send(&command.line()).map_err(|_| self.link.ended())
    }

    /// Receives the next report, or `None` when none came in time.
    ///
    /// # Errors
    /// When it ended without a last report.
    pub fn receive(&self, within: Duration) -> Result<Option<ClientReport>, RoleError> {
        match self.link.receive(within) {
            Ok(report) => Ok(Some(report)),
            Err(RoleError::Silent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::local::ENDS_WITHIN;
    use super::*;
    use crate::LocalHost;

    /// A role that is a few lines of shell. The script is not a file, because a file just written cannot be executed while a
    /// parallel test forks.
    pub(super) fn shell(script: &str) -> (tempfile::TempDir, Link<OriginReport>) {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let args = vec!["-c".to_owned(), script.to_owned()];
        let spec = RoleSpec { name: "origin".to_owned(), args, output: scratch.path().join("origin.log"), hold: false };
        (scratch, Link::start(&host("/bin/sh"), spec).expect("sh starts"))
    }

    /// This machine, with another program instead of weir.
    fn host(weir: &str) -> Arc<dyn Host> {
        Arc::new(LocalHost::new(weir.into()))
    }

    /// Far more than any test needs, and far less than the roles of these tests would run.
    const LONG: Duration = Duration::from_secs(20);

    fn receive(script: &str, within: Duration) -> Result<OriginReport, String> {
        let begun = Instant::now();
        let (_scratch, link) = shell(script);
        let received = link.receive(within).map_err(|e| e.to_string());
        drop(link);
        assert!(begun.elapsed() < LONG + within, "{:?}", begun.elapsed());
        received
    }

    const REPORT: &str = r#"echo '{"listening":"127.0.0.1:9","also":[],"driver":"epoll"}'"#;

    #[test]
    fn a_report_is_found_between_other_lines() {
        let report =
            receive(&format!("echo; echo hello; echo '{{}}'; {REPORT}; exec sleep 300"), LONG).expect("a report");
        let listening = SocketAddr::from(([127, 0, 0, 1], 9));
        assert_eq!(report, OriginReport::Listens { listening, also: Vec::new(), driver: "epoll".into() });
    }

    /// `"window_end"` is such a report.
    #[test]
    fn a_report_may_be_a_string() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let args = ["-c", r#"echo '"window_end"'; exec sleep 300"#].map(String::from).into();
        let spec = RoleSpec { name: "client".to_owned(), args, output: scratch.path().join("client.log"), hold: false };
        let link: Link<ClientReport> = Link::start(&host("/bin/sh"), spec).expect("sh starts");
        assert!(matches!(link.receive(LONG), Ok(ClientReport::WindowEnd)));
    }

    #[test]
    fn silence_is_reported_with_the_last_lines() {
        let said =
            receive("echo 'thinking it over' >&2; exec sleep 300", Duration::from_millis(500)).expect_err("silent");
        assert_eq!(said, "the origin said nothing for 0.5 s; its last words:\nthinking it over");
    }

    #[test]
    fn an_end_is_reported_at_once_with_the_last_lines() {
        let said = receive("echo 'no ring' >&2; exit 3", Duration::from_secs(600)).expect_err("ended");
        assert_eq!(said, "the origin ended by itself; its last words:\nno ring");
        assert_eq!(receive("exit 0", Duration::from_secs(600)).expect_err("ended"), "the origin ended by itself");
    }

    #[test]
    fn lines_that_are_no_reports_are_quoted() {
        let said = receive("echo 'Segmentation fault, or so'; exit 1", Duration::from_secs(600)).expect_err("ended");
        assert_eq!(said, "the origin ended by itself; its last words:\nSegmentation fault, or so");
    }

    #[test]
    fn a_role_that_does_not_end_is_killed() {
        let (_scratch, link) = shell(&format!("trap '' TERM; {REPORT}; exec sleep 300 <&-"));
        link.receive(LONG).expect("it runs");
        let pid = link.process.pid();
        let begun = Instant::now();
        drop(link);
        assert!(begun.elapsed() >= ENDS_WITHIN, "it was given time");
        assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "gone and reaped");
    }

    #[test]
    fn a_role_ends_when_its_input_is_closed() {
        let (_scratch, link) = shell(&format!("{REPORT}; read line; exit 0"));
        link.receive(LONG).expect("it runs");
        let begun = Instant::now();
        drop(link);
        assert!(begun.elapsed() < ENDS_WITHIN, "not killed: {:?}", begun.elapsed());
    }

    #[test]
    fn an_origin_gets_its_spec() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let listen = vec![SocketAddr::from(([127, 0, 0, 1], 15_001)), SocketAddr::from(([127, 0, 0, 1], 15_002))];
        let spec = OriginSpec { listen, connections: 64, response_key: [10, 11], ..OriginSpec::default() };
        let output = scratch.path().join("origin.log");
        let start = |weir: &str| OriginProcess::start(&host(weir), &spec, &output).expect_err("no origin").to_string();
        let said = start("/bin/echo");
        let json = said.strip_prefix("the origin ended by itself; its last words:\norigin --with-parent --spec ");
        assert_eq!(serde_json::from_str::<OriginSpec>(json.expect("its arguments")).expect("a spec"), spec, "{said}");
        assert!(start("/no/such/weir").starts_with("weir could not start its origin: No such file"));
    }

    #[test]
    fn commands_are_read_as_they_are_written_and_any_other_line_ends_a_client() {
        let start = ClientCommand::Start(At { mono_ns: 17, unix_ns: 1_700_000_000_123_000_000 });
        for command in [start, ClientCommand::Continue, ClientCommand::End] {
            assert_eq!(ClientCommand::parse(&command.line()), command);
        }
        for other in ["", "start", "start 17", "start 17 -1", "start 17 18 19", "start now 18"] {
            assert_eq!(ClientCommand::parse(other), ClientCommand::End, "{other}");
        }
        for command in
            [OriginCommand::Count, OriginCommand::Counters, OriginCommand::Freeze(LONG), OriginCommand::Faults(7)]
        {
            assert_eq!(OriginCommand::parse(&command.line()), Some(command));
        }
        assert_eq!(OriginCommand::parse("freeze it"), None);
    }

    #[test]
    fn a_client_finds_its_spec_in_the_folder() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let spec = ClientSpec::from(load());
        let client =
            ClientProcess::start(&host("/bin/echo"), &spec, scratch.path(), &scratch.path().join("client.log"), false)
                .expect("echo starts");
        let ended = loop {
            match client.receive(Duration::from_millis(50)) {
                Ok(None) => {}
                Ok(Some(report)) => panic!("echo reports {report:?}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(ended.contains(&format!("client {}", scratch.path().display())), "{ended}");
        let written = std::fs::read(scratch.path().join(SPEC_FILE)).expect("written");
        assert_eq!(serde_json::from_slice::<ClientSpec>(&written).expect("a spec"), spec);
        assert_eq!(serde_json::from_slice::<LoadSpec>(&written).expect("a load alone"), spec.spec);
    }

    #[test]
    fn the_spec_of_a_search_has_its_objective() {
        let objective = Condition::list("p99<5ms, errors<0.1%").expect("conditions");
        let search = SearchSpec { objective, options: SearchOptions::default() };
        let spec = ClientSpec { spec: load(), search: Some(search), waits: true };
        let text = serde_json::to_string(&spec).expect("JSON");
        assert_eq!(serde_json::from_str::<ClientSpec>(&text).expect("a spec"), spec);
    }

    #[test]
    fn sending_to_a_client_that_has_ended_is_an_error() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let spec = ClientSpec::from(load());
        let output = scratch.path().join("client.log");
        let client = ClientProcess::start(&host("/bin/true"), &spec, scratch.path(), &output, false).expect("starts");
        while client.receive(Duration::from_millis(50)).is_ok() {}
        // Between fork and exec, a child of a parallel test has the pipe, too.
        let begun = Instant::now();
        let said = loop {
            match client.send(ClientCommand::Continue) {
                Ok(()) => assert!(begun.elapsed() < LONG, "somebody still listens"),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(said, "the client ended by itself");
        assert!(client.send(ClientCommand::End).is_err());
    }

    fn load() -> LoadSpec {
        use weir_model::load::Target;
        use weir_model::suite::{Expect, Request};
        let target = Target::tcp(SocketAddr::from(([127, 0, 0, 1], 9)), "a");
        let request = Request { method: "GET".into(), path: "/".into(), headers: Vec::new(), body: Vec::new() };
        LoadSpec::new(target, request, Expect::default())
    }
}
