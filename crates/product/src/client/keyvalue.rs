//! A client connection to a key-value server, for weir's own requests: one operation at a time, or several in one write.
//! [`crate::verify`] and `weir-conformance` use it.
//!
//! What requests and answers look like is in one file for each protocol. This module does not know what a response is
//! compared with.

mod juno;
mod memcached;
mod redis;

use std::time::Duration;

use weir_model::At;
use weir_model::keyvalue::Operation;
use weir_model::protocol::{Application, Protocol};
use weir_wire::messages::{Frame, Messages};

use super::{Endpoint, RequestError, Transport};

/// Largest message that is read, bytes.
const LARGEST_MESSAGE: usize = 32 << 20;

/// One connection.
#[derive(Debug)]
pub struct KeyValueClient {
    transport: Transport,
    codec: Codec,
    /// Requests so far: the number of the last one, in protocols that number them.
    asked: u32,
    /// For each call.
    timeout: Duration,
}

#[derive(Debug)]
enum Codec {
    Redis(weir_wire::redis::ReplyReader),
    Juno(weir_wire::juno::Reader),
    Memcached(weir_wire::memcached::ReplyReader),
}

/// A request about a key.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What is to be done.
    pub operation: Operation,
    /// The key.
    pub key: &'a [u8],
    /// What is written; empty for operations that write nothing.
    pub value: &'a [u8],
    /// Time to live; zero: as long as the server likes. Redis has milliseconds, the others whole seconds. A read with one
    /// asks for a longer life.
    pub ttl: Duration,
}

