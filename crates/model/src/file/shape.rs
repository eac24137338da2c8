//! Checks a file against its JSON schema: unknown and missing keys, types, units, patterns and ranges.
//! `suite` and `product` call it. It supports the part of JSON Schema that our structs generate, and extensions:
//! with `x-weir-unit` the parser of the unit reads the text, because its message is better than that of a pattern;
//! `x-weir-wanted` says in words what would be right; of the keys in `x-weir-one-of` a table has one at most. The module
//! does not know suites or products.

use serde_json::{Map, Value as Json, json};

use super::errors::Errors;
use super::locate::{Node, Value, child, item};
use crate::condition::Condition;
use crate::text::{list, one_of, suggestion};
use crate::units::{self, ByteCount, HumanDuration, Rate, UnitError};

/// Checks `node`, which stands at `path`, and adds to `errors` what is wrong.
///
/// Returns the value without its unknown keys, so that a misspelt key does not hide other errors; `None`
/// when it is too broken to be read further.
pub(super) fn check(node: &Node, schema: &Json, path: &str, errors: &mut Errors<'_>) -> Option<Json> {
    if let Some(unit) = schema["x-weir-unit"].as_str() {
        return check_unit(node, schema, unit, path, errors);
    }
    if let Some(names) = choices(schema) {
        return check_choice(node, &names, path, errors);
    }
    if let (Value::Table(entries), Some(keys)) = (&node.value, schema["x-weir-one-of"].as_array()) {
        let keys: Vec<&str> = keys.iter().filter_map(Json::as_str).collect();
        let given: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).filter(|key| keys.contains(key)).collect();
        if let [first, others @ .., second] = given.as_slice() {
            errors.add(
                &child(path, second),
                format!("stands beside {}", list(&[&[*first], others].concat())),
                format!("only one of {}", keys.join(", ")),
            );
        }
    }
    if let Some(branches) = branches(schema) {
        return check_branches(node, schema, branches, path, errors);
    }
    match (&node.value, type_of(schema)) {
        (Value::Table(entries), "object") => check_table(entries, schema, path, errors),
        (Value::List(items), "array") => check_list(items, schema, path, errors),
        (Value::Text(text), "string") => check_text(text, schema, path, errors),
        (Value::Flag(flag), "boolean") => Some(Json::Bool(*flag)),
        (Value::Integer(written, number), "integer" | "number") => {
            let Some(number) = number else {
                errors.add(path, format!("{written} is too large"), describe(schema));
                return None;
            };
            let near = number.as_f64()?;
            check_range(written, near, schema, path, errors).then(|| number.clone().into())
        }
        (Value::Float(number), "number") => {
            let passes = check_range(&format!("{number:?}"), *number, schema, path, errors);
            passes.then(|| (*number).into())
        }
        _ => {
            errors.add(path, format!("found {}", node.value.in_words()), describe_at(path, schema));
            None
        }
    }
}

fn type_of(schema: &Json) -> &str {
    schema["type"].as_str().unwrap_or_default()
}

/// The names that a schema of constants allows.
fn choices(schema: &Json) -> Option<Vec<&str>> {
    let constant = |branch: &'_ Json| branch.get("const").is_some();
    if let Some(names) = schema["enum"].as_array() {
        return names.iter().map(Json::as_str).collect();
    }
    if constant(schema) {
        return schema["const"].as_str().map(|name| vec![name]);
    }
    let branches = schema["oneOf"].as_array().filter(|all| all.iter().all(constant))?;
    branches.iter().map(|branch| branch["const"].as_str()).collect()
}

fn branches(schema: &Json) -> Option<&Vec<Json>> {
    schema["oneOf"].as_array().or(schema["anyOf"].as_array())
}

fn check_choice(node: &Node, names: &[&str], path: &str, errors: &mut Errors<'_>) -> Option<Json> {
    let wanted = || one_of(names.iter().map(|name| format!("{name:?}")));
    match &node.value {
        Value::Text(text) if names.contains(&text.as_str()) => Some(Json::String(text.clone())),
        Value::Text(text) => {
            let near = suggestion(text, names.iter().copied());
            errors.add(path, format!("found {}{near}", node.value.in_words()), wanted());
            None
        }
        other => {
            errors.add(path, format!("found {}", other.in_words()), wanted());
            None
        }
    }
}

fn check_branches(node: &Node, schema: &Json, branches: &[Json], path: &str, errors: &mut Errors<'_>) -> Option<Json> {
    if let (Value::Table(entries), Some(tag)) = (&node.value, tag_of(branches)) {
        return check_tagged(entries, schema, branches, tag, path, errors);
    }
    match &node.value {
        // Of several kinds of tables it is the one that has a key of this.
        Value::Table(entries) => {
            if let Some(branch) = branches.iter().find(|branch| entries.iter().any(|(key, _)| has(branch, key))) {
                let own =
                    branch["properties"].as_object().and_then(|keys| keys.keys().next()).map_or("", String::as_str);
                return check_branch(entries, branches, branch, own, &|_| describe(schema), path, errors);
            }
        }
        value => {
            if let Some(branch) = branches.iter().find(|branch| value.may_be(branch)) {
                return check(node, branch, path, errors);
            }
        }
    }
    errors.add(path, format!("found {}", node.value.in_words()), describe(schema));
    None
}

