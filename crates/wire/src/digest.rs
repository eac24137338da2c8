//! Digests of requests: what the client writes behind a request's ID about the rest of it, and how the origin
//! compares that with what arrived. It does not know who altered a request, nor who counts it.
//!
//! Four numbers of eight hexadecimal digits follow the ID, each after a dash: the digests of method and target, of the headers and
//! of the body, and the body's length. If headers are compared, their names follow after a further dash. Examples:
//! `0001002000000003-7d0cb1a5-00000000-00000000-00000000` and `…-0000000a-cookie,authorization`.
//!
//! The digests are seeded with the load's key: a product that alters a request cannot make one that fits.
//!
//! # Which requests are the same
//! - Method and target: byte by byte. An intermediary must not modify path and query (RFC 9110 section 7.7). One that sends the absolute
//!   form (RFC 9112 section 3.2.2) sends the same.
//! - Headers: those that the client sends end to end, with their values. Names have no case (RFC 9110 section 5.1). Order does not matter,
//!   nor do headers that a product adds. Several lines of one name equal one line with a list (section 5.3). Pieces of a cookie equal
//!   one cookie joined by `; ` (RFC 9113 section 8.2.3). Blanks after these separators do not matter.
//! - [`NOT_COMPARED`] lists the headers of the connection, and those that intermediaries write or use up.
//! - The body: its content, however it is framed (RFC 9112 section 6).

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::request_id::{ResponseKey, digits8, number8};

/// Length of the text behind an ID, without names of headers.
pub const DIGEST_LENGTH: usize = 4 * FIELD;

/// A dash and eight digits.
const FIELD: usize = 9;

/// Headers that are not compared. The connection has its own (RFC 9110 section 7.6.1), and so has framing. Intermediaries write or
/// replace the host, the codings that they accept, the time that is left, their own mark, and identifiers for tracing.
pub const NOT_COMPARED: [&str; 21] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "grpc-timeout",
    "host",
    "http2-settings",
    "keep-alive",
    "max-forwards",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-real-ip",
    "x-request-id",
];

/// Others that begin so are not compared either.
const NOT_COMPARED_PREFIX: &str = "x-forwarded-";

/// The digests of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest {
    /// The digest of method and target.
    pub target: u32,
    /// The headers' digest; 0 if none are compared.
    pub headers: u32,
    /// The body's digest; 0 if it is empty.
    pub body: u32,
    /// The body's length, bytes.
    pub length: u32,
}

impl Digest {
    /// The text behind an ID.
    #[inline]
    pub fn text(self) -> [u8; DIGEST_LENGTH] {
        let mut text = [b'-'; DIGEST_LENGTH];
        for (field, number) in text.chunks_exact_mut(FIELD).zip([self.target, self.headers, self.body, self.length]) {
            field[1..].copy_from_slice(&digits8(number));
        }
        text
    }

    /// Reads the text behind an ID: the digests, and the names of the compared headers with commas between.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<(Digest, &[u8])> {
        let (digest, names) = text.split_at_checked(DIGEST_LENGTH)?;
        let number = |at: usize| {
            let digits = digest[at * FIELD..][..FIELD].strip_prefix(b"-")?;
            number8(digits.try_into().ok()?)
        };
        let digest = Digest { target: number(0)?, headers: number(1)?, body: number(2)?, length: number(3)? };
        match names {
            [] => Some((digest, names)),
            [b'-', names @ ..] if !names.is_empty() => Some((digest, names)),
            _ => None,
        }
    }
}

/// The seed of a load's digests.
#[derive(Debug, Clone, Copy)]
pub struct DigestKey(u64);

impl From<ResponseKey> for DigestKey {
    fn from(ResponseKey([first, second]): ResponseKey) -> DigestKey {
        DigestKey(first ^ second.rotate_left(1))
    }
}

impl DigestKey {
    /// The digest of a method and a target.
    #[inline]
    pub fn target(self, method: &[u8], target: &[u8]) -> u32 {
        let seed = xxh3_64_with_seed(method, self.0);
        xxh3_64_with_seed(origin_form(target), seed) as u32
    }

