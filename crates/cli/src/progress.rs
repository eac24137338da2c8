//! How a run is shown while it goes: one line that names what is running and the time left on a terminal, one line
//! a finished trial elsewhere, nothing on standard output (that is for results).

use std::time::Duration;

use console::style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_lab::run::{Happening, Observer};
use weir_model::record::{CaseId, Measurement, Verdict};
use weir_model::units::{human_rate, human_us};

/// Shows a run on standard error.
#[derive(Debug)]
pub struct RunProgress {
    bar: ProgressBar,
    live: bool,
    quiet: bool,
    trials: usize,
    now: String,
}

impl RunProgress {
    /// `quiet` shows nothing.
    pub fn new(quiet: bool) -> RunProgress {
        let live = !quiet && console::user_attended_stderr();
        let bar = ProgressBar::with_draw_target(
            Some(0),
            if live { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() },
        );
        if let Ok(style) = ProgressStyle::with_template("{bar:24.cyan} {pos}/{len} {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        RunProgress { bar, live, quiet, trials: 0, now: String::new() }
    }

    fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        if self.live { self.bar.println(text) } else { eprintln!("{text}") }
    }
}

impl Observer for RunProgress {
    fn see(&mut self, happening: Happening<'_>) {
        match happening {
            Happening::Begin { trials, finished, folder } => {
                self.trials = trials;
                self.bar.set_length(trials as u64);
                self.bar.set_position(finished as u64);
                let resumed =
                    if finished > 0 { format!(", {finished} of them finished before") } else { String::new() };
                self.line(&format!("{trials} trials{resumed}, into {}", folder.display()));
            }
            Happening::Rate(chosen) => {
                let entry = chosen.entry.as_ref().map(|e| format!(" for {}", e.product)).unwrap_or_default();
                self.line(&format!(
                    "{} {}: {} offered{entry}, from the {} of {}",
                    chosen.load,
                    chosen.workload,
                    human_rate(chosen.rate),
                    human_rate(chosen.capacity),
                    chosen.basis.product
                ));
            }
            Happening::Trial { planned, left } => {
                self.now = format!("{} · block {} · {} left", words(&planned.case), planned.block, minutes(left));
                self.bar.set_message(self.now.clone());
            }
            Happening::Stage(stage) => self.bar.set_message(format!("{} · {stage}", self.now)),
            Happening::Second(row) => self.bar.set_message(format!(
                "{} · {} p99 {}",
                self.now,
                human_rate(row.right as f64 / row.length_s.max(0.001)),
                human_us(row.p99_us)
            )),
            Happening::Finished(measurement) => {
                self.bar.inc(1);
                self.line(&finished(measurement, self.trials));
            }
        }
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn words(case: &CaseId) -> String {
    format!("{} {} · {} · {}", case.product, case.profile, case.workload, case.load)
}

/// `3m20s`, `45s`.
pub fn minutes(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    if seconds >= 60 { format!("{}m{:02}s", seconds / 60, seconds % 60) } else { format!("{seconds}s") }
}

fn finished(m: &Measurement, of: usize) -> String {
    let number = format!("[{:>w$}/{of}]", m.trial, w = of.to_string().len());
    let head = format!("{number} {:<44}", words(&m.case));
    let Some(load) = &m.load else {
        let why = m.error.as_ref().map(|e| format!("{}: {}", e.stage, e.message)).unwrap_or_default();
        return format!("{head} {} {why}", style("error").red().for_stderr());
    };
    let verdict = match m.verdict {
        Verdict::Valid => style("valid").green(),
        Verdict::Suspect => style("suspect").yellow(),
        other => style(other.as_str()).red(),
    };
    let findings: Vec<&str> = m.findings.iter().map(|f| f.check.as_str()).collect();
    format!(
        "{head} {:>9}  p50 {:>8}  p99 {:>8}  {} {}",
        human_rate(load.rate),
        human_us(load.latency.p50_us),
        human_us(load.latency.p99_us),
        verdict.for_stderr(),
        findings.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        assert_eq!(minutes(Duration::from_secs(45)), "45s");
        assert_eq!(minutes(Duration::from_millis(200_400)), "3m20s");
    }
}
