//! What memcached's protocol allows and what it does not, one by one, for both halves.

use crate::messages;
use weir_wire::memcached::{Command, EncodeError, ParseError, Reply, ReplyFrame, RequestFrame, Store, Words};
use weir_wire::messages::Frame;

const LIMIT: usize = 1 << 20;

/// The only message in `bytes`, however they are cut, or what is wrong with them. `None`: it goes on.
#[track_caller]
fn only<'b, F: Frame<Error = ParseError>, M>(
    new: impl Fn() -> F,
    bytes: &'b [u8],
    parse: fn(&'b [u8]) -> Result<M, ParseError>,
) -> Option<Result<M, ParseError>> {
    let seen = messages::read_however_cut(new, LIMIT, bytes);
    match seen.end {
        Ok(false) => None,
        Err(error) => Some(Err(error)),
        Ok(true) => {
            assert_eq!(seen.messages, [bytes]);
            Some(parse(bytes))
        }
    }
}

#[track_caller]
fn reply(bytes: &[u8]) -> Option<Result<Reply<'_>, ParseError>> {
    only(|| ReplyFrame::new(LIMIT), bytes, Reply::parse)
}

#[track_caller]
fn request(bytes: &[u8]) -> Option<Result<Command<'_>, ParseError>> {
    only(|| RequestFrame::new(LIMIT), bytes, Command::parse)
}

fn words(text: &str) -> Words<'_> {
    Words::of(text.as_bytes())
}

#[test]
fn requests() {
    let set = |how| Command::Store { how, key: b"k", flags: 7, expiry: 1800, data: b"a\r\nb", quiet: false };
    for (bytes, want) in [
        ("get k\r\n", Command::Get { keys: words("k"), cas: false }),
        ("gets a b c\r\n", Command::Get { keys: words("a b c"), cas: true }),
        ("set k 7 1800 4\r\na\r\nb\r\n", set(Store::Set)),
        ("add k 7 1800 4\r\na\r\nb\r\n", set(Store::Add)),
        ("replace k 7 1800 4\r\na\r\nb\r\n", set(Store::Replace)),
        ("append k 7 1800 4\r\na\r\nb\r\n", set(Store::Append)),
        ("prepend k 7 1800 4\r\na\r\nb\r\n", set(Store::Prepend)),
        ("cas k 7 1800 4 18446744073709551615\r\na\r\nb\r\n", set(Store::Cas(u64::MAX))),
        (
            "set k 4294967295 -1 0 noreply\r\n\r\n",
            Command::Store { how: Store::Set, key: b"k", flags: u32::MAX, expiry: -1, data: b"", quiet: true },
        ),
        (
            "cas k 0 0 1 9 noreply\r\nx\r\n",
            Command::Store { how: Store::Cas(9), key: b"k", flags: 0, expiry: 0, data: b"x", quiet: true },
        ),
        ("delete k\r\n", Command::Delete { key: b"k", quiet: false }),
        ("delete k noreply\r\n", Command::Delete { key: b"k", quiet: true }),
        ("incr k 1\r\n", Command::Count { key: b"k", by: 1, down: false, quiet: false }),
        ("decr k 5 noreply\r\n", Command::Count { key: b"k", by: 5, down: true, quiet: true }),
        ("touch k 60\r\n", Command::Touch { key: b"k", expiry: 60, quiet: false }),
        ("version\r\n", Command::Other(b"version")),
    ] {
        assert_eq!(request(bytes.as_bytes()), Some(Ok(want)), "{bytes}");
        let mut out = b"before".to_vec();
        want.encode(&mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out[6..]), bytes);
    }
    // Spaces are as many as one likes, and other commands have arguments.
    assert_eq!(request(b"get  a   b \r\n"), Some(Ok(Command::Get { keys: words("a b"), cas: false })));
    assert_eq!(request(b"flush_all 10\r\n"), Some(Ok(Command::Other(b"flush_all"))));
    assert_eq!(request(b"getter k\r\n"), Some(Ok(Command::Other(b"getter"))));
    assert_eq!(request(b"mg k v\r\n"), Some(Ok(Command::Other(b"mg"))));
}