/// A table of which the value of one key, the tag, decides which other keys it has.
fn check_tagged(
    entries: &[(String, Node)],
    schema: &Json,
    branches: &[Json],
    tag: &str,
    path: &str,
    errors: &mut Errors<'_>,
) -> Option<Json> {
    let value = entries.iter().find(|(key, _)| key == tag).map(|(_, node)| &node.value);
    let chosen = branches.iter().find(|branch| match (value, &branch["properties"][tag]["const"]) {
        (Some(Value::Text(value)), Json::String(constant)) => value == constant,
        _ => false,
    });
    let Some(branch) = chosen else {
        // The tag is reported, and the keys that are alike in all branches are checked.
        let first = branches[0]["properties"].as_object()?;
        let alike = |key: &str| branches.iter().all(|branch| branch["properties"][key] == first[key]);
        let mut properties: Map<String, Json> =
            first.iter().filter(|(key, _)| alike(key)).map(|(key, schema)| (key.clone(), schema.clone())).collect();
        let names: Vec<&Json> = branches.iter().map(|branch| &branch["properties"][tag]["const"]).collect();
        properties.insert(tag.to_owned(), json!({ "enum": names }));
        let of_one = |key: &String| !properties.contains_key(key) && branches.iter().any(|branch| has(branch, key));
        let checked = entries.iter().filter(|(key, _)| !of_one(key));
        let required = schema["required"].as_array().cloned().unwrap_or_else(|| vec![tag.into()]);
        check_table(checked, &json!({ "properties": properties, "required": required }), path, errors);
        return None;
    };
    let own = format!("{tag} = {}", branch["properties"][tag]["const"]);
    let wanted = |key: &str| {
        let with = branches.iter().filter(|other| has(other, key));
        let with: Vec<String> = with.map(|other| format!("{tag} = {}", other["properties"][tag]["const"])).collect();
        format!("{}, or no {key}", with.join(" or "))
    };
    check_branch(entries, branches, branch, &own, &wanted, path, errors)
}

/// A table that is checked against one of several branches, `own` in words. `wanted` says what a key of another needs.
fn check_branch(
    entries: &[(String, Node)],
    branches: &[Json],
    branch: &Json,
    own: &str,
    wanted: &dyn Fn(&str) -> String,
    path: &str,
    errors: &mut Errors<'_>,
) -> Option<Json> {
    let of_other = |key: &str| !has(branch, key) && branches.iter().any(|other| has(other, key));
    for (key, _) in entries.iter().filter(|(key, _)| of_other(key)) {
        errors.add(&child(path, key), format!("does not go with {own}"), wanted(key));
    }
    check_table(entries.iter().filter(|(key, _)| !of_other(key)), branch, path, errors)
}

fn has(branch: &Json, key: &str) -> bool {
    branch["properties"].get(key).is_some()
}

/// The key whose constant tells `branches` apart.
fn tag_of(branches: &[Json]) -> Option<&str> {
    let properties = branches.first()?["properties"].as_object()?;
    let tells_apart =
        |key: &&String| branches.iter().all(|branch| branch["properties"][key.as_str()].get("const").is_some());
    properties.keys().find(tells_apart).map(String::as_str)
}

fn check_table<'n>(
    entries: impl IntoIterator<Item = &'n (String, Node)>,
    schema: &Json,
    path: &str,
    errors: &mut Errors<'_>,
) -> Option<Json> {
    let entries: Vec<&(String, Node)> = entries.into_iter().collect();
    if (entries.len() as u64) < schema["minProperties"].as_u64().unwrap_or(0) {
        errors.add(path, "the table is empty", describe(schema));
        return None;
    }
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let others = schema.get("additionalProperties").filter(|others| others.is_object());
    let mut values = Map::new();
    let mut whole = true;
    let mut misspelt = String::new();
    for (key, node) in &entries {
        let path = child(path, key);
        let Some(schema) = properties.get(key).or(others) else {
            let names = || properties.keys().map(String::as_str);
            let near = suggestion(key, names());
            errors.add(&path, format!("unknown key{near}"), one_of(names()));
            misspelt += &near;
            continue;
        };
        match check(node, schema, &path, errors) {
            Some(value) => drop(values.insert(key.clone(), value)),
            None => whole = false,
        }
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    for key in required {
        if entries.iter().any(|(name, _)| name == key) {
            continue;
        }
        whole = false;
        // A key that is there under a wrong name has its message already.
        if !misspelt.contains(&format!("{key:?}")) {
            let (path, schema) = (child(path, key), &properties[key]);
            errors.add(&path, format!("missing{}", purpose(schema)), describe_at(&path, schema));
        }
    }
    whole.then_some(Json::Object(values))
}

fn check_list(items: &[Node], schema: &Json, path: &str, errors: &mut Errors<'_>) -> Option<Json> {
    let least = schema["minItems"].as_u64().unwrap_or(0);
    if (items.len() as u64) < least {
        errors.add(path, "the list is empty", format!("at least one: {}", describe(&schema["items"])));
        return None;
    }
    let mut values = Vec::with_capacity(items.len());
    for (index, node) in items.iter().enumerate() {
        let value = check(node, &schema["items"], &item(path, index), errors);
        if let (Some(Json::String(text)), true) = (&value, schema["uniqueItems"] == true && values.contains(&value)) {
            errors.add(&item(path, index), format!("{text:?} stands here twice"), "each once");
        }
        values.push(value);
    }
    values.into_iter().collect()
}

fn check_text(text: &str, schema: &Json, path: &str, errors: &mut Errors<'_>) -> Option<Json> {
    let least = schema["minLength"].as_u64().unwrap_or(0);
    if text.trim().is_empty() && least > 0 {
        errors.add(path, "the text is empty", describe(schema));
        return None;
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        // Our own patterns, which the schema's test compiles; one that did not would refuse everything.
        let fits = regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text));
        if !fits {
            errors.add(path, format!("found {}", quoted(text)), describe(schema));
            return None;
        }
    }
    Some(Json::String(text.to_owned()))
}

