//! Packets and connections turned away.

use weir_model::record::{Finding, ResourceSecond, Role, Severity};

use super::{Check, Evidence, Kind, named};

pub const CHECK: Check = Check {
    kind: Kind::Noise,
    names: &["drops"],
    sees: "packets that an interface dropped, and connections that a full listen queue turned away, between hosts. Such \
         a connection is tried again after a second, which is then a part of its first request's latency. A full \
         queue on the proxy's machine is the product's own performance, and only noted",
    threshold: "one packet for a thousand segments sent, and at least 10; one connection",
    source: "as for `retransmits`; some packets are always dropped because nobody listens to them, such as those of \
         switches",
    remedy: "larger rings and queues (`ethtool -G`, net.core.somaxconn, net.core.netdev_max_backlog), or a lower rate",
    blind: "loopback",
    provoked: true,
    run: Some(check),
};

const SHARE: f64 = 0.001;
const LEAST: u64 = 10;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let worst = e.machines().into_iter().filter_map(|(machine, rows)| {
        let sum = |of: fn(&ResourceSecond) -> Option<u64>| rows.iter().filter_map(|row| of(row)).sum::<u64>();
        let (packets, turned_away) = (sum(|row| row.net_drops), sum(|row| row.listen_overflows));
        let many = packets >= LEAST && packets as f64 >= SHARE * sum(|row| row.tcp_segments_sent) as f64;
        let host = named(&machine);
        let by_product = machine.iter().any(|host| host.has(Role::Proxy)) && !many;
        let severity = if by_product { Severity::Note } else { Severity::Warning };
        let what = match (many, turned_away) {
            (false, 0) => return None,
            (true, 0) => format!("interfaces of {host} dropped {packets} packets"),
            (false, n) => format!("a listen queue on {host} was full {n} times"),
            (true, n) => {
                format!("interfaces of {host} dropped {packets} packets, and a listen queue was full {n} times")
            }
        };
        Some((severity, what))
    });
    let (severity, message) = worst.max_by_key(|(severity, _)| *severity)?;
    CHECK.finding(severity, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::three_hosts;
    use weir_model::record::Severity;

    #[test]
    fn packets_and_connections_are_seen_and_the_products_own_queue_is_noted() {
        let mut trial = three_hosts();
        trial.series[2].tcp_segments_sent = Some(10_000);
        trial.series[2].net_drops = Some(9);
        assert_eq!(trial.check(super::check), None);
        trial.series[2].net_drops = Some(10);
        assert!(
            trial.check(super::check).expect("fires").message.contains("interfaces of origin-1 dropped 10 packets")
        );

        let mut trial = three_hosts();
        trial.series[0].listen_overflows = Some(3);
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Note);
        trial.series[2].listen_overflows = Some(1);
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Warning);
        trial.hosts.clear();
        assert_eq!(trial.check(super::check), None, "one machine");
    }
}
