//! WebSocket: a connection is upgraded before the load, and then each request is a message that comes back. `run` picks it as the
//! [`Protocol`] of a load.
//!
//! A message has the number of its connection and its own ([`weir_wire::stamp`]), by which the one that comes back is recognised: so lost,
//! doubled, altered and reordered ones are told. Pings are answered. A message that is alone on its connection is complete when the
//! peer's close frame has come behind it, with the code of the client's. One that the server sends to all connections is complete when it has
//! come to the last ([`broadcast`]). It does not know how fast messages are sent, nor who echoes them.

mod broadcast;

use std::collections::VecDeque;
use std::sync::Arc;

use weir_model::load::{ErrorKind, LoadSpec, RequestSpec};
use weir_wire::http1::encode;
use weir_wire::request_id::RequestId;
use weir_wire::stamp::{self, LEAST_SIZE, Message, Stamp};
use weir_wire::websocket::{self, Event as Frame, Operation, Parser};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use self::broadcast::Broadcasts;
use super::http_template::{header, headers_but};
use super::{Encoded, Event, Instance, Protocol, Refusal, Responses};
use crate::error::{SpecError, Violation};
use crate::generator::Generator;

/// The status of a connection that was upgraded, and so of its messages.
const SWITCHING_PROTOCOLS: u16 = 101;

/// The code of a close frame without a reason.
const NORMAL: u16 = 1000;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct WebSocket {
    /// For each target, its upgrade up to the key, and the size of its messages.
    upgrades: Arc<[(Vec<u8>, usize)]>,
    /// Each connection is closed behind its first message.
    single_use: bool,
    nonce: u64,
    /// The messages of a broadcast, if the load is one.
    broadcasts: Option<Broadcasts>,
}

/// One connection that is up.
#[derive(Debug)]
pub(crate) struct Socket {
    key: String,
    /// What has come of the response to the upgrade; `None`: it has all come.
    head: Option<Vec<u8>>,
    parser: Parser,
    /// The connection's number among all, the one in its stamps, and the number of its next message.
    number: u32,
    id: u64,
    next: u32,
    size: usize,
    /// The messages that are to come back, oldest first.
    order: VecDeque<Sent>,
    /// The stream whose message has come back, and that waits for the peer's close frame.
    leaving: Option<u32>,
    /// The peer sends no more, for this reason.
    closed: Option<u16>,
    masks: u64,
}

/// A message that is to come back.
#[derive(Debug)]
struct Sent {
    number: u32,
    stream: u32,
    /// A later one has come.
    passed: bool,
}

impl Socket {
    /// Returns whether a close frame may leave: it is upgraded, and none has left.
    fn can_close(&self) -> bool {
        self.closed.is_none() && self.leaving.is_none() && self.head.is_none()
    }

    fn mask(&mut self) -> Option<[u8; 4]> {
        next_mask(self.id, &mut self.masks)
    }

    /// A message came.
    fn on_message(
        order: &mut VecDeque<Sent>,
        id: u64,
        data: &[u8],
        responses: &mut Responses<'_>,
    ) -> Result<Event, Violation> {
        // One that is altered came in the place of the oldest, most likely.
        let oldest = order.iter().position(|sent| !sent.passed).or((!order.is_empty()).then_some(0));
        let (place, wrong) = match stamp::read(data) {
            Message::Whole(Stamp { stream, number, .. }) if stream == id => {
                let place = order.iter().position(|sent| sent.number == number);
                let before = order.iter_mut().take(place.unwrap_or(0));
                // Each is missed once.
                let missed = before.fold(false, |missed, sent| missed | !std::mem::replace(&mut sent.passed, true));
                (place, missed.then_some("a message came before an earlier one, or that is lost"))
            }
            Message::Whole(_) => (oldest, Some("a message of another connection")),
            Message::Altered | Message::Unstamped => (oldest, Some("a message was altered")),
        };
        let Some(Sent { stream, .. }) = place.and_then(|place| order.remove(place)) else {
            return Err("a message that came twice, or that nobody sent".into());
        };
        let mut response = responses.of(stream);
        response.whole(SWITCHING_PROTOCOLS, data.len() as u64);
        if let Some(wrong) = wrong {
            response.wrong(ErrorKind::WrongBody);
            response.reason(ErrorKind::WrongBody, &wrong);
        }
        Ok(Event::Complete { stream, reusable: true })
    }
}

