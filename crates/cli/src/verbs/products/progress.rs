//! The progress of an installation on standard error: a status line on a terminal, otherwise a line every half minute,
//! so that a long build does not look like a hang. Used by `verbs::products::install`.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_install::Progress;

use crate::progress::minutes;

/// Time between two lines without a terminal.
const PAUSE: Duration = Duration::from_secs(30);

/// Shows one step on standard error.
#[derive(Debug)]
pub struct InstallProgress {
    bar: ProgressBar,
    live: bool,
    began: Instant,
    last_line: Instant,
    now: String,
}

impl InstallProgress {
    pub fn new() -> InstallProgress {
        let live = console::user_attended_stderr();
        let target = if live { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("    {spinner} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        if live {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        let now = Instant::now();
        InstallProgress { bar, live, began: now, last_line: now, now: String::new() }
    }

    pub fn update(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Action(line) => {
                self.now = line.to_owned();
                self.line(&format!("    {line}"));
            }
            Progress::Line(line) => line.trim().clone_into(&mut self.now),
            Progress::Bytes { done, of } => self.now = bytes(done, of),
            Progress::Tick => {}
        }
        if self.live {
            self.bar.set_message(plain(&self.now));
        } else if self.last_line.elapsed() >= PAUSE {
            let took = minutes(self.began.elapsed());
            self.line(&format!("    {took}: {}", plain(&self.now)));
        }
    }

    fn line(&mut self, line: &str) {
        match self.live {
            true => self.bar.println(line),
            false => remark!("{line}"),
        }
        self.last_line = Instant::now();
    }
}

impl Drop for InstallProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn bytes(done: u64, of: Option<u64>) -> String {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    match of {
        Some(of) => format!("{:.1} of {:.1} MB", mb(done), mb(of)),
        None => format!("{:.1} MB", mb(done)),
    }
}

/// Without the colours that programs print, which would spill over the status line.
fn plain(line: &str) -> String {
    console::strip_ansi_codes(line).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_with_what_is_known() {
        assert_eq!(bytes(1_250_000, Some(50_000_000)), "1.2 of 50.0 MB");
        assert_eq!(bytes(1_250_000, None), "1.2 MB");
    }

    #[test]
    fn colours_and_control_characters_are_skipped() {
        assert_eq!(plain("\u{1b}[32m   Compiling\u{1b}[0m x\u{7}"), "   Compiling x");
    }
}
