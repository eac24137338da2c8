//! A line of the access log for each request.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding, percent};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let log = e.access_log?;
    let sent = e.load.total.sent;
    // A request that was never answered may have no line.
    let missing = sent.saturating_sub(e.load.total.error_count()).saturating_sub(log.lines);
    if missing == 0 {
        return None;
    }
    let share = percent(missing as f64, sent as f64);
    let message =
        format!("the access log has {} lines for {sent} requests: {missing} are missing ({share:.2} %)", log.lines);
    finding("access-log", Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use weir_model::gateway::AccessLog;
    use weir_model::load::ErrorKind;
    use weir_model::record::Severity;

    use crate::fixture::good;

    #[test]
    fn a_missing_line_is_suspect() {
        let severity = |lines: Option<u64>, errors: u64| {
            let mut trial = good();
            trial.access_log = lines.map(|lines| AccessLog { lines, bytes: 100 * lines });
            trial.load.total.errors = [(ErrorKind::Timeout, errors)].into();
            trial.check(super::check).map(|finding| finding.severity)
        };
        assert_eq!(severity(None, 0), None, "no log");
        assert_eq!(severity(Some(10_000), 0), None);
        assert_eq!(severity(Some(10_004), 0), None, "weir's own requests");
        assert_eq!(severity(Some(9_999), 0), Some(Severity::Warning));
        assert_eq!(severity(Some(9_999), 1), None, "it was not answered");
    }
}
