//! A fixed number of requests that ran out of time.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Load,
    names: &["count"],
    sees: "a load of a fixed number of requests that ran out of time. The requests sent are measured well; only the \
         time for all of them is unknown",
    threshold: "any request that was not sent",
    source: "",
    remedy: "a longer `duration`, or fewer requests",
    blind: "",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let ordered = e.requests?;
    let sent = e.load.total.sent;
    if sent >= ordered || e.load.cut_short {
        return None;
    }
    let message = format!("only {sent} of {ordered} requests within the limit of {:.0} s", e.load.window_s);
    CHECK.finding(Severity::Note, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_when_the_time_was_over_first() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None, "no number was ordered");
        trial.requests = Some(10_000);
        assert_eq!(trial.check(super::check), None);
        trial.requests = Some(10_001);
        let found = trial.check(super::check).expect("fires");
        assert_eq!(found.message, "only 10000 of 10001 requests within the limit of 1 s");
        trial.load.cut_short = true;
        assert_eq!(trial.check(super::check), None, "another check says so");
    }
}
