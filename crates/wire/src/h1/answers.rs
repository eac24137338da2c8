//! skeleton

use super::{AnswerEvent, Limits, WireError};

/// One half; one per connection.
#[derive(Debug)]
pub struct Answers {
    _limits: Limits,
}

impl Answers {
    /// A new connection.
    pub fn new(limits: Limits) -> Answers {
        Answers { _limits: limits }
    }

    /// Next event from `input`; consumes what it used. `None`: give more bytes.
    ///
    /// # Errors
    /// What the peer did wrong.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<AnswerEvent<'s>>, WireError> {
        let _ = input;
        todo!()
    }

    /// A request was sent; answers come in that order. `head`: it was a HEAD request, whose answer has no body.
    pub fn request_sent(&mut self, head: bool) {
        let _ = head;
    }

    /// The peer closed. `Ok(true)`: an until-close body ended properly here. `Ok(false)`: nothing was pending.
    ///
    /// # Errors
    /// The peer closed in the middle of an answer, or before one.
    pub fn on_eof(&mut self) -> Result<bool, WireError> {
        todo!()
    }

    /// Requests sent whose `End` has not come.
    pub fn in_flight(&self) -> u32 {
        todo!()
    }
}
