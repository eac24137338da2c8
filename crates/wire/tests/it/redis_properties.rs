//! Properties of RESP over generated input: valid values however they are cut, the same as another implementation reads
//! them, and any bytes at all.

use crate::messages;
use crate::redis_oracle as oracle;
use crate::redis_oracle::Tree;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use weir_wire::redis::{Command, ReplyFrame, RequestFrame, Value, encode};

const LIMIT: usize = 1 << 20;

/// A value and how it is written.
type Written = (Tree, Vec<u8>);

fn string(kind: char, bytes: &[u8]) -> Vec<u8> {
    [format!("{kind}{}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn line(kind: char, text: &str) -> Vec<u8> {
    format!("{kind}{text}\r\n").into_bytes()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..40), vec(select(b"\r\n$*:1".to_vec()), 0..10)]
}

/// Values without others inside.
fn leaf() -> impl Strategy<Value = Written> {
    prop_oneof![
        "[ -~]{0,12}".prop_map(|text| (Tree::Simple(text.clone().into()), line('+', &text))),
        "[ -~é]{0,12}".prop_map(|text| (Tree::Error(text.clone().into()), line('-', &text))),
        ".{0,12}".prop_map(|text| (Tree::Error(text.clone().into()), string('!', text.as_bytes()))),
        any::<i64>().prop_map(|number| (Tree::Integer(number), line(':', &number.to_string()))),
        any::<u32>().prop_map(|number| (Tree::Integer(number.into()), line(':', &format!("+{number}")))),
        bytes().prop_map(|bytes| (Tree::Bulk(bytes.clone()), string('$', &bytes))),
        any::<bool>().prop_map(|truth| (Tree::Boolean(truth), line('#', if truth { "t" } else { "f" }))),
        any::<f64>().prop_map(|number| (Tree::Double(number), line(',', &number.to_string()))),
        "[+-]?[0-9]{1,40}".prop_map(|digits| (Tree::BigNumber(digits.clone().into()), line('(', &digits))),
        (select(vec!["txt", "mkd"]), bytes()).prop_map(|(format, text)| {
            let written = string('=', &[format.as_bytes(), b":", &text].concat());
            (Tree::Verbatim(format.as_bytes().try_into().unwrap(), text), written)
        }),
        Just((Tree::Null, line('_', ""))),
    ]
}

/// How an aggregate with these elements is written.
fn aggregate(kind: char, count: usize, items: &[Written]) -> Vec<u8> {
    let items = items.iter().flat_map(|(_, written)| written.clone());
    line(kind, &count.to_string()).into_iter().chain(items).collect()
}

fn trees(items: Vec<Written>) -> Vec<Tree> {
    items.into_iter().map(|(tree, _)| tree).collect()
}

/// A value of RESP3, perhaps with attributes, which belong to it and are not read.
fn value() -> impl Strategy<Value = Written> {
    let leaf = (leaf(), vec((leaf(), leaf()), 0..3)).prop_map(|((tree, written), attributes)| {
        let all: Vec<Written> = attributes.into_iter().flat_map(<[Written; 2]>::from).collect();
        match tree {
            // The other crate gives a null none.
            Tree::Null => (tree, written),
            _ if all.is_empty() => (tree, written),
            _ => (tree, [aggregate('|', all.len() / 2, &all), written].concat()),
        }
    });
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|all| {
                let written = aggregate('*', all.len(), &all);
                (Tree::Array(trees(all)), written)
            }),
            vec(inner.clone(), 0..4).prop_map(|all| {
                let written = aggregate('>', all.len(), &all);
                (Tree::Push(trees(all)), written)
            }),
            vec(self::leaf(), 0..4).prop_map(|all| {
                let written = aggregate('~', all.len(), &all);
                (Tree::Array(trees(all)), written)
            }),
            vec((self::leaf(), inner), 0..4).prop_map(|pairs| {
                let all: Vec<Written> = pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect();
                let written = aggregate('%', pairs.len(), &all);
                (Tree::Map(pairs.into_iter().map(|(key, value)| (key.0, value.0)).collect()), written)
            }),
        ]
    })
}

/// A value of RESP2, whose nulls are strings or arrays.
fn value2() -> impl Strategy<Value = Written> {
    let leaf = prop_oneof![
        "[ -~]{0,12}".prop_map(|text| (Tree::Simple(text.clone().into()), line('+', &text))),
        "[ -~]{0,12}".prop_map(|text| (Tree::Error(text.clone().into()), line('-', &text))),
        any::<i64>().prop_map(|number| (Tree::Integer(number), line(':', &number.to_string()))),
        bytes().prop_map(|bytes| (Tree::Bulk(bytes.clone()), string('$', &bytes))),
        select(vec!['$', '*']).prop_map(|kind| (Tree::Null, line(kind, "-1"))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        vec(inner, 0..4).prop_map(|all| {
            let written = aggregate('*', all.len(), &all);
            (Tree::Array(trees(all)), written)
        })
    })
}

/// Whether two values are equal, with NaN equal to itself.
fn same(one: &Tree, other: &Tree) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

fn control() -> impl Strategy<Value = String> {
    "[01][0-Z]"
}

