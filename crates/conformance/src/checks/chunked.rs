//! Checks that chunked bodies pass in both directions, and whether they are still chunked on the other side. Listed in
//! `table::CHECKS`.

use weir_model::suite::Protocol;
use weir_wire::http1::Framing;
use weir_wire::http1::encode::{LAST_CHUNK, chunk};

use super::post::pattern;
use super::reference;
use crate::cell::Cell;
use crate::client::{Endpoint, Failure, Response, TIMEOUT};
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "chunked",
    title: "Chunked both ways",
    asks: "POST of 256 KiB in chunks of 4 KiB, and GET of an answer in chunks: are the bytes right? \
           \"buffers\": a request arrives with Content-Length, having been kept until it was whole; \
           \"unchunks\": an answer does.",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const SIZE: usize = 256 * 1024;
const ANSWER: &str = "/bytes/262144?chunked=1";

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let body = pattern(SIZE);
    match post(&endpoint, "/echo", &body) {
        Err(failure) => return Err(Cell::failure(&failure).with("at a chunked request")),
        Ok(response) if response.status != 200 => return Err(Cell::status(&response).with("at a chunked request")),
        Ok(response) if response.body != body => return Err(Cell::no("wrong body").with("of a chunked request")),
        Ok(_) => {}
    }
    let right = reference(bed, ANSWER)?;
    let answer = match endpoint.get(ANSWER) {
        Err(failure) => return Err(Cell::failure(&failure).with("at a chunked answer")),
        Ok(response) if response.status != 200 => return Err(Cell::status(&response).with("at a chunked answer")),
        Ok(response) if response.body != right.body => return Err(Cell::no("wrong body").with("of a chunked answer")),
        Ok(response) => response,
    };
    let arrived =
        post(&endpoint, "/headers", &body).map(|response| String::from_utf8_lossy(&response.body).to_lowercase());
    let buffers = arrived.is_ok_and(|head| !head.contains("transfer-encoding"));
    Ok(match (buffers, answer.framing) {
        (false, Framing::Chunked) => Cell::yes(),
        (true, Framing::Chunked) => {
            Cell::odd("yes, buffers").with("a chunked request reaches the origin with Content-Length")
        }
        (false, _) => Cell::odd("yes, unchunks").with(unchunked(&answer)),
        (true, _) => Cell::odd("yes, neither kept")
            .with("a chunked request reaches the origin with Content-Length")
            .with(unchunked(&answer)),
    })
}

fn unchunked(answer: &Response) -> String {
    format!("a chunked answer reaches the client with {}", crate::client::framing(answer))
}

fn post(endpoint: &Endpoint, target: &str, body: &[u8]) -> Result<Response, Failure> {
    let mut request = endpoint.request("POST", target, &[("Transfer-Encoding", "chunked")]);
    for piece in body.chunks(4096) {
        chunk(&mut request, piece);
    }
    request.extend_from_slice(LAST_CHUNK);
    endpoint.ask(&request, false, TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Received, Reply, answer, origin};

    fn run(bed: &mut dyn Testbed) -> Cell {
        super::run(bed).unwrap_or_else(|cell| cell)
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut FakeTestbed::good()), Cell::yes());
        let refuses = |asked: &Received| asked.header("transfer-encoding").map(|_| Reply::Keep(answer(411, "", b"")));
        assert_eq!(run(&mut FakeTestbed::but(refuses)).says, "411");
        let buffers = |asked: &Received| {
            let head = asked.head.replace("Transfer-Encoding: chunked", "Content-Length: 262144");
            (asked.path() == "/headers").then(|| Reply::Keep(answer(200, "", head.as_bytes())))
        };
        assert_eq!(run(&mut FakeTestbed::but(buffers)).says, "yes, buffers");
        let unchunks = |asked: &Received| {
            let plain = Received { target: "/bytes/262144".into(), ..asked.clone() };
            (asked.target == ANSWER).then(|| Reply::Keep(origin(&plain)))
        };
        let cell = run(&mut FakeTestbed::but(unchunks));
        assert_eq!(
            (cell.says.as_str(), cell.note.as_deref()),
            ("yes, unchunks", Some("a chunked answer reaches the client with Content-Length"))
        );
        let both = move |asked: &Received| buffers(asked).or_else(|| unchunks(asked));
        assert_eq!(run(&mut FakeTestbed::but(both)).says, "yes, neither kept");
        let short = |asked: &Received| (asked.path() == "/echo").then(|| Reply::Keep(answer(200, "", b"")));
        assert_eq!(run(&mut FakeTestbed::but(short)).says, "wrong body");
    }
}
