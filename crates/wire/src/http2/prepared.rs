//! Heads that are checked and encoded in advance. The load and the origin prepare them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::EncodeError;
use super::class::{is_connection_header, is_name, is_value};
use super::hpack::{Field, put_authority_name, put_path_name, put_text};
use crate::http1::chars::{is_host, is_token};

/// The parts of a request to prepare.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Method; not `CONNECT`.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// What `Host` contains in HTTP/1.1.
    pub authority: &'a str,
    /// Path with query, or `*`.
    pub path: &'a str,
    /// Headers. Not `host` and `content-length`, nor those of HTTP/1.1's connections.
    pub headers: &'a [(&'a str, &'a str)],
}

/// Which parts of a request are filled in when it is sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Template<'a> {
    /// The path.
    pub path: bool,
    /// The authority.
    pub authority: bool,
    /// Ascending indexes into [`Request::headers`].
    pub headers: &'a [usize],
}

/// What is filled in. A part that does not change is ignored.
#[derive(Debug, Clone, Copy, Default)]
pub struct Values<'a> {
    /// The path.
    pub path: &'a [u8],
    /// The authority.
    pub authority: &'a [u8],
    /// One for each header that changes.
    pub headers: &'a [&'a [u8]],
}

/// The head of a request or a response, checked and encoded in advance.
///
/// On each connection the first use inserts it into the peer's table, and later uses cost a byte or two per header. It
/// belongs to no connection: one instance serves all.
#[derive(Debug, Clone)]
pub struct Prepared {
    number: u64,
    pseudo: Box<[Arc<Field>]>,
    headers: Box<[Arc<Field>]>,
    /// Names of the headers whose values are filled in later, encoded.
    changing: Box<[Box<[u8]>]>,
    pub(crate) path_changes: bool,
    pub(crate) authority_changes: bool,
    /// The response has no body: to HEAD (a request), 204 or 304 (a response).
    bodiless: bool,
    /// A request without a body has `content-length: 0`.
    says_empty: bool,
    /// Of a response; 0 for a request.
    status: u16,
}

impl Prepared {
    /// A request that is always the same. `content-length` is added when it is sent: if there is a body, and for
    /// POST, PUT and PATCH always (RFC 9110 section 8.6).
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn request(request: &Request<'_>) -> Result<Prepared, EncodeError> {
        Self::template(request, Template::default())
    }

    /// A request of which some values are filled in when it is sent ([`super::Client::request_filled`]); those of `request` are
    /// ignored. Headers that change are sent after the others.
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn template(request: &Request<'_>, template: Template<'_>) -> Result<Prepared, EncodeError> {
        let Template { path: path_changes, authority: authority_changes, headers: changing } = template;
        let &Request { method, scheme, authority, path, headers } = request;
        if !is_token(method.as_bytes()) || method == "CONNECT" {
            return Err(EncodeError::BadMethod(method.to_owned()));
        }
        if !matches!(scheme, "http" | "https") {
            return Err(EncodeError::BadScheme(scheme.to_owned()));
        }
        if !authority_changes && !is_authority(authority.as_bytes()) {
            return Err(EncodeError::BadAuthority(authority.to_owned()));
        }
        if !path_changes && !is_path(path.as_bytes()) {
            return Err(EncodeError::BadPath(path.to_owned()));
        }
        if let Some(&place) = changing.iter().find(|&&place| place >= headers.len()) {
            return Err(EncodeError::NoSuchHeader(place));
        }
        let mut pseudo = vec![(":method", method), (":scheme", scheme)];
        pseudo.extend((!authority_changes).then_some((":authority", authority)));
        pseudo.extend((!path_changes).then_some((":path", path)));
        let mut prepared = Prepared::new(&pseudo);
        let mut fixed = Vec::new();
        let mut names = Vec::new();
        for (place, (name, value)) in headers.iter().enumerate() {
            let name = name.to_ascii_lowercase();
            if changing.contains(&place) {
                check_header(&name, "")?;
                names.push(encoded_name(&name));
            } else {
                check_header(&name, value)?;
                fixed.push(Arc::new(Field::new(&name, value)));
            }
        }
        prepared.headers = fixed.into();
        prepared.changing = names.into();
        (prepared.path_changes, prepared.authority_changes) = (path_changes, authority_changes);
        prepared.bodiless = method == "HEAD";
        prepared.says_empty = matches!(method, "POST" | "PUT" | "PATCH");
        Ok(prepared)
    }

    /// The head of a response. `length` writes `content-length`, which may differ from the length of the body that is
    /// sent (responses to HEAD).
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn response(status: u16, headers: &[(&str, &str)], length: Option<u64>) -> Result<Prepared, EncodeError> {
        Prepared::response_template(status, headers, length, &[])
    }

