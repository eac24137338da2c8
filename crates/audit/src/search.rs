//! Headroom and time of a search.

use weir_model::load::{SearchEnd, SearchLimit};
use weir_model::record::{Finding, Severity};
use weir_model::text::human_rate;

use super::{Check, Evidence, Kind, finding};

pub const CHECK: Check = Check {
    kind: Kind::Headroom,
    names: &["search-room", "search-time"],
    sees: "a search whose rates failed because the client was at its own limit. It also notes a search that ran out of \
         time before the interval was narrow enough. The rate found is valid all the same, because it was confirmed \
         at full length",
    threshold: "a client's thread busy for 90 % of the window, or late with connections free",
    source: "as for `client-room` and `client-lag`",
    remedy: "give the client more CPUs (`--cpus`), or run it on another host; the product may carry more",
    blind: "",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let search = e.search?;
    if search.limit == Some(SearchLimit::Client) {
        let severity = if e.proxied { Severity::Warning } else { Severity::Note };
        let message = "higher rates failed because the client was at its own limit".to_owned();
        return CHECK.finding(severity, message);
    }
    if search.end != SearchEnd::Budget {
        return None;
    }
    let rate = human_rate(search.rate.unwrap_or_default());
    let message = match search.failed_from {
        Some(failed) => format!("the time was over when {rate} was known to meet it and {} not to", human_rate(failed)),
        None => format!("the time was over when {rate} was known to meet it, and nothing higher had failed"),
    };
    finding("search-time", Severity::Note, message, "a longer `duration`: the search may take ten times as long")
}

#[cfg(test)]
mod tests {
    use crate::fixture::{good, search};
    use weir_model::load::{SearchEnd, SearchLimit};
    use weir_model::record::Severity;

    #[test]
    fn a_client_that_was_the_limit_is_seen() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None, "no search");
        trial.search = Some(search(SearchEnd::Found, Some(SearchLimit::Target)));
        assert_eq!(trial.check(super::check), None);
        trial.search = Some(search(SearchEnd::Found, Some(SearchLimit::Client)));
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Warning);
        trial.proxied = false;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Note);
    }

    #[test]
    fn a_search_without_time_says_what_it_knows() {
        let mut trial = good();
        trial.search = Some(search(SearchEnd::Budget, Some(SearchLimit::Target)));
        let found = trial.check(super::check).expect("says so");
        assert_eq!(found.severity, Severity::Note);
        assert_eq!(found.message, "the time was over when 9k/s was known to meet it and 9.9k/s not to");
        trial.search = Some(weir_model::load::SearchResult { failed_from: None, ..search(SearchEnd::Budget, None) });
        assert!(trial.check(super::check).expect("says so").message.ends_with("nothing higher had failed"));
    }
}
