//! JunoDB's protocol: a client's operations, those of a proxy, locks and faults.

use weir_model::protocol::Protocol;
use weir_origin::Options;
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Reader, Status};

use crate::sim::{Client as Connection, LATENCY, MS, ROUND_TRIP, S, Scene, responses};

fn start(delay: Option<&str>, faults: &str) -> (Scene, Client) {
    let responses = responses(delay, faults);
    let scene = Scene::of(Options { protocol: Protocol::Juno, responses, ..Options::default() });
    let reader = Reader::new(MessageFrame::new(1 << 20));
    let client = Client { connection: scene.client(), reader, buffer: Vec::new(), opaque: 0 };
    (scene, client)
}

struct Client {
    connection: Connection,
    reader: Reader,
    buffer: Vec<u8>,
    opaque: u32,
}

/// What a response says, without borrowing.
#[derive(Debug, PartialEq, Eq)]
struct Response {
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
    fn send(&mut self, request: Message<'_>) -> u32 {
        self.opaque += 1;
        let mut bytes = Vec::new();
        Message { opaque: self.opaque, ..request }.encode(&mut bytes).expect("encoded");
        self.connection.send(&bytes);
        self.opaque
    }

    fn receive(&mut self) -> Response {
        loop {
            let buffer = std::mem::take(&mut self.buffer);
            let mut input = &buffer[..];
            if let Some(message) = self.reader.next(&mut input).expect("a message") {
                let message = Message::parse(message).expect("a message");
                let Meta { version, ttl, created, expires, modified, originator, .. } = message.meta;
                let response = Response {
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
                return response;
            }
            self.buffer = self.connection.receive().expect("a response").1;
        }
    }

    fn ask(&mut self, opcode: Opcode, id: u8, value: &[u8], meta: Meta<'_>) -> Response {
        let id = [id; 16];
        let opaque = self.send(message(opcode, &id, value, meta));
        let response = self.receive();
        assert_eq!(response.opaque, opaque);
        response
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

#[test]
fn clients_create_read_update_and_destroy() {
    let (scene, mut client) = start(None, "none");
    assert_eq!(client.status(Opcode::NOP, 0, b"", ttl(0)), 0);
    assert_eq!(client.status(Opcode::GET, 1, b"", ttl(0)), Status::NO_KEY.0);
    assert_eq!(client.status(Opcode::UPDATE, 2, b"x", ttl(9)), Status::NO_KEY.0);
    let created = client.ask(Opcode::CREATE, 3, b"one", ttl(100));
    assert_eq!((created.status, created.version, created.originator), (0, 1, Some([3; 16])));
    assert_eq!((created.ttl, created.expires - created.created), (100, 100));
    assert_eq!(client.status(Opcode::CREATE, 3, b"one", ttl(100)), 0, "the same request again");
    assert_eq!(client.status(Opcode::CREATE, 4, b"two", ttl(100)), Status::DUPLICATE_KEY.0);
    let got = client.ask(Opcode::GET, 5, b"", ttl(500));
    assert_eq!((got.status, &got.value[..]), (0, &b"one"[..]));
    assert_eq!(got.ttl, 500, "extended");
    let updated = client.ask(Opcode::UPDATE, 6, b"three", ttl(0));
    assert_eq!((updated.version, updated.ttl, updated.originator), (3, 500, Some([3; 16])));
    let conflict = client.ask(Opcode::UPDATE, 7, b"four", Meta { version: 2, ..Meta::default() });
    assert_eq!((conflict.status, conflict.version, &conflict.value[..]), (19, 3, &b"three"[..]));
    assert_eq!(client.status(Opcode::UPDATE, 8, b"four", Meta { version: 3, ..Meta::default() }), 0);
    assert_eq!(client.ask(Opcode::SET, 9, b"", ttl(10)).version, 5);
    assert_eq!(client.ask(Opcode::GET, 10, b"", ttl(0)).value, b"");
    assert_eq!(client.status(Opcode::DESTROY, 11, b"", ttl(0)), 0);
    assert_eq!(client.status(Opcode::DESTROY, 12, b"", ttl(0)), 0, "also when it is absent");
    assert_eq!(client.status(Opcode::GET, 13, b"", ttl(0)), Status::NO_KEY.0);
    assert_eq!(client.ask(Opcode::SET, 14, b"x", ttl(1)).version, 1);
    // Times of expiry are whole seconds.
    scene.world.run_to(S - 2 * LATENCY);
    assert_eq!(client.status(Opcode::GET, 15, b"", ttl(0)), 0, "not yet");
    assert_eq!(client.status(Opcode::GET, 16, b"", ttl(0)), Status::NO_KEY.0, "expired");
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered), (17, 17));
    assert_eq!((counters.own_requests, counters.operations["get"]), (1, 6));
    assert_eq!((counters.hits, counters.misses, counters.connections_by_protocol["juno"]), (3, 3, 1));
}

#[test]
fn what_clients_may_not_ask_is_refused() {
    let (scene, mut client) = start(None, "none");
    assert_eq!(client.status(Opcode::SET, 1, &vec![7; 204_800], ttl(259_200)), 0);
    assert_eq!(client.status(Opcode::SET, 1, &vec![7; 204_801], ttl(9)), Status::BAD_PARAMETER.0);
    assert_eq!(client.status(Opcode::SET, 1, b"x", ttl(259_201)), Status::BAD_PARAMETER.0);
    client.send(Message { opcode: Opcode::GET, namespace: b"ns", key: b"key", ..Message::default() });
    assert_eq!(client.receive().status, Status::BAD_PARAMETER.0, "no request id");
    client.send(Message { key: b"", ..message(Opcode::GET, &[1; 16], b"", ttl(0)) });
    assert_eq!(client.receive().status, Status::BAD_PARAMETER.0, "no key");
    assert_eq!(client.status(Opcode(9), 1, b"", ttl(0)), Status::NOT_SUPPORTED.0);
    assert_eq!(client.status(Opcode(0xE1), 1, b"", ttl(0)), 2);
    client.connection.send(b"\x51\x50");
    client.connection.expect_closed();
    assert_eq!(scene.counters().malformed, 1);
}

/// What a proxy sends in the second phase.
fn commit(version: u32, created: u32, ttl: u32) -> Meta<'static> {
    Meta { version, created, ttl, modified: 77, originator: Some(&[9; 16]), ..Meta::default() }
}

