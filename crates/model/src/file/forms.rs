//! How values of a suite stand in its file, where that is not how they are held in memory: modules for `#[serde(with)]`.
//! The types of [`crate::suite`] name them. `suite` uses the checks of headers.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::shape::control;
use crate::condition::Condition;
use crate::load::{TlsVersion, chat_request};
use crate::units::{ByteCount, Rate};

/// Oldest and newest version, as a list of both or of the only one.
pub(crate) mod versions {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(range: &(TlsVersion, TlsVersion), serializer: S) -> Result<S::Ok, S::Error> {
        let (oldest, newest) = *range;
        if oldest == newest { vec![oldest] } else { vec![oldest, newest] }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<(TlsVersion, TlsVersion), D::Error> {
        let all = Vec::<TlsVersion>::deserialize(deserializer)?;
        all.iter().min().copied().zip(all.iter().max().copied()).ok_or_else(|| D::Error::custom("no version"))
    }
}

/// Bytes, with a unit.
pub(crate) mod size {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(size: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        size.map(ByteCount).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<ByteCount>::deserialize(deserializer)?.map(|size| size.0))
    }
}

/// 16 hexadecimal digits.
pub(crate) mod hash {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(hash: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        hash.map(|hash| format!("{hash:016x}")).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        let digits = Option::<String>::deserialize(deserializer)?;
        digits.map(|digits| u64::from_str_radix(&digits, 16).map_err(D::Error::custom)).transpose()
    }
}

/// Requests a second.
pub(crate) mod rate {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(rate: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Rate::new(*rate).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Rate::deserialize(deserializer).map(Rate::per_second)
    }
}

/// Conditions in one text.
pub(crate) mod conditions {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(all: &[Condition], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
        Condition::list(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A map in the order written. Headers of one name stand together in it, where its first one stood.
pub(crate) mod headers {
    use serde_json::{Map, Value};

    use super::*;

    pub(crate) fn serialize<S: Serializer>(headers: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
        let mut by_name = Map::new();
        for (name, value) in headers {
            match by_name.get_mut(name) {
                None => drop(by_name.insert(name.clone(), value.as_str().into())),
                Some(Value::Array(values)) => values.push(value.as_str().into()),
                Some(first) => *first = Value::Array(vec![first.take(), value.as_str().into()]),
            }
        }
        by_name.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
        let mut headers = Vec::new();
        for (name, values) in Map::<String, Value>::deserialize(deserializer)? {
            match Values::deserialize(values).map_err(D::Error::custom)? {
                Values::One(value) => headers.push((name, value)),
                Values::Many(values) => headers.extend(values.into_iter().map(|value| (name.clone(), value))),
            }
        }
        Ok(headers)
    }
}

/// One value, or one header for each of several.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Values {
    /// The value.
    One(String),
    /// The values of a header sent several times.
    Many(Vec<String>),
}

/// The body of a request: at most one of these keys.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-weir-one-of" = ["body", "body_bytes", "prompt_bytes", "body_hex"]))]
pub(crate) struct Body {
    /// Body of the request as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-weir-control" = "body_hex for a body with other control characters than line breaks and tabs"))]
    body: Option<String>,
    /// Size of a generated body: the letters a to z, over and over. Not together with `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-weir-positive" = true,
        "maximum" = LARGEST_BODY,
        "x-weir-wanted" = "a size of more than 0 and at most 128MiB, because it is held in memory, such as 11268 or \"16KiB\""
    ))]
    body_bytes: Option<ByteCount>,
    /// The body asks for a stream of completions in OpenAI's format; this is the size of its prompt. Not together with `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-weir-positive" = true,
        "maximum" = LARGEST_BODY,
        "x-weir-wanted" = "a size of more than 0 and at most 128MiB, because it is held in memory, such as 1024 or \"100KiB\""
    ))]
    prompt_bytes: Option<ByteCount>,
    /// Body of the request in hexadecimal, for what is not text, or has control characters. Not together with `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = "^([0-9a-fA-F]{2})+$"),
        extend("x-weir-wanted" = "hexadecimal digits, two a byte, such as \"00ff\"")
    )]
    body_hex: Option<String>,
}

/// Largest generated body, bytes: it is held in memory, once a connection.
const LARGEST_BODY: u64 = 128 << 20;

