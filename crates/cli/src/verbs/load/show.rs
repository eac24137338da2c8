//! How a load is shown: a line a second while it runs, one screen at the end.

use std::fmt::Write;

use weir_load::Progress;
use weir_model::load::{LoadResult, LoadSecond, LoadSpec, Quantiles, Shape};
use weir_model::units::{human_bytes, human_rate, human_us};

/// Lines on standard error while the load runs.
#[derive(Debug)]
pub struct Live {
    quiet: bool,
    bar: indicatif::ProgressBar,
}

impl Live {
    /// Says what is going to happen.
    pub fn new(quiet: bool, spec: &LoadSpec, url: &str) -> Live {
        let bar = if quiet || !console::user_attended_stderr() {
            indicatif::ProgressBar::hidden()
        } else {
            indicatif::ProgressBar::new_spinner()
        };
        if !quiet {
            eprintln!("{} at {url}, {} connections, {} thread(s)", describe(spec), spec.connections, spec.threads);
        }
        Live { quiet, bar }
    }

    /// Shows one step.
    pub fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Connecting { open, of } => self.bar.set_message(format!("connecting {open} of {of}")),
            Progress::Warmup { row, .. } => self.line(&format!("warm-up  {}", second(row))),
            Progress::WindowStart { .. } => {}
            Progress::Second(row) => self.line(&format!("{:>5} s  {}", row.second + 1, second(row))),
            Progress::WindowEnd => self.bar.set_message("window over"),
            Progress::Draining { in_flight } => self.bar.set_message(format!("waiting for {in_flight} answers")),
            _ => {}
        }
        self.bar.tick();
    }

    fn line(&self, text: &str) {
        if self.quiet {
        } else if self.bar.is_hidden() {
            eprintln!("{text}");
        } else {
            self.bar.println(text);
        }
    }

    /// Clears what is transient.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn describe(spec: &LoadSpec) -> String {
    match spec.shape {
        Shape::Closed => format!("closed load for {} s", spec.duration_s),
        Shape::Count { requests } => format!("{requests} requests"),
        Shape::Open { rate, arrivals } => {
            format!(
                "open load, {} {} for {} s",
                human_rate(rate),
                format!("{arrivals:?}").to_lowercase(),
                spec.duration_s
            )
        }
    }
}

fn second(row: &LoadSecond) -> String {
    let errors = if row.errors > 0 { format!("  errors {}", row.errors) } else { String::new() };
    format!(
        "{:>9}  p50 {:>8}  p99 {:>8}  max {:>8}{errors}",
        human_rate(row.right as f64 / row.length_s.max(1e-3)),
        human_us(row.p50_us),
        human_us(row.p99_us),
        human_us(row.max_us)
    )
}

/// One screen.
pub fn summary(result: &LoadResult, spec: &LoadSpec) -> String {
    let mut text = String::new();
    let mut line = |args: std::fmt::Arguments<'_>| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{args}");
    };
    let window = &result.window;
    let cut = if result.cut_short { ", cut short" } else { "" };
    line(format_args!("\nrate        {} right answers over {:.2} s{cut}", human_rate(result.rate), result.window_s));
    if let Some(offered) = result.offered_rate {
        line(format_args!("offered     {}; {} due, {} never sent", human_rate(offered), window.due, window.unsent));
    }
    line(format_args!("bodies      {}/s", human_bytes(result.body_bytes_per_s)));
    line(format_args!(
        "requests    {} due, {} sent, {} right, {} failed",
        window.due,
        window.sent,
        window.right,
        window.error_count()
    ));
    if !window.statuses.is_empty() {
        let all: Vec<String> = window.statuses.iter().map(|(status, n)| format!("{status}: {n}")).collect();
        line(format_args!("statuses    {}", all.join(", ")));
    }
    if !window.errors.is_empty() {
        let all: Vec<String> = window.errors.iter().map(|(kind, n)| format!("{}: {n}", kind.as_str())).collect();
        line(format_args!("errors      {}", all.join(", ")));
    }
    line(format_args!("\n{:<10} {}", "", HEADINGS));
    line(format_args!("{:<10} {}", "latency", quantiles(&result.latency)));
    if result.offered_rate.is_some() {
        line(format_args!("{:<10} {}", "service", quantiles(&result.service)));
        line(format_args!("{:<10} {}", "lag", quantiles(&result.lag)));
    }
    line(format_args!("{:<10} {}", "connect", quantiles(&result.connect)));
    let busiest = result.thread_busy.iter().copied().fold(0.0, f64::max);
    let answers = (result.rate * result.window_s).max(1.0);
    line(format_args!(
        "\nclient      {}, {} thread(s), busiest {:.0} % of a CPU, {:.1} us CPU a request",
        result.driver,
        result.threads,
        busiest * 100.0,
        (result.cpu_us.0 + result.cpu_us.1) as f64 / answers
    ));
    if busiest > 0.9 && !matches!(spec.shape, Shape::Open { .. }) {
        line(format_args!("            the client was the limit, not the target: more threads (-t) on more CPUs"));
    }
    text
}

const HEADINGS: &str = "     p50      p90      p99    p99.9   p99.99      max     mean";

fn quantiles(q: &Quantiles) -> String {
    if q.count == 0 {
        return "   (no samples)".to_owned();
    }
    [q.p50_us, q.p90_us, q.p99_us, q.p999_us, q.p9999_us, q.max_us, q.mean_us]
        .iter()
        .map(|us| format!("{:>8}", human_us(*us)))
        .collect::<Vec<_>>()
        .join(" ")
}
