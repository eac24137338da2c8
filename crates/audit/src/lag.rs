//! Whether the client sent in time.

use weir_model::record::{Finding, Severity};
use weir_model::text::human_us;

use super::{Check, Evidence, Kind, finding};

pub const CHECK: Check = Check {
    kind: Kind::Headroom,
    names: &["client-lag"],
    sees: "an open load whose latencies are higher because the client itself sent late: it compares percentiles with \
         and without the client's own lag. A request that waits for a free connection waits for the product, and is \
         not late because of the client",
    threshold: "a tenth of the latency, at the median or the 99th percentile, and at least 20 us. At the 99th percentile the \
         lag must also exceed the uncertainty of that percentile without it (upper end of its 95 % interval). For \
         `direct` it is only noted",
    source: "a thread with the finest timer slack oversleeps by 20 us in the median on the 2-core virtual machine on \
         which weir was built. There, 20,000 sleeps of 0.2 ms had a median of 21 to 24 us and a 99th percentile of 50 \
         to 54 us. In windows of 2 s at 4,500/s a single stop of 4 ms moves the 99th percentile by a tenth to a \
         third. On an idle machine 10 of 66 such windows were over a tenth, and 1 also over the interval. Next to \
         other work it was 11 and 5 of 62",
    remedy: "give the client a CPU of its own, or offer less",
    blind: "a lag in a short window that is a small part of an uncertain 99th percentile. Closed loads, and responses \
         that are read late. If the client stood still with all connections taken, requests count as waiting for the \
         product (`stalls` shows that)",
    provoked: true,
    run: Some(check),
};

const SHARE: f64 = 0.1;
const LEAST_US: f64 = 20.0;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let late = e.load.lateness.as_ref()?;
    let mut quantiles = vec![("the median", e.load.latency.p50_us, late.latency.p50_us)];
    if e.load.latency.p99_us > late.p99_to_us {
        quantiles.push(("p99", e.load.latency.p99_us, late.latency.p99_us));
    }
    let added = |(_, latency, without): &(&str, f64, f64)| latency - without;
    let visible = quantiles.into_iter().filter(|one| added(one) >= LEAST_US && added(one) > one.1 * SHARE);
    let (name, latency, without) = visible.max_by(|a, b| (added(a) / a.1).total_cmp(&(added(b) / b.1)))?;
    let message = format!(
        "the client sent late (by {} at p99 while connections were free): {name} of the latency is {}, and {} without that",
        human_us(late.lag.p99_us),
        human_us(latency),
        human_us(without)
    );
    let severity = if e.proxied { Severity::Warning } else { Severity::Note };
    finding(CHECK.names[0], severity, message, CHECK.remedy)
}

#[cfg(test)]
mod tests {
    use weir_model::load::{Lateness, Quantiles};
    use weir_model::record::Severity;

    use crate::fixture::{Trial, good};

    /// Latency and latency without the client's own lag, at the median and at p99.
    fn late(latency: (f64, f64), without: (f64, f64)) -> Trial {
        let micros = |(p50_us, p99_us): (f64, f64)| Quantiles { p50_us, p99_us, ..Quantiles::default() };
        let mut trial = good();
        trial.load.offered_rate = Some(10_000.0);
        trial.load.latency = micros(latency);
        trial.load.lateness =
            Some(Lateness { lag: micros((10.0, 200.0)), latency: micros(without), p99_to_us: without.1 });
        trial
    }

    #[test]
    fn fires_when_the_clients_lag_is_a_visible_part() {
        let found = |latency, without| late(latency, without).check(super::check);
        assert_eq!(found((200.0, 1_000.0), (190.0, 950.0)), None);
        assert_eq!(found((60.0, 150.0), (45.0, 140.0)), None, "a wake-up is no fault");
        let at_p99 = found((200.0, 1_000.0), (190.0, 700.0)).expect("fires");
        assert!(at_p99.message.contains("p99 of the latency is 1 ms, and 700"), "{}", at_p99.message);
        let at_p50 = found((200.0, 1_000.0), (120.0, 950.0)).expect("fires");
        assert!(at_p50.message.contains("the median"), "{}", at_p50.message);
    }

    #[test]
    fn what_the_window_is_too_short_to_tell_is_no_lag() {
        let mut trial = late((200.0, 1_000.0), (190.0, 700.0));
        let to = |trial: &mut Trial, us| trial.load.lateness.as_mut().expect("an open load").p99_to_us = us;
        to(&mut trial, 1_000.0);
        assert_eq!(trial.check(super::check), None);
        to(&mut trial, 990.0);
        assert!(trial.check(super::check).is_some());
        trial.load.latency.p50_us = 300.0;
        to(&mut trial, 1_000.0);
        assert!(trial.check(super::check).expect("fires").message.contains("the median"));
    }

    #[test]
    fn waits_for_a_connection_are_no_lag_of_the_client() {
        let mut trial = late((200.0, 10_000.0), (195.0, 10_000.0));
        trial.load.lag.p99_us = 9_000.0;
        assert_eq!(trial.check(super::check), None);
        trial.load.lateness = None;
        assert_eq!(trial.check(super::check), None, "a closed load, or an older record");
    }

    #[test]
    fn without_a_product_it_is_noted() {
        let mut trial = late((200.0, 1_000.0), (190.0, 700.0));
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Warning);
        trial.proxied = false;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Note);
    }
}
