//! Measures what a product with one worker takes: memory when it is idle and with 1,000 clients, processes, threads and
//! cores under load.

use std::time::Duration;

use weir_model::text::count;
use weir_product::client::{Http1, TIMEOUT};

use crate::Verdict;
use crate::cell::{Cell, size, with_status};
use crate::testbed::{Testbed, memory, pause};

const SETTLES: Duration = Duration::from_secs(1);

pub const CLIENTS: usize = 1000;

/// One worker uses one core; the rest is the delay of the kernel's accounting.
const ONE: f64 = 1.1;

pub fn memory_idle(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    pause(bed.stop(), SETTLES);
    let (bytes, kind) = memory(&bed.sample().map_err(Cell::unknown)?);
    let cell = Cell::reading(size(bytes));
    Ok(match kind {
        "PSS" => cell,
        _ => cell.with("the sum of resident sets: the kernel does not say the proportional one"),
    })
}

pub fn memory_with(bed: &mut dyn Testbed, clients: usize) -> Result<Cell, Cell> {
    let before = memory(&bed.sample().map_err(Cell::unknown)?).0;
    let endpoint = bed.product();
    let request = endpoint.request("GET", "/bytes/128", &[]);
    let one_more = || -> Result<Http1, Cell> {
        let mut conn = endpoint.open()?;
        with_status(200, conn.ask(&request, false, TIMEOUT))?;
        Ok(conn)
    };
    let mut open = Vec::with_capacity(clients);
    for nth in 0..clients as u64 {
        open.push(one_more().map_err(|cell| {
            let note = format!("connection {} gets: {}", count(nth + 1), cell.says);
            Cell::no(format!("{} clients", count(nth))).with(note)
        })?);
    }
    let now = memory(&bed.sample().map_err(Cell::unknown)?).0;
    let each = now.saturating_sub(before) / clients as u64;
    Ok(Cell::reading(size(now)).with(format!("{} a connection", size(each))))
}

pub fn processes(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let usage = bed.under_load().map_err(Cell::unknown)?.usage;
    let count = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
    Ok(Cell::reading(format!("{} / {}", count(usage.processes_max), count(usage.threads_max))))
}

pub fn cores(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let loaded = bed.under_load().map_err(Cell::unknown)?;
    let cores = loaded.usage.cores_busy;
    let mut cell = Cell::reading(format!("{cores:.1}"));
    if cores > ONE {
        cell = Cell { verdict: Verdict::Odd, ..cell }.with("more than the configured one");
    }
    Ok(match loaded.errors {
        0 => cell,
        n if loaded.rate == 0.0 => cell.with(format!("no request was successful, {n} failed")),
        n => cell.with(format!("{n} requests failed")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::either;
    use crate::fake::{FakeTestbed, Received, Reply, raw_response};
    use crate::table::cell_of;
    use crate::testbed::LoadSample;

    #[test]
    fn the_proportional_set_where_there_is_one() {
        let mut bed = FakeTestbed::good();
        assert_eq!(cell_of("memory-idle", &mut bed), Cell::reading("8.0 MiB"));
        bed.usage.pss_max_bytes = None;
        let cell = cell_of("memory-idle", &mut bed);
        assert_eq!(cell.says, "9.0 MiB");
        assert!(cell.note.is_some());
    }

    #[test]
    fn growth_is_divided_and_a_limit_is_found() {
        let mut bed = FakeTestbed::good();
        bed.growth = 4096 * 20;
        let cell = either(memory_with(&mut bed, 20));
        assert_eq!((cell.says.as_str(), cell.note.as_deref()), ("8.2 MiB", Some("4.0 KiB a connection")));
        let limited = |asked: &Received| (asked.connection >= 7).then(|| Reply::Close(raw_response(503, "", b"")));
        let cell = either(memory_with(&mut FakeTestbed::but(limited), 20));
        assert_eq!((cell.says.as_str(), cell.note.as_deref()), ("7 clients", Some("connection 8 gets: 503")));
    }

    #[test]
    fn processes_and_threads_are_both_reported() {
        let mut bed = FakeTestbed::good();
        assert_eq!(cell_of("processes", &mut bed), Cell::unknown("no load"));
        bed.load = Some(LoadSample { usage: bed.usage.clone(), rate: 1.0, errors: 0 });
        assert_eq!(cell_of("processes", &mut bed), Cell::reading("2 / 3"));
    }

    #[test]
    fn more_than_one_core_is_odd() {
        let cell = |cores_busy: f64, errors: u64| {
            let mut bed = FakeTestbed::good();
            bed.usage.cores_busy = cores_busy;
            bed.load = Some(LoadSample { usage: bed.usage.clone(), rate: 9.0, errors });
            cell_of("cores", &mut bed)
        };
        assert_eq!(cell(0.97, 0), Cell::reading("1.0"));
        assert_eq!((cell(1.42, 0).says.as_str(), cell(1.42, 0).verdict), ("1.4", Verdict::Odd));
        assert_eq!(cell(0.5, 3).note.as_deref(), Some("3 requests failed"));
        assert_eq!(cell_of("cores", &mut FakeTestbed::good()).verdict, Verdict::Unknown);
    }
}
