//! Parses templates from text.

use weir_model::load::Feed;
use weir_model::text::suggestion;

use super::{Piece, Template};

/// The most digits that a number may be padded to: as many as the largest number has.
pub(super) const WIDEST: usize = 20;

/// The most random digits or letters of one field. More is taken for a typing error.
const LONGEST: usize = 1 << 20;

const NAMES: [&str; 6] = ["seq", "random", "hex", "alnum", "uuid", "pick"];

/// Whether a column with this name can be a field.
pub fn can_be_column(name: &str) -> bool {
    !name.is_empty() && !name.contains(['{', '}', ':']) && !NAMES.contains(&name)
}

/// The error for a text that is not a template: what was found, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}; expected: {wanted}")]
pub struct TemplateError {
    /// What was found, such as `{{sec}} is no field`.
    pub found: String,
    /// What would be right.
    pub wanted: &'static str,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// The first wrong field: it has no end, an unknown name, or wrong arguments.
    pub fn parse(text: &[u8]) -> Result<Template, TemplateError> {
        Template::parse_with(text, None)
    }

    /// Parses a template whose fields may be columns.
    ///
    /// # Errors
    /// As for [`Template::parse`].
    pub fn parse_with(text: &[u8], feed: Option<&Feed>) -> Result<Template, TemplateError> {
        let mut template = Template::default();
        let mut rest = text;
        while let Some(at) = find(rest, b"{{") {
            template.push_text(&rest[..at]);
            rest = &rest[at..];
            if rest.starts_with(b"{{{{") {
                template.push_text(b"{{");
                rest = &rest[4..];
            } else if rest.starts_with(b"{{{") {
                template.push_text(b"{");
                rest = &rest[1..];
            } else {
                let inside = &rest[2..];
                let Some(end) = find(inside, b"}}") else {
                    return Err(TemplateError {
                        found: format!("{:?} has no end", shown(rest)),
                        wanted: "a field such as {{seq}}, or {{{{ for two braces",
                    });
                };
                template.pieces.push(field(&inside[..end], feed)?);
                rest = &inside[end + 2..];
            }
        }
        template.push_text(rest);
        Ok(template)
    }
}

fn field(inside: &[u8], feed: Option<&Feed>) -> Result<Piece, TemplateError> {
    let columns = || (0..).zip(feed.map_or(&[][..], Feed::columns));
    if let (Some(feed), Some((column, _))) = (feed, columns().find(|(_, name)| name.as_bytes() == inside)) {
        return Ok(Piece::Column(feed.clone(), column));
    }
    let error =
        |why: &str, wanted: &'static str| TemplateError { found: format!("{{{{{}}}}} {why}", shown(inside)), wanted };
    let (name, argument) = match inside.iter().position(|byte| *byte == b':') {
        Some(at) => (&inside[..at], Some(&inside[at + 1..])),
        None => (inside, None),
    };
    // All arguments are plain words and numbers, except the texts to pick from.
    let word = argument.map(|argument| str::from_utf8(argument).unwrap_or("\u{fffd}"));
    match name {
        b"seq" => sequence(word).ok_or_else(|| {
            error("has no start or width that is a number", "{{seq}}, {{seq:1000}} or {{seq:1:8}} (at most 20 digits)")
        }),
        b"random" => range(word).ok_or_else(|| {
            error(
                "has no range",
                "{{random:1..1000}} or {{random:1..1000:4}}, ends included, the lower first (at most 20 digits)",
            )
        }),
        b"hex" => {
            count(word).map(Piece::Hex).ok_or_else(|| error("has no number of digits", "{{hex:16}}, 1 to 1048576"))
        }
        b"alnum" => {
            count(word).map(Piece::Alnum).ok_or_else(|| error("has no number of letters", "{{alnum:12}}, 1 to 1048576"))
        }
        b"uuid" if argument.is_none() => Ok(Piece::Uuid),
        b"uuid" => Err(error("has an argument", "{{uuid}}")),
        b"pick" => match argument {
            Some(texts) => Ok(Piece::Pick(texts.split(|byte| *byte == b'|').map(<[u8]>::to_vec).collect())),
            None => Err(error("has nothing to pick from", "{{pick:a|b|c}}")),
        },
        name => {
            let near =
                suggestion(shown(name).trim(), NAMES.into_iter().chain(columns().map(|(_, name)| name.as_str())));
            Err(error(
                &format!("is no field{near}"),
                "{{seq}}, {{random:1..6}}, {{hex:16}}, {{alnum:12}}, {{uuid}}, {{pick:a|b|c}}, a column of --feed, or {{{{ for \
                 two braces",
            ))
        }
    }
}

fn sequence(argument: Option<&str>) -> Option<Piece> {
    let Some(argument) = argument else {
        return Some(Piece::Seq { start: 0, width: 1 });
    };
    let (start, width) = split_width(argument)?;
    Some(Piece::Seq { start: number(start)?, width })
}

fn range(argument: Option<&str>) -> Option<Piece> {
    let (range, width) = split_width(argument?)?;
    let (low, high) = range.split_once("..")?;
    let (low, high) = (number(low)?, number(high)?);
    (low <= high).then_some(Piece::Random { low, high, width })
}

fn split_width(argument: &str) -> Option<(&str, usize)> {
    match argument.split_once(':') {
        Some((first, width)) => {
            let width = usize::try_from(number(width)?).ok()?;
            (1..=WIDEST).contains(&width).then_some((first, width))
        }
        None => Some((argument, 1)),
    }
}

fn count(argument: Option<&str>) -> Option<usize> {
    usize::try_from(number(argument?)?).ok().filter(|count| (1..=LONGEST).contains(count))
}

/// Parses plain digits; Rust's own parser would accept a sign too.
fn number(digits: &str) -> Option<u64> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

fn find(text: &[u8], wanted: &[u8; 2]) -> Option<usize> {
    text.windows(2).position(|pair| pair == wanted)
}

/// The beginning of a text, for error messages.
fn shown(text: &[u8]) -> String {
    const MOST: usize = 60;
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.into_owned(),
    }
}
