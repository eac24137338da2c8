//! Checks HTTP/3: requests alone and ten at once, its announcement by the other versions, cut requests and large bodies. A connection of QUIC
//! has to survive another port and new keys, and its server lists versions.

use std::net::UdpSocket;
use std::time::Duration;

use super::{http2, reference, tls};
use crate::cell::{Cell, with_body};
use crate::testbed::Testbed;
use weir_model::suite::Request;
use weir_product::client::{Endpoint, Http3, RequestError, TIMEOUT};

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

/// Bytes of a body for which each product's windows are too small.
const LARGE: usize = 4 << 20;

/// A body that is larger than the windows of stream and connection, there and back.
pub fn large(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let body: Vec<u8> = (0..LARGE).map(|at| (at % 251) as u8).collect();
    let post = Request { method: "POST".into(), body, ..Request::get("/echo") };
    let mut conn = Http3::open(&bed.product(), TIMEOUT)?;
    let response = conn.ask_all(std::slice::from_ref(&post), TIMEOUT).map(|mut one| one.remove(0));
    with_body(&post.body, response)?;
    Ok(Cell::yes())
}

/// A client whose port changes, as behind a translator of addresses that has forgotten it (RFC 9000, section 9).
pub fn another_port(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    survives(bed, Http3::change_port)
}

/// A client that changes its keys (RFC 9001, section 6).
pub fn new_keys(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    survives(bed, |conn, _| {
        conn.update_keys();
        Ok(())
    })
}

/// Checks that a connection carries requests behind something that happens to it.
fn survives(
    bed: &mut dyn Testbed,
    happens: impl FnOnce(&mut Http3, &Endpoint) -> Result<(), RequestError>,
) -> Result<Cell, Cell> {
    let right = reference(bed, http2::TARGET)?;
    let endpoint = bed.product();
    let mut conn = Http3::open(&endpoint, TIMEOUT)?;
    let ask = |conn: &mut Http3| conn.get_all(&[http2::TARGET], TIMEOUT).map(|mut one| one.remove(0));
    with_body(&right.body, ask(&mut conn))?;
    happens(&mut conn, &endpoint)?;
    for _ in 0..3 {
        match ask(&mut conn) {
            Err(error) => return Ok(Cell::no("no").with(error.to_string())),
            response => with_body(&right.body, response)?,
        };
    }
    Ok(Cell::yes())
}

/// A version of QUIC that nobody speaks (RFC 9000, section 15).
const UNKNOWN: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];

/// IDs of a connection, of which a response has both the other way round.
const TO: [u8; 8] = *b"weir-to-";
const FROM: [u8; 8] = *b"weir-me-";

/// How long a list of versions may take.
const LIST: Duration = Duration::from_secs(2);

/// Asks in a version that nobody speaks: the response is a list of those that are spoken (RFC 9000, section 6).
pub fn versions(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let unspecified = if endpoint.addr.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let failed = |error: std::io::Error| Cell::unknown(format!("a socket of UDP: {error}"));
    let socket = UdpSocket::bind(unspecified).map_err(failed)?;
    socket.connect(endpoint.addr).map_err(failed)?;
    socket.set_read_timeout(Some(LIST)).map_err(failed)?;
    let mut hello = [&[0xc3][..], &UNKNOWN, &[8], &TO, &[8], &FROM].concat();
    // A first datagram is at least so long.
    hello.resize(1200, 0);
    socket.send(&hello).map_err(failed)?;
    let mut input = [0; 1500];
    let Ok(length) = socket.recv(&mut input) else {
        return Ok(Cell::no("silence").with("no list of versions within 2 s"));
    };
    Ok(match listed(&input[..length]) {
        None => Cell::no("malformed").with("the response is no list of versions"),
        Some(versions) if versions.contains(&1) => Cell::yes().with(words(&versions)),
        Some(versions) => Cell::odd("no version 1").with(words(&versions)),
    })
}

/// The versions that a datagram lists (RFC 9000, section 17.2.1); `None`: it is no such list.
fn listed(datagram: &[u8]) -> Option<Vec<u32>> {
    let (first, rest) = datagram.split_first()?;
    let ids = [&[0, 0, 0, 0, 8][..], &FROM, &[8], &TO].concat();
    let (versions, rest) = rest.strip_prefix(ids.as_slice())?.as_chunks::<4>();
    let is_long = first & 0x80 != 0;
    (is_long && !versions.is_empty() && rest.is_empty())
        .then(|| versions.iter().copied().map(u32::from_be_bytes).collect())
}

fn words(versions: &[u32]) -> String {
    // Servers also list one that nobody speaks.
    let is_spoken = |version: &&u32| *version & 0x0f0f_0f0f != 0x0a0a_0a0a;
    let words: Vec<String> = versions.iter().filter(is_spoken).map(|version| format!("{version:#x}")).collect();
    format!("it speaks {}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::tls::{bed, tls};
    use super::*;
    use crate::table::cell_of;

    #[test]
    fn connections_survive_what_they_have_to() {
        let (mut bed, _keep) = bed(Some(tls(|_| {})), "h3");
        for check in ["h3-large", "h3-port", "h3-keys"] {
            assert_eq!(cell_of(check, &mut bed), Cell::yes(), "{check}");
        }
        let cell = cell_of("h3-versions", &mut bed);
        assert!(
            cell.says == "yes" && cell.note.as_ref().is_some_and(|note| note.starts_with("it speaks 0x1")),
            "{cell:?}"
        );
    }

    #[test]
    fn a_list_of_versions_is_read() {
        let head = [&[0x8a, 0, 0, 0, 0, 8][..], &FROM, &[8], &TO].concat();
        let list = |versions: &[u8]| listed(&[&head, versions].concat());
        assert_eq!(list(&[0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf]), Some(vec![1, 0x6b33_43cf]));
        assert_eq!((list(&[]), list(&[0, 0, 0]), listed(&[]), listed(&[0x80, 0, 0])), (None, None, None, None));
        assert_eq!(listed(&[0x4a; 40]), None, "no long header");
    }
}
