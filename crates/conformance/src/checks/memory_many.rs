//! Measures the memory with 1,000 open client connections, each of which has carried a request. Listed in
//! `table::CHECKS`.

use weir_model::suite::Protocol;

use crate::cell::{Cell, size};
use crate::client::TIMEOUT;
use crate::table::{Check, When};
use crate::testbed::{Testbed, memory};
use weir_model::text::count;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "memory-1000",
    title: "Memory, 1,000 clients",
    asks: "Memory of all its processes with 1,000 client connections open, each of which has carried one request; and what each added.",
    protocol: Protocol::Http11,
    when: When::ManyConnections,
    run,
};

const CLIENTS: usize = 1000;

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    with(bed, CLIENTS)
}

fn with(bed: &mut dyn Testbed, clients: usize) -> Result<Cell, Cell> {
    let before = match bed.sample() {
        Ok(usage) => memory(&usage).0,
        Err(why) => return Err(Cell::unknown(why)),
    };
    let endpoint = bed.product();
    let request = endpoint.request("GET", "/bytes/128", &[]);
    let mut conns = Vec::with_capacity(clients);
    for nth in 0..clients {
        let asked = endpoint.open().and_then(|mut conn| {
            let response = conn.ask(&request, false, TIMEOUT)?;
            Ok((conn, response))
        });
        let failure = match asked {
            Ok((conn, response)) if response.status == 200 => {
                conns.push(conn);
                continue;
            }
            Ok((_, response)) => response.status.to_string(),
            Err(failure) => failure.word().to_owned(),
        };
        return Err(Cell::no(format!("{} clients", count(nth as u64)))
            .with(format!("connection {} gets: {failure}", count(nth as u64 + 1))));
    }
    Ok(match bed.sample() {
        Ok(usage) => {
            let now = memory(&usage).0;
            let each = now.saturating_sub(before) / clients as u64;
            Cell::reading(size(now)).with(format!("{} a connection", size(each)))
        }
        Err(why) => Cell::unknown(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, answer};

    fn with(bed: &mut dyn Testbed, clients: usize) -> Cell {
        super::with(bed, clients).unwrap_or_else(|cell| cell)
    }

    #[test]
    fn growth_is_divided_and_a_limit_is_found() {
        let mut bed = FakeTestbed::good();
        bed.growth = 4096 * 20;
        let cell = with(&mut bed, 20);
        assert_eq!((cell.says.as_str(), cell.note.as_deref()), ("8.2 MiB", Some("4.0 KiB a connection")));
        let limited =
            |asked: &crate::fake::Received| (asked.connection >= 7).then(|| Reply::Close(answer(503, "", b"")));
        let cell = with(&mut FakeTestbed::but(limited), 20);
        assert_eq!((cell.says.as_str(), cell.note.as_deref()), ("7 clients", Some("connection 8 gets: 503")));
    }
}
