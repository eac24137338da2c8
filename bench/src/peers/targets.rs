//! What is to be reached, and whether it was.

use weir_stats::Estimate;

use super::cases::{Cell, MAIN, Part, Wire};
use super::server;
use super::tool;

/// The most that weir may cost of what `peer` costs in a cell of clients; `None` where nothing is asked. With TLS
/// and HTTP/2 the same is asked against nginx as against weir's own origin.
pub fn client(cell: &Cell, peer: tool::Kind) -> Option<f64> {
    let main = (cell.connections, cell.size) == MAIN;
    match (cell.wire, cell.group.part(), peer) {
        (Wire::Plain, Part::Clients, tool::Kind::Wrk) if main => Some(0.65),
        (Wire::Plain, Part::Clients, tool::Kind::Wrk) if cell.connections < 16 => Some(1.0),
        (Wire::Plain, Part::Clients, tool::Kind::Wrk) => Some(0.8),
        (Wire::Plain, Part::Clients, tool::Kind::H1load) if main => Some(0.85),
        (Wire::Plain, Part::Clients, tool::Kind::Null) if main => Some(1.10),
        (Wire::Tls, Part::Clients | Part::Nginx, tool::Kind::Wrk) => Some(0.70),
        (Wire::H2c | Wire::H2Tls, Part::Clients | Part::Nginx, tool::Kind::H2load) => Some(0.60),
        _ => None,
    }
}

/// The most that weir's origin may cost of what `peer` costs.
pub fn origin(cell: &Cell, peer: server::Kind) -> Option<f64> {
    let main = (cell.connections, cell.size) == MAIN;
    match (cell.wire, peer) {
        (Wire::Plain, server::Kind::Nginx | server::Kind::NginxCopy) if main => Some(0.45),
        (Wire::Plain, server::Kind::Null) if main => Some(1.10),
        (Wire::Tls, server::Kind::NginxCopy) => Some(0.75),
        _ => None,
    }
}

/// Open load: most us that its median may be above the closed median with one connection.
pub const OPEN_ABOVE_ONE_US: f64 = 30.0;

/// Open load: most us of lag at 50 % (nothing asked), 99 % and 99.9 %.
pub const LAG_US: [Option<f64>; 3] = [None, Some(50.0), Some(200.0)];

/// A run of so many seconds ends at most so much later, s.
pub const ENDS_WITHIN_S: f64 = 0.5;

/// Whether an estimate keeps below a bound.
pub fn verdict(estimate: &Estimate, most: f64) -> &'static str {
    let certain = estimate.level > 0.0;
    match (estimate.value <= most, estimate.high <= most, estimate.low > most) {
        (true, true, _) if certain => "reached",
        (true, ..) => "reached, not surely",
        (false, _, true) if certain => "**not reached**",
        (false, ..) => "**not reached**, not surely",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::cases::Group;

    fn estimate(low: f64, value: f64, high: f64) -> Estimate {
        Estimate { value, low, high, n: 10, level: 0.95 }
    }

    #[test]
    fn a_verdict_is_sure_when_the_interval_is_on_one_side() {
        assert_eq!(verdict(&estimate(0.5, 0.6, 0.65), 0.65), "reached");
        assert_eq!(verdict(&estimate(0.5, 0.6, 0.7), 0.65), "reached, not surely");
        assert_eq!(verdict(&estimate(0.6, 0.7, 0.8), 0.65), "**not reached**, not surely");
        assert_eq!(verdict(&estimate(0.66, 0.7, 0.8), 0.65), "**not reached**");
        let alone = Estimate { level: 0.0, n: 1, ..estimate(0.6, 0.6, 0.6) };
        assert_eq!(verdict(&alone, 0.65), "reached, not surely");
    }

    #[test]
    fn targets_belong_to_their_cells() {
        let plain =
            |connections, size| Cell { group: Group::Clients, wire: Wire::Plain, connections, streams: 1, size };
        assert_eq!(client(&plain(64, 128), tool::Kind::Wrk), Some(0.65));
        assert_eq!(client(&plain(64, 128), tool::Kind::H1load), Some(0.85));
        assert_eq!(client(&plain(64, 11_268), tool::Kind::Wrk), Some(0.8));
        assert_eq!(client(&plain(1, 128), tool::Kind::Wrk), Some(1.0));
        assert_eq!(client(&plain(10_000, 128), tool::Kind::Wrk), Some(0.8));
        assert_eq!(client(&plain(10_000, 128), tool::Kind::Null), None);
        assert_eq!(client(&Cell { group: Group::Nginx, ..plain(64, 128) }, tool::Kind::Wrk), None);
        let origins = Cell { group: Group::Origins, ..plain(64, 128) };
        assert_eq!(origin(&origins, server::Kind::Null), Some(1.10));
        assert_eq!(origin(&Cell { size: 11_268, ..origins }, server::Kind::Nginx), None);
        for cell in Group::NginxH2.cells() {
            assert_eq!(client(&cell, tool::Kind::H2load), Some(0.60));
            assert_eq!(client(&cell, tool::Kind::Oha), None);
        }
        assert_eq!(client(&Group::ClientsTls.cells()[0], tool::Kind::Wrk), Some(0.70));
        assert_eq!(origin(&Group::OriginsTls.cells()[0], server::Kind::NginxCopy), Some(0.75));
    }
}
