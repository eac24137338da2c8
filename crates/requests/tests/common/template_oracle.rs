//! What must hold for any text given to the template parser; shared by the fuzz target and the stable tests.
//!
//! Input: one byte, from which the request's number and the seed come, then the template.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use regex::bytes::Regex;
use weir_requests::template::Template;

/// Checks one input.
///
/// # Panics
/// When something does not hold.
pub fn template(input: &[u8]) {
    let Some((first, text)) = input.split_first() else { return };
    // Small numbers, and those at the end of the range.
    let number = if *first < 128 { u64::from(*first) } else { u64::MAX - u64::from(255 - *first) };
    let template = match Template::parse(text) {
        Ok(template) => template,
        Err(error) => {
            assert!(text.windows(2).any(|pair| pair == b"{{"), "without two braces all is text: {error}");
            assert!(
                error.found.len() < 500 && !error.wanted.is_empty(),
                "an error is short and says what is right: {error}"
            );
            return;
        }
    };
    let render = |template: &Template| {
        let mut out = b"before".to_vec();
        template.render(&mut out, number, &mut ChaCha8Rng::seed_from_u64(number));
        assert!(out.starts_with(b"before"), "what was in the buffer stays");
        out.split_off(6)
    };
    let once = render(&template);
    assert_eq!(once, render(&template), "the same number and seed give the same text");
    if let Some(length) = template.fixed_len() {
        assert_eq!(once.len(), length, "a fixed length is kept");
    }
    let pattern = pattern(text, number);
    assert!(pattern.is_match(&once), "{pattern} does not match {:?}", String::from_utf8_lossy(&once));

    // Every text can be written as a template.
    let plain = Template::parse(&escaped(&once)).expect("four braces are no field");
    assert!(plain.is_text());
    assert_eq!(render(&plain), once);
}

fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if rest.starts_with(b"{{") {
            out.extend_from_slice(b"{{{{");
            rest = &rest[2..];
        } else {
            out.push(*first);
            rest = after;
        }
    }
    out
}

/// What a template that was accepted may render to, by another way of reading it.
fn pattern(text: &[u8], number: u64) -> Regex {
    let field = Regex::new(r"(?s-u)\A\{\{(.*?)\}\}").expect("a constant");
    let mut pattern = String::from(r"(?s-u)\A");
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if rest.starts_with(b"{{{{") {
            pattern.push_str(r"\{\{");
            rest = &rest[4..];
        } else if !rest.starts_with(b"{{{")
            && let Some(found) = field.captures(rest)
        {
            pattern.push_str(&of_field(&found[1], number));
            rest = &rest[found[0].len()..];
        } else {
            pattern.push_str(&literal(&[*first]));
            rest = after;
        }
    }
    pattern.push_str(r"\z");
    Regex::new(&pattern).expect("texts are escaped, and repetitions are bounded")
}

fn of_field(field: &[u8], number: u64) -> String {
    if let Some(texts) = field.strip_prefix(b"pick:") {
        let texts: Vec<String> = texts.split(|byte| *byte == b'|').map(literal).collect();
        return format!("(?:{})", texts.join("|"));
    }
    let field = std::str::from_utf8(field).expect("all other fields are plain");
    let mut parts = field.split(':');
    let name = parts.next().unwrap_or_default();
    let mut numbers = parts.map(|part| part.parse::<u64>().ok());
    match name {
        "seq" => {
            let start = numbers.next().flatten().unwrap_or(0);
            let width = numbers.next().flatten().unwrap_or(1) as usize;
            format!("{:0width$}", start.wrapping_add(number))
        }
        "random" => {
            let width = numbers.nth(1).flatten().unwrap_or(1);
            format!("[0-9]{{{width},20}}")
        }
        // Repetitions beyond a thousand would make the pattern huge; their length is checked where it is fixed.
        "hex" => format!("[0-9a-f]{}", times(numbers.next().flatten())),
        "alnum" => format!("[0-9A-Za-z]{}", times(numbers.next().flatten())),
        "uuid" => "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}".to_owned(),
        other => panic!("{other:?} was taken for a field"),
    }
}

fn times(count: Option<u64>) -> String {
    match count {
        Some(count @ 1..=1000) => format!("{{{count}}}"),
        _ => "+".to_owned(),
    }
}

fn literal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!(r"\x{byte:02x}")).collect()
}
