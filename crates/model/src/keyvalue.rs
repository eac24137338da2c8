//! What is asked of a key-value server: operations, keys and values. Suites (`[workload.keyvalue]`), `weir load` and the
//! request to the load generator hold the same [`KeyValue`]. It knows neither bytes nor servers.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::protocol::{Application, Protocol};
use crate::text::one_of;
use crate::units::{self, ByteCount, HumanDuration, UnitError, serde_as_text};

/// The least length of a value, bytes: a hash, the key's number and a version stand in it, so that each read is checked.
pub const LEAST_VALUE: u64 = 20;

/// The longest value, bytes. It is held in memory.
pub const LONGEST_VALUE: u64 = 16 << 20;

/// What is asked of a key-value server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyValue {
    /// What each connection does, in turn, over and over: `C:1,G:3` is one create and three gets. C create, G get, U update,
    /// S set, D destroy, or their whole names.
    #[schemars(
        with = "String",
        extend("x-weir-unit" = "operations", "x-weir-wanted" = "operations and how often each comes, such as \"C:1,G:3\"")
    )]
    pub operations: Mix,
    /// Length of the values that are written: `2000`, one of several (`2000,4500`), or any in a range (`100..4000`).
    #[schemars(
        with = "ValueText",
        extend("x-weir-unit" = "value size", "x-weir-wanted" = "a length such as 2000, or \"2000,4500\" or \"100..4000\"")
    )]
    pub value: ValueSize,
    /// How long a written value lives. Left out, for ever, or as long as the server likes.
    #[serde(default, with = "units::human::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HumanDuration>", extend("x-weir-positive" = true))]
    pub ttl: Option<Duration>,
    /// Which keys: `fresh` (each create makes a new one, and the others take one of those that the connection made), or of a
    /// known set `sequential`, `uniform` or `zipf:0.99`.
    #[serde(default)]
    #[schemars(
        with = "Option<String>",
        extend("x-weir-unit" = "keys", "x-weir-wanted" = "fresh, sequential, uniform or zipf:S, such as \"zipf:0.99\"")
    )]
    pub keys: KeyChoice,
    /// How many keys the known set has.
    #[schemars(range(min = 1))]
    pub key_count: Option<u64>,
    /// How many keys are written before the load begins.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub preload: u64,
    /// All connections use all keys. A read is then checked for being whole and of its key, not for being the latest; otherwise
    /// each key belongs to one connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub share: bool,
    /// Replicas that have to have a write before it counts as answered (`WAIT`), where the protocol has that.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub replicas: u32,
}

/// How [`ValueSize`] stands in a file.
#[derive(JsonSchema)]
#[schemars(inline, extend("type" = ["integer", "string"]))]
struct ValueText;

impl Default for KeyValue {
    /// One set and one get of fresh keys, values of 100 bytes.
    fn default() -> KeyValue {
        KeyValue {
            operations: Mix(vec![(Operation::Set, 1), (Operation::Get, 1)]),
            value: ValueSize::Fixed(100),
            ttl: None,
            keys: KeyChoice::Fresh,
            key_count: None,
            preload: 0,
            share: false,
            replicas: 0,
        }
    }
}

impl KeyValue {
    /// How many keys the known set has: `key_count`, or else what is preloaded. 0: keys are fresh.
    pub fn known(&self) -> u64 {
        match self.keys {
            KeyChoice::Fresh => 0,
            _ => self.key_count.unwrap_or(self.preload),
        }
    }

