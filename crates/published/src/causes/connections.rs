//! How often a product opened a connection to the origin, from the origin's counters: what opens one for each request pays for
//! it in CPU, in the origin's too, and runs out of ports.

use super::super::facts::{OwnFacts, Pair, Side};
use weir_model::text::short;

/// Connections a request from which on a product is said to open them for requests, and not for clients.
const OPENS_OFTEN: f64 = 0.2;

/// Connections for each of the client's that a pool may come to: pools of several workers do not share.
const LARGEST_POOL: f64 = 1.5;

/// "99.8 of every 100 requests".
pub(in super::super) fn per_hundred(connections_per_request: f64) -> String {
    format!("{} of every 100 requests", short((connections_per_request * 100.0).min(100.0)))
}

/// The one that falls back here opened connections for requests and the other did not; or the one that was published as
/// worse does under another profile, which may be the one that was published.
pub(super) fn origin(pair: &Pair) -> Vec<String> {
    [here(&pair.ahead, &pair.behind), elsewhere(&pair.behind)].into_iter().flatten().collect()
}

/// Connections a request, where a product opened them for requests: for so many of them, and more than a pool can hold that
/// has one for each of the client's. A short load fills a pool, and has opened many connections for few requests by that.
pub(in super::super) fn opens(facts: &OwnFacts) -> Option<f64> {
    let beyond_a_pool = facts.connections_per_client.is_none_or(|each| each > LARGEST_POOL);
    facts.connections_per_request.filter(|connections| *connections >= OPENS_OFTEN && beyond_a_pool)
}

fn here(side: &Side, other: &Side) -> Option<String> {
    let connections = opens(&side.ours)?;
    let others = other.ours.connections_per_request?;
    opens(&other.ours).is_none().then(|| {
        format!(
            "{} opened a connection to the origin for {}, {} for {}",
            side.title,
            per_hundred(connections),
            other.title,
            short(others * 100.0)
        )
    })
}

fn elsewhere(side: &Side) -> Option<String> {
    let own = side.ours.connections_per_request.filter(|_| opens(&side.ours).is_none())?;
    let (otherwise, connections) = side.otherwise.iter().find_map(|facts| Some((facts, opens(facts)?)))?;
    Some(format!(
        "{} with {} opens a connection to the origin for {} and carries {}/s, with {} for {} and {}/s",
        side.title,
        otherwise.profile,
        per_hundred(connections),
        short(otherwise.rate),
        side.ours.profile,
        short(own * 100.0),
        short(side.ours.rate)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const SILENT: [String; 0] = [];

    #[test]
    fn who_opens_a_connection_a_request_and_falls_back_is_named() {
        let mut pair = sample::silent();
        pair.ahead.ours.connections_per_request = Some(0.998);
        assert_eq!(
            origin(&pair),
            ["Alder opened a connection to the origin for 99.8 of every 100 requests, Birch for 0.200"]
        );
        // Both do: that is no difference between them.
        pair.behind.ours.connections_per_request = Some(1.0);
        assert_eq!(origin(&pair), SILENT);
    }

    #[test]
    fn a_pool_that_a_short_load_fills_is_none_of_this() {
        let mut pair = sample::silent();
        pair.ahead.ours.connections_per_request = Some(0.25);
        pair.ahead.ours.connections_per_client = Some(1.0);
        assert_eq!(origin(&pair), SILENT);
        pair.ahead.ours.connections_per_client = Some(2.4);
        assert_eq!(origin(&pair).len(), 1);
    }

    #[test]
    fn another_profile_that_does_is_named() {
        let mut pair = sample::silent();
        pair.behind.otherwise[0].connections_per_request = Some(1.0);
        pair.behind.otherwise[0].rate = 7_000.0;
        let wanted = "Birch with stock opens a connection to the origin for 100 of every 100 requests and carries 7,000/s, with \
                      tuned for 0.200 and 20,000/s";
        assert_eq!(origin(&pair), [wanted]);
    }

    #[test]
    fn who_pays_for_connections_and_is_ahead_all_the_same_explains_nothing() {
        let mut pair = sample::silent();
        pair.behind.ours.connections_per_request = Some(1.0);
        pair.ahead.otherwise[0].connections_per_request = Some(1.0);
        assert_eq!(origin(&pair), SILENT);
    }

    #[test]
    fn without_counters_nothing_is_said() {
        let mut pair = sample::silent();
        assert_eq!(origin(&pair), SILENT);
        pair.behind.ours.connections_per_request = None;
        pair.ahead.ours.connections_per_request = Some(1.0);
        assert_eq!(origin(&pair), SILENT);
    }
}
