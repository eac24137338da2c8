//! What RESP allows and what it does not, one by one, for both halves.

use crate::messages;
use weir_wire::redis::{Command, ReplyFrame, RequestFrame, Value, Version, Words, encode};

const LIMIT: usize = 1 << 20;

/// The replies in `bytes` in short, and how the stream ends: `open` inside a message, or an error.
#[track_caller]
fn replies(bytes: &[u8]) -> String {
    let seen = messages::read_however_cut(|| ReplyFrame::new(LIMIT), LIMIT, bytes);
    let values = seen.messages.iter().map(|message| Value::parse(message).map_or_else(|e| format!("{e:?}"), text));
    ended(values, seen.end.map_err(|error| format!("{error:?}")))
}

/// The requests in `bytes`, as [`replies`].
#[track_caller]
fn requests(bytes: &[u8]) -> String {
    let seen = messages::read_however_cut(|| RequestFrame::new(LIMIT), LIMIT, bytes);
    let commands = seen.messages.iter().map(|message| match Command::parse(message) {
        Ok(None) => "nothing".to_owned(),
        Ok(Some(command)) => request_text(command),
        Err(error) => format!("{error:?}"),
    });
    ended(commands, seen.end.map_err(|error| format!("{error:?}")))
}

fn ended(all: impl Iterator<Item = String>, end: Result<bool, String>) -> String {
    let end = match end {
        Ok(true) => None,
        Ok(false) => Some("open".to_owned()),
        Err(error) => Some(error),
    };
    all.chain(end).collect::<Vec<_>>().join(" | ")
}

fn text(value: Value<'_>) -> String {
    let items = |items: weir_wire::redis::Items<'_>| {
        let items = items.map(|item| item.map_or_else(|error| format!("{error:?}"), text));
        items.collect::<Vec<_>>().join(" ")
    };
    match value {
        Value::Simple(text) => format!("+{}", text.escape_ascii()),
        Value::Error(text) => format!("-{}", text.escape_ascii()),
        Value::Integer(number) => format!("{number}"),
        Value::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::Null => "null".to_owned(),
        Value::Boolean(truth) => format!("{truth}"),
        Value::Double(number) => format!("{number:?}"),
        Value::BigNumber(digits) => format!("big {}", digits.escape_ascii()),
        Value::Verbatim { format, text } => format!("{}:{}", format.escape_ascii(), text.escape_ascii()),
        Value::Array(all) => format!("[{}]", items(all)),
        Value::Map(all) => format!("{{{}}}", items(all)),
        Value::Push(all) => format!(">[{}]", items(all)),
    }
}

fn request_text(command: Command<'_>) -> String {
    let words = |words: Words<'_>| {
        let words = words.map(|word| word.map_or_else(|error| format!("{error:?}"), |w| w.escape_ascii().to_string()));
        words.collect::<Vec<_>>().join(" ")
    };
    match command {
        Command::Get(key) => format!("get {}", key.escape_ascii()),
        Command::Set { key, value, expiry, condition } => {
            format!("set {} {} {expiry:?} {condition:?}", key.escape_ascii(), value.escape_ascii())
        }
        Command::Del(keys) => format!("del {}", words(keys)),
        Command::Expire { key, seconds } => format!("expire {} {seconds}", key.escape_ascii()),
        Command::Incr(key) => format!("incr {}", key.escape_ascii()),
        Command::Hello(all) => format!("hello {}", words(all)),
        Command::Auth(all) => format!("auth {}", words(all)),
        Command::Ping(message) => format!("ping {:?}", message.map(|m| m.escape_ascii().to_string())),
        Command::Wait { replicas, timeout } => format!("wait {replicas} {timeout}"),
        Command::Other(name) => format!("other {}", name.escape_ascii()),
    }
}

