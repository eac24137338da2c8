//! The progress of `weir load` on standard error: on a terminal a view that is redrawn in place, otherwise one line a second,
//! and nothing with `--quiet`. It has no clock, and no other thread of the load draws.

use console::style;
use weir_load::{Detail, Progress};
use weir_model::load::{LONGEST_S, LoadSecond, LoadSpec, OfferedRate, Quantiles};
use weir_model::suite::LoadKind;
use weir_model::text::{count, counted, fixed_us, human_rate, human_us};

use super::describe::{describe, keyvalue, percentiles, protocol};
use crate::progress::{Status, minutes_s, template};

/// Columns of the names of lines.
const LABEL: usize = 12;

/// Columns of the bar.
const BAR: usize = 40;

/// Shows a load.
pub struct Live {
    status: Status,
    head: Vec<String>,
    kind: LoadKind<OfferedRate>,
    window_s: f64,
    warmup_s: f64,
    /// What goes on now.
    phase: String,
    successful: u64,
    errors: u64,
    detail: Detail,
}

impl Live {
    /// Prints what is going to happen.
    pub fn new(quiet: bool, spec: &LoadSpec, title: &str) -> Live {
        let status = Status::new(quiet, template("{msg}"), None);
        let head: Vec<String> =
            [title.to_owned(), describe(spec)].into_iter().chain(protocol(spec, spec.protocol.streams())).collect();
        if !status.live {
            head.iter().for_each(|line| status.line(line));
        }
        Live {
            status,
            head: head.into_iter().chain(keyvalue(spec)).collect(),
            kind: spec.kind.clone(),
            window_s: spec.duration_s,
            warmup_s: spec.warmup_s,
            phase: String::new(),
            successful: 0,
            errors: 0,
            detail: Detail::default(),
        }
    }

    /// Shows how the load goes on.
    pub fn update(&mut self, progress: &Progress) {
        let line = |text: String| {
            if !self.status.live {
                self.status.line(&text);
            }
        };
        match progress {
            Progress::Connecting { open, of } => {
                self.phase = format!("connecting  {} of {}", count((*open).into()), count((*of).into()));
            }
            Progress::Warmup { second: done, row } => {
                line(format!("warm-up  {}", second(row)));
                self.phase = format!("warming up  {} s of {}", done + 1, minutes_s(self.warmup_s));
            }
            Progress::WindowStart { .. } => self.phase = self.measuring(0.0),
            Progress::Second(row) => {
                let end_s = f64::from(row.second) + row.length_s;
                line(format!("{:>7}  {}", human_us(end_s * 1e6), second(row)));
                (self.successful, self.errors) = (self.successful + row.successful, self.errors + row.errors);
                self.phase = self.measuring(end_s);
            }
            Progress::Detail(detail) => self.detail = (**detail).clone(),
            Progress::WindowEnd => self.phase = "the window is over".to_owned(),
            Progress::Draining { in_flight } => {
                let responses = counted(*in_flight, "response");
                self.phase = format!("waiting for {responses}; press Ctrl-C twice to give up");
            }
            _ => {}
        }
        if self.status.live {
            let width = self.status.width();
            let lines = self.view().into_iter().map(|line| console::truncate_str(&line, width, "…").into_owned());
            self.status.show(lines.collect::<Vec<_>>().join("\n"));
        }
    }

    /// How far the window is, where it has an end.
    fn measuring(&self, elapsed_s: f64) -> String {
        let (done, all) = (self.successful + self.errors, self.window_s);
        let (share, words) = match self.kind {
            LoadKind::Count { requests } => {
                (done as f64 / requests.max(1) as f64, format!("{} of {}", count(done), count(requests)))
            }
            _ if all >= LONGEST_S => return format!("{:<LABEL$}{}", "measuring", minutes_s(elapsed_s)),
            _ => (elapsed_s / all.max(1e-6), format!("{} of {}", minutes_s(elapsed_s), minutes_s(all))),
        };
        let left =
            if share > 0.0 { format!(", {} left", minutes_s(elapsed_s * (1.0 / share - 1.0))) } else { String::new() };
        let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
        let bar = format!("{}{}", style("━".repeat(full)).cyan().for_stderr(), "─".repeat(BAR - full));
        format!("{:<LABEL$}{bar}  {words}{left}", "measuring")
    }

    /// All lines of the view.
    fn view(&self) -> Vec<String> {
        let detail = &self.detail;
        let us = |us: f64| if us > 0.0 { fixed_us(us) } else { "-".to_owned() };
        let row = |name: &str, q: &Quantiles| {
            let cells = [q.p50_us, q.p90_us, q.p99_us, q.p999_us, q.max_us].map(|value| format!("{:>9}", us(value)));
            format!("{name:<LABEL$}{}", cells.concat())
        };
        let heads: String = percentiles().into_iter().chain(["max"]).map(|head| format!("{head:>9}")).collect();
        let ended = format!("{} successful, {} failed", count(self.successful), count(self.errors));
        let mut errors: Vec<_> = detail.errors.iter().collect();
        errors.sort_by_key(|(kind, n)| (!kind.is_wrong_data(), std::cmp::Reverse(**n)));
        let errors = errors.into_iter().map(|(kind, n)| format!("{} {}", count(*n), kind.as_str().replace('_', " ")));
        let errors = errors.collect::<Vec<_>>().join(", ");
        let mut lines = self.head.clone();
        lines.extend([
            self.phase.clone(),
            String::new(),
            format!("{:<LABEL$}{heads}", "latency"),
            row("last second", &detail.second),
            row("so far", &detail.so_far),
            String::new(),
            format!("{:<LABEL$}{ended}, {} in flight", "requests", count(detail.in_flight)),
            format!("{:<LABEL$}{} open", "connections", count(detail.open.into())),
        ]);
        lines.extend((!errors.is_empty()).then(|| format!("{:<LABEL$}{}", "errors", style(errors).red().for_stderr())));
        lines.push(style("Ctrl-C stops and keeps what was measured").dim().for_stderr().to_string());
        lines
    }
}