    /// The digest of those of a request's headers that have these names, with commas between. `scratch` is overwritten.
    pub fn headers<'h>(
        self,
        names: &[u8],
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone,
        scratch: &mut Vec<u8>,
    ) -> u32 {
        if names.is_empty() {
            return 0;
        }
        scratch.clear();
        for name in names.split(|byte| *byte == b',') {
            scratch.extend_from_slice(name);
            let separator = if name == b"cookie" { b';' } else { b',' };
            for (_, value) in headers.clone().filter(|(given, _)| given.eq_ignore_ascii_case(name)) {
                scratch.push(separator);
                put_list(value.trim_ascii(), separator, scratch);
            }
            scratch.push(b'\n');
        }
        xxh3_64_with_seed(scratch, self.0) as u32
    }

    /// The digest of a body.
    #[inline]
    pub fn body(self, body: &[u8]) -> u32 {
        if body.is_empty() { 0 } else { xxh3_64_with_seed(body, self.0) as u32 }
    }

    /// Makes the digest of a body that comes in pieces.
    pub fn body_digester(self) -> BodyDigester {
        BodyDigester(Xxh3::with_seed(self.0))
    }
}

/// The digest of a body that comes in pieces.
#[derive(Clone)]
pub struct BodyDigester(Xxh3);

impl BodyDigester {
    /// Forgets all pieces.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// The next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The same as [`DigestKey::body`] of all pieces together. At least one is not empty.
    pub fn finish(&self) -> u32 {
        self.0.digest() as u32
    }
}

impl std::fmt::Debug for BodyDigester {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyDigester").finish_non_exhaustive()
    }
}

