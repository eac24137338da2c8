//! A running client, with vitals that sample all processes and checks that the product and the origin still run. The series of a
//! trial starts it.
//!
//! This module does not know which windows there are, nor how the client's reports are used.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_model::fault::FaultRecord;
use weir_model::record::Role;
use weir_vitals::{Watched, Window, clock};

use super::TrialContext;
use super::faults::Faults;
use super::serving::RunningOrigin;
use weir_host::role::{ClientProcess, ClientReport, ClientSpec};
use weir_host::stop::Stop;
use weir_host::{Host, Sampler};
use weir_product::failure::Failure;
use weir_product::requester::Requester;
use weir_product::running::Running;

/// How often the other processes are checked while the client reports nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A running client.
#[derive(Debug)]
pub struct Work<'a> {
    host: Arc<dyn Host>,
    client: ClientProcess,
    watch: Box<dyn Sampler>,
    output: PathBuf,
    most: Duration,
    deadline: Instant,
    /// The origin, whose counters can be read meanwhile.
    pub origin: &'a mut RunningOrigin,
    running: &'a mut Option<Running>,
    stop: &'a Stop,
    faults: Faults,
    /// Ends with the client.
    _monitored: Option<Monitored<'a>>,
}

/// What works beside the client.
#[derive(Debug)]
pub struct Others<'a> {
    /// The origin.
    pub origin: &'a mut RunningOrigin,
    /// The product's process; `None` for `direct`.
    pub running: &'a mut Option<Running>,
    /// Sends weir's own requests.
    pub requester: &'a Requester,
}

/// A requester that asks parts for their own numbers, until this is dropped.
#[derive(Debug)]
struct Monitored<'a>(&'a Requester);

impl<'a> Monitored<'a> {
    /// `None`: no part tells any.
    fn start(requester: &'a Requester, running: Option<&Running>, folder: &Path) -> Option<Monitored<'a>> {
        let told = running.map(Running::monitors).filter(|told| !told.is_empty())?;
        // Without them the measurement is as good.
        requester.monitor(told, folder).ok().map(|()| Monitored(requester))
    }
}

impl Drop for Monitored<'_> {
    fn drop(&mut self) {
        let _ = self.0.monitor(Vec::new(), Path::new(""));
    }
}

impl<'a> Work<'a> {
    /// Starts a client in `folder`, which may take `most`.
    pub fn start(
        context: &TrialContext,
        spec: &ClientSpec,
        folder: &Path,
        most: Duration,
        others: Others<'a>,
        stop: &'a Stop,
    ) -> Result<Work<'a>, Failure> {
        let Others { origin, running, requester } = others;
        let output = folder.join("client.log");
        let host = &context.launcher.host;
        let client = ClientProcess::start(host, spec, folder, &output)
            .map_err(|e| load_failed(host.as_ref(), e.to_string(), &output))?;
        let mut watched = vec![Watched::process(Role::Client, client.pid())];
        watched.extend(origin.watched());
        if let Some(running) = running {
            watched.extend(running.watched(Role::Proxy));
        }
        // Vitals may be the first to see that a process has ended; the error must name that process.
        let asked = origin.counted().map(|pid| (Role::Origin, pid)).into_iter().collect();
        let watch = host.watch(watched, asked).or_else(|e| {
            all_alive(origin, running)?;
            Err(load_failed(host.as_ref(), format!("vitals did not start: {e}"), &output))
        })?;
        let monitored = Monitored::start(requester, running.as_ref(), folder);
        let host = Arc::clone(host);
        Ok(Work {
            host,
            client,
            watch,
            output,
            most,
            deadline: Instant::now() + most,
            origin,
            running,
            stop,
            faults: Faults::default(),
            _monitored: monitored,
        })
    }

    /// Provokes these faults in the window.
    pub fn with_faults(self, faults: Faults) -> Work<'a> {
        Work { faults, ..self }
    }

    /// Receives the client's next report; `None` when there is none for now.
    pub fn receive(&mut self) -> Result<Option<ClientReport>, Failure> {
        if self.stop.is_requested() {
            return Err(Failure::Stopped);
        }
        if Instant::now() > self.deadline {
            return Err(self.failed(format!("the client was not done after {} s", self.most.as_secs())));
        }
        if let Some(running) = self.running {
            self.faults.advance(running)?;
        }
        self.all_alive()?;
        let wait = self.faults.wait().map_or(POLL_INTERVAL, |wait| wait.min(POLL_INTERVAL));
        self.client.receive(wait).map_err(|e| self.failed(e.to_string()))
    }

    /// Lets vitals begin a window.
    pub fn begin_window(&mut self) -> Result<(), Failure> {
        self.faults.begin();
        self.watch.begin_window(clock::now(), None).or_else(|e| {
            self.all_alive()?;
            Err(self.failed(format!("vitals failed: {e}")))
        })
    }

    /// Ends the window.
    pub fn end_window(&mut self) -> Result<Window, Failure> {
        self.watch.end_window().map_err(|e| self.failed(format!("vitals failed: {e}")))
    }

    /// Asks the client to end early and to keep its results so far.
    pub fn ask_to_end(&mut self) -> Result<(), Failure> {
        self.client.ask_to_end().map_err(|e| self.failed(e.to_string()))
    }

    /// Lets a waiting client continue.
    pub fn go_on(&mut self) -> Result<(), Failure> {
        self.client.go_on().map_err(|e| self.failed(e.to_string()))
    }

    /// Ends the measurement after the client's last report. Fails if the product or the origin died in the last moment, because
    /// the result would be wrong. Returns the faults that were provoked.
    pub fn end(self) -> Result<Vec<FaultRecord>, Failure> {
        self.watch.stop();
        let faults = self.faults.end(self.running.as_mut())?;
        all_alive(self.origin, self.running)?;
        Ok(faults)
    }

    fn all_alive(&mut self) -> Result<(), Failure> {
        all_alive(self.origin, self.running)
    }

    /// A failure under load.
    pub fn failed(&self, message: impl Into<String>) -> Failure {
        load_failed(self.host.as_ref(), message.into(), &self.output)
    }
}

fn load_failed(host: &dyn Host, message: String, output: &Path) -> Failure {
    Failure::at("load", message, host.last_lines(output, 8), "see client.log in the trial's folder")
}

fn all_alive(origin: &mut RunningOrigin, running: &mut Option<Running>) -> Result<(), Failure> {
    origin.still_runs()?;
    running.as_mut().map_or(Ok(()), |running| running.still_runs("load"))
}
