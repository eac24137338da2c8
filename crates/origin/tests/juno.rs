//! JunoDB's protocol, over sockets: a client's operations, those of a proxy, locks, faults and TLS.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{TIMEOUT, counters_when};
use weir_model::load::DriverChoice;
use weir_model::suite::Protocol;
use weir_origin::{Options, Origin, ResponseOptions};
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Reader, Status};

on_each_driver!(
    clients_create_read_update_and_destroy,
    what_clients_may_not_ask_is_refused,
    a_proxy_prepares_and_commits,
    a_prepared_key_is_locked_until_the_lock_ends,
    a_proxy_deletes_and_repairs,
    answers_overtake_late_ones,
    an_answer_that_is_due_earlier_does_not_wait_for_a_later_one,
    stores_lose_and_lie,
);

fn start(driver: DriverChoice, responses: ResponseOptions) -> Origin {
    Origin::start(Options { driver, protocol: Protocol::Juno, responses, ..Options::default() }).expect("an origin")
}

fn faults(faults: &str) -> ResponseOptions {
    ResponseOptions { faults: faults.parse().expect("faults"), ..ResponseOptions::default() }
}

struct Client {
    stream: TcpStream,
    reader: Reader,
    buffer: Vec<u8>,
    opaque: u32,
}

/// What an answer says, without borrowing.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u8,
    opaque: u32,
    value: Vec<u8>,
    version: u32,
    ttl: u32,
    created: u32,
    expires: u32,
    modified: u64,
    originator: Option<[u8; 16]>,
}

impl Client {
    fn new(origin: &Origin) -> Client {
        let stream = TcpStream::connect(origin.addr()).expect("accepted");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        Client { stream, reader: Reader::new(MessageFrame::new(1 << 20)), buffer: Vec::new(), opaque: 0 }
    }

    fn send(&mut self, request: Message<'_>) -> u32 {
        self.opaque += 1;
        let mut bytes = Vec::new();
        Message { opaque: self.opaque, ..request }.encode(&mut bytes).expect("encoded");
        self.stream.write_all(&bytes).expect("sent");
        self.opaque
    }

    fn receive(&mut self) -> Answer {
        loop {
            let buffer = std::mem::take(&mut self.buffer);
            let mut input = &buffer[..];
            if let Some(message) = self.reader.next(&mut input).expect("a message") {
                let message = Message::parse(message).expect("a message");
                let Meta { version, ttl, created, expires, modified, originator, .. } = message.meta;
                let answer = Answer {
                    status: message.status.expect("a response").0,
                    opaque: message.opaque,
                    value: message.payload.data.to_vec(),
                    version,
                    ttl,
                    created,
                    expires,
                    modified,
                    originator: originator.copied(),
                };
                self.buffer = input.to_vec();
                return answer;
            }
            let mut bytes = [0; 4096];
            let count = loop {
                match self.stream.read(&mut bytes) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    read => break read.expect("bytes"),
                }
            };
            assert!(count > 0, "closed");
            self.buffer = bytes[..count].to_vec();
        }
    }

    fn ask(&mut self, opcode: Opcode, id: u8, value: &[u8], meta: Meta<'_>) -> Answer {
        let id = [id; 16];
        let opaque = self.send(message(opcode, &id, value, meta));
        let answer = self.receive();
        assert_eq!(answer.opaque, opaque);
        answer
    }

    fn status(&mut self, opcode: Opcode, id: u8, value: &[u8], meta: Meta<'_>) -> u8 {
        self.ask(opcode, id, value, meta).status
    }
}

fn message<'a>(opcode: Opcode, id: &'a [u8; 16], value: &'a [u8], meta: Meta<'a>) -> Message<'a> {
    let meta = Meta { request_id: Some(id), ..meta };
    let payload = Payload { kind: 0, data: value };
    Message { opcode, meta, namespace: b"ns", key: b"key", payload, ..Message::default() }
}

fn ttl(ttl: u32) -> Meta<'static> {
    Meta { ttl, ..Meta::default() }
}

