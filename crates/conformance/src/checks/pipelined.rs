//! Checks pipelining: three requests in one write.

use crate::cell::{Cell, detail, with_status, word};
use crate::testbed::Testbed;
use weir_product::client::TIMEOUT;

const TARGETS: [&str; 3] = ["/bytes/1", "/bytes/2?delay=100ms", "/bytes/3"];

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let requests = TARGETS.map(|target| endpoint.request("GET", target, &[]));
    let mut conn = endpoint.open()?;
    conn.send_all(&requests, TIMEOUT)?;
    for nth in 1..=TARGETS.len() {
        let response = conn.read_response(TIMEOUT).map_err(|failure| match nth {
            1 => Cell::failure(&failure),
            _ => {
                let note = format!("after {} of 3 responses it {}", nth - 1, word(&failure));
                Cell::no(format!("{} of 3", nth - 1)).with(note).with(detail(&failure).unwrap_or_default())
            }
        })?;
        let response =
            with_status(200, Ok(response)).map_err(|cell| cell.with(format!("at the request {nth} of 3")))?;
        if response.body.len() != nth {
            return Ok(Cell::no("wrong order"));
        }
        if !response.keep_alive && nth < 3 {
            let note = format!("response {nth} of 3 ends the connection; the next requests have to be sent again");
            return Ok(Cell::odd(format!("{nth} of 3")).with(note));
        }
    }
    Ok(Cell::yes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Received, Reply, closing, origin, raw_response};
    use crate::table::cell_of;

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(cell_of("pipelined", &mut FakeTestbed::good()), Cell::yes());
        let one = cell_of("pipelined", &mut FakeTestbed::but(|asked| Some(Reply::Close(origin(asked)))));
        assert_eq!((one.says.as_str(), one.note.as_deref()), ("1 of 3", Some("after 1 of 3 responses it closes")));
        let turned = |asked: &Received| {
            let target = format!("/bytes/{}", 3 - asked.nth);
            Some(Reply::Keep(origin(&Received { target, ..asked.clone() })))
        };
        assert_eq!(cell_of("pipelined", &mut FakeTestbed::but(turned)).says, "wrong order");
        assert_eq!(
            cell_of("pipelined", &mut FakeTestbed::but(|_| Some(Reply::Keep(raw_response(400, "", b""))))).says,
            "400"
        );
        let cell = cell_of("pipelined", &mut FakeTestbed::but(|asked| Some(closing(asked))));
        assert_eq!((cell.says.as_str(), cell.verdict), ("1 of 3", crate::Verdict::Odd));
    }
}