    /// What makes no sense over a protocol: the key, what was found, and what would be right.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, protocol: Protocol) -> Result<(), (&'static str, String, String)> {
        let wrong = |key, found: String, wanted: &str| Err((key, found, wanted.to_owned()));
        let (most_value, most_ttl) = protocol.limits().unwrap_or((LONGEST_VALUE, u64::MAX));
        let (least, longest) = self.value.range();
        if least < LEAST_VALUE || longest > most_value {
            let wanted = format!("{LEAST_VALUE} to {most_value} bytes: a value holds a hash, its key and a version");
            return wrong("value", format!("values of {}", self.value), &wanted);
        }
        if let Some(ttl) = self.ttl.filter(|ttl| ttl.as_secs() > most_ttl || ttl.as_secs() == 0) {
            let wanted = match protocol.limits() {
                Some((_, most)) => format!("1s to {most}s, the most that {} allows", protocol.title()),
                None => "1s or more".to_owned(),
            };
            return wrong("ttl", format!("{} to live", HumanDuration(ttl)), &wanted);
        }
        let writes = self.operations.0.iter().any(|(operation, _)| operation.creates());
        if !writes && self.preload == 0 {
            let found = format!("{} reads an empty store", self.operations);
            return wrong("operations", found, "a create or a set among the operations, or keys to preload");
        }
        if self.replicas > 0 && !protocol.has_replicas() {
            let found = format!("{} replicas to wait for", self.replicas);
            return wrong("replicas", found, "0, because the protocol has no such request");
        }
        match self.keys {
            KeyChoice::Fresh if self.share => wrong(
                "share",
                "fresh keys are of the connection that made them".into(),
                "sequential, uniform or zipf keys with it",
            ),
            KeyChoice::Fresh if self.key_count.is_some() => {
                wrong("key_count", "fresh keys are no known set".into(), "sequential, uniform or zipf keys with it")
            }
            KeyChoice::Fresh => Ok(()),
            _ if self.known() == 0 => wrong("keys", format!("{} of no known set", self.keys), "key_count, or preload"),
            _ if self.preload > self.known() => {
                let found = format!("{} keys to preload, and a set of {}", self.preload, self.known());
                wrong("preload", found, "at most as many as the set has")
            }
            _ => Ok(()),
        }
    }
}

/// By how much a server may end the life of a value at another time than the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolution {
    /// Too early.
    pub early: Duration,
    /// Too late.
    pub late: Duration,
}

impl Resolution {
    /// The resolution of a protocol, for values that live so long. Redis has seconds (`EX`) and milliseconds (`PX`), and the
    /// latter are sent for what is no whole number of seconds. JunoDB compares whole seconds of the wall clock. Memcached has seconds,
    /// and a clock that moves once a second, or later where the server is busy.
    pub fn of(application: Application, ttl: Duration) -> Resolution {
        let alike = |ms| Resolution { early: Duration::from_millis(ms), late: Duration::from_millis(ms) };
        match application {
            Application::Redis if ttl.subsec_nanos() != 0 => alike(1),
            Application::Memcached => Resolution { late: Duration::from_secs(2), ..alike(1_000) },
            _ => alike(1_000),
        }
    }
}

/// What is done with a key.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Operation {
    /// Writes a key that is not there.
    Create,
    /// Reads.
    Get,
    /// Writes a key that is there.
    Update,
    /// Writes.
    Set,
    /// Removes.
    Destroy,
}

impl Operation {
    /// The name used in files and tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether a key can come to be by it.
    pub fn creates(self) -> bool {
        matches!(self, Operation::Create | Operation::Set)
    }

    /// Whether it writes a value.
    pub fn writes(self) -> bool {
        !matches!(self, Operation::Get | Operation::Destroy)
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Operation, String> {
        let lower = text.to_ascii_lowercase();
        let is = |operation: &Operation| operation.as_str() == lower || lower == operation.as_str()[..1];
        Operation::VARIANTS.iter().copied().find(is).ok_or_else(|| {
            format!("{text:?} is no operation; expected: {}", one_of(Operation::VARIANTS.iter().map(|o| o.as_str())))
        })
    }
}

/// Operations and how often each comes, in the order in which they come. As text: `C:10,G:30,D:5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix(pub Vec<(Operation, u32)>);

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (operation, weight)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}:{weight}", operation.as_str())?;
        }
        Ok(())
    }
}

/// More of one operation in a row are taken for a typing error.
const LARGEST_WEIGHT: u32 = 1_000_000;

impl FromStr for Mix {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Mix, UnitError> {
        let wrong = |found: String| UnitError {
            found,
            wanted: "operations and how often each comes in a row, such as C:1,G:3 or set:1,get:3".to_owned(),
        };
        let mut mix: Vec<(Operation, u32)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
            let operation: Operation = name.trim().parse().map_err(|_| wrong(format!("{name:?} is no operation")))?;
            let weight = weight.trim().parse().ok().filter(|weight| (1..=LARGEST_WEIGHT).contains(weight));
            let weight = weight.ok_or_else(|| wrong(format!("{part:?} has no number from 1 to {LARGEST_WEIGHT}")))?;
            if mix.iter().any(|(other, _)| *other == operation) {
                return Err(wrong(format!("{} comes twice", operation.as_str())));
            }
            mix.push((operation, weight));
        }
        Ok(Mix(mix))
    }
}

