//! Reading and writing a request.

use super::frame::split;
use super::words::{check_key, put, put_all, put_data, put_number, put_seconds};
use super::{EncodeError, ParseError, Words};

/// A request. Keys and values borrow from the message. Times are seconds from now, or since 1970 if they are longer than
/// 30 days; 0: for ever; below 0: over at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// The values of one key or more.
    Get {
        /// Which keys.
        keys: Words<'a>,
        /// With their version numbers (`gets`).
        cas: bool,
    },
    /// Writes a value.
    Store {
        /// When and how.
        how: Store,
        /// Under which key.
        key: &'a [u8],
        /// What comes back with it.
        flags: u32,
        /// How long it lives.
        expiry: i32,
        /// The value.
        data: &'a [u8],
        /// No reply is wanted.
        quiet: bool,
    },
    /// Removes a key.
    Delete {
        /// Which one.
        key: &'a [u8],
        /// No reply is wanted.
        quiet: bool,
    },
    /// Adds to the number that is a key's value, or subtracts from it.
    Count {
        /// Which key.
        key: &'a [u8],
        /// How much.
        by: u64,
        /// Subtracts, and stops at 0.
        down: bool,
        /// No reply is wanted.
        quiet: bool,
    },
    /// Sets how long a key lives.
    Touch {
        /// Which one.
        key: &'a [u8],
        /// How long.
        expiry: i32,
        /// No reply is wanted.
        quiet: bool,
    },
    /// A command that weir does not know, by its name.
    Other(&'a [u8]),
}

/// When and how a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Always.
    Set,
    /// If there is none.
    Add,
    /// If there is one.
    Replace,
    /// Behind the one that there is.
    Append,
    /// Before it.
    Prepend,
    /// If the one that there is has this version number.
    Cas(u64),
}

impl<'a> Command<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// What the peer did wrong, as far as [`super::RequestReader`] did not find it.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Result<Command<'a>, ParseError> {
        const BAD: ParseError = ParseError::BadCommand;
        let (mut words, data) = split(message)?;
        let name = words.needed(BAD)?;
        Ok(match name {
            b"get" | b"gets" => {
                let keys = words;
                words.key(BAD)?;
                while words != Words::default() {
                    words.key(BAD)?;
                }
                Command::Get { keys, cas: name == b"gets" }
            }
            b"set" => Command::store(Store::Set, words, data)?,
            b"add" => Command::store(Store::Add, words, data)?,
            b"replace" => Command::store(Store::Replace, words, data)?,
            b"append" => Command::store(Store::Append, words, data)?,
            b"prepend" => Command::store(Store::Prepend, words, data)?,
            b"cas" => Command::store(Store::Cas(0), words, data)?,
            b"delete" => Command::Delete { key: words.key(BAD)?, quiet: quiet(words)? },
            b"incr" | b"decr" => {
                let (key, by) = (words.key(BAD)?, words.number(BAD)?);
                Command::Count { key, by, down: name == b"decr", quiet: quiet(words)? }
            }
            b"touch" => Command::Touch { key: words.key(BAD)?, expiry: words.seconds(BAD)?, quiet: quiet(words)? },
            _ if is_name(name) => Command::Other(name),
            _ => return Err(BAD),
        })
    }

    #[inline]
    fn store(mut how: Store, mut words: Words<'a>, data: &'a [u8]) -> Result<Command<'a>, ParseError> {
        const BAD: ParseError = ParseError::BadCommand;
        let (key, flags, expiry) = (words.key(BAD)?, words.number(BAD)?, words.seconds(BAD)?);
        words.next();
        if let Store::Cas(version) = &mut how {
            *version = words.number(BAD)?;
        }
        Ok(Command::Store { how, key, flags, expiry, data, quiet: quiet(words)? })
    }

    /// Appends the request.
    ///
    /// # Errors
    /// What cannot be written. `out` is then unchanged.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.check()?;
        match *self {
            Command::Get { keys, cas } => {
                out.extend_from_slice(if cas { b"gets" } else { b"get" });
                put_all(out, keys);
            }
            Command::Store { how, key, flags, expiry, data, quiet } => {
                out.extend_from_slice(how.name());
                put(out, key);
                put_number(out, flags.into());
                put_seconds(out, expiry);
                put_number(out, data.len() as u64);
                if let Store::Cas(version) = how {
                    put_number(out, version);
                }
                put_quiet(out, quiet);
                put_data(out, data);
                return Ok(());
            }
            Command::Delete { key, quiet } => {
                out.extend_from_slice(b"delete");
                put(out, key);
                put_quiet(out, quiet);
            }
            Command::Count { key, by, down, quiet } => {
                out.extend_from_slice(if down { b"decr" } else { b"incr" });
                put(out, key);
                put_number(out, by);
                put_quiet(out, quiet);
            }
            Command::Touch { key, expiry, quiet } => {
                out.extend_from_slice(b"touch");
                put(out, key);
                put_seconds(out, expiry);
                put_quiet(out, quiet);
            }
            Command::Other(name) => out.extend_from_slice(name),
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Whether keys and flags are such.
    #[inline]
    fn check(&self) -> Result<(), EncodeError> {
        match *self {
            Command::Get { keys, .. } => {
                keys.check()?;
                keys.clone().try_for_each(check_key)?;
                keys.clone().next().map(|_| ()).ok_or(EncodeError::BadKey)
            }
            Command::Store { key, .. }
            | Command::Delete { key, .. }
            | Command::Count { key, .. }
            | Command::Touch { key, .. } => check_key(key),
            Command::Other(name) if is_name(name) => Ok(()),
            Command::Other(_) => Err(EncodeError::BadText),
        }
    }
}

impl Store {
    #[inline]
    fn name(self) -> &'static [u8] {
        match self {
            Store::Set => b"set",
            Store::Add => b"add",
            Store::Replace => b"replace",
            Store::Append => b"append",
            Store::Prepend => b"prepend",
            Store::Cas(_) => b"cas",
        }
    }
}

/// Whether a word can be a command's name.
fn is_name(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_')
}

/// Whether a text command says that no reply is wanted. It may have no further words.
#[inline]
fn quiet(mut words: Words<'_>) -> Result<bool, ParseError> {
    match (words.next(), words.next()) {
        (None, _) => Ok(false),
        (Some(b"noreply"), None) => Ok(true),
        _ => Err(ParseError::BadCommand),
    }
}

#[inline]
fn put_quiet(out: &mut Vec<u8>, quiet: bool) {
    if quiet {
        put(out, b"noreply");
    }
}
