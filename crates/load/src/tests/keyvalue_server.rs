//! A small key-value server for tests, in Redis's protocol, JunoDB's or memcached's: one thread a connection, one memory, and
//! a closure that says when it lies.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_model::keyvalue::Operation;
use weir_wire::juno::{Message, MessageFrame, Opcode, Payload, Status};
use weir_wire::memcached;
use weir_wire::messages::{Frame, Messages};
use weir_wire::redis::{Command, Condition, RequestFrame, Version, encode};

/// What a test wants to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    /// What was asked for.
    Right,
    /// Acknowledge and store nothing.
    Lose,
    /// Answer a read by the version before the last one, if there was one.
    Stale,
    /// Answer a read of a key that is gone by what it was.
    Resurrect,
    /// Answer a read by the value of another key.
    OtherKey,
    /// Change a byte of what was read.
    Corrupt,
    Busy,
    Refuse,
    Redirect,
    /// Say this and go on.
    Say(&'static [u8]),
    /// Send half of the right answer and close.
    CloseMidway,
    /// Carry it out, close, and say nothing.
    CloseAfter,
    /// Send the right answer after this time.
    Late(Duration),
    /// Send the right answer after the next one.
    Later,
}

/// What a request was.
#[derive(Debug)]
pub(super) struct Asked {
    pub operation: Operation,
    /// The request's number on its connection, 0-based.
    pub number: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// What the memory says.
#[derive(Debug, Clone, PartialEq)]
enum Reply {
    Done,
    Found(Vec<u8>),
    NotFound,
    Exists,
    Busy,
    Refused,
    Redirected,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    pub now: HashMap<Vec<u8>, Vec<u8>>,
    before: HashMap<Vec<u8>, Vec<u8>>,
    removed: HashMap<Vec<u8>, Vec<u8>>,
    pub pings: u64,
    pub requests: u64,
}

type Behaviour = dyn Fn(&Asked) -> Do + Send + Sync;

/// A running server. It ends with the test process.
pub(super) struct Server {
    pub addr: SocketAddr,
    pub memory: Arc<Mutex<Memory>>,
}

/// The protocol of a server, and replicas that say they have a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    Redis { replicas: i64 },
    Juno,
    Memcached,
}

impl Server {
    pub(super) fn start(speaks: Speaks, behaviour: impl Fn(&Asked) -> Do + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server { addr: listener.local_addr().unwrap(), memory: Arc::default() };
        let (memory, behaviour): (_, Arc<Behaviour>) = (server.memory.clone(), Arc::new(behaviour));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut connection = Connection {
                    stream,
                    memory: memory.clone(),
                    behaviour: behaviour.clone(),
                    number: 0,
                    later: Vec::new(),
                };
                std::thread::Builder::new()
                    .stack_size(256 * 1024)
                    .spawn(move || {
                        // A client that goes away ends the thread; that is all an error can mean here.
                        let _ = match speaks {
                            Speaks::Redis { replicas } => connection.redis(replicas),
                            Speaks::Juno => connection.juno(),
                            Speaks::Memcached => connection.memcached(),
                        };
                    })
                    .unwrap();
            }
        });
        server
    }
}

struct Connection {
    stream: TcpStream,
    memory: Arc<Mutex<Memory>>,
    behaviour: Arc<Behaviour>,
    number: u64,
    /// An answer that waits for the next one.
    later: Vec<u8>,
}

