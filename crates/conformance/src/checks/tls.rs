//! Checks TLS: whether HTTP/1.1 works over it, what is negotiated, and whether sessions are resumed.

use weir_wire::tls::{ClientConfig, ClientOptions, KeyKind, Negotiated, Version};

use crate::cell::Cell;
use crate::testbed::Testbed;
use weir_product::client::{Endpoint, Http2, RequestError, TIMEOUT};

/// The same endpoint for a client with other TLS options.
pub(super) fn otherwise(
    endpoint: &Endpoint,
    versions: (Version, Version),
    alpn: &str,
    resumption: bool,
) -> Result<Endpoint, RequestError> {
    let (_, name) = endpoint.tls.clone().ok_or_else(|| RequestError::Tls("no TLS is spoken here".to_owned()))?;
    let options = ClientOptions {
        versions,
        alpn: Some(alpn.to_owned()),
        resumption,
        suites: weir_product::tls::offered(),
        ..ClientOptions::default()
    };
    let config = ClientConfig::new(&options).map_err(|e| RequestError::Tls(e.to_string()))?;
    Ok(Endpoint { tls: Some((config, name)), ..endpoint.clone() })
}

pub(super) const BOTH: (Version, Version) = (Version::Tls12, Version::Tls13);
const OLD: (Version, Version) = (Version::Tls12, Version::Tls12);

/// What the product negotiates with a client that accepts everything and with one that only knows TLS 1.2.
pub fn agreed(bed: &dyn Testbed, alpn: &str) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let open = |versions| otherwise(&endpoint, versions, alpn, false).and_then(|endpoint| connected(&endpoint, alpn));
    let agreed = open(BOTH)?;
    let cell = Cell::reading(format!("{} {}", number(agreed.version), short(agreed.suite))).with(words(&agreed));
    Ok(match (agreed.version, open(OLD)) {
        (Version::Tls12, _) => cell.with("TLS 1.3 is not offered"),
        (Version::Tls13, Ok(_)) => cell.with("takes TLS 1.2, too"),
        (Version::Tls13, Err(_)) => cell.with("refuses TLS 1.2"),
    })
}

/// What was negotiated on a connection that carried a request.
fn connected(endpoint: &Endpoint, alpn: &str) -> Result<Negotiated, RequestError> {
    let none = || RequestError::Tls("the handshake came to nothing".to_owned());
    if alpn == "h2" {
        let mut conn = Http2::open(endpoint, TIMEOUT)?;
        conn.get_all(&["/bytes/1"], TIMEOUT)?;
        return conn.negotiated().cloned().ok_or_else(none);
    }
    let mut conn = endpoint.open()?;
    conn.ask(&endpoint.request("GET", "/bytes/1", &[]), false, TIMEOUT)?;
    conn.negotiated().cloned().ok_or_else(none)
}

/// Checks whether sessions are resumed, in both versions.
pub fn resumption(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let resumes = |versions| -> Result<bool, RequestError> {
        let endpoint = otherwise(&endpoint, versions, "http/1.1", true)?;
        connected(&endpoint, "http/1.1")?;
        // The ticket may arrive after the first response. The third connection has it at the latest.
        Ok(connected(&endpoint, "http/1.1")?.resumed || connected(&endpoint, "http/1.1")?.resumed)
    };
    let new = resumes((Version::Tls13, Version::Tls13));
    let old = resumes(OLD);
    Ok(match (new, old) {
        (Ok(true), Ok(true)) => Cell::yes(),
        (Ok(false), Ok(false)) => Cell::no("no"),
        (Ok(new), Ok(_)) => {
            let (is, not) = if new { ("TLS 1.3", "TLS 1.2") } else { ("TLS 1.2", "TLS 1.3") };
            Cell::odd(format!("{is} only")).with(format!("not in {not}"))
        }
        (Ok(new), Err(_)) => if new { Cell::yes() } else { Cell::no("no") }.with("TLS 1.3 only; it refuses TLS 1.2"),
        (Err(_), Ok(old)) => if old { Cell::yes() } else { Cell::no("no") }.with("TLS 1.2 only; it refuses TLS 1.3"),
        (Err(failure), Err(_)) => Cell::failure(&failure),
    })
}

fn number(version: Version) -> &'static str {
    match version {
        Version::Tls12 => "1.2",
        Version::Tls13 => "1.3",
    }
}

/// `AES-128-GCM` of `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`.
fn short(suite: &str) -> String {
    let cipher = suite.split_once("_WITH_").map_or_else(|| suite.trim_start_matches("TLS_"), |(_, cipher)| cipher);
    cipher.rsplit_once('_').map_or(cipher, |(cipher, _)| cipher).replace('_', "-")
}

