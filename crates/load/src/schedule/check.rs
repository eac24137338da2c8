//! Checks the numbers of a load.

use weir_model::load::OfferedRate;
use weir_model::suite::{Arrivals, LoadKind};
use weir_model::text::{counted, full_rate};

use crate::error::SpecError;

/// A rate above this is taken for a typing error.
const HIGHEST: f64 = 1e9;

/// Poisson arrivals are drawn one by one. One thread can draw more than this, and sends far less, requests a second.
const MOST_DRAWN: f64 = 4e6;

/// Checks whether so many threads can draw the arrivals of a load as fast as they are due.
///
/// # Errors
/// The highest rate and what would be right, as text for people.
pub(crate) fn check_arrivals(kind: &LoadKind<OfferedRate>, threads: u32) -> Result<(), SpecError> {
    let LoadKind::Open { rate, arrivals: Arrivals::Poisson } = kind else { return Ok(()) };
    let highest = match rate {
        OfferedRate::Constant(rate) => *rate,
        OfferedRate::Ramp { from, to } => from.max(*to),
        OfferedRate::Steps(steps) => steps.iter().fold(0.0, |highest, step| step.rate.max(highest)),
        OfferedRate::Replay(_) | OfferedRate::Recorded(_) => 0.0,
    };
    if highest <= MOST_DRAWN * f64::from(threads) {
        return Ok(());
    }
    Err(format!(
        "{} with Poisson arrivals cannot be offered by {}; expected: at most {} for each thread, which none can send, or \
         constant arrivals",
        full_rate(highest),
        counted(threads.into(), "thread"),
        full_rate(MOST_DRAWN)
    ).into())
}

/// Checks the numbers of a load.
///
/// # Errors
/// The first mistake and what would be right, as text for people.
pub(crate) fn check(kind: &LoadKind<OfferedRate>) -> Result<(), SpecError> {
    match kind {
        LoadKind::Closed => Ok(()),
        LoadKind::Count { requests: 0 } => Err("0 requests; at least 1 is needed".into()),
        LoadKind::Count { .. } => Ok(()),
        LoadKind::Search { .. } => Err("a search is no load of its own, and sets its rates itself".into()),
        LoadKind::Open { rate, .. } => offered(rate),
    }
}

fn offered(rate: &OfferedRate) -> Result<(), SpecError> {
    match rate {
        OfferedRate::Constant(rate) if *rate > 0.0 && *rate <= HIGHEST => Ok(()),
        OfferedRate::Constant(rate) => {
            Err(format!("rate of {rate} requests/s; expected: above 0 and at most 1e9").into())
        }
        OfferedRate::Ramp { from, to } => {
            rate_or_pause("the ramp's first rate", *from)?;
            rate_or_pause("the ramp's last rate", *to)?;
            some_rate("the ramp sends", from.max(*to))
        }
        OfferedRate::Steps(steps) => {
            for (index, step) in steps.iter().enumerate() {
                let number = index + 1;
                rate_or_pause(&format!("step {number}'s rate"), step.rate)?;
                if !(step.for_s > 0.0 && step.for_s.is_finite()) {
                    return Err(format!("step {number} of {} s; expected: more than 0 s", step.for_s).into());
                }
            }
            some_rate("the steps send", steps.iter().fold(0.0, |highest, step| step.rate.max(highest)))
        }
        OfferedRate::Replay(due_s) => replay(due_s.iter().copied()),
        OfferedRate::Recorded(recorded) => replay(recorded.iter().map(|due| due.at_s)),
    }
}

fn rate_or_pause(what: &str, rate: f64) -> Result<(), SpecError> {
    if (0.0..=HIGHEST).contains(&rate) {
        return Ok(());
    }
    Err(format!("{what} is {rate} requests/s; expected: 0 (a pause) to 1e9").into())
}

fn some_rate(what: &str, highest: f64) -> Result<(), SpecError> {
    if highest > 0.0 { Ok(()) } else { Err(format!("{what} nothing; a rate above 0 is needed").into()) }
}

fn replay(mut due_s: impl Iterator<Item = f64>) -> Result<(), SpecError> {
    let usable = |due: f64| match due.is_finite() && due >= 0.0 {
        true => Ok(due),
        false => Err(SpecError::from(format!("a replay with a request due at {due} s; expected: 0 s or later"))),
    };
    let mut before = usable(due_s.next().ok_or("a replay of no times; at least 1 is needed")?)?;
    for due in due_s {
        let due = usable(due)?;
        if before > due {
            return Err(
                format!("a replay whose times go back, from {before} s to {due} s; expected: ascending times").into()
            );
        }
        before = due;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::load::Step;
    use weir_model::suite::Arrivals::{Constant, Poisson};

    #[test]
    fn wrong_shapes_say_what_would_be_right() {
        let ramp = |from, to| LoadKind::Open { rate: OfferedRate::Ramp { from, to }, arrivals: Constant };
        let steps = |all: &[(f64, f64)]| LoadKind::Open {
            rate: OfferedRate::Steps(all.iter().map(|&(rate, for_s)| Step { rate, for_s }).collect()),
            arrivals: Constant,
        };
        let replay = |due_s: &[f64]| LoadKind::Open { rate: OfferedRate::Replay(due_s.to_vec()), arrivals: Constant };
        for (kind, text) in [
            (LoadKind::Count { requests: 0 }, "0 requests; at least 1"),
            (LoadKind::open(0.0, Constant), "rate of 0 requests/s"),
            (LoadKind::open(f64::NAN, Constant), "rate of NaN"),
            (LoadKind::open(f64::INFINITY, Constant), "rate of inf"),
            (ramp(-1.0, 5.0), "first rate is -1"),
            (ramp(5.0, f64::NAN), "last rate is NaN"),
            (ramp(0.0, 0.0), "the ramp sends nothing"),
            (steps(&[]), "the steps send nothing"),
            (steps(&[(0.0, 1.0)]), "the steps send nothing"),
            (steps(&[(10.0, 1.0), (2e9, 1.0)]), "step 2's rate is 2000000000"),
            (steps(&[(10.0, 0.0)]), "step 1 of 0 s"),
            (replay(&[]), "no times"),
            (replay(&[0.0, -1.0]), "due at -1 s"),
            (replay(&[0.5, 1.0, 0.7]), "from 1 s to 0.7 s"),
        ] {
            let error = check(&kind).unwrap_err();
            assert!(error.to_string().contains(text), "{kind:?}: {error}");
        }
        let poisson = LoadKind::open(9e6, Poisson);
        let error = check_arrivals(&poisson, 2).unwrap_err();
        assert!(
            error.to_string().starts_with("9,000,000/s with Poisson arrivals cannot be offered by 2 threads"),
            "{error}"
        );
        assert_eq!((check_arrivals(&poisson, 3), check_arrivals(&LoadKind::open(1e9, Constant), 1)), (Ok(()), Ok(())));
        for right in [
            ramp(0.0, 5.0),
            ramp(5.0, 0.0),
            steps(&[(0.0, 1.0), (1e9, 0.5)]),
            replay(&[0.0, 0.0, 1.0]),
            LoadKind::Closed,
        ] {
            assert_eq!(check(&right), Ok(()));
        }
    }
}
