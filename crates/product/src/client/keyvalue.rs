//! A client connection to a key-value server, for readiness and verification: one operation at a time. [`crate::verify`]
//! uses it.
//!
//! It knows the protocols of key-value servers through `weir_wire`. It does not know what an answer is compared with.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_model::protocol::{Application, Protocol};
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Status};
use weir_wire::messages::{Frame, Messages};
use weir_wire::redis::{ReplyFrame, Value, encode};
use weir_wire::{juno, memcached, redis};

use super::{Endpoint, RequestError, Transport};

/// Where keys live, in protocols that have namespaces.
const NAMESPACE: &[u8] = b"weir";

/// Largest message that is read, bytes.
const LARGEST_MESSAGE: usize = 32 << 20;

/// One connection.
#[derive(Debug)]
pub struct KeyValueClient {
    transport: Transport,
    codec: Codec,
    /// For each operation.
    timeout: Duration,
}

#[derive(Debug)]
enum Codec {
    Redis(redis::ReplyReader),
    Juno { reader: juno::Reader, opaque: u32 },
    Memcached(memcached::ReplyReader),
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
enum Ask<'a> {
    Set { value: &'a [u8], ttl_s: u32 },
    Get { ttl_s: u32 },
    Destroy,
}

impl KeyValueClient {
    /// Opens a connection, including the TLS handshake if there is one. Each operation takes at most `timeout`.
    ///
    /// # Errors
    /// How the connection failed, or that the protocol is none of key-value servers.
    pub fn open(endpoint: &Endpoint, protocol: Protocol, timeout: Duration) -> Result<KeyValueClient, RequestError> {
        let codec = match protocol.application() {
            Application::Redis => Codec::Redis(Messages::new(ReplyFrame::new(LARGEST_MESSAGE))),
            Application::Juno => Codec::Juno { reader: Messages::new(MessageFrame::new(LARGEST_MESSAGE)), opaque: 0 },
            Application::Memcached => Codec::Memcached(Messages::new(memcached::ReplyFrame::new(LARGEST_MESSAGE))),
            other => return Err(RequestError::Unreachable(format!("{} has no keys and values", other.id()))),
        };
        let transport = Transport::open(endpoint, Instant::now() + timeout)?;
        Ok(KeyValueClient { transport, codec, timeout })
    }

    /// Writes a value, whether or not the key exists. `ttl_s`: seconds to live; 0: as long as the server likes.
    ///
    /// # Errors
    /// How it failed, or what the server said instead.
    pub fn set(&mut self, key: &[u8], value: &[u8], ttl_s: u32) -> Result<(), RequestError> {
        self.ask(key, Ask::Set { value, ttl_s }).map(drop)
    }

    /// Reads a value; `None`: the key is absent. `ttl_s` as written, because servers may extend it by that.
    ///
    /// # Errors
    /// How it failed, or what the server said instead.
    pub fn get(&mut self, key: &[u8], ttl_s: u32) -> Result<Option<Vec<u8>>, RequestError> {
        self.ask(key, Ask::Get { ttl_s })
    }

    /// Removes a key.
    ///
    /// # Errors
    /// How it failed, or what the server said instead.
    pub fn destroy(&mut self, key: &[u8]) -> Result<(), RequestError> {
        self.ask(key, Ask::Destroy).map(drop)
    }

    /// Waits until so many replicas have what this connection wrote, where the protocol has that.
    ///
    /// # Errors
    /// How it failed, or how many replicas had it in time.
    pub fn wait_for_replicas(&mut self, replicas: u32) -> Result<(), RequestError> {
        let Codec::Redis(reader) = &mut self.codec else { return Ok(()) };
        let until = Instant::now() + self.timeout;
        // Shorter than the request's own timeout, so that the server says how many there are.
        let patience = (self.timeout.as_millis() / 2).to_string();
        let mut out = Vec::new();
        encode::request(&mut out, &[b"WAIT", replicas.to_string().as_bytes(), patience.as_bytes()]);
        self.transport.write(&out, until)?;
        message(&mut self.transport, reader, until, |bytes| match Value::parse(bytes).map_err(malformed)? {
            Value::Integer(n) if n >= i64::from(replicas) => Ok(Some(())),
            Value::Integer(n) => Err(RequestError::Answer(format!("{n} replicas have the write, not {replicas}"))),
            other => Err(unexpected(&other)),
        })
    }