#[test]
fn requests_that_are_none() {
    let long = [&b"get "[..], &[b'k'; 251], b"\r\n"].concat();
    for (bytes, want) in [
        (&b"\x80\x01"[..], ParseError::BadCommand),
        (b"GET / HTTP/1.1\r\n", ParseError::BadCommand),
        (b"\r\n", ParseError::BadCommand),
        (b"get\r\n", ParseError::BadCommand),
        (&long, ParseError::BadKey),
        (b"get a \x01\r\n", ParseError::BadKey),
        (b"delete \x7f\r\n", ParseError::BadKey),
        (b"get a\n", ParseError::BadLineEnd),
        (b"get a\rb\r\n", ParseError::BadLineEnd),
        (b"set k 0 0\r\n", ParseError::BadCommand),
        (b"set k 0 0 x\r\n", ParseError::BadNumber),
        (b"set k 0 0 -1\r\n", ParseError::BadNumber),
        (b"set k 0 0 4294967296\r\n", ParseError::BadNumber),
        (b"set k 0 0 1048576\r\n", ParseError::TooLarge),
        (b"set k 0 0 3\r\nabcd\r\n", ParseError::BadDataEnd),
        (b"set k 4294967296 0 1\r\na\r\n", ParseError::BadNumber),
        (b"set k 0 2147483648 1\r\na\r\n", ParseError::BadNumber),
        (b"set k 0 0 1 quiet\r\na\r\n", ParseError::BadCommand),
        (b"set k 0 0 1 noreply x\r\na\r\n", ParseError::BadCommand),
        (b"cas k 0 0 1\r\na\r\n", ParseError::BadCommand),
        (b"cas k 0 0 1 noreply\r\na\r\n", ParseError::BadNumber),
        (b"delete k 0\r\n", ParseError::BadCommand),
        (b"incr k\r\n", ParseError::BadCommand),
        (b"incr k -1\r\n", ParseError::BadNumber),
        (b"incr k 18446744073709551616\r\n", ParseError::BadNumber),
        (b"touch k\r\n", ParseError::BadCommand),
        (b"touch k --1\r\n", ParseError::BadNumber),
        (b"get\0 k\r\n", ParseError::BadCommand),
    ] {
        assert_eq!(request(bytes), Some(Err(want)), "{}", bytes.escape_ascii());
    }
    for open in ["g", "get k", "get k\r", "set k 0 0 3\r\nabc\r"] {
        assert_eq!(request(open.as_bytes()), None, "{open}");
    }
}

#[test]
fn replies() {
    for (bytes, want) in [
        ("VALUE k 7 4\r\na\r\nb\r\n", Reply::Value { key: b"k", flags: 7, cas: None, data: b"a\r\nb" }),
        ("VALUE k 0 0 9\r\n\r\n", Reply::Value { key: b"k", flags: 0, cas: Some(9), data: b"" }),
        ("END\r\n", Reply::End),
        ("STORED\r\n", Reply::Stored),
        ("NOT_STORED\r\n", Reply::NotStored),
        ("EXISTS\r\n", Reply::Exists),
        ("NOT_FOUND\r\n", Reply::NotFound),
        ("DELETED\r\n", Reply::Deleted),
        ("TOUCHED\r\n", Reply::Touched),
        ("18446744073709551615\r\n", Reply::Number(u64::MAX)),
        ("OK\r\n", Reply::Ok),
        ("VERSION 1.6.18\r\n", Reply::Version(b"1.6.18")),
        ("ERROR\r\n", Reply::Error),
        ("CLIENT_ERROR bad data chunk\r\n", Reply::ClientError(b"bad data chunk")),
        ("SERVER_ERROR out of memory storing object\r\n", Reply::ServerError(b"out of memory storing object")),
    ] {
        assert_eq!(reply(bytes.as_bytes()), Some(Ok(want)), "{bytes}");
        let mut out = b"before".to_vec();
        want.encode(&mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out[6..]), bytes);
    }
}