#[test]
fn a_proxy_prepares_and_commits() {
    let (scene, mut proxy) = start(None, "none");
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
    assert_eq!(read.ttl, 100, "a shorter time to live does not shorten");
    let expires = read.expires + 500;
    let read = proxy.ask(Opcode::READ, 10, b"", Meta { expires, ..Meta::default() });
    assert_eq!((read.status, read.expires), (0, expires), "a later expiry extends");
    assert_eq!(scene.counters().keys, 1);
}

#[test]
fn a_prepared_key_is_locked_until_the_lock_ends() {
    let (scene, mut proxy) = start(None, "none");
    let begun = scene.world.now();
    let absent = proxy.ask(Opcode::PREPARE_SET, 1, b"one", Meta { ttl: 100, created: 6, ..Meta::default() });
    assert_eq!((absent.status, absent.version, absent.created), (15, 0, 6), "inserting");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 1, b"one", ttl(100)), 17, "the same request again");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 2, b"two", ttl(100)), Status::RECORD_LOCKED.0);
    assert_eq!(proxy.status(Opcode::REPAIR, 3, b"two", commit(1, 5, 100)), Status::RECORD_LOCKED.0);
    assert_eq!(proxy.status(Opcode::ABORT, 2, b"", ttl(0)), Status::NO_UNCOMMITTED.0, "not the holder");
    // The lock lasts for 600 ms, from the first request.
    scene.world.run_to(begun + 600 * MS - ROUND_TRIP);
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 2, b"two", ttl(100)), Status::RECORD_LOCKED.0);
    assert_eq!(proxy.status(Opcode::COMMIT, 1, b"", commit(1, 5, 100)), Status::NO_UNCOMMITTED.0, "too late");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 2, b"two", ttl(100)), 15);
    assert_eq!(proxy.status(Opcode::COMMIT, 2, b"", commit(1, 0, 100)), Status::BAD_PARAMETER.0, "no creation time");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 4, b"four", ttl(100)), 15, "that ended the lock");
}

#[test]
fn a_proxy_deletes_and_repairs() {
    let (scene, mut proxy) = start(None, "none");
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
    assert_eq!(scene.counters().keys, 0);
}

#[test]
fn each_response_comes_when_it_is_due() {
    let (scene, mut client) = start(Some("1ms..60ms"), "none");
    let begun = scene.world.now();
    // Each comes by itself.
    let mut send = |n| client.send(message(Opcode::GET, &[n; 16], b"", ttl(0)));
    let sent: Vec<u32> = (0..20).map(&mut send).inspect(|_| scene.run(10_000)).collect();
    let (mut times, mut received) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        received.push(client.receive().opaque);
        times.push(scene.world.now() - begun - ROUND_TRIP);
    }
    assert_ne!(received, sent, "later ones overtake");
    received.sort_unstable();
    assert_eq!(received, sent);
    // None waits for one that is due later and came before it.
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]) && times[0] >= MS && times[19] < 61 * MS, "{times:?}");
    // One that is not delayed overtakes all.
    client.send(message(Opcode::GET, &[1; 16], b"", ttl(0)));
    let begun = scene.world.now();
    let nop = client.send(message(Opcode::NOP, &[3; 16], b"", ttl(0)));
    assert_eq!((client.receive().opaque, scene.world.now() - begun), (nop, ROUND_TRIP));
}

#[test]
fn stores_lose_and_lie() {
    let (scene, mut proxy) = start(None, "lose");
    assert_eq!(proxy.status(Opcode::PREPARE_SET, 1, b"one", ttl(100)), 15);
    assert_eq!(proxy.ask(Opcode::COMMIT, 1, b"", commit(1, 5, 100)).version, 1);
    assert_eq!(proxy.status(Opcode::READ, 2, b"", ttl(0)), Status::NO_KEY.0, "lost");
    assert_eq!(proxy.status(Opcode::CREATE, 3, b"one", ttl(100)), 0);
    assert_eq!(proxy.status(Opcode::GET, 4, b"", ttl(0)), Status::NO_KEY.0, "lost");
    assert_eq!((scene.counters().keys, scene.counters().faults["lose"]), (0, 2));

    let (scene, mut client) = start(None, "stale");
    for (id, value, wanted) in [(1, b"one", None), (2, b"two", Some(b"one")), (3, b"six", Some(b"two"))] {
        assert_eq!(client.status(Opcode::SET, id, value, ttl(100)), 0);
        for opcode in [Opcode::GET, Opcode::READ] {
            let got = client.ask(opcode, 9, b"", ttl(0));
            let value = (got.status == 0).then_some(&got.value[..]);
            assert_eq!(value, wanted.map(|value| &value[..]), "{opcode:?} after {id}");
        }
    }
    assert_eq!(scene.counters().faults["stale"], 6);

    let (_scene, mut client) = start(None, "busy");
    assert_eq!(client.status(Opcode::SET, 1, b"x", ttl(100)), Status::BUSY.0);
}
