//! How often a product opened a connection to the origin, from the origin's books: what opens one for each request pays for
//! it in CPU, in the origin's too, and runs out of ports.

use super::super::facts::{OwnFacts, Pair, Side};
use super::sides;
use crate::number::short;

/// Connections a request from which on a product is said to open them for requests, and not for clients.
pub(in super::super) const OPENS_OFTEN: f64 = 0.2;

/// "99.8 of every 100 requests".
pub(in super::super) fn per_hundred(connections_per_request: f64) -> String {
    format!("{} of every 100 requests", short((connections_per_request * 100.0).min(100.0)))
}

/// One side opened connections for requests and the other did not; or one did under another profile, which may be the one
/// that was published.
pub(super) fn origin(pair: &Pair) -> Vec<String> {
    let [a, b] = sides(pair);
    [here(a, b), here(b, a), elsewhere(a), elsewhere(b)].into_iter().flatten().collect()
}

fn opens(facts: &OwnFacts) -> Option<f64> {
    facts.connections_per_request.filter(|connections| *connections >= OPENS_OFTEN)
}

fn here(side: &Side, other: &Side) -> Option<String> {
    let connections = opens(&side.ours)?;
    let others = other.ours.connections_per_request?;
    (others < OPENS_OFTEN).then(|| {
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
    let own = side.ours.connections_per_request.filter(|connections| *connections < OPENS_OFTEN)?;
    let (otherwise, connections) = side.otherwise.iter().find_map(|facts| Some((facts, opens(facts)?)))?;
    Some(format!(
        "{} as {} opens a connection to the origin for {} and carries {}/s, as {} for {} and {}/s",
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

    #[test]
    fn who_opens_a_connection_a_request_is_named() {
        let mut pair = sample::silent();
        pair.behind.ours.connections_per_request = Some(0.998);
        assert_eq!(
            origin(&pair),
            ["Birch opened a connection to the origin for 99.8 of every 100 requests, Alder for 0.200"]
        );
        // Both do: that is no difference between them.
        pair.ahead.ours.connections_per_request = Some(1.0);
        assert_eq!(origin(&pair), Vec::<String>::new());
    }

    #[test]
    fn another_profile_that_does_is_named() {
        let mut pair = sample::silent();
        pair.ahead.otherwise[0].connections_per_request = Some(1.0);
        pair.ahead.otherwise[0].rate = 7_000.0;
        assert_eq!(
            origin(&pair),
            [
                "Alder as stock opens a connection to the origin for 100 of every 100 requests and carries 7,000/s, as tuned for 0.200 \
              and 20,000/s"
            ]
        );
    }

    #[test]
    fn without_books_nothing_is_said() {
        let mut pair = sample::silent();
        assert_eq!(origin(&pair), Vec::<String>::new());
        pair.ahead.ours.connections_per_request = None;
        pair.behind.ours.connections_per_request = Some(1.0);
        assert_eq!(origin(&pair), Vec::<String>::new());
    }
}