fn check_range(written: &str, number: f64, schema: &Json, path: &str, errors: &mut Errors<'_>) -> bool {
    let fits = |bound: &str, test: fn(f64, f64) -> bool| schema[bound].as_f64().is_none_or(|bound| test(number, bound));
    let width = match schema["format"].as_str() {
        Some("uint32") => f64::from(u32::MAX),
        Some("uint16") => f64::from(u16::MAX),
        _ => f64::INFINITY,
    };
    let right = number.is_finite()
        && number <= width
        && fits("minimum", |number, bound| number >= bound)
        && fits("maximum", |number, bound| number <= bound)
        && fits("exclusiveMinimum", |number, bound| number > bound);
    if !right {
        errors.add(path, format!("found the number {written}"), describe(schema));
    }
    right
}

fn check_unit(node: &Node, schema: &Json, unit: &str, path: &str, errors: &mut Errors<'_>) -> Option<Json> {
    let text = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Integer(written, number) => number.as_ref().map_or(written.clone(), ToString::to_string),
        Value::Float(number) => number.to_string(),
        other => {
            errors.add(path, format!("found {}", other.in_words()), describe(schema));
            return None;
        }
    };
    let read: Result<String, UnitError> = match unit {
        "duration" => text.parse().map(|duration: HumanDuration| duration.to_string()),
        "bytes" => match text.parse::<ByteCount>() {
            Ok(size) if schema["maximum"].as_u64().is_some_and(|most| size.0 > most) => {
                errors.add(path, format!("found {}", quoted(&text)), describe(schema));
                return None;
            }
            size => size.map(|size| size.to_string()),
        },
        "rate" => text.parse().map(|rate: Rate| rate.to_string()),
        _ => match Condition::list(&text) {
            Ok(_) => Ok(text),
            Err(error) => {
                errors.add(path, error.found, error.wanted);
                return None;
            }
        },
    };
    match read {
        Ok(text) if schema["x-weir-positive"] == Json::Bool(true) && text.starts_with('0') => {
            errors.add(path, format!("found {text:?}"), describe(schema));
            None
        }
        Ok(text) => Some(Json::String(text)),
        Err(error) => {
            errors.add(path, error.found, describe(schema));
            None
        }
    }
}

/// What would be right, in words.
fn describe(schema: &Json) -> String {
    if let Some(words) = schema["x-weir-wanted"].as_str() {
        return words.to_owned();
    }
    if let Some(unit) = schema["x-weir-unit"].as_str() {
        let words = match unit {
            "duration" => units::duration::WANTED,
            "bytes" => units::bytes::WANTED,
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
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    if required.is_empty() { "a table".to_owned() } else { format!("a table with {}", required.join(", ")) }
}

/// What would be right at `path`: for sections, the header that begins one.
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

impl Value {
    fn in_words(&self) -> String {
        match self {
            Value::Text(text) => quoted(text),
            Value::Integer(written, _) => format!("the number {written}"),
            Value::Float(number) => format!("the number {number:?}"),
            Value::Flag(flag) => flag.to_string(),
            Value::Time => "a date or time".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// Whether a value of this type can be what `schema` describes.
    fn may_be(&self, schema: &Json) -> bool {
        let types: &[&str] = match self {
            Value::Text(_) => &["string"],
            Value::Integer(..) => &["integer", "number"],
            Value::Float(_) => &["number"],
            Value::Flag(_) => &["boolean"],
            Value::Time => &[],
            Value::List(_) => &["array"],
            Value::Table(_) => &["object"],
        };
        match &schema["type"] {
            Json::String(one) => types.contains(&one.as_str()),
            Json::Array(some) => some.iter().filter_map(Json::as_str).any(|one| types.contains(&one)),
            _ => false,
        }
    }
}