/// A body as [`Body`]. A long generated one is written as its size; a short one reads better as text.
pub(crate) mod body {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let none = Body::default();
        let written = match std::str::from_utf8(body) {
            _ if body.is_empty() => none,
            Ok(_) if body.len() > 64 && body == generated(body.len()) => {
                Body { body_bytes: Some(ByteCount(body.len() as u64)), ..none }
            }
            Ok(_) if is_chat_request(body) => Body { prompt_bytes: Some(ByteCount(prompt_of(body) as u64)), ..none },
            Ok(text) if control(text).is_none() => Body { body: Some(text.to_owned()), ..none },
            _ => Body { body_hex: Some(body.iter().map(|byte| format!("{byte:02x}")).collect()), ..none },
        };
        written.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let Body { body, body_bytes, prompt_bytes, body_hex } = Body::deserialize(deserializer)?;
        let pairs = |hex: &str| -> Result<Vec<u8>, _> {
            (0..hex.len() / 2).map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2).unwrap_or(""), 16)).collect()
        };
        match (body, body_bytes, prompt_bytes, body_hex) {
            (Some(text), ..) => Ok(text.into_bytes()),
            (_, Some(size), ..) => Ok(generated(size.0 as usize)),
            (_, _, Some(size), _) => Ok(chat_request(size.0 as usize)),
            (.., Some(hex)) => pairs(&hex).map_err(D::Error::custom),
            (None, None, None, None) => Ok(Vec::new()),
        }
    }

    /// Bytes of the prompt, if the body is a chat request.
    fn prompt_of(body: &[u8]) -> usize {
        body.len().saturating_sub(chat_request(0).len())
    }

    fn is_chat_request(body: &[u8]) -> bool {
        prompt_of(body) > 0 && body == chat_request(prompt_of(body))
    }

    fn generated(size: usize) -> Vec<u8> {
        (b'a'..=b'z').cycle().take(size).collect()
    }
}

/// Whether `name` is a token (RFC 9110, section 5.6.2), which a header's name must be.
pub(crate) fn is_token(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

/// Whether `value` may be a header's value (RFC 9110, section 5.5): no control characters but tab, no blanks at its
/// ends, which a receiver would drop.
pub(crate) fn is_field_value(value: &str) -> bool {
    let control = |b: u8| (b < 0x20 && b != b'\t') || b == 0x7f;
    !value.bytes().any(control) && value.trim_matches([' ', '\t']) == value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Request;

    #[test]
    fn repeated_headers_survive_the_way_there_and_back() {
        let headers =
            [("b", "1"), ("a", "2"), ("a", "3"), ("A", "4")].map(|(n, v)| (n.to_owned(), v.to_owned())).into();
        let request = Request { method: "GET".into(), path: "/".into(), headers, body: vec![0xff, 0] };
        let text = serde_json::to_string(&request).expect("JSON");
        assert_eq!(text, r#"{"method":"GET","path":"/","headers":{"b":"1","a":["2","3"],"A":"4"},"body_hex":"ff00"}"#);
        assert_eq!(serde_json::from_str::<Request>(&text).expect("a request"), request);
    }

    #[test]
    fn a_body_is_written_so_that_it_can_be_read_again() {
        let prompt = String::from_utf8(chat_request(3_000)).expect("text");
        for (body, written) in [
            ("a\n\tb", r#""body":"a\n\tb""#),
            ("\r\u{1b}", r#""body_hex":"0d1b""#),
            (&prompt, r#""prompt_bytes":3000"#),
        ] {
            let headers = [].into();
            let request = Request { method: "POST".into(), path: "/".into(), headers, body: body.into() };
            let text = serde_json::to_string(&request).expect("JSON");
            assert!(text.contains(written), "{text}");
            assert_eq!(serde_json::from_str::<Request>(&text).expect("a request"), request);
        }
    }

    #[test]
    fn a_new_line_is_in_no_name_and_no_value() {
        assert!(is_token("x-weir"));
        assert!(is_field_value("*/*") && is_field_value("") && is_field_value("a\tb"));
        for wrong in ["", "a b", "a:", "a\r\nb", "ä"] {
            assert!(!is_token(wrong), "{wrong:?}");
        }
        for wrong in ["a\r\nb: c", "a\nb", "a\0", " a", "a\t"] {
            assert!(!is_field_value(wrong), "{wrong:?}");
        }
    }
}
