//! The client and the verification against servers in a few lines, which can be told to lie, and against a real one where the
//! machine has it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use weir_host::stop::Stop;
use weir_model::keyvalue::{KeyValue, ValueSize};
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Status};
use weir_wire::memcached;
use weir_wire::redis::{self, Command, Condition, RequestFrame, encode};

use super::*;
use crate::verify;

/// What a server does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lie {
    Nothing,
    Forgets,
    CutsShort,
    KeepsDestroyed,
    HasNoReplica,
    IsBusy,
    AcceptsAnything,
    RespondsTwice,
}

/// A store that serves connections one after another until the test ends.
fn serve(protocol: Protocol, lie: Lie) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let store = Store { values: BTreeMap::new(), lie };
            match protocol.application() {
                Application::Redis => store.serve(socket, Messages::new(RequestFrame::new(1 << 20)), Store::redis),
                Application::Memcached => {
                    let reader = Messages::new(memcached::RequestFrame::new(1 << 20));
                    store.serve(socket, reader, Store::memcached);
                }
                _ => store.serve(socket, Messages::new(MessageFrame::new(1 << 20)), Store::juno),
            }
        }
    });
    addr
}

struct Store {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    lie: Lie,
}

impl Store {
    fn serve<F: Frame>(
        mut self,
        mut socket: std::net::TcpStream,
        mut reader: Messages<F>,
        response: fn(&mut Store, &[u8], &mut Vec<u8>),
    ) {
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = socket.read(&mut piece) {
            let (mut left, mut out) = (&piece[..n], Vec::new());
            let broken = loop {
                match reader.next(&mut left) {
                    Ok(Some(bytes)) => response(&mut self, bytes, &mut out),
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            if broken && self.lie == Lie::AcceptsAnything {
                out.extend_from_slice(encode::OK);
            }
            if socket.write_all(&out).is_err() || broken {
                return;
            }
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        let value = if self.lie == Lie::CutsShort { &value[1..] } else { value };
        if self.lie != Lie::Forgets {
            self.values.insert(key.to_vec(), value.to_vec());
        }
    }

    fn destroy(&mut self, key: &[u8]) {
        if self.lie != Lie::KeepsDestroyed {
            self.values.remove(key);
        }
    }

    fn redis(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.lie == Lie::RespondsTwice {
            out.extend_from_slice(encode::OK);
        }
        if self.lie == Lie::IsBusy {
            return encode::error(out, b"LOADING it is");
        }
        match Command::parse(bytes).expect("a request").expect("with a name") {
            Command::Set { key, condition: Some(condition), .. }
                if self.values.contains_key(key) != (condition == Condition::Present) =>
            {
                encode::null(out, redis::Version::Resp2);
            }
            Command::Set { key, value, .. } => {
                self.set(key, value);
                out.extend_from_slice(encode::OK);
            }
            Command::Get(key) => match self.values.get(key) {
                Some(value) => encode::bulk(out, value),
                None => encode::null(out, redis::Version::Resp2),
            },
            Command::Del(mut keys) => {
                keys.by_ref().flatten().for_each(|key| self.destroy(key));
                encode::integer(out, 1);
            }
            Command::Wait { .. } => encode::integer(out, i64::from(self.lie != Lie::HasNoReplica)),
            other => panic!("{other:?}"),
        }
    }

    fn memcached(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        use memcached::{Command, Reply, Store};
        if self.lie == Lie::IsBusy {
            return Reply::ServerError(b"busy").encode(out).expect("encoded");
        }
        let reply = match Command::parse(bytes).expect("a request") {
            Command::Store { how: Store::Add, key, .. } if self.values.contains_key(key) => Reply::NotStored,
            Command::Store { how: Store::Replace, key, .. } if !self.values.contains_key(key) => Reply::NotStored,
            Command::Store { key, data, .. } => {
                self.set(key, data);
                Reply::Stored
            }
            Command::Get { mut keys, .. } => {
                let key = keys.next().expect("a key");
                if let Some(data) = self.values.get(key) {
                    Reply::Value { key, flags: 0, cas: None, data }.encode(out).expect("encoded");
                }
                Reply::End
            }
            Command::Delete { key, .. } => {
                self.destroy(key);
                Reply::Deleted
            }
            other => panic!("{other:?}"),
        };
        reply.encode(out).expect("encoded");
    }

    fn juno(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let request = Message::parse(bytes).expect("a request");
        assert!(request.meta.request_id.is_some() && !request.namespace.is_empty());
        let (mut status, mut data) = (Status::OK, Vec::new());
        match request.opcode {
            _ if self.lie == Lie::IsBusy => status = Status::BUSY,
            Opcode::CREATE if self.values.contains_key(request.key) => status = Status::DUPLICATE_KEY,
            Opcode::UPDATE if !self.values.contains_key(request.key) => status = Status::NO_KEY,
            Opcode::CREATE | Opcode::UPDATE | Opcode::SET => self.set(request.key, request.payload.data),
            Opcode::DESTROY => self.destroy(request.key),
            Opcode::GET => match self.values.get(request.key) {
                Some(value) => data.clone_from(value),
                None => status = Status::NO_KEY,
            },
            other => panic!("{other:?}"),
        }
        let payload = Payload { kind: 0, data: &data };
        Message { status: Some(status), payload, meta: Meta::default(), ..request }.encode(out).expect("encoded");
    }
}

fn verified(protocol: Protocol, lie: Lie, workload: &KeyValue) -> Result<(), String> {
    let addr = serve(protocol, lie);
    verify::keyvalue(workload, &Endpoint::plain(addr, Stop::new()), protocol, Duration::from_secs(5))
}

/// Values that need several reads, and a time to live.
fn large() -> KeyValue {
    KeyValue { value: ValueSize::Fixed(20_000), ttl: Some(Duration::from_secs(1800)), ..KeyValue::default() }
}

#[test]
fn a_server_that_keeps_and_removes_values_is_verified_and_no_other() {
    for protocol in [Protocol::Redis, Protocol::Juno, Protocol::Memcached] {
        assert_eq!(verified(protocol, Lie::Nothing, &large()), Ok(()), "{protocol:?}");
        for (lie, words) in [
            (Lie::Forgets, "just set is absent"),
            (Lie::CutsShort, "19999 bytes came back, and not the 20000"),
            (Lie::KeepsDestroyed, "just destroyed is there"),
            (Lie::IsBusy, "set of key 1 of 3 failed: the server answered"),
        ] {
            let found = verified(protocol, lie, &large()).expect_err("a lie");
            assert!(found.contains(words), "{protocol:?} {lie:?}: {found}");
        }
    }
}

#[test]
fn replicas_are_counted_where_the_workload_asks_for_them() {
    let workload = KeyValue { replicas: 1, ..KeyValue::default() };
    assert_eq!(verified(Protocol::Redis, Lie::Nothing, &workload), Ok(()));
    let found = verified(Protocol::Redis, Lie::HasNoReplica, &workload).expect_err("none");
    assert!(found.contains("0 replicas have the write of key 1, not 1"), "{found}");
    assert_eq!(verified(Protocol::Redis, Lie::HasNoReplica, &KeyValue::default()), Ok(()), "nobody asked");
}

fn client(protocol: Protocol, lie: Lie) -> KeyValueClient {
    let endpoint = Endpoint::plain(serve(protocol, lie), Stop::new());
    KeyValueClient::open(&endpoint, protocol, Duration::from_secs(5)).expect("connected")
}

#[test]
fn requests_in_one_write_get_their_own_responses() {
    use Operation::{Create, Set, Update};

    for protocol in [Protocol::Redis, Protocol::Juno, Protocol::Memcached] {
        let mut client = client(protocol, Lie::Nothing);
        let value = |text: &str| KeyValueResponse::Value(text.as_bytes().to_vec());
        let asks = [
            (Ask::write(Create, b"a", b"1"), KeyValueResponse::Done),
            (Ask::write(Create, b"a", b"2"), KeyValueResponse::Exists),
            (Ask::write(Update, b"b", b"3"), KeyValueResponse::Absent),
            (Ask::get(b"a"), value("1")),
            (Ask::get(b"b"), KeyValueResponse::Absent),
            (Ask::write(Set, b"b", b"4"), KeyValueResponse::Done),
            (Ask::write(Update, b"b", b"5"), KeyValueResponse::Done),
            (Ask::get(b"b"), value("5")),
            (Ask::destroy(b"b"), KeyValueResponse::Done),
            (Ask::get(b"b"), KeyValueResponse::Absent),
        ];
        for _ in 0..2 {
            let responses = client.ask_all(&asks.iter().map(|(ask, _)| *ask).collect::<Vec<_>>()).expect("answered");
            assert_eq!(
                responses,
                asks.iter().map(|(_, response)| response.clone()).collect::<Vec<_>>(),
                "{protocol:?}"
            );
            assert_eq!(client.ask(Ask::destroy(b"a")), Ok(KeyValueResponse::Done));
        }
    }
}

#[test]
fn more_responses_than_requests_are_an_error() {
    let found = client(Protocol::Redis, Lie::RespondsTwice).ask(Ask::write(Operation::Set, b"a", b"1"));
    assert_eq!(found, Err(RequestError::Unexpected("more than was asked for".to_owned())));
}

#[test]
fn what_a_server_does_with_bytes_that_are_no_request_is_said() {
    for protocol in [Protocol::Redis, Protocol::Juno, Protocol::Memcached] {
        let found = client(protocol, Lie::Nothing).send_malformed();
        assert!(matches!(found, Err(RequestError::Closed | RequestError::Reset)), "{protocol:?}: {found:?}");
    }
    let found = client(Protocol::Redis, Lie::AcceptsAnything).send_malformed().expect_err("no error");
    assert_eq!(found.to_string(), "the server answered: OK");
}

#[test]
fn a_server_of_another_protocol_is_said_to_be_one() {
    let addr = serve(Protocol::Juno, Lie::Nothing);
    let endpoint = Endpoint::plain(addr, Stop::new());
    let found =
        verify::keyvalue(&large(), &endpoint, Protocol::Redis, Duration::from_millis(500)).expect_err("no Redis");
    assert!(found.starts_with("set of key 1 of 3 failed"), "{found}");
    let error = KeyValueClient::open(&endpoint, Protocol::Http11, Duration::from_secs(1)).expect_err("no keys");
    assert_eq!(error.to_string(), "cannot connect: http/1.1 has no keys and values");
}