    fn ask(&mut self, key: &[u8], ask: Ask<'_>) -> Result<Option<Vec<u8>>, RequestError> {
        let until = Instant::now() + self.timeout;
        let mut out = Vec::new();
        match &mut self.codec {
            Codec::Redis(reader) => {
                write_redis(&mut out, key, ask);
                self.transport.write(&out, until)?;
                message(&mut self.transport, reader, until, |bytes| read_redis(bytes, ask))
            }
            Codec::Juno { reader, opaque } => {
                *opaque += 1;
                write_juno(&mut out, key, ask, *opaque).map_err(malformed)?;
                self.transport.write(&out, until)?;
                message(&mut self.transport, reader, until, |bytes| read_juno(bytes, ask, *opaque))
            }
            Codec::Memcached(reader) => {
                write_memcached(&mut out, key, ask).map_err(malformed)?;
                self.transport.write(&out, until)?;
                let mut value = None;
                message(&mut self.transport, reader, until, |bytes| read_memcached(bytes, ask, &mut value))
            }
        }
    }
}

/// The first message that `take` takes: one of which it makes something.
fn message<F: Frame<Error: std::fmt::Display>, T>(
    transport: &mut Transport,
    reader: &mut Messages<F>,
    until: Instant,
    mut take: impl FnMut(&[u8]) -> Result<Option<T>, RequestError>,
) -> Result<T, RequestError> {
    let mut input = Vec::new();
    loop {
        input.clear();
        if !transport.read(&mut input, until)? {
            return Err(if reader.is_between() { RequestError::Closed } else { RequestError::Cut });
        }
        let mut left = input.as_slice();
        while let Some(bytes) = reader.next(&mut left).map_err(malformed)? {
            if let Some(taken) = take(bytes)? {
                return Ok(taken);
            }
        }
    }
}

fn write_redis(out: &mut Vec<u8>, key: &[u8], ask: Ask<'_>) {
    match ask {
        Ask::Set { value, ttl_s: 0 } => encode::request(out, &[b"SET", key, value]),
        Ask::Set { value, ttl_s } => encode::request(out, &[b"SET", key, value, b"EX", ttl_s.to_string().as_bytes()]),
        Ask::Get { .. } => encode::request(out, &[b"GET", key]),
        Ask::Destroy => encode::request(out, &[b"DEL", key]),
    }
}

fn read_redis(bytes: &[u8], ask: Ask<'_>) -> Result<Option<Option<Vec<u8>>>, RequestError> {
    match (Value::parse(bytes).map_err(malformed)?, ask) {
        (Value::Push(_), _) => Ok(None),
        (Value::Bulk(value), Ask::Get { .. }) => Ok(Some(Some(value.to_vec()))),
        (Value::Null, Ask::Get { .. }) => Ok(Some(None)),
        (Value::Simple(b"OK"), Ask::Set { .. }) | (Value::Integer(_), Ask::Destroy) => Ok(Some(None)),
        (other, _) => Err(unexpected(&other)),
    }
}

fn unexpected(value: &Value<'_>) -> RequestError {
    RequestError::Answer(match value {
        Value::Error(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Bulk(value) => format!("a value of {} bytes", value.len()),
        other => format!("{other:?}"),
    })
}

fn write_juno(out: &mut Vec<u8>, key: &[u8], ask: Ask<'_>, opaque: u32) -> Result<(), juno::EncodeError> {
    let (opcode, ttl, data): (Opcode, u32, &[u8]) = match ask {
        Ask::Set { value, ttl_s } => (Opcode::SET, ttl_s, value),
        Ask::Get { ttl_s } => (Opcode::GET, ttl_s, &[]),
        Ask::Destroy => (Opcode::DESTROY, 0, &[]),
    };
    let request_id = request_id(opaque);
    let meta = Meta { ttl, request_id: Some(&request_id), ..Meta::default() };
    let payload = Payload { kind: 0, data };
    Message { opcode, opaque, meta, namespace: NAMESPACE, key, payload, ..Message::default() }.encode(out)
}

/// A number that no other request has: servers tell writers apart by it.
fn request_id(opaque: u32) -> [u8; 16] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let number = u128::from(now) << 64 | u128::from(std::process::id()) << 32 | u128::from(opaque);
    number.to_be_bytes()
}

fn read_juno(bytes: &[u8], ask: Ask<'_>, opaque: u32) -> Result<Option<Option<Vec<u8>>>, RequestError> {
    let message = Message::parse(bytes).map_err(malformed)?;
    let Some(status) = message.status.filter(|_| message.opaque == opaque) else {
        return Err(RequestError::Answer("a message that answers no request".to_owned()));
    };
    match ask {
        Ask::Get { .. } if status == Status::NO_KEY => Ok(Some(None)),
        Ask::Get { .. } if status.is_success() => Ok(Some(Some(message.payload.data.to_vec()))),
        Ask::Set { .. } | Ask::Destroy if status.is_success() => Ok(Some(None)),
        _ => Err(RequestError::Answer(format!("status {} ({})", status.0, status.text()))),
    }
}

fn write_memcached(out: &mut Vec<u8>, key: &[u8], ask: Ask<'_>) -> Result<(), memcached::EncodeError> {
    use memcached::{Command, Store, Words};
    match ask {
        Ask::Set { value: data, ttl_s } => {
            let expiry = i32::try_from(ttl_s).unwrap_or(i32::MAX);
            Command::Store { how: Store::Set, key, flags: 0, expiry, data, quiet: false }.encode(out)
        }
        Ask::Get { .. } => Command::Get { keys: Words::of(key), cas: false }.encode(out),
        Ask::Destroy => Command::Delete { key, quiet: false }.encode(out),
    }
}

/// The end of an answer, before which a value may come.
fn read_memcached(
    bytes: &[u8],
    ask: Ask<'_>,
    value: &mut Option<Vec<u8>>,
) -> Result<Option<Option<Vec<u8>>>, RequestError> {
    use memcached::Reply;
    match (Reply::parse(bytes).map_err(malformed)?, ask) {
        (Reply::Value { data, .. }, Ask::Get { .. }) => {
            *value = Some(data.to_vec());
            Ok(None)
        }
        (Reply::End, Ask::Get { .. }) => Ok(Some(value.take())),
        (Reply::Stored, Ask::Set { .. }) | (Reply::Deleted | Reply::NotFound, Ask::Destroy) => Ok(Some(None)),
        _ => Err(RequestError::Answer(String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned())),
    }
}

fn malformed(error: impl std::fmt::Display) -> RequestError {
    RequestError::Answer(format!("bytes that its protocol does not have: {error}"))
}

#[cfg(test)]
mod tests;
