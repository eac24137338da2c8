//! Checks a file against its JSON schema: unknown and missing keys, types, units, patterns and ranges.
//! `suite` and `product` call it. It supports the part of JSON Schema that our types generate, and extensions:
//! with `x-weir-unit` the parser of the unit reads the text, because its message is better than that of a pattern;
//! `x-weir-wanted` says in words what is expected, and `x-weir-control` what is instead of control characters; of the keys in `x-weir-one-of` a table has one at most. The module
//! does not know suites or products.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Map, Value as Json, json};
use toml::de::{DeInteger, DeTable, DeValue};

use super::errors::Errors;
use super::locate::{child, item};
use crate::condition::Condition;
use crate::keyvalue::{KeyChoice, Mix, ValueSize};
use crate::text::{list, one_of, suggestion};
use crate::units::{self, BitRate, ByteCount, HumanDuration, Rate, Share, UnitError};

/// Checks a file, and adds to `errors` what is wrong.
///
/// Returns the value without its unknown keys, so that a misspelt key does not hide other errors; `None`
/// when it is too broken to be read further.
pub(super) fn check(file: &DeValue<'_>, schema: &Json, errors: &mut Errors<'_>) -> Option<Json> {
    Checker { errors }.check(file, schema, "")
}

struct Checker<'a, 'e> {
    errors: &'a mut Errors<'e>,
}

/// A key of a table and its value.
type Entry<'v> = (&'v str, &'v DeValue<'v>);

fn entries<'v>(table: &'v DeTable<'v>) -> Vec<Entry<'v>> {
    table.iter().map(|(key, value)| (key.get_ref().as_ref(), value.get_ref())).collect()
}

impl Checker<'_, '_> {
    fn check(&mut self, value: &DeValue<'_>, schema: &Json, path: &str) -> Option<Json> {
        if let (DeValue::Table(table), Some(keys)) = (value, schema["x-weir-one-of"].as_array()) {
            self.only_one(&entries(table), keys, path);
        }
        if let (Some(branches), None) = (branches(schema), choices(schema)) {
            return self.branches(value, schema, branches, path);
        }
        match (value, type_of(schema)) {
            (DeValue::Table(table), "object") => self.table(&entries(table), schema, path),
            (DeValue::Array(items), "array") => self.list(items.iter().map(|item| item.get_ref()), schema, path),
            (DeValue::Table(_) | DeValue::Array(_), _) | (_, "object" | "array") => {
                self.errors.add(path, format!("found {}", in_words(value)), describe_at(path, schema));
                None
            }
            _ => leaf(value, schema).map_err(|UnitError { found, wanted }| self.errors.add(path, found, wanted)).ok(),
        }
    }

