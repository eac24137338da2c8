//! Keep-alive on the client's side.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["downstream-keepalive"],
    sees: "a product that closes the client's connections, so that handshakes are measured, too",
    threshold: "one extra connection for a hundred requests",
    source: "a handshake and a teardown of TCP cost the kernel about as much as three small requests. One in a hundred is \
         a few per cent",
    remedy: "raise the product's limit of requests a connection, or say in the suite that each request has a connection (`close`)",
    blind: "fewer than that",
    provoked: true,
    run: Some(check),
};

/// Requests per reconnection below which it matters.
const REQUESTS_PER_RECONNECT: u64 = 100;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let total = &e.load.total;
    let extra = total.connections.saturating_sub(u64::from(e.connections));
    if e.close || extra == 0 || total.sent / extra >= REQUESTS_PER_RECONNECT {
        return None;
    }
    let message = format!(
        "{extra} connections had to be opened again for {} requests; {} were closed by the peer between answers",
        total.sent, total.closed_by_peer
    );
    CHECK.finding(Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_only_when_reconnections_are_frequent() {
        let mut trial = good();
        trial.load.total.connections = 64 + 10;
        assert_eq!(trial.check(super::check), None);
        trial.load.total.connections = 64 + 1_000;
        assert!(trial.check(super::check).is_some());
        trial.close = true;
        assert_eq!(trial.check(super::check), None, "that is what the load asks for");
    }
}
