//! Checks what on this machine would falsify a measurement, with the command that fixes it.
//!
//! Every check is a *reader*, which asks the kernel, and a *judge*, which is pure: it takes what was read (`None` if
//! the machine does not report it) and returns a [`Check`]. Most judges look their value up in `checks.toml`, which holds
//! the thresholds, their sources and the texts.
//!
//! The CLI and the lab call it. It does not know suites, products or loads: a check says what it would falsify, and
//! the lab decides.

mod busy;
mod connections;
mod cpu;
mod kernel;
mod limits;
mod net;
mod place;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use weir_model::record::{Finding, Severity};
use weir_model::text::human_bytes;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nothing to fix; the observation may be worth noting.
    Ok,
    /// The machine does not report it.
    Unknown,
    /// Measurements work, and this may show in them.
    Warn,
    /// Measurements would be wrong, or not work at all.
    Bad,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Short name, `[a-z-]+`.
    pub name: String,
    /// How it came out.
    pub status: Status,
    /// What was seen, with numbers; no full stop.
    pub seen: String,
    /// What it would falsify, or why it does not matter; a sentence.
    pub why: String,
    /// The command that fixes it (as root), if there is one.
    pub mend: Option<String>,
}

impl Check {
    fn new(name: &str, status: Status, seen: impl Into<String>, why: &str) -> Check {
        Check { name: name.into(), status, seen: seen.into(), why: why.into(), mend: None }
    }

    fn ok(name: &str, seen: impl Into<String>, why: &str) -> Check {
        Check::new(name, Status::Ok, seen, why)
    }

    fn warn(name: &str, seen: impl Into<String>, why: &str) -> Check {
        Check::new(name, Status::Warn, seen, why)
    }

    fn unknown(name: &str, seen: &str, why: &str) -> Check {
        Check::new(name, Status::Unknown, seen, why)
    }

    /// Adds the command, unless nothing needs fixing.
    fn mend(mut self, command: impl Into<String>) -> Check {
        if self.status != Status::Ok {
            self.mend = Some(command.into());
        }
        self
    }

    /// As a finding about the machine: `Warn` is a warning, `Bad` is fatal, `Unknown` is a note, `Ok` is none.
    pub fn finding(&self) -> Option<Finding> {
        let severity = match self.status {
            Status::Ok => return None,
            Status::Unknown => Severity::Note,
            Status::Warn => Severity::Warning,
            Status::Bad => Severity::Fatal,
        };
        Some(Finding {
            check: format!("doctor-{}", self.name),
            severity,
            message: format!("{}. {}", self.seen, self.why),
            remedy: self.mend.as_ref().map(|command| format!("Run: {command}")).unwrap_or_default(),
        })
    }
}

/// Two lines, or three with a command: for logs and tests. The command line draws its own.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Unknown => "unknown",
            Status::Warn => "warn",
            Status::Bad => "bad",
        };
        write!(f, "{status:<8}{}: {}\n        {}", self.name, self.seen, self.why)?;
        match &self.mend {
            Some(command) => write!(f, "\n        mend: {command}"),
            None => Ok(()),
        }
    }
}

/// One check of `checks.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    unseen: Option<String>,
    #[serde(default)]
    unknown: String,
    #[serde(rename = "case")]
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    at_least: Option<f64>,
    is: Option<Vec<String>>,
    status: Status,
    why: String,
    mend: Option<String>,
}

static RULES: LazyLock<BTreeMap<String, Rule>> =
    LazyLock::new(|| toml::from_str(include_str!("doctor/checks.toml")).expect("a test reads it"));

/// Judges a number, shown like this, by the rule of that name.
fn judge(name: &str, value: Option<(f64, String)>) -> Check {
    judge_by(name, value, |case, number| case.at_least.is_none_or(|least| *number >= least))
}

/// Judges a word by the rule of that name.
fn judge_word(name: &str, word: Option<&str>) -> Check {
    let value = word.map(|word| (word, word.to_owned()));
    judge_by(name, value, |case, word| case.is.as_ref().is_none_or(|words| words.iter().any(|one| one == word)))
}

fn judge_by<T>(name: &str, value: Option<(T, String)>, fits: impl Fn(&Case, &T) -> bool) -> Check {
    let rule = &RULES[name];
    let Some((value, seen)) = value else {
        return Check::unknown(name, rule.unseen.as_deref().unwrap_or("the kernel does not say"), &rule.unknown);
    };
    let case = rule.cases.iter().find(|case| fits(case, &value)).expect("the last case fits all");
    Check { mend: case.mend.clone(), ..Check::new(name, case.status, seen, &case.why) }
}

/// A number of bytes in words, with what they are.
fn bytes(number: Option<u64>, are: &str) -> Option<(f64, String)> {
    number.map(|bytes| (bytes as f64, format!("{}{are}", human_bytes(bytes as f64))))
}

/// Runs all checks. It takes half a second, in which it watches what else runs. `home` is where runs will be
/// written; it need not exist yet.
pub fn examine(home: &Path) -> Vec<Check> {
    let mut checks = cpu::checks();
    checks.extend(busy::checks());
    checks.extend(limits::checks());
    checks.extend(connections::checks());
    checks.extend(net::checks());
    checks.extend(kernel::checks());
    checks.extend(place::checks(home));
    checks
}

/// Checks only who else uses the machine: the hypervisor's other guests, and other processes. Takes half a second.
pub fn others() -> Vec<Check> {
    busy::checks()
}

#[cfg(test)]
mod tests;
