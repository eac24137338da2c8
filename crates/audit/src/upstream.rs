//! Keep-alive between product and origin.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let origin = e.origin?;
    // A client that cancels a stream of HTTP/1.1 has the product close its connection, too.
    let (requests, opened) = (origin.requests, origin.connections_accepted.saturating_sub(e.cancelled()));
    // A WebSocket has a connection to the origin of its own, and here each carries one message.
    let of_sockets = e.close && e.load.total.statuses.contains_key(&101);
    if !e.proxied || requests == 0 || opened <= e.in_flight() || of_sockets {
        return None;
    }
    let ratio = requests as f64 / opened as f64;
    let severity = match ratio {
        r if r < 10.0 => Severity::Warning,
        r if r < 100.0 => Severity::Note,
        _ => return None,
    };
    let message = format!(
        "the product opened {opened} connections to the origin for {requests} requests ({ratio:.1} requests a connection)"
    );
    finding("upstream-keepalive", severity, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::record::Severity;

    #[test]
    fn a_connection_a_request_is_suspect_and_reuse_is_silent() {
        let mut trial = good();
        trial.origin.connections_accepted = 10_000;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Warning);
        trial.load.total.statuses = [(101, 10_000)].into();
        assert!(trial.check(super::check).is_some(), "sockets that carry many messages");
        trial.close = true;
        assert_eq!(trial.check(super::check), None, "each message has a socket");
        trial.close = false;
        trial.origin.connections_accepted = 200;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Note);
        trial.origin.connections_accepted = 90;
        assert_eq!(trial.check(super::check), None);
        trial.origin.connections_accepted = 10_000;
        trial.proxied = false;
        assert_eq!(trial.check(super::check), None);
    }
}
