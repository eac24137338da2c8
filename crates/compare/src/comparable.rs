//! Whether a case was the same question in both runs. Knows definitions, nothing of results but the rates offered.

use weir_model::record::CaseId;
use weir_model::suite::{Load, Suite, Workload};

use super::ComparedRun;
use super::metric::LoadGoal;
use weir_model::text::{percent, short};

/// Offered rates that differ by more than this share are two questions: at half of what a product carries, its mean wait
/// moves about as much as the rate (a queue's wait goes with `1 / (1 - load)`).
const RATE_MAY_DIFFER: f64 = 0.05;

/// From here on it is said that offered rates differ.
const RATE_IS_SAID: f64 = 0.01;

/// Why a case cannot be compared; else what should be said beside it.
pub(super) fn check(before: &ComparedRun, after: &ComparedRun, case: &CaseId) -> Result<Vec<String>, String> {
    let mut remarks = Vec::new();
    if let (Some(old), Some(new)) = (&before.suite, &after.suite) {
        definitions(old, new, case)?;
    }
    let offered = (before.median_offered(case), after.median_offered(case));
    if let ((Some(old), Some(new)), LoadGoal::FixedRate) = (offered, after.goal(case)) {
        let differs = (new / old - 1.0).abs().max((old / new - 1.0).abs());
        let offered = format!("{} requests/s were offered before and {} after", short(old), short(new));
        if differs > RATE_MAY_DIFFER {
            return Err(format!("{offered}: at other rates, other latencies; a load with a fixed rate compares"));
        }
        if differs > RATE_IS_SAID {
            remarks.push(format!("{offered}, {} apart", percent(differs)));
        }
    }
    Ok(remarks)
}

fn definitions(old: &Suite, new: &Suite, case: &CaseId) -> Result<(), String> {
    if let (Some(a), Some(b)) = (old.workload(&case.workload), new.workload(&case.workload)) {
        let mut parts = workload(a, b);
        if a.protocol.is_tls() && old.tls != new.tls {
            parts.push("TLS settings");
        }
        refuse("workload", &case.workload, &parts)?;
    }
    if let (Some(a), Some(b)) = (old.load(&case.load), new.load(&case.load)) {
        refuse("load", &case.load, &load(a, b))?;
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

/// What of two workloads differs. Titles may.
fn workload(a: &Workload, b: &Workload) -> Vec<&'static str> {
    let (r, s) = (&a.request, &b.request);
    differing(&[
        ("protocol", a.protocol != b.protocol),
        ("method", r.method != s.method),
        ("path", r.path != s.path),
        ("headers", r.headers != s.headers),
        ("body", r.body != s.body),
        ("right answer", a.expect != b.expect),
    ])
}

/// What of two loads differs. Titles may, and windows: those are said with the environment.
fn load(a: &Load, b: &Load) -> Vec<&'static str> {
    differing(&[
        ("way in which requests arrive", a.kind != b.kind),
        ("series", a.series != b.series || a.saturating != b.saturating),
        ("number of connections", a.connections != b.connections),
        ("number of streams", a.streams != b.streams),
    ])
}

fn differing(parts: &[(&'static str, bool)]) -> Vec<&'static str> {
    parts.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect()
}