#[test]
fn replies_of_both_versions() {
    for (bytes, want) in [
        (&b""[..], ""),
        (b"+OK\r\n", "+OK"),
        (b"+\r\n", "+"),
        (b"-ERR unknown command\r\n", "-ERR unknown command"),
        (b":0\r\n:-9223372036854775808\r\n:+7\r\n", "0 | -9223372036854775808 | 7"),
        (b"$0\r\n\r\n$5\r\na\r\nb\0\r\n", "\"\" | \"a\\r\\nb\\x00\""),
        (b"$-1\r\n*-1\r\n_\r\n", "null | null | null"),
        (b"*0\r\n", "[]"),
        (b"*2\r\n$1\r\na\r\n:1\r\n+x\r\n", "[\"a\" 1] | +x"),
        (b"*3\r\n*1\r\n:1\r\n*0\r\n%1\r\n+k\r\n*2\r\n:2\r\n:3\r\n", "[[1] [] {+k [2 3]}]"),
        (b"~2\r\n:1\r\n:2\r\n", "[1 2]"),
        (b"%2\r\n+a\r\n:1\r\n+b\r\n_\r\n", "{+a 1 +b null}"),
        (b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n", ">[+invalidate [\"k\"]] | +OK"),
        (b"#t\r\n#f\r\n", "true | false"),
        (b",1.5\r\n,-inf\r\n,nan\r\n,1e3\r\n", "1.5 | -inf | NaN | 1000.0"),
        (b"(-3492890328409238509324850943850943825024385\r\n", "big -3492890328409238509324850943850943825024385"),
        (b"!8\r\nERR a\r\nb\r\n", "-ERR a\\r\\nb"),
        (b"=8\r\ntxt:text\r\n", "txt:text"),
        // Attributes belong to the value behind them.
        (b"|1\r\n+ttl\r\n:3600\r\n$1\r\na\r\n", "\"a\""),
        (b"*2\r\n|1\r\n+ttl\r\n*2\r\n:1\r\n:2\r\n|0\r\n:1\r\n:2\r\n", "[1 2]"),
    ] {
        assert_eq!(replies(bytes), want, "{}", bytes.escape_ascii());
    }
}

#[test]
fn replies_that_are_none() {
    for (bytes, want) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "BadType"),
        (b"\x15\x03\x01", "BadType"),
        (b"\r\n", "BadType"),
        (b"*2\r\n:1\r\nx", "BadType"),
        (b"+OK\n", "BadLineEnd"),
        (b"+O\rK\r\n", "BadLineEnd"),
        (b"+OK\r\r\n", "BadLineEnd"),
        (b":1.5\r\n", "BadNumber"),
        (b":\r\n", "BadNumber"),
        (b":9223372036854775808\r\n", "BadNumber"),
        (b",x\r\n", "BadNumber"),
        (b"(1.5\r\n", "BadNumber"),
        (b"(-\r\n", "BadNumber"),
        (b"$\r\n", "BadNumber"),
        (b"$-2\r\n", "BadNumber"),
        (b"$+2\r\nab\r\n", "BadNumber"),
        (b"$4294967296\r\n", "BadNumber"),
        (b"*99999999999\r\n", "BadNumber"),
        (b"!-1\r\n", "BadNumber"),
        (b"%-1\r\n", "BadNumber"),
        (b"$3\r\nabcd\r\n", "BadStringEnd"),
        (b"$3\r\nabc\rd", "BadStringEnd"),
        (b"$3\r\nabc\n\r", "BadStringEnd"),
        (b"_x\r\n", "BadLiteral"),
        (b"#\r\n", "BadLiteral"),
        (b"#T\r\n", "BadLiteral"),
        (b"=3\r\ntxt\r\n", "BadLiteral"),
        (b"=5\r\ntext:\r\n", "BadLiteral"),
        (b"$?\r\n;4\r\n", "Streamed"),
        (b"*?\r\n", "Streamed"),
        (b"*2\r\n:1\r\n.\r\n", "BadType"),
        (b"*1\r\n:x\r\n", "[BadNumber]"),
        (b"*2\r\n:1\r\n#x\r\n+next\r\n", "[1 BadLiteral] | +next"),
        // More than a message may have is known before it arrives.
        (b"$1048570\r\n", "TooLarge"),
        (b"*349526\r\n", "TooLarge"),
        (b"*4294967295\r\n", "TooLarge"),
        (b"%4294967295\r\n", "TooLarge"),
        (b"|4294967295\r\n", "TooLarge"),
        (b"+OK\r\n$3\r\nab", "+OK | open"),
        (b"*2\r\n:1\r\n", "open"),
        (b"|1\r\n+a\r\n:1\r\n", "open"),
        (b"+OK\r", "open"),
    ] {
        assert_eq!(replies(bytes), want, "{}", bytes.escape_ascii());
    }
}

