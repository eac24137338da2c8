//! A product that treats weir's requests better than others.

use weir_model::case_tests::{Control, ControlRound};
use weir_model::record::{Finding, Severity};
use weir_model::text::full_rate;

use super::{Check, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["control", "no-control"],
    sees: "a product that carries fewer requests, or spends more CPU on each, when they do not look like weir's. A \
         short load of the same kind follows the last window of each HTTP case's first trial. Its requests have a \
         `User-Agent` and an `Accept`, another header in place of the request ID, another order, and another query. \
         The result holds for the trial as a whole",
    threshold: "weir's own requests have 1.1 times the rate of those in disguise, or cost less CPU by that factor: suspect; \
         by 1.25: invalid. Three standard deviations of the window's rate are added. If the first control differs, \
         both kinds are sent twice more in turn, and the smallest difference counts",
    source: "an honest product parses one or two headers more, and noise has to go the same way three times in a row",
    remedy: "ask the product's makers what it does with such requests. If a setting of yours acts upon `User-Agent` or \
         the query, put what it expects into the workload. `control = false` of a load leaves the control out",
    blind: "properties that both kinds share, such as paths, sizes and arrival times. Windows below 1 s, loads with \
         faults, keys and values, and duets have no control",
    provoked: true,
    run: None,
};

/// Differences from which on a trial is suspect, and invalid, without noise.
const SUSPECT: f64 = 0.10;
const INVALID: f64 = 0.25;

/// Standard deviations of the window's rate that are no difference.
const DEVIATIONS: f64 = 3.0;

/// The finding for a case's control.
pub fn check(control: &Control) -> Option<Finding> {
    let by_rate = least(control, |ControlRound { usual, disguised }| Some(usual.rate / disguised.rate));
    let by_cpu = least(control, |ControlRound { usual, disguised }| Some(disguised.cpu_us? / usual.cpu_us?));
    let noise = DEVIATIONS * control.spread;
    let most = by_rate.max(by_cpu) - 1.0 - noise;
    if most.is_nan() || most < SUSPECT {
        return None;
    }
    let ControlRound { usual, disguised } = control.rounds.last()?;
    let differs = match (disguised.cpu_us, usual.cpu_us) {
        (Some(disguised), Some(usual)) if by_cpu > by_rate => format!(
            "the product spent {disguised:.1} µs of CPU time on a request in disguise, and {usual:.1} µs on one of weir's own"
        ),
        _ => format!(
            "the product carried {} in disguise, and {} of weir's own requests",
            full_rate(disguised.rate),
            full_rate(usual.rate)
        ),
    };
    let rounds = match control.rounds.len() {
        1 => String::new(),
        n => format!(" (the last of {n} rounds, which all agree)"),
    };
    let message = format!("{differs}{rounds}; the disguise changed: {}", control.changed.join(", "));
    CHECK.finding(if most < INVALID { Severity::Warning } else { Severity::Fatal }, message)
}

/// The note for a load that leaves the control out.
pub fn switched_off() -> Option<Finding> {
    let message =
        "the load has `control = false`: whether the product treats weir's requests better than others is not known";
    super::finding(CHECK.names[1], Severity::Note, message.to_owned(), CHECK.remedy)
}

/// The least ratio of all rounds; 0 where it is not known in one.
fn least(control: &Control, ratio: impl Fn(&ControlRound) -> Option<f64>) -> f64 {
    control.rounds.iter().map(|round| ratio(round).unwrap_or(0.0)).reduce(f64::min).unwrap_or(0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use weir_model::case_tests::ControlLoad;

    use super::*;

    /// A control of rounds with these rates and CPU times a request, usual and disguised.
    pub fn of_rounds(rounds: &[[(f64, f64); 2]]) -> Control {
        let load = |(rate, cpu_us)| ControlLoad { window_s: 0.2, rate, cpu_us: Some(cpu_us) };
        let round =
            |[usual, disguised]: &[(f64, f64); 2]| ControlRound { usual: load(*usual), disguised: load(*disguised) };
        Control {
            changed: vec!["User-Agent".to_owned(), "query".to_owned()],
            spread: 0.01,
            rounds: rounds.iter().map(round).collect(),
        }
    }

    #[test]
    fn fires_by_rate_or_by_cpu_time_beyond_the_noise_and_in_each_round() {
        let found = |rounds: &[[(f64, f64); 2]]| check(&of_rounds(rounds)).map(|found| found.severity);
        assert_eq!(check(&Control::default()), None);
        assert_eq!(found(&[[(100.0, 10.0), (90.0, 11.2)]]), None, "12 % of 13 %");
        assert_eq!(found(&[[(100.0, 10.0), (85.0, 10.0)]]), Some(Severity::Warning));
        assert_eq!(found(&[[(100.0, 10.0), (75.0, 10.0)]]), Some(Severity::Fatal));
        assert_eq!(found(&[[(100.0, 10.0), (0.0, 10.0)]]), Some(Severity::Fatal), "nothing was carried");
        assert_eq!(found(&[[(100.0, 10.0), (100.0, 11.5)]]), Some(Severity::Warning));
        assert_eq!(found(&[[(100.0, 10.0), (100.0, 40.0)]]), Some(Severity::Fatal));
        assert_eq!(found(&[[(100.0, 10.0), (130.0, 5.0)]]), None, "better in disguise");
        let (cheat, calm) = ([(100.0, 10.0), (50.0, 20.0)], [(100.0, 10.0), (100.0, 10.0)]);
        assert_eq!(found(&[cheat, cheat, calm]), None);
        assert_eq!(found(&[cheat, cheat, cheat]), Some(Severity::Fatal));
        let noisy = Control { spread: 0.4, ..of_rounds(&[cheat]) };
        assert_eq!(check(&noisy), None);
        let unknown = ControlLoad { cpu_us: None, ..ControlLoad::default() };
        let rounds = vec![ControlRound {
            usual: ControlLoad { rate: 9.0, ..unknown },
            disguised: ControlLoad { rate: 9.0, ..unknown },
        }];
        assert_eq!(check(&Control { rounds, ..Control::default() }), None, "CPU time is not known");
    }
}
