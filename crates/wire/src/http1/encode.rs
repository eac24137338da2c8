//! Writes requests and responses.
//!
//! Every value is checked first, by the same rules as in the parsers, so that weir cannot send what it would refuse
//! to read. Nothing is written when a check fails.

use super::chars::{check_text, is_host, is_target, is_token, trim};

/// Why a message cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// Not a token, or `CONNECT`.
    #[error("{0:?} is not a method that can be sent")]
    BadMethod(String),
    /// Not origin form, absolute form or `*`.
    #[error("{0:?} is not a request target: a path that begins with / and has no spaces, an absolute URI, or *")]
    BadTarget(String),
    /// Not a token.
    #[error("{0:?} is not a header's name")]
    BadHeaderName(String),
    /// A line end, NUL or other control byte inside, or white space at an end.
    #[error("the header {0} has a control byte, or white space at an end of its value")]
    BadHeaderValue(String),
    /// No `Host` among a request's headers.
    #[error("the request has no Host header")]
    MissingHost,
    /// More than one `Host`, or one that is no host and port.
    #[error("the Host header {0:?} is given twice or is not a host with an optional port")]
    BadHost(String),
    /// A header that this module itself derives from the body.
    #[error("the header {0} follows from the body and cannot be given")]
    FramingHeader(String),
    /// Not from 100 to 999.
    #[error("{0} is not a status code")]
    BadStatus(u16),
    /// 1xx and 204 have no body, and no header may announce one (RFC 9110 section 8.6, RFC 9112 section 6.1).
    #[error("a response with status {0} has no body")]
    NoBodyAllowed(u16),
}

/// How a response's body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// This many bytes; writes `Content-Length`.
    Length(u64),
    /// Writes `Transfer-Encoding: chunked`.
    Chunked,
    /// Writes neither: for 1xx, 204 and 304, responses to HEAD, and bodies that end with the connection.
    None,
}

/// The `Connection` header of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// No header: an HTTP/1.1 peer keeps the connection open.
    Implied,
    /// `Connection: keep-alive`, for HTTP/1.0 peers that requested it.
    KeepAlive,
    /// `Connection: close`.
    Close,
}

/// `100 Continue`, whole.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The bytes after a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

/// The last chunk, without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends a whole request of HTTP/1.1. `headers` has `Host`; `Content-Length` is added when there is a body, and for
/// POST, PUT and PATCH also when there is none (RFC 9110 section 8.6).
///
/// # Errors
/// What cannot be sent. `out` is then unchanged.
pub fn request(
    out: &mut Vec<u8>,
    method: &str,
    target: &str,
    headers: &[(impl AsRef<str>, impl AsRef<str>)],
    body: &[u8],
) -> Result<(), EncodeError> {
    if !is_token(method.as_bytes()) || method == "CONNECT" {
        return Err(EncodeError::BadMethod(method.to_owned()));
    }
    if !is_target(target.as_bytes()) {
        return Err(EncodeError::BadTarget(target.to_owned()));
    }
    let mut host = false;
    for (name, value) in headers {
        let (name, value) = (name.as_ref(), value.as_ref());
        check_header(name, value)?;
        if name.eq_ignore_ascii_case("host") {
            if host || !is_host(value.as_bytes()) {
                return Err(EncodeError::BadHost(value.to_owned()));
            }
            host = true;
        }
    }
    if !host {
        return Err(EncodeError::MissingHost);
    }

    put(out, &[method, " ", target, " HTTP/1.1\r\n"]);
    for (name, value) in headers {
        put(out, &[name.as_ref(), ": ", value.as_ref(), "\r\n"]);
    }
    if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
        put_length(out, body.len() as u64);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    Ok(())
}

/// Appends the head of a response of HTTP/1.1, with the usual reason phrase.
///
/// The version is 1.1 whatever the request's was: it is the server's own (RFC 9110 section 2.5).
///
/// # Errors
/// What cannot be sent. `out` is then unchanged.
#[inline]
pub fn response_head(
    out: &mut Vec<u8>,
    status: u16,
    headers: &[(&str, &str)],
    framing: BodyFraming,
    persistence: Persistence,
) -> Result<(), EncodeError> {
    if !(100..=999).contains(&status) {
        return Err(EncodeError::BadStatus(status));
    }
    if matches!(status, 100..=199 | 204) && framing != BodyFraming::None {
        return Err(EncodeError::NoBodyAllowed(status));
    }
    for (name, value) in headers {
        check_header(name, value)?;
    }

    out.extend_from_slice(b"HTTP/1.1 ");
    put_decimal(out, u64::from(status));
    put(out, &[" ", reason(status), "\r\n"]);
    for (name, value) in headers {
        put(out, &[name, ": ", value, "\r\n"]);
    }
    match framing {
        BodyFraming::Length(length) => put_length(out, length),
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyFraming::None => {}
    }
    match persistence {
        Persistence::Implied => {}
        Persistence::KeepAlive => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        Persistence::Close => out.extend_from_slice(b"Connection: close\r\n"),
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Appends the line before a chunk of `len` bytes; the data and [`CHUNK_END`] follow. `len` must not be 0, which
/// would end the body; [`chunk`] takes care of that itself.
pub fn chunk_head(out: &mut Vec<u8>, len: usize) {
    debug_assert_ne!(len, 0, "a chunk of no bytes ends the body");
    let digits = (usize::BITS - len.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(len >> (4 * place)) & 15]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a whole chunk, or nothing when there is no data.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if !data.is_empty() {
        chunk_head(out, data.len());
        out.extend_from_slice(data);
        out.extend_from_slice(CHUNK_END);
    }
}

/// The usual reason phrase of a status code (RFC 9110 section 15, RFC 6585), empty for one that has none.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// Checks a header that a caller gives: it is well-formed, and not one of those that frame the body.
fn check_header(name: &str, value: &str) -> Result<(), EncodeError> {
    if !is_token(name.as_bytes()) {
        return Err(EncodeError::BadHeaderName(name.to_owned()));
    }
    if check_text(value.as_bytes()).is_err() || trim(value.as_bytes()).len() != value.len() {
        return Err(EncodeError::BadHeaderValue(name.to_owned()));
    }
    let frames = matches!(name.len(), 14 | 17)
        && (name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding"));
    if frames { Err(EncodeError::FramingHeader(name.to_owned())) } else { Ok(()) }
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

fn put_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    put_decimal(out, length);
    out.extend_from_slice(b"\r\n");
}

fn put_decimal(out: &mut Vec<u8>, number: u64) {
    let (digits, first) = decimal(number);
    out.extend_from_slice(&digits[first..]);
}

/// Returns a number's digits, at the end of the array, and where they begin. The formatter of the standard library
/// would cost more than the rest of the head.
#[inline]
pub(crate) fn decimal(mut number: u64) -> ([u8; 20], usize) {
    // 2^64 has 20 digits.
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return (digits, first);
        }
    }
}
