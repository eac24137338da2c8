//! Memcached's protocol, its text commands, as a server without a limit of memory speaks it.
//!
//! A request that wants no reply gets none. `flush_all` removes everything at once, whatever its arguments are.

use strum::VariantNames as _;
use weir_model::protocol::Application;
use weir_wire::memcached::{Command, Reply, RequestFrame, Store as How, Words};

use super::store::{NEVER, Now, Record, Store};
use super::{Answered, Asks, Context, Dialect, WrongReply};

/// The longest request, bytes.
const LONGEST: usize = 32 << 20;
/// What clients are told that the server is.
const SERVER_VERSION: &[u8] = b"1.6.0";
/// A longer time to live is a time since 1970, s.
const MOST_RELATIVE: i32 = 30 * 24 * 3600;

/// The state of a connection: there is none.
#[derive(Debug, Default)]
pub(crate) struct Memcached;

/// What is kept with a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    flags: u32,
    /// Differs each time that the key is written.
    version: u64,
}

/// Items, and in each shard the last version that one got.
type Items = Store<Item, u64>;

/// The operation of a command, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
enum Operation {
    Get,
    Set,
    Add,
    Replace,
    /// `append` and `prepend`.
    Append,
    Cas,
    Delete,
    /// `incr` and `decr`.
    Incr,
    Touch,
    /// About the connection or the server.
    Connection,
    /// Not known.
    Unknown,
}

/// Commands that [`Command`] does not tell apart.
const OTHERS: [&[u8]; 3] = [b"version", b"flush_all", b"quit"];

impl Dialect for Memcached {
    type Frame = RequestFrame;
    type Store = Items;
    type Request<'a> = Command<'a>;

    const APPLICATION: Application = Application::Memcached;
    const OPERATIONS: &'static [&'static str] = Operation::VARIANTS;
    const ORDERED: bool = true;

    fn frame() -> RequestFrame {
        RequestFrame::new(LONGEST)
    }

    fn store(keeps_former: bool) -> Items {
        Store::new(keeps_former)
    }

    fn keys(store: &Items) -> u64 {
        store.len()
    }

    #[inline]
    fn read<'a>(&self, message: &'a [u8]) -> Result<Option<Command<'a>>, String> {
        Command::parse(message).map(Some).map_err(|error| error.to_string())
    }

    #[inline]
    fn asks(request: &Command<'_>) -> Asks {
        let operation = match request {
            Command::Get { .. } => Operation::Get,
            Command::Store { how, .. } => match how {
                How::Set => Operation::Set,
                How::Add => Operation::Add,
                How::Replace => Operation::Replace,
                How::Append | How::Prepend => Operation::Append,
                How::Cas(_) => Operation::Cas,
            },
            Command::Delete { .. } => Operation::Delete,
            Command::Count { .. } => Operation::Incr,
            Command::Touch { .. } => Operation::Touch,
            Command::Other(name) if OTHERS.contains(name) => Operation::Connection,
            Command::Other(_) => Operation::Unknown,
        };
        Asks { operation: operation as usize, of_keys: (operation as usize) < Operation::Connection as usize }
    }

    #[inline]
    fn respond(&mut self, request: Command<'_>, context: Context<'_, Memcached>, out: &mut Vec<u8>) -> Answered {
        let Context { store, now, wrong_reply, .. } = context;
        let start = out.len();
        let mut answered = Answered::default();
        match request {
            Command::Get { keys, cas } => answered = get(store, now, wrong_reply, (keys, cas), out),
            Command::Store { how, key, flags, expiry, data, .. } => {
                let (reply, lied) = put(store, now, wrong_reply, (how, key), (flags, expiry, data));
                say(reply, out);
                (answered.value_in, answered.lied) = (data.len(), lied);
            }
            Command::Delete { key, .. } => {
                let (mut shard, hash) = store.lock(key);
                let lose = wrong_reply == Some(WrongReply::Lose);
                let was_there = shard.remove_unless(lose, hash, key, now).is_some();
                say(if was_there { Reply::Deleted } else { Reply::NotFound }, out);
                answered.lied = lose && was_there;
            }
            Command::Count { key, by, down, .. } => say(count(store, now, key, by, down), out),
            Command::Touch { key, expiry, .. } => {
                let (mut shard, hash) = store.lock(key);
                let found = shard.get(hash, key, now).map(|record| record.expires = expires(expiry, now));
                say(if found.is_some() { Reply::Touched } else { Reply::NotFound }, out);
            }
            Command::Other(b"version") => say(Reply::Version(SERVER_VERSION), out),
            Command::Other(b"flush_all") => {
                store.clear();
                say(Reply::Ok, out);
            }
            Command::Other(b"quit") => answered.close = true,
            Command::Other(_) => say(Reply::Error, out),
        }
        if is_quiet(&request) {
            out.truncate(start);
        }
        answered
    }

    fn busy(&self, request: Command<'_>, out: &mut Vec<u8>) {
        if !is_quiet(&request) {
            say(Reply::ServerError(b"busy, as the origin was told to be"), out);
        }
    }

    fn malformed(&self, why: &str, out: &mut Vec<u8>) {
        say(Reply::ClientError(why.as_bytes()), out);
    }
}

