//! Headers that changed during the load.

use weir_model::load::HeaderChange;
use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Answers,
    names: &["headers"],
    sees: "headers of successful responses that appeared, vanished or changed during the window. It samples one \
         response in 1,000, and at least one a second and thread, against the first of the window. The product then \
         does other work than at the start, or some responses come from elsewhere",
    threshold: "a header that only some samples have, or a value that changed once and stayed for three samples",
    source: "a product in one state sends the same headers. The check ignores headers of the connection and of the \
         moment: Age, Connection, Date, Keep-Alive, Transfer-Encoding and the request ID. It also ignores numbers, \
         and values that alternate or take more than two forms",
    remedy: "find in the product's configuration and output what sets the header; a cache, a limit and a fallback do",
    blind: "headers that differ in fewer responses than are sampled. All that is there from the window's first response \
         on. Over HTTP/2, all but each 64th connection",
    provoked: true,
    run: Some(check),
};

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
        "headers changed in the window: {}{more} ({} answers were looked at)",
        named.join("; "),
        headers.sampled
    );
    CHECK.finding(Severity::Warning, message)
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
