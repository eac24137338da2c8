//! Segments sent again.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind, named, percent};

pub const CHECK: Check = Check {
    kind: Kind::Noise,
    names: &["retransmits"],
    sees: "a network between hosts that lost or delayed segments, so that they were sent again",
    threshold: "one segment in a thousand, and at least 10: the start of a few connections may cost as many",
    source: "Linux waits at least 200 ms (`TCP_RTO_MIN`) for a lost segment that no later one makes up for, far longer \
         than requests take. As many requests are then in the tail that percentiles like p99.9 describe",
    remedy: "see in the interfaces' counters (`ip -s link`) what loses them; their requests are in the tail of every \
         latency",
    blind: "loopback, which loses nothing",
    provoked: true,
    run: Some(check),
};

const SHARE: f64 = 0.001;

/// The start of a few connections may cost as many.
const LEAST: u64 = 10;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let (machine, again, sent) = e
        .machines()
        .into_iter()
        .map(|(machine, rows)| {
            let known = rows.iter().filter_map(|row| Some((row.tcp_retransmits?, row.tcp_segments_sent?)));
            let (again, sent) = known.fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
            (machine, again, sent)
        })
        .filter(|(_, again, sent)| *again >= LEAST && *again as f64 >= SHARE * *sent as f64)
        .max_by_key(|(_, again, _)| *again)?;
    let message = format!(
        "{} sent {again} of {sent} segments again ({:.2} %)",
        named(&machine),
        percent(again as f64, sent as f64)
    );
    CHECK.finding(Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::{good, three_hosts};

    #[test]
    fn fires_from_one_in_a_thousand_on_between_hosts() {
        let mut trial = three_hosts();
        trial.series[1].tcp_segments_sent = Some(20_000);
        trial.series[1].tcp_retransmits = Some(19);
        assert_eq!(trial.check(super::check), None);
        trial.series[1].tcp_retransmits = Some(20);
        assert!(
            trial.check(super::check).expect("fires").message.starts_with("client-1 sent 20 of 20000 segments again")
        );
        trial.series[1].tcp_segments_sent = Some(100);
        trial.series[1].tcp_retransmits = Some(9);
        assert_eq!(trial.check(super::check), None, "too few");
        let mut local = good();
        local.series[0].tcp_segments_sent = Some(100);
        local.series[0].tcp_retransmits = Some(50);
        assert_eq!(local.check(super::check), None, "one machine");
    }
}