/// Whether no reply is wanted.
#[inline]
fn is_quiet(request: &Command<'_>) -> bool {
    match *request {
        Command::Store { quiet, .. }
        | Command::Delete { quiet, .. }
        | Command::Count { quiet, .. }
        | Command::Touch { quiet, .. } => quiet,
        Command::Get { .. } | Command::Other(_) => false,
    }
}

/// Appends a reply.
#[inline]
fn say(reply: Reply<'_>, out: &mut Vec<u8>) {
    // No text of this module has a line end, and keys were read.
    let _ = reply.encode(out);
}

/// The values of keys, and their versions if they are asked for.
#[inline]
fn get(
    store: &Items,
    now: Now,
    wrong_reply: Option<WrongReply>,
    (keys, cas): (Words<'_>, bool),
    out: &mut Vec<u8>,
) -> Answered {
    let mut answered = Answered { hit: Some(false), ..Answered::default() };
    for key in keys {
        let (mut shard, hash) = store.lock(key);
        let (found, lied) = shard.read(hash, key, now, wrong_reply == Some(WrongReply::Stale));
        answered.lied |= lied;
        let Some(Record { value, meta, .. }) = found else { continue };
        say(Reply::Value { key, flags: meta.flags, cas: cas.then_some(meta.version), data: value }, out);
        answered.hit = Some(true);
        answered.value_out += value.len();
    }
    say(Reply::End, out);
    answered
}

/// Writes a value: with its flags, expiry and bytes. Returns whether it lied instead.
#[inline]
fn put(
    store: &Items,
    now: Now,
    wrong_reply: Option<WrongReply>,
    (how, key): (How, &[u8]),
    (flags, expiry, data): (u32, i32, &[u8]),
) -> (Reply<'static>, bool) {
    let (mut shard, hash) = store.lock(key);
    let version = shard.extra + 1;
    let mut item = (Item { flags, version }, expires(expiry, now));
    let joined;
    let mut value = data;
    if how != How::Set {
        let record = shard.get(hash, key, now);
        match (how, record) {
            (How::Add, None) | (How::Replace, Some(_)) => {}
            (How::Cas(version), Some(record)) if record.meta.version == version => {}
            (How::Append | How::Prepend, Some(record)) => {
                item = (Item { version, ..record.meta }, record.expires);
                joined = match how {
                    How::Append => [&record.value, data].concat(),
                    _ => [data, &record.value].concat(),
                };
                value = &joined;
            }
            (How::Cas(_), Some(_)) => return (Reply::Exists, false),
            (How::Cas(_), None) => return (Reply::NotFound, false),
            _ => return (Reply::NotStored, false),
        }
    }
    let lose = wrong_reply == Some(WrongReply::Lose);
    let expires = WrongReply::expires(wrong_reply, item.1, now);
    if !lose {
        shard.extra = version;
        shard.put(hash, key, value, expires, item.0, now);
    }
    (Reply::Stored, lose || expires != item.1)
}

/// Adds to a number, or subtracts from it down to 0.
fn count(store: &Items, now: Now, key: &[u8], by: u64, down: bool) -> Reply<'static> {
    let (mut shard, hash) = store.lock(key);
    let version = shard.extra + 1;
    let Some(record) = shard.get(hash, key, now) else { return Reply::NotFound };
    let Some(number) = std::str::from_utf8(&record.value).ok().and_then(|text| text.parse::<u64>().ok()) else {
        return Reply::ClientError(b"cannot increment or decrement non-numeric value");
    };
    let number = if down { number.saturating_sub(by) } else { number.wrapping_add(by) };
    let (item, expires) = (Item { version, ..record.meta }, record.expires);
    shard.extra = version;
    shard.put(hash, key, number.to_string().as_bytes(), expires, item, now);
    Reply::Number(number)
}

/// When a value expires, ms since 1970.
fn expires(expiry: i32, now: Now) -> u64 {
    match u64::try_from(expiry) {
        Ok(0) => NEVER,
        Ok(s) if expiry > MOST_RELATIVE => s * 1000,
        Ok(s) => now.ms() + s * 1000,
        Err(_) => now.ms(),
    }
}