fn clients_create_read_update_and_destroy(driver: DriverChoice) {
    let origin = start(driver, ResponseOptions::default());
    let mut client = Client::new(&origin);
    assert_eq!(client.status(Opcode::NOP, 0, b"", ttl(0)), 0);
    assert_eq!(client.status(Opcode::GET, 1, b"", ttl(0)), Status::NO_KEY.0);
    assert_eq!(client.status(Opcode::UPDATE, 2, b"x", ttl(9)), Status::NO_KEY.0);
    let created = client.ask(Opcode::CREATE, 3, b"one", ttl(100));
    assert_eq!((created.status, created.version, created.originator), (0, 1, Some([3; 16])));
    assert!((99..=100).contains(&created.ttl) && created.expires >= created.created + 100, "{created:?}");
    assert_eq!(client.status(Opcode::CREATE, 3, b"one", ttl(100)), 0, "the same request again");
    assert_eq!(client.status(Opcode::CREATE, 4, b"two", ttl(100)), Status::DUPLICATE_KEY.0);
    let got = client.ask(Opcode::GET, 5, b"", ttl(500));
    assert_eq!((got.status, &got.value[..]), (0, &b"one"[..]));
    assert!(got.ttl >= 499, "extended: {got:?}");
    let updated = client.ask(Opcode::UPDATE, 6, b"three", ttl(0));
    assert!(updated.version == 3 && updated.ttl >= 498 && updated.originator == Some([3; 16]), "{updated:?}");
    let conflict = client.ask(Opcode::UPDATE, 7, b"four", Meta { version: 2, ..Meta::default() });
    assert_eq!((conflict.status, conflict.version, &conflict.value[..]), (19, 3, &b"three"[..]));
    assert_eq!(client.status(Opcode::UPDATE, 8, b"four", Meta { version: 3, ..Meta::default() }), 0);
    assert_eq!(client.ask(Opcode::SET, 9, b"", ttl(10)).version, 5);
    assert_eq!(client.ask(Opcode::GET, 10, b"", ttl(0)).value, b"");
    assert_eq!(client.status(Opcode::DESTROY, 11, b"", ttl(0)), 0);
    assert_eq!(client.status(Opcode::DESTROY, 12, b"", ttl(0)), 0, "also when it is absent");
    assert_eq!(client.status(Opcode::GET, 13, b"", ttl(0)), Status::NO_KEY.0);
    assert_eq!(client.ask(Opcode::SET, 14, b"x", ttl(1)).version, 1);
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(client.status(Opcode::GET, 15, b"", ttl(0)), Status::NO_KEY.0, "expired");
    let counters = counters_when(&origin, |counters| counters.answered == counters.requests);
    assert_eq!((counters.requests, counters.own_requests, counters.operations["get"]), (16, 1, 5));
    assert_eq!((counters.hits, counters.misses, counters.connections_by_protocol["juno"]), (2, 3, 1));
}

fn what_clients_may_not_ask_is_refused(driver: DriverChoice) {
    let origin = start(driver, ResponseOptions::default());
    let mut client = Client::new(&origin);
    assert_eq!(client.status(Opcode::SET, 1, &vec![7; 204_800], ttl(259_200)), 0);
    assert_eq!(client.status(Opcode::SET, 1, &vec![7; 204_801], ttl(9)), Status::BAD_PARAMETER.0);
    assert_eq!(client.status(Opcode::SET, 1, b"x", ttl(259_201)), Status::BAD_PARAMETER.0);
    client.send(Message { opcode: Opcode::GET, namespace: b"ns", key: b"key", ..Message::default() });
    assert_eq!(client.receive().status, Status::BAD_PARAMETER.0, "no request id");
    client.send(Message { key: b"", ..message(Opcode::GET, &[1; 16], b"", ttl(0)) });
    assert_eq!(client.receive().status, Status::BAD_PARAMETER.0, "no key");
    assert_eq!(client.status(Opcode(9), 1, b"", ttl(0)), Status::NOT_SUPPORTED.0);
    assert_eq!(client.status(Opcode(0xE1), 1, b"", ttl(0)), 2);
    client.stream.write_all(b"\x51\x50").expect("sent");
    assert_eq!(client.stream.read(&mut [0; 9]).ok(), Some(0), "closed");
    counters_when(&origin, |counters| counters.malformed == 1);
}

/// What a proxy sends in the second phase.
fn commit(version: u32, created: u32, ttl: u32) -> Meta<'static> {
    Meta { version, created, ttl, modified: 77, originator: Some(&[9; 16]), ..Meta::default() }
}

