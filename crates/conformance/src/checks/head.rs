//! Checks that HEAD returns the head of the response to GET, and no body. Listed in `table::CHECKS`.

use weir_model::suite::Protocol;

use super::reference;
use crate::cell::Cell;
use crate::client::{Failure, TIMEOUT};
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "head",
    title: "HEAD",
    asks: "HEAD of 11,268 bytes, then GET on the same connection: is the answer without a body, with the length that GET would have?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const TARGET: &str = "/bytes/11268";

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, TARGET)?;
    let endpoint = bed.product();
    let mut conn = endpoint.open()?;
    let response = conn.ask(&endpoint.request("HEAD", TARGET, &[]), true, TIMEOUT)?;
    if response.status != right.status {
        return Err(Cell::status(&response));
    }
    // A forbidden body would be read as the response to the next request.
    if response.keep_alive {
        match conn.ask(&endpoint.request("GET", TARGET, &[]), false, TIMEOUT) {
            Ok(next) if next.body == right.body => {}
            Ok(_) | Err(Failure::Malformed(_)) => return Err(Cell::no("sends a body")),
            Err(failure) => return Err(Cell::failure(&failure).with("at a GET behind the HEAD")),
        }
    }
    let cell = match response.header("content-length") {
        Some(length) if length == right.body.len().to_string() => Cell::yes(),
        Some(length) => {
            Cell::no("wrong length").with(format!("Content-Length: {length}; GET has {}", right.body.len()))
        }
        None => Cell::odd("yes, no length").with("the origin's Content-Length is left out"),
    };
    Ok(if response.keep_alive { cell } else { cell.with("it closes the connection afterwards") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Received, Reply, answer, origin};

    fn run(bed: &mut dyn Testbed) -> Cell {
        super::run(bed).unwrap_or_else(|cell| cell)
    }

    fn to_head(bytes: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> String {
        run(&mut FakeTestbed::but(move |asked| (asked.method == "HEAD").then(|| Reply::Keep(bytes(asked))))).says
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut FakeTestbed::good()), Cell::yes());
        assert_eq!(to_head(|asked| origin(&Received { method: "GET".into(), ..asked.clone() })), "sends a body");
        assert_eq!(to_head(|_| b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), "yes, no length");
        assert_eq!(to_head(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()), "wrong length");
        assert_eq!(to_head(|_| answer(405, "", b"")), "405");
    }
}
