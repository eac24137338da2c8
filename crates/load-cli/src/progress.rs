//! Progress on standard error: a status line where that is a terminal, and lines above it that stay. Used by the verbs
//! that take long.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A status line that vanishes when it is dropped.
#[derive(Debug)]
pub struct Status {
    bar: ProgressBar,
    /// There is a terminal, so there is a status line.
    pub live: bool,
    quiet: bool,
}

impl Status {
    /// `style` is a template of indicatif, `steps` the length of its bar. `quiet` shows nothing.
    pub fn new(quiet: bool, style: ProgressStyle, steps: Option<u64>) -> Status {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let live = !quiet && !dumb && console::user_attended_stderr();
        let target = if live { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(steps, target).with_style(style.progress_chars("━╸─"));
        if live {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Status { bar, live, quiet }
    }

    /// Replaces the message in the status line.
    pub fn show(&self, message: impl Into<Cow<'static, str>>) {
        self.bar.set_message(message);
    }

    /// Prints a line that stays, no wider than the terminal.
    pub fn line(&self, text: &str) {
        if self.live {
            self.bar.println(console::truncate_str(text, self.width(), "…"));
        } else if !self.quiet {
            remark!("{text}");
        }
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// So many steps are done, and so many there are.
    pub fn steps(&self, done: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
    }

    /// Columns there are; unbounded where it is no terminal.
    pub fn width(&self) -> usize {
        if self.live { usize::from(console::Term::stderr().size().1) } else { usize::MAX }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The template of a status line, which is constant and right.
pub fn template(text: &str) -> ProgressStyle {
    ProgressStyle::with_template(text).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// `5h46m`, `3m20s`, `45s`.
pub fn minutes(time: Duration) -> String {
    match time.as_secs_f64().round() as u64 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The same of a number of seconds; 0 for one that is no time.
pub fn minutes_s(seconds: f64) -> String {
    minutes(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        assert_eq!(minutes(Duration::from_secs(45)), "45s");
        assert_eq!(minutes(Duration::from_millis(200_400)), "3m20s");
        assert_eq!([minutes_s(21_000.0), minutes_s(-1.0)], ["5h50m", "0s"]);
    }
}
