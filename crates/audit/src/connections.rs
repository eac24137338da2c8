//! Downstream keep-alive: detects a product that closes the client's connections, so that handshakes are measured, too.
//! Listed in `CHECKS`.
//!
//! Threshold: one extra connection per hundred requests costs a few per cent of a small request, because a TCP handshake and
//! teardown costs the kernel about as much as three requests. Less than that is not visible.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

/// Requests per reconnection below which it matters.
const REQUESTS_PER_RECONNECT: u64 = 100;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let total = &e.load.total;
    let extra = total.connections.saturating_sub(u64::from(e.connections));
    if extra == 0 || total.sent / extra >= REQUESTS_PER_RECONNECT {
        return None;
    }
    let message = format!(
        "{extra} connections had to be opened again for {} requests; {} were closed by the peer between answers",
        total.sent, total.closed_by_peer
    );
    finding(
        "downstream-keepalive",
        Severity::Warning,
        message,
        "raise the product's limit of requests a connection, or say in the suite that connections are short",
    )
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
    }
}