/// The names of those of a request's headers that are compared: in lower case, each once, with commas between.
pub fn compared_headers<'h>(headers: impl Iterator<Item = (&'h str, &'h str)> + Clone) -> String {
    let listed: Vec<String> = headers
        .clone()
        .filter(|(name, _)| name.eq_ignore_ascii_case("connection"))
        .flat_map(|(_, value)| value.split(',').map(|name| name.trim().to_ascii_lowercase()))
        .collect();
    let mut names: Vec<String> = Vec::new();
    for name in headers.map(|(name, _)| name.to_ascii_lowercase()) {
        let is_compared = !NOT_COMPARED.contains(&name.as_str()) && !name.starts_with(NOT_COMPARED_PREFIX);
        if is_compared && !listed.contains(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(",")
}

/// A target without scheme and authority.
#[inline]
fn origin_form(target: &[u8]) -> &[u8] {
    match target {
        [b'/', ..] => target,
        _ => after_authority(target),
    }
}

#[cold]
fn after_authority(target: &[u8]) -> &[u8] {
    let Some(at) = target.windows(3).position(|window| window == b"://") else { return target };
    let authority = &target[at + 3..];
    let path = authority.iter().position(|byte| matches!(byte, b'/' | b'?'));
    path.map_or(b"/", |path| &authority[path..])
}

/// Appends a list without the blanks that follow its separators.
fn put_list(value: &[u8], separator: u8, out: &mut Vec<u8>) {
    let mut after_separator = false;
    for &byte in value {
        if after_separator && matches!(byte, b' ' | b'\t') {
            continue;
        }
        after_separator = byte == separator;
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: DigestKey = DigestKey(7);

    type Header = (&'static str, &'static str);

    fn headers(names: &str, headers: &[Header]) -> u32 {
        let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        KEY.headers(names.as_bytes(), headers, &mut Vec::new())
    }

    #[test]
    fn a_digest_is_read_as_written_and_nothing_else_is() {
        let digest = Digest { target: 1, headers: 0xabcd_ef01, body: u32::MAX, length: 10 };
        let text = digest.text();
        assert_eq!(&text, b"-00000001-abcdef01-ffffffff-0000000a");
        assert_eq!(Digest::parse(&text), Some((digest, &b""[..])));
        let named = [&text[..], b"-cookie,x-a"].concat();
        assert_eq!(Digest::parse(&named), Some((digest, &b"cookie,x-a"[..])));
        for wrong in [&text[1..], &text[..35], &[&text[..], b"-"].concat(), &[&text[..], b"x"].concat(), b""] {
            assert_eq!(Digest::parse(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn what_rfc_9110_allows_is_the_same_and_all_else_is_not() {
        let sent: &[Header] = &[("Cookie", "a=1; b=2"), ("Accept", "text/html, x/y"), ("X-Id", "7")];
        let names = compared_headers(sent.iter().copied());
        assert_eq!(names, "cookie,accept,x-id");
        let digest = headers(&names, sent);
        let same: [&[Header]; 3] = [
            &[("x-id", "7"), ("accept", "text/html,x/y"), ("cookie", "a=1;b=2"), ("via", "1.1 p")],
            &[("COOKIE", "a=1"), ("accept", "text/html"), ("cookie", "b=2"), ("X-ID", " 7"), ("accept", "x/y")],
            &[("Host", "other"), ("Cookie", "a=1; b=2"), ("Accept", "text/html, x/y"), ("X-Id", "7")],
        ];
        same.iter().for_each(|same| assert_eq!(headers(&names, same), digest, "{same:?}"));
        let other: [&[Header]; 5] = [
            &[("accept", "text/html, x/y"), ("x-id", "7")],
            &[("cookie", ""), ("accept", "text/html, x/y"), ("x-id", "7")],
            &[("cookie", "b=2; a=1"), ("accept", "text/html, x/y"), ("x-id", "7")],
            &[("cookie", "a=1; b=2"), ("accept", "text/html"), ("x-id", "7")],
            &[("cookie", "a=1; b=2"), ("accept", "text/html, x/y"), ("x-id", "7"), ("x-id", "7")],
        ];
        other.iter().for_each(|other| assert_ne!(headers(&names, other), digest, "{other:?}"));
        assert_ne!(headers("cookie", &[]), headers("cookie", &[("cookie", "")]), "absent and empty");
        assert_eq!(headers("", sent), 0);
    }

    #[test]
    fn headers_of_the_connection_and_of_intermediaries_are_not_compared() {
        let sent = [("Host", "a"), ("Connection", "close, X-Hop"), ("x-hop", "1"), ("X-Forwarded-For", "::1")];
        assert_eq!(compared_headers(sent.into_iter()), "");
        assert_eq!(compared_headers([("TE", "a"), ("User-Agent", "b"), ("user-agent", "c")].into_iter()), "user-agent");
    }

    #[test]
    fn a_target_is_the_same_in_absolute_form_alone() {
        let digest = KEY.target(b"GET", b"/a?b=1");
        assert_eq!(KEY.target(b"GET", b"http://origin.test:80/a?b=1"), digest);
        for (method, target) in
            [("PUT", "/a?b=1"), ("get", "/a?b=1"), ("GET", "/a"), ("GET", "/a?b=2"), ("GET", "/A?b=1")]
        {
            assert_ne!(KEY.target(method.as_bytes(), target.as_bytes()), digest, "{method} {target}");
        }
        assert_eq!(KEY.target(b"GET", b"http://a"), KEY.target(b"GET", b"/"));
        assert_ne!(DigestKey(8).target(b"GET", b"/a?b=1"), digest, "another load's key");
    }

    proptest! {
        #[test]
        fn a_body_has_one_digest_however_it_comes(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..300), 1..8)
        ) {
            let mut digester = KEY.body_digester();
            digester.push(b"of another");
            digester.reset();
            pieces.iter().for_each(|piece| digester.push(piece));
            let mut body = pieces.concat();
            prop_assert_eq!(digester.finish(), KEY.body(&body));
            body[0] ^= 1;
            prop_assert_ne!(digester.finish(), KEY.body(&body));
        }

        #[test]
        fn only_what_is_written_so_is_read(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some((digest, names)) = Digest::parse(&text) {
                prop_assert_eq!(&digest.text()[..], &text[..DIGEST_LENGTH]);
                prop_assert!(text.ends_with(names));
            }
        }
    }
}
