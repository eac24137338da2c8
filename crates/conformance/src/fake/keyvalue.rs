//! Fake stores of keys and values: one for each protocol, which do everything right except what a test tells them.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_model::keyvalue::Operation;
use weir_model::protocol::Application;
use weir_model::suite::Protocol;
use weir_product::client::{Endpoint, KeyValueResponse};
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Status};
use weir_wire::memcached::{self, Reply, Store};
use weir_wire::messages::{Frame, Messages};
use weir_wire::redis::{Command, Condition, Expiry, RequestFrame, Version, encode};

use super::FakeTestbed;

/// One of each application.
pub const PROTOCOLS: [Protocol; 3] = [Protocol::Redis, Protocol::Juno, Protocol::Memcached];

/// The longest request, bytes.
const LONGEST: usize = 4 << 20;

/// A request that a fake received.
#[derive(Debug, Clone)]
pub struct Asked {
    pub operation: Operation,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    /// A create of a key that is there, or an update of one that is not.
    pub is_refused: bool,
}

/// What a fake does with a request.
#[derive(Debug, Clone)]
pub enum Does {
    Respond(KeyValueResponse),
    /// Closes the connection.
    Close,
    Nothing,
}

/// What it does with bytes that are no request. Then it reads no more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnMalformed {
    Closes,
    /// An error, before it closes.
    Responds,
    Accepts,
    /// Closes all connections.
    ClosesAll,
    /// Drops all keys.
    Forgets,
    Ignores,
}

/// Makes the response to a message, or to bytes that are none; `None`: the connection is closed.
type Responder = fn(&Fake, Option<&[u8]>) -> Option<Vec<u8>>;
type Otherwise = dyn Fn(&Asked) -> Option<Does> + Send + Sync;

/// A fake, and what is wrong with it.
#[derive(Clone)]
pub struct Fake {
    pub protocol: Protocol,
    /// What it does instead of what is right.
    pub otherwise: Arc<Otherwise>,
    pub malformed: OnMalformed,
    /// Sends responses to one write in the opposite order.
    pub turned: bool,
    /// How much longer keys live than they should.
    pub lifetime: f64,
    /// `None`: it does not know the request.
    pub replicas: Option<u32>,
    pub values: Arc<Mutex<HashMap<Vec<u8>, Record>>>,
    pub connections: Arc<Mutex<Vec<TcpStream>>>,
}

pub struct Record {
    value: Vec<u8>,
    expires: Option<Instant>,
}

/// A testbed before a fake.
pub fn bed(fake: Fake) -> FakeTestbed {
    let protocol = fake.protocol;
    let mut bed = FakeTestbed { protocol, origins: 3, ..FakeTestbed::good() };
    bed.product_endpoint = Some(Endpoint::plain(fake.serve(), bed.stop.clone()));
    bed
}

/// A testbed before a fake that is good, except where `otherwise` says what it does.
pub fn but(protocol: Protocol, otherwise: impl Fn(&Asked) -> Option<Does> + Send + Sync + 'static) -> FakeTestbed {
    bed(Fake { otherwise: Arc::new(otherwise), ..Fake::good(protocol) })
}

impl Fake {
    pub fn good(protocol: Protocol) -> Fake {
        Fake {
            protocol,
            otherwise: Arc::new(|_| None),
            malformed: OnMalformed::Closes,
            turned: false,
            lifetime: 1.0,
            replicas: Some(1),
            values: Arc::default(),
            connections: Arc::default(),
        }
    }

