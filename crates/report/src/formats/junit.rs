//! Writes the checks of a load or a run as a JUnit XML file, which CI systems show as test cases. A condition that holds is a failure; what
//! could not be judged, and a trial that could not be carried out, is an error.

use askama::Template;
use weir_model::condition::Condition;

use super::Account;
use crate::summary::{Cause, Row, Summary};

/// One test case.
struct Case {
    class: String,
    name: String,
    outcome: Outcome,
    /// What else is said of it.
    output: String,
}

enum Outcome {
    Passed,
    /// What it promises does not hold, and what was seen.
    Failed(String),
    /// It could not be judged, and why.
    Error(String),
}

#[derive(Template)]
#[template(path = "formats/junit.xml", escape = "html")]
struct Junit<'a> {
    suite: &'a str,
    seconds: f64,
    /// When it began, if that is known.
    timestamp: String,
    cases: Vec<Case>,
}

impl Junit<'_> {
    fn failures(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, Outcome::Failed(_))).count()
    }

    fn errors(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, Outcome::Error(_))).count()
    }
}

/// The checks of one load: those that decide its exit status.
pub fn junit(account: Account<'_>, fail_if: &[Condition]) -> String {
    let result = account.result;
    let case = |name: String, outcome| Case { class: "weir.load".into(), name, outcome, output: String::new() };
    let when = |wrong: bool, outcome: fn(String) -> Outcome, message: String| {
        if wrong { outcome(message) } else { Outcome::Passed }
    };
    let mut cases = vec![
        case("the load ran to its end".into(), when(result.cut_short, Outcome::Error, "it was cut short".into())),
        case("requests were due".into(), when(result.window.due == 0, Outcome::Error, "none was".into())),
    ];
    if fail_if.is_empty() {
        let wrong = result.window.error_count() + result.window.unsent;
        let listed = result.list_errors(&result.window.errors);
        let message = format!("{wrong} of {} had none: {} unsent; {listed}", result.window.due, result.window.unsent);
        cases.push(case("every request got a successful response".into(), when(wrong > 0, Outcome::Failed, message)));
    }
    cases.extend(fail_if.iter().map(|condition| {
        let found = condition.finding(result);
        let outcome = match condition.value_of(result) {
            None => Outcome::Error(found),
            Some(_) => when(condition.holds(result), Outcome::Failed, found),
        };
        case(format!("not {condition}"), outcome)
    }));
    let started = jiff::Timestamp::from_millisecond(result.window_start_ms as i64).unwrap_or_default();
    draw(&Junit { suite: account.title, seconds: result.window_s, timestamp: started.to_string(), cases })
}

/// A run: a case for each product in each section, with what its trials' verdicts were.
pub fn junit_of_run(summary: &Summary) -> String {
    let sections = summary.sections.iter().flat_map(|section| {
        let class = format!("{}.{}.{}", summary.suite, section.workload, section.load);
        let rows = section.baseline.iter().chain(&section.rows);
        rows.map(move |row| Case {
            class: class.clone(),
            name: row.label.clone(),
            outcome: outcome(row),
            output: row.causes.iter().map(Cause::to_string).collect::<Vec<_>>().join("\n"),
        })
    });
    draw(&Junit { suite: &summary.suite, seconds: 0.0, timestamp: String::new(), cases: sections.collect() })
}

fn outcome(row: &Row) -> Outcome {
    let verdicts = row.verdicts;
    let trials = verdicts.valid + verdicts.suspect + verdicts.invalid + verdicts.error;
    match () {
        () if verdicts.error > 0 => Outcome::Error(format!("{} of {trials} trials failed", verdicts.error)),
        () if verdicts.invalid > 0 => Outcome::Failed(format!("{} of {trials} trials are invalid", verdicts.invalid)),
        () => Outcome::Passed,
    }
}

fn draw(junit: &Junit<'_>) -> String {
    // XML has no control characters but these.
    let allowed = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    format!("{junit}\n").chars().filter(allowed).collect()
}