serde_as_text!(Mix);

/// Length of values, bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSize {
    /// Always the same.
    Fixed(u64),
    /// One of these, alike. At least two.
    Choice(Vec<u64>),
    /// Anything between two lengths, both included, alike.
    Uniform(u64, u64),
}

impl ValueSize {
    /// The shortest and the longest.
    pub fn range(&self) -> (u64, u64) {
        match self {
            ValueSize::Fixed(size) => (*size, *size),
            ValueSize::Choice(sizes) => {
                (sizes.iter().copied().min().unwrap_or(0), sizes.iter().copied().max().unwrap_or(0))
            }
            ValueSize::Uniform(from, to) => (*from, *to),
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        match self {
            ValueSize::Fixed(size) => *size as f64,
            ValueSize::Choice(sizes) => sizes.iter().sum::<u64>() as f64 / sizes.len().max(1) as f64,
            ValueSize::Uniform(from, to) => (from + to) as f64 / 2.0,
        }
    }

    /// The length for a number drawn from all of `u64`.
    #[inline]
    pub fn at(&self, random: u64) -> u64 {
        match self {
            ValueSize::Fixed(size) => *size,
            ValueSize::Choice(sizes) => sizes[below(random, sizes.len() as u64) as usize],
            ValueSize::Uniform(from, to) => from + below(random, to - from + 1),
        }
    }
}

/// A number below `bound`, all alike, for one drawn from all of `u64`.
#[inline]
pub fn below(random: u64, bound: u64) -> u64 {
    // The high half of the product is uniform below the bound.
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

impl fmt::Display for ValueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueSize::Fixed(size) => ByteCount(*size).fmt(f),
            ValueSize::Choice(sizes) => {
                let sizes: Vec<String> = sizes.iter().map(|size| ByteCount(*size).to_string()).collect();
                f.write_str(&sizes.join(","))
            }
            ValueSize::Uniform(from, to) => write!(f, "{}..{}", ByteCount(*from), ByteCount(*to)),
        }
    }
}

impl FromStr for ValueSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<ValueSize, UnitError> {
        let size = |text: &str| -> Result<u64, UnitError> {
            text.trim().parse::<ByteCount>().map(|size| size.0).map_err(|error| UnitError {
                found: error.found,
                wanted: "a length such as 2000 or 2KB, several (2000,4500), or a range (100..4000)".to_owned(),
            })
        };
        if let Some((from, to)) = text.split_once("..") {
            let (from, to) = (size(from)?, size(to)?);
            if from > to {
                let wanted = "the shorter length first, such as 100..4000".to_owned();
                return Err(UnitError { found: format!("{text:?} ends before it begins"), wanted });
            }
            return Ok(ValueSize::Uniform(from, to));
        }
        let mut sizes = text.split(',').map(size).collect::<Result<Vec<u64>, UnitError>>()?;
        match sizes.len() {
            1 => Ok(ValueSize::Fixed(sizes.remove(0))),
            _ => Ok(ValueSize::Choice(sizes)),
        }
    }
}

serde_as_text!(ValueSize);

/// Which keys are used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum KeyChoice {
    /// Each create (or set) makes a key that was never used; the others take one of those that the connection made, alike.
    #[default]
    Fresh,
    /// One after another.
    Sequential,
    /// All alike.
    Uniform,
    /// The k-th with a weight of 1 / k to this power.
    Zipf(f64),
}

impl fmt::Display for KeyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyChoice::Fresh => f.write_str("fresh"),
            KeyChoice::Sequential => f.write_str("sequential"),
            KeyChoice::Uniform => f.write_str("uniform"),
            KeyChoice::Zipf(power) => write!(f, "zipf:{power}"),
        }
    }
}

