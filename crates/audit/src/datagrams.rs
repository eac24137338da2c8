//! Datagrams of QUIC that were lost, or came one by one.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding, percent};

const SHARE: f64 = 0.001;

/// The start of a few connections may cost as many.
const LEAST: u64 = 10;

/// So few may all have come alone.
const LEAST_ALONE: u64 = 1000;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let quic = e.load.quic.as_ref()?;
    let (lost, sent) = (quic.packets_lost, quic.packets_out);
    let loses = lost >= LEAST && lost as f64 >= SHARE * sent as f64;
    // With one request at a time there is nothing to join.
    let many = e.load.streams > 1;
    let alone = many && quic.datagrams_in >= LEAST_ALONE && quic.trains_in == quic.datagrams_in;
    let mut said = Vec::new();
    if quic.refused > 0 {
        said.push(format!("the client's kernel had no room for {} of {} datagrams", quic.refused, quic.datagrams_out));
    }
    if loses {
        let share = percent(lost as f64, sent as f64);
        said.push(format!("{lost} of {sent} packets of the client were lost ({share:.2} %)"));
    }
    if alone {
        let received = quic.datagrams_in;
        said.push(format!("all of {received} datagrams came alone (1.00 at a time): the product sends them so, or something on the way takes them apart"));
    }
    let severity = if loses || quic.refused > 0 { Severity::Warning } else { Severity::Note };
    if said.is_empty() { None } else { finding("datagrams", severity, said.join("; ")) }
}

#[cfg(test)]
mod tests {
    use weir_model::load::QuicResult;
    use weir_model::record::Severity;

    use crate::fixture::good;

    #[test]
    fn fires_where_packets_are_lost_and_notes_those_that_come_alone() {
        let mut trial = good();
        trial.load.streams = 8;
        assert_eq!(trial.check(super::check), None, "no QUIC");
        let fine = QuicResult {
            datagrams_out: 9_000,
            packets_out: 10_000,
            packets_lost: 9,
            datagrams_in: 20_000,
            trains_in: 19_999,
            ..QuicResult::default()
        };
        let mut found = |quic: QuicResult| {
            trial.load.quic = Some(quic);
            trial.check(super::check).map(|finding| (finding.severity, finding.message))
        };
        assert_eq!(found(fine.clone()), None);
        let (severity, message) = found(QuicResult { packets_lost: 10, ..fine.clone() }).expect("fires");
        assert_eq!(severity, Severity::Warning);
        assert_eq!(message, "10 of 10000 packets of the client were lost (0.10 %)");
        assert_eq!(
            found(QuicResult { packets_out: 10_001, packets_lost: 10, ..fine.clone() }),
            None,
            "one in a thousand"
        );
        let (severity, message) = found(QuicResult { trains_in: 20_000, ..fine.clone() }).expect("fires");
        assert_eq!(severity, Severity::Note);
        assert!(message.starts_with("all of 20000 datagrams came alone (1.00 at a time)"), "{message}");
        assert_eq!(found(QuicResult { datagrams_in: 999, trains_in: 999, ..fine.clone() }), None);
        let (severity, message) = found(QuicResult { refused: 3, ..fine }).expect("fires");
        assert_eq!(
            (severity, &*message),
            (Severity::Warning, "the client's kernel had no room for 3 of 9000 datagrams")
        );
    }
}