    /// Serves until the test's process ends.
    fn serve(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let fake = self.clone();
                fake.connections.lock().expect("not poisoned").push(stream.try_clone().expect("cloned"));
                std::thread::spawn(move || {
                    match fake.protocol.application() {
                        Application::Redis => fake.connection(&stream, RequestFrame::new(LONGEST), Fake::redis),
                        Application::Memcached => {
                            fake.connection(&stream, memcached::RequestFrame::new(LONGEST), Fake::memcached);
                        }
                        _ => fake.connection(&stream, MessageFrame::new(LONGEST), Fake::juno),
                    }
                    // The list has a copy, so dropping this one would not close it.
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        addr
    }

    fn connection<F: Frame>(&self, mut stream: &TcpStream, frame: F, respond: Responder) {
        let mut reader = Messages::new(frame);
        let mut piece = vec![0; 64 << 10];
        while let Ok(n @ 1..) = stream.read(&mut piece) {
            let (mut left, mut responses) = (&piece[..n], Vec::new());
            let goes_on = loop {
                match reader.next(&mut left).map(|message| message.map(|message| respond(self, Some(message)))) {
                    Ok(None) => break true,
                    Ok(Some(Some(bytes))) => responses.push(bytes),
                    Ok(Some(None)) => break false,
                    Err(_) => {
                        responses.extend(self.is_broken(respond));
                        break false;
                    }
                }
            };
            if self.turned {
                responses.reverse();
            }
            if stream.write_all(&responses.concat()).is_err() || !goes_on {
                return;
            }
        }
    }

    /// Handles bytes that are no request. Returns the response, if there is one.
    fn is_broken(&self, respond: Responder) -> Option<Vec<u8>> {
        match self.malformed {
            OnMalformed::Closes => None,
            OnMalformed::Responds | OnMalformed::Accepts => respond(self, None),
            OnMalformed::ClosesAll => {
                let all = self.connections.lock().expect("not poisoned");
                all.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
                None
            }
            OnMalformed::Forgets => {
                self.values.lock().expect("not poisoned").clear();
                None
            }
            OnMalformed::Ignores => {
                std::thread::sleep(Duration::from_secs(60));
                None
            }
        }
    }

    fn does(&self, operation: Operation, key: &[u8], value: &[u8], ttl_s: u32) -> Does {
        let mut values = self.values.lock().expect("not poisoned");
        values.retain(|_, record| record.expires.is_none_or(|expires| Instant::now() < expires));
        let there = values.contains_key(key);
        let is_refused = matches!((operation, there), (Operation::Create, true) | (Operation::Update, false));
        let asked = Asked { operation, key: key.to_vec(), value: value.to_vec(), is_refused };
        if let Some(does) = (self.otherwise)(&asked) {
            return does;
        }
        Does::Respond(match operation {
            Operation::Get => {
                values.get(key).map_or(KeyValueResponse::Absent, |record| KeyValueResponse::Value(record.value.clone()))
            }
            Operation::Destroy => {
                values.remove(key);
                KeyValueResponse::Done
            }
            _ if is_refused && there => KeyValueResponse::Exists,
            _ if is_refused => KeyValueResponse::Absent,
            _ => {
                let lives = Duration::from_secs(ttl_s.into()).mul_f64(self.lifetime);
                let record = Record { value: value.to_vec(), expires: (ttl_s > 0).then(|| Instant::now() + lives) };
                values.insert(key.to_vec(), record);
                KeyValueResponse::Done
            }
        })
    }

    /// The reply to a request, or to bytes that are none.
    fn redis(&self, message: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let Some(message) = message else {
            match self.malformed {
                OnMalformed::Accepts => out.extend_from_slice(encode::OK),
                _ => encode::error(&mut out, b"ERR Protocol error"),
            }
            return Some(out);
        };
        let (operation, key, value, ttl_s) = match Command::parse(message).expect("a request").expect("with a name") {
            Command::Get(key) => (Operation::Get, key, &b""[..], 0),
            Command::Del(mut keys) => (Operation::Destroy, keys.next()?.expect("a key"), &b""[..], 0),
            Command::Set { key, value, expiry, condition } => {
                let operation = match condition {
                    None => Operation::Set,
                    Some(Condition::Present) => Operation::Update,
                    Some(Condition::Absent) => Operation::Create,
                };
                let ttl_s = match expiry {
                    Some(Expiry::Seconds(s)) => s as u32,
                    _ => 0,
                };
                (operation, key, value, ttl_s)
            }
            Command::Wait { .. } => {
                match self.replicas {
                    Some(replicas) => encode::integer(&mut out, replicas.into()),
                    None => encode::error(&mut out, b"ERR unknown command"),
                }
                return Some(out);
            }
            other => panic!("{other:?}"),
        };
        match self.does(operation, key, value, ttl_s) {
            Does::Close => return None,
            Does::Nothing => {}
            Does::Respond(KeyValueResponse::Done) if operation == Operation::Destroy => encode::integer(&mut out, 1),
            Does::Respond(KeyValueResponse::Done) => out.extend_from_slice(encode::OK),
            Does::Respond(KeyValueResponse::Value(value)) => encode::bulk(&mut out, &value),
            Does::Respond(KeyValueResponse::Absent | KeyValueResponse::Exists) => {
                encode::null(&mut out, Version::Resp2)
            }
            Does::Respond(KeyValueResponse::Error(text)) => encode::error(&mut out, text.as_bytes()),
        }
        Some(out)
    }

    /// The reply to a command, or to bytes that are none.
    fn memcached(&self, message: Option<&[u8]>) -> Option<Vec<u8>> {
        use memcached::Command;

        let mut out = Vec::new();
        let mut reply = |reply: Reply<'_>| reply.encode(&mut out).expect("encoded");
        let Some(message) = message else {
            match self.malformed {
                OnMalformed::Accepts => reply(Reply::Stored),
                _ => reply(Reply::ClientError(b"bad command line format")),
            }
            return Some(out);
        };
        let (operation, key, value, ttl_s) = match Command::parse(message).expect("a command") {
            Command::Get { mut keys, .. } => (Operation::Get, keys.next().expect("a key"), &b""[..], 0),
            Command::Delete { key, .. } => (Operation::Destroy, key, &b""[..], 0),
            Command::Store { how, key, expiry, data, .. } => {
                let operation = match how {
                    Store::Add => Operation::Create,
                    Store::Replace => Operation::Update,
                    _ => Operation::Set,
                };
                (operation, key, data, expiry as u32)
            }
            other => panic!("{other:?}"),
        };
        match self.does(operation, key, value, ttl_s) {
            Does::Close => return None,
            Does::Nothing => {}
            Does::Respond(KeyValueResponse::Done) if operation == Operation::Destroy => reply(Reply::Deleted),
            Does::Respond(KeyValueResponse::Done) => reply(Reply::Stored),
            Does::Respond(KeyValueResponse::Value(data)) => {
                reply(Reply::Value { key, flags: 0, cas: None, data: &data });
                reply(Reply::End);
            }
            Does::Respond(KeyValueResponse::Absent) if operation == Operation::Get => reply(Reply::End),
            Does::Respond(KeyValueResponse::Absent | KeyValueResponse::Exists) => reply(Reply::NotStored),
            Does::Respond(KeyValueResponse::Error(text)) => reply(Reply::ServerError(text.as_bytes())),
        }
        Some(out)
    }

    /// The response to a request, or to bytes that are none.
    fn juno(&self, message: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let Some(message) = message else {
            let status = if self.malformed == OnMalformed::Accepts { Status::OK } else { Status::BAD_MESSAGE };
            Message { status: Some(status), ..Message::default() }.encode(&mut out).expect("encoded");
            return Some(out);
        };
        let request = Message::parse(message).expect("a request");
        let operation = match request.opcode {
            Opcode::CREATE => Operation::Create,
            Opcode::GET => Operation::Get,
            Opcode::UPDATE => Operation::Update,
            Opcode::SET => Operation::Set,
            Opcode::DESTROY => Operation::Destroy,
            other => panic!("{other:?}"),
        };
        let response = match self.does(operation, request.key, request.payload.data, request.meta.ttl) {
            Does::Close => return None,
            Does::Nothing => return Some(out),
            Does::Respond(response) => response,
        };
        let status = match &response {
            KeyValueResponse::Done | KeyValueResponse::Value(_) => Status::OK,
            KeyValueResponse::Absent => Status::NO_KEY,
            KeyValueResponse::Exists => Status::DUPLICATE_KEY,
            KeyValueResponse::Error(_) => Status::BUSY,
        };
        let data = if let KeyValueResponse::Value(value) = &response { value } else { &Vec::new() };
        let payload = Payload { kind: 0, data };
        let response = Message { status: Some(status), payload, meta: Meta::default(), ..request };
        response.encode(&mut out).expect("encoded");
        Some(out)
    }
}
