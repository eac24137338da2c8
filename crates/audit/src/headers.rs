//! Headers that changed during the load.

use weir_model::load::HeaderChange;
use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

/// More are counted, not named.
const NAMED: usize = 3;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let headers = e.load.headers.as_ref().filter(|headers| !headers.changes.is_empty())?;
    let named: Vec<String> = headers.changes.iter().take(NAMED).map(words).collect();
    let more = match headers.changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let message = format!(
        "headers changed in the window: {}{more} ({} responses were looked at)",
        named.join("; "),
        headers.sampled
    );
    finding("headers", Severity::Warning, message)
}

fn words(change: &HeaderChange) -> String {
    let what = match (&change.was, &change.is) {
        (None, Some(is)) => format!("came ({is:?})"),
        (Some(was), Some(is)) => format!("changed from {was:?} to {is:?}"),
        (_, None) => "went".to_owned(),
    };
    format!("{} {what} at {:.1} s, in {} samples", change.name, change.at_s, change.samples)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::load::{HeaderChange, HeaderSamples};

    #[test]
    fn changes_are_named_and_their_absence_is_silent() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None, "not looked at");
        trial.load.headers = Some(HeaderSamples { sampled: 12, ..HeaderSamples::default() });
        assert_eq!(trial.check(super::check), None);
        let change = |name: &str, was: Option<&str>, is: Option<&str>, at_s| HeaderChange {
            name: name.into(),
            was: was.map(str::to_owned),
            is: is.map(str::to_owned),
            at_s,
            samples: 4,
        };
        let changes = [change("x-cache", None, Some("HIT"), 1.0), change("via", Some("a"), None, 0.5)];
        trial.load.headers = Some(HeaderSamples { sampled: 12, changes: changes.into(), ..HeaderSamples::default() });
        let message = trial.check(super::check).expect("fires").message;
        assert!(
            message.contains("x-cache came (\"HIT\") at 1.0 s, in 4 samples; via went at 0.5 s, in 4 samples"),
            "{message}"
        );
        if let Some(headers) = &mut trial.load.headers {
            headers.changes = vec![change("server", Some("a"), Some("b"), 2.0); 5];
        }
        let message = trial.check(super::check).expect("fires").message;
        assert!(message.contains("server changed from \"a\" to \"b\"") && message.contains("and 2 more"), "{message}");
    }
}