    fn only_one(&mut self, entries: &[Entry<'_>], keys: &[Json], path: &str) {
        let keys: Vec<&str> = keys.iter().filter_map(Json::as_str).collect();
        let given: Vec<&str> = entries.iter().map(|(key, _)| *key).filter(|key| keys.contains(key)).collect();
        if let [others @ .., last] = given.as_slice()
            && !others.is_empty()
        {
            let found = format!("stands beside {}", list(others));
            self.errors.add(&child(path, last), found, format!("only one of {}", keys.join(", ")));
        }
    }

    fn branches(&mut self, value: &DeValue<'_>, schema: &Json, branches: &[Json], path: &str) -> Option<Json> {
        let found = if let DeValue::Table(table) = value {
            let entries = entries(table);
            if let Some(tag) = tag_of(branches) {
                return self.tagged(&entries, schema, branches, tag, path);
            }
            // Of several kinds of tables it is the one that has a key of this.
            let branch = branches.iter().find(|branch| entries.iter().any(|(key, _)| has(branch, key)));
            if let Some(branch) = branch {
                let own =
                    branch["properties"].as_object().and_then(|keys| keys.keys().next()).map_or("", String::as_str);
                return self.branch(&entries, branches, branch, own, &|_| describe(schema), path);
            }
            None
        } else {
            branches.iter().find(|branch| may_be(value, branch))
        };
        match found {
            Some(branch) => self.check(value, branch, path),
            None => {
                self.errors.add(path, format!("found {}", in_words(value)), describe(schema));
                None
            }
        }
    }

    /// A table of which the value of one key, the tag, decides which other keys it has.
    fn tagged(
        &mut self,
        entries: &[Entry<'_>],
        schema: &Json,
        branches: &[Json],
        tag: &str,
        path: &str,
    ) -> Option<Json> {
        let constant = |branch: &Json| branch["properties"][tag]["const"].clone();
        let value = entries.iter().find(|(key, _)| *key == tag).and_then(|(_, value)| value.as_str());
        let Some(branch) = branches.iter().find(|branch| value.is_some() && constant(branch).as_str() == value) else {
            // The tag is reported, and the keys that are alike in all branches are checked.
            let first = branches[0]["properties"].as_object()?;
            let alike = |key: &str| branches.iter().all(|branch| branch["properties"][key] == first[key]);
            let mut properties: Map<String, Json> =
                first.iter().filter(|(key, _)| alike(key)).map(|(key, schema)| (key.clone(), schema.clone())).collect();
            properties.insert(tag.to_owned(), json!({ "enum": branches.iter().map(constant).collect::<Vec<_>>() }));
            let of_one = |key: &str| !properties.contains_key(key) && branches.iter().any(|branch| has(branch, key));
            let checked: Vec<Entry<'_>> = entries.iter().filter(|(key, _)| !of_one(key)).copied().collect();
            let required = schema["required"].as_array().cloned().unwrap_or_else(|| vec![tag.into()]);
            self.table(&checked, &json!({ "properties": properties, "required": required }), path);
            return None;
        };
        let wanted = |key: &str| {
            let with = branches.iter().filter(|other| has(other, key));
            let with: Vec<String> = with.map(|other| format!("{tag} = {}", constant(other))).collect();
            format!("{}, or no {key}", with.join(" or "))
        };
        self.branch(entries, branches, branch, &format!("{tag} = {}", constant(branch)), &wanted, path)
    }

    /// A table that is checked against one of several branches, `own` in words. `wanted` says what a key of another needs.
    fn branch(
        &mut self,
        entries: &[Entry<'_>],
        branches: &[Json],
        branch: &Json,
        own: &str,
        wanted: &dyn Fn(&str) -> String,
        path: &str,
    ) -> Option<Json> {
        let of_other = |(key, _): &Entry<'_>| !has(branch, key) && branches.iter().any(|other| has(other, key));
        let (misplaced, own_entries): (Vec<Entry<'_>>, Vec<Entry<'_>>) = entries.iter().copied().partition(of_other);
        for (key, _) in misplaced {
            self.errors.add(&child(path, key), format!("does not go with {own}"), wanted(key));
        }
        self.table(&own_entries, branch, path)
    }

    fn table(&mut self, entries: &[Entry<'_>], schema: &Json, path: &str) -> Option<Json> {
        if (entries.len() as u64) < schema["minProperties"].as_u64().unwrap_or(0) {
            self.errors.add(path, "the table is empty", describe(schema));
            return None;
        }
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        let mut values = Map::new();
        let mut whole = true;
        let mut misspelt = String::new();
        for (key, value) in entries {
            let path = child(path, key);
            if let Some(control) = control(key) {
                let UnitError { found, wanted } = with_control(key, control, &Json::Null);
                self.errors.add(&path, format!("the key {found}"), wanted);
                whole = false;
                continue;
            }
            let Some(schema) = properties.get(*key).or(others) else {
                let near = suggestion(key, properties.keys());
                self.errors.add(&path, format!("unknown key{near}"), one_of(properties.keys()));
                misspelt += &near;
                continue;
            };
            match self.check(value, schema, &path) {
                Some(value) => drop(values.insert((*key).to_owned(), value)),
                None => whole = false,
            }
        }
        for key in required(schema).filter(|required| entries.iter().all(|(key, _)| key != required)) {
            whole = false;
            // A key that is there under a wrong name has its message already.
            if !misspelt.contains(&format!("{key:?}")) {
                let (path, schema) = (child(path, key), &properties[key]);
                self.errors.add(&path, format!("missing{}", purpose(schema)), describe_at(&path, schema));
            }
        }
        whole.then_some(Json::Object(values))
    }

    fn list<'v>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'v DeValue<'v>>,
        schema: &Json,
        path: &str,
    ) -> Option<Json> {
        if (items.len() as u64) < schema["minItems"].as_u64().unwrap_or(0) {
            self.errors.add(path, "the list is empty", format!("at least one: {}", describe(&schema["items"])));
            return None;
        }
        let mut values = Vec::with_capacity(items.len());
        for (index, value) in items.enumerate() {
            let value = self.check(value, &schema["items"], &item(path, index));
            if let (Some(Json::String(text)), true) = (&value, schema["uniqueItems"] == true && values.contains(&value))
            {
                self.errors.add(&item(path, index), format!("{text:?} stands here twice"), "each once");
            }
            values.push(value);
        }
        values.into_iter().collect()
    }
}

fn type_of(schema: &Json) -> &str {
    schema["type"].as_str().unwrap_or_default()
}

fn required(schema: &Json) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str)
}

fn has(branch: &Json, key: &str) -> bool {
    branch["properties"].get(key).is_some()
}

/// The names that a schema of constants allows.
fn choices(schema: &Json) -> Option<Vec<&str>> {
    if let Some(one) = schema.as_str().or_else(|| schema["const"].as_str()) {
        return Some(vec![one]);
    }
    let all = schema["enum"].as_array().or_else(|| branches(schema))?;
    all.iter().map(choices).collect::<Option<Vec<_>>>().map(|all| all.concat())
}

fn branches(schema: &Json) -> Option<&Vec<Json>> {
    schema["oneOf"].as_array().or(schema["anyOf"].as_array())
}

/// The key whose constant tells `branches` apart.
fn tag_of(branches: &[Json]) -> Option<&str> {
    let properties = branches.first()?["properties"].as_object()?;
    let tells_apart =
        |key: &&String| branches.iter().all(|branch| branch["properties"][key.as_str()].get("const").is_some());
    properties.keys().find(tells_apart).map(String::as_str)
}

/// The first control character of a text or key, but for line breaks and tabs. Such texts are shown on terminals, where an escape
/// sequence could write anything anywhere.
pub(super) fn control(text: &str) -> Option<char> {
    text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// What is wrong with a text or key that has the control character.
fn with_control(text: &str, control: char, schema: &Json) -> UnitError {
    let found = format!("{} has the control character U+{:04X}", quoted(text), u32::from(control));
    let wanted = schema["x-weir-control"].as_str().unwrap_or("no control characters but line breaks and tabs");
    UnitError { found, wanted: wanted.to_owned() }
}

/// A value that has no others in it.
fn leaf(value: &DeValue<'_>, schema: &Json) -> Result<Json, UnitError> {
    if let Some((text, control)) = value.as_str().and_then(|text| Some((text, control(text)?))) {
        return Err(with_control(text, control, schema));
    }
    let wrong = |found: String| Err(UnitError { found, wanted: describe(schema) });
    if let (Some(unit), Some(text)) = (schema["x-weir-unit"].as_str(), written(value)) {
        return quantity(&text, unit, schema).map(Json::String);
    }
    if let Some(names) = choices(schema) {
        return match value.as_str() {
            Some(text) if names.contains(&text) => Ok(text.into()),
            text => wrong(format!("found {}{}", in_words(value), suggestion(text.unwrap_or_default(), names))),
        };
    }
    match (value, type_of(schema)) {
        (DeValue::String(text), "string") if text.trim().is_empty() && schema["minLength"].as_u64() > Some(0) => {
            wrong("the text is empty".to_owned())
        }
        (DeValue::String(text), "string") => {
            match schema["pattern"].as_str().is_none_or(|pattern| fits(pattern, text)) {
                true => Ok(text.as_ref().into()),
                false => wrong(format!("found {}", quoted(text))),
            }
        }
        (DeValue::Boolean(flag), "boolean") => Ok((*flag).into()),
        (DeValue::Integer(written), "integer" | "number") => match number(written) {
            None => wrong(format!("{written} is too large")),
            Some(number) if in_range(number.as_f64(), schema) => Ok(number.into()),
            Some(_) => wrong(format!("found the number {written}")),
        },
        (DeValue::Float(_), "number") => match float(value) {
            Some(number) if in_range(Some(number), schema) => Ok(number.into()),
            _ => wrong(format!("found {}", in_words(value))),
        },
        _ => wrong(format!("found {}", in_words(value))),
    }
}

/// Whether a text fits one of the schema's own patterns. Each is compiled once: that takes far longer than a match. The schema's test
/// compiles them all; one that did not compile would refuse everything.
fn fits(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if !compiled.contains_key(pattern) {
        compiled.insert(pattern.to_owned(), Regex::new(pattern).ok());
    }
    compiled[pattern].as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// The number, if 64 bits hold it, signed or not.
fn number(written: &DeInteger<'_>) -> Option<serde_json::Number> {
    let (digits, radix) = (written.as_str(), written.radix());
    i64::from_str_radix(digits, radix).ok().map(Into::into).or(u64::from_str_radix(digits, radix).ok().map(Into::into))
}

fn float(value: &DeValue<'_>) -> Option<f64> {
    value.as_float()?.as_str().parse().ok()
}

fn in_range(number: Option<f64>, schema: &Json) -> bool {
    let Some(number) = number.filter(|number| number.is_finite()) else { return false };
    let fits = |bound: &str, test: fn(f64, f64) -> bool| schema[bound].as_f64().is_none_or(|bound| test(number, bound));
    let width = match schema["format"].as_str() {
        Some("uint32") => f64::from(u32::MAX),
        Some("uint16") => f64::from(u16::MAX),
        _ => f64::INFINITY,
    };
    number <= width
        && fits("minimum", |number, bound| number >= bound)
        && fits("maximum", |number, bound| number <= bound)
        && fits("exclusiveMinimum", |number, bound| number > bound)
}

/// A text or a number, as quantities with a unit are written.
fn written(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(written) => Some(number(written).map_or(written.to_string(), |number| number.to_string())),
        DeValue::Float(_) => float(value).map(|number| number.to_string()),
        _ => None,
    }
}

/// A quantity with a unit, as its own type writes it.
fn quantity(text: &str, unit: &str, schema: &Json) -> Result<String, UnitError> {
    let wrong = |found: String| UnitError { found, wanted: describe(schema) };
    let error = |error: UnitError| wrong(error.found);
    let text = match unit {
        "duration" => text.parse::<HumanDuration>().map_err(error)?.to_string(),
        "bits" => text.parse::<BitRate>().map_err(error)?.to_string(),
        "share" => text.parse::<Share>().map_err(error)?.to_string(),
        "rate" => text.parse::<Rate>().map_err(error)?.to_string(),
        "conditions" => Condition::list(text).map(|_| text.to_owned())?,
        "operations" => text.parse::<Mix>()?.to_string(),
        "value size" => text.parse::<ValueSize>()?.to_string(),
        "keys" => text.parse::<KeyChoice>()?.to_string(),
        _ => {
            let size: ByteCount = text.parse().map_err(error)?;
            if schema["maximum"].as_u64().is_some_and(|most| size.0 > most) {
                return Err(wrong(format!("found {}", quoted(text))));
            }
            size.to_string()
        }
    };
    let zero = schema["x-weir-positive"] == true && text.starts_with('0');
    if zero { Err(wrong(format!("found {text:?}"))) } else { Ok(text) }
}

/// What is expected, in words.
fn describe(schema: &Json) -> String {
    if let Some(words) = schema["x-weir-wanted"].as_str() {
        return words.to_owned();
    }
    if let Some(unit) = schema["x-weir-unit"].as_str() {
        let words = match unit {
            "duration" => units::duration::WANTED,
            "bytes" => units::bytes::WANTED,
            "bits" => units::bits::WANTED,
            "share" => units::share::WANTED,
            _ => units::rate::WANTED,
        };
        let more_than_zero = schema["x-weir-positive"] == Json::Bool(true);
        return if more_than_zero { format!("more than 0: {words}") } else { words.to_owned() };
    }
    if let Some(names) = choices(schema) {
        return one_of(names.iter().map(|name| format!("{name:?}")));
    }
    if let Some(branches) = branches(schema).filter(|_| schema.get("required").is_none()) {
        let words: Vec<String> = branches.iter().map(describe).collect();
        return words.join("; or ");
    }
    match type_of(schema) {
        "object" => describe_table(schema),
        "array" => format!("a list; each item: {}", describe(&schema["items"])),
        "string" => "a text in quotes".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => match (schema["minimum"].as_u64(), schema["format"].as_str()) {
            (Some(least), Some("uint32")) => format!("a whole number from {least} to {}", u32::MAX),
            (Some(least), _) => format!("a whole number of at least {least}"),
            (None, _) => "a whole number".to_owned(),
        },
        _ => "a number".to_owned(),
    }
}

fn describe_table(schema: &Json) -> String {
    let required: Vec<&str> = required(schema).collect();
    if required.is_empty() { "a table".to_owned() } else { format!("a table with {}", required.join(", ")) }
}

/// What is expected at `path`: for sections, the header that begins one.
fn describe_at(path: &str, schema: &Json) -> String {
    let tables = type_of(&schema["items"]) == "object";
    match type_of(schema) {
        // Inside an item of a list, a header would have to repeat the list's own.
        _ if path.contains('[') || schema.get("x-weir-wanted").is_some() => describe(schema),
        "array" if tables => describe_table(&schema["items"]).replacen("a table", &format!("[[{path}]]"), 1),
        "object" => describe_table(schema).replacen("a table", &format!("[{path}]"), 1),
        _ => describe(schema),
    }
}

/// What a key is for: the first sentence of its description, after a full stop. The rest is for editors.
fn purpose(schema: &Json) -> String {
    let about = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
    match about.split_once(". ") {
        Some((first, _)) => format!(". {first}."),
        None if about.is_empty() => about,
        None => format!(". {about}"),
    }
}

/// Texts longer than this are cut in messages.
const LONGEST_SHOWN: usize = 80;

/// `text` in quotes, cut when it is long.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn in_words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(written) => format!("the number {written}"),
        DeValue::Float(written) => float(value).map_or(written.to_string(), |number| format!("the number {number:?}")),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Whether a value of this type can be what `schema` describes.
fn may_be(value: &DeValue<'_>, schema: &Json) -> bool {
    let types: &[&str] = match value {
        DeValue::String(_) => &["string"],
        DeValue::Integer(_) => &["integer", "number"],
        DeValue::Float(_) => &["number"],
        DeValue::Boolean(_) => &["boolean"],
        DeValue::Datetime(_) => &[],
        DeValue::Array(_) => &["array"],
        DeValue::Table(_) => &["object"],
    };
    match &schema["type"] {
        Json::String(one) => types.contains(&one.as_str()),
        Json::Array(some) => some.iter().filter_map(Json::as_str).any(|one| types.contains(&one)),
        _ => false,
    }
}
