//! Durations, counts, sizes, rates, shares and CPU lists as people write them (`10ms`, `20k`, `1KiB`, `5000/s`, `0.1 %`, `0-3`). Suite files and flags
//! are parsed with these types. `FromStr` reads what `Display` writes as exactly the same value, and Serde uses the
//! same text; rounded text for people is in [`text`](crate::text). The errors say what was found and what would be
//! right. The caller adds the file, line and key.

pub(crate) mod bits;
pub(crate) mod bytes;
mod count;
mod cpus;
pub(crate) mod duration;
mod number;
pub(crate) mod rate;
pub(crate) mod share;

pub use bits::BitRate;
pub use bytes::ByteCount;
pub use count::Count;
pub use cpus::CpuList;
pub use duration::HumanDuration;
pub use rate::Rate;
pub use share::Share;

/// The error for a text that is not the expected quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}; expected: {wanted}")]
pub struct UnitError {
    /// What was found, such as `"10" has no unit`.
    pub found: String,
    /// What would be right.
    pub wanted: String,
}

impl UnitError {
    fn new(found: impl Into<String>, wanted: &str) -> Self {
        UnitError { found: found.into(), wanted: wanted.to_owned() }
    }
}

/// Serde by way of `Display` and `FromStr`.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        $crate::units::deserialize_from_text!($type);
    };
}
pub(crate) use serde_as_text;

/// The reading half of [`serde_as_text`]; numbers are read as the text that they are written as.
macro_rules! deserialize_from_text {
    ($type:ty) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = <serde_json::Value as serde::Deserialize<'de>>::deserialize(deserializer)?;
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use deserialize_from_text;

/// For `#[serde(with)]`: a [`Duration`](std::time::Duration) as a [`HumanDuration`].
pub(crate) mod human {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::HumanDuration;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        HumanDuration(*time).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        HumanDuration::deserialize(deserializer).map(Duration::from)
    }

    pub(crate) mod option {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
            time.map(HumanDuration).serialize(serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<HumanDuration>::deserialize(deserializer)?.map(Duration::from))
        }
    }
}