#[test]
fn messages_and_lines_have_limits() {
    let read = |limit, bytes: &[u8]| {
        let seen = messages::read_cut(|| ReplyFrame::new(limit), limit, bytes, &[1000, 7]);
        ended(seen.messages.iter().map(|m| m.len().to_string()), seen.end.map_err(|error| format!("{error:?}")))
    };
    assert_eq!(read(10, b"$4\r\nabcd\r\n"), "10");
    assert_eq!(read(9, b"$4\r\nabcd\r\n"), "TooLarge");
    assert_eq!(read(7, b"+abcd\r\n"), "7");
    assert_eq!(read(6, b"+abcd\r\n"), "TooLarge");
    assert_eq!(read(6, b"+abcde"), "TooLarge");
    assert_eq!(read(10, b"*2\r\n_\r\n_\r\n"), "10");
    assert_eq!(read(9, b"*2\r\n_\r\n_\r\n"), "TooLarge");
    assert_eq!(read(0, b"+"), "TooLarge");
    let line = |length: usize| ["+", &"x".repeat(length), "\r\n"].concat();
    assert_eq!(read(LIMIT, line(64 * 1024 - 3).as_bytes()), "65536");
    assert_eq!(read(LIMIT, line(64 * 1024 - 2).as_bytes()), "LineTooLong");
    assert_eq!(read(LIMIT, &[b'+'; 70_000]), "LineTooLong");
    let seen = messages::read_cut(|| RequestFrame::new(8), 8, b"PING abcdef\r\n", &[3]);
    assert_eq!(seen.end.unwrap_err().to_string(), "a message is larger than the limit");
}

/// Nothing recursive reads a message: neither the reader, nor a value, nor an iterator that is taken to its end.
#[test]
fn depth_takes_no_stack() {
    let deep = [&b"*1\r\n".repeat(200_000)[..], b":1\r\n"].concat();
    let attributes = [&b"|0\r\n".repeat(200_000)[..], b":1\r\n"].concat();
    let nested = [&b"|1\r\n+k\r\n".repeat(100_000)[..], &b":1\r\n".repeat(100_001)].concat();
    for (bytes, want) in [(deep, "array of 1"), (attributes, "1"), (nested, "1")] {
        let seen = messages::read_cut(|| ReplyFrame::new(1 << 21), 1 << 21, &bytes, &[1 << 16]);
        assert_eq!((seen.messages.len(), seen.end), (1, Ok(true)));
        let found = match Value::parse(&bytes).unwrap() {
            Value::Array(items) => {
                format!("array of {}", items.map(|item| item.map(|_| ())).filter(Result::is_ok).count())
            }
            value => text(value),
        };
        assert_eq!(found, want);
    }
}