fn a_proxy_prepares_and_commits(driver: DriverChoice) {
    let origin = start(driver, ResponseOptions::default());
    let mut proxy = Client::new(&origin);
    assert_eq!(proxy.status(Opcode(0xE2), 0, b"", ttl(0)), 0, "the handshake");
    assert_eq!(proxy.status(Opcode::COMMIT, 1, b"", commit(1, 5, 9)), Status::NO_UNCOMMITTED.0);
    assert_eq!(proxy.status(Opcode::PREPARE_CREATE, 1, b"one", ttl(100)), 0);
    assert_eq!(proxy.status(Opcode::READ, 2, b"", ttl(0)), Status::NO_KEY.0, "not yet");
    let committed = proxy.ask(Opcode::COMMIT, 1, b"", commit(1, 5, 100));
    assert_eq!((committed.status, committed.version, committed.created, committed.modified), (0, 1, 5, 77));
    assert_eq!(proxy.status(Opcode::COMMIT, 1, b"", commit(1, 5, 100)), 17, "the same request again");
    assert_eq!(proxy.status(Opcode::PREPARE_CREATE, 3, b"two", ttl(100)), Status::DUPLICATE_KEY.0);
    let read = proxy.ask(Opcode::READ, 4, b"", ttl(0));
    assert_eq!((&read.value[..], read.version, read.modified, read.originator), (&b"one"[..], 1, 77, Some([9; 16])));
    let prepared = proxy.ask(Opcode::PREPARE_SET, 5, b"two", ttl(200));
    assert_eq!((prepared.status, prepared.version, prepared.created, prepared.modified), (0, 1, 5, 77));
    assert_eq!(proxy.status(Opcode::ABORT, 5, b"", ttl(0)), 0);
    assert_eq!(proxy.ask(Opcode::READ, 6, b"", ttl(0)).value, b"one", "aborted");
    let conflict = proxy.ask(Opcode::PREPARE_UPDATE, 7, b"x", Meta { version: 9, created: 4, ..Meta::default() });
    assert_eq!((conflict.status, &conflict.value[..]), (19, &b"one"[..]), "another creation time");
    assert_eq!(proxy.status(Opcode::PREPARE_UPDATE, 8, b"two", Meta { version: 1, ..Meta::default() }), 0);
    assert_eq!(proxy.status(Opcode::COMMIT, 8, b"", commit(2, 5, 50)), 0);
    let read = proxy.ask(Opcode::READ, 9, b"", ttl(0));
    assert_eq!((&read.value[..], read.version), (&b"two"[..], 2));
    assert!(read.ttl > 90, "a shorter time to live does not shorten: {read:?}");
    let expires = read.expires + 500;
    let read = proxy.ask(Opcode::READ, 10, b"", Meta { expires, ..Meta::default() });
    assert_eq!((read.status, read.expires), (0, expires), "a later expiry extends");
    assert_eq!(origin.counters().keys, 1);
}

fn a_prepared_key_is_locked_until_the_lock_ends(driver: DriverChoice) {
    let origin = start(driver, ResponseOptions::default());
    let mut proxy = Client::new(&origin);
    let absent = proxy.ask(Opcode::PREPARE_SET, 1, b"one", Meta { ttl: 100, created: 6, ..Meta::default() });
    assert_eq!((absent.status, absent.version, absent.created), (15, 0, 6), "inserting");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 1, b"one", ttl(100)), 17, "the same request again");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 2, b"two", ttl(100)), Status::RECORD_LOCKED.0);
    assert_eq!(proxy.status(Opcode::REPAIR, 3, b"two", commit(1, 5, 100)), Status::RECORD_LOCKED.0);
    assert_eq!(proxy.status(Opcode::ABORT, 2, b"", ttl(0)), Status::NO_UNCOMMITTED.0, "not the holder");
    std::thread::sleep(Duration::from_millis(650));
    assert_eq!(proxy.status(Opcode::COMMIT, 1, b"", commit(1, 5, 100)), Status::NO_UNCOMMITTED.0, "too late");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 2, b"two", ttl(100)), 15);
    assert_eq!(proxy.status(Opcode::COMMIT, 2, b"", commit(1, 0, 100)), Status::BAD_PARAMETER.0, "no creation time");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 4, b"four", ttl(100)), 15, "that ended the lock");
}

