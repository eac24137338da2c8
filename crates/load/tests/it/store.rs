//! A scripted key-value server, in Redis's protocol, JunoDB's or memcached's: one memory, and a closure that says when it lies.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use weir_model::keyvalue::Operation;
use weir_net::sim::World;
use weir_wire::juno::{Message, MessageFrame, Opcode, Payload, Status};
use weir_wire::memcached;
use weir_wire::messages::{Frame, Messages};
use weir_wire::redis::{self, Command, Condition, Version, encode};

use crate::script::{self, Reader, Server};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Do {
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
    /// Send half of the correct response and close.
    CloseMidway,
    /// Carry it out, close, and say nothing.
    CloseAfter,
    /// Send the correct response after this time, nanoseconds.
    Late(u64),
    /// Send the correct response after the next one.
    Later,
}

/// What a request was.
#[derive(Debug)]
pub struct Asked {
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
pub struct Memory {
    pub now: BTreeMap<Vec<u8>, Vec<u8>>,
    before: BTreeMap<Vec<u8>, Vec<u8>>,
    removed: BTreeMap<Vec<u8>, Vec<u8>>,
    pub pings: u64,
}

/// The protocol of a server, and replicas that say they have a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    Redis { replicas: i64 },
    Juno,
    Memcached,
}

/// Starts a server, and returns its memory, too.
pub fn start(
    world: &World,
    speaks: Speaks,
    behaviour: impl FnMut(&Asked) -> Do + 'static,
) -> (Server, Rc<RefCell<Memory>>) {
    let (memory, behaviour) = (Rc::<RefCell<Memory>>::default(), Rc::new(RefCell::new(behaviour)));
    let given = memory.clone();
    let server = Server::start(world, "127.0.0.1:0", None, move |connection, seen| -> Reader {
        let (seen, memory, behaviour) = (seen.clone(), memory.clone(), behaviour.clone());
        let (mut number, mut later) = (0, Vec::new());
        let response = move |now, said: &ReadCommand<'_>| {
            let ReadCommand::Request(operation, key, value, encode) = said else {
                let ReadCommand::Aside(bytes, ping) = said else { return Vec::new() };
                memory.borrow_mut().pings += u64::from(*ping);
                return vec![script::Do::Send(bytes.clone())];
            };
            seen.borrow_mut().asked.push((connection, now));
            let asked = Asked { operation: *operation, number, key: key.to_vec(), value: value.to_vec() };
            number += 1;
            let what = (behaviour.borrow_mut())(&asked);
            let mut bytes = encode(&memory.borrow_mut().serve(&asked, what));
            match what {
                Do::Say(text) => bytes = text.to_vec(),
                Do::CloseMidway => {
                    bytes.truncate(bytes.len() / 2);
                    return vec![script::Do::Send(bytes), script::Do::End];
                }
                Do::CloseAfter => return vec![script::Do::End],
                Do::Late(time) => return vec![script::Do::Wait(time), script::Do::Send(bytes)],
                Do::Later => {
                    later.append(&mut bytes);
                    return Vec::new();
                }
                _ => {}
            }
            bytes.append(&mut later);
            vec![script::Do::Send(bytes)]
        };
        match speaks {
            Speaks::Redis { replicas } => {
                each(redis::RequestFrame::new(1 << 20), response, move |text| redis(text, replicas))
            }
            Speaks::Juno => each(MessageFrame::new(1 << 20), response, juno),
            Speaks::Memcached => each(memcached::RequestFrame::new(1 << 20), response, memcached),
        }
    });
    (server, given)
}

type Write<'m> = Box<dyn Fn(&Reply) -> Vec<u8> + 'm>;

/// What a message says: an operation on a key, and how its reply is written; or what is answered beside the memory, and whether it is
/// a client's first word.
enum ReadCommand<'m> {
    Request(Operation, &'m [u8], &'m [u8], Write<'m>),
    Aside(Vec<u8>, bool),
}

/// Answers each message.
fn each<F: Frame<Error: std::fmt::Debug> + 'static>(
    frame: F,
    mut response: impl FnMut(u64, &ReadCommand<'_>) -> Vec<script::Do> + 'static,
    read: impl for<'m> Fn(&'m [u8]) -> ReadCommand<'m> + 'static,
) -> Reader {
    let mut messages = Messages::new(frame);
    Box::new(move |input, now| {
        let mut rest = &input[..];
        let steps = messages.next(&mut rest).unwrap().map(|message| response(now, &read(message)));
        let left = rest.len();
        input.drain(..input.len() - left);
        steps
    })
}

