//! Messages of JunoDB's protocol: those that its own encoder made, what is read and written of each field, and what
//! is no message.

use crate::messages;

use weir_wire::juno::{EncodeError, Message, MessageFrame, Meta, Opcode, ParseError, Payload, Status};

const LIMIT: usize = 1 << 20;

/// Bytes that JunoDB's own encoder made, in hexadecimal.
const WORKED: &[(&str, &str)] = &[
    (
        "Create request",
        "50500140000000580000000101000000 00000030020365210600000010111213 1415161718191a1b1c1d1e1f00000708 \
         1008c0017f0000016a756e6f6c6f6164 0000001801020004000000066e736b65 79310076616c7565",
    ),
    (
        "Get request with TTL",
        "50500140000000580000000202000000 00000030020365210600000020212223 2425262728292a2b2c2d2e2f00000708 \
         1008c0017f0000016a756e6f6c6f6164 0000001801020004000000006e736b65 7931000000000000",
    ),
    (
        "Get request, no TTL, correlation id abc, 16-byte IP",
        "50500140000000680000000302000000 00000040020365090600000020212223 2425262728292a2b2c2d2e2f08036162 \
         630000001c88c0010000000000000000 0000ffff7f0000016a756e6f6c6f6164 0000001801020004000000006e736b65 \
         7931000000000000",
    ),
    (
        "Get response Ok",
        "50500100000000780000000202000000 0000005002082a656847212223240000 00000002202122232425262728292a2b \
         2c2d2e2f101112131415161718191a1b 1c1d1e1f112233445566778800000708 00000001640000006400070800000000 \
         0000001801020004000000066e736b65 79310076616c7565",
    ),
    (
        "Destroy request",
        "50500140000000500000000405000000 00000028020265063031323334353637 38393a3b3c3d3e3f1008c0017f000001 \
         6a756e6f6c6f61640000001801020004 000000006e736b657931000000000000",
    ),
    ("Nop request (all empty)", "50500140000000280000000500000000 00000008020000000000001001000000 0000000000000000"),
    (
        "Get response NoKey",
        "50500100000000400000000602000003 00000018020165002021222324252627 28292a2b2c2d2e2f0000001801020004 \
         000000006e736b657931000000000000",
    ),
    (
        "UDFGet request, udf name sc",
        "50500140000000480000000706000000 000000200202650b4041424344454647 48494a4b4c4d4e4f0402736300000000 \
         0000001801020004000000056e736b65 7931000000000100",
    ),
];

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let text = |pair: &[u8]| String::from_utf8(pair.to_vec()).unwrap();
    digits.chunks(2).map(|pair| u8::from_str_radix(&text(pair), 16).unwrap()).collect()
}

fn worked(name: &str) -> Vec<u8> {
    hex(WORKED.iter().find(|(worked, _)| *worked == name).unwrap().1)
}

#[track_caller]
fn written(message: &Message<'_>) -> Vec<u8> {
    let mut out = b"before".to_vec();
    message.encode(&mut out).unwrap();
    out.split_off(6)
}

/// The only message in `bytes`, however they are cut, or what is wrong with them.
#[track_caller]
fn read(bytes: &[u8]) -> Result<Message<'_>, ParseError> {
    let seen = messages::read_however_cut(|| MessageFrame::new(LIMIT), LIMIT, bytes);
    assert!(seen.end?, "a message is open");
    assert_eq!(seen.messages, [bytes]);
    Message::parse(bytes)
}

#[test]
fn bytes_of_the_real_encoder_come_back() {
    assert_eq!(WORKED.len(), 8);
    for (name, text) in WORKED {
        let bytes = hex(text);
        let message = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = written(&message);
        assert_eq!(Message::parse(&again), Ok(message), "{name}");
        // The others have fields that are passed over: who asks, an ID for logs, a function.
        if name.contains("response") || name.starts_with("Nop") {
            assert_eq!(again, bytes, "{name}");
        }
    }
}

#[test]
fn a_create_request_says_all_of_it() {
    let id = std::array::from_fn(|n| 0x10 + n as u8);
    let wanted = Message {
        opcode: Opcode::CREATE,
        opaque: 1,
        meta: Meta { ttl: 1800, request_id: Some(&id), ..Meta::default() },
        namespace: b"ns",
        key: b"key1",
        payload: Payload { kind: 0, data: b"value" },
        ..Message::default()
    };
    assert_eq!(Message::parse(&worked("Create request")), Ok(wanted));
}

#[test]
fn a_response_says_all_of_it() {
    let (id, originator) = (std::array::from_fn(|n| 0x20 + n as u8), std::array::from_fn(|n| 0x10 + n as u8));
    let wanted = Message {
        opcode: Opcode::GET,
        status: Some(Status::OK),
        opaque: 2,
        meta: Meta {
            ttl: 1800,
            version: 1,
            created: 0x6400_0000,
            expires: 0x6400_0708,
            modified: 0x1122_3344_5566_7788,
            handling: 2,
            request_id: Some(&id),
            originator: Some(&originator),
        },
        namespace: b"ns",
        key: b"key1",
        payload: Payload { kind: 0, data: b"value" },
        ..Message::default()
    };
    assert_eq!(Message::parse(&worked("Get response Ok")), Ok(wanted));
}