#[test]
fn commands() {
    for (words, want) in [
        (&["GET", "k"][..], "get k"),
        (&["get", ""], "get "),
        (&["SET", "k", "v"], "set k v None None"),
        (&["set", "k", "", "EX", "10", "nx"], "set k  Some(Seconds(10)) Some(Absent)"),
        (&["SET", "k", "v", "xx", "px", "1500"], "set k v Some(Milliseconds(1500)) Some(Present)"),
        (&["DEL", "a", "b"], "del a b"),
        (&["EXPIRE", "k", "-1"], "expire k -1"),
        (&["INCR", "k"], "incr k"),
        (&["HELLO"], "hello "),
        (&["HELLO", "3", "AUTH", "u", "p"], "hello 3 AUTH u p"),
        (&["AUTH", "p"], "auth p"),
        (&["PING"], "ping None"),
        (&["PING", "x"], "ping Some(\"x\")"),
        (&["WAIT", "1", "100"], "wait 1 100"),
        (&["CONFIG", "GET", "save"], "other CONFIG"),
        (&["GET"], "other GET"),
        (&["GET", "a", "b"], "other GET"),
        (&["GETX", "a"], "other GETX"),
        (&["SET", "k"], "other SET"),
        (&["SET", "k", "v", "EX"], "other SET"),
        (&["SET", "k", "v", "EX", "0"], "other SET"),
        (&["SET", "k", "v", "EX", "-1"], "other SET"),
        (&["SET", "k", "v", "EX", "x"], "other SET"),
        (&["SET", "k", "v", "EX", "1", "PX", "1"], "other SET"),
        (&["SET", "k", "v", "NX", "XX"], "other SET"),
        (&["SET", "k", "v", "KEEPTTL"], "other SET"),
        (&["DEL"], "other DEL"),
        (&["EXPIRE", "k", "soon"], "other EXPIRE"),
        (&["EXPIRE", "k", "1", "NX"], "other EXPIRE"),
        (&["WAIT", "1"], "other WAIT"),
        (&["PING", "a", "b"], "other PING"),
    ] {
        let mut out = Vec::new();
        encode::request(&mut out, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        assert_eq!(requests(&out), want, "{words:?}");
        // Words without spaces can be sent inline, too.
        if words.iter().all(|word| !word.is_empty()) {
            assert_eq!(requests(format!(" {}\r\n", words.join("  ")).as_bytes()), want, "{words:?}");
        }
    }
}

#[test]
fn requests_that_are_odd_or_none() {
    for (bytes, want) in [
        (&b"\r\n*0\r\n*-1\r\n   \r\nPING\r\n"[..], "nothing | nothing | nothing | nothing | ping None"),
        (b"\tget\tk \r\n", "get k"),
        (b"*1\r\n+PING\r\n", "NotACommand"),
        (b"*1\r\n:1\r\n", "NotACommand"),
        (b"*1\r\n*0\r\n", "NotACommand"),
        (b"*1\r\n$-1\r\n", "NotACommand"),
        (b"*2\r\n$3\r\nGET\r\n_\r\n", "NotACommand"),
        (b"*1\r\nPING\r\n", "NotACommand"),
        (b"*-2\r\n", "BadNumber"),
        (b"*x\r\n", "BadNumber"),
        (b"*1\r\n$4\r\nPINGxx", "BadStringEnd"),
        (b"*1000000\r\n", "TooLarge"),
        (b"*1\r\n$1048576\r\n", "TooLarge"),
        (b"PING\n", "BadLineEnd"),
        (b"PI\rNG\r\n", "BadLineEnd"),
        (b"*1\r\n$4\r\nPING", "open"),
        (b"PING", "open"),
    ] {
        assert_eq!(requests(bytes), want, "{}", bytes.escape_ascii());
    }
}

#[test]
fn written_bytes() {
    let mut out = Vec::new();
    encode::request(&mut out, &[b"SET", b"k", b"a\r\nb", b""]);
    assert_eq!(out, b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n$0\r\n\r\n");
    out.clear();
    out.extend_from_slice(encode::OK);
    encode::simple(&mut out, b"PO\nNG");
    encode::error(&mut out, b"ERR unknown command 'a\r\nb'");
    [0, 7, -1, i64::MAX, i64::MIN].into_iter().for_each(|number| encode::integer(&mut out, number));
    encode::bulk(&mut out, b"\r\n");
    encode::null(&mut out, Version::Resp2);
    encode::null(&mut out, Version::Resp3);
    for version in [Version::Resp2, Version::Resp3] {
        encode::map(&mut out, 1, version);
        encode::bulk(&mut out, b"proto");
        encode::integer(&mut out, 3);
    }
    encode::header(&mut out, b'>', 1);
    encode::simple(&mut out, b"x");
    assert_eq!(
        replies(&out),
        "+OK | +PO NG | -ERR unknown command \\'a  b\\' | 0 | 7 | -1 | 9223372036854775807 | -9223372036854775808 | \
         \"\\r\\n\" | null | null | [\"proto\" 3] | {\"proto\" 3} | >[+x]"
    );
}
