//! Checks that GET returns the origin's whole response, three times over one connection. Listed in `table::CHECKS`;
//! `tls` uses it, too.

use weir_model::suite::Protocol;

use super::reference;
use crate::cell::Cell;
use crate::client::TIMEOUT;
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "get",
    title: "GET",
    asks: "Three GETs of 11,268 bytes over one connection: are status and body the origin's, and is the connection kept?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const TARGET: &str = "/bytes/11268";

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    ask(bed)
}

/// The check itself, over whatever protocol the product's endpoint uses.
pub fn ask(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, TARGET)?;
    let endpoint = bed.product();
    let mut conn = endpoint.open()?;
    for nth in 1..=3 {
        let response = match conn.ask(&endpoint.request("GET", TARGET, &[]), false, TIMEOUT) {
            Ok(response) => response,
            Err(failure) => return Err(Cell::failure(&failure).with(format!("at request {nth} of a connection"))),
        };
        if response.status != right.status {
            return Err(Cell::status(&response));
        }
        if response.body != right.body {
            return Err(Cell::no("wrong body").with(format!(
                "{} bytes; the origin's {}",
                response.body.len(),
                right.body.len()
            )));
        }
        if !response.keep_alive && nth < 3 {
            return Err(Cell::odd("yes, closes").with(format!("it closes the client's connection after request {nth}")));
        }
    }
    Ok(Cell::yes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, answer, closing, origin};

    fn run(bed: &mut dyn Testbed) -> Cell {
        super::run(bed).unwrap_or_else(|cell| cell)
    }

    fn says(mut bed: FakeTestbed) -> String {
        run(&mut bed).says
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut FakeTestbed::good()), Cell::yes());
        let status = run(&mut FakeTestbed::but(|_| Some(Reply::Keep(answer(503, "", b"<b>not</b> now")))));
        assert_eq!((status.says.as_str(), status.note.as_deref()), ("503", Some("it answers 503: not now")));
        assert_eq!(says(FakeTestbed::but(|_| Some(Reply::Keep(answer(200, "", b"short"))))), "wrong body");
        assert_eq!(says(FakeTestbed::but(|asked| Some(Reply::Close(origin(asked))))), "closes", "without a word of it");
        assert_eq!(says(FakeTestbed::but(|asked| Some(closing(asked)))), "yes, closes");
        assert_eq!(says(FakeTestbed::but(|asked| (asked.nth == 1).then_some(Reply::Close(Vec::new())))), "closes");
    }
}
