//! A link at its limit.

use weir_model::record::{Finding, HostRecord, ResourceSecond, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Headroom,
    names: &["link"],
    sees: "a link between the hosts that carried all it can, so that the network was measured. Hosts that share a \
         machine are judged by the rows of their own network",
    threshold: "90 % of what the interface of the traffic carries, either way",
    source: "preamble, gap and checksum of Ethernet frames of 1,500 bytes take 1.6 %, and no counter has them. A queue \
         before a link grows without bound towards its limit (see `client-room`)",
    remedy: "smaller bodies, a lower rate, or faster links; the product may carry more",
    blind: "interfaces that do not know their speed, as many of virtual machines, unless the topology does. The counters \
         include loopback, so a product whose parts speak much to each other may be named without need",
    provoked: false,
    run: Some(check),
};

const FULL: f64 = 0.90;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let machines = e.machines();
    let rows_of = |host: &HostRecord| {
        let who = ResourceSecond::who_of_network(&host.name);
        let own: Vec<&ResourceSecond> = e.series.iter().filter(|row| row.who == who).collect();
        let alone = || machines.iter().find(|(on, _)| matches!(on.as_slice(), [one] if one.name == host.name));
        if own.is_empty() { alone().map(|(_, rows)| rows.clone()) } else { Some(own) }
    };
    let fullest = e.hosts.iter().filter_map(|host| {
        let (name, link, rows) = (&host.name, host.link()?, rows_of(host)?);
        let length_s: f64 = rows.iter().map(|row| row.length_s).sum();
        let rate = |of: fn(&ResourceSecond) -> Option<u64>| {
            let bytes: u64 = rows.iter().filter_map(|row| of(row)).sum();
            bytes as f64 * 8.0 / length_s
        };
        let (way, bits) = [("received", rate(|row| row.net_in_bytes)), ("sent", rate(|row| row.net_out_bytes))]
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        let share = bits / link.bits_per_s? as f64;
        Some((
            share,
            format!("{name} {way} {:.0} Mbit/s, {:.0} % of what {} carries", bits / 1e6, share * 100.0, link.name),
        ))
    });
    let (_, message) = fullest.filter(|(share, _)| *share >= FULL).max_by(|a, b| a.0.total_cmp(&b.0))?;
    CHECK.finding(Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use weir_model::record::ResourceSecond;

    use crate::fixture::three_hosts;

    #[test]
    fn a_full_link_is_seen_where_its_capacity_is_known() {
        let mut trial = three_hosts();
        trial.series[1].net_in_bytes = Some(100_000_000);
        assert_eq!(trial.check(super::check), None, "80 %");
        trial.series[1].net_in_bytes = Some(115_000_000);
        let message = trial.check(super::check).expect("fires").message;
        assert_eq!(message, "client-1 received 920 Mbit/s, 92 % of what eth0 carries");
        trial.hosts[2].machine = trial.hosts[1].machine.clone();
        assert_eq!(trial.check(super::check), None, "a sum of two hosts");
        let network = ResourceSecond { who: ResourceSecond::who_of_network("client-1"), ..trial.series[1].clone() };
        trial.series.push(network);
        let message = trial.check(super::check).expect("fires").message;
        assert_eq!(message, "client-1 received 920 Mbit/s, 92 % of what eth0 carries", "a network of its own");
        let mut trial = three_hosts();
        trial.series[1].net_in_bytes = Some(115_000_000);
        trial.hosts[1].facts.links[0].bits_per_s = None;
        assert_eq!(trial.check(super::check), None, "not known");
    }
}
