//! Heads encoded ahead.

use super::EncodeError;

/// What a request says, to prepare it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Method; not `CONNECT`.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// What HTTP/1.1 has in `Host`.
    pub authority: &'a str,
    /// Path with query, or `*`.
    pub path: &'a str,
    /// Headers. Not `host` and `content-length`, nor those of HTTP/1.1's connections.
    pub headers: &'a [(&'a str, &'a str)],
}

/// The head of a request or of an answer, checked and encoded ahead.
///
/// On each connection the first use inserts it into the peer's table, and later uses cost a byte or two a header. It
/// belongs to no connection: one serves all.
#[derive(Debug, Clone)]
pub struct Prepared {}

impl Prepared {
    /// A request that is always the same. `content-length` is added when it is sent: when there is a body, and for POST,
    /// PUT and PATCH always (RFC 9110 section 8.6).
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn request(request: &Request<'_>) -> Result<Prepared, EncodeError> {
        Self::template(request, false, &[])
    }

    /// A request of which some values come when it is sent ([`super::Client::request_filled`]): the path, if
    /// `path_changes`, and those of the headers at `changing` (ascending places in `request.headers`; what the values
    /// there are does not matter). Headers that change are sent behind the others.
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn template(request: &Request<'_>, path_changes: bool, changing: &[usize]) -> Result<Prepared, EncodeError> {
        let _ = (request, path_changes, changing);
        Ok(Prepared {})
    }

    /// The head of an answer. `length` writes `content-length`, which need not be the length of the body that is sent
    /// (answers to HEAD).
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn answer(status: u16, headers: &[(&str, &str)], length: Option<u64>) -> Result<Prepared, EncodeError> {
        let _ = (status, headers, length);
        Ok(Prepared {})
    }
}
