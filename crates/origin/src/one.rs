//! One connection that speaks HTTP/1: the parser and the flow of answers, joined.
//!
//! This module does not know drivers, nor what requests mean.

use weir_net::Conn;
use weir_wire::http1::{Limits, RequestEvent, RequestParser};

use crate::desk::Desk;
use crate::flow::Flow;
use crate::line::Line;
use crate::talk::Heard;

/// A connection that speaks HTTP/1.
#[derive(Debug)]
pub(crate) struct One {
    parser: RequestParser,
    /// Its answers.
    pub(crate) flow: Flow,
}

impl One {
    /// Nobody is there.
    pub(crate) fn new() -> One {
        One { parser: RequestParser::new(Limits::default()), flow: Flow::default() }
    }

    /// A new connection in place of an old one.
    pub(crate) fn begin(&mut self, conn: Conn) {
        self.parser = RequestParser::new(Limits::default());
        self.flow.begin(conn);
    }

    /// Deals with what happened.
    #[inline]
    pub(crate) fn hear(&mut self, line: &mut impl Line, desk: &mut Desk, heard: Heard<'_>) {
        let flow = &mut self.flow;
        match heard {
            Heard::Data(bytes) => self.on_data(line, desk, bytes),
            Heard::Sent => flow.on_sent(line, desk),
            Heard::Eof => {
                flow.settle(line, desk);
                flow.on_eof(line, desk);
            }
            Heard::Failed(unsent, reset) => flow.on_failed(desk, unsent, reset),
            Heard::Time(_) => flow.on_time(line, desk),
            Heard::Stop => flow.stop(line, desk),
            Heard::Abort => flow.abort(line, desk),
            Heard::Broken => flow.forget(desk),
        }
    }

    /// Feeds what came to the parser, and what the parser says to the flow.
    #[inline]
    pub(crate) fn on_data(&mut self, line: &mut impl Line, desk: &mut Desk, bytes: &[u8]) {
        let One { parser, flow } = self;
        flow.settle(line, desk);
        let mut input = bytes;
        while flow.reads() {
            let before = input.len();
            let event = parser.next(&mut input);
            let read = before - input.len();
            match event {
                Ok(Some(RequestEvent::Head(head))) => flow.on_head(line, desk, &head, read),
                Ok(Some(RequestEvent::Body(piece))) => {
                    flow.read(read, desk);
                    flow.on_body(desk, piece);
                }
                Ok(Some(RequestEvent::End { keep_alive })) => {
                    flow.read(read, desk);
                    flow.on_end(line, desk, keep_alive);
                }
                Ok(None) => return flow.read(read, desk),
                Err(why) => {
                    flow.read(read, desk);
                    flow.on_malformed(line, desk, why.status(), &why);
                }
            }
        }
        // A connection that reads no more requests still drains.
        flow.read(input.len(), desk);
    }
}
