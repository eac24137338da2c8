//! The client and the verification against servers in a few lines, which can be told to lie, and against a real one where the
//! machine has it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use weir_host::stop::Stop;
use weir_model::keyvalue::{KeyValue, ValueSize};
use weir_wire::redis::{Command, RequestFrame};

use super::*;
use crate::client::WireProtocol;
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
        answer: fn(&mut Store, &[u8], &mut Vec<u8>),
    ) {
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = socket.read(&mut piece) {
            let (mut left, mut out) = (&piece[..n], Vec::new());
            while let Ok(Some(bytes)) = reader.next(&mut left) {
                answer(&mut self, bytes, &mut out);
            }
            if socket.write_all(&out).is_err() {
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
        if self.lie == Lie::IsBusy {
            return encode::error(out, b"LOADING it is");
        }
        match Command::parse(bytes).expect("a request").expect("with a name") {
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
        use memcached::{Command, Reply};
        if self.lie == Lie::IsBusy {
            return Reply::ServerError(b"busy").encode(out).expect("encoded");
        }
        let reply = match Command::parse(bytes).expect("a request") {
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
            Opcode::SET => self.set(request.key, request.payload.data),
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
    verify::keyvalue(workload, addr, &WireProtocol { protocol, tls: None }, Duration::from_secs(5))
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
    assert!(found.contains("0 replicas have the write, not 1"), "{found}");
    assert_eq!(verified(Protocol::Redis, Lie::HasNoReplica, &KeyValue::default()), Ok(()), "nobody asked");
}

#[test]
fn a_server_of_another_protocol_is_said_to_be_one() {
    let addr = serve(Protocol::Juno, Lie::Nothing);
    let wire_protocol = WireProtocol { protocol: Protocol::Redis, tls: None };
    let found = verify::keyvalue(&large(), addr, &wire_protocol, Duration::from_millis(500)).expect_err("no Redis");
    assert!(found.starts_with("set of key 1 of 3 failed"), "{found}");
    let endpoint = Endpoint::plain(addr, Stop::new());
    let error = KeyValueClient::open(&endpoint, Protocol::Http11, Duration::from_secs(1)).expect_err("no keys");
    assert_eq!(error.to_string(), "cannot connect: http/1.1 has no keys and values");
}
