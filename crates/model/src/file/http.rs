//! HTTP methods and headers as they are written in `suite.toml`, with their validation.
//! `suite_wire`, `suite` and `suite_write` use them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Methods that a client may send. CONNECT is missing: it makes a tunnel and has no answer to measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "a description of each would turn the schema's list of names into a list of tables")]
pub(super) enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
    Trace,
}

impl Method {
    const ALL: [(Method, &'static str); 8] = [
        (Method::Get, "GET"),
        (Method::Head, "HEAD"),
        (Method::Post, "POST"),
        (Method::Put, "PUT"),
        (Method::Patch, "PATCH"),
        (Method::Delete, "DELETE"),
        (Method::Options, "OPTIONS"),
        (Method::Trace, "TRACE"),
    ];

    pub(super) fn as_str(self) -> &'static str {
        let known = Self::ALL.iter().find(|(method, _)| *method == self);
        known.map_or("GET", |(_, name)| name)
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method)
    }
}

/// Headers in the order written. A map in the file, whose order counts; a list of values repeats the name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Headers(pub Vec<(String, Values)>);

/// One value, or one header for each of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Values {
    /// The value.
    One(String),
    /// The values of a header sent several times.
    Many(Vec<String>),
}

impl Headers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From a flat list. Later headers of a name join its first one; a file cannot say otherwise.
    pub(super) fn from_flat(flat: &[(String, String)]) -> Self {
        let mut headers: Vec<(String, Values)> = Vec::new();
        for (name, value) in flat {
            match headers.iter_mut().find(|(known, _)| known == name) {
                None => headers.push((name.clone(), Values::One(value.clone()))),
                Some((_, Values::Many(values))) => values.push(value.clone()),
                Some((_, values @ Values::One(_))) => {
                    let Values::One(first) = std::mem::replace(values, Values::Many(Vec::new())) else { continue };
                    *values = Values::Many(vec![first, value.clone()]);
                }
            }
        }
        Headers(headers)
    }

    /// As a flat list, in the order sent.
    pub(super) fn to_flat(&self) -> Vec<(String, String)> {
        let mut flat = Vec::new();
        for (name, values) in &self.0 {
            for value in values.as_slice() {
                flat.push((name.clone(), value.clone()));
            }
        }
        flat
    }
}

impl Values {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Many(values) => values,
        }
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, values) in &self.0 {
            map.serialize_entry(name, values)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of headers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    headers.push(entry);
                }
                Ok(Headers(headers))
            }
        }
        deserializer.deserialize_map(Map)
    }
}

impl JsonSchema for Headers {
    fn schema_name() -> Cow<'static, str> {
        "Headers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": generator.subschema_for::<Values>(),
        })
    }
}

/// Whether `name` is a token (RFC 9110, section 5.6.2), which a header's name must be.
pub(super) fn is_token(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

/// Whether `value` may be a header's value (RFC 9110, section 5.5): no control characters but tab, no blanks at its
/// ends, which a receiver would drop.
pub(super) fn is_field_value(value: &str) -> bool {
    let control = |b: u8| (b < 0x20 && b != b'\t') || b == 0x7f;
    !value.bytes().any(control) && value.trim_matches([' ', '\t']) == value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_headers_survive_the_way_there_and_back() {
        let flat = [("b", "1"), ("a", "2"), ("a", "3"), ("A", "4")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(Headers::from_flat(&flat).to_flat(), flat);
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

    #[test]
    fn every_method_has_the_name_that_serde_gives_it() {
        for (method, name) in Method::ALL {
            assert_eq!(serde_json::to_value(method).expect("a text"), name);
            assert_eq!(Method::from_name(name), Some(method));
            assert_eq!(method.as_str(), name);
        }
    }
}
