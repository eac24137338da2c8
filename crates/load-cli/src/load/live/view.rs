//! Turns the progress of a load into the text of the live view. Called by `verbs::load::live`; it knows neither
//! terminal nor clock.

use console::style;
use weir_load::{Detail, Progress};
use weir_model::load::{LONGEST_S, LoadSecond, LoadSpec, OfferedRate, Quantiles};
use weir_model::suite::LoadKind;

use crate::load::describe::{describe, keyvalue, percentiles, protocol};
use crate::progress::minutes_s;
use weir_model::text::{count, counted, fixed_us, full_rate};

/// Kinds of error that are named; the rest are added up.
const KINDS: usize = 3;

/// Columns before figures.
const LABEL: usize = 12;

/// Columns of the line of rates before its curve.
const BEFORE_CURVE: usize = LABEL + 36;

/// Eighths of a row.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The phase of the load.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Connecting { open: u32, of: u32 },
    Warmup { done: u32 },
    Window,
    Over,
    Draining { in_flight: u64 },
}

/// What was reported so far.
#[derive(Debug)]
pub struct View {
    head: Vec<String>,
    kind: LoadKind<OfferedRate>,
    window_s: f64,
    warmup_s: f64,
    phase: Phase,
    rows: Vec<LoadSecond>,
    successful: u64,
    errors: u64,
    detail: Detail,
}

impl View {
    pub fn new(spec: &LoadSpec, title: &str) -> View {
        let mut head = vec![style(title).bold().for_stderr().to_string(), describe(spec)];
        head.extend(protocol(spec, spec.protocol.streams()));
        head.extend(keyvalue(spec));
        View {
            head,
            kind: spec.kind.clone(),
            window_s: spec.duration_s,
            warmup_s: spec.warmup_s,
            phase: Phase::Connecting { open: 0, of: spec.connections },
            rows: Vec::new(),
            successful: 0,
            errors: 0,
            detail: Detail::default(),
        }
    }

    /// Takes in one report.
    pub fn update(&mut self, progress: &Progress) {
        match progress {
            Progress::Connecting { open, of } => self.phase = Phase::Connecting { open: *open, of: *of },
            Progress::Warmup { second, .. } => self.phase = Phase::Warmup { done: second + 1 },
            Progress::WindowStart { .. } => self.phase = Phase::Window,
            Progress::Second(row) => {
                self.successful += row.successful;
                self.errors += row.errors;
                self.rows.push(row.clone());
            }
            Progress::Detail(detail) => self.detail = (**detail).clone(),
            Progress::WindowEnd => self.phase = Phase::Over,
            Progress::Draining { in_flight } => self.phase = Phase::Draining { in_flight: *in_flight },
            _ => {}
        }
    }

    /// The view for a terminal of that size, less its last row: a frame must not scroll.
    pub fn frame(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = self.head.clone();
        lines.push(self.progress(width));
        lines.push(String::new());
        lines.extend(self.curves(width));
        lines.push(String::new());
        lines.extend(self.percentiles());
        lines.push(String::new());
        lines.extend(self.counts());
        lines.push(style("Ctrl-C stops and keeps what was measured").dim().for_stderr().to_string());
        let room = height.saturating_sub(1).max(1);
        if lines.len() > room {
            lines.retain(|line| !line.is_empty());
            lines.truncate(room);
        }
        lines.iter().map(|line| console::truncate_str(line, width, "…").into_owned()).collect()
    }

    /// Seconds of the window that are over.
    fn elapsed(&self) -> f64 {
        self.rows.last().map_or(0.0, |row| f64::from(row.second) + row.length_s)
    }

    fn progress(&self, width: usize) -> String {
        let (share, words) = match (&self.phase, &self.kind) {
            (Phase::Connecting { open, of }, _) => {
                return format!("connecting  {} of {}", count((*open).into()), count((*of).into()));
            }
            (Phase::Warmup { done }, _) => return format!("warming up  {done} s of {}", minutes_s(self.warmup_s)),
            (Phase::Draining { in_flight }, _) => {
                return format!("waiting for {}; press Ctrl-C twice to give up", counted(*in_flight, "response"));
            }
            (Phase::Over, _) => return "the window is over".to_owned(),
            (Phase::Window, LoadKind::Count { requests }) => {
                let done = self.successful + self.errors;
                let share = done as f64 / (*requests).max(1) as f64;
                // At the rate so far.
                let left = if share > 0.0 {
                    format!(", {} left", minutes_s(self.elapsed() * (1.0 / share - 1.0)))
                } else {
                    String::new()
                };
                (share, format!("{} of {}{left}", count(done), count(*requests)))
            }
            (Phase::Window, _) if self.window_s >= LONGEST_S => {
                return format!("{:<LABEL$}{}", "measuring", minutes_s(self.elapsed()));
            }
            (Phase::Window, _) => {
                let elapsed = self.elapsed();
                let left = minutes_s(self.window_s - elapsed);
                (
                    elapsed / self.window_s.max(1e-6),
                    format!("{} of {}, {left} left", minutes_s(elapsed), minutes_s(self.window_s)),
                )
            }
        };
        let room = width.saturating_sub(LABEL + words.chars().count() + 2).min(40);
        format!("{:<LABEL$}{}  {words}", "measuring", bar(share, room))
    }

