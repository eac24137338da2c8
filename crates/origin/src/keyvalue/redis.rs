//! Redis's protocol, as a single server speaks it: the commands that weir's client, `redis-cli`, benchmarks and proxies
//! send. Every password is right, and there is one database.
//!
//! `WAIT` says that as many replicas as it asks for have everything: the origin stands for a server whose replicas are
//! never behind.

use strum::VariantNames as _;
use weir_model::protocol::Application;
use weir_wire::redis::{Command, Condition, Expiry, RequestFrame, Value, Version, Words, encode};

use super::store::{NEVER, Now, Store};
use super::{Answered, Asks, Context, Dialect, WrongReply};

/// The longest request, bytes.
const LONGEST: usize = 32 << 20;
/// What clients are told that the server is.
const SERVER_VERSION: &[u8] = b"7.0.0";

/// The state of a connection.
#[derive(Debug, Default)]
pub(crate) struct Redis {
    version: Version,
}

/// The operation of a command, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
enum Operation {
    Get,
    Set,
    Del,
    Expire,
    Ttl,
    Incr,
    Exists,
    /// Waits for replicas.
    Wait,
    /// Whether the server is there.
    Ping,
    /// About the connection or the server.
    Connection,
    /// Not known.
    Unknown,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    command: Command<'a>,
    operation: Operation,
    message: &'a [u8],
}

/// Commands that [`Command`] does not tell apart.
const OTHERS: [(&str, Operation); 15] = [
    ("mget", Operation::Get),
    ("ttl", Operation::Ttl),
    ("pttl", Operation::Ttl),
    ("exists", Operation::Exists),
    ("select", Operation::Connection),
    ("client", Operation::Connection),
    ("command", Operation::Connection),
    ("config", Operation::Connection),
    ("info", Operation::Connection),
    ("echo", Operation::Connection),
    ("quit", Operation::Connection),
    ("dbsize", Operation::Connection),
    ("flushall", Operation::Connection),
    ("flushdb", Operation::Connection),
    ("readonly", Operation::Connection),
];

impl Dialect for Redis {
    type Frame = RequestFrame;
    type Store = Store<()>;
    type Request<'a> = Request<'a>;

    const APPLICATION: Application = Application::Redis;
    const OPERATIONS: &'static [&'static str] = Operation::VARIANTS;
    const ORDERED: bool = true;

    fn frame() -> RequestFrame {
        RequestFrame::new(LONGEST)
    }

    fn store(keeps_former: bool) -> Store<()> {
        Store::new(keeps_former)
    }

    fn keys(store: &Store<()>) -> u64 {
        store.len()
    }

    #[inline]
    fn read<'a>(&self, message: &'a [u8]) -> Result<Option<Request<'a>>, String> {
        let Some(command) = Command::parse(message).map_err(|error| error.to_string())? else { return Ok(None) };
        let operation = match command {
            Command::Get(_) => Operation::Get,
            Command::Set { .. } => Operation::Set,
            Command::Del(_) => Operation::Del,
            Command::Expire { .. } => Operation::Expire,
            Command::Incr(_) => Operation::Incr,
            Command::Wait { .. } => Operation::Wait,
            Command::Ping(_) => Operation::Ping,
            Command::Hello(_) | Command::Auth(_) => Operation::Connection,
            Command::Other(name) => {
                let known = OTHERS.iter().find(|(other, _)| name.eq_ignore_ascii_case(other.as_bytes()));
                known.map_or(Operation::Unknown, |(_, operation)| *operation)
            }
        };
        Ok(Some(Request { command, operation, message }))
    }

    #[inline]
    fn asks(request: &Request<'_>) -> Asks {
        let operation = request.operation;
        Asks { operation: operation as usize, of_keys: (operation as usize) < Operation::Wait as usize }
    }

    #[inline]
    fn respond(&mut self, request: Request<'_>, context: Context<'_, Redis>, out: &mut Vec<u8>) -> Answered {
        let Context { store, now, wrong_reply, .. } = context;
        match request.command {
            Command::Get(key) => self.get(store, now, wrong_reply, key, out),
            Command::Set { key, value, expiry, condition } => {
                let (mut shard, hash) = store.lock(key);
                let mut answered = Answered { value_in: value.len(), ..Answered::default() };
                let refused = condition
                    .is_some_and(|condition| shard.get(hash, key, now).is_some() != (condition == Condition::Present));
                if refused {
                    encode::null(out, self.version);
                    return answered;
                }
                let lose = wrong_reply == Some(WrongReply::Lose);
                let right = expires(expiry, now);
                let expires = WrongReply::expires(wrong_reply, right, now);
                answered.lied = lose || expires != right;
                if !lose {
                    shard.put(hash, key, value, expires, (), now);
                }
                out.extend_from_slice(encode::OK);
                answered
            }
            Command::Del(keys) => {
                let (mut removed, lose) = (0, wrong_reply == Some(WrongReply::Lose));
                for key in keys.flatten() {
                    let (mut shard, hash) = store.lock(key);
                    removed += i64::from(shard.remove_unless(lose, hash, key, now).is_some());
                }
                encode::integer(out, removed);
                Answered { lied: lose && removed > 0, ..Answered::default() }
            }
            Command::Expire { key, seconds } => {
                let (mut shard, hash) = store.lock(key);
                let found = shard.get(hash, key, now).map(|record| {
                    record.expires = now.ms().saturating_add_signed(seconds.saturating_mul(1000)).min(NEVER - 1);
                });
                encode::integer(out, i64::from(found.is_some()));
                Answered::default()
            }
            Command::Incr(key) => increment(store, now, key, out),
            Command::Wait { replicas, .. } => {
                encode::integer(out, replicas.max(0));
                Answered::default()
            }
            Command::Ping(message) => {
                match message {
                    None => encode::simple(out, b"PONG"),
                    Some(message) => encode::bulk(out, message),
                }
                Answered::default()
            }
            Command::Auth(_) => {
                out.extend_from_slice(encode::OK);
                Answered::default()
            }
            Command::Hello(words) => {
                self.hello(words, out);
                Answered::default()
            }
            Command::Other(name) => self.other(name, request.message, store, now, out),
        }
    }

    fn busy(&self, _: Request<'_>, out: &mut Vec<u8>) {
        encode::error(out, b"BUSY the origin was told to be busy");
    }

    fn malformed(&self, why: &str, out: &mut Vec<u8>) {
        encode::error(out, format!("ERR Protocol error: {why}").as_bytes());
    }
}

