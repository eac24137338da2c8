//! Calls of gRPC whose messages go both ways: each that has come whole is sent back, and the status follows the last one. An `impl` of
//! `Http2`. It does not know what messages say.

use std::rc::Rc;

use weir_wire::grpc::{self, Status};
use weir_wire::http2::{Body, SendStatus, Stream};

use super::output::FrameOutput;
use super::response::Request;
use super::{Half, Http2, PendingRequest, Phase};
use crate::fault::Fault;
use crate::http::HttpState;
use crate::route::Subject;
use crate::stream::of_status;
use crate::transport::Transport;

/// A call is given up when its peer has not read so many bytes.
const MOST_UNREAD: usize = 4 * grpc::MOST_MESSAGE_BYTES;

/// A call that goes on.
#[derive(Debug, Default)]
pub(super) struct EchoedCall {
    parser: grpc::Parser,
    /// Whole messages that are still to be sent back.
    ready: Vec<u8>,
    /// Bytes that wait for the peer's window.
    waiting: usize,
    /// How it ends, once that is known.
    status: Option<Status>,
}

impl EchoedCall {
    /// A piece of the request came.
    pub(super) fn read(&mut self, mut piece: &[u8]) {
        loop {
            match self.parser.next(&mut piece) {
                Ok(Some(message)) => {
                    self.ready.extend_from_slice(&grpc::prefix(message.len()));
                    self.ready.extend_from_slice(message);
                }
                Ok(None) => return,
                Err(_) => return self.end(Status::INTERNAL),
            }
        }
    }

    /// It ends so.
    pub(super) fn end(&mut self, status: Status) {
        let cut = status == Status::OK && self.parser.is_within();
        self.status.get_or_insert(if cut { Status::INTERNAL } else { status });
    }

    /// What waited was sent.
    pub(super) fn sent(&mut self) {
        self.waiting = 0;
    }
}

impl Request {
    /// True if its messages are sent back as they come.
    pub(super) fn echoes(&self) -> bool {
        self.resolved.plan.subject == Subject::Bidi && !self.head_only
    }
}

impl<H: Half> Http2<H> {
    /// Begins the response to a request whose messages are sent back. Delays and faults that need a length do not concern it.
    #[cold]
    pub(super) fn begin_echo<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        mut request: Request,
        ends: bool,
    ) {
        // Messages have their times, and no digest was made of them: each has a hash of its own.
        request.check.take().into_iter().for_each(|check| state.shared.check.give_back(check));
        let fault = match state.delay_and_fault(&request.resolved, request.role).1 {
            Some(Fault::Reset { .. }) => Some(Fault::Reset { middle: Some(false) }),
            fault => fault.filter(|fault| matches!(fault, Fault::Status(_))),
        };
        if fault.is_some() {
            return self.respond_specially(output, state, request, fault);
        }
        let resolved = Rc::clone(&request.resolved);
        let response = request.id.map(|id| state.response_to(id));
        let values = response.as_ref().map(|response| &response[..]);
        if self.server.head_filled(request.stream, H::usual(&resolved), values.as_slice(), false, output).is_err() {
            return self.abandon(&request);
        }
        let (stream, deadline) = (request.stream, request.deadline);
        let mut call = Box::<EchoedCall>::default();
        if ends {
            call.end(Status::OK);
        }
        let timer = if deadline == u64::MAX { None } else { self.set_timer(state, deadline, stream) };
        self.insert(PendingRequest { request, phase: Phase::Echoing(call), timer });
        self.go_on_with_echo(output, state, stream);
    }

    /// Sends back what has come of a call, and its status if it has ended.
    pub(super) fn go_on_with_echo<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        stream: Stream,
    ) {
        let Some(Some(pending)) = self.streams.get_mut(stream.slot()) else { return };
        let Phase::Echoing(call) = &mut pending.phase else { return };
        if !call.ready.is_empty() {
            pending.request.body_length += call.ready.len() as u64;
            if self.server.data(stream, Body::Copied(&call.ready), false, output) == Ok(SendStatus::Waiting) {
                call.waiting += call.ready.len();
            }
            call.ready.clear();
        }
        if output.waiting() > MOST_UNREAD || call.waiting > MOST_UNREAD {
            self.server.fail(stream, output);
            return self.drop_stream(state, stream);
        }
        let Some(status) = call.status.filter(|_| call.waiting == 0) else { return };
        let ended = self.server.trailers(stream, of_status(status), output);
        let Some(pending) = self.remove(stream) else { return };
        match ended {
            Ok(_) => self.finished(state, pending.request),
            Err(_) => self.abandon(&pending.request),
        }
    }
}
