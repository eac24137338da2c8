//! Checks HTTP/3: a GET, ten at once on one connection, whether the other versions say where it is, and a request that is cut short.

use std::time::Duration;

use super::{http2, reference, tls};
use crate::cell::{Cell, with_body};
use crate::testbed::Testbed;
use weir_model::suite::Request;
use weir_product::client::{Http3, RequestError, TIMEOUT};

/// A GET, and ten at once; and what TLS agreed on.
pub fn ask(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, http2::TARGET)?;
    let mut conn = Http3::open(&bed.product(), TIMEOUT)?;
    with_body(&right.body, conn.get_all(&[http2::TARGET], TIMEOUT).map(|mut one| one.remove(0)))?;
    let streams = conn.streams();
    let agreed = conn.negotiated().as_ref().map(tls::words).unwrap_or_default();
    Ok(http2::side_by_side(streams, |targets| conn.get_all(targets, TIMEOUT))?.with(agreed))
}

/// Checks that a response over TCP names HTTP/3 at this port (RFC 7838).
pub fn alt_svc(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let response = match tls::otherwise(&endpoint, tls::BOTH, "http/1.1", false)?.get("/bytes/1") {
        Err(RequestError::Refused) => return Ok(Cell::no("no").with("nothing listens by TCP at its port")),
        response => response?,
    };
    let Some(said) = response.header("alt-svc") else { return Ok(Cell::no("no").with("no Alt-Svc")) };
    let named = said.split(',').any(|one| {
        let authority = one.trim().strip_prefix("h3=").map(|rest| rest.split(';').next().unwrap_or_default());
        authority.is_some_and(|authority| authority.trim_matches('"').ends_with(&format!(":{}", endpoint.addr.port())))
    });
    Ok(if named { Cell::yes() } else { Cell::odd("elsewhere") }.with(format!("Alt-Svc: {said}")))
}

/// How long a response to a request may take that is not whole: it should come at once, or not at all.
const CUT: Duration = Duration::from_secs(2);

/// Sends a request whose stream ends within its body. A proxy must not pass it on as if it were whole.
pub fn truncated(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let post = Request { method: "POST".into(), body: vec![b'b'; 1000], ..Request::get("/echo") };
    let whole = Http3::open(&endpoint, TIMEOUT)?.ask_all(std::slice::from_ref(&post), TIMEOUT)?;
    if whole.first().is_none_or(|response| response.status != 200 || response.body != post.body) {
        return Ok(Cell::odd("not asked").with("a whole request gets another response than its body"));
    }
    let cut = Http3::open(&endpoint, TIMEOUT)?.ask_cut(&post, 500, CUT);
    Http3::open(&endpoint, TIMEOUT)?.ask_all(std::slice::from_ref(&post), TIMEOUT)?;
    Ok(match cut {
        Ok(response) if response.status < 400 => {
            Cell::no("passed on").with(format!("a request that is cut short gets {}", response.status))
        }
        Ok(response) => Cell::yes().with(format!("it gets {}", response.status)),
        Err(RequestError::Silent(_)) => Cell::odd("silence").with("neither a response nor an error within 2 s"),
        Err(error) => Cell::yes().with(error.to_string()),
    })
}