#[test]
fn every_field_comes_back() {
    let id = [7; 16];
    let full = Meta {
        ttl: 1,
        version: u32::MAX,
        created: 3,
        expires: 4,
        modified: u64::MAX,
        handling: 5,
        request_id: Some(&id),
        originator: Some(&id),
    };
    let message = Message {
        opcode: Opcode::PREPARE_SET,
        flags: 2,
        opaque: u32::MAX,
        meta: full,
        namespace: &[b'n'; 255],
        key: &[b'k'; 65_535],
        payload: Payload { kind: 3, data: b"\x06Snappy" },
        ..Message::default()
    };
    for message in [
        message,
        Message { status: Some(Status::VERSION_CONFLICT), ..message },
        Message { meta: Meta { modified: 0, ..full }, ..message },
        Message { key: b"", namespace: b"", ..message },
        Message { payload: Payload { kind: 2, data: b"" }, ..message },
        Message::default(),
    ] {
        let bytes = written(&message);
        assert!(bytes.len().is_multiple_of(8));
        assert_eq!(Message::parse(&bytes), Ok(message));
    }
    assert_eq!(written(&Message { opaque: 5, ..Message::default() }), worked("Nop request (all empty)"));
    for (message, error) in [
        (Message { namespace: &[0; 256], ..message }, EncodeError::LongNamespace),
        (Message { key: &[0; 65_536], ..message }, EncodeError::LongKey),
    ] {
        let mut out = b"before".to_vec();
        assert_eq!(message.encode(&mut out), Err(error));
        assert_eq!(out, b"before", "{error}");
    }
}

/// A request whose components are these bytes.
fn request(components: &str) -> Vec<u8> {
    let components = hex(components);
    let size = 16 + components.len() as u32;
    [&hex("5050 0140")[..], &size.to_be_bytes(), &hex("00000001 02000000"), &components].concat()
}

const RECORD: &str = "00000018 01 02 0001 00000003 6e73 6b 00 7676 000000000000";

#[test]
fn components_and_fields_come_in_any_order_and_unknown_ones_are_passed_over() {
    let wanted = Message {
        opcode: Opcode::GET,
        opaque: 1,
        meta: Meta { ttl: 9, version: 8, ..Meta::default() },
        namespace: b"ns",
        key: b"k",
        payload: Payload { kind: 0, data: b"vv" },
        ..Message::default()
    };
    for components in [
        // Metadata first, then the record.
        format!("00000010 02 02 2122 00000009 00000008 {RECORD}"),
        format!("{RECORD} 00000010 02 02 2221 00000008 00000009"),
        // A component 9.
        format!("00000010 09 ffffffffffffffffffffff {RECORD} 00000010 02 02 2221 00000008 00000009"),
        // Fields 12 (4 bytes) and 13 (of its own length).
        format!("{RECORD} 00000020 02 04 2c0d2221 0000 ffffffff 08ffffffffffffff 00000008 00000009"),
    ] {
        assert_eq!(read(&request(&components)), Ok(wanted), "{components}");
    }
}

#[test]
fn messages_that_are_none() {
    for (bytes, want) in [
        (b"GET / HTTP/1.1".to_vec(), ParseError::BadMagic),
        (hex("50ff"), ParseError::BadMagic),
        (hex("15"), ParseError::BadMagic),
        (hex("5050 0140 0000000f"), ParseError::BadSize),
        (hex("5050 0140 00100001"), ParseError::TooLarge),
        (hex("5050 0140 ffffffff"), ParseError::TooLarge),
        (hex("5050 0240 00000010 00000000 00000000"), ParseError::UnsupportedVersion),
        // Admin, cluster control, and a kind of request that there is not.
        (hex("5050 0141 00000010 00000000 00000000"), ParseError::NotAnOperation),
        (hex("5050 0102 00000010 00000000 00000000"), ParseError::NotAnOperation),
        (hex("5050 0180 00000010 00000000 00000000"), ParseError::NotAnOperation),
        (request("00000000 01000000"), ParseError::BadComponent),
        (request("00000007 01000000"), ParseError::BadComponent),
        (request("0000000c 09000000 00000000"), ParseError::BadComponent),
        (request("00000010 09000000"), ParseError::BadComponent),
        (request("000008"), ParseError::BadComponent),
        (request("00000008 01000000"), ParseError::BadRecord),
        // Namespace, key and value that are longer than their component.
        (request("00000010 01 05 0000 00000000 00000000"), ParseError::BadRecord),
        (request("00000010 01 02 0003 00000000 00000000"), ParseError::BadRecord),
        (request("00000010 01 02 0002 00000001 00000000"), ParseError::BadRecord),
        (request("00000010 01 00 0000 ffffffff 00000000"), ParseError::BadRecord),
        // More fields than there is room for.
        (request("00000008 02 03 2121"), ParseError::BadField),
        (request("00000008 02 ff 2121"), ParseError::BadField),
        (request("00000008 02 01 21 00"), ParseError::BadField),
        (request("00000010 02 02 2147 00000001 00000001"), ParseError::BadField),
        // Names: no length, a length of 0, one that is no multiple of 4, and one beyond the component.
        (request("00000008 02 01 09 00"), ParseError::BadField),
        (request("00000010 02 01 09 00 00000000 00000000"), ParseError::BadField),
        (request("00000010 02 01 09 00 05016100 00000000"), ParseError::BadField),
        (request("00000010 02 01 09 00 0c016100 00000000"), ParseError::BadField),
    ] {
        assert_eq!(read(&bytes), Err(want), "{bytes:02x?}");
    }
}

#[test]
fn statuses_say_what_they_mean() {
    for (status, text, success) in [
        (Status::OK, "ok", true),
        (Status::INCONSISTENT, "inconsistent state", true),
        (Status::NO_KEY, "no such key", false),
        (Status::RECORD_LOCKED, "the record is locked", false),
        (Status(23), "the time to live was not extended", false),
        (Status(99), "internal error", false),
    ] {
        assert_eq!((status.text(), status.is_success()), (text, success), "{status:?}");
    }
}
