//! The progress of `weir duet` on standard error: what runs now, what is known so far, and the time left. Called by `verbs::duet`.

use std::time::{Duration, Instant};

use weir_lab::duet::{DuetEvent, Outcome};
use weir_model::text::counted;

use super::text;
use crate::progress::{Status, minutes, template};

/// Where there is no terminal, a line that stays comes so often.
const EVERY: Duration = Duration::from_secs(30);

/// Shows a duet on standard error.
#[derive(Debug)]
pub struct DuetProgress {
    status: Status,
    known: String,
    said: Instant,
}

impl DuetProgress {
    /// `quiet` shows nothing.
    pub fn new(quiet: bool) -> DuetProgress {
        DuetProgress {
            status: Status::new(quiet, template("{wide_msg}"), None),
            known: String::new(),
            said: Instant::now(),
        }
    }

    /// Shows it.
    pub fn notify(&mut self, event: DuetEvent<'_>) {
        match event {
            DuetEvent::Begin(folder) => self.status.line(&format!("files go to {}", folder.display())),
            DuetEvent::Start(who) => self.show(&format!("{who:?} starting")),
            DuetEvent::Measure => self.show("measuring both in turn"),
            DuetEvent::Pair(outcome, left) => {
                self.known = known(outcome, left);
                if !self.status.live && self.said.elapsed() >= EVERY {
                    self.said = Instant::now();
                    self.status.line(&self.known);
                }
            }
        }
    }

    fn show(&self, doing: &str) {
        let known = if self.known.is_empty() { String::new() } else { format!(" · {}", self.known) };
        self.status.show(format!("{doing}{known}"));
    }
}

/// `12 pairs · cpu +0.4 % [-1.2, +2.1] · at most 3m20s left · pairs left out: 2 for steal`.
fn known(outcome: &Outcome, left: Duration) -> String {
    let mut parts = vec![counted(outcome.pairs as u64, "pair")];
    parts.extend(outcome.changes.first().map(text::change));
    parts.push(format!("at most {} left", minutes(left)));
    parts.extend(text::omitted(outcome));
    parts.join(" · ")
}