fn redis(message: &[u8], replicas: i64) -> ReadCommand<'_> {
    let (operation, key, value) = match Command::parse(message).unwrap().unwrap() {
        Command::Ping(_) => return ReadCommand::Aside(b"+PONG\r\n".to_vec(), true),
        Command::Auth(words) => {
            let right = words.map(Result::unwrap).eq([&b"me"[..], b"secret"]);
            let said: &[u8] = if right { b"+OK\r\n" } else { b"-WRONGPASS invalid username-password pair\r\n" };
            return ReadCommand::Aside(said.to_vec(), false);
        }
        Command::Wait { .. } => return ReadCommand::Aside(format!(":{replicas}\r\n").into_bytes(), false),
        Command::Get(key) => (Operation::Get, key, &[][..]),
        Command::Del(mut keys) => (Operation::Destroy, keys.next().unwrap().unwrap(), &[][..]),
        Command::Set { key, value, condition, .. } => match condition {
            Some(Condition::Absent) => (Operation::Create, key, value),
            Some(Condition::Present) => (Operation::Update, key, value),
            None => (Operation::Set, key, value),
        },
        other => panic!("{other:?}"),
    };
    let encode = move |reply: &Reply| {
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
    ReadCommand::Request(operation, key, value, Box::new(encode))
}

fn juno(message: &[u8]) -> ReadCommand<'_> {
    let request = Message::parse(message).unwrap();
    let encode = move |status, data: &[u8]| {
        let mut out = Vec::new();
        let payload = Payload { kind: 0, data };
        Message { status: Some(status), payload, ..request }.encode(&mut out).unwrap();
        out
    };
    let operation = match request.opcode {
        Opcode::NOP => return ReadCommand::Aside(encode(Status::OK, &[]), true),
        Opcode::CREATE => Operation::Create,
        Opcode::GET => Operation::Get,
        Opcode::UPDATE => Operation::Update,
        Opcode::SET => Operation::Set,
        Opcode::DESTROY => Operation::Destroy,
        other => panic!("{other:?}"),
    };
    assert!(request.meta.request_id.is_some());
    let encode = move |reply: &Reply| match reply {
        Reply::NotFound if operation == Operation::Destroy => encode(Status::OK, &[]),
        Reply::Done => encode(Status::OK, &[]),
        Reply::Found(value) => encode(Status::OK, value),
        Reply::NotFound => encode(Status::NO_KEY, &[]),
        Reply::Exists => encode(Status::DUPLICATE_KEY, &[]),
        Reply::Busy => encode(Status::RECORD_LOCKED, &[]),
        Reply::Refused | Reply::Redirected => encode(Status::NO_STORE, &[]),
    };
    ReadCommand::Request(operation, request.key, request.payload.data, Box::new(encode))
}

fn memcached(message: &[u8]) -> ReadCommand<'_> {
    use memcached::{Command, Reply as Response, Store};
    let (operation, key, value) = match Command::parse(message).unwrap() {
        Command::Other(b"version") => return ReadCommand::Aside(b"VERSION 1.6\r\n".to_vec(), true),
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
    let encode = move |reply: &Reply| {
        let mut out = Vec::new();
        if let Reply::Found(data) = reply {
            Response::Value { key, flags: 0, cas: None, data }.encode(&mut out).unwrap();
        }
        let said = match (reply, operation) {
            (Reply::Found(_) | Reply::NotFound, Operation::Get) => Response::End,
            (Reply::NotFound, Operation::Destroy) => Response::NotFound,
            (Reply::Done, Operation::Destroy) => Response::Deleted,
            (Reply::Exists | Reply::NotFound, _) => Response::NotStored,
            (Reply::Done | Reply::Found(_), _) => Response::Stored,
            (Reply::Busy, _) => Response::ServerError(b"busy"),
            (Reply::Refused, _) => Response::ServerError(b"out of memory storing object"),
            (Reply::Redirected, _) => Response::Error,
        };
        said.encode(&mut out).unwrap();
        out
    };
    ReadCommand::Request(operation, key, value, Box::new(encode))
}

impl Memory {
    fn serve(&mut self, asked: &Asked, what: Do) -> Reply {
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