fn a_proxy_deletes_and_repairs(driver: DriverChoice) {
    let origin = start(driver, ResponseOptions::default());
    let mut proxy = Client::new(&origin);
    assert_eq!(proxy.status(Opcode::PREPARE_DELETE, 1, b"", ttl(0)), Status::NO_KEY.0);
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 2, b"x", ttl(9)), Status::RECORD_LOCKED.0, "locked all the same");
    assert_eq!(proxy.status(Opcode::COMMIT, 1, b"", ttl(0)), 0);
    assert_eq!(proxy.status(Opcode::REPAIR, 3, b"three", commit(3, 5, 100)), 0);
    let read = proxy.ask(Opcode::READ, 4, b"", ttl(0));
    assert_eq!((&read.value[..], read.version), (&b"three"[..], 3));
    assert_eq!(proxy.status(Opcode::REPAIR, 5, b"one", commit(1, 5, 100)), 0, "whatever is there");
    assert_eq!(proxy.ask(Opcode::READ, 6, b"", ttl(0)).value, b"one");
    assert_eq!(proxy.status(Opcode::PREPARE_DELETE, 7, b"", ttl(0)), 0);
    assert_eq!(proxy.status(Opcode::MARK_DELETE, 7, b"", ttl(0)), 0);
    let marked = proxy.ask(Opcode::READ, 8, b"", ttl(0));
    assert_eq!((marked.status, marked.version, &marked.value[..]), (27, 2, &b""[..]));
    assert_eq!(proxy.status(Opcode::PREPARE_CREATE, 9, b"new", ttl(50)), 15, "over the mark");
    assert_eq!(proxy.status(Opcode::COMMIT, 9, b"", commit(1, 8, 50)), 0);
    assert_eq!(proxy.ask(Opcode::READ, 10, b"", ttl(0)).value, b"new");
    assert_eq!(proxy.status(Opcode::PREPARE_DELETE, 11, b"", ttl(0)), 0);
    assert_eq!(proxy.status(Opcode::COMMIT, 11, b"", ttl(0)), 0);
    assert_eq!(proxy.status(Opcode::READ, 12, b"", ttl(0)), Status::NO_KEY.0);
    assert_eq!(proxy.status(Opcode::DELETE, 13, b"", ttl(0)), Status::NO_KEY.0);
    assert_eq!(origin.counters().keys, 0);
}

fn answers_overtake_late_ones(driver: DriverChoice) {
    let delay = Some("1ms..60ms".parse().expect("a delay"));
    let origin = start(driver, ResponseOptions { delay, ..ResponseOptions::default() });
    let mut client = Client::new(&origin);
    let sent: Vec<u32> = (0..20).map(|n| client.send(message(Opcode::GET, &[n; 16], b"", ttl(0)))).collect();
    let mut received: Vec<u32> = (0..20).map(|_| client.receive().opaque).collect();
    assert_ne!(received, sent, "they come when they are due");
    received.sort_unstable();
    assert_eq!(received, sent);
}

fn an_answer_that_is_due_earlier_does_not_wait_for_a_later_one(driver: DriverChoice) {
    let delay = Some("0ms..2s".parse().expect("a delay"));
    // The first delay is a long one, the second a short one.
    let origin = start(driver, ResponseOptions { delay, seed: 9, ..ResponseOptions::default() });
    let mut client = Client::new(&origin);
    let late = client.send(message(Opcode::GET, &[1; 16], b"", ttl(0)));
    counters_when(&origin, |counters| counters.requests == 1);
    let early = client.send(message(Opcode::GET, &[2; 16], b"", ttl(0)));
    assert_eq!(client.receive().opaque, early);
    // A Nop is answered at once: ahead of the late one only if the early one did not wait for that.
    let nop = client.send(message(Opcode::NOP, &[3; 16], b"", ttl(0)));
    assert_eq!([client.receive().opaque, client.receive().opaque], [nop, late]);
}

fn stores_lose_and_lie(driver: DriverChoice) {
    let origin = start(driver, faults("lose"));
    let mut proxy = Client::new(&origin);
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 1, b"one", ttl(100)), 15);
    assert_eq!(proxy.ask(Opcode::COMMIT, 1, b"", commit(1, 5, 100)).version, 1);
    assert_eq!(proxy.status(Opcode::READ, 2, b"", ttl(0)), Status::NO_KEY.0, "lost");
    assert_eq!(proxy.status(Opcode::CREATE, 3, b"one", ttl(100)), 0);
    assert_eq!(proxy.status(Opcode::GET, 4, b"", ttl(0)), Status::NO_KEY.0, "lost");
    assert_eq!((origin.counters().keys, origin.counters().faults["lose"]), (0, 2));

    let origin = start(driver, faults("stale"));
    let mut client = Client::new(&origin);
    for (id, value, wanted) in [(1, b"one", None), (2, b"two", Some(b"one")), (3, b"six", Some(b"two"))] {
        assert_eq!(client.status(Opcode::SET, id, value, ttl(100)), 0);
        for opcode in [Opcode::GET, Opcode::READ] {
            let got = client.ask(opcode, 9, b"", ttl(0));
            let value = (got.status == 0).then_some(&got.value[..]);
            assert_eq!(value, wanted.map(|value| &value[..]), "{opcode:?} after {id}");
        }
    }
    assert_eq!(origin.counters().faults["stale"], 6);

    let origin = start(driver, faults("busy"));
    assert_eq!(Client::new(&origin).status(Opcode::SET, 1, b"x", ttl(100)), Status::BUSY.0);
}