    /// Rate and p99: now, all in all, and as curves over the seconds.
    fn curves(&self, width: usize) -> [String; 2] {
        let rates: Vec<f64> = self.rows.iter().map(|row| row.successful as f64 / row.length_s.max(1e-3)).collect();
        let p99s: Vec<f64> = self.rows.iter().map(|row| row.p99_us).collect();
        let room = width.saturating_sub(BEFORE_CURVE);
        let elapsed = self.elapsed();
        let mean = if elapsed > 0.0 { full_rate(self.successful as f64 / elapsed) } else { "-".to_owned() };
        let line = |name: &str, now: String, all: String, what: &str, values: &[f64]| {
            let curve = style(curve(values, room)).cyan().for_stderr();
            format!("{name:<LABEL$}{now:>11} now {all:>11} {what:<8}{curve}").trim_end().to_owned()
        };
        let now = rates.last().map_or("-".to_owned(), |now| full_rate(*now));
        [
            line("rate", now, mean, "mean", &rates),
            line("p99", us(self.detail.second.p99_us), us(self.detail.so_far.p99_us), "so far", &p99s),
        ]
    }

    fn percentiles(&self) -> [String; 3] {
        let row = |name: &str, q: &Quantiles| {
            let cells = [q.p50_us, q.p90_us, q.p99_us, q.p999_us, q.max_us].map(|value| format!("{:>9}", us(value)));
            format!("{name:<LABEL$}{}", cells.concat())
        };
        let heads: String = percentiles().into_iter().chain(["max"]).map(|head| format!("{head:>9}")).collect();
        [
            format!("{:<LABEL$}{heads}", "latency"),
            row("last second", &self.detail.second),
            row("so far", &self.detail.so_far),
        ]
    }

    fn counts(&self) -> Vec<String> {
        let detail = &self.detail;
        let mut lines = vec![
            format!(
                "{:<LABEL$}{} successful, {} failed, {} in flight",
                "requests",
                count(self.successful),
                count(self.errors),
                count(detail.in_flight)
            ),
            format!("{:<LABEL$}{} open", "connections", count(detail.open.into())),
        ];
        if !detail.errors.is_empty() {
            let mut kinds: Vec<_> = detail.errors.iter().collect();
            // However few, wrong data are named.
            kinds.sort_by_key(|(kind, n)| (!kind.is_wrong_data(), std::cmp::Reverse(**n)));
            let rest: u64 = kinds.iter().skip(KINDS).map(|(_, n)| **n).sum();
            let mut words: Vec<String> = kinds
                .iter()
                .take(KINDS)
                .map(|(kind, n)| format!("{} {}", count(**n), kind.as_str().replace('_', " ")))
                .collect();
            if rest > 0 {
                words.push(format!("{} other", count(rest)));
            }
            lines.push(format!("{:<LABEL$}{}", "errors", style(words.join(", ")).red().for_stderr()));
        }
        lines
    }
}

/// A time, or that there is none yet.
fn us(us: f64) -> String {
    if us > 0.0 { fixed_us(us) } else { "-".to_owned() }
}

/// A bar of so many columns of which a share is done.
fn bar(share: f64, columns: usize) -> String {
    let done = (share.clamp(0.0, 1.0) * columns as f64).round() as usize;
    format!("{}{}", style("━".repeat(done)).cyan().for_stderr(), "─".repeat(columns - done))
}

/// The last values that fit, each a column, the largest of them a whole row high.
fn curve(values: &[f64], columns: usize) -> String {
    let shown = &values[values.len().saturating_sub(columns)..];
    let most = shown.iter().copied().fold(0.0, f64::max);
    let eighth = |value: &f64| match most > 0.0 {
        true => EIGHTHS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
        false => EIGHTHS[0],
    };
    shown.iter().map(eighth).collect()
}

#[cfg(test)]
mod tests {
    use weir_model::load::ErrorKind;

