//! Bodies that are sent, and where bytes that are sent go.

/// What a message carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Body<'a> {
    /// No body.
    #[default]
    None,
    /// Sent from where it lies, and never copied if the [`Output`] need not.
    Static(&'static [u8]),
    /// Copied: what the peer has a window for to the [`Output`], the rest into the connection until it has.
    Copied(&'a [u8]),
}

impl<'a> Body<'a> {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Body::None => 0,
            Body::Static(bytes) => bytes.len(),
            Body::Copied(bytes) => bytes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where a connection appends what is to be sent.
pub trait Output {
    /// Bytes are appended here; nothing else is done to it.
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Appends a piece of a body behind all that was appended so far.
    ///
    /// An output that hands bodies to a driver without copying them first hands over what is in the buffer.
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
