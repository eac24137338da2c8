//! A product's part of a trial, be it the proxy or the origin: render, check, start, ready, stop.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_model::product::{Product, ProductKind};
use weir_model::record::{Finding, Severity};
use weir_model::suite::Protocol;

use super::failure::Failure;
use super::scratch;
use super::{Bench, Order};
use crate::http::{Http, Speech};
use crate::render::{self, Rendered, Vars};
use crate::stop::Stop;
use crate::supervisor::{self, Kept, descendants};
use crate::tail::last_lines;
use crate::verify;

/// Name of the file that takes the product's output.
pub const OUTPUT: &str = "output.log";

/// Lines of output quoted as evidence.
const EVIDENCE_LINES: usize = 8;

/// How long one request for readiness may take.
const LONGEST_TRY: Duration = Duration::from_secs(2);

/// Its least: what is left of `ready_within` may be next to nothing.
const LEAST_TRY: Duration = Duration::from_millis(50);

/// How long a product's check of its own configuration may take. They take tens of milliseconds; one that takes this
/// long waits for something that does not come.
const CHECK_WITHIN: Duration = Duration::from_secs(30);

/// A product that was started.
#[derive(Debug)]
pub struct Running {
    pub(super) kept: Kept,
    /// Where the client finds it.
    pub addr: SocketAddr,
    title: String,
    pub(super) folder: PathBuf,
    pub(super) rendered: Rendered,
    /// What it is asked in.
    speech: Speech,
}

/// Starts the product of a case between client and origin; `None` for `direct`.
pub fn start(
    bench: &Bench,
    order: &Order<'_>,
    product: &Product,
    origin: SocketAddr,
    listen: SocketAddr,
    stop: &Stop,
) -> Result<Option<Running>, Failure> {
    let ProductKind::Proxy(_) = &product.kind else {
        return Ok(None);
    };
    let place = Place {
        profile: &order.planned.case.profile,
        folder: order.folder.join("product"),
        listen,
        origin,
        cpus: &bench.placement.proxy,
        connections: order.load.connections,
        protocol: order.workload.protocol,
        streams: order.load.streams_of(order.workload.protocol),
        target: &order.workload.request.path,
    };
    launch(bench, product, place, stop).map(Some)
}

/// Where and as what a product runs.
#[derive(Debug)]
pub struct Place<'a> {
    /// Name of the profile.
    pub profile: &'a str,
    /// Its folder, for its configuration and its output.
    pub folder: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where it sends requests on to.
    pub origin: SocketAddr,
    /// Its CPUs.
    pub cpus: &'a [u32],
    /// Connections that the load opens.
    pub connections: u32,
    /// What they speak.
    pub protocol: Protocol,
    /// Streams that each of them may have open.
    pub streams: u32,
    /// Where their requests go; a query is not looked at.
    pub target: &'a str,
}

/// Renders, checks and starts a product.
pub fn launch(bench: &Bench, product: &Product, place: Place<'_>, stop: &Stop) -> Result<Running, Failure> {
    let Place { profile, folder, listen, origin, cpus, connections, protocol, streams, target } = place;
    let speech = spoken(bench, protocol)?;
    let installed = bench.installed.get(&product.name).ok_or_else(|| {
        Failure::at(
            "start",
            format!("{} is not installed", product.title),
            "",
            format!("weir products install {}", product.name),
        )
    })?;
    let vars = Vars {
        binary: installed.binary.clone(),
        listen_host: listen.ip().to_string(),
        listen_port: listen.port(),
        origin_host: origin.ip().to_string(),
        origin_port: origin.port(),
        cores: cpus.len().max(1) as u32,
        connections,
        protocol,
        streams,
        tls: bench.tls.asked(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
    };
    let io = |error| Failure::Journal(crate::journal::JournalError::Io { path: folder.clone(), error });
    std::fs::create_dir_all(&folder).map_err(io)?;
    if protocol.is_tls() {
        bench.tls.write(&folder).map_err(io)?;
    }
    let rendered = render::render(product, profile, &vars, &folder)
        .map_err(|e| Failure::at("render", e.to_string(), "", "correct the product's templates"))?;
    if let Some(check) = &rendered.check {
        run_check(bench, product, check, &rendered, &folder, stop)?;
    }
    if stop.wanted() {
        return Err(Failure::Stopped);
    }
    let kept = Kept::start(
        &bench.weir,
        &supervisor::Order {
            argv: rendered.command.clone(),
            env: environment(&rendered.env),
            dir: folder.clone(),
            output: folder.join(OUTPUT),
            cpus: cpus.to_vec(),
            nice: rendered.nice,
        },
    )
    .map_err(|e| {
        Failure::at("start", e.to_string(), command_line(&rendered.command), "see that the binary is there and may run")
    })?;
    Ok(Running { kept, addr: listen, title: product.title.clone(), folder, rendered, speech })
}

/// How the lab speaks a protocol in this run.
pub fn spoken(bench: &Bench, protocol: Protocol) -> Result<Speech, Failure> {
    bench.tls.speech(protocol).map_err(|e| Failure::at("start", e, "", "see the suite's [tls]"))
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
        if let Ok(json) = crate::journal::pretty(&ended) {
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
}

/// Runs the product's own configuration check, under a supervisor like the product itself: it is ended when it takes too
/// long, when somebody asks to stop, and when weir goes.
fn run_check(
    bench: &Bench,
    product: &Product,
    argv: &[String],
    rendered: &Rendered,
    folder: &Path,
    stop: &Stop,
) -> Result<(), Failure> {
    let path = folder.join("check.log");
    let failed = |message: String| {
        Failure::at(
            "check",
            message,
            format!("{}\n{}", command_line(argv), last_lines(&path, EVIDENCE_LINES)),
            "correct the product's templates; they are in the trial's folder as rendered",
        )
    };
    let order = supervisor::Order {
        argv: argv.to_vec(),
        env: environment(&rendered.env),
        dir: folder.to_owned(),
        output: path.clone(),
        cpus: Vec::new(),
        nice: 0,
    };
    let mut kept = Kept::start(&bench.weir, &order)
        .map_err(|e| failed(format!("the check of {}'s configuration cannot be run: {e}", product.title)))?;
    let deadline = Instant::now() + CHECK_WITHIN;
    let ended = loop {
        if let Some(ended) = kept.wait(Duration::from_millis(100)) {
            break ended;
        }
        if stop.wanted() {
            return Err(Failure::Stopped);
        }
        if Instant::now() > deadline {
            let within = CHECK_WITHIN.as_secs();
            return Err(failed(format!("{} was not done checking its configuration after {within} s", product.title)));
        }
    };
    match ended.code {
        Some(0) => Ok(()),
        _ => Err(failed(format!("{} refuses its configuration ({ended})", product.title))),
    }
}

/// What every product gets: enough to find its libraries and helpers, and nothing of the user's session that could
/// change how it behaves from one machine to the next.
pub(super) fn environment(own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = ["PATH", "HOME", "LANG", "TMPDIR"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect();
    env.extend(own.clone());
    env
}

/// An argument vector as a line that a person can paste.
fn command_line(argv: &[String]) -> String {
    argv.iter()
        .map(|arg| {
            let plain = !arg.is_empty() && arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c));
            if plain { arg.clone() } else { format!("'{}'", arg.replace('\'', "'\\''")) }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_can_be_pasted() {
        let argv = ["nginx", "-g", "daemon off;", "it's"].map(String::from);
        assert_eq!(command_line(&argv), r"nginx -g 'daemon off;' 'it'\''s'");
    }
}
