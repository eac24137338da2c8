//! What must hold for any bytes, for both halves of RESP. Used by the tests here and by the fuzz targets.
//!
//! - All that holds for whole messages (`messages_oracle.rs`).
//! - What a reader accepts, the crate `redis-protocol` accepts and reads alike, and what that crate accepts, a reader does.
//!   Where the two differ on purpose stands in [`they_cannot_read`] and [`we_are_stricter`].
//! - What was read can be written, and what is written reads the same.

use crate::messages::{Input, Seen, read, read_cut};
use redis_protocol::resp2::decode::decode as decode2;
use redis_protocol::resp2::types::OwnedFrame as Frame2;
use redis_protocol::resp3::decode::complete::decode as decode3;
use redis_protocol::resp3::types::{OwnedFrame as Frame3, VerbatimStringFormat};
use weir_wire::redis::{Command, ParseError, ReplyFrame, RequestFrame, Value, Version, encode};

/// Nested deeper than this, values are not compared: the other crate is recursive.
const DEEP: usize = 64;

/// A value that owns its bytes, and whose elements are read.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Boolean(bool),
    Double(f64),
    BigNumber(Vec<u8>),
    Verbatim([u8; 3], Vec<u8>),
    Array(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
    Push(Vec<Tree>),
}

impl Tree {
    /// A value with all its elements.
    pub fn of(value: Value<'_>) -> Result<Tree, ParseError> {
        let trees =
            |items: weir_wire::redis::Items<'_>| items.map(|item| Tree::of(item?)).collect::<Result<Vec<_>, _>>();
        Ok(match value {
            Value::Simple(text) => Tree::Simple(text.to_vec()),
            Value::Error(text) => Tree::Error(text.to_vec()),
            Value::Integer(number) => Tree::Integer(number),
            Value::Bulk(bytes) => Tree::Bulk(bytes.to_vec()),
            Value::Null => Tree::Null,
            Value::Boolean(truth) => Tree::Boolean(truth),
            Value::Double(number) => Tree::Double(number),
            Value::BigNumber(digits) => Tree::BigNumber(digits.to_vec()),
            Value::Verbatim { format, text } => Tree::Verbatim(format, text.to_vec()),
            Value::Array(items) => Tree::Array(trees(items)?),
            Value::Push(items) => Tree::Push(trees(items)?),
            Value::Map(items) => {
                let all = trees(items)?;
                Tree::Map(all.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
        })
    }

    fn is_aggregate(&self) -> bool {
        matches!(self, Tree::Array(_) | Tree::Map(_) | Tree::Push(_))
    }

    /// Whether one value in it, itself included, is so.
    fn any(&self, so: &dyn Fn(&Tree) -> bool) -> bool {
        so(self)
            || match self {
                Tree::Array(all) | Tree::Push(all) => all.iter().any(|item| item.any(so)),
                Tree::Map(all) => all.iter().any(|(key, value)| key.any(so) || value.any(so)),
                _ => false,
            }
    }

    /// Appends it; false: [`encode`] has nothing for a value in it.
    fn write(&self, out: &mut Vec<u8>) -> bool {
        let all = |out: &mut Vec<u8>, items: &[Tree]| items.iter().all(|item| item.write(out));
        let line = |text: &[u8]| !text.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
        match self {
            Tree::Simple(text) => encode::simple(out, text),
            Tree::Error(text) if line(text) => encode::error(out, text),
            Tree::Integer(number) => encode::integer(out, *number),
            Tree::Bulk(bytes) => encode::bulk(out, bytes),
            Tree::Null => encode::null(out, Version::Resp3),
            Tree::Array(items) => {
                encode::header(out, b'*', items.len());
                return all(out, items);
            }
            Tree::Push(items) => {
                encode::header(out, b'>', items.len());
                return all(out, items);
            }
            Tree::Map(items) => {
                encode::map(out, items.len(), Version::Resp3);
                return items.iter().all(|(key, value)| key.write(out) && value.write(out));
            }
            _ => return false,
        }
        true
    }

    fn is2(&self, theirs: &Frame2) -> bool {
        match (self, theirs) {
            (Tree::Simple(ours), Frame2::SimpleString(theirs)) | (Tree::Bulk(ours), Frame2::BulkString(theirs)) => {
                ours == theirs
            }
            (Tree::Error(ours), Frame2::Error(theirs)) => ours == theirs.as_bytes(),
            (Tree::Integer(ours), Frame2::Integer(theirs)) => ours == theirs,
            (Tree::Array(ours), Frame2::Array(theirs)) => {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| ours.is2(theirs))
            }
            (Tree::Null, Frame2::Null) => true,
            _ => false,
        }
    }

    fn is3(&self, theirs: &Frame3) -> bool {
        match (self, theirs) {
            (Tree::Simple(ours), Frame3::SimpleString { data, .. })
            | (Tree::Bulk(ours), Frame3::BlobString { data, .. })
            | (Tree::Error(ours), Frame3::BlobError { data, .. })
            | (Tree::BigNumber(ours), Frame3::BigNumber { data, .. }) => ours == data,
            (Tree::Error(ours), Frame3::SimpleError { data, .. }) => ours == data.as_bytes(),
            (Tree::Integer(ours), Frame3::Number { data, .. }) => ours == data,
            (Tree::Boolean(ours), Frame3::Boolean { data, .. }) => ours == data,
            (Tree::Double(ours), Frame3::Double { data, .. }) => ours == data || ours.is_nan() && data.is_nan(),
            (Tree::Verbatim(ours, text), Frame3::VerbatimString { data, format, .. }) => {
                let format = match format {
                    VerbatimStringFormat::Text => b"txt",
                    VerbatimStringFormat::Markdown => b"mkd",
                };
                ours == format && text == data
            }
            (Tree::Array(ours), Frame3::Array { data, .. }) | (Tree::Push(ours), Frame3::Push { data, .. }) => {
                ours.len() == data.len() && ours.iter().zip(data).all(|(ours, theirs)| ours.is3(theirs))
            }
            // Theirs has no order and no duplicates.
            (Tree::Array(ours), Frame3::Set { data, .. }) => {
                ours.iter().all(|ours| data.iter().any(|theirs| ours.is3(theirs)))
                    && data.iter().all(|theirs| ours.iter().any(|ours| ours.is3(theirs)))
            }
            (Tree::Map(ours), Frame3::Map { data, .. }) => {
                ours.iter().all(|(key, _)| data.keys().any(|theirs| key.is3(theirs)))
                    && data.iter().all(|(their_key, their_value)| {
                        ours.iter().any(|(key, value)| key.is3(their_key) && value.is3(their_value))
                    })
            }
            (Tree::Null, Frame3::Null) => true,
            _ => false,
        }
    }
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether values may be nested deeper than the other crate can be trusted with.
fn is_deep(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| b"*~>%|".contains(byte)).count() > DEEP
}

/// What we read and they do not, on purpose: the nulls of RESP2 among types of RESP3, as servers of RESP3 that were asked
/// nothing better send them; attributes of nulls and of other attributes; sets and maps with aggregates as members or
/// keys; formats of texts other than `txt` and `mkd`; errors that are no UTF-8.
fn they_cannot_read(message: &[u8], ours: &Tree) -> bool {
    has(message, b"-1\r\n")
        || has(message, b"|")
        || has(message, b"~")
        || ours.any(&|value| match value {
            Tree::Map(all) => all.iter().any(|(key, _)| key.is_aggregate()),
            Tree::Verbatim(format, _) => ![b"txt", b"mkd"].contains(&format),
            Tree::Error(text) => std::str::from_utf8(text).is_err(),
            _ => false,
        })
}

/// What they accept and we refuse, on purpose: strings that are not followed by CR LF; CR or LF inside a line; lengths with
/// a sign or with more than ten digits; `HELLO` and parts of streams as replies; nulls with a text, texts whose format has
/// no colon, and large numbers that are none; and whatever is above our limits.
fn we_are_stricter(error: ParseError, bytes: &[u8]) -> bool {
    match error {
        ParseError::BadStringEnd | ParseError::BadLineEnd | ParseError::LineTooLong | ParseError::TooLarge => true,
        ParseError::BadNumber => bytes.iter().any(|byte| b"+-(".contains(byte)) || has(bytes, b"0000000"),
        ParseError::BadType => bytes.iter().any(|byte| b"H;.".contains(byte)),
        ParseError::BadLiteral => bytes.iter().any(|byte| b"_=".contains(byte)),
        _ => false,
    }
}

/// Compares what the bytes begin with.
fn compare(bytes: &[u8], ours: Result<Option<(&Tree, usize)>, ParseError>) {
    if is_deep(bytes) {
        return;
    }
    let (two, three) = (decode2(bytes), decode3(bytes));
    match ours {
        Ok(Some((ours, length))) => match (&two, &three) {
            (Ok(Some((theirs, used))), _) => assert!(*used == length && ours.is2(theirs), "{ours:?}, {theirs:?}"),
            (_, Ok(Some((theirs, used)))) => assert!(*used == length && ours.is3(theirs), "{ours:?}, {theirs:?}"),
            _ => assert!(they_cannot_read(&bytes[..length], ours), "{ours:?}, {two:?}, {three:?}"),
        },
        Ok(None) => {
            assert!(!matches!(two, Ok(Some(_))) && !matches!(three, Ok(Some(_))), "open, {two:?}, {three:?}");
        }
        Err(error) => {
            let accepted = matches!(two, Ok(Some(_))) || matches!(three, Ok(Some(_)));
            assert!(!accepted || we_are_stricter(error, bytes), "{error:?}, {two:?}, {three:?}");
        }
    }
}

/// Checks the client half with an input (`messages::Input`; no options).
pub fn replies(data: &[u8]) {
    let Some(Input { limit, sizes, bytes, .. }) = Input::of(data) else { return };
    let seen = read_cut(|| ReplyFrame::new(limit), limit, bytes, &sizes);
    let mut at = 0;
    for message in &seen.messages {
        let rest = &bytes[at..];
        at += message.len();
        if is_deep(message) {
            let _ = Value::parse(message);
            continue;
        }
        match Value::parse(message).and_then(Tree::of) {
            Ok(tree) => {
                compare(rest, Ok(Some((&tree, message.len()))));
                reads_again(&tree);
            }
            Err(error) => compare(rest, Err(error)),
        }
    }
    ended(&seen, &bytes[at..]);
}

/// Compares what a stream ends with, behind its last message.
fn ended(seen: &Seen<ParseError>, rest: &[u8]) {
    match seen.end {
        Ok(between) => {
            assert_eq!(between, rest.is_empty());
            compare(rest, Ok(None));
        }
        Err(error) => compare(rest, Err(error)),
    }
}

fn reads_again(tree: &Tree) {
    let mut out = Vec::new();
    if tree.write(&mut out) {
        let again = read(ReplyFrame::new(1 << 24), 1 << 24, [&out[..]]);
        assert_eq!((again.messages.len(), again.end), (1, Ok(true)));
        assert_eq!(Value::parse(&out).and_then(Tree::of).as_ref(), Ok(tree));
    }
}

/// Checks the server half with an input (`messages::Input`; no options).
pub fn requests(data: &[u8]) {
    let Some(Input { limit, sizes, bytes, .. }) = Input::of(data) else { return };
    let seen = read_cut(|| RequestFrame::new(limit), limit, bytes, &sizes);
    let mut at = 0;
    for message in &seen.messages {
        at += message.len();
        let command = Command::parse(message).expect("the reader found all mistakes");
        if !message.starts_with(b"*") {
            continue;
        }
        let words = match decode2(message) {
            Ok(Some((Frame2::Array(words), used))) if used == message.len() => words,
            Ok(Some((Frame2::Null, used))) if used == message.len() => Vec::new(),
            theirs => panic!("{command:?}, {theirs:?}"),
        };
        let words = words.into_iter().map(|word| match word {
            Frame2::BulkString(word) => word,
            other => panic!("{command:?}, {other:?}"),
        });
        same_request(command, &words.collect::<Vec<_>>());
    }
    let rest = &bytes[at..];
    if let (Err(error), Ok(Some((Frame2::Array(words), _)))) = (seen.end, decode2(rest)) {
        let is_request = words.iter().all(|word| matches!(word, Frame2::BulkString(_)));
        assert!(!is_request || we_are_stricter(error, rest), "{error:?}, {words:?}");
    }
}

/// The command says what the words say, and so it does when they are written again.
fn same_request(command: Option<Command<'_>>, words: &[Vec<u8>]) {
    let Some(command) = command else {
        return assert_eq!(words.len(), 0);
    };
    let (name, arguments) = words.split_first().expect("a command has a name");
    let number = |at: usize| std::str::from_utf8(&arguments[at]).expect("digits").parse::<i64>();
    let same = |read: weir_wire::redis::Words<'_>| read.map(Result::unwrap).eq(arguments.iter().map(Vec::as_slice));
    let (called, so) = match command {
        Command::Get(key) => ("get", *arguments == [key]),
        Command::Incr(key) => ("incr", *arguments == [key]),
        Command::Set { key, value, expiry, condition } => {
            let options = 2 * usize::from(expiry.is_some()) + usize::from(condition.is_some());
            ("set", arguments[..2] == [key, value] && arguments.len() == 2 + options)
        }
        Command::Expire { key, seconds } => {
            ("expire", arguments[0] == key && number(1) == Ok(seconds) && arguments.len() == 2)
        }
        Command::Wait { replicas, timeout } => {
            ("wait", number(0) == Ok(replicas) && number(1) == Ok(timeout) && arguments.len() == 2)
        }
        Command::Ping(message) => ("ping", message.into_iter().eq(arguments.iter().map(Vec::as_slice))),
        Command::Del(keys) => ("del", same(keys)),
        Command::Hello(all) => ("hello", same(all)),
        Command::Auth(all) => ("auth", same(all)),
        Command::Other(other) => return assert_eq!(other, name),
    };
    assert!(so && name.eq_ignore_ascii_case(called.as_bytes()), "{command:?}, {words:?}");
    let mut out = Vec::new();
    encode::request(&mut out, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let again = Command::parse(&out).expect("it reads").expect("it has a name");
    assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(&command));
}