pub(super) fn words(agreed: &Negotiated) -> String {
    let key = match agreed.peer_key {
        Some(KeyKind::P256) => "a P-256 key",
        Some(KeyKind::Rsa) => "an RSA key",
        None => "another key",
    };
    let alpn = agreed.alpn.as_ref().map_or_else(|| "no ALPN".to_owned(), |alpn| format!("ALPN {alpn}"));
    let group = agreed.group.map(|group| format!("{group}, ")).unwrap_or_default();
    format!("{}, {group}{key}, {alpn}", agreed.suite)
}

/// A testbed whose product is weir's origin with this TLS, and a client that offers this ALPN. The caller keeps the two
/// origins alive.
#[cfg(test)]
pub(super) fn bed(
    tls: Option<weir_wire::tls::ServerOptions>,
    alpn: &str,
) -> (crate::fake::FakeTestbed, [weir_origin::Origin; 2]) {
    use crate::fake::FakeTestbed;
    use weir_origin::{Options, Origin};

    let start = |tls, http3| Origin::start(Options { tls, http3, ..Options::default() }).expect("an origin starts");
    let (product, origin) = (start(tls, alpn == "h3"), start(None, false));
    let options = ClientOptions { alpn: Some(alpn.to_owned()), ..ClientOptions::default() };
    let name = weir_wire::tls::ServerName::new("localhost").expect("a name");
    let mut bed = FakeTestbed::good();
    let plain = Endpoint::plain(product.addr(), bed.stop.clone());
    bed.product_endpoint = Some(Endpoint { tls: Some((ClientConfig::new(&options).expect("options"), name)), ..plain });
    bed.origin_endpoint = Some(Endpoint::plain(origin.addr(), bed.stop.clone()));
    (bed, [product, origin])
}

/// TLS with a generated certificate; the other options are the origin's defaults.
#[cfg(test)]
pub(super) fn tls(change: impl FnOnce(&mut weir_wire::tls::ServerOptions)) -> weir_wire::tls::ServerOptions {
    use weir_wire::tls::{Identity, ServerOptions};

    let identity = Identity::generated(KeyKind::P256).expect("a certificate");
    let mut options = ServerOptions { identities: vec![identity], ..ServerOptions::default() };
    change(&mut options);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::cell_of;

    #[test]
    fn get_over_tls_works_or_not() {
        assert_eq!(cell_of("https", &mut bed(Some(tls(|_| {})), "http/1.1").0), Cell::yes());
        let cell = cell_of("https", &mut bed(None, "http/1.1").0);
        assert_eq!(cell.says, "TLS fails", "{cell:?}");
    }

    #[test]
    fn what_was_agreed_on_is_said() {
        let both = cell_of("https-tls", &mut bed(Some(tls(|_| {})), "http/1.1").0);
        assert!(both.says.starts_with("1.3 AES-"), "{both:?}");
        let note = both.note.expect("a note");
        assert!(
            note.contains("P-256 key") && note.contains("ALPN http/1.1") && note.contains("takes TLS 1.2, too"),
            "{note}"
        );
        let suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
        let old = tls(|options| {
            options.versions = (Version::Tls12, Version::Tls12);
            options.suites = vec![suite.to_owned()];
            options.alpn = vec!["http/1.1".to_owned()];
        });
        let old = cell_of("https-tls", &mut bed(Some(old), "http/1.1").0);
        assert_eq!(old.says, "1.2 AES-128-GCM");
        assert!(old.note.expect("a note").contains(suite));
        let new = cell_of(
            "https-tls",
            &mut bed(Some(tls(|options| options.versions = (Version::Tls13, Version::Tls13))), "http/1.1").0,
        );
        assert!(new.note.expect("a note").contains("refuses TLS 1.2"));
    }

    #[test]
    fn sessions_are_resumed_or_not_or_in_one_version_only() {
        assert_eq!(cell_of("https-resumption", &mut bed(Some(tls(|_| {})), "http/1.1").0), Cell::yes());
        assert_eq!(
            cell_of("https-resumption", &mut bed(Some(tls(|options| options.resumption = false)), "http/1.1").0).says,
            "no"
        );
        let new = cell_of(
            "https-resumption",
            &mut bed(Some(tls(|options| options.versions = (Version::Tls13, Version::Tls13))), "http/1.1").0,
        );
        assert_eq!((new.says.as_str(), new.note.as_deref()), ("yes", Some("TLS 1.3 only; it refuses TLS 1.2")));
        assert_eq!(cell_of("https-resumption", &mut bed(None, "http/1.1").0).says, "TLS fails");
    }

    #[test]
    fn alpn_is_said() {
        let cell = cell_of("h2-tls", &mut bed(Some(tls(|_| {})), "h2").0);
        assert!(cell.note.as_deref().is_some_and(|note| note.contains("ALPN h2")), "{cell:?}");
        assert_eq!(cell_of("h2-tls", &mut bed(None, "h2").0).says, "TLS fails");
    }

    #[test]
    fn suites_are_shortened() {
        assert_eq!(short("TLS_AES_256_GCM_SHA384"), "AES-256-GCM");
        assert_eq!(short("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "AES-128-GCM");
        assert_eq!(short("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"), "CHACHA20-POLY1305");
    }
}
