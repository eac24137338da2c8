//! Templates: texts with fields that are filled in for each request, for paths, header values and bodies.
//!
//! ```text
//! template = { text | "{{{{" | field }
//! field    = "{{" name [ ":" argument [ ":" width ] ] "}}"
//! ```
//!
//! [`HELP`] lists the fields; a feed adds its columns ([`Feed`]). `{{{{` stands for two braces. Three braces are one brace and the start of a field
//! (`{{{seq}}}` is a number in braces); other braces are text. The name and the arguments of a field contain no blanks.
//!
//! A template is parsed once into pieces, and rendered into a buffer of the caller. Once that buffer has grown to the
//! largest text, rendering allocates nothing. Random fields come from a seeded generator, so a load can be repeated. This
//! module knows bytes, but not their place in a request.

use rand::{Rng, RngCore};
use weir_model::load::Feed;

mod parse;
#[cfg(test)]
mod tests;

pub use parse::{TemplateError, can_be_column};

/// The grammar, for `--help`.
pub const HELP: &str = "\
Fields in the path, in header values and in the body of a template:
  {{seq}}             number of the request: 0, 1, 2, ... over the whole load
  {{seq:1000}}        the same, from 1000
  {{seq:1:8}}         the same, from 1, in 8 digits at least: 00000001
  {{random:1..6}}     a whole number, both ends included
  {{random:1..99:2}}  the same, in 2 digits at least
  {{hex:16}}          16 hexadecimal digits
  {{alnum:12}}        12 letters and digits
  {{uuid}}            a random UUID (version 4)
  {{pick:a|b|c}}      one of the texts
  {{{{                two braces
Every {{seq}} in one request is the same number. Each kind of request has its own numbers; a thread of n takes every
n-th, so that no number comes twice. With a feed, its columns are fields, too. Random fields are drawn anew for each place where they stand.";

/// A parsed template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// Literal text. It is never empty, and never follows another text.
    Text(Vec<u8>),
    /// The sum of the request's number and `start`, in at least `width` digits.
    Seq { start: u64, width: usize },
    /// A random number of `low..=high`, in at least `width` digits.
    Random { low: u64, high: u64, width: usize },
    /// This many random hexadecimal digits.
    Hex(usize),
    /// This many random letters and digits.
    Alnum(usize),
    /// A random UUID.
    Uuid,
    /// One of these texts, at random.
    Pick(Vec<Vec<u8>>),
    /// What the request's row has in this column.
    Column(Feed, usize),
}

impl Template {
    /// A template of literal text, in which braces have no meaning.
    pub fn text(text: &[u8]) -> Template {
        let mut template = Template::default();
        template.push_text(text);
        template
    }

    /// Whether it has no fields.
    pub fn is_text(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    /// Whether it begins with literal text.
    pub fn begins_with_text(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text(_)))
    }

    /// Appends literal text.
    pub fn push_text(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.extend_from_slice(text),
            _ => self.pieces.push(Piece::Text(text.to_vec())),
        }
    }

    /// Appends another template.
    pub fn push(&mut self, other: &Template) {
        for piece in &other.pieces {
            match piece {
                Piece::Text(text) => self.push_text(text),
                field => self.pieces.push(field.clone()),
            }
        }
    }

    /// The rendered length, bytes, if it is always the same.
    pub fn fixed_len(&self) -> Option<usize> {
        self.pieces.iter().map(Piece::fixed_len).sum()
    }

    /// Appends the text of the request with this number.
    pub fn render(&self, out: &mut Vec<u8>, number: u64, random: &mut impl RngCore) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Seq { start, width } => put_decimal(out, start.wrapping_add(number), *width),
                Piece::Random { low, high, width } => put_decimal(out, random.random_range(*low..=*high), *width),
                Piece::Hex(digits) => put_digits(out, *digits, 16, random),
                Piece::Alnum(digits) => put_digits(out, *digits, 62, random),
                Piece::Uuid => put_uuid(out, random),
                Piece::Column(feed, column) => out.extend_from_slice(feed.value(number, *column).as_bytes()),
                Piece::Pick(texts) => {
                    // The parser guarantees at least one.
                    if let Some(text) = texts.get(random.random_range(0..texts.len().max(1))) {
                        out.extend_from_slice(text);
                    }
                }
            }
        }
    }

    /// Sample texts that together contain every kind of byte that it can render: each field once with each of its
    /// texts, while the others have their first. One digit or letter stands for all random ones.
    pub fn samples(&self) -> Vec<Vec<u8>> {
        let texts: Vec<Option<Vec<&[u8]>>> = self.pieces.iter().map(Piece::texts).collect();
        let render = |chosen: usize, choice: usize| {
            let mut out = Vec::new();
            for (index, texts) in texts.iter().enumerate() {
                match texts {
                    Some(texts) => {
                        let text = texts.get(if index == chosen { choice } else { 0 });
                        out.extend_from_slice(text.copied().unwrap_or_default());
                    }
                    None => out.push(b'0'),
                }
            }
            out
        };
        let several = texts.iter().enumerate().filter_map(|(index, texts)| Some((index, texts.as_ref()?.len())));
        let others = several.flat_map(|(index, texts)| (1..texts).map(move |choice| (index, choice)));
        std::iter::once((usize::MAX, 0)).chain(others).map(|(index, choice)| render(index, choice)).collect()
    }
}

