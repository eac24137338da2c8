//! Checks keep-alive towards the origin: counts the connections for 1,000 requests.

use std::collections::BTreeMap;

use weir_host::threads::at_once;
use weir_model::text::count;

use super::{Lost, ask_over};
use crate::cell::Cell;
use crate::testbed::Testbed;
use weir_model::text::list;
use weir_product::client::{Endpoint, RequestError};

const CONNECTIONS: u64 = 10;
const EACH: u64 = 100;

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let before = bed.counters().map_err(Cell::unknown)?;
    let endpoint = bed.product();
    let numbers: Vec<u64> = (0..CONNECTIONS).collect();
    let clients = at_once(&numbers, |nth| client(&endpoint, *nth));
    let after = bed.counters().map_err(Cell::unknown)?.since(&before);
    let successful: u64 = clients.iter().map(|client| client.successful).sum();
    let reconnects: u64 = clients.iter().map(|client| client.reconnects).sum();
    if let Some(failure) = clients.iter().find_map(|client| client.failure.clone()) {
        return Ok(Cell::no(failure).with(format!("after {successful} successful responses")));
    }
    let made = after.connections_accepted;
    let says = match made {
        0 | 1 => format!("{made} connection"),
        n => format!("{} connections", count(n)),
    };
    // A few more connections than clients are normal when the first requests arrive at once. A connection for every
    // tenth request is no keep-alive.
    let cell = match made {
        n if n <= 2 * CONNECTIONS => Cell::yes(),
        n if n < CONNECTIONS * EACH / 10 => Cell::odd(""),
        _ => Cell::no(""),
    };
    let cell = Cell { says, ..cell };
    let cell =
        if reconnects > 0 { cell.with(format!("the client had to connect again {reconnects} times")) } else { cell };
    Ok(match connection_headers(&after.connection_headers) {
        Some(words) if made > 2 * CONNECTIONS => cell.with(words),
        _ => cell,
    })
}

/// The `Connection` headers that the product sent to the origin.
fn connection_headers(counts: &BTreeMap<String, u64>) -> Option<String> {
    let words: Vec<String> = counts
        .iter()
        .filter(|(name, n)| *name != "(none)" && **n > 0)
        .map(|(name, n)| format!("{name} {} times", count(*n)))
        .collect();
    (!words.is_empty()).then(|| format!("it says Connection: {}", list(&words)))
}

#[derive(Debug, Default)]
struct Client {
    successful: u64,
    reconnects: u64,
    failure: Option<String>,
}

fn client(endpoint: &Endpoint, nth: u64) -> Client {
    let mut client = Client::default();
    let mut conn = None;
    while client.successful < EACH {
        let fresh = conn.is_none();
        // Each request has a new target, because a product that caches must ask the origin for each.
        let request = endpoint.request("GET", &format!("/bytes/128?x={nth}-{}", client.successful), &[]);
        match ask_over(endpoint, conn.take(), &request) {
            Ok(open) => {
                client.successful += 1;
                client.reconnects += u64::from(open.is_none() && client.successful < EACH);
                conn = open;
            }
            // The product may close a connection between two requests.
            Err(Lost::Failed(RequestError::Closed | RequestError::Reset)) if !fresh => client.reconnects += 1,
            Err(lost) => {
                client.failure = Some(lost.word());
                return client;
            }
        }
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, closing, raw_response};
    use crate::table::cell_of;

    #[test]
    fn connections_are_counted() {
        let cell = cell_of("keep-alive", &mut FakeTestbed::good());
        assert_eq!((cell.says.as_str(), cell.verdict), ("10 connections", crate::Verdict::Yes));
        let cell = cell_of("keep-alive", &mut FakeTestbed::but(|asked| (asked.nth == 4).then(|| closing(asked))));
        assert_eq!((cell.says.as_str(), cell.verdict), ("200 connections", crate::Verdict::No));
        assert_eq!(cell.note.as_deref(), Some("the client had to connect again 190 times"));
        assert_eq!(
            cell_of("keep-alive", &mut FakeTestbed::but(|_| Some(Reply::Keep(raw_response(502, "", b""))))).says,
            "502"
        );
    }

    #[test]
    fn what_it_says_of_connections_is_told() {
        let counts = BTreeMap::from([("(none)".to_owned(), 3), ("close".to_owned(), 1_000)]);
        assert_eq!(connection_headers(&counts).as_deref(), Some("it says Connection: close 1,000 times"));
        assert_eq!(connection_headers(&BTreeMap::from([("(none)".to_owned(), 3)])), None);
    }
}
