//! A product that was started: waiting until it is ready, verifying, signalling, reloading and ending it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_host::files::pretty;
use weir_host::stop::Stop;
use weir_host::supervisor::{Ended, Kept, Order, descendants};
use weir_host::tail::last_lines;
use weir_model::product::{Product, ProductKind, Reload, Signal};
use weir_model::record::{Finding, Severity};

use crate::failure::Failure;
use crate::http::{Http, Speech};
use crate::launch::{EVIDENCE_LINES, Launcher, OUTPUT, environment};
use crate::render::Rendered;
use crate::{scratch, verify};

/// How long one request for readiness may take.
const LONGEST_TRY: Duration = Duration::from_secs(2);

/// Its least: what is left of `ready_within` may be next to nothing.
const LEAST_TRY: Duration = Duration::from_millis(50);

/// How long a command that makes a product reload may take.
const RELOADS_WITHIN: Duration = Duration::from_secs(10);

/// A product that was started.
#[derive(Debug)]
pub struct Running {
    pub(crate) kept: Kept,
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
        match self.kept.ended() {
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
        verify::listener_belongs_to(self.addr, &descendants(self.kept.supervisor_pid()))
            .map_err(|e| Failure::at("verify", e, self.evidence(), "end the other process, or try again"))
    }

    /// The supervisor's pid, root of the product's process tree.
    pub fn root(&self) -> u32 {
        self.kept.supervisor_pid()
    }

    /// Where to look, and the last lines of the output.
    pub fn evidence(&self) -> String {
        let path = self.folder.join(OUTPUT);
        let lines = last_lines(&path, EVIDENCE_LINES);
        if lines.is_empty() { format!("{} is empty", path.display()) } else { format!("{}:\n{lines}", path.display()) }
    }

    /// Ends it and writes down how it ended; a finding when it did not end as asked.
    pub fn stop(self, product: &Product) -> Option<Finding> {
        let grace = match &product.kind {
            ProductKind::Proxy(program) => program.process.stop_within,
            ProductKind::Direct => Duration::ZERO,
        };
        let ended = self.kept.stop(grace);
        if let ProductKind::Proxy(program) = &product.kind {
            scratch::clear(&self.folder, &program.process.scratch);
        }
        if let Ok(json) = pretty(&ended) {
            // Evidence, not a result: a full disk shows when the measurement itself is written.
            let _ = std::fs::write(self.folder.join("exit.json"), json);
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
        self.kept.ended()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&mut self, signal: Signal) -> std::io::Result<()> {
        self.kept.signal(match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Int => rustix::process::Signal::INT,
            Signal::Quit => rustix::process::Signal::QUIT,
            Signal::Hup => rustix::process::Signal::HUP,
            Signal::Usr1 => rustix::process::Signal::USR1,
            Signal::Usr2 => rustix::process::Signal::USR2,
            Signal::Winch => rustix::process::Signal::WINCH,
        })
    }

    /// Makes it read its configuration anew, as its file says. A signal is sent and not waited for; a command has to succeed.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub fn reload(&mut self, launcher: &Launcher, stop: &Stop) -> Result<(), String> {
        match self.rendered.reload.clone() {
            None => Err("its file names no way to reload".to_owned()),
            Some(Reload::Signal(signal)) => self.signal(signal).map_err(|e| e.to_string()),
            Some(Reload::Command(argv)) => self.beside(launcher, argv, stop),
        }
    }

    /// Runs a command of the product's own, in its folder and environment, under a supervisor as the product is.
    fn beside(&self, launcher: &Launcher, argv: Vec<String>, stop: &Stop) -> Result<(), String> {
        let output = self.folder.join("reload.log");
        let name = argv.first().cloned().unwrap_or_default();
        let env = environment(&self.rendered.env);
        let order = Order { argv, env, dir: self.folder.clone(), output: output.clone(), cpus: Vec::new(), nice: 0 };
        let mut kept = Kept::start(&launcher.weir, &order).map_err(|e| e.to_string())?;
        let deadline = Instant::now() + RELOADS_WITHIN;
        loop {
            match kept.wait(Duration::from_millis(50)) {
                Some(Ended { code: Some(0), .. }) => return Ok(()),
                Some(ended) => return Err(format!("{name}: {ended}; {}", last_lines(&output, 3))),
                None if stop.wanted() => return Err("stopped on request".to_owned()),
                None if Instant::now() > deadline => {
                    return Err(format!("{name} was not done after {} s", RELOADS_WITHIN.as_secs()));
                }
                None => {}
            }
        }
    }
}
