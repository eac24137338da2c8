//! skeleton

use super::{RequestEvent, Limits, WireError};

/// One half; one per connection.
#[derive(Debug)]
pub struct Requests {
    _limits: Limits,
}

impl Requests {
    /// A new connection.
    pub fn new(limits: Limits) -> Requests {
        Requests { _limits: limits }
    }

    /// Next event from `input`; consumes what it used. `None`: give more bytes.
    ///
    /// # Errors
    /// What the peer did wrong.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<RequestEvent<'s>>, WireError> {
        let _ = input;
        todo!()
    }

    /// The peer closed.
    ///
    /// # Errors
    /// In the middle of a request.
    pub fn on_eof(&mut self) -> Result<(), WireError> {
        todo!()
    }

    /// Between requests, with nothing of the next one read.
    pub fn is_idle(&self) -> bool {
        todo!()
    }
}
