//! Keep-alive on the client's side.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

/// Requests per reconnection below which it matters.
const REQUESTS_PER_RECONNECT: u64 = 100;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let total = &e.load.total;
    // A filter may close the connection of a request that it refuses: one with a body that is too long. The client closes those of streams
    // that it cancels.
    let excused = e.refused_by_filter(total) + e.cancelled();
    let extra = total.connections.saturating_sub(u64::from(e.connections) + excused);
    if e.close || extra == 0 || total.sent / extra >= REQUESTS_PER_RECONNECT {
        return None;
    }
    let message = format!(
        "{extra} connections had to be opened again for {} requests; {} were closed by the peer between responses",
        total.sent, total.closed_by_peer
    );
    finding("downstream-keepalive", Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::{filtered, good};
    use weir_model::gateway::{Filter, Gateway};

    #[test]
    fn fires_only_when_reconnections_are_frequent() {
        let mut trial = good();
        trial.load.total.connections = 64 + 10;
        assert_eq!(trial.check(super::check), None);
        trial.load.total.connections = 64 + 1_000;
        assert!(trial.check(super::check).is_some());
        trial.load.total.statuses = [(200, 9_010), (413, 990)].into();
        trial.gateway = filtered(Filter::BodyLimit, None);
        assert_eq!(trial.check(super::check), None, "it closes those of what it refuses");
        trial.gateway = Gateway::default();
        assert!(trial.check(super::check).is_some());
        trial.close = true;
        assert_eq!(trial.check(super::check), None, "that is what the load asks for");
    }
}
