//! The progress of `weir load` on standard error: on a terminal a view redrawn in place, otherwise one line a second,
//! and nothing with `--quiet`. It does not change the terminal's modes, so nothing has to be restored. Called by
//! `verbs::load` and `verbs::load::find_max`.

mod redraw;
mod view;

use console::Term;
use weir_load::Progress;
use weir_model::load::{LoadSecond, LoadSpec};
use weir_model::text::{count, fixed_us, human_rate, human_us};

use self::redraw::Redraw;
use self::view::View;
use super::describe::{describe, protocol};

/// Shows a load.
pub enum Live {
    /// Nothing.
    Quiet,
    /// A line a second.
    Lines,
    /// In place, on a terminal.
    Screen(Box<View>, Redraw<Term>),
}

impl Live {
    /// Prints what is going to happen.
    pub fn new(quiet: bool, spec: &LoadSpec, title: &str) -> Live {
        if quiet {
            return Live::Quiet;
        }
        let term = Term::buffered_stderr();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if term.is_term() && !dumb {
            return Live::Screen(Box::new(View::new(spec, title)), Redraw::new(term));
        }
        remark!("{title}\n{}", describe(spec));
        if let Some(protocol) = protocol(spec, spec.protocol.streams()) {
            remark!("{protocol}");
        }
        Live::Lines
    }

    /// Shows one step.
    pub fn update(&mut self, progress: &Progress) {
        match self {
            Live::Quiet => {}
            Live::Lines => match progress {
                Progress::Warmup { row, .. } => remark!("warm-up  {}", second(row)),
                Progress::Second(row) => {
                    let end = f64::from(row.second) + row.length_s;
                    remark!("{:>7}  {}", human_us(end * 1e6), second(row));
                }
                _ => {}
            },
            Live::Screen(view, redraw) => {
                view.update(progress);
                // These two are followed by a `Detail`, which is drawn.
                if !matches!(progress, Progress::Second(_) | Progress::Distributions(_)) {
                    let (height, width) = Term::stderr().size();
                    redraw.draw(&view.frame(width.into(), height.into()), width.into());
                }
            }
        }
    }

    /// Clears what is transient.
    pub fn end(&mut self) {
        if let Live::Screen(_, redraw) = self {
            redraw.clear(Term::stderr().size().1.into());
        }
    }
}

/// Sets colours as asked for; otherwise `NO_COLOR` (see no-color.org) decides.
pub fn colors(wanted: Option<bool>) {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if let Some(wanted) = wanted.or(forbidden.then_some(false)) {
        console::set_colors_enabled(wanted);
        console::set_colors_enabled_stderr(wanted);
    }
}

/// A second in a line.
fn second(row: &LoadSecond) -> String {
    let errors = if row.errors > 0 { format!("  errors {}", count(row.errors)) } else { String::new() };
    let successful = if row.length_s > 0.0 { human_rate(row.successful as f64 / row.length_s) } else { "-".to_owned() };
    // All responses of this second were to requests of the warm-up.
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
    use super::*;

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
}
