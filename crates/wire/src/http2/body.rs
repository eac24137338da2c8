//! The bodies that callers send, and the output that receives the bytes. Both halves of HTTP/2 use them.

/// The body of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Body<'a> {
    /// No body.
    #[default]
    None,
    /// Not copied, unless the [`Output`] has to.
    Static(&'static [u8]),
    /// Copied: the part that fits the peer's window goes to the [`Output`], the rest is stored in the connection.
    Copied(&'a [u8]),
}

impl<'a> Body<'a> {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Body::None => 0,
            Body::Static(bytes) => bytes.len(),
            Body::Copied(bytes) => bytes.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where a connection appends the bytes to send.
pub trait Output {
    /// The buffer that bytes are appended to. Nothing else is done to it.
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Appends a piece of a body after everything appended so far.
    ///
    /// An output that gives bodies to a driver without a copy first gives it the contents of the buffer.
    fn body(&mut self, piece: &'static [u8]);
}

impl Output for Vec<u8> {
    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        self
    }

    #[inline]
    fn body(&mut self, piece: &'static [u8]) {
        self.extend_from_slice(piece);
    }
}
