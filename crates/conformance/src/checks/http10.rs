//! Checks an HTTP/1.0 client: with and without `Host`, with keep-alive, and with a response that the origin sends in
//! chunks. Listed in `table::CHECKS`.

use weir_model::suite::Protocol;
use weir_wire::http1::Framing;

use super::reference;
use crate::cell::Cell;
use crate::client::{Endpoint, Failure, Response, TIMEOUT, version};
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "http-1.0",
    title: "HTTP/1.0 client",
    asks: "Requests of HTTP/1.0 with Host and without, for an answer with a length and for one in chunks, which such a client does not \
           know: are they answered so that it understands?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const PLAIN: &str = "/bytes/300";
const CHUNKED: &str = "/bytes/300?chunked=1";

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, PLAIN)?;
    let endpoint = bed.product();
    let authority = endpoint.authority();
    let host = format!("Host: {authority}\r\n");
    let response = match ask(&endpoint, PLAIN, &host) {
        Err(failure) => return Err(Cell::failure(&failure)),
        Ok(response) if response.status != 200 => return Err(Cell::status(&response)),
        Ok(response) if response.body != right.body => return Err(Cell::no("wrong body")),
        Ok(response) => response,
    };
    let says = format!("answers as {}", version(response.version));
    match ask(&endpoint, CHUNKED, &host) {
        Ok(response) if response.framing == Framing::Chunked => {
            return Err(Cell::no("sends chunks").with("a client of HTTP/1.0 takes the chunks' sizes for the body"));
        }
        // The strict parser reports the same problem as a malformed response.
        Err(Failure::Malformed(why)) if why.contains("Transfer-Encoding") => {
            return Err(Cell::no("sends chunks").with(why));
        }
        Ok(response) if response.status == 200 && response.body == right.body => {}
        Ok(response) if response.status == 200 => return Err(Cell::no("wrong body").with("of an answer in chunks")),
        Ok(response) => return Err(Cell::status(&response).with("for an answer in chunks")),
        Err(failure) => return Err(Cell::failure(&failure).with("at an answer in chunks")),
    }
    let kept =
        ask(&endpoint, PLAIN, &format!("{host}Connection: keep-alive\r\n")).is_ok_and(|response| response.keep_alive);
    let notes = if kept {
        format!("{says}; keeps the connection when asked to")
    } else {
        format!("{says}; closes even when asked not to")
    };
    Ok(match ask(&endpoint, PLAIN, "") {
        Ok(response) if response.status == 200 => Cell::yes().with(notes),
        Ok(response) => {
            Cell::odd("yes, with Host").with(format!("without Host it answers {}", response.status)).with(notes)
        }
        Err(failure) => Cell::odd("yes, with Host").with(format!("without Host it {}", failure.word())).with(notes),
    })
}

fn ask(endpoint: &Endpoint, target: &str, headers: &str) -> Result<Response, Failure> {
    endpoint.ask(format!("GET {target} HTTP/1.0\r\n{headers}\r\n").as_bytes(), false, TIMEOUT)
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
        let good = run(&mut FakeTestbed::good());
        assert_eq!(good.says, "yes", "{good:?}");
        let only_11 = |asked: &Received| asked.head.contains("HTTP/1.0").then(|| Reply::Close(answer(426, "", b"")));
        assert_eq!(run(&mut FakeTestbed::but(only_11)).says, "426");
        let with_host = |asked: &Received| asked.header("host").is_none().then(|| Reply::Close(answer(400, "", b"")));
        let cell = run(&mut FakeTestbed::but(with_host));
        assert_eq!(cell.says, "yes, with Host");
        assert!(cell.note.expect("a note").starts_with("without Host it answers 400"));
        let chunks = |asked: &Received| {
            let newer = Received { head: asked.head.replace("HTTP/1.0", "HTTP/1.1"), ..asked.clone() };
            Some(Reply::Close(origin(&newer)))
        };
        assert_eq!(run(&mut FakeTestbed::but(chunks)).says, "sends chunks");
        assert!(
            run(&mut FakeTestbed::but(|asked| Some(closing(asked))))
                .note
                .expect("a note")
                .ends_with("closes even when asked not to")
        );
    }
}
