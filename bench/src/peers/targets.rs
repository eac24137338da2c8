//! What is to be reached, and whether it was.

use weir_stats::Estimate;

use super::cases::{Cell, MAIN, Part};
use super::server;
use super::tool;

/// The most that weir may cost of what `peer` costs in a cell of clients; `None` where nothing is asked.
pub fn client(cell: &Cell, peer: tool::Kind) -> Option<f64> {
    if cell.part != Part::Clients {
        return None;
    }
    let main = (cell.connections, cell.size) == MAIN;
    match peer {
        tool::Kind::Wrk if main => Some(0.65),
        tool::Kind::Wrk if cell.connections < 16 => Some(1.0),
        tool::Kind::Wrk => Some(0.8),
        tool::Kind::H1load if main => Some(0.85),
        tool::Kind::Null if main => Some(1.10),
        _ => None,
    }
}

/// The most that weir's origin may cost of what `peer` costs.
pub fn origin(cell: &Cell, peer: server::Kind) -> Option<f64> {
    if (cell.connections, cell.size) != MAIN {
        return None;
    }
    match peer {
        server::Kind::Nginx | server::Kind::NginxCopy => Some(0.45),
        server::Kind::Null => Some(1.10),
        server::Kind::Weir => None,
    }
}

/// Open load: most us that its median may be above the closed median with one connection.
pub const OPEN_ABOVE_ONE_US: f64 = 30.0;

/// Open load: most us of lag at 50 % (nothing asked), 99 % and 99.9 %.
pub const LAG_US: [Option<f64>; 3] = [None, Some(50.0), Some(200.0)];

/// A run of so many seconds ends at most so much later, s.
pub const ENDS_WITHIN_S: f64 = 0.5;

/// What of the plan this program does not compare.
pub const NOT_COMPARED: &[&str] = &[
    "TLS 1.3 (client <= 0.70 x wrk, origin <= 0.75 x nginx): weir speaks plain HTTP/1.1 as yet.",
    "HTTP/2 (<= 0.60 x h2load): as above.",
    "200,000 established connections: needs several processes or rings a side; not part of this program.",
    "wrk2 at a constant rate: no package registry at hand has it.",
];

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
        let cell = |connections, size| Cell { part: Part::Clients, connections, size };
        assert_eq!(client(&cell(64, 128), tool::Kind::Wrk), Some(0.65));
        assert_eq!(client(&cell(64, 11_268), tool::Kind::Wrk), Some(0.8));
        assert_eq!(client(&cell(1, 128), tool::Kind::Wrk), Some(1.0));
        assert_eq!(client(&cell(10_000, 128), tool::Kind::Wrk), Some(0.8));
        assert_eq!(client(&cell(10_000, 128), tool::Kind::Null), None);
        assert_eq!(client(&Cell { part: Part::Nginx, ..cell(64, 128) }, tool::Kind::Wrk), None);
        assert_eq!(origin(&cell(64, 128), server::Kind::Null), Some(1.10));
    }
}
