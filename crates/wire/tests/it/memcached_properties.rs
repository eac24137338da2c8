//! Properties of memcached's protocol over generated input: messages however they are cut, what is written reads back, and
//! any bytes at all.

use crate::memcached_oracle as oracle;
use crate::messages;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use weir_wire::memcached::{Command, Reply, ReplyFrame, RequestFrame, Store, Words};

const LIMIT: usize = 1 << 20;

/// What messages are made of.
#[derive(Debug, Clone)]
struct Parts {
    kind: usize,
    key: Vec<u8>,
    words: Vec<u8>,
    numbers: (u32, i32, u64),
    data: Vec<u8>,
    yes: (bool, bool),
}

fn parts() -> impl Strategy<Value = Parts> {
    let key = "[!-~é]{1,100}".prop_map(String::into_bytes);
    let words = vec("[!-~]{1,8}", 1..4).prop_map(|words| words.join(" ").into_bytes());
    let data = prop_oneof![vec(any::<u8>(), 0..100), vec(select(b"\r\nEND VA1".to_vec()), 0..20)];
    (any::<u8>(), key, words, any::<(u32, i32, u64)>(), data, any::<(bool, bool)>())
        .prop_map(|(kind, key, words, numbers, data, yes)| Parts { kind: kind.into(), key, words, numbers, data, yes })
}

impl Parts {
    fn command(&self) -> Command<'_> {
        let Parts { kind, key, words, numbers: (flags, expiry, number), data, yes: (yes, quiet) } = self;
        let (key, words, quiet) = (key.as_slice(), Words::of(words), *quiet);
        let how = [Store::Set, Store::Add, Store::Replace, Store::Append, Store::Prepend, Store::Cas(*number)];
        match kind % 8 {
            0 => Command::Get { keys: words, cas: *yes },
            1 => Command::Delete { key, quiet },
            2 => Command::Count { key, by: *number, down: *yes, quiet },
            3 => Command::Touch { key, expiry: *expiry, quiet },
            _ => Command::Store { how: how[kind % 6], key, flags: *flags, expiry: *expiry, data, quiet },
        }
    }

    fn reply(&self) -> Reply<'_> {
        let Parts { kind, key, words, numbers: (flags, _, number), data, yes: (yes, _) } = self;
        let short = [Reply::End, Reply::Stored, Reply::NotStored, Reply::Exists, Reply::NotFound, Reply::Deleted];
        match kind % 6 {
            0 | 1 => Reply::Value { key, flags: *flags, cas: yes.then_some(*number), data },
            2 => Reply::Number(*number),
            3 => Reply::ServerError(words),
            4 => Reply::Version(words),
            _ => short[kind / 6 % 6],
        }
    }
}

fn requests(all: &[Parts]) -> Vec<u8> {
    let mut out = Vec::new();
    all.iter().for_each(|parts| parts.command().encode(&mut out).unwrap());
    out
}

fn replies(all: &[Parts]) -> Vec<u8> {
    let mut out = Vec::new();
    all.iter().for_each(|parts| parts.reply().encode(&mut out).unwrap());
    out
}

fn control() -> impl Strategy<Value = String> {
    "[01][0-Z]"
}

proptest! {
    #[test]
    fn messages_read_as_meant_however_they_are_cut(
        all in vec(parts(), 1..6),
        sizes in vec(1usize..50, 1..20),
        control in control(),
    ) {
        let stream = requests(&all);
        let seen = messages::read_cut(|| RequestFrame::new(LIMIT), LIMIT, &stream, &sizes);
        prop_assert_eq!((seen.messages.len(), seen.end), (all.len(), Ok(true)));
        for (message, parts) in seen.messages.iter().zip(&all) {
            prop_assert_eq!(Command::parse(message), Ok(parts.command()));
        }
        oracle::requests(&[control.as_bytes(), &stream].concat());

        let stream = replies(&all);
        let seen = messages::read_cut(|| ReplyFrame::new(LIMIT), LIMIT, &stream, &sizes);
        prop_assert_eq!((seen.messages.len(), seen.end), (all.len(), Ok(true)));
        for (message, parts) in seen.messages.iter().zip(&all) {
            prop_assert_eq!(Reply::parse(message), Ok(parts.reply()));
        }
        oracle::replies(&[control.as_bytes(), &stream].concat());
    }

    #[test]
    fn the_oracle_holds_for_any_bytes(data in vec(any::<u8>(), 0..300)) {
        oracle::requests(&data);
        oracle::replies(&data);
    }

    /// Bytes at random are hardly ever commands; pieces of them are.
    #[test]
    fn the_oracle_holds_for_pieces_of_messages(control in control(), pieces in vec(select(FRAGMENTS), 0..20)) {
        let data = control + &pieces.concat();
        oracle::requests(data.as_bytes());
        oracle::replies(data.as_bytes());
    }

    #[test]
    fn the_oracle_holds_for_messages_with_a_changed_byte(
        control in control(),
        all in vec(parts(), 1..4),
        at in any::<Index>(),
        to in prop_oneof![any::<u8>(), select(b"\r\n 0123-x".to_vec())],
    ) {
        let mut stream = requests(&all);
        let place = at.index(stream.len());
        stream[place] = to;
        oracle::requests(&[control.as_bytes(), &stream].concat());
        let mut stream = replies(&all);
        let place = at.index(stream.len());
        stream[place] = to;
        oracle::replies(&[control.as_bytes(), &stream].concat());
    }
}

const FRAGMENTS: &[&str] = &[
    "get",
    "gets",
    "set",
    "cas",
    "add",
    "delete",
    "incr",
    "touch",
    "version\r\n",
    " k",
    " key",
    " 0",
    " 1",
    " 3",
    " -1",
    " 4294967296",
    " noreply",
    "  ",
    "\r\n",
    "\r",
    "\n",
    "abc\r\n",
    "a\r\n",
    "VALUE",
    "END\r\n",
    "STORED\r\n",
    "12\r\n",
    "SERVER_ERROR x\r\n",
    "VERSION",
    "ERROR\r\n",
    "\0",
];