/// The mask of a connection's next frame: another one each time.
fn next_mask(id: u64, masks: &mut u64) -> Option<[u8; 4]> {
    *masks = xxh3_64_with_seed(&id.to_ne_bytes(), *masks);
    Some((*masks as u32).to_ne_bytes())
}

impl Protocol for WebSocket {
    const NEGOTIATING: &'static str = "before its upgrade to WebSocket";
    type Session = Option<Box<Socket>>;
    type Error = Violation;

    fn new(spec: &LoadSpec, instance: Instance) -> Result<WebSocket, SpecError> {
        let of_target = |target: usize| spec.requests.iter().find(|request| request.target as usize == target);
        let upgrades = (0..spec.targets.len())
            .filter_map(of_target)
            .map(|request| Ok((upgrade(spec, request)?, request.request.body.len().max(LEAST_SIZE))));
        let upgrades = upgrades.collect::<Result<_, SpecError>>()?;
        let broadcasts = spec.is_broadcast().then(|| Broadcasts::new(instance.nonce, spec.connections));
        Ok(WebSocket { upgrades, single_use: spec.is_single_use(), nonce: instance.nonce, broadcasts })
    }

    fn connect(&self, session: &mut Self::Session, number: u32, out: &mut Vec<u8>) -> bool {
        let (upgrade, size) = &self.upgrades[number as usize % self.upgrades.len()];
        let id = xxh3_64_with_seed(&number.to_ne_bytes(), self.nonce);
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&id.to_ne_bytes());
        nonce[8..].copy_from_slice(&id.rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_ne_bytes());
        let key = websocket::key(nonce);
        out.extend_from_slice(upgrade);
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        // Messages of an earlier connection may still come to others.
        let next = session.as_ref().map_or(0, |socket| socket.next);
        *session = Some(Box::new(Socket {
            key,
            head: Some(Vec::new()),
            parser: Parser::new(false),
            number,
            id,
            next,
            size: *size,
            order: VecDeque::new(),
            leaving: None,
            closed: None,
            masks: id,
        }));
        false
    }

    #[inline]
    fn encode<'a>(
        &'a self,
        session: &mut Self::Session,
        stream: u32,
        _kind: u32,
        _id: Option<RequestId>,
        _generator: &'a mut Generator,
        out: &mut Vec<u8>,
    ) -> Result<Encoded<'a>, Refusal> {
        let Some(socket) = session.as_mut().filter(|socket| socket.closed.is_none()) else {
            return Err(Refusal::Exhausted);
        };
        let (mask, size, number) = (socket.mask(), socket.size, socket.next);
        let of_all = self.broadcasts.as_ref().map(|broadcasts| (broadcasts.id(), socket.number));
        let (stream_id, of) = of_all.unwrap_or((socket.id, u32::MAX));
        let stamp = Stamp { stream: stream_id, number, of, due: 0, sent: 0 };
        websocket::put_message(out, Operation::Text, mask, size, |out| stamp.write(size, out));
        socket.next = number.wrapping_add(1);
        socket.order.push_back(Sent { number, stream, passed: false });
        Ok(Encoded::Appended)
    }

    #[inline]
    fn receive(
        &mut self,
        session: &mut Self::Session,
        input: &mut &[u8],
        responses: &mut Responses<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Violation> {
        let Some(socket) = session else { return Ok(None) };
        if let Some(head) = &mut socket.head {
            if input.is_empty() || !websocket::take_response(head, input, &socket.key).map_err(|e| e.to_string())? {
                return Ok(None);
            }
            socket.head = None;
            return Ok(Some(Event::Streams(u32::MAX)));
        }
        let socket = &mut **socket;
        loop {
            match socket.parser.next(input).map_err(|error| format!("not WebSocket: {error}"))? {
                None => return Ok(None),
                Some(Frame::Message { data, .. }) => {
                    if let Some(broadcasts) = &mut self.broadcasts {
                        match broadcasts.on_message(socket.number, data)? {
                            None => continue,
                            event => return Ok(event),
                        }
                    }
                    let event = Socket::on_message(&mut socket.order, socket.id, data, responses)?;
                    let Event::Complete { stream, .. } = event else { return Ok(Some(event)) };
                    if !self.single_use {
                        return Ok(Some(event));
                    }
                    socket.leaving = Some(stream);
                    websocket::put_close(out, NORMAL, next_mask(socket.id, &mut socket.masks));
                }
                Some(Frame::Ping(data)) => {
                    let mask = next_mask(socket.id, &mut socket.masks);
                    websocket::put_frame(out, Operation::Pong, true, mask, data);
                }
                Some(Frame::Pong(_)) => {}
                Some(Frame::Close { code, .. }) => {
                    if let Some(stream) = socket.leaving.take() {
                        socket.closed = Some(code.unwrap_or(NORMAL));
                        if code != Some(NORMAL) {
                            let came = code.map_or("no code".to_owned(), |code| format!("code {code}"));
                            let reason = format!("a close frame with code {NORMAL} came back with {came}");
                            let mut response = responses.of(stream);
                            response.reason(ErrorKind::Protocol, &reason);
                            response.wrong(ErrorKind::Protocol);
                        }
                        return Ok(Some(Event::Complete { stream, reusable: false }));
                    }
                    let code = code.unwrap_or(NORMAL);
                    websocket::put_close(out, code, socket.mask());
                    socket.closed = Some(code);
                    return Ok(Some(Event::GoAway));
                }
            }
        }
    }

    fn end_of_input(&self, session: &mut Self::Session) -> Result<u32, Option<Violation>> {
        if session.as_ref().is_some_and(|socket| socket.leaving.is_some()) {
            return Err(Some("the peer ended the connection without a close frame".into()));
        }
        let code = session.as_ref().and_then(|socket| socket.closed);
        Err(code.map(|code| format!("the peer closed the WebSocket with code {code}").into()))
    }

    fn ended(&self, session: &mut Self::Session) {
        match session {
            Some(socket) if self.broadcasts.is_some() => {
                socket.order.clear();
                socket.closed = Some(NORMAL);
            }
            _ => *session = None,
        }
    }

    fn delivered(
        &self,
        session: &mut Self::Session,
        message: u32,
        bytes: u32,
        responses: &mut Responses<'_>,
    ) -> Option<u32> {
        let order = &mut session.as_mut()?.order;
        let place = order.iter().position(|sent| sent.number == message)?;
        let Sent { stream, .. } = order.remove(place)?;
        responses.of(stream).whole(SWITCHING_PROTOCOLS, bytes.into());
        Some(stream)
    }

    fn close(&self, session: &mut Self::Session, out: &mut Vec<u8>) {
        if let Some(socket) = session.as_mut().filter(|socket| socket.can_close()) {
            let mask = socket.mask();
            websocket::put_close(out, NORMAL, mask);
        }
    }
}

