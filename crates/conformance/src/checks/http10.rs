//! Checks an HTTP/1.0 client: with and without `Host`, with keep-alive, and with a response that the origin sends in
//! chunks.

use weir_wire::http1::Framing;

use super::reference;
use crate::cell::{Cell, with_body, word};
use crate::testbed::Testbed;
use weir_product::client::{Endpoint, RequestError, Response, TIMEOUT};

const PLAIN: &str = "/bytes/300";
const CHUNKED: &str = "/bytes/300?chunked=1";

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, PLAIN)?;
    let endpoint = bed.product();
    let host = format!("Host: {}\r\n", endpoint.authority());
    let version = with_body(&right.body, ask(&endpoint, PLAIN, &host))?.version;
    match ask(&endpoint, CHUNKED, &host) {
        Ok(response) if response.framing == Framing::Chunked => {
            return Ok(Cell::no("sends chunks").with("a client of HTTP/1.0 takes the chunks' sizes for the body"));
        }
        // The strict parser reports the same problem as a malformed response.
        Err(RequestError::Malformed(why)) if why.contains("Transfer-Encoding") => {
            return Ok(Cell::no("sends chunks").with(why));
        }
        response => with_body(&right.body, response).map_err(|cell| cell.with("at a response in chunks"))?,
    };
    let kept =
        ask(&endpoint, PLAIN, &format!("{host}Connection: keep-alive\r\n")).is_ok_and(|response| response.keep_alive);
    let keeps = if kept { "keeps the connection when asked to" } else { "closes even when asked not to" };
    let cell = match ask(&endpoint, PLAIN, "") {
        Ok(response) if response.status == 200 => Cell::yes(),
        Ok(response) => Cell::odd("yes, with Host").with(format!("without Host it returns {}", response.status)),
        Err(failure) => Cell::odd("yes, with Host").with(format!("without Host it {}", word(&failure))),
    };
    Ok(cell.with(format!("responds as {version}; {keeps}")))
}

fn ask(endpoint: &Endpoint, target: &str, headers: &str) -> Result<Response, RequestError> {
    endpoint.ask(format!("GET {target} HTTP/1.0\r\n{headers}\r\n").as_bytes(), false, TIMEOUT)
}

#[cfg(test)]
mod tests {
    use crate::fake::{FakeTestbed, Received, Reply, closing, origin, raw_response};
    use crate::table::cell_of;

    #[test]
    fn yes_no_and_odd() {
        let good = cell_of("http-1.0", &mut FakeTestbed::good());
        assert_eq!(good.says, "yes", "{good:?}");
        let only_11 =
            |asked: &Received| asked.head.contains("HTTP/1.0").then(|| Reply::Close(raw_response(426, "", b"")));
        assert_eq!(cell_of("http-1.0", &mut FakeTestbed::but(only_11)).says, "426");
        let with_host =
            |asked: &Received| asked.header("host").is_none().then(|| Reply::Close(raw_response(400, "", b"")));
        let cell = cell_of("http-1.0", &mut FakeTestbed::but(with_host));
        assert_eq!(cell.says, "yes, with Host");
        assert!(cell.note.expect("a note").starts_with("without Host it returns 400"));
        let chunks = |asked: &Received| {
            let newer = Received { head: asked.head.replace("HTTP/1.0", "HTTP/1.1"), ..asked.clone() };
            Some(Reply::Close(origin(&newer)))
        };
        assert_eq!(cell_of("http-1.0", &mut FakeTestbed::but(chunks)).says, "sends chunks");
        assert!(
            cell_of("http-1.0", &mut FakeTestbed::but(|asked| Some(closing(asked))))
                .note
                .expect("a note")
                .ends_with("closes even when asked not to")
        );
    }
}
