//! What protocols of whole messages cost in memory: nothing is allocated to write one or to read one that arrives whole,
//! and a connection that waits is small.

use crate::counting::{ALLOCATIONS, BYTES};
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Status};
use weir_wire::memcached;
use weir_wire::messages::{Frame, Messages};
use weir_wire::redis::{Command, ReplyFrame, RequestFrame, Value, Version, encode};

/// What is allocated meanwhile.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

fn whole<F: Frame>(reader: &mut Messages<F>, mut bytes: &[u8], mut check: impl FnMut(&[u8])) {
    while let Some(message) = reader.next(&mut bytes).unwrap() {
        check(message);
    }
    assert!(reader.is_between());
}

#[test]
fn redis_allocates_nothing_for_messages_that_arrive_whole() {
    let mut out = Vec::with_capacity(1 << 16);
    let mut requests = Messages::new(RequestFrame::new(1 << 20));
    let mut replies = Messages::new(ReplyFrame::new(1 << 20));
    let value = [b'x'; 2000];
    let done = allocations(|| {
        for _ in 0..10 {
            encode::request(&mut out, &[b"SET", b"key", &value, b"EX", b"1800", b"NX"]);
            encode::request(&mut out, &[b"DEL", b"a", b"b"]);
        }
        out.extend_from_slice(b"GET key\r\n");
        whole(&mut requests, &out, |message| match Command::parse(message).unwrap().unwrap() {
            Command::Set { value: read, .. } => assert_eq!(read, value),
            Command::Del(keys) => assert_eq!(keys.count(), 2),
            Command::Get(key) => assert_eq!(key, b"key"),
            other => panic!("{other:?}"),
        });
        out.clear();
        encode::bulk(&mut out, &value);
        encode::integer(&mut out, -1);
        encode::error(&mut out, b"ERR x");
        encode::null(&mut out, Version::Resp3);
        encode::map(&mut out, 1, Version::Resp3);
        encode::simple(&mut out, b"a");
        encode::simple(&mut out, b"b");
        whole(&mut replies, &out, |message| {
            if let Value::Map(items) = Value::parse(message).unwrap() {
                assert!(items.map(Result::unwrap).all(|item| matches!(item, Value::Simple(_))));
            }
        });
    });
    assert_eq!(done, 0);
}

#[test]
fn juno_allocates_nothing_for_messages_that_arrive_whole() {
    let mut out = Vec::with_capacity(1 << 16);
    let mut reader = Messages::new(MessageFrame::new(1 << 20));
    let id = [7; 16];
    let create = Message {
        opcode: Opcode::CREATE,
        namespace: b"ns",
        key: b"key",
        meta: Meta { ttl: 1800, request_id: Some(&id), ..Meta::default() },
        payload: Payload { kind: 0, data: &[b'x'; 2000] },
        ..Message::default()
    };
    let response = Message { status: Some(Status::OK), payload: Payload::default(), ..create };
    let done = allocations(|| {
        create.encode(&mut out).unwrap();
        response.encode(&mut out).unwrap();
        let mut seen = [response, create].into_iter();
        let mut seen = move || seen.next_back().unwrap();
        whole(&mut reader, &out, |message| assert_eq!(Message::parse(message).unwrap(), seen()));
    });
    assert_eq!(done, 0);
}

#[test]
fn memcached_allocates_nothing_for_messages_that_arrive_whole() {
    let mut out = Vec::with_capacity(1 << 16);
    let mut requests = Messages::new(memcached::RequestFrame::new(1 << 20));
    let mut replies = Messages::new(memcached::ReplyFrame::new(1 << 20));
    let data = &[b'x'; 2000];
    let set = memcached::Command::Store {
        how: memcached::Store::Cas(7),
        key: b"key",
        flags: 0,
        expiry: -1,
        data,
        quiet: true,
    };
    let get = memcached::Command::Get { keys: memcached::Words::of(b"a b"), cas: true };
    let value = memcached::Reply::Value { key: b"a", flags: 5, cas: Some(7), data };
    let done = allocations(|| {
        set.encode(&mut out).unwrap();
        set.encode(&mut out).unwrap();
        whole(&mut requests, &out, |message| assert_eq!(memcached::Command::parse(message), Ok(set)));
        out.clear();
        get.encode(&mut out).unwrap();
        whole(&mut requests, &out, |message| assert_eq!(memcached::Command::parse(message), Ok(get)));
        out.clear();
        value.encode(&mut out).unwrap();
        whole(&mut replies, &out, |message| assert_eq!(memcached::Reply::parse(message), Ok(value)));
    });
    assert_eq!(done, 0);
}

#[test]
fn a_connection_that_waits_is_small() {
    assert!(size_of::<Messages<ReplyFrame>>() <= 56, "{}", size_of::<Messages<ReplyFrame>>());
    assert!(size_of::<Messages<MessageFrame>>() <= 48, "{}", size_of::<Messages<MessageFrame>>());
    let mut out = Vec::with_capacity(1 << 20);
    encode::bulk(&mut out, &[b'x'; 100_000]);
    let mut reader = Messages::new(ReplyFrame::new(1 << 20));
    let before = BYTES.get();
    for _ in 0..3 {
        let (first, second) = out.split_at(50_000);
        assert_eq!(reader.next(&mut &*first).unwrap(), None);
        assert_eq!(reader.next(&mut &*second).unwrap(), Some(&*out));
        assert_eq!(reader.next(&mut &b""[..]).unwrap(), None);
        assert_eq!(BYTES.get(), before, "a large message's buffer is freed");
    }
    // Small ones, too: in time each of very many connections has a message that was split.
    for piece in b"+OK\r\n".repeat(100).chunks(3) {
        let mut piece = piece;
        while reader.next(&mut piece).unwrap().is_some() {}
    }
    assert!(reader.is_between());
    assert_eq!(BYTES.get(), before, "a small message's buffer is freed");
}

/// A peer that announces much has to send it before it is allocated, and no more than the limit.
#[test]
fn what_a_peer_makes_grow_is_bounded() {
    let before = BYTES.get();
    {
        let mut reader = Messages::new(ReplyFrame::new(1 << 30));
        assert_eq!(reader.next(&mut &b"$1000000000\r\nx"[..]).unwrap(), None);
        assert!(BYTES.get() - before < 1000);
    }
    // Each of these promises two more values, of at least three bytes.
    let mut reader = Messages::new(ReplyFrame::new(100_000));
    let last = (1..).find(|_| reader.next(&mut &b"*3\r\n"[..]).is_err());
    assert_eq!(last, Some(10_000));
    let mut reader = Messages::new(ReplyFrame::new(1 << 30));
    let last = (1..).find(|_| reader.next(&mut &[b'+'; 1024][..]).is_err());
    assert_eq!(last, Some(64), "a line");
    assert_eq!(BYTES.get(), before, "nothing is kept after an error");
}
