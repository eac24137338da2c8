//! Connections of which some are served worse than others.

use weir_model::record::{Finding, Severity};
use weir_model::text::human_us;

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["uneven-connections"],
    sees: "a product that serves some connections slower than others: most are on one of its workers, or a worker is \
         slower. Each connection counts by the mean latency of its responses",
    threshold: "the slowest tenth of the connections took twice as long as the fastest tenth, or one took four times the \
         median. It is noted, because products do spread unevenly. It needs 8 connections, with 20 responses each \
         (100 in an open load)",
    source: "the kernel gives connections to workers at random (SO_REUSEPORT). On average, one of 4 workers has a third \
         more of 64 connections than the mean, and another a third less",
    remedy: "see how the product gives connections to its workers; with more connections a random spread becomes even",
    blind: "connections that are slow in turns; requests of different cost, if each connection sends one kind",
    provoked: true,
    run: Some(check),
};

/// Responses of a connection in the mean, in an open load: they are not alike in time.
const OPEN: u64 = 100;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let spread = e.load.by_connection.as_ref().filter(|_| e.proxied)?;
    let few = e.load.offered_rate.is_some() && spread.responses < OPEN * spread.connections;
    if few || !spread.is_uneven() {
        return None;
    }
    let message = format!(
        "connections were served unevenly: of {}, the slowest tenth took {} and more in the mean, the fastest tenth {} and less; \
         {} took more than twice the median. One got {} responses and another {}",
        spread.connections,
        human_us(spread.p90_us),
        human_us(spread.p10_us),
        spread.slow,
        spread.fewest,
        spread.most
    );
    CHECK.finding(Severity::Note, message)
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::load::ConnectionSpread;

    use super::*;
    use crate::fixture::{Trial, good};

    /// Connections with these mean latencies: a tenth, the median, nine tenths, all.
    pub fn spread([p10_us, p50_us, p90_us, max_us]: [f64; 4]) -> Trial {
        let mut trial = good();
        trial.load.by_connection = Some(ConnectionSpread {
            connections: 64,
            responses: 10_000,
            fewest: 40,
            most: 200,
            p10_us,
            p50_us,
            p90_us,
            max_us,
            slow: 8,
        });
        trial
    }

    #[test]
    fn connections_that_are_served_worse_are_noted() {
        assert_eq!(good().check(check), None, "an older record");
        assert_eq!(spread([900.0, 1_000.0, 1_700.0, 2_500.0]).check(check), None);
        let slow = spread([900.0, 1_000.0, 5_000.0, 5_100.0]).check(check).expect("an eighth is slower");
        assert_eq!(slow.severity, Severity::Note);
        assert!(slow.message.contains("the slowest tenth took 5 ms"), "{}", slow.message);
        assert!(spread([250.0, 1_000.0, 1_050.0, 1_100.0]).check(check).is_some(), "four fifths on one of two workers");
        assert!(spread([900.0, 1_000.0, 1_100.0, 4_500.0]).check(check).is_some(), "one starves");
    }

    #[test]
    fn few_responses_say_nothing() {
        let mut trial = spread([900.0, 1_000.0, 5_000.0, 5_100.0]);
        trial.load.offered_rate = Some(10_000.0);
        trial.load.by_connection.as_mut().expect("there").responses = 6_000;
        assert_eq!(trial.check(check), None, "94 each, in an open load");
        trial.load.offered_rate = None;
        assert!(trial.check(check).is_some());
        trial.load.by_connection.as_mut().expect("there").connections = 7;
        assert_eq!(trial.check(check), None, "few connections");
    }
}
