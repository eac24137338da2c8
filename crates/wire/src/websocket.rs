//! WebSocket (RFC 6455): the upgrade of a connection of HTTP/1.1, and frames.
//!
//! Pull [`Parser`] as [`crate::sse`]. A message that comes in one frame, in one piece and without a mask is a slice of the caller's bytes;
//! any other is put together in a buffer with a bound. Control frames may stand between the frames of a message. No extension is asked for, so
//! none of the reserved bits may be set. It does not know sockets, nor what a message says.

use std::str::from_utf8;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use thiserror::Error;

use crate::http1;

/// The largest message, bytes.
pub const MOST_MESSAGE_BYTES: usize = 4 << 20;

/// The largest head of a response to an upgrade, bytes.
const MOST_HEAD_BYTES: usize = 16 << 10;

/// The most bytes that a control frame has (section 5.5).
const MOST_CONTROL_BYTES: usize = 125;

/// What the key of an upgrade is hashed with (section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The version that everybody speaks.
pub const VERSION: &str = "13";

/// How a peer broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Nobody asked for what a reserved bit means.
    #[error("a frame with a reserved bit, of an extension that was not asked for")]
    Reserved,
    /// An operation that means nothing.
    #[error("a frame of operation {0}, which is none")]
    Operation(u8),
    /// Clients mask their frames (section 5.1).
    #[error("a frame without a mask; expected: one, from a client")]
    Unmasked,
    /// Servers do not.
    #[error("a frame with a mask; expected: none, from a server")]
    Masked,
    /// A control frame is in pieces, or too large.
    #[error("a control frame in pieces, or of more than {MOST_CONTROL_BYTES} bytes")]
    Control,
    /// A piece of a message that did not begin, or another message within one.
    #[error("a piece of a message where none began, or another message within one")]
    Continuation,
    /// A length that has a shorter form, or is negative.
    #[error("a length that is not written in its shortest form")]
    Length,
    /// A message is larger than [`MOST_MESSAGE_BYTES`].
    #[error("a message of more than {MOST_MESSAGE_BYTES} bytes")]
    TooLarge,
    /// A text is no UTF-8.
    #[error("a text that is not UTF-8")]
    Text,
    /// A close frame has half a code, one that must not be sent, or a reason that is no UTF-8.
    #[error("a close frame with a wrong code or reason")]
    Close,
}

impl FrameError {
    /// The code of the close frame that says so (section 7.4.1).
    pub fn code(self) -> u16 {
        match self {
            FrameError::Text => 1007,
            FrameError::TooLarge => 1009,
            _ => 1002,
        }
    }
}

