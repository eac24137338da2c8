//! Checks that 204 and 304 have no body, and that the connection still works after them.

use crate::cell::{Cell, with_status};
use crate::testbed::Testbed;
use weir_product::client::{Endpoint, TIMEOUT};

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let mut worst = Cell::yes();
    for status in [204, 304] {
        match one(&endpoint, status) {
            Ok(None) => {}
            Ok(Some(note)) => worst = Cell::odd(format!("{status} with length")).with(note),
            Err(cell) => return Err(cell.with(format!("at {status}"))),
        }
    }
    Ok(worst)
}

/// Returns a note if the response works but breaks the standard.
fn one(endpoint: &Endpoint, status: u16) -> Result<Option<String>, Cell> {
    let mut conn = endpoint.open()?;
    // 304 is a response to a client that already has the content.
    let request = endpoint.request("GET", &format!("/status/{status}"), &[("If-None-Match", "\"weir\"")]);
    let response = with_status(status, conn.ask(&request, false, TIMEOUT))?;
    if response.keep_alive {
        let next = with_status(200, conn.ask(&endpoint.request("GET", "/bytes/3", &[]), false, TIMEOUT));
        match next.map_err(|cell| cell.with("the next response does not follow"))? {
            next if next.body.len() == 3 => {}
            next => return Err(Cell::status(&next).with("the next response does not follow")),
        }
    }
    // A 304 may have the `Content-Length` that 200 would have (RFC 9110, section 8.6). A 204 may not, and neither is
    // chunked.
    let names: &[&str] = if status == 204 { &["content-length", "transfer-encoding"] } else { &["transfer-encoding"] };
    let announced = names.iter().find_map(|name| Some((name, response.header(name)?)));
    Ok(announced.map(|(name, value)| {
        format!("a {status} comes with {name}: {value}, which RFC 9110 (8.6) and 9112 (6.1) forbid")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Received, Reply, raw_response};
    use crate::table::cell_of;

    fn to(status: &'static str, bytes: &'static [u8]) -> Cell {
        cell_of(
            "no-body",
            &mut FakeTestbed::but(move |asked: &Received| {
                (asked.target == status).then(|| Reply::Keep(bytes.to_vec()))
            }),
        )
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(cell_of("no-body", &mut FakeTestbed::good()), Cell::yes());
        assert_eq!(to("/status/204", b"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n").says, "204 with length");
        assert_eq!(to("/status/304", b"HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n"), Cell::yes());
        assert_eq!(to("/status/304", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").says, "200");
        let body = to("/status/204", b"HTTP/1.1 204 No\r\n\r\nbody\r\n\r\n");
        assert_eq!(body.says, "not HTTP", "{body:?}");
        assert_eq!(
            cell_of(
                "no-body",
                &mut FakeTestbed::but(|asked| (asked.nth == 1).then(|| Reply::Keep(raw_response(500, "", b""))))
            )
            .says,
            "500"
        );
    }
}
