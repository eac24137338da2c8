//! Reading a request that is whole: the commands that weir's load sends and its origin answers.

use super::ParseError;
use super::value::{Items, Value};

/// A request. Keys and values borrow from the message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Command<'a> {
    /// The value of a key.
    Get(&'a [u8]),
    /// Stores a value.
    Set {
        /// Under which key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// For how long.
        expiry: Option<Expiry>,
        /// Only if.
        condition: Option<Condition>,
    },
    /// Removes one key or more.
    Del(Words<'a>),
    /// Sets how long a key lives.
    Expire {
        /// Which key.
        key: &'a [u8],
        /// How long from now, s; below 1: not at all.
        seconds: i64,
    },
    /// Adds one to a key's number.
    Incr(&'a [u8]),
    /// Chooses the protocol's version, or asks for it.
    Hello(Words<'a>),
    /// User (optional) and password.
    Auth(Words<'a>),
    /// Whether the server is there; it sends the message back, if there is one.
    Ping(Option<&'a [u8]>),
    /// Waits until so many replicas have all that was written on this connection, or so many milliseconds are over.
    Wait {
        /// How many.
        replicas: i64,
        /// For how long, ms; 0: for ever.
        timeout: i64,
    },
    /// A command that weir does not know, or one with arguments that it does not know; its name as sent.
    Other(&'a [u8]),
}

/// How long a value lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// `EX`, s.
    Seconds(u64),
    /// `PX`, ms.
    Milliseconds(u64),
}

/// When a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// `NX`: only if there is no such key.
    Absent,
    /// `XX`: only if there is one.
    Present,
}

impl<'a> Command<'a> {
    /// Reads a request; `None`: an empty line or an empty array, which servers pass over.
    ///
    /// # Errors
    /// What the peer did wrong, as far as [`super::RequestReader`] did not find it.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Result<Option<Command<'a>>, ParseError> {
        let mut words = Words::of(message)?;
        let Some(name) = words.next().transpose()? else { return Ok(None) };
        Ok(Some(Command::named(name, words)?.unwrap_or(Command::Other(name))))
    }

    /// `None`: there is no such command, or not with such arguments.
    #[inline]
    fn named(name: &[u8], mut words: Words<'a>) -> Result<Option<Command<'a>>, ParseError> {
        let arguments = words;
        let mut word = || words.next().transpose();
        Ok(match name {
            _ if name.eq_ignore_ascii_case(b"get") => match (word()?, word()?) {
                (Some(key), None) => Some(Command::Get(key)),
                _ => None,
            },
            _ if name.eq_ignore_ascii_case(b"set") => match (word()?, word()?) {
                (Some(key), Some(value)) => Command::set(key, value, words)?,
                _ => None,
            },
            _ if name.eq_ignore_ascii_case(b"del") => word()?.map(|_| Command::Del(arguments)),
            _ if name.eq_ignore_ascii_case(b"expire") => match (word()?, word()?.and_then(number), word()?) {
                (Some(key), Some(seconds), None) => Some(Command::Expire { key, seconds }),
                _ => None,
            },
            _ if name.eq_ignore_ascii_case(b"incr") => match (word()?, word()?) {
                (Some(key), None) => Some(Command::Incr(key)),
                _ => None,
            },
            _ if name.eq_ignore_ascii_case(b"ping") => match (word()?, word()?) {
                (message, None) => Some(Command::Ping(message)),
                _ => None,
            },
            _ if name.eq_ignore_ascii_case(b"wait") => {
                match (word()?.and_then(number), word()?.and_then(number), word()?) {
                    (Some(replicas), Some(timeout), None) => Some(Command::Wait { replicas, timeout }),
                    _ => None,
                }
            }
            _ if name.eq_ignore_ascii_case(b"hello") => Some(Command::Hello(arguments)),
            _ if name.eq_ignore_ascii_case(b"auth") => Some(Command::Auth(arguments)),
            _ => None,
        })
    }

    /// The options of `SET`; `None`: there are others.
    #[inline]
    fn set(key: &'a [u8], value: &'a [u8], mut words: Words<'a>) -> Result<Option<Command<'a>>, ParseError> {
        let (mut expiry, mut condition) = (None, None);
        while let Some(option) = words.next().transpose()? {
            let unit = match option {
                _ if option.eq_ignore_ascii_case(b"ex") => Expiry::Seconds,
                _ if option.eq_ignore_ascii_case(b"px") => Expiry::Milliseconds,
                _ if option.eq_ignore_ascii_case(b"nx") && condition.is_none() => {
                    condition = Some(Condition::Absent);
                    continue;
                }
                _ if option.eq_ignore_ascii_case(b"xx") && condition.is_none() => {
                    condition = Some(Condition::Present);
                    continue;
                }
                _ => return Ok(None),
            };
            let time = words.next().transpose()?.and_then(number).and_then(|time| u64::try_from(time).ok());
            match time {
                Some(time) if time > 0 && expiry.is_none() => expiry = Some(unit(time)),
                _ => return Ok(None),
            }
        }
        Ok(Some(Command::Set { key, value, expiry, condition }))
    }
}

/// The words of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Words<'a>(Form<'a>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form<'a> {
    /// An array of strings.
    Array(Items<'a>),
    /// An inline request.
    Inline(&'a [u8]),
}

impl<'a> Words<'a> {
    #[inline]
    fn of(message: &'a [u8]) -> Result<Words<'a>, ParseError> {
        Ok(Words(match message.first() {
            Some(b'*') => match Value::parse(message)? {
                Value::Array(items) => Form::Array(items),
                _ => Form::Inline(&[]),
            },
            _ => Form::Inline(message.trim_ascii()),
        }))
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Result<&'a [u8], ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Result<&'a [u8], ParseError>> {
        match &mut self.0 {
            Form::Array(items) => Some(match items.next()? {
                Ok(Value::Bulk(word)) => Ok(word),
                Ok(_) => Err(ParseError::NotACommand),
                Err(error) => Err(error),
            }),
            Form::Inline(line) => {
                if line.is_empty() {
                    return None;
                }
                let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
                let (word, rest) = line.split_at(end);
                *line = rest.trim_ascii_start();
                Some(Ok(word))
            }
        }
    }
}

fn number(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
