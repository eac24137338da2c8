//! A product that was started: waiting until it is ready, verifying, signalling, reloading and ending it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_host::files::pretty;
use weir_host::stop::Stop;
use weir_host::{Ended, Host, Process, ProcessSpec};
use weir_model::product::{Product, ProductKind, Reload, Signal};
use weir_model::record::{Finding, Severity};

use crate::failure::Failure;
use crate::http::{Http, Speech};
use crate::launch::{EVIDENCE_LINES, OUTPUT, environment};
use crate::render::Rendered;

/// How long one request for readiness may take.
const LONGEST_TRY: Duration = Duration::from_secs(2);

/// Its least: what is left of `ready_within` may be next to nothing.
const LEAST_TRY: Duration = Duration::from_millis(50);

/// How long a command that makes a product reload may take.
const RELOADS_WITHIN: Duration = Duration::from_secs(10);

/// A product that was started.
#[derive(Debug)]
pub struct Running {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) process: Box<dyn Process>,
    /// Where the client finds it.
    pub addr: SocketAddr,
    pub(crate) title: String,
    pub(crate) folder: PathBuf,
    pub(crate) rendered: Rendered,
    /// What it is asked in.
    pub(crate) speech: Speech,
}

impl Running {
    /// Waits until a real request through the product is answered by the origin.
    pub fn wait_ready(&mut self, within: Duration, stop: &Stop) -> Result<(), Failure> {
        let deadline = Instant::now() + within;
        let mut last = String::from("no answer");
        while Instant::now() < deadline {
            if stop.wanted() {
                return Err(Failure::Stopped);
            }
            self.still_runs("ready")?;
            // A product that accepts and never answers must not take longer than one that does not listen.
            let patience = deadline.saturating_duration_since(Instant::now()).clamp(LEAST_TRY, LONGEST_TRY);
            match Http::speaking(self.addr, patience, self.speech.clone()).get("/_weir/ready") {
                Ok(answer) if answer.status == 204 => return Ok(()),
                Ok(answer) => last = format!("status {} instead of the origin's 204", answer.status),
                Err(error) => last = error,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(Failure::at(
            "ready",
            format!("{} did not get ready within {} s; last try: {last}", self.title, within.as_secs_f64()),
            self.evidence(),
            "see its output and its rendered configuration in the trial's folder; raise `ready_within` if it is only slow",
        ))
    }

    /// Fails when the process has ended.
    pub fn still_runs(&mut self, stage: &str) -> Result<(), Failure> {
        match self.process.ended() {
            None => Ok(()),
            Some(ended) => Err(Failure::at(
                stage,
                format!("{} ended by itself ({ended}) while weir needed it", self.title),
                self.evidence(),
                "see its output and its rendered configuration in the trial's folder",
            )),
        }
    }

    /// Fails when the listening socket is not this process's.
    pub fn verify_listener(&self) -> Result<(), Failure> {
        self.host
            .owns_listener(self.process.root(), self.addr)
            .map_err(|e| Failure::at("verify", e, self.evidence(), "end the other process, or try again"))
    }

    /// Its processes, now.
    pub fn processes(&self) -> Vec<u32> {
        self.host.descendants(self.process.root())
    }

    /// The supervisor's pid, root of the product's process tree.
    pub fn root(&self) -> u32 {
        self.process.root()
    }

    /// Where to look, and the last lines of the output.
    pub fn evidence(&self) -> String {
        let path = self.folder.join(OUTPUT);
        let lines = self.host.last_lines(&path, EVIDENCE_LINES);
        if lines.is_empty() { format!("{} is empty", path.display()) } else { format!("{}:\n{lines}", path.display()) }
    }

    /// Ends it and writes down how it ended; a finding when it did not end as asked.
    pub fn stop(self, product: &Product) -> Option<Finding> {
        let grace = match &product.kind {
            ProductKind::Proxy(program) => program.process.stop_within,
            ProductKind::Direct => Duration::ZERO,
        };
        let ended = self.process.stop(grace);
        if let ProductKind::Proxy(program) = &product.kind {
            // Data bases of 60 MB, say, in each of a hundred trials.
            program.process.scratch.iter().for_each(|name| self.host.remove(&self.folder.join(name)));
        }
        if let Ok(json) = pretty(&ended) {
            // Evidence, not a result: a full disk shows when the measurement itself is written.
            let _ = self.host.write(&self.folder.join("exit.json"), &json, false);
        }
        if !ended.forced {
            return None;
        }
        Some(Finding {
            check: "stop".to_owned(),
            severity: Severity::Note,
            message: format!("{} did not end within {} s of SIGTERM and was killed", self.title, grace.as_secs_f64()),
            remedy: "raise `stop_within` in its product file".to_owned(),
        })
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<Ended> {
        self.process.ended()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&mut self, signal: Signal) -> std::io::Result<()> {
        self.process.signal(signal)
    }

    /// Makes it read its configuration anew, as its file says. A signal is sent and not waited for; a command has to succeed.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub fn reload(&mut self, stop: &Stop) -> Result<(), String> {
        match self.rendered.reload.clone() {
            None => Err("its file names no way to reload".to_owned()),
            Some(Reload::Signal(signal)) => self.signal(signal).map_err(|e| e.to_string()),
            Some(Reload::Command(argv)) => self.beside(argv, stop),
        }
    }

    /// Runs a command of the product's own, in its folder and environment, under a supervisor as the product is.
    fn beside(&self, argv: Vec<String>, stop: &Stop) -> Result<(), String> {
        let output = self.folder.join("reload.log");
        let name = argv.first().cloned().unwrap_or_default();
        let env = environment(&self.rendered.env);
        let spec =
            ProcessSpec { argv, env, dir: self.folder.clone(), output: output.clone(), ..ProcessSpec::default() };
        let mut process = self.host.start(&spec).map_err(|e| e.to_string())?;
        let deadline = Instant::now() + RELOADS_WITHIN;
        loop {
            match process.wait(Duration::from_millis(50)) {
                Some(Ended { code: Some(0), .. }) => return Ok(()),
                Some(ended) => return Err(format!("{name}: {ended}; {}", self.host.last_lines(&output, 3))),
                None if stop.wanted() => return Err("stopped on request".to_owned()),
                None if Instant::now() > deadline => {
                    return Err(format!("{name} was not done after {} s", RELOADS_WITHIN.as_secs()));
                }
                None => {}
            }
        }
    }
}