    /// The same with headers whose values are filled in when it is sent ([`super::Server::respond_filled`]). They are sent after the
    /// others, and those without a value are left out.
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn response_template(
        status: u16,
        headers: &[(&str, &str)],
        length: Option<u64>,
        changing: &[&str],
    ) -> Result<Prepared, EncodeError> {
        if !(200..=999).contains(&status) {
            return Err(EncodeError::BadStatus(status));
        }
        let mut prepared = Prepared::new(&[(":status", &status.to_string())]);
        let mut fields = Vec::new();
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            check_header(&name, value)?;
            fields.push(Arc::new(Field::new(&name, value)));
        }
        if let Some(length) = length {
            fields.push(Arc::new(Field::new("content-length", &length.to_string())));
        }
        for name in changing {
            check_header(name, "")?;
        }
        prepared.changing = changing.iter().map(|name| encoded_name(name)).collect();
        prepared.headers = fields.into();
        prepared.bodiless = matches!(status, 204 | 205 | 304);
        prepared.status = status;
        Ok(prepared)
    }

    fn new(pseudo: &[(&str, &str)]) -> Prepared {
        /// Numbers begin at 1, so that 0 is none.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Prepared {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            pseudo: pseudo.iter().map(|(name, value)| Arc::new(Field::new(name, value))).collect(),
            headers: Box::default(),
            changing: Box::default(),
            path_changes: false,
            authority_changes: false,
            bodiless: false,
            says_empty: false,
            status: 0,
        }
    }

    /// Whether this is the head of a request, and the filled-in values match it and can be sent.
    #[inline]
    pub(crate) fn takes(&self, values: Values<'_>) -> bool {
        self.status == 0
            && (!self.pseudo_changes() || self.takes_pseudo(values))
            && values.headers.len() == self.changing.len()
            && values.headers.iter().all(|value| is_value(value))
    }

    /// True if some of the pseudo-headers change.
    #[inline]
    pub(super) fn pseudo_changes(&self) -> bool {
        self.path_changes || self.authority_changes
    }

    fn takes_pseudo(&self, values: Values<'_>) -> bool {
        (!self.path_changes || is_path(values.path)) && (!self.authority_changes || is_authority(values.authority))
    }

    /// A unique number; clones share it.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether this is the head of a response, and the filled-in values can be sent.
    #[inline]
    pub(crate) fn can_respond_with(&self, values: &[&[u8]]) -> bool {
        self.status != 0 && values.len() <= self.changing.len() && values.iter().all(|value| is_value(value))
    }

    /// Pseudo-headers that do not change.
    pub(crate) fn pseudo(&self) -> &[Arc<Field>] {
        &self.pseudo
    }

    /// Headers that do not change.
    pub(crate) fn headers(&self) -> &[Arc<Field>] {
        &self.headers
    }

    /// Appends the pseudo-headers that change.
    #[inline]
    pub(super) fn put_pseudo(&self, values: Values<'_>, out: &mut Vec<u8>) {
        if self.pseudo_changes() {
            self.put_changing_pseudo(values, out);
        }
    }

    fn put_changing_pseudo(&self, values: Values<'_>, out: &mut Vec<u8>) {
        if self.authority_changes {
            put_authority_name(out);
            put_text(out, values.authority);
        }
        if self.path_changes {
            put_path_name(out);
            put_text(out, values.path);
        }
    }

    /// Appends the headers that change.
    #[inline]
    pub(super) fn put_changing(&self, values: &[&[u8]], out: &mut Vec<u8>) {
        for (name, value) in self.changing.iter().zip(values) {
            out.extend_from_slice(name);
            put_text(out, value);
        }
    }

    /// Whether a response has no body because of the method or the status.
    pub(crate) fn bodiless(&self) -> bool {
        self.bodiless
    }

    /// Whether `content-length` is written for an empty body.
    pub(crate) fn says_empty(&self) -> bool {
        self.says_empty
    }
}

fn encoded_name(name: &str) -> Box<[u8]> {
    let mut bytes = Vec::new();
    super::hpack::put_name(&mut bytes, name);
    bytes.into()
}

/// A host with an optional port; not empty.
fn is_authority(authority: &[u8]) -> bool {
    !authority.is_empty() && is_host(authority)
}

/// Origin form or `*` (RFC 9113 section 8.3.1).
pub(super) fn is_path(path: &[u8]) -> bool {
    (path.first() == Some(&b'/') && path.iter().all(u8::is_ascii_graphic)) || path == b"*"
}

/// A valid header. The name is in lower case.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), EncodeError> {
    if !is_name(name.as_bytes()) {
        return Err(EncodeError::BadName(name.to_owned()));
    }
    if is_connection_header(name.as_bytes()) || (name == "te" && value != "trailers") {
        return Err(EncodeError::ConnectionHeader(name.to_owned()));
    }
    if matches!(name, "host" | "content-length") {
        return Err(EncodeError::Derived(name.to_owned()));
    }
    if is_value(value.as_bytes()) { Ok(()) } else { Err(EncodeError::BadValue(name.to_owned())) }
}