fn request() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let name = select(vec!["get", "SET", "Del", "EXPIRE", "incr", "HELLO", "auth", "PING", "wait", "MSET"]);
    let option = select(vec!["EX", "px", "NX", "xx", "10", "0", "-1", "x"]);
    let argument = prop_oneof![bytes(), option.prop_map(|option| option.as_bytes().to_vec())];
    (name, vec(argument, 0..6)).prop_map(|(name, arguments)| {
        let mut words = vec![name.as_bytes().to_vec()];
        words.extend(arguments);
        words
    })
}

fn write_request(words: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::request(&mut out, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    out
}

proptest! {
    #[test]
    fn replies_read_as_meant_however_they_are_cut(
        all in vec(prop_oneof![value(), value2()], 1..5),
        sizes in vec(1usize..20, 1..20),
        control in control(),
    ) {
        let stream: Vec<u8> = all.iter().flat_map(|(_, written)| written.clone()).collect();
        let seen = messages::read_cut(|| ReplyFrame::new(LIMIT), LIMIT, &stream, &sizes);
        prop_assert_eq!(seen.end, Ok(true));
        prop_assert_eq!(seen.messages.len(), all.len());
        for (message, (tree, written)) in seen.messages.iter().zip(&all) {
            prop_assert_eq!(message, written);
            let read = Value::parse(message).and_then(Tree::of).unwrap();
            prop_assert!(same(&read, tree), "{:?} {:?}", read, tree);
        }
        oracle::replies(&[control.as_bytes(), &stream].concat());
    }

    /// Both say that a value that was cut off goes on, and neither reads it.
    #[test]
    fn values_that_are_cut_off_are_open((_, written) in prop_oneof![value(), value2()], at in any::<Index>()) {
        let part = &written[..at.index(written.len())];
        let seen = messages::read(ReplyFrame::new(LIMIT), LIMIT, [part]);
        prop_assert_eq!(seen.messages.len(), 0);
        prop_assert_eq!(seen.end, Ok(part.is_empty()));
        let two = redis_protocol::resp2::decode::decode(part);
        let three = redis_protocol::resp3::decode::complete::decode(part);
        prop_assert!(matches!(two, Ok(None)) || matches!(three, Ok(None)), "{:?} {:?}", two, three);
    }

    #[test]
    fn requests_read_as_meant_however_they_are_cut(all in vec(request(), 1..5), control in control()) {
        let stream: Vec<u8> = all.iter().flat_map(|words| write_request(words)).collect();
        let seen = messages::read(RequestFrame::new(LIMIT), LIMIT, [&stream[..]]);
        prop_assert_eq!(seen.end, Ok(true));
        prop_assert_eq!(seen.messages.len(), all.len());
        for (message, words) in seen.messages.iter().zip(&all) {
            let command = Command::parse(message).unwrap().unwrap();
            if let Command::Other(name) = command {
                prop_assert_eq!(name, &words[0]);
            }
        }
        oracle::requests(&[control.as_bytes(), &stream].concat());
    }

    #[test]
    fn the_oracle_holds_for_any_bytes(data in vec(any::<u8>(), 0..300)) {
        oracle::replies(&data);
        oracle::requests(&data);
    }

    /// Bytes at random are hardly ever RESP; pieces of it are.
    #[test]
    fn the_oracle_holds_for_pieces_of_resp(control in control(), pieces in vec(select(FRAGMENTS), 0..20)) {
        let data = control + &pieces.concat();
        oracle::replies(data.as_bytes());
        oracle::requests(data.as_bytes());
    }

    #[test]
    fn the_oracle_holds_for_messages_with_a_changed_byte(
        control in control(),
        all in vec(value(), 1..4),
        requests in vec(request(), 1..4),
        at in any::<Index>(),
        to in prop_oneof![any::<u8>(), select(b"\r\n$*:-+0123?|%~".to_vec())],
    ) {
        let mut stream: Vec<u8> = all.into_iter().flat_map(|(_, written)| written).collect();
        let place = at.index(stream.len());
        stream[place] = to;
        oracle::replies(&[control.as_bytes(), &stream].concat());
        let mut stream: Vec<u8> = requests.iter().flat_map(|words| write_request(words)).collect();
        let place = at.index(stream.len());
        stream[place] = to;
        oracle::requests(&[control.as_bytes(), &stream].concat());
    }
}

const FRAGMENTS: &[&str] = &[
    "+OK\r\n",
    "-ERR x\r\n",
    ":1\r\n",
    ":-5\r\n",
    "$3\r\nabc\r\n",
    "$0\r\n\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*1\r\n",
    "*2\r\n",
    "*3\r\n",
    "%1\r\n",
    "~2\r\n",
    ">1\r\n",
    "|1\r\n",
    "_\r\n",
    "#t\r\n",
    "#x\r\n",
    ",1.5\r\n",
    ",x\r\n",
    "(12\r\n",
    "(x\r\n",
    "=5\r\ntxt:a\r\n",
    "=3\r\nabc\r\n",
    "!3\r\nERR\r\n",
    "$?\r\n",
    "*?\r\n",
    ";1\r\na\r\n",
    ".\r\n",
    "$3\r\nGET\r\n",
    "$3\r\nSET\r\n",
    "$2\r\nEX\r\n",
    "$2\r\n10\r\n",
    "$4\r\nPING\r\n",
    "PING\r\n",
    "SET k v EX 1\r\n",
    "GET k",
    "$",
    "*",
    "\r\n",
    "\r",
    "\n",
    "1",
    "99999999999",
    "4294967295",
    "+",
    "-1",
    "HELLO 3\r\n",
];
