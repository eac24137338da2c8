//! Content codings (RFC 9110, section 8.4): how the body of a response may be coded, where a client says that it accepts that. Suites
//! and `weir load` name them, the client decodes them, and the origin codes with them. This module knows their names alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// A content coding.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum Coding {
    /// gzip (RFC 1952).
    Gzip,
}

impl Coding {
    /// All codings.
    pub const ALL: &[Coding] = &[Coding::Gzip];

    /// The name in headers and files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The coding that a value of `Content-Encoding` names; `None` for others and for several.
    pub fn named(value: &[u8]) -> Option<Coding> {
        Coding::ALL.iter().copied().find(|coding| value.eq_ignore_ascii_case(coding.as_str().as_bytes()))
    }

    /// Whether a value of `Accept-Encoding` lists it without `q=0`, or any coding by `*`.
    pub fn is_accepted(self, value: &[u8]) -> bool {
        value.split(|byte| *byte == b',').any(|one| {
            let mut parts = one.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            let named = name == b"*" || name.eq_ignore_ascii_case(self.as_str().as_bytes());
            let weight = parts.find_map(|part| part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q=")));
            named && weight.is_none_or(|weight| weight.iter().any(|digit| matches!(digit, b'1'..=b'9')))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_is_known_by_its_name_alone() {
        assert_eq!(Coding::named(b"gzip"), Some(Coding::Gzip));
        assert_eq!(Coding::named(b"GZIP"), Some(Coding::Gzip));
        for other in [&b"br"[..], b"gzip, br", b"", b"identity"] {
            assert_eq!(Coding::named(other), None, "{other:?}");
        }
        assert_eq!("gzip".parse(), Ok(Coding::Gzip));
        assert!("br".parse::<Coding>().is_err());
    }

    #[test]
    fn what_a_client_accepts_is_listed_with_weights() {
        for yes in ["gzip", "br, gzip", "deflate,GZIP;q=0.5", "*", "gzip ; q=1.0", "br;q=0, *;q=0.001"] {
            assert!(Coding::Gzip.is_accepted(yes.as_bytes()), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.0", "identity, xgzip", "*;q=0"] {
            assert!(!Coding::Gzip.is_accepted(no.as_bytes()), "{no}");
        }
    }
}
