//! What the checks of TLS share: asking what was agreed on, and whether sessions are resumed.

use weir_wire::tls::{ClientConfig, ClientOptions, KeyKind, Negotiated, Version};

use crate::cell::Cell;
use crate::rig::Rig;
use crate::talk::{Door, PATIENCE, Trouble, Two};

/// The same door for a client with other wishes.
fn otherwise(door: &Door, versions: (Version, Version), alpn: &str, resumption: bool) -> Result<Door, Trouble> {
    let (_, name) = door.tls.clone().ok_or_else(|| Trouble::Secure("no TLS is spoken here".to_owned()))?;
    let options = ClientOptions {
        versions,
        alpn: Some(alpn.to_owned()),
        resumption,
        suites: weir_product::tls::offered(),
        ..ClientOptions::default()
    };
    let config = ClientConfig::new(&options).map_err(|e| Trouble::Secure(e.to_string()))?;
    Ok(Door { tls: Some((config, name)), ..door.clone() })
}

const BOTH: (Version, Version) = (Version::Tls12, Version::Tls13);
const OLD: (Version, Version) = (Version::Tls12, Version::Tls12);

/// What a client that takes everything and one that knows TLS 1.2 alone agree on with the product.
pub fn agreed(rig: &dyn Rig, alpn: &str) -> Cell {
    let door = rig.product();
    let open = |versions| otherwise(&door, versions, alpn, false).and_then(|door| connected(&door, alpn));
    let agreed = match open(BOTH) {
        Ok(agreed) => agreed,
        Err(trouble) => return Cell::trouble(&trouble),
    };
    let cell = Cell::reading(format!("{} {}", number(agreed.version), short(agreed.suite))).with(words(&agreed));
    match (agreed.version, open(OLD)) {
        (Version::Tls12, _) => cell.with("TLS 1.3 is not offered"),
        (Version::Tls13, Ok(_)) => cell.with("takes TLS 1.2, too"),
        (Version::Tls13, Err(_)) => cell.with("refuses TLS 1.2"),
    }
}

/// A connection that carried a request, and what it had agreed on.
fn connected(door: &Door, alpn: &str) -> Result<Negotiated, Trouble> {
    let none = || Trouble::Secure("the handshake came to nothing".to_owned());
    if alpn == "h2" {
        let mut two = Two::open(door)?;
        two.get_all(&["/bytes/1"], PATIENCE)?;
        return two.negotiated().cloned().ok_or_else(none);
    }
    let mut line = door.open()?;
    line.ask(&door.request("GET", "/bytes/1", &[]), false, PATIENCE)?;
    line.negotiated().cloned().ok_or_else(none)
}

/// Whether sessions are resumed, in both versions.
pub fn resumption(rig: &dyn Rig) -> Cell {
    let door = rig.product();
    let resumes = |versions| -> Result<bool, Trouble> {
        let door = otherwise(&door, versions, "http/1.1", true)?;
        connected(&door, "http/1.1")?;
        // The ticket may come behind the first answer: a third connection has it at the latest.
        Ok(connected(&door, "http/1.1")?.resumed || connected(&door, "http/1.1")?.resumed)
    };
    let new = resumes((Version::Tls13, Version::Tls13));
    let old = resumes(OLD);
    match (new, old) {
        (Ok(true), Ok(true)) => Cell::yes(),
        (Ok(false), Ok(false)) => Cell::no("no"),
        (Ok(new), Ok(_)) => {
            let (is, not) = if new { ("TLS 1.3", "TLS 1.2") } else { ("TLS 1.2", "TLS 1.3") };
            Cell::odd(format!("{is} only")).with(format!("not in {not}"))
        }
        (Ok(new), Err(_)) => if new { Cell::yes() } else { Cell::no("no") }.with("TLS 1.3 only; it refuses TLS 1.2"),
        (Err(_), Ok(old)) => if old { Cell::yes() } else { Cell::no("no") }.with("TLS 1.2 only; it refuses TLS 1.3"),
        (Err(trouble), Err(_)) => Cell::trouble(&trouble),
    }
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

fn words(agreed: &Negotiated) -> String {
    let key = match agreed.peer_key {
        Some(KeyKind::P256) => "a P-256 key",
        Some(KeyKind::Rsa) => "an RSA key",
        None => "another key",
    };
    let alpn = agreed.alpn.as_ref().map_or_else(|| "no ALPN".to_owned(), |alpn| format!("ALPN {alpn}"));
    let group = agreed.group.map(|group| format!("{group}, ")).unwrap_or_default();
    format!("{}, {group}{key}, {alpn}", agreed.suite)
}

/// A rig whose product is weir's origin, with this TLS and for a client that asks for that protocol; and what has to live.
#[cfg(test)]
pub(super) fn rig(
    tls: Option<weir_wire::tls::ServerOptions>,
    alpn: &str,
) -> (crate::fake::TestRig, [weir_origin::Origin; 2]) {
    use crate::fake::TestRig;
    use weir_origin::{Options, Origin};

    let start = |tls| Origin::start(Options { tls, ..Options::default() }).expect("an origin starts");
    let (product, origin) = (start(tls), start(None));
    let options = ClientOptions { alpn: Some(alpn.to_owned()), ..ClientOptions::default() };
    let name = weir_wire::tls::ServerName::new("localhost").expect("a name");
    let mut rig = TestRig::good();
    let plain = Door::plain(product.addr(), rig.stop.clone());
    rig.product_door = Some(Door { tls: Some((ClientConfig::new(&options).expect("options"), name)), ..plain });
    rig.origin_door = Some(Door::plain(origin.addr(), rig.stop.clone()));
    (rig, [product, origin])
}

/// TLS with a certificate that was made, otherwise as the origin has it.
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

    #[test]
    fn suites_are_shortened() {
        assert_eq!(short("TLS_AES_256_GCM_SHA384"), "AES-256-GCM");
        assert_eq!(short("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "AES-128-GCM");
        assert_eq!(short("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"), "CHACHA20-POLY1305");
    }
}
