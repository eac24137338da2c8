//! skeleton

/// What cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// No `Host` among the headers.
    #[error("no Host among the headers")]
    MissingHost,
}

/// How an answer's body will be delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// So many bytes; writes `Content-Length`.
    Length(u64),
    /// Writes `Transfer-Encoding: chunked`.
    Chunked,
    /// Writes neither: for 1xx, 204, 304, answers to HEAD, and bodies that end with the connection.
    None,
}

/// What an answer says about its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing: stays open for HTTP/1.1 peers.
    Implied,
    /// `Connection: keep-alive`, for HTTP/1.0 peers that asked for it.
    KeepAlive,
    /// `Connection: close`.
    Close,
}

/// `100 Continue`, whole.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// The end of every chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";
/// The last chunk, with no trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends a whole request.
///
/// # Errors
/// See [`EncodeError`]; `out` is then as it was.
pub fn request(out: &mut Vec<u8>, method: &str, target: &str, headers: &[(impl AsRef<str>, impl AsRef<str>)], body: &[u8]) -> Result<(), EncodeError> {
    let _ = (out, method, target, headers, body);
    todo!()
}

/// Appends the head of an answer; the reason phrase is [`reason`]'s.
///
/// # Errors
/// See [`EncodeError`]; `out` is then as it was.
pub fn answer_head(out: &mut Vec<u8>, status: u16, headers: &[(&str, &str)], framing: BodyFraming, persistence: Persistence) -> Result<(), EncodeError> {
    let _ = (out, status, headers, framing, persistence);
    todo!()
}

/// The bytes of an answer's head, made once and sent often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedHead {
    bytes: Box<[u8]>,
}

impl PreparedHead {
    /// As [`answer_head`].
    ///
    /// # Errors
    /// As [`answer_head`].
    pub fn new(status: u16, headers: &[(&str, &str)], framing: BodyFraming, persistence: Persistence) -> Result<PreparedHead, EncodeError> {
        let mut bytes = Vec::new();
        answer_head(&mut bytes, status, headers, framing, persistence)?;
        Ok(PreparedHead { bytes: bytes.into() })
    }

    /// The bytes, status line to empty line.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Appends the line before a chunk of `len` bytes; the data and [`CHUNK_END`] follow. `len` is not 0.
pub fn chunk_head(out: &mut Vec<u8>, len: usize) {
    let _ = (out, len);
    todo!()
}

/// Appends a whole chunk; nothing for no data, since an empty chunk would end the body.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    let _ = (out, data);
    todo!()
}

/// The usual reason phrase of a status code, empty when there is none.
pub fn reason(status: u16) -> &'static str {
    let _ = status;
    todo!()
}