impl Piece {
    /// Its texts, or of a column as many as together have each byte where it stands first, last and elsewhere. `None`: digits and
    /// letters.
    fn texts(&self) -> Option<Vec<&[u8]>> {
        match self {
            Piece::Text(text) => Some(vec![text]),
            Piece::Pick(texts) => Some(texts.iter().map(Vec::as_slice).collect()),
            Piece::Column(feed, column) => {
                let (mut seen, mut seen_empty) = ([[false; 256]; 3], false);
                let mut is_new = |text: &&[u8]| {
                    let edges = [text.first(), text.last()]
                        .into_iter()
                        .zip(0..)
                        .filter_map(|(byte, place)| Some((*byte?, place)));
                    let all = edges.chain(text.iter().map(|byte| (*byte, 2)));
                    let first_empty = text.is_empty() && !std::mem::replace(&mut seen_empty, true);
                    all.fold(first_empty, |new, (byte, place)| {
                        !std::mem::replace(&mut seen[place][usize::from(byte)], true) || new
                    })
                };
                Some(feed.values(*column).map(str::as_bytes).filter(|text| is_new(text)).collect())
            }
            Piece::Seq { .. } | Piece::Random { .. } | Piece::Hex(_) | Piece::Alnum(_) | Piece::Uuid => None,
        }
    }

    fn fixed_len(&self) -> Option<usize> {
        match self {
            Piece::Text(text) => Some(text.len()),
            Piece::Hex(digits) | Piece::Alnum(digits) => Some(*digits),
            Piece::Uuid => Some(36),
            Piece::Seq { .. } => None,
            Piece::Column(feed, column) => {
                let mut lengths = feed.values(*column).map(str::len);
                let first = lengths.next().unwrap_or_default();
                lengths.all(|length| length == first).then_some(first)
            }
            Piece::Random { low, high, width } => {
                let longest = decimals(*high).max(*width);
                (decimals(*low).max(*width) == longest).then_some(longest)
            }
            Piece::Pick(texts) => {
                let first = texts.first().map_or(0, Vec::len);
                texts.iter().all(|text| text.len() == first).then_some(first)
            }
        }
    }
}

fn decimals(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Appends a number in decimal, padded with zeros to `width` digits.
pub fn put_decimal(out: &mut Vec<u8>, mut number: u64, width: usize) {
    // 2^64 has 20 digits, and no width is larger.
    let mut digits = [b'0'; parse::WIDEST];
    let mut first = digits.len();
    while number > 0 {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    first = first.min(digits.len() - width.clamp(1, digits.len()));
    out.extend_from_slice(&digits[first..]);
}

/// Appends random digits of a base up to 62. Each random number is taken as a binary fraction, which yields as many
/// digits as its bits allow.
fn put_digits(out: &mut Vec<u8>, digits: usize, base: u64, random: &mut impl RngCore) {
    const ALPHABET: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let at_a_time = if base == 16 { 16 } else { 10 };
    let mut left = digits;
    while left > 0 {
        let mut fraction = random.next_u64();
        let now = left.min(at_a_time);
        let mut text = [0; 16];
        for digit in &mut text[..now] {
            let product = u128::from(fraction) * u128::from(base);
            // The whole part of a fraction times the base is below the base.
            *digit = ALPHABET[(product >> 64) as usize];
            fraction = product as u64;
        }
        out.extend_from_slice(&text[..now]);
        left -= now;
    }
}

/// Appends a random UUID (RFC 9562, section 5.4).
fn put_uuid(out: &mut Vec<u8>, random: &mut impl RngCore) {
    let high = random.next_u64() & !0xf000 | 0x4000;
    let low = random.next_u64() & !(0b11 << 62) | 0b10 << 62;
    let mut text = [b'-'; 36];
    // Each group of digits begins after the dash that ends the previous one.
    for (word, from, to, at) in
        [(high, 0, 8, 0), (high, 8, 12, 9), (high, 12, 16, 14), (low, 0, 4, 19), (low, 4, 16, 24)]
    {
        for (digit, place) in text[at..].iter_mut().zip(from..to) {
            *digit = b"0123456789abcdef"[(word >> (60 - 4 * place) & 15) as usize];
        }
    }
    out.extend_from_slice(&text);
}
