//! Checks whether headers behind a response's body pass: in HTTP/1.1 behind its last chunk, and in HTTP/2 and HTTP/3, where they end the
//! stream.

use weir_model::load::TRAILER;
use weir_model::suite::Request;
use weir_product::client::{Http2, Http3, Response, TIMEOUT};

use super::streams::Open;
use crate::cell::Cell;
use crate::testbed::Testbed;

/// One message at once, and a header behind it.
const TARGET: &str = "/stream?messages=1&first=0s&size=200&trailers=1";

/// A client says by it that it takes such headers (RFC 9110, section 10.1.4).
const TE: (&str, &str) = ("TE", "trailers");

/// In HTTP/1.1.
pub fn http1(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let mut open = Open::new(&endpoint, &endpoint.request("GET", TARGET, &[TE, ("Connection", "TE")]))?;
    let head = open.read_until(b"\r\n\r\n", 1)?;
    if head.is_none() || open.status() != 200 {
        return Ok(Cell::no(open.status().to_string()));
    }
    let chunked = |head: &[u8]| head.to_ascii_lowercase().windows(7).any(|word| word == b"chunked");
    loop {
        let (head, body) = split(&open.input, b"\r\n\r\n").unwrap_or_default();
        if !chunked(head) {
            return Ok(Cell::no("dropped").with("the response reaches the client without chunks"));
        }
        if let Some(trailers) = behind_chunks(body) {
            return Ok(cell(trailers.to_ascii_lowercase().starts_with(TRAILER.as_bytes())));
        }
        if !open.read_more()? {
            return Ok(Cell::no("cut").with("the response ended within its body"));
        }
    }
}

/// In HTTP/2 over TLS.
pub fn http2(bed: &dyn Testbed) -> Result<Cell, Cell> {
    Ok(of(&Http2::open(&bed.product(), TIMEOUT)?.ask_all(&[request()], TIMEOUT)?.remove(0)))
}

/// In HTTP/3.
pub fn http3(bed: &dyn Testbed) -> Result<Cell, Cell> {
    Ok(of(&Http3::open(&bed.product(), TIMEOUT)?.ask_all(&[request()], TIMEOUT)?.remove(0)))
}

fn request() -> Request {
    let headers = vec![(TE.0.to_lowercase(), TE.1.to_owned())];
    Request { headers, ..Request::get(TARGET) }
}

fn of(response: &Response) -> Cell {
    match response.status {
        200 => cell(response.trailers.iter().any(|(name, _)| name == TRAILER)),
        status => Cell::no(status.to_string()),
    }
}

fn cell(passed: bool) -> Cell {
    if passed { Cell::yes() } else { Cell::no("dropped") }
}

fn split<'i>(input: &'i [u8], at: &[u8]) -> Option<(&'i [u8], &'i [u8])> {
    let found = input.windows(at.len()).position(|window| window == at)?;
    Some((&input[..found], &input[found + at.len()..]))
}

/// The headers behind the last chunk; `None`: not all has come, or they are no chunks.
fn behind_chunks(mut body: &[u8]) -> Option<&[u8]> {
    loop {
        let (size, rest) = split(body, b"\r\n")?;
        let size = std::str::from_utf8(size).ok()?.split(';').next()?.trim();
        match usize::from_str_radix(size, 16).ok()? {
            // Nothing but the end of the line, or headers up to an empty one.
            0 if rest.starts_with(b"\r\n") => return Some(b""),
            0 => return split(rest, b"\r\n\r\n").map(|(trailers, _)| trailers),
            size => body = rest.get(size + 2..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tls::{bed, tls};
    use crate::cell::Cell;
    use crate::fake::{FakeTestbed, Reply, raw_response, serial_http2};
    use crate::table::cell_of;

    #[test]
    fn trailers_behind_chunks_pass_or_are_dropped() {
        let (mut real, _keep) = bed(None, "http/1.1");
        real.product_endpoint.as_mut().expect("a product").tls = None;
        assert_eq!(cell_of("trailers", &mut real), Cell::yes());
        let says = |response: &'static [u8]| {
            cell_of("trailers", &mut FakeTestbed::but(move |_| Some(Reply::Close(response.to_vec())))).says
        };
        const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let with = |body: &str| says([HEAD, body].concat().into_bytes().leak());
        assert_eq!(with("3\r\nabc\r\n0\r\nX-Weir-Trailer: 1\r\n\r\n"), "yes");
        assert_eq!(with("3;a=b\r\nabc\r\n0\r\nother: 1\r\n\r\n"), "dropped");
        assert_eq!(with("3\r\nabc\r\n0\r\n\r\n"), "dropped");
        assert_eq!(with("3\r\nabc\r\n0\r\nx-weir"), "cut");
        assert_eq!(says(raw_response(200, "", b"abc").leak()), "dropped");
        assert_eq!(says(raw_response(502, "", b"").leak()), "502");
    }

    #[test]
    fn trailers_of_streams_pass_or_are_dropped() {
        for (check, alpn) in [("h2-trailers", "h2"), ("h3-trailers", "h3")] {
            assert_eq!(cell_of(check, &mut bed(Some(tls(|_| {})), alpn).0), Cell::yes());
        }
        let (mut serial, _keep) = bed(None, "h2");
        let origin = serial.origin_endpoint.clone().expect("an origin").addr;
        let plain = weir_product::client::Endpoint::plain(serial_http2(origin), serial.stop.clone());
        serial.product_endpoint = Some(plain);
        assert_eq!(cell_of("h2-trailers", &mut serial).says, "dropped");
    }
}
