//! The progress of a conformance test on standard error: a status line on a terminal, and the results of each product.
//! Used by `weir products test`.

use std::time::Duration;

use console::style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_conformance::{ProductReport, Progress};
use weir_install::Installed;
use weir_model::product::Product;

use super::block::block;
use crate::progress::minutes;

/// Shows a run on standard error.
#[derive(Debug)]
pub struct TestProgress {
    bar: ProgressBar,
    live: bool,
    quiet: bool,
    now: String,
}

impl TestProgress {
    /// `quiet` shows nothing.
    pub fn new(quiet: bool, cases: usize) -> TestProgress {
        let live = !quiet && console::user_attended_stderr();
        let target = if live { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(cases as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:12.cyan} {pos}/{len} {elapsed} {wide_msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        if live {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        TestProgress { bar, live, quiet, now: String::new() }
    }

    /// A product begins.
    pub fn begin(&mut self, product: &Product, profile: &str) {
        self.now = format!("{} {profile}", product.name);
        self.bar.set_message(self.now.clone());
    }

    /// Something happens with it.
    pub fn update(&mut self, happening: &Progress<'_>) {
        match happening {
            Progress::Starting(protocol) => {
                self.bar.set_message(format!("{} · starts, {}", self.now, protocol.as_str()))
            }
            Progress::Asking(check) => self.bar.set_message(format!("{} · {}", self.now, check.title)),
            Progress::Answered(..) => {}
        }
    }

    /// It is done.
    pub fn end(&mut self, product: &Product, tested: &ProductReport, installed: Option<&Installed>) {
        self.bar.inc(1);
        if self.quiet {
            return;
        }
        let version = installed.map(|installed| format!(" {}", installed.version)).unwrap_or_default();
        let took = minutes(Duration::from_secs_f64(tested.took_s));
        let head = format!("{}{version}, {} ({took})", product.title, tested.profile);
        let mut lines = block(&head, tested).into_iter();
        let first = lines.next().map(|line| style(line).bold().for_stderr().to_string());
        for line in first.into_iter().chain(lines) {
            if self.live { self.bar.println(line) } else { remark!("{line}") }
        }
    }
}

impl Drop for TestProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