/// An upgrade, up to its key.
fn upgrade(spec: &LoadSpec, request: &RequestSpec) -> Result<Vec<u8>, SpecError> {
    let host = header(request, "host").unwrap_or(&spec.targets[request.target as usize].authority);
    let mut all = vec![("Host", host), ("Connection", "Upgrade"), ("Upgrade", "websocket")];
    all.push(("Sec-WebSocket-Version", websocket::VERSION));
    all.extend(headers_but(request, "host"));
    all.push(("Sec-WebSocket-Key", "x"));
    let mut bytes = Vec::new();
    encode::request(&mut bytes, "GET", &request.request.path, &all, b"")
        .map_err(|error| format!("the request cannot be sent: {error}"))?;
    // The key that holds its place, and the end of the head.
    bytes.truncate(bytes.len() - b"x\r\n\r\n".len());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::spec;

    #[test]
    fn an_upgrade_has_its_key_last() {
        let mut spec = spec();
        spec.requests[0].request.headers = vec![("Origin".into(), "http://a".into())];
        let mut out = Vec::new();
        let protocol = WebSocket::new(&spec, Instance::default()).unwrap();
        assert!(!protocol.connect(&mut None, 3, &mut out), "not before the response");
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("GET /x?y=1 HTTP/1.1\r\nHost: origin.test\r\nConnection: Upgrade\r\n"), "{text}");
        let key = text.rsplit_once("Origin: http://a\r\nSec-WebSocket-Key: ").unwrap().1;
        assert_eq!((key.len(), &key[24..]), (28, "\r\n\r\n"), "{text}");
    }
}