    use super::*;
    use crate::load::sample;

    fn kept(name: &str, frame: &[String]) {
        sample::kept(name, &format!("{}\n", frame.join("\n")));
    }

    /// Twelve seconds of thirty, the fifth of them bad.
    fn view() -> View {
        console::set_colors_enabled_stderr(false);
        let sample = sample::everything();
        let mut view = View::new(&LoadSpec { duration_s: 30.0, ..sample.spec.clone() }, sample::URL);
        view.update(&Progress::WindowStart { unix_ms: 0 });
        for second in 0..12u32 {
            let bad = second == 4;
            let successful = if bad { 3_000 } else { 9_500 + u64::from(second) * 40 };
            let row = LoadSecond {
                second,
                length_s: 1.0,
                successful,
                errors: if bad { 900 } else { 0 },
                p50_us: 310.0,
                p99_us: if bad { 48_000.0 } else { 1_040.0 + f64::from(second) },
                ..LoadSecond::default()
            };
            view.update(&Progress::Second(row));
        }
        let detail = Detail {
            second: sample.result.latency.clone(),
            so_far: Quantiles { p999_us: 48_100.0, max_us: 1_234_567.0, ..sample.result.latency.clone() },
            errors: [
                (ErrorKind::BadStatus, 700),
                (ErrorKind::Reset, 100),
                (ErrorKind::Timeout, 60),
                (ErrorKind::Tls, 40),
            ]
            .into(),
            open: 8,
            in_flight: 31,
            ..Detail::default()
        };
        view.update(&Progress::Detail(Box::new(detail)));
        view
    }

    #[test]
    fn frames_are_as_kept() {
        let view = view();
        kept("live-80x24", &view.frame(80, 24));
        kept("live-60x24", &view.frame(60, 24));
        kept("live-120x10", &view.frame(120, 10));
    }

    #[test]
    fn no_line_is_wider_than_sixty_columns_must_be() {
        for (width, height) in [(60, 24), (80, 24), (200, 50)] {
            for line in view().frame(width, height) {
                assert!(console::measure_text_width(&line) <= width, "{width}: {line}");
            }
        }
        for (width, height) in [(0, 0), (1, 1), (10, 3)] {
            assert!(view().frame(width, height).len() <= height.max(1));
        }
    }

    #[test]
    fn wrong_data_are_named_first() {
        let mut view = view();
        view.detail.errors.insert(ErrorKind::Lost, 1);
        let line = view.counts().pop().expect("errors");
        assert_eq!(line, "errors      1 lost, 700 bad status, 100 reset, 100 other");
    }

    #[test]
    fn each_phase_says_what_goes_on() {
        let sample = sample::plain();
        let mut view = View::new(&sample.spec, sample::URL);
        let line = |view: &View| view.progress(80);
        view.update(&Progress::Connecting { open: 1_200, of: 20_000 });
        assert_eq!(line(&view), "connecting  1,200 of 20,000");
        view.update(&Progress::Warmup { second: 0, row: LoadSecond::default() });
        assert_eq!(line(&view), "warming up  1 s of 1s");
        view.update(&Progress::Draining { in_flight: 1 });
        assert_eq!(line(&view), "waiting for 1 response; press Ctrl-C twice to give up");
        let mut endless = View::new(&LoadSpec { duration_s: LONGEST_S, ..sample.spec.clone() }, sample::URL);
        endless.update(&Progress::WindowStart { unix_ms: 0 });
        endless.update(&Progress::Second(LoadSecond { second: 64, length_s: 1.0, ..LoadSecond::default() }));
        assert_eq!(line(&endless), "measuring   1m05s");
        let spec = LoadSpec { kind: LoadKind::Count { requests: 1_000 }, ..sample.spec };
        let mut view = View::new(&spec, sample::URL);
        view.update(&Progress::WindowStart { unix_ms: 0 });
        view.update(&Progress::Second(LoadSecond { length_s: 1.0, successful: 250, ..LoadSecond::default() }));
        assert!(line(&view).ends_with("250 of 1,000, 3s left"), "{}", line(&view));
    }

    #[test]
    fn curves_are_scaled_to_their_largest() {
        assert_eq!(curve(&[0.0, 1.0, 4.0, 8.0], 10), "▁▁▄█");
        assert_eq!(curve(&[1.0, 2.0, 3.0], 2), "▆█");
        assert_eq!(curve(&[0.0, 0.0], 5), "▁▁");
        assert_eq!(curve(&[], 5), "");
        assert_eq!(curve(&[1.0], 0), "");
    }
}
