//! Checks that GET returns the origin's whole response, three times over one connection.

use super::reference;
use crate::cell::{Cell, with_body};
use crate::testbed::Testbed;
use weir_product::client::TIMEOUT;

const TARGET: &str = "/bytes/11268";

/// The check itself, over whatever protocol the product's endpoint uses.
pub fn ask(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, TARGET)?;
    let endpoint = bed.product();
    let mut conn = endpoint.open()?;
    for nth in 1..=3 {
        let response = conn.ask(&endpoint.request("GET", TARGET, &[]), false, TIMEOUT);
        let response =
            response.map_err(|failure| Cell::failure(&failure).with(format!("at request {nth} of a connection")));
        let response = with_body(&right.body, Ok(response?))?;
        if !response.keep_alive && nth < 3 {
            return Ok(Cell::odd("yes, closes").with(format!("it closes the client's connection after request {nth}")));
        }
    }
    Ok(Cell::yes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, closing, origin, raw_response};
    use crate::table::cell_of;

    fn says(mut bed: FakeTestbed) -> String {
        cell_of("get", &mut bed).says
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(cell_of("get", &mut FakeTestbed::good()), Cell::yes());
        let status =
            cell_of("get", &mut FakeTestbed::but(|_| Some(Reply::Keep(raw_response(503, "", b"<b>not</b> now")))));
        assert_eq!((status.says.as_str(), status.note.as_deref()), ("503", Some("it returns 503: not now")));
        assert_eq!(says(FakeTestbed::but(|_| Some(Reply::Keep(raw_response(200, "", b"short"))))), "wrong body");
        assert_eq!(says(FakeTestbed::but(|asked| Some(Reply::Close(origin(asked))))), "closes", "without a word of it");
        assert_eq!(says(FakeTestbed::but(|asked| Some(closing(asked)))), "yes, closes");
        assert_eq!(says(FakeTestbed::but(|asked| (asked.nth == 1).then_some(Reply::Close(Vec::new())))), "closes");
    }
}
