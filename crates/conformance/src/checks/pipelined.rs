//! Checks pipelining: three requests in one write. Listed in `table::CHECKS`.

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::client::TIMEOUT;
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "pipelined",
    title: "Pipelined requests",
    asks: "Three GETs sent in one piece, the second of which the origin answers after 100 ms: do three answers come, in order?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const TARGETS: [&str; 3] = ["/bytes/1", "/bytes/2?delay=100ms", "/bytes/3"];

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let requests = TARGETS.map(|target| endpoint.request("GET", target, &[]));
    let mut conn = endpoint.open()?;
    if let Err(failure) = conn.send_all(&requests, TIMEOUT) {
        return Err(Cell::failure(&failure));
    }
    for nth in 0..TARGETS.len() {
        match conn.answer(TIMEOUT) {
            Err(failure) if nth == 0 => return Err(Cell::failure(&failure)),
            Err(failure) => {
                let note = format!("after {nth} of 3 answers it {}", failure.word());
                return Err(Cell::no(format!("{nth} of 3")).with(note).with(failure.detail().unwrap_or_default()));
            }
            Ok(response) if response.status != 200 => {
                return Err(Cell::status(&response).with(format!("at the request {} of 3", nth + 1)));
            }
            Ok(response) if response.body.len() != nth + 1 => return Err(Cell::no("wrong order")),
            Ok(response) if !response.keep_alive && nth < 2 => {
                let note = format!(
                    "answer {} of 3 ends the connection; the requests behind it have to be sent again",
                    nth + 1
                );
                return Err(Cell::odd(format!("{} of 3", nth + 1)).with(note));
            }
            Ok(_) => {}
        }
    }
    Ok(Cell::yes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Received, Reply, answer, closing, origin};

    fn run(bed: &mut dyn Testbed) -> Cell {
        super::run(bed).unwrap_or_else(|cell| cell)
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut FakeTestbed::good()), Cell::yes());
        let one = run(&mut FakeTestbed::but(|asked| Some(Reply::Close(origin(asked)))));
        assert_eq!((one.says.as_str(), one.note.as_deref()), ("1 of 3", Some("after 1 of 3 answers it closes")));
        let turned = |asked: &Received| {
            let target = format!("/bytes/{}", 3 - asked.nth);
            Some(Reply::Keep(origin(&Received { target, ..asked.clone() })))
        };
        assert_eq!(run(&mut FakeTestbed::but(turned)).says, "wrong order");
        assert_eq!(run(&mut FakeTestbed::but(|_| Some(Reply::Keep(answer(400, "", b""))))).says, "400");
        let cell = run(&mut FakeTestbed::but(|asked| Some(closing(asked))));
        assert_eq!((cell.says.as_str(), cell.verdict), ("1 of 3", crate::Verdict::Odd));
    }
}
