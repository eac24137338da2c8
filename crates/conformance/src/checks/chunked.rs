//! Checks that chunked bodies pass in both directions, and whether they are still chunked on the other side.

use weir_wire::http1::Framing;
use weir_wire::http1::encode::{LAST_CHUNK, chunk};

use super::post::pattern;
use super::reference;
use crate::cell::{Cell, with_body};
use crate::testbed::Testbed;
use weir_product::client::{Endpoint, RequestError, Response, TIMEOUT};

const SIZE: usize = 256 * 1024;
const RESPONSE: &str = "/bytes/262144?chunked=1";

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let body = pattern(SIZE);
    with_body(&body, post(&endpoint, "/echo", &body)).map_err(|cell| cell.with("at a chunked request"))?;
    let right = reference(bed, RESPONSE)?;
    let response = with_body(&right.body, endpoint.get(RESPONSE)).map_err(|cell| cell.with("at a chunked response"))?;
    let arrived =
        post(&endpoint, "/headers", &body).map(|response| String::from_utf8_lossy(&response.body).to_lowercase());
    let buffers = arrived.is_ok_and(|head| !head.contains("transfer-encoding"));
    let buffered = if buffers { "a chunked request reaches the origin with Content-Length" } else { "" };
    let unchunks = response.framing != Framing::Chunked;
    let unchunked = if unchunks { unchunked(&response) } else { String::new() };
    let cell = match (buffers, unchunks) {
        (false, false) => Cell::yes(),
        (true, false) => Cell::odd("yes, buffers"),
        (false, true) => Cell::odd("yes, unchunks"),
        (true, true) => Cell::odd("yes, neither kept"),
    };
    Ok(cell.with(buffered).with(unchunked))
}

fn unchunked(response: &Response) -> String {
    let framing = match response.framing {
        Framing::None => "no body",
        Framing::Length(_) => "Content-Length",
        Framing::Chunked => "chunks",
        Framing::UntilClose => "the end of the connection",
    };
    format!("a chunked response reaches the client with {framing}")
}

fn post(endpoint: &Endpoint, target: &str, body: &[u8]) -> Result<Response, RequestError> {
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
    use crate::fake::{FakeTestbed, Received, Reply, origin, raw_response};
    use crate::table::cell_of;

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(cell_of("chunked", &mut FakeTestbed::good()), Cell::yes());
        let refuses =
            |asked: &Received| asked.header("transfer-encoding").map(|_| Reply::Keep(raw_response(411, "", b"")));
        assert_eq!(cell_of("chunked", &mut FakeTestbed::but(refuses)).says, "411");
        let buffers = |asked: &Received| {
            let head = asked.head.replace("Transfer-Encoding: chunked", "Content-Length: 262144");
            (asked.path() == "/headers").then(|| Reply::Keep(raw_response(200, "", head.as_bytes())))
        };
        assert_eq!(cell_of("chunked", &mut FakeTestbed::but(buffers)).says, "yes, buffers");
        let unchunks = |asked: &Received| {
            let plain = Received { target: "/bytes/262144".into(), ..asked.clone() };
            (asked.target == RESPONSE).then(|| Reply::Keep(origin(&plain)))
        };
        let cell = cell_of("chunked", &mut FakeTestbed::but(unchunks));
        assert_eq!(
            (cell.says.as_str(), cell.note.as_deref()),
            ("yes, unchunks", Some("a chunked response reaches the client with Content-Length"))
        );
        let both = move |asked: &Received| buffers(asked).or_else(|| unchunks(asked));
        assert_eq!(cell_of("chunked", &mut FakeTestbed::but(both)).says, "yes, neither kept");
        let short = |asked: &Received| (asked.path() == "/echo").then(|| Reply::Keep(raw_response(200, "", b"")));
        assert_eq!(cell_of("chunked", &mut FakeTestbed::but(short)).says, "wrong body");
    }
}
