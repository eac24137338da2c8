//! Decides whether a case asked the same question in two runs. `lib` calls it for each common case, `history` for each run of a case.
//! It knows definitions and the rates offered, and no other results.

use weir_model::metric::Goal;
use weir_model::record::CaseId;
use weir_model::suite::Suite;

use super::ComparedRun;
use weir_model::text::{percent, short};

/// Offered rates that differ by more than this share are different questions. At half of a product's capacity, its mean
/// wait changes about as much as the rate (the wait in a queue is proportional to `1 / (1 - load)`).
const RATE_MAY_DIFFER: f64 = 0.05;

/// From this difference on, a remark mentions the offered rates.
const RATE_IS_SAID: f64 = 0.01;

/// The reason why a case cannot be compared, or else the remarks to show beside it.
pub(super) fn check(before: &ComparedRun, after: &ComparedRun, case: &CaseId) -> Result<Vec<String>, String> {
    if let (Some(old), Some(new)) = (&before.suite, &after.suite) {
        definitions(old, new, case)?;
    }
    match after.goal(case) {
        Goal::FixedRate => rates(before.median_offered(case), after.median_offered(case)),
        _ => Ok(Vec::new()),
    }
}

/// The same of the rates that were offered.
pub(super) fn rates(before: Option<f64>, after: Option<f64>) -> Result<Vec<String>, String> {
    let Some((old, new)) = before.zip(after) else { return Ok(Vec::new()) };
    let differs = (new / old - 1.0).abs().max((old / new - 1.0).abs());
    let offered = format!("{} requests/s were offered before and {} after", short(old), short(new));
    if differs > RATE_MAY_DIFFER {
        return Err(format!("{offered}: at other rates, other latencies; a load with a fixed rate compares"));
    }
    Ok(if differs > RATE_IS_SAID { vec![format!("{offered}, {} apart", percent(differs))] } else { Vec::new() })
}

/// The reason why a case's workload or load asks something else in the second suite.
pub(super) fn definitions(old: &Suite, new: &Suite, case: &CaseId) -> Result<(), String> {
    if let (Some(a), Some(b)) = (old.workload(&case.workload), new.workload(&case.workload)) {
        let mut parts = a.differs_in(b);
        if a.protocol.is_tls() && old.tls != new.tls {
            parts.push("TLS settings");
        }
        refuse("workload", &case.workload, &parts)?;
    }
    if let (Some(a), Some(b)) = (old.load(&case.load), new.load(&case.load)) {
        refuse("load", &case.load, &a.differs_in(b))?;
    }
    Ok(())
}

fn refuse(what: &str, name: &str, parts: &[&str]) -> Result<(), String> {
    match parts {
        [] => Ok(()),
        [part] => Err(format!("the {what} {name} is another one in each run: its {part} differs")),
        parts => Err(format!("the {what} {name} is another one in each run: its {} differ", parts.join(" and its "))),
    }
}
