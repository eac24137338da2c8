//! A connection that was upgraded to WebSocket: each message is sent back as it came, in one frame, and each ping gets its pong. In a broadcast
//! the message goes to all other connections of the worker, too.
//!
//! A message counts as a request and its echo as the response; the upgrade is weir's own. [`crate::http1`] makes it from a request, and
//! [`crate::pipeline`] accounts for what it sends. It does not know HTTP.

use weir_wire::http1::{self, RequestHead};
use weir_wire::websocket::{self, Event, Operation, Parser};

use crate::http::HttpState;
use crate::pipeline::Pipeline;
use crate::response::{Role, Written};
use crate::stream::Shape;
use crate::transport::Transport;

/// A peer that reads nothing is given up with so many bytes unsent.
const MOST_UNSENT: usize = 4 * websocket::MOST_MESSAGE_BYTES;

/// One connection.
#[derive(Debug)]
pub(crate) struct WebSocket {
    parser: Parser,
    /// Messages until it closes the connection by itself, and the code that it gives then.
    left: u32,
    code: u16,
    /// Messages go to all that take part.
    broadcast: bool,
    /// It has sent a close frame: what comes is dropped up to the peer's.
    closing: bool,
}

impl WebSocket {
    /// The response to a request for an upgrade of a target for sockets, and the connection after it. `None`: it asks for none.
    pub(crate) fn accept(head: &RequestHead<'_>, shape: Shape) -> Option<(WebSocket, String)> {
        let key = websocket::upgrade(http1::headers(head.raw))?;
        let response = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
            websocket::accept(key)
        );
        let socket = WebSocket {
            parser: Parser::new(true),
            left: shape.messages,
            code: shape.code as u16,
            broadcast: shape.broadcast,
            closing: false,
        };
        Some((socket, response))
    }

    /// Bytes came.
    pub(crate) fn on_data(
        &mut self,
        pipeline: &mut Pipeline,
        transport: &mut impl Transport,
        state: &mut HttpState,
        mut input: &[u8],
    ) {
        state.counters().bytes_in.add(input.len() as u64);
        let mut out = state.buffer();
        while pipeline.reads() {
            out.clear();
            match self.parser.next(&mut input) {
                Ok(None) => break,
                Ok(Some(Event::Close { code, .. })) => {
                    state.all_counters().close_frame(code);
                    if !self.closing {
                        websocket::put_close(&mut out, code.unwrap_or(1000), None);
                    }
                    pipeline.end_socket(transport, state, &out, false);
                }
                Ok(Some(_)) if self.closing => {}
                Ok(Some(Event::Message { text, data })) => {
                    state.counters().body_bytes_in.add(data.len() as u64);
                    let operation = if text { Operation::Text } else { Operation::Binary };
                    websocket::put_frame(&mut out, operation, true, None, data);
                    let (bytes, body) = (out.len() as u64, data.len() as u64);
                    if self.broadcast {
                        state.broadcast.extend_from_slice(&out);
                    }
                    self.left -= 1;
                    if self.left == 0 {
                        self.closing = true;
                        websocket::put_close(&mut out, self.code, None);
                    }
                    let written = Written { bytes: out.len() as u64, body, before_body: bytes - body };
                    pipeline.echo(transport, state, &out, written);
                }
                Ok(Some(Event::Ping(data))) => {
                    websocket::put_frame(&mut out, Operation::Pong, true, None, data);
                    pipeline.send_apart(transport, &out, Role::Part);
                }
                Ok(Some(Event::Pong(_))) => {}
                Err(error) => {
                    state.counters().malformed.add(1);
                    websocket::put_close(&mut out, error.code(), None);
                    pipeline.end_socket(transport, state, &out, true);
                }
            }
            give_up(pipeline, transport, state);
        }
        state.give_back(out);
    }

    /// A frame came from another connection, and goes to this one if it takes part.
    pub(crate) fn pass_on(
        &self,
        pipeline: &mut Pipeline,
        transport: &mut impl Transport,
        state: &mut HttpState,
        frame: &[u8],
    ) {
        if self.broadcast && !self.closing && pipeline.reads() {
            pipeline.account_sent(transport, state);
            pipeline.send_apart(transport, frame, Role::Part);
            give_up(pipeline, transport, state);
        }
    }
}

/// Ends a connection whose peer reads nothing.
fn give_up(pipeline: &mut Pipeline, transport: &mut impl Transport, state: &mut HttpState) {
    if pipeline.reads() && transport.unsent() > MOST_UNSENT {
        pipeline.abort(transport, state);
    }
}
