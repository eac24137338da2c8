//! A load that was ended early.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Load,
    names: &["cut-short"],
    sees: "a load that was ended early on request",
    threshold: "any",
    source: "",
    remedy: "let the trial run to its end",
    blind: "",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if !e.load.cut_short {
        return None;
    }
    let message = format!("the load was cut short after {:.1} s of its window", e.load.window_s);
    CHECK.finding(Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_when_cut_short() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.load.cut_short = true;
        assert!(trial.check(super::check).is_some());
    }
}