#[test]
fn replies_that_are_none() {
    for (bytes, want) in [
        (&b"\x81\0"[..], ParseError::BadReply),
        (b"+OK\r\n", ParseError::BadReply),
        (b"HTTP/1.1 400 Bad Request\r\n", ParseError::BadReply),
        (b"ENDE\r\n", ParseError::BadReply),
        (b"HD\r\n", ParseError::BadReply),
        (b"END of it\r\n", ParseError::BadReply),
        (b"12 13\r\n", ParseError::BadReply),
        (b"12x\r\n", ParseError::BadNumber),
        (b"18446744073709551616\r\n", ParseError::BadNumber),
        (b"END\n", ParseError::BadLineEnd),
        (b"VALUE k 0\r\n", ParseError::BadReply),
        (b"VALUE k 0 x\r\n", ParseError::BadNumber),
        (b"VALUE k x 1\r\na\r\n", ParseError::BadNumber),
        (b"VALUE k 0 1 x\r\na\r\n", ParseError::BadNumber),
        (b"VALUE k 0 1 1 1\r\na\r\n", ParseError::BadReply),
        (b"VALUE \x01 0 1\r\na\r\n", ParseError::BadKey),
        (b"VALUE k 0 1\r\nabc", ParseError::BadDataEnd),
        (b"VALUE k 0 1048576\r\n", ParseError::TooLarge),
    ] {
        assert_eq!(reply(bytes), Some(Err(want)), "{}", bytes.escape_ascii());
    }
    for open in ["E", "END", "END\r", "VALUE k 0 3\r\nabc\r"] {
        assert_eq!(reply(open.as_bytes()), None, "{open}");
    }
}

#[test]
fn messages_and_lines_have_limits() {
    let request = |limit, bytes: &[u8]| messages::read_cut(|| RequestFrame::new(limit), limit, bytes, &[1000, 7]).end;
    assert_eq!(request(17, b"set k 0 0 1\r\na\r\nget"), Ok(false));
    assert_eq!(request(16, b"set k 0 0 1\r\na\r\n"), Ok(true));
    assert_eq!(request(15, b"set k 0 0 1\r\na\r\n"), Err(ParseError::TooLarge));
    assert_eq!(request(8, b"get a b c"), Err(ParseError::TooLarge));
    assert_eq!(request(LIMIT, &[b'g'; 70_000]), Err(ParseError::LineTooLong));
    let keys = "gets".to_owned() + &" k".repeat(32_765) + "\r\n";
    assert_eq!((keys.len(), request(LIMIT, keys.as_bytes())), (65_536, Ok(true)));
}

#[test]
fn what_cannot_be_written() {
    let get = |keys| Command::Get { keys: words(keys), cas: false };
    let long = "k".repeat(251);
    let delete = |key: &'static [u8]| Command::Delete { key, quiet: false };
    for (command, error) in [
        (get(""), EncodeError::BadKey),
        (get("  "), EncodeError::BadKey),
        (get("a \x01"), EncodeError::BadKey),
        (get(&long), EncodeError::BadKey),
        (get("a\r\nb"), EncodeError::BadText),
        (delete(b""), EncodeError::BadKey),
        (delete(b"a b"), EncodeError::BadKey),
        (delete(b"a\r\n"), EncodeError::BadKey),
        (Command::Other(b""), EncodeError::BadText),
        (Command::Other(b"stats items"), EncodeError::BadText),
    ] {
        let mut out = b"before".to_vec();
        assert_eq!(command.encode(&mut out), Err(error), "{command:?}");
        assert_eq!(out, b"before");
    }
    for (reply, error) in [
        (Reply::Value { key: b"", flags: 0, cas: None, data: b"" }, EncodeError::BadKey),
        (Reply::ClientError(b"a\r\nb"), EncodeError::BadText),
    ] {
        let mut out = b"before".to_vec();
        assert_eq!(reply.encode(&mut out), Err(error), "{reply:?}");
        assert_eq!(out, b"before");
    }
}
