//! The product's part of a trial: render, check, start, ready, stop.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weir_model::product::{Product, ProductKind};
use weir_model::record::{Finding, Severity};

use super::failure::Failure;
use super::{Bench, Order};
use crate::http::Http;
use crate::keeper::{self, Kept, descendants};
use crate::render::{self, Rendered, Vars};
use crate::stop::Stop;
use crate::tail::last_lines;
use crate::verify;

/// Name of the file that takes the product's output.
pub const OUTPUT: &str = "output.log";

/// Lines of output quoted as evidence.
const EVIDENCE_LINES: usize = 8;

/// A product that was started.
#[derive(Debug)]
pub struct Running {
    kept: Kept,
    /// Where the client finds it.
    pub addr: SocketAddr,
    title: String,
    folder: PathBuf,
}

/// Renders, checks and starts the product; `None` for `direct`.
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
    let installed = bench.installed.get(&product.name).ok_or_else(|| {
        Failure::at(
            "start",
            format!("{} is not installed", product.title),
            "",
            format!("weir products install {}", product.name),
        )
    })?;
    let folder = order.folder.join("product");
    let vars = Vars {
        binary: installed.binary.clone(),
        listen_host: listen.ip().to_string(),
        listen_port: listen.port(),
        origin_host: origin.ip().to_string(),
        origin_port: origin.port(),
        cores: bench.placement.proxy.len().max(1) as u32,
        connections: order.load.connections,
    };
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::Journal(crate::journal::JournalError::Io { path: folder.clone(), error }))?;
    let rendered = render::render(product, &order.planned.case.profile, &vars, &folder)
        .map_err(|e| Failure::at("render", e.to_string(), "", "correct the product's templates"))?;
    if let Some(check) = &rendered.check {
        run_check(product, check, &rendered, &folder)?;
    }
    if stop.wanted() {
        return Err(Failure::Stopped);
    }
    let kept = Kept::start(
        &bench.weir,
        &keeper::Order {
            argv: rendered.command.clone(),
            env: environment(&rendered.env),
            dir: folder.clone(),
            output: folder.join(OUTPUT),
            cpus: bench.placement.proxy.clone(),
        },
    )
    .map_err(|e| {
        Failure::at("start", e.to_string(), command_line(&rendered.command), "see that the binary is there and may run")
    })?;
    Ok(Some(Running { kept, addr: listen, title: product.title.clone(), folder }))
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
            match Http::new(self.addr, Duration::from_secs(2)).get("/_weir/ready") {
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
        verify::listener_belongs_to(self.addr, &descendants(self.kept.keeper_pid()))
            .map_err(|e| Failure::at("verify", e, self.evidence(), "end the other process, or try again"))
    }

    /// The keeper's pid, root of the product's process tree.
    pub fn root(&self) -> u32 {
        self.kept.keeper_pid()
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

/// Runs the product's own configuration check.
fn run_check(product: &Product, argv: &[String], rendered: &Rendered, folder: &Path) -> Result<(), Failure> {
    let Some((program, args)) = argv.split_first() else {
        return Ok(());
    };
    let failed = |message: String, evidence: String| {
        Failure::at(
            "check",
            message,
            evidence,
            "correct the product's templates; they are in the trial's folder as rendered",
        )
    };
    let output = Command::new(program)
        .args(args)
        .env_clear()
        .envs(environment(&rendered.env))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed(format!("{} cannot be run: {e}", command_line(argv)), String::new()))?;
    let mut text = output.stdout;
    text.extend(output.stderr);
    let path = folder.join("check.log");
    std::fs::write(&path, &text)
        .map_err(|error| Failure::Journal(crate::journal::JournalError::Io { path: path.clone(), error }))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(
        format!("{} refuses its configuration ({})", product.title, output.status),
        format!("{}\n{}", command_line(argv), last_lines(&path, EVIDENCE_LINES)),
    ))
}

/// What every product gets: enough to find its libraries and helpers, and nothing of the user's session that could
/// change how it behaves from one machine to the next.
fn environment(own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
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
