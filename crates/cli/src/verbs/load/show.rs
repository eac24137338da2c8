//! How a load is shown while it runs: a line a second, and on a terminal one more that says what goes on now.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use weir_load::Progress;
use weir_model::load::{LoadSecond, LoadSpec, Shape};
use weir_model::suite::Arrivals;
use weir_model::units::{human_rate, human_us};

use crate::progress::minutes;
use crate::words::{count, counted, rate, time};

/// Lines on standard error while the load runs, and on a terminal one more that says what goes on now.
#[derive(Debug)]
pub struct Live {
    quiet: bool,
    bar: ProgressBar,
    shape: Shape,
    window_s: f64,
    done: u64,
}

impl Live {
    /// Says what is going to happen.
    pub fn new(quiet: bool, spec: &LoadSpec, url: &str) -> Live {
        let bar =
            if quiet || !console::user_attended_stderr() { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        if !quiet {
            remark!("{url}\n{}", describe(spec));
        }
        // Only now: a line written beside a bar that is being drawn would tear it.
        bar.set_message("connecting");
        bar.enable_steady_tick(Duration::from_millis(250));
        Live { quiet, bar, shape: spec.shape.clone(), window_s: spec.duration_s, done: 0 }
    }

    /// Shows one step.
    pub fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Connecting { open, of } => self.bar.set_message(format!("connecting: {open} of {of}")),
            Progress::Warmup { row, .. } => {
                self.bar.set_message("warming up");
                self.line(&format!("warm-up  {}", second(row)));
            }
            Progress::WindowStart { .. } => self.bar.set_message(self.left(0.0)),
            Progress::Second(row) => {
                self.done += row.right + row.errors;
                let end = f64::from(row.second) + row.length_s;
                self.bar.set_message(self.left(end));
                self.line(&format!("{:>7}  {}", human_us(end * 1e6), second(row)));
            }
            Progress::WindowEnd => self.bar.set_message("the window is over"),
            Progress::Draining { in_flight } => {
                self.bar
                    .set_message(format!("waiting for {}; Ctrl-C twice gives them up", counted(*in_flight, "answer")));
            }
            _ => {}
        }
    }

    fn left(&self, end_s: f64) -> String {
        match self.shape {
            Shape::Count { requests } => format!("{} of {} done", count(self.done), counted(requests, "request")),
            _ => {
                let left = Duration::try_from_secs_f64(self.window_s - end_s).unwrap_or_default();
                format!("measuring, {} left; Ctrl-C ends it and keeps what was measured", minutes(left))
            }
        }
    }

    fn line(&self, text: &str) {
        if self.quiet {
        } else if self.bar.is_hidden() {
            remark!("{text}");
        } else {
            self.bar.println(text);
        }
    }

    /// Clears what is transient.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// What was ordered, in a line.
pub fn describe(spec: &LoadSpec) -> String {
    let seconds = |s: f64| human_us(s * 1e6);
    let warmup = if spec.warmup_s > 0.0 { format!(" + {} warm-up", seconds(spec.warmup_s)) } else { String::new() };
    let (kind, length) = match &spec.shape {
        Shape::Closed => ("closed load".to_owned(), format!(", {}{warmup}", seconds(spec.duration_s))),
        Shape::Count { requests } => (counted(*requests, "request"), String::new()),
        Shape::Open { rate: offered, arrivals } => (
            format!("open load, {} {}", rate(*offered), spacing(*arrivals)),
            format!(", {}{warmup}", seconds(spec.duration_s)),
        ),
        Shape::Ramp { from, to, arrivals } => (
            format!("open load, {} to {} {}", rate(*from), rate(*to), spacing(*arrivals)),
            format!(", {}{warmup}", seconds(spec.duration_s)),
        ),
        Shape::Steps { steps, arrivals } => (
            format!("open load in {} {}", counted(steps.len() as u64, "step"), spacing(*arrivals)),
            format!(", {}{warmup}", seconds(spec.duration_s)),
        ),
        Shape::Replay { due_s } => {
            (format!("replay of {}", counted(due_s.len() as u64, "request")), format!(", {}", seconds(spec.duration_s)))
        }
    };
    let connections = counted(spec.connections.into(), "connection");
    format!("{kind}, {connections}, {}{length}", counted(spec.threads.into(), "thread"))
}

fn spacing(arrivals: Arrivals) -> &'static str {
    match arrivals {
        Arrivals::Constant => "constant",
        Arrivals::Poisson => "Poisson",
    }
}

fn second(row: &LoadSecond) -> String {
    let errors = if row.errors > 0 { format!("  errors {}", count(row.errors)) } else { String::new() };
    let right = if row.length_s > 0.0 { human_rate(row.right as f64 / row.length_s) } else { "-".to_owned() };
    // Nothing that was due in the window ended in this second: what came was due in the warm-up.
    let latency = |us: f64| if row.max_us > 0.0 { time(us) } else { "-".to_owned() };
    format!(
        "{right:>9}  p50 {:>7}  p99 {:>7}  max {:>7}{errors}",
        latency(row.p50_us),
        latency(row.p99_us),
        latency(row.max_us)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_samples_has_no_latency() {
        let row = LoadSecond { length_s: 1.0, right: 116_000, ..LoadSecond::default() };
        assert_eq!(second(&row), "   116k/s  p50       -  p99       -  max       -");
    }

    #[test]
    fn a_second_fits_eighty_columns() {
        let row = LoadSecond {
            length_s: 1.0,
            right: 1_160_000,
            errors: 123_456,
            p50_us: 65.52,
            p99_us: 9_990.0,
            max_us: 1e7,
            ..LoadSecond::default()
        };
        assert_eq!(
            second(&row),
            "1.16M/s  p50 65.5 us  p99 9.99 ms  max  10.0 s  errors 123,456".replacen("1.16", "  1.16", 1)
        );
        assert!(second(&row).len() + 9 <= 80);
    }
}
