//! Whether CPU and memory were sampled when the window was.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind, percent};

pub const CHECK: Check = Check {
    kind: Kind::Headroom,
    names: &["vitals-late"],
    sees: "samples of CPU and memory that began or ended later than the window, because weir's own thread for them got \
         no CPU. The roles' use is then not that of the counted requests",
    threshold: "2 % of the window and 50 ms make the trial suspect; 10 % and a tenth of a second make it invalid",
    source: "CPU time for each response is wrong by as much at most, and products are compared to a few per cent. A sample itself \
         takes some ms, and so does the scheduler of a busy machine",
    remedy: "see what took the CPU (`other-processes`, `steal`, `weir doctor`), and run again",
    blind: "samples in the middle of a window that are late: their rows are longer, and nothing is lost",
    provoked: false,
    run: Some(check),
};

const SUSPECT: f64 = 2.0;
const INVALID: f64 = 10.0;
const SUSPECT_S: f64 = 0.05;
const INVALID_S: f64 = 0.1;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let share = percent(e.vitals_late_s, e.load.window_s);
    if share < SUSPECT || e.vitals_late_s < SUSPECT_S {
        return None;
    }
    let invalid = share >= INVALID && e.vitals_late_s >= INVALID_S;
    let severity = if invalid { Severity::Fatal } else { Severity::Warning };
    let message = format!(
        "CPU and memory were sampled up to {:.0} ms late, {share:.1} % of the window of {:.1} s",
        e.vitals_late_s * 1e3,
        e.load.window_s
    );
    CHECK.finding(severity, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::good;

    #[test]
    fn fires_from_a_fiftieth_of_the_window_on_and_not_below_50_ms() {
        let mut trial = good();
        let mut severity = |late_s: f64, window_s: f64| {
            (trial.vitals_late_s, trial.load.window_s) = (late_s, window_s);
            trial.check(check).map(|found| found.severity)
        };
        assert_eq!(severity(0.0, 1.0), None);
        assert_eq!(severity(0.049, 1.0), None);
        assert_eq!(severity(0.051, 1.0), Some(Severity::Warning));
        assert_eq!(severity(0.051, 10.0), None);
        assert_eq!(severity(0.3, 10.0), Some(Severity::Warning));
        assert_eq!(severity(1.1, 10.0), Some(Severity::Fatal));
        assert_eq!(severity(0.09, 0.3), Some(Severity::Warning), "a short window");
        assert_eq!(severity(0.11, 0.3), Some(Severity::Fatal));
    }
}