impl<'a> Ask<'a> {
    /// Writes a value, for as long as the server likes.
    pub fn write(operation: Operation, key: &'a [u8], value: &'a [u8]) -> Ask<'a> {
        Ask { operation, key, value, ttl: Duration::ZERO }
    }

    /// Reads a value.
    pub fn get(key: &'a [u8]) -> Ask<'a> {
        Ask::write(Operation::Get, key, &[])
    }

    /// Removes a key.
    pub fn destroy(key: &'a [u8]) -> Ask<'a> {
        Ask::write(Operation::Destroy, key, &[])
    }
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyValueResponse {
    /// It has written, or removed. A key that was absent counts as removed.
    Done,
    /// It has read this.
    Value(Vec<u8>),
    /// Nothing was read or updated: the key is absent.
    Absent,
    /// Nothing was created: the key is there.
    Exists,
    /// An error, in the server's own words.
    Error(String),
}

impl KeyValueClient {
    /// Opens a connection, including the TLS handshake if there is one. Each call takes at most `timeout`.
    ///
    /// # Errors
    /// How the connection failed, or that the protocol is none of key-value servers.
    pub fn open(endpoint: &Endpoint, protocol: Protocol, timeout: Duration) -> Result<KeyValueClient, RequestError> {
        let codec = match protocol.application() {
            Application::Redis => Codec::Redis(redis::reader()),
            Application::Juno => Codec::Juno(juno::reader()),
            Application::Memcached => Codec::Memcached(memcached::reader()),
            other => return Err(RequestError::Unreachable(format!("{} has no keys and values", other.id()))),
        };
        let transport = Transport::open(endpoint, timeout)?;
        Ok(KeyValueClient { transport, codec, asked: 0, timeout })
    }

    /// Now, by the clock of its time limits.
    pub fn now(&self) -> At {
        self.transport.clock().now()
    }

    /// Writes a value, whether or not the key exists, with a time to live; zero: as long as the server likes.
    ///
    /// # Errors
    /// How it failed, or what the server said instead.
    pub fn set(&mut self, key: &[u8], value: &[u8], ttl: Duration) -> Result<(), RequestError> {
        self.ask(Ask { operation: Operation::Set, key, value, ttl }).and_then(done)
    }

    /// Reads a value; `None`: the key is absent. `ttl` as written, because servers may extend it by that; zero: they leave it.
    ///
    /// # Errors
    /// How it failed, or what the server said instead.
    pub fn get(&mut self, key: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, RequestError> {
        match self.ask(Ask { ttl, ..Ask::get(key) })? {
            KeyValueResponse::Value(value) => Ok(Some(value)),
            KeyValueResponse::Absent => Ok(None),
            other => done(other).map(|()| None),
        }
    }

    /// Removes a key.
    ///
    /// # Errors
    /// How it failed, or what the server said instead.
    pub fn destroy(&mut self, key: &[u8]) -> Result<(), RequestError> {
        self.ask(Ask::destroy(key)).and_then(done)
    }

    /// Sends one request.
    ///
    /// # Errors
    /// How it failed, or that the response is none to this request. An error that the server answers is an [`Response`].
    pub fn ask(&mut self, ask: Ask<'_>) -> Result<KeyValueResponse, RequestError> {
        Ok(self.ask_all(&[ask])?.remove(0))
    }

    /// Sends requests in one write, and returns their responses in the order of the requests.
    ///
    /// # Errors
    /// As for [`KeyValueClient::ask`], of the first that failed.
    pub fn ask_all(&mut self, asks: &[Ask<'_>]) -> Result<Vec<KeyValueResponse>, RequestError> {
        let until = self.transport.clock().now().plus(self.timeout);
        let first = self.asked + 1;
        self.asked += asks.len() as u32;
        let mut out = Vec::new();
        for (ask, number) in asks.iter().zip(first..) {
            match &self.codec {
                Codec::Redis(_) => redis::write(&mut out, ask),
                Codec::Juno(_) => juno::write(&mut out, ask, number, self.transport.clock().now())?,
                Codec::Memcached(_) => memcached::write(&mut out, ask)?,
            }
        }
        self.transport.write(&out, until)?;
        let (mut responses, mut answered): (Vec<Option<KeyValueResponse>>, usize) = (vec![None; asks.len()], 0);
        let mut take = |place: usize, response: KeyValueResponse| {
            let free = responses.get_mut(place).filter(|free| free.is_none());
            *free.ok_or_else(|| RequestError::Unexpected("a message that answers no request".to_owned()))? =
                Some(response);
            answered += 1;
            Ok(answered)
        };
        match &mut self.codec {
            Codec::Redis(reader) => {
                let mut place = 0;
                receive(&mut self.transport, reader, until, |bytes| {
                    if let Some(response) = redis::read(bytes, asks.get(place))? {
                        place = take(place, response)?;
                    }
                    Ok((place == asks.len()).then_some(()))
                })?;
            }
            Codec::Juno(reader) => receive(&mut self.transport, reader, until, |bytes| {
                let place = |number: u32| number.wrapping_sub(first) as usize;
                let (number, response) = juno::read(bytes, |number| asks.get(place(number)))?;
                Ok((take(place(number), response)? == asks.len()).then_some(()))
            })?,
            Codec::Memcached(reader) => {
                let (mut place, mut value) = (0, None);
                receive(&mut self.transport, reader, until, |bytes| {
                    if let Some(response) = memcached::read(bytes, asks.get(place), &mut value)? {
                        place = take(place, response)?;
                    }
                    Ok((place == asks.len()).then_some(()))
                })?;
            }
        }
        Ok(responses.into_iter().flatten().collect())
    }

    /// Sends bytes that its protocol does not have, and returns the error that the server answers.
    ///
    /// # Errors
    /// How it failed, such as [`RequestError::Closed`]; or what the server said instead of an error.
    pub fn send_malformed(&mut self) -> Result<String, RequestError> {
        let until = self.transport.clock().now().plus(self.timeout);
        let response = match &mut self.codec {
            Codec::Redis(reader) => {
                self.transport.write(redis::MALFORMED, until)?;
                receive(&mut self.transport, reader, until, |bytes| redis::read(bytes, None))?
            }
            Codec::Juno(reader) => {
                self.transport.write(&juno::malformed(), until)?;
                receive(&mut self.transport, reader, until, |bytes| juno::error(bytes).map(Some))?
            }
            Codec::Memcached(reader) => {
                self.transport.write(memcached::MALFORMED, until)?;
                receive(&mut self.transport, reader, until, |bytes| memcached::read(bytes, None, &mut None))?
            }
        };
        match response {
            KeyValueResponse::Error(text) => Ok(text),
            other => done(other).and(Err(RequestError::Unexpected("success".to_owned()))),
        }
    }

    /// Waits until so many replicas have what this connection wrote, where the protocol has that. Returns how many have, in
    /// time; `None`: the protocol has no such request.
    ///
    /// # Errors
    /// How it failed, or what the server said instead.
    pub fn replicas_reached(&mut self, replicas: u32) -> Result<Option<u32>, RequestError> {
        let Codec::Redis(reader) = &mut self.codec else { return Ok(None) };
        let until = self.transport.clock().now().plus(self.timeout);
        let mut out = Vec::new();
        // Shorter than the request's own timeout, so that the server says how many there are.
        redis::write_wait(&mut out, replicas, self.timeout / 2);
        self.transport.write(&out, until)?;
        receive(&mut self.transport, reader, until, |bytes| redis::read_count(bytes).map(Some)).map(Some)
    }
}

/// Fails unless the server has done what it was asked.
fn done(response: KeyValueResponse) -> Result<(), RequestError> {
    Err(RequestError::Unexpected(match response {
        KeyValueResponse::Done => return Ok(()),
        KeyValueResponse::Value(value) => format!("a value of {} bytes", value.len()),
        KeyValueResponse::Absent => "the key is absent".to_owned(),
        KeyValueResponse::Exists => "the key is there".to_owned(),
        KeyValueResponse::Error(text) => text,
    }))
}

/// Reads messages until `take` has what it needs, which has to be the last of them.
fn receive<F: Frame<Error: std::fmt::Display>, T>(
    transport: &mut Transport,
    reader: &mut Messages<F>,
    until: At,
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
            match take(bytes)? {
                Some(taken) if left.is_empty() => return Ok(taken),
                Some(_) => return Err(RequestError::Unexpected("more than was asked for".to_owned())),
                None => {}
            }
        }
    }
}

fn malformed(error: impl std::fmt::Display) -> RequestError {
    RequestError::Unexpected(format!("bytes that its protocol does not have: {error}"))
}

#[cfg(test)]
mod tests;
