//! Heads that are checked and encoded in advance. The load and the origin prepare them.

use super::frame;
use super::qpack;
use super::{EncodeError, Request, Template, Values};
use crate::http2::{self, hpack};

/// The head of a request or a response, checked and encoded in advance. It belongs to no connection: one instance serves all, and
/// costs a copy of its bytes each time.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What HTTP/2 checks in it.
    checked: http2::Prepared,
    /// The section's beginning, with the pseudo-headers that do not change.
    pseudo: Box<[u8]>,
    /// The headers that do not change.
    headers: Box<[u8]>,
    /// Names of the headers whose values are filled in later, encoded.
    changing: Box<[Box<[u8]>]>,
}

impl Prepared {
    /// A request that is always the same. `content-length` is added when it is sent: if there is a body, and for
    /// POST, PUT and PATCH always (RFC 9110 section 8.6).
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn request(request: &Request<'_>) -> Result<Prepared, EncodeError> {
        Prepared::template(request, Template::default())
    }

    /// A request of which some values are filled in when it is sent ([`super::Client::request_filled`]); those of `request` are
    /// ignored. Headers that change are sent after the others.
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn template(request: &Request<'_>, template: Template<'_>) -> Result<Prepared, EncodeError> {
        let checked = http2::Prepared::template(request, template)?;
        let names = template.headers.iter().map(|&place| request.headers[place].0);
        Ok(Prepared::new(checked, names))
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
        let checked = http2::Prepared::response_template(status, headers, length, changing)?;
        Ok(Prepared::new(checked, changing.iter().copied()))
    }

    fn new<'n>(checked: http2::Prepared, names: impl Iterator<Item = &'n str>) -> Prepared {
        let mut pseudo = qpack::PREFIX.to_vec();
        for field in checked.pseudo() {
            qpack::put(&mut pseudo, &field.name, &field.value);
        }
        let mut headers = Vec::new();
        for field in checked.headers() {
            qpack::put(&mut headers, &field.name, &field.value);
        }
        let encoded = |name: &str| {
            let mut bytes = Vec::new();
            qpack::put_name(&mut bytes, &name.to_ascii_lowercase());
            bytes.into()
        };
        let changing = names.map(encoded).collect();
        Prepared { checked, pseudo: pseudo.into(), headers: headers.into(), changing }
    }

    /// Whether this is the head of a request, and the filled-in values match it and can be sent.
    pub(super) fn takes(&self, values: Values<'_>) -> bool {
        self.checked.takes(values)
    }

    /// Whether this is the head of a response, and the filled-in values can be sent.
    pub(super) fn can_respond_with(&self, values: &[&[u8]]) -> bool {
        self.checked.can_respond_with(values)
    }

    /// Whether a response has no body because of the method or the status.
    pub(super) fn bodiless(&self) -> bool {
        self.checked.bodiless()
    }

    /// Appends the HEADERS frame; of a request with a body of this length.
    #[inline]
    pub(super) fn put(&self, values: Values<'_>, length: Option<usize>, out: &mut Vec<u8>) {
        frame::put_section(out, |out| {
            out.extend_from_slice(&self.pseudo);
            if self.checked.authority_changes {
                out.push(qpack::AUTHORITY);
                hpack::put_text(out, values.authority);
            }
            if self.checked.path_changes {
                out.push(qpack::PATH);
                hpack::put_text(out, values.path);
            }
            out.extend_from_slice(&self.headers);
            for (name, value) in self.changing.iter().zip(values.headers) {
                out.extend_from_slice(name);
                hpack::put_text(out, value);
            }
            if let Some(length) = length.filter(|&length| length > 0 || self.checked.says_empty()) {
                out.push(qpack::CONTENT_LENGTH);
                hpack::put_digits(out, length as u64);
            }
        });
    }
}
