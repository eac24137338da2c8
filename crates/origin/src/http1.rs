//! One connection that speaks HTTP/1: the parser, and behind it the pipeline of responses.
//!
//! This module does not know drivers, nor what requests mean.

use weir_net::Conn;
use weir_wire::http1::{Limits, RequestEvent, RequestParser};

use crate::http::HttpState;
use crate::pipeline::Pipeline;
use crate::session::SessionEvent;
use crate::transport::Transport;
use crate::websocket::WebSocket;

/// A connection that speaks HTTP/1.
#[derive(Debug)]
pub(crate) struct Http1 {
    parser: RequestParser,
    /// Its responses.
    pub(crate) pipeline: Pipeline,
    /// What the connection was upgraded to.
    socket: Option<Box<WebSocket>>,
}

impl Http1 {
    /// A session that no connection has used.
    pub(crate) fn new() -> Http1 {
        Http1 { parser: RequestParser::new(Limits::default()), pipeline: Pipeline::default(), socket: None }
    }

    /// Resets the session for a new connection.
    pub(crate) fn begin(&mut self, conn: Conn) {
        self.parser = RequestParser::new(Limits::default());
        self.pipeline.begin(conn);
        self.socket = None;
    }

    /// Handles an event.
    #[inline(always)]
    pub(crate) fn on_event(&mut self, transport: &mut impl Transport, state: &mut HttpState, event: SessionEvent<'_>) {
        let pipeline = &mut self.pipeline;
        match event {
            SessionEvent::Data(bytes) => self.on_data(transport, state, bytes),
            SessionEvent::Sent => pipeline.on_sent(transport, state),
            SessionEvent::Eof => {
                pipeline.account_sent(transport, state);
                pipeline.on_eof(transport, state);
            }
            SessionEvent::Failed { unsent, reset } => pipeline.on_failed(state, unsent, reset),
            SessionEvent::Timeout(_) => pipeline.on_timeout(transport, state),
            SessionEvent::Stop => pipeline.stop(transport, state),
            SessionEvent::Abort => pipeline.abort(transport, state),
            SessionEvent::TlsFailed => pipeline.release(state),
            SessionEvent::Broadcast(frame) => {
                if let Some(socket) = &self.socket {
                    socket.pass_on(pipeline, transport, state, frame);
                }
            }
        }
    }

    /// Feeds bytes to the parser, and its events to the pipeline.
    #[inline]
    fn on_data(&mut self, transport: &mut impl Transport, state: &mut HttpState, bytes: &[u8]) {
        let Http1 { parser, pipeline, socket } = self;
        pipeline.account_sent(transport, state);
        if let Some(socket) = socket {
            return socket.on_data(pipeline, transport, state, bytes);
        }
        let mut input = bytes;
        while pipeline.reads() {
            let before = input.len();
            let event = parser.next_with(&mut input, Some(&mut state.shared.heads));
            let read = before - input.len();
            match event {
                Ok(Some(RequestEvent::Head(head))) => {
                    if let Some(upgraded) = pipeline.on_head(transport, state, &head, read) {
                        // Of the request only its end follows.
                        let end = parser.next(&mut input);
                        debug_assert!(matches!(end, Ok(Some(RequestEvent::End { .. }))), "{end:?}");
                        return socket.insert(upgraded).on_data(pipeline, transport, state, input);
                    }
                }
                Ok(Some(RequestEvent::Body(piece))) => {
                    pipeline.read(read, state);
                    pipeline.on_body(state, piece);
                }
                Ok(Some(RequestEvent::End { keep_alive })) => {
                    pipeline.read(read, state);
                    pipeline.on_end(transport, state, keep_alive);
                }
                Ok(None) => return pipeline.read(read, state),
                Err(why) => {
                    pipeline.read(read, state);
                    pipeline.on_malformed(transport, state, why.status(), &why);
                }
            }
        }
        // A connection that reads no more requests still discards bytes.
        pipeline.read(input.len(), state);
    }
}
