//! Adds the open connections of client and proxy to the rows of a window. The origin's are in its rows already. The series of
//! a trial calls it.
//!
//! A pure function of the rows and the client's result. The client counts its connections at the end of each of its seconds.
//! Its seconds and the seconds of the rows begin with the window, at most some milliseconds apart. So each row takes the count
//! of the client's second that ended nearest to its own end. The proxy's connections are those of the client plus those of the
//! origin. While connections are being opened or closed, this sum may be wrong by their number, because both ends of a
//! connection do not see the change at the same moment.

use weir_model::load::{LoadResult, LoadSecond};
use weir_model::record::{ResourceSecond, Role};

/// A client's second that ended further away than this from a row's end belongs to another row.
const NEAR_MS: f64 = 500.0;

/// Adds the connections of the client, and those of the proxy where the origin's are known.
pub fn add(rows: &mut [ResourceSecond], load: &LoadResult) {
    let ends = ends(load);
    let of_client = |row: &ResourceSecond| nearest(&ends, row.time_ms as f64);
    let of_origin: Vec<(u64, Option<u64>)> = (rows.iter().filter(|row| row.who == Role::Origin.as_str()))
        .map(|row| (row.time_ms, row.connections_open))
        .collect();
    for row in rows {
        if row.who == Role::Client.as_str() {
            row.connections_open = of_client(row);
        } else if row.who == Role::Proxy.as_str() {
            let origin = of_origin.iter().find(|(time_ms, _)| *time_ms == row.time_ms).and_then(|(_, open)| *open);
            row.connections_open = of_client(row).zip(origin).map(|(client, origin)| client + origin);
        }
    }
}

/// When the client's seconds ended, Unix time in milliseconds, and how many connections it had then.
fn ends(load: &LoadResult) -> Vec<(f64, Option<u64>)> {
    let mut passed_s = 0.0;
    let end = |row: &LoadSecond| {
        passed_s += row.length_s;
        (load.window_start_ms as f64 + passed_s * 1e3, row.connections_open.map(u64::from))
    };
    load.series.iter().map(end).collect()
}

fn nearest(ends: &[(f64, Option<u64>)], time_ms: f64) -> Option<u64> {
    let away = |end: &&(f64, Option<u64>)| (end.0 - time_ms).abs();
    let (_, open) = ends.iter().min_by(|a, b| away(a).total_cmp(&away(b))).filter(|end| away(end) <= NEAR_MS)?;
    *open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load_result;

    const BEGIN_MS: u64 = 5_000_000;

    /// A client with so many connections at the end of each second; the last second may be a part of one.
    fn load(open: &[Option<u32>], last_s: f64) -> LoadResult {
        let last = open.len() - 1;
        let second = |(n, open): (usize, &Option<u32>)| LoadSecond {
            second: n as u32,
            length_s: if n == last { last_s } else { 1.0 },
            connections_open: *open,
            ..LoadSecond::default()
        };
        let series = open.iter().enumerate().map(second).collect();
        LoadResult { window_start_ms: BEGIN_MS, series, ..load_result(1.0) }
    }

    fn row(who: &str, after_ms: u64, connections_open: Option<u64>) -> ResourceSecond {
        ResourceSecond { who: who.into(), time_ms: BEGIN_MS + after_ms, connections_open, ..ResourceSecond::default() }
    }

    fn seen(mut rows: Vec<ResourceSecond>, load: &LoadResult) -> Vec<Option<u64>> {
        add(&mut rows, load);
        rows.iter().map(|row| row.connections_open).collect()
    }

    #[test]
    fn the_proxys_are_those_of_client_and_origin() {
        let load = load(&[Some(64), Some(63)], 1.0);
        let rows = [(1_004, Some(8)), (2_009, Some(7))].map(|(at, open)| {
            [row("client", at, None), row("origin", at, open), row("proxy", at, None), row("host", at, None)]
        });
        assert_eq!(seen(rows.concat(), &load), [Some(64), Some(8), Some(72), None, Some(63), Some(7), Some(70), None]);
    }

    #[test]
    fn the_proxys_are_unknown_when_either_end_is_unknown() {
        let rows = |origin| vec![row("client", 1_000, None), row("origin", 1_000, origin), row("proxy", 1_000, None)];
        assert_eq!(seen(rows(None), &load(&[Some(64)], 1.0)), [Some(64), None, None]);
        assert_eq!(seen(rows(Some(8)), &load(&[None], 1.0)), [None, Some(8), None]);
        // An origin row of another moment does not count.
        let apart = vec![row("origin", 1_000, Some(8)), row("proxy", 2_000, None)];
        assert_eq!(seen(apart, &load(&[Some(64), Some(64)], 1.0)), [Some(8), None]);
    }

    #[test]
    fn each_row_takes_the_clients_second_that_ended_nearest() {
        let load = load(&[Some(1), Some(2), Some(3)], 0.1);
        // The last row has what was left of the window in it; the client's own is by itself.
        let client = |after_ms| row("client", after_ms, None);
        assert_eq!(seen(vec![client(998), client(2_103)], &load), [Some(1), Some(3)]);
        assert_eq!(seen(vec![client(1_499), client(2_040)], &load), [Some(1), Some(2)]);
        assert_eq!(seen(vec![client(499), client(2_601)], &load), [None, None], "none ended then");
    }
}