/// The operation of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A message that is text.
    Text = 1,
    /// A message of bytes.
    Binary = 2,
    /// No more follows.
    Close = 8,
    /// To be answered.
    Ping = 9,
    /// The answer, with the same bytes.
    Pong = 10,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole message.
    Message {
        /// Whether it is text.
        text: bool,
        /// All of it.
        data: &'a [u8],
    },
    /// To be answered with a pong of the same bytes.
    Ping(&'a [u8]),
    /// The answer to a ping.
    Pong(&'a [u8]),
    /// The peer sends no more.
    Close {
        /// Why, where it says so.
        code: Option<u16>,
        /// The same in words.
        reason: &'a str,
    },
}

/// The reader of the frames of one side of a connection.
#[derive(Debug)]
pub struct Parser {
    /// Frames are a client's, and so have masks.
    masked: bool,
    /// The head of the frame that is coming, and how much of it there is.
    head: [u8; MOST_HEAD],
    have: u8,
    /// The frame whose payload is coming.
    frame: Option<Frame>,
    /// What has come of a message in pieces, and whether that is text.
    message: Vec<u8>,
    begun: Option<bool>,
    /// The payload of a control frame.
    control: Vec<u8>,
    /// What is in `message` has been returned.
    returned: bool,
}

/// The longest head: two bytes, a length of eight, a mask.
const MOST_HEAD: usize = 14;

/// The head of a frame.
#[derive(Debug, Clone, Copy)]
struct Frame {
    last: bool,
    operation: u8,
    left: usize,
    mask: [u8; 4],
    /// How many bytes of it came.
    at: usize,
}

impl Frame {
    fn is_control(self) -> bool {
        self.operation >= 8
    }
}

impl Parser {
    /// Of the frames of a client, or of a server.
    pub fn new(of_client: bool) -> Parser {
        Parser {
            masked: of_client,
            head: [0; MOST_HEAD],
            have: 0,
            frame: None,
            message: Vec::new(),
            begun: None,
            control: Vec::new(),
            returned: false,
        }
    }

    /// Takes bytes from `input` up to the next event; `None` when all were taken and nothing is complete.
    ///
    /// # Errors
    /// How the peer broke the protocol. Nothing behind it can be read.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<Event<'s>>, FrameError> {
        if std::mem::take(&mut self.returned) {
            self.message.clear();
        }
        loop {
            let frame = match self.frame {
                Some(frame) => frame,
                None => match self.read_head(input)? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            if !frame.is_control() && frame.last && frame.at == 0 && !self.masked && self.message.is_empty() {
                // All of a message, if it is there.
                if let Some(data) = input.get(..frame.left) {
                    *input = &input[frame.left..];
                    self.frame = None;
                    let text = self.begun.take().unwrap_or(frame.operation == Operation::Text as u8);
                    check_text(text, data)?;
                    return Ok(Some(Event::Message { text, data }));
                }
            }
            if !self.read_payload(frame, input) {
                return Ok(None);
            }
            self.frame = None;
            if frame.is_control() {
                return self.control(frame.operation).map(Some);
            }
            if frame.last {
                let text = self.begun.take().unwrap_or_default();
                self.returned = true;
                check_text(text, &self.message)?;
                return Ok(Some(Event::Message { text, data: &self.message }));
            }
        }
    }

    /// The next head, if it is whole.
    fn read_head(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, FrameError> {
        let length = loop {
            let have = usize::from(self.have);
            let wanted = match self.head {
                _ if have < 2 => 2,
                head => head_length(head[1]),
            };
            if have == wanted && have >= 2 {
                break have;
            }
            let (piece, rest) = input.split_at(input.len().min(wanted - have));
            if piece.is_empty() {
                return Ok(None);
            }
            self.head[have..have + piece.len()].copy_from_slice(piece);
            self.have += piece.len() as u8;
            *input = rest;
        };
        self.have = 0;
        let head = &self.head[..length];
        let (last, operation, is_masked) = (head[0] & 0x80 != 0, head[0] & 0x0f, head[1] & 0x80 != 0);
        if head[0] & 0x70 != 0 {
            return Err(FrameError::Reserved);
        }
        if is_masked != self.masked {
            return Err(if is_masked { FrameError::Masked } else { FrameError::Unmasked });
        }
        let (digits, mask) = head[2..].split_at(length - 2 - if is_masked { 4 } else { 0 });
        let number = digits.iter().fold(0, |length: u64, digit| (length << 8) | u64::from(*digit));
        let left = match (head[1] & 0x7f, number) {
            (126, 126..) | (127, 0x1_0000..=0x7fff_ffff_ffff_ffff) => number,
            (126 | 127, _) => return Err(FrameError::Length),
            (short, _) => u64::from(short),
        };
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        match operation {
            8..=10 if !last || left > MOST_CONTROL_BYTES => return Err(FrameError::Control),
            8..=10 => self.control.clear(),
            0 if self.begun.is_none() => return Err(FrameError::Continuation),
            1 | 2 if self.begun.is_some() => return Err(FrameError::Continuation),
            0 => {}
            1 | 2 => self.begun = Some(operation == 1),
            other => return Err(FrameError::Operation(other)),
        }
        if left > MOST_MESSAGE_BYTES - self.message.len() {
            return Err(FrameError::TooLarge);
        }
        let frame = Frame { last, operation, left, mask: mask.try_into().unwrap_or_default(), at: 0 };
        self.frame = Some(frame);
        Ok(Some(frame))
    }

    /// Takes what is there of a frame's payload. Returns whether that is all.
    fn read_payload(&mut self, mut frame: Frame, input: &mut &[u8]) -> bool {
        let (piece, rest) = input.split_at(input.len().min(frame.left));
        *input = rest;
        let to = if frame.is_control() { &mut self.control } else { &mut self.message };
        let begin = to.len();
        to.extend_from_slice(piece);
        if self.masked {
            mask_from(&mut to[begin..], frame.mask, frame.at);
        }
        (frame.left, frame.at) = (frame.left - piece.len(), frame.at + piece.len());
        self.frame = Some(frame);
        frame.left == 0
    }

    fn control(&self, operation: u8) -> Result<Event<'_>, FrameError> {
        let data = self.control.as_slice();
        Ok(match operation {
            9 => Event::Ping(data),
            10 => Event::Pong(data),
            _ => match data.split_first_chunk() {
                None if data.is_empty() => Event::Close { code: None, reason: "" },
                None => return Err(FrameError::Close),
                Some((code, reason)) => {
                    let code = u16::from_be_bytes(*code);
                    let reason = from_utf8(reason).map_err(|_| FrameError::Close)?;
                    if !is_close_code(code) {
                        return Err(FrameError::Close);
                    }
                    Event::Close { code: Some(code), reason }
                }
            },
        })
    }
}

fn check_text(is_text: bool, data: &[u8]) -> Result<(), FrameError> {
    if is_text && from_utf8(data).is_err() { Err(FrameError::Text) } else { Ok(()) }
}

/// Bytes of a head with this second byte.
fn head_length(second: u8) -> usize {
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + length + if second & 0x80 == 0 { 0 } else { 4 }
}

/// Whether a close frame may have this code (section 7.4).
pub fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Masks bytes, or removes their mask. `at`: how many bytes of the frame stand before them.
fn mask_from(bytes: &mut [u8], mask: [u8; 4], at: usize) {
    for (n, byte) in bytes.iter_mut().enumerate() {
        *byte ^= mask[(at + n) % 4];
    }
}

/// Appends a frame. `last`: it ends its message; `mask`: a client's, which has to be a new one that nobody can foresee.
pub fn put_frame(out: &mut Vec<u8>, operation: Operation, last: bool, mask: Option<[u8; 4]>, payload: &[u8]) {
    let begin = out.len();
    put_message(out, operation, mask, payload.len(), |out| out.extend_from_slice(payload));
    if !last {
        out[begin] &= 0x7f;
    }
}

/// Appends a message of so many bytes in one frame, which `write` appends.
pub fn put_message(
    out: &mut Vec<u8>,
    operation: Operation,
    mask: Option<[u8; 4]>,
    length: usize,
    write: impl FnOnce(&mut Vec<u8>),
) {
    put_head(out, operation as u8 | 0x80, mask, length);
    let begin = out.len();
    write(out);
    debug_assert_eq!(out.len() - begin, length);
    if let Some(mask) = mask {
        mask_from(&mut out[begin..], mask, 0);
    }
}

fn put_head(out: &mut Vec<u8>, first: u8, mask: Option<[u8; 4]>, length: usize) {
    let bit = if mask.is_some() { 0x80 } else { 0 };
    out.push(first);
    match length {
        0..=125 => out.push(bit | length as u8),
        126..=0xffff => {
            out.push(bit | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(bit | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend(mask.into_iter().flatten());
}

/// Appends a close frame with a code.
pub fn put_close(out: &mut Vec<u8>, code: u16, mask: Option<[u8; 4]>) {
    put_frame(out, Operation::Close, true, mask, &code.to_be_bytes());
}

/// The key of an upgrade, of 16 bytes that are a client's choice: 24 characters.
pub fn key(nonce: [u8; 16]) -> String {
    base64(&nonce)
}

/// What a server answers to a key (section 4.2.2): 28 characters.
pub fn accept(key: &[u8]) -> String {
    base64(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat()).as_ref())
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |three: &[u8]| {
        let bits = three.iter().chain([0, 0].iter()).take(3).fold(0, |bits: u32, byte| (bits << 8) | u32::from(*byte));
        let is_there = three.len() + 1;
        (0..4)
            .map(move |n| if n < is_there { DIGITS[(bits >> (18 - 6 * n)) as usize & 63] as char } else { '=' })
            .collect::<String>()
    };
    bytes.chunks(3).map(digits).collect()
}

/// Whether a request's headers ask for an upgrade to this protocol; its key.
pub fn upgrade<'h>(headers: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone) -> Option<&'h [u8]> {
    let has = |name: &str, wanted: &str| {
        let is = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes());
        let named = |(given, _): &(&[u8], &[u8])| given.eq_ignore_ascii_case(name.as_bytes());
        headers.clone().filter(named).any(|(_, value)| value.split(|byte| *byte == b',').any(is))
    };
    let asks = has("connection", "upgrade") && has("upgrade", "websocket") && has("sec-websocket-version", VERSION);
    let key = headers.clone().find(|(name, _)| name.eq_ignore_ascii_case(b"sec-websocket-key"));
    key.map(|(_, key)| key).filter(|key| asks && key.len() == 24)
}

/// Why a connection was not upgraded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UpgradeError {
    /// What came is no response of HTTP/1.1, or its head is too large.
    #[error("no response of HTTP/1.1 to the upgrade")]
    NoResponse,
    /// It has another status.
    #[error("no upgrade: the status is {0}; expected: 101")]
    Status(u16),
    /// It answers another key, or none.
    #[error("an upgrade without the answer to its key (Sec-WebSocket-Accept)")]
    Accept,
}

/// Takes a response to an upgrade with this key from `input`, of which `head` has what came before. Returns whether it is whole.
///
/// # Errors
/// Why there was no upgrade.
pub fn take_response(head: &mut Vec<u8>, input: &mut &[u8], key: &str) -> Result<bool, UpgradeError> {
    let before = head.len();
    head.extend_from_slice(input);
    let Some(end) = memchr::memmem::find(head, b"\r\n\r\n").map(|at| at + 4) else {
        *input = &[];
        let is_http = head.iter().zip(b"HTTP/1.1 ").all(|(a, b)| a == b);
        return if is_http && head.len() <= MOST_HEAD_BYTES { Ok(false) } else { Err(UpgradeError::NoResponse) };
    };
    *input = &input[end - before..];
    head.truncate(end);
    let status = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| from_utf8(rest.get(..3)?).ok()?.parse().ok());
    match status.ok_or(UpgradeError::NoResponse)? {
        101 if http1::header(head, "sec-websocket-accept") == Some(accept(key.as_bytes()).as_bytes()) => Ok(true),
        101 => Err(UpgradeError::Accept),
        status => Err(UpgradeError::Status(status)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASK: Option<[u8; 4]> = Some([1, 2, 3, 200]);

    /// What is read of bytes that come in pieces of this size.
    fn read(bytes: &[u8], of_client: bool, size: usize) -> Result<Vec<String>, FrameError> {
        let (mut parser, mut events) = (Parser::new(of_client), Vec::new());
        for mut piece in bytes.chunks(size) {
            while let Some(event) = parser.next(&mut piece)? {
                events.push(format!("{event:?}"));
            }
            assert!(piece.is_empty(), "all of it was taken");
        }
        Ok(events)
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        let hello = r#"Message { text: true, data: [72, 101, 108, 108, 111] }"#;
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(read(&masked, true, 3), Ok(vec![hello.to_owned()]));
        let pieces = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
        assert_eq!(read(&pieces, false, 4), Ok(vec![hello.to_owned()]));
        let ping = [0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
        // A control frame may stand within a message.
        let within = [&pieces[..5], &ping, &pieces[5..]].concat();
        assert_eq!(read(&within, false, 100), Ok(vec!["Ping([72, 101, 108, 108, 111])".to_owned(), hello.to_owned()]));
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(key(*b"the sample nonce"), "dGhlIHNhbXBsZSBub25jZQ==");
    }

    #[test]
    fn mistakes_of_a_peer_have_names() {
        for (bytes, of_client, error) in [
            (&[0xc1, 0x00][..], false, FrameError::Reserved),
            (&[0x83, 0x00], false, FrameError::Operation(3)),
            (&[0x81, 0x80, 0, 0, 0, 0], false, FrameError::Masked),
            (&[0x81, 0x00], true, FrameError::Unmasked),
            (&[0x09, 0x00], false, FrameError::Control),
            (&[0x89, 126, 0, 126], false, FrameError::Control),
            (&[0x80, 0x00], false, FrameError::Continuation),
            (&[0x01, 0x00, 0x81, 0x00], false, FrameError::Continuation),
            (&[0x82, 126, 0, 125], false, FrameError::Length),
            (&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], false, FrameError::Length),
            (&[0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0], false, FrameError::TooLarge),
            (&[0x81, 0x01, 0xff], false, FrameError::Text),
            (&[0x88, 0x01, 0x03], false, FrameError::Close),
            (&[0x88, 0x02, 0x03, 0xed], false, FrameError::Close),
        ] {
            assert_eq!(read(bytes, of_client, 100), Err(error), "{bytes:?}");
            assert!(is_close_code(error.code()) && !error.to_string().is_empty());
        }
        assert_eq!(read(&[0x88, 0x00], false, 1), Ok(vec![r#"Close { code: None, reason: "" }"#.to_owned()]));
        let away = [0x88, 0x05, 0x03, 0xe9, b'b', b'y', b'e'];
        assert_eq!(read(&away, false, 2), Ok(vec![r#"Close { code: Some(1001), reason: "bye" }"#.to_owned()]));
    }

    #[test]
    fn an_upgrade_is_checked() {
        let key = key([7; 16]);
        let right = format!(
            "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {}\r\n\r\n\u{1}",
            accept(key.as_bytes())
        );
        for cut in 0..right.len() {
            let (mut head, mut first, mut second) = (Vec::new(), &right.as_bytes()[..cut], &right.as_bytes()[cut..]);
            let whole = take_response(&mut head, &mut first, &key).expect("right so far");
            if !whole {
                assert_eq!(take_response(&mut head, &mut second, &key), Ok(true), "cut at {cut}");
                assert_eq!(second, b"\x01", "what follows is left");
            }
        }
        let error = |text: &str| take_response(&mut Vec::new(), &mut text.as_bytes(), &key).expect_err(text);
        assert_eq!(error("HTTP/1.1 200 OK\r\n\r\n").to_string(), "no upgrade: the status is 200; expected: 101");
        assert_eq!(error("HTTP/1.1 101 Switching Protocols\r\n\r\n"), UpgradeError::Accept);
        assert_eq!(error("SSH-2.0-OpenSSH_9.2\r\n"), UpgradeError::NoResponse);
        let request: [(&[u8], &[u8]); 4] = [
            (b"Connection", b"keep-alive, Upgrade"),
            (b"upgrade", b"WebSocket"),
            (b"Sec-WebSocket-Version", b"13"),
            (b"sec-websocket-key", key.as_bytes()),
        ];
        assert_eq!(upgrade(request.into_iter()), Some(key.as_bytes()));
        for without in 0..4 {
            let rest = request.into_iter().enumerate().filter(|(n, _)| *n != without).map(|(_, header)| header);
            assert_eq!(upgrade(rest), None);
        }
    }

    proptest! {
        #[test]
        fn messages_are_read_as_written(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..5),
            of_client: bool,
            size in 1usize..400,
        ) {
            let mut bytes = Vec::new();
            for message in &messages {
                put_frame(&mut bytes, Operation::Binary, true, MASK.filter(|_| of_client), message);
            }
            let wanted = messages.iter().map(|data| format!("{:?}", Event::Message { text: false, data })).collect();
            prop_assert_eq!(read(&bytes, of_client, size), Ok(wanted));
        }

        #[test]
        fn any_bytes_are_read_alike_however_they_come(bytes in proptest::collection::vec(any::<u8>(), 0..60), of_client: bool) {
            let whole = read(&bytes, of_client, 100);
            for size in 1..8 {
                prop_assert_eq!(&read(&bytes, of_client, size), &whole);
            }
        }
    }
}