impl Redis {
    #[inline]
    fn get(
        &self,
        store: &Store<()>,
        now: Now,
        wrong_reply: Option<WrongReply>,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Answered {
        let (mut shard, hash) = store.lock(key);
        let (found, lied) = shard.read(hash, key, now, wrong_reply == Some(WrongReply::Stale));
        match found {
            Some(record) => encode::bulk(out, &record.value),
            None => encode::null(out, self.version),
        }
        let value_out = found.map_or(0, |record| record.value.len());
        Answered { hit: Some(found.is_some()), value_out, lied, ..Answered::default() }
    }

    /// Chooses a version, and says what the server is.
    #[cold]
    fn hello(&mut self, mut words: Words<'_>, out: &mut Vec<u8>) {
        match words.next() {
            None => {}
            Some(Ok(b"2")) => self.version = Version::Resp2,
            Some(Ok(b"3")) => self.version = Version::Resp3,
            _ => return encode::error(out, b"NOPROTO unsupported protocol version"),
        }
        let proto = if self.version == Version::Resp3 { 3 } else { 2 };
        encode::map(out, 7, self.version);
        for (name, text) in [("server", &b"redis"[..]), ("version", SERVER_VERSION)] {
            encode::bulk(out, name.as_bytes());
            encode::bulk(out, text);
        }
        for (name, number) in [("proto", proto), ("id", 1)] {
            encode::bulk(out, name.as_bytes());
            encode::integer(out, number);
        }
        for (name, text) in [("mode", "standalone"), ("role", "master")] {
            encode::bulk(out, name.as_bytes());
            encode::bulk(out, text.as_bytes());
        }
        encode::bulk(out, b"modules");
        encode::header(out, b'*', 0);
    }

    /// The commands of [`OTHERS`], and those that nobody knows.
    #[cold]
    fn other(&self, name: &[u8], message: &[u8], store: &Store<()>, now: Now, out: &mut Vec<u8>) -> Answered {
        let lower = name.to_ascii_lowercase();
        let words = words(message);
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        let mut answered = Answered::default();
        match (lower.as_slice(), words.len()) {
            (b"ttl", 2) => {
                encode::integer(out, time_left(store, now, word(1)).map_or_else(|code| code, |ms| (ms + 500) / 1000))
            }
            (b"pttl", 2) => encode::integer(out, time_left(store, now, word(1)).unwrap_or_else(|code| code)),
            (b"exists", 2..) => {
                let there = |key: &&&[u8]| {
                    let (mut shard, hash) = store.lock(key);
                    shard.get(hash, key, now).is_some()
                };
                encode::integer(out, words[1..].iter().filter(there).count() as i64);
            }
            (b"mget", 2..) => {
                encode::header(out, b'*', words.len() - 1);
                for key in &words[1..] {
                    answered.value_out += self.get(store, now, None, key, out).value_out;
                }
            }
            (b"command", _) => encode::header(out, b'*', 0),
            (b"config", 3) => {
                encode::map(out, 1, self.version);
                encode::bulk(out, word(2));
                encode::bulk(out, b"");
            }
            (b"client", 2..) if word(1).eq_ignore_ascii_case(b"id") => encode::integer(out, 1),
            (b"client", 2..) if word(1).eq_ignore_ascii_case(b"getname") => encode::null(out, self.version),
            (b"info", _) => {
                let info = format!(
                    "# Server\r\nredis_version:{}\r\nredis_mode:standalone\r\n# Replication\r\nrole:master\r\n\
                     # Keyspace\r\ndb0:keys={},expires=0,avg_ttl=0\r\n",
                    String::from_utf8_lossy(SERVER_VERSION),
                    store.len()
                );
                encode::bulk(out, info.as_bytes());
            }
            (b"echo", 2) => encode::bulk(out, word(1)),
            (b"dbsize", 1) => encode::integer(out, store.len() as i64),
            (b"flushall" | b"flushdb", _) => {
                store.clear();
                out.extend_from_slice(encode::OK);
            }
            (b"quit", _) => {
                out.extend_from_slice(encode::OK);
                answered.close = true;
            }
            (b"select", 2) if word(1) != b"0" => encode::error(out, b"ERR DB index is out of range"),
            (b"select", 2) | (b"client", 2..) | (b"readonly", 1) => out.extend_from_slice(encode::OK),
            _ => refuse(name, &lower, out),
        }
        answered
    }
}

/// A command that is not known, or not with such arguments.
fn refuse(name: &[u8], lower: &[u8], out: &mut Vec<u8>) {
    const KNOWN: [&[u8]; 9] = [b"get", b"set", b"del", b"expire", b"incr", b"ping", b"wait", b"hello", b"auth"];
    let known = KNOWN.contains(&lower) || OTHERS.iter().any(|(other, _)| other.as_bytes() == lower);
    let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
    let text = match known {
        true => format!("ERR wrong arguments for '{name}'"),
        false => format!("ERR unknown command '{name}'"),
    };
    encode::error(out, text.as_bytes());
}

/// The words of a request, with its name. Of an inline one, too.
fn words(message: &[u8]) -> Vec<&[u8]> {
    match message.first() {
        Some(b'*') => {
            let Ok(Value::Array(items)) = Value::parse(message) else { return Vec::new() };
            let word = |value| match value {
                Ok(Value::Bulk(word)) => word,
                _ => &[],
            };
            items.map(word).collect()
        }
        _ => message.trim_ascii().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect(),
    }
}

fn expires(expiry: Option<Expiry>, now: Now) -> u64 {
    let lives = match expiry {
        None => return NEVER,
        Some(Expiry::Seconds(s)) => s.saturating_mul(1000),
        Some(Expiry::Milliseconds(ms)) => ms,
    };
    now.ms().saturating_add(lives).min(NEVER - 1)
}

/// How long a key lives, ms; or the code that says why there is no such time.
fn time_left(store: &Store<()>, now: Now, key: &[u8]) -> Result<i64, i64> {
    let (mut shard, hash) = store.lock(key);
    match shard.get(hash, key, now).map(|record| record.expires) {
        None => Err(-2),
        Some(NEVER) => Err(-1),
        Some(expires) => Ok(i64::try_from(expires - now.ms()).unwrap_or(i64::MAX)),
    }
}

fn increment(store: &Store<()>, now: Now, key: &[u8], out: &mut Vec<u8>) -> Answered {
    let (mut shard, hash) = store.lock(key);
    let (value, expires) =
        shard.get(hash, key, now).map_or((&b"0"[..], NEVER), |record| (&record.value, record.expires));
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
    match number.and_then(|number| number.checked_add(1)) {
        Some(number) => {
            shard.put(hash, key, number.to_string().as_bytes(), expires, (), now);
            encode::integer(out, number);
        }
        None => encode::error(out, b"ERR value is not an integer or out of range"),
    }
    Answered::default()
}