/// Turns colours on or off, for standard output and standard error: as `--color` says, else as `NO_COLOR` does.
pub fn colors(wanted: Option<bool>) {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if let Some(wanted) = wanted.or(forbidden.then_some(false)) {
        console::set_colors_enabled(wanted);
        console::set_colors_enabled_stderr(wanted);
    }
}

fn second(row: &LoadSecond) -> String {
    let errors = if row.errors > 0 { format!("  errors {}", count(row.errors)) } else { String::new() };
    let successful = if row.length_s > 0.0 { human_rate(row.successful as f64 / row.length_s) } else { "-".to_owned() };
    let latency = |us: f64| if row.max_us > 0.0 { fixed_us(us) } else { "-".to_owned() };
    format!(
        "{successful:>9}  p50 {:>7}  p99 {:>7}  max {:>7}{errors}",
        latency(row.p50_us),
        latency(row.p99_us),
        latency(row.max_us)
    )
}

#[cfg(test)]
mod tests {
    use weir_model::load::ErrorKind;

    use super::*;
    use crate::load::sample;

    #[test]
    fn a_second_without_samples_has_no_latency() {
        let row = LoadSecond { length_s: 1.0, successful: 116_000, ..LoadSecond::default() };
        assert_eq!(second(&row), "   116k/s  p50       -  p99       -  max       -");
    }

    #[test]
    fn a_second_fits_eighty_columns() {
        let row = LoadSecond {
            length_s: 1.0,
            successful: 1_160_000,
            errors: 123_456,
            p50_us: 65.52,
            p99_us: 9_990.0,
            max_us: 1e7,
            ..LoadSecond::default()
        };
        assert_eq!(second(&row), "  1.16M/s  p50 65.5 µs  p99 9.99 ms  max  10.0 s  errors 123,456");
        assert!(second(&row).len() + 9 <= 80);
    }

    #[test]
    fn the_view_is_as_kept() {
        console::set_colors_enabled_stderr(false);
        let sample = sample::everything();
        let mut live = Live::new(true, &LoadSpec { duration_s: 30.0, ..sample.spec.clone() }, sample::URL);
        live.update(&Progress::WindowStart { unix_ms: 0 });
        for second in 0..12u32 {
            let (successful, errors) = if second == 4 { (3_000, 900) } else { (9_500 + u64::from(second) * 40, 0) };
            live.update(&Progress::Second(LoadSecond {
                second,
                length_s: 1.0,
                successful,
                errors,
                ..LoadSecond::default()
            }));
        }
        let errors =
            [(ErrorKind::BadStatus, 700), (ErrorKind::Reset, 100), (ErrorKind::Timeout, 99), (ErrorKind::Lost, 1)];
        let detail = Detail {
            second: sample.result.latency.clone(),
            so_far: Quantiles { p999_us: 48_100.0, max_us: 1_234_567.0, ..sample.result.latency.clone() },
            errors: errors.into(),
            open: 8,
            in_flight: 31,
            ..Detail::default()
        };
        live.update(&Progress::Detail(Box::new(detail)));
        let view = live.view();
        sample::kept("live", &format!("{}\n", view.join("\n")));
        assert!(view.iter().all(|line| console::measure_text_width(line) <= 80), "{view:?}");
    }

    #[test]
    fn each_phase_says_what_goes_on() {
        let sample = sample::plain();
        let phase = |spec: &LoadSpec, progress: &[Progress]| {
            let mut live = Live::new(true, spec, sample::URL);
            progress.iter().for_each(|progress| live.update(progress));
            live.phase
        };
        let plain = |progress| phase(&sample.spec, &[progress]);
        assert_eq!(plain(Progress::Connecting { open: 1_200, of: 20_000 }), "connecting  1,200 of 20,000");
        assert_eq!(plain(Progress::Warmup { second: 0, row: LoadSecond::default() }), "warming up  1 s of 1s");
        let draining = plain(Progress::Draining { in_flight: 1 });
        assert_eq!(draining, "waiting for 1 response; press Ctrl-C twice to give up");
        let start = || Progress::WindowStart { unix_ms: 0 };
        let endless = LoadSpec { duration_s: LONGEST_S, ..sample.spec.clone() };
        let last = Progress::Second(LoadSecond { second: 64, length_s: 1.0, ..LoadSecond::default() });
        assert_eq!(phase(&endless, &[start(), last]), "measuring   1m05s");
        let counted = LoadSpec { kind: LoadKind::Count { requests: 1_000 }, ..sample.spec.clone() };
        let first = Progress::Second(LoadSecond { length_s: 1.0, successful: 250, ..LoadSecond::default() });
        let words = phase(&counted, &[start(), first]);
        assert!(words.ends_with("250 of 1,000, 3s left"), "{words}");
    }
}