impl Connection {
    /// Hands over each message until the connection ends, or `serve` says that it is closed.
    fn each<F: Frame<Error: std::fmt::Debug>>(
        &mut self,
        frame: F,
        mut serve: impl FnMut(&mut Connection, &[u8]) -> std::io::Result<bool>,
    ) -> std::io::Result<()> {
        self.stream.set_nodelay(true)?;
        let mut reader = Messages::new(frame);
        let mut buffer = [0; 16 * 1024];
        loop {
            let length = self.stream.read(&mut buffer)?;
            let mut input = &buffer[..length];
            while let Some(message) = reader.next(&mut input).unwrap() {
                if !serve(self, message)? {
                    return Ok(());
                }
            }
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn redis(&mut self, replicas: i64) -> std::io::Result<()> {
        self.each(RequestFrame::new(1 << 20), |one, message| {
            let (operation, key, value) = match Command::parse(message).unwrap().unwrap() {
                Command::Ping(_) => {
                    one.memory.lock().unwrap().pings += 1;
                    one.stream.write_all(b"+PONG\r\n")?;
                    return Ok(true);
                }
                Command::Auth(words) => {
                    let right = words.map(Result::unwrap).eq([&b"me"[..], b"secret"]);
                    let said: &[u8] = if right { b"+OK\r\n" } else { b"-WRONGPASS invalid username-password pair\r\n" };
                    one.stream.write_all(said)?;
                    return Ok(true);
                }
                Command::Wait { .. } => {
                    one.stream.write_all(format!(":{replicas}\r\n").as_bytes())?;
                    return Ok(true);
                }
                Command::Get(key) => (Operation::Get, key, &[][..]),
                Command::Del(mut keys) => (Operation::Destroy, keys.next().unwrap().unwrap(), &[][..]),
                Command::Set { key, value, condition, .. } => match condition {
                    Some(Condition::Absent) => (Operation::Create, key, value),
                    Some(Condition::Present) => (Operation::Update, key, value),
                    None => (Operation::Set, key, value),
                },
                other => panic!("{other:?}"),
            };
            let asked = one.asked(operation, key, value);
            let encode = |reply: &Reply| {
                let mut out = Vec::new();
                match reply {
                    Reply::Done if operation == Operation::Destroy => encode::integer(&mut out, 1),
                    Reply::NotFound if operation == Operation::Destroy => encode::integer(&mut out, 0),
                    Reply::Done => out.extend_from_slice(encode::OK),
                    Reply::Found(value) => encode::bulk(&mut out, value),
                    Reply::NotFound | Reply::Exists => encode::null(&mut out, Version::Resp2),
                    Reply::Busy => out.extend_from_slice(b"-BUSY a script runs\r\n"),
                    Reply::Refused => out.extend_from_slice(b"-ERR no\r\n"),
                    Reply::Redirected => out.extend_from_slice(b"-MOVED 3999 127.0.0.1:6381\r\n"),
                }
                out
            };
            one.answer(&asked, encode)
        })
    }

    fn juno(&mut self) -> std::io::Result<()> {
        self.each(MessageFrame::new(1 << 20), |one, bytes| {
            let request = Message::parse(bytes).unwrap();
            let operation = match request.opcode {
                Opcode::NOP => {
                    one.memory.lock().unwrap().pings += 1;
                    let mut out = Vec::new();
                    Message { status: Some(Status::OK), ..request }.encode(&mut out).unwrap();
                    one.stream.write_all(&out)?;
                    return Ok(true);
                }
                Opcode::CREATE => Operation::Create,
                Opcode::GET => Operation::Get,
                Opcode::UPDATE => Operation::Update,
                Opcode::SET => Operation::Set,
                Opcode::DESTROY => Operation::Destroy,
                other => panic!("{other:?}"),
            };
            assert!(request.meta.request_id.is_some());
            let asked = one.asked(operation, request.key, request.payload.data);
            let encode = |reply: &Reply| {
                let (status, data) = match reply {
                    Reply::NotFound if operation == Operation::Destroy => (Status::OK, &[][..]),
                    Reply::Done => (Status::OK, &[][..]),
                    Reply::Found(value) => (Status::OK, &value[..]),
                    Reply::NotFound => (Status::NO_KEY, &[][..]),
                    Reply::Exists => (Status::DUPLICATE_KEY, &[][..]),
                    Reply::Busy => (Status::RECORD_LOCKED, &[][..]),
                    Reply::Refused | Reply::Redirected => (Status::NO_STORE, &[][..]),
                };
                let mut out = Vec::new();
                let payload = Payload { kind: 0, data };
                let response = Message {
                    opcode: request.opcode,
                    status: Some(status),
                    opaque: request.opaque,
                    meta: request.meta,
                    namespace: request.namespace,
                    key: request.key,
                    payload,
                    ..Message::default()
                };
                response.encode(&mut out).unwrap();
                out
            };
            one.answer(&asked, encode)
        })
    }

    fn memcached(&mut self) -> std::io::Result<()> {
        use memcached::{Command, Reply as Answer, Store};
        self.each(memcached::RequestFrame::new(1 << 20), |one, message| {
            let (operation, key, value) = match Command::parse(message).unwrap() {
                Command::Other(b"version") => {
                    one.memory.lock().unwrap().pings += 1;
                    one.stream.write_all(b"VERSION 1.6\r\n")?;
                    return Ok(true);
                }
                Command::Get { mut keys, cas: false } => (Operation::Get, keys.next().unwrap(), &[][..]),
                Command::Delete { key, quiet: false } => (Operation::Destroy, key, &[][..]),
                Command::Store { how, key, flags: 0, data, quiet: false, .. } => match how {
                    Store::Add => (Operation::Create, key, data),
                    Store::Replace => (Operation::Update, key, data),
                    Store::Set => (Operation::Set, key, data),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            };
            let asked = one.asked(operation, key, value);
            let encode = |reply: &Reply| {
                let mut out = Vec::new();
                if let Reply::Found(data) = reply {
                    Answer::Value { key, flags: 0, cas: None, data }.encode(&mut out).unwrap();
                }
                let said = match (reply, operation) {
                    (Reply::Found(_) | Reply::NotFound, Operation::Get) => Answer::End,
                    (Reply::NotFound, Operation::Destroy) => Answer::NotFound,
                    (Reply::Done, Operation::Destroy) => Answer::Deleted,
                    (Reply::Exists | Reply::NotFound, _) => Answer::NotStored,
                    (Reply::Done | Reply::Found(_), _) => Answer::Stored,
                    (Reply::Busy, _) => Answer::ServerError(b"busy"),
                    (Reply::Refused, _) => Answer::ServerError(b"out of memory storing object"),
                    (Reply::Redirected, _) => Answer::Error,
                };
                said.encode(&mut out).unwrap();
                out
            };
            one.answer(&asked, encode)
        })
    }

    fn asked(&mut self, operation: Operation, key: &[u8], value: &[u8]) -> Asked {
        self.number += 1;
        Asked { operation, number: self.number - 1, key: key.to_vec(), value: value.to_vec() }
    }

    /// `false`: the connection is closed.
    fn answer(&mut self, asked: &Asked, encode: impl Fn(&Reply) -> Vec<u8>) -> std::io::Result<bool> {
        let what = (self.behaviour)(asked);
        let reply = self.memory.lock().unwrap().serve(asked, what);
        let mut bytes = encode(&reply);
        match what {
            Do::Say(text) => bytes = text.to_vec(),
            Do::CloseMidway | Do::CloseAfter => {
                bytes.truncate(if what == Do::CloseAfter { 0 } else { bytes.len() / 2 });
                self.stream.write_all(&bytes)?;
                self.stream.shutdown(Shutdown::Write)?;
                // What was not read would make it a reset.
                self.stream.read_to_end(&mut Vec::new())?;
                return Ok(false);
            }
            Do::Late(time) => std::thread::sleep(time),
            Do::Later => {
                self.later.append(&mut bytes);
                return Ok(true);
            }
            _ => {}
        }
        bytes.append(&mut self.later);
        self.stream.write_all(&bytes)?;
        Ok(true)
    }
}

impl Memory {
    fn serve(&mut self, asked: &Asked, what: Do) -> Reply {
        self.requests += 1;
        let Asked { operation, key, value, .. } = asked;
        match what {
            Do::Busy => return Reply::Busy,
            Do::Refuse => return Reply::Refused,
            Do::Redirect => return Reply::Redirected,
            Do::Lose if operation.writes() => return Reply::Done,
            _ => {}
        }
        match operation {
            Operation::Get => self.read(key, what),
            Operation::Create if self.now.contains_key(key) => Reply::Exists,
            Operation::Update if !self.now.contains_key(key) => Reply::NotFound,
            Operation::Create | Operation::Update | Operation::Set => {
                if let Some(old) = self.now.insert(key.clone(), value.clone()) {
                    self.before.insert(key.clone(), old);
                }
                Reply::Done
            }
            Operation::Destroy => {
                self.before.remove(key);
                let Some(old) = self.now.remove(key) else { return Reply::NotFound };
                self.removed.insert(key.clone(), old);
                Reply::Done
            }
        }
    }

    fn read(&self, key: &Vec<u8>, what: Do) -> Reply {
        let right = self.now.get(key);
        let found = match what {
            Do::Stale => self.before.get(key).or(right),
            Do::Resurrect => right.or(self.removed.get(key)),
            Do::OtherKey => self.now.iter().find(|(other, _)| *other != key).map(|(_, value)| value).or(right),
            _ => right,
        };
        let Some(mut value) = found.cloned() else { return Reply::NotFound };
        if what == Do::Corrupt {
            let middle = value.len() / 2;
            value[middle] ^= 0x10;
        }
        Reply::Found(value)
    }
}