impl FromStr for KeyChoice {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<KeyChoice, UnitError> {
        let power = |power: &str| power.parse().ok().filter(|power: &f64| *power > 0.0 && *power <= 10.0);
        match text.split_once(':') {
            None if text == "fresh" => Some(KeyChoice::Fresh),
            None if text == "sequential" => Some(KeyChoice::Sequential),
            None if text == "uniform" => Some(KeyChoice::Uniform),
            Some(("zipf", s)) => power(s).map(KeyChoice::Zipf),
            _ => None,
        }
        .ok_or_else(|| UnitError {
            found: format!("{text:?} is no choice of keys"),
            wanted: "fresh, sequential, uniform, or zipf:S with S above 0 and at most 10, such as zipf:0.99".to_owned(),
        })
    }
}

serde_as_text!(KeyChoice);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_written_as_they_are_read() {
        for text in ["create:1,set:1,get:1,update:1,destroy:1", "set:1,get:3"] {
            assert_eq!(text.parse::<Mix>().unwrap().to_string(), text);
        }
        let junoload: Mix = "C:10,G:30,D:5".parse().unwrap();
        assert_eq!(junoload.0, [(Operation::Create, 10), (Operation::Get, 30), (Operation::Destroy, 5)]);
        for text in ["fresh", "sequential", "uniform", "zipf:0.99"] {
            assert_eq!(text.parse::<KeyChoice>().unwrap().to_string(), text);
        }
        for (text, size) in [
            ("2000", ValueSize::Fixed(2000)),
            ("2000,4500", ValueSize::Choice(vec![2000, 4500])),
            ("100..4000", ValueSize::Uniform(100, 4000)),
        ] {
            assert_eq!(text.parse::<ValueSize>().unwrap(), size);
            assert_eq!(size.to_string().parse::<ValueSize>().unwrap(), size);
        }
    }

    #[test]
    fn wrong_texts_say_what_would_be_right() {
        for (text, part) in
            [("X:1", "\"X\" is no operation"), ("C:0", "from 1"), ("C:1,create:2", "twice"), ("", "no operation")]
        {
            let error = text.parse::<Mix>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("expected"), "{text}: {error}");
        }
        for text in ["zipf", "zipf:0", "zipf:x", "all"] {
            assert!(text.parse::<KeyChoice>().unwrap_err().to_string().contains("zipf:0.99"), "{text}");
        }
        for text in ["x", "5..1", "1,x"] {
            assert!(text.parse::<ValueSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn contradictions_are_found() {
        type Change = fn(&mut KeyValue);
        let cases: [(Change, &str, &str); 10] = [
            (|k| k.value = ValueSize::Fixed(19), "value", "20 to"),
            (|k| k.value = ValueSize::Uniform(20, 204_801), "value", "to 204800 bytes"),
            (|k| k.ttl = Some(Duration::from_secs(259_201)), "ttl", "259200s"),
            (|k| k.ttl = Some(Duration::from_millis(900)), "ttl", "1s to"),
            (|k| k.operations = "G:1".parse().unwrap(), "operations", "preload"),
            (|k| k.replicas = 1, "replicas", "no such request"),
            (|k| k.share = true, "share", "uniform"),
            (|k| k.key_count = Some(1), "key_count", "uniform"),
            (|k| k.keys = KeyChoice::Uniform, "keys", "key_count"),
            (|k| (k.keys, k.key_count, k.preload) = (KeyChoice::Uniform, Some(5), 6), "preload", "at most as many"),
        ];
        assert_eq!(KeyValue::default().check(Protocol::Juno), Ok(()));
        for (change, key, part) in cases {
            let mut keyvalue = KeyValue::default();
            change(&mut keyvalue);
            let (found_key, _, wanted) = keyvalue.check(Protocol::Juno).unwrap_err();
            assert_eq!(found_key, key);
            assert!(wanted.contains(part), "{wanted}");
        }
    }

    proptest! {
        #[test]
        fn lengths_stay_in_their_range(random: u64, from in 0u64..5000, more in 0u64..5000) {
            let size = ValueSize::Uniform(from, from + more);
            prop_assert!((from..=from + more).contains(&size.at(random)));
            let choice = ValueSize::Choice(vec![from, from + more, 7]);
            prop_assert!([from, from + more, 7].contains(&choice.at(random)));
        }
    }
}
