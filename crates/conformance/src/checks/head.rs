//! Checks that HEAD returns the head of the response to GET, and no body.

use super::reference;
use crate::cell::{Cell, with_status};
use crate::testbed::Testbed;
use weir_product::client::{RequestError, TIMEOUT};

const TARGET: &str = "/bytes/11268";

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, TARGET)?;
    let endpoint = bed.product();
    let mut conn = endpoint.open()?;
    let response = with_status(200, conn.ask(&endpoint.request("HEAD", TARGET, &[]), true, TIMEOUT))?;
    // A forbidden body would be read as the response to the next request.
    if response.keep_alive {
        match conn.ask(&endpoint.request("GET", TARGET, &[]), false, TIMEOUT) {
            Ok(next) if next.body == right.body => {}
            Ok(_) | Err(RequestError::Malformed(_)) => return Err(Cell::no("sends a body")),
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
    use crate::fake::{FakeTestbed, Received, Reply, origin, raw_response};
    use crate::table::cell_of;

    fn to_head(bytes: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> String {
        cell_of("head", &mut FakeTestbed::but(move |asked| (asked.method == "HEAD").then(|| Reply::Keep(bytes(asked)))))
            .says
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(cell_of("head", &mut FakeTestbed::good()), Cell::yes());
        assert_eq!(to_head(|asked| origin(&Received { method: "GET".into(), ..asked.clone() })), "sends a body");
        assert_eq!(to_head(|_| b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), "yes, no length");
        assert_eq!(to_head(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()), "wrong length");
        assert_eq!(to_head(|_| raw_response(405, "", b"")), "405");
    }
}
