//! Faults: what goes wrong with a response on purpose, and how often. Targets and options name them; responses have them.
//!
//! The syntax is `kind`, `kind:probability`, `kind=value` or `kind=value:probability`, several separated by commas. A
//! probability is a percentage (`2%`) or a share (`0.02`); without one, the fault always happens. As the commonest
//! case, `reset=1%` means `reset:1%`. A response has at most one fault, so the probabilities add up to 100 % at most.
//!
//! Options and targets are parsed here. This module does not know how a fault is carried out.

use std::fmt;
use std::str::FromStr;

use weir_model::protocol::Application;
use weir_model::units::{ByteCount, HumanDuration};

use crate::random::Random;

/// The fault of one response. `FaultKind` has its variants alone, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumDiscriminants)]
#[strum_discriminants(name(FaultKind), vis(pub(crate)))]
#[strum_discriminants(derive(strum::VariantNames), strum(serialize_all = "lowercase"))]
pub enum Fault {
    /// The connection is reset (HTTP/2: the stream).
    Reset {
        /// In the middle of the response, not before it. `None`: one of the two at random.
        middle: Option<bool>,
    },
    /// Sends half of the body, and then closes the connection as if the response were complete.
    Close,
    /// Sends the head (half of it where there is no body), and then nothing more.
    Stall,
    /// `Content-Length` is not the length of the body.
    Length {
        /// It is larger than the body, not smaller. `None`: one of the two at random.
        more: Option<bool>,
    },
    /// Responds with this status and a short text.
    Status(u16),
    /// Sends the whole response at this rate in bytes per second.
    Drip(u32),
    /// A stream says in the middle that it failed, and ends.
    Error,
    /// Key-value: does nothing, and says that it is busy.
    Busy,
    /// Key-value: says that it has written, and has not.
    Lose,
    /// Key-value: reads what was there before the last write.
    Stale,
    /// Key-value: ends the life of what it writes after so many milliseconds, where the write asks for another life.
    Expire(u32),
}

/// The possible faults of HTTP, for error texts.
pub(crate) const RULE: &str = "reset, reset=before, reset=middle, close, stall, length, length=more, length=less, \
     status=<200 to 599>, drip=<bytes>/s, error (of streams), each with a probability behind it or not (reset=1%, status=503:2%, \
     drip=1kB/s:0.05), with commas between them, and 100% in all at most";

/// Those of key-value protocols.
const KEYVALUE_RULE: &str = "reset, close, stall, busy, lose, stale, expire=<duration>, each with a probability behind it or not \
     (lose=0.01%, stale:0.001, expire=300ms), with commas between them, and 100% in all at most";

/// Fastest drip, bytes a second.
const FASTEST_DRIP: u64 = 1_000_000_000;

/// Faults with their probabilities.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults {
    all: Vec<(Fault, f64)>,
}

impl Fault {
    pub(crate) fn kind(self) -> FaultKind {
        self.into()
    }

    /// Whether a response of such a protocol can have it.
    fn suits(self, keyvalue: bool) -> bool {
        match self {
            Fault::Reset { middle: None } | Fault::Close | Fault::Stall => true,
            Fault::Busy | Fault::Lose | Fault::Stale | Fault::Expire(_) => keyvalue,
            _ => !keyvalue,
        }
    }

    /// Makes the random choices that are still open.
    fn settled(self, random: &mut Random) -> Fault {
        let mut coin = || Some(random.unit() < 0.5);
        match self {
            Fault::Reset { middle: None } => Fault::Reset { middle: coin() },
            Fault::Length { more: None } => Fault::Length { more: coin() },
            other => other,
        }
    }
}

impl Faults {
    /// Whether there are no faults.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether one of them is of this kind.
    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.all.iter().any(|(fault, _)| fault.kind() == kind)
    }

    /// Whether responses of such a protocol can have all of them.
    ///
    /// # Errors
    /// The one that they cannot have, and what is allowed.
    pub fn check(&self, application: Application) -> Result<(), String> {
        let keyvalue = application.is_keyvalue();
        let (what, rule) = if keyvalue { ("a key-value protocol", KEYVALUE_RULE) } else { ("HTTP", RULE) };
        match self.all.iter().find(|(fault, _)| !fault.suits(keyvalue)) {
            Some((fault, _)) => Err(format!("`{fault}` is no fault of {what}; expected: {rule}")),
            None => Ok(()),
        }
    }

    /// Draws the fault of the next response.
    pub(crate) fn draw(&self, random: &mut Random) -> Option<Fault> {
        if self.is_empty() {
            return None;
        }
        let mut left = random.unit();
        for (fault, probability) in &self.all {
            if left < *probability {
                return Some(fault.settled(random));
            }
            left -= probability;
        }
        None
    }
}

impl FromStr for Faults {
    type Err = String;

    /// # Errors
    /// The wrong part, and what is allowed.
    fn from_str(text: &str) -> Result<Faults, String> {
        if text == "none" {
            return Ok(Faults::default());
        }
        let wrong =
            |part: &str| format!("`{part}` is no fault; expected: {RULE}; for key-value protocols {KEYVALUE_RULE}");
        let parts = text.split(',').map(|part| one(part.trim()).ok_or_else(|| wrong(part)));
        let all = parts.collect::<Result<Vec<_>, _>>()?;
        let sum: f64 = all.iter().map(|(_, probability)| probability).sum();
        if sum > 1.0 + 1e-9 {
            return Err(format!("the probabilities of `{text}` come to {:.1}%; expected: 100% at most", sum * 100.0));
        }
        Ok(Faults { all })
    }
}

/// Parses `kind` or `kind=value`, each with or without a probability.
fn one(text: &str) -> Option<(Fault, f64)> {
    let (what, probability) = match text.rsplit_once(':') {
        Some((what, random)) => (what, probability(random)?),
        None => (text, 1.0),
    };
    if let Some(fault) = fault(what) {
        return Some((fault, probability));
    }
    // `reset=1%`: it has no value, so the number is the probability.
    let (kind, random) = text.split_once('=')?;
    Some((fault(kind)?, self::probability(random)?))
}

fn fault(text: &str) -> Option<Fault> {
    let (kind, value) = match text.split_once('=') {
        Some((kind, value)) => (kind, Some(value)),
        None => (text, None),
    };
    Some(match (kind, value) {
        ("reset", None) => Fault::Reset { middle: None },
        ("reset", Some("before")) => Fault::Reset { middle: Some(false) },
        ("reset", Some("middle")) => Fault::Reset { middle: Some(true) },
        ("close", None) => Fault::Close,
        ("stall", None) => Fault::Stall,
        ("length", None) => Fault::Length { more: None },
        ("length", Some("more")) => Fault::Length { more: Some(true) },
        ("length", Some("less")) => Fault::Length { more: Some(false) },
        ("status", Some(code)) => Fault::Status(crate::value::status(code.as_bytes())?),
        ("error", None) => Fault::Error,
        ("busy", None) => Fault::Busy,
        ("lose", None) => Fault::Lose,
        ("stale", None) => Fault::Stale,
        ("expire", Some(life)) => Fault::Expire(u32::try_from(life.parse::<HumanDuration>().ok()?.0.as_millis()).ok()?),
        ("drip", Some(rate)) => Fault::Drip(bytes_a_second(rate)?),
        _ => return None,
    })
}

fn bytes_a_second(text: &str) -> Option<u32> {
    let ByteCount(bytes) = text.strip_suffix("/s").unwrap_or(text).parse().ok()?;
    u32::try_from(bytes).ok().filter(|_| (1..=FASTEST_DRIP).contains(&bytes))
}

/// `1%`, `1%25` (as a URL has it) or `0.01`.
fn probability(text: &str) -> Option<f64> {
    let (digits, whole) = match text.strip_suffix("%25").or_else(|| text.strip_suffix('%')) {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    // The standard library's parser also takes `inf`, `nan`, signs and exponents.
    let plain =
        digits.starts_with(|c: char| c.is_ascii_digit()) && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let share = digits.parse::<f64>().ok().filter(|_| plain)? / whole;
    (0.0..=1.0).contains(&share).then_some(share)
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, (fault, probability)) in self.all.iter().enumerate() {
            let comma = if k > 0 { "," } else { "" };
            write!(f, "{comma}{fault}:{probability}")?;
        }
        if self.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Reset { middle: None } => f.write_str("reset"),
            Fault::Reset { middle: Some(false) } => f.write_str("reset=before"),
            Fault::Reset { middle: Some(true) } => f.write_str("reset=middle"),
            Fault::Close => f.write_str("close"),
            Fault::Stall => f.write_str("stall"),
            Fault::Length { more: None } => f.write_str("length"),
            Fault::Length { more: Some(true) } => f.write_str("length=more"),
            Fault::Length { more: Some(false) } => f.write_str("length=less"),
            Fault::Status(code) => write!(f, "status={code}"),
            Fault::Drip(rate) => write!(f, "drip={rate}B/s"),
            Fault::Error => f.write_str("error"),
            Fault::Busy => f.write_str("busy"),
            Fault::Lose => f.write_str("lose"),
            Fault::Stale => f.write_str("stale"),
            Fault::Expire(ms) => write!(f, "expire={ms}ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn faults(text: &str) -> Vec<(Fault, f64)> {
        text.parse::<Faults>().unwrap_or_else(|error| panic!("{text}: {error}")).all
    }

    #[test]
    fn accepted_syntax() {
        assert_eq!(faults("reset"), [(Fault::Reset { middle: None }, 1.0)]);
        assert_eq!(faults("reset=1%"), [(Fault::Reset { middle: None }, 0.01)]);
        assert_eq!(faults("reset=middle:0.5"), [(Fault::Reset { middle: Some(true) }, 0.5)]);
        let all = faults("reset=1%,stall=0.1%,status=503:2%,drip=1kB/s:5%25, close:0.5 ,length=less:1%");
        let shares: Vec<f64> = all.iter().map(|(_, share)| *share).collect();
        assert_eq!(shares, [0.01, 0.001, 0.02, 0.05, 0.5, 0.01]);
        assert_eq!((all[2].0, all[3].0), (Fault::Status(503), Fault::Drip(1000)));
        assert!("none".parse::<Faults>().unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_wrong_part_and_what_is_allowed() {
        for text in "|rest|reset=101%|status|status=700|drip=0B/s|drip|close=now|stall:-1%|reset:nan".split('|') {
            let error = text.parse::<Faults>().expect_err(text);
            assert!(error.contains("status=503:2%"), "{error}");
        }
        let error = "reset=60%,stall=60%".parse::<Faults>().expect_err("too much");
        assert!(error.contains("120.0%"), "{error}");
    }

    #[test]
    fn faults_are_drawn_with_their_probability() {
        let faults: Faults = "reset=10%,stall=20%,status=500:30%".parse().unwrap();
        let mut random = Random::new(5, 0);
        let mut counts = [0u32; 10];
        let n = 100_000;
        for _ in 0..n {
            if let Some(fault) = faults.draw(&mut random) {
                counts[fault.kind() as usize] += 1;
                assert!(!matches!(fault, Fault::Reset { middle: None }));
            }
        }
        for (kind, wanted) in [(FaultKind::Reset, 0.1), (FaultKind::Stall, 0.2), (FaultKind::Status, 0.3)] {
            let share = f64::from(counts[kind as usize]) / f64::from(n);
            assert!((share - wanted).abs() < 0.01, "{kind:?}: {share}");
        }
        assert_eq!(counts.iter().filter(|count| **count > 0).count(), 3);
    }

    #[test]
    fn faults_suit_their_protocol() {
        for (text, suits_http, suits_keyvalue) in [
            ("reset=1%,close:1%,stall:0", true, true),
            ("status=503:1%", true, false),
            ("reset=middle:1%", true, false),
            ("lose=0.01%,stale=0.1%,busy:1%,expire=300ms:1%,expire=1s:2%", false, true),
        ] {
            let faults: Faults = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(faults.check(Application::Http1).is_ok(), suits_http, "{text}");
            assert_eq!(faults.check(Application::Redis).is_ok(), suits_keyvalue, "{text}");
        }
        let error = "stall:1%,lose=1%".parse::<Faults>().unwrap().check(Application::Http1).unwrap_err();
        assert!(error.starts_with("`lose` is no fault of HTTP; expected: reset"), "{error}");
        let error = "drip=1kB/s".parse::<Faults>().unwrap().check(Application::Juno).unwrap_err();
        assert!(error.contains("of a key-value protocol; expected: reset, close, stall, busy"), "{error}");
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-z=%:,0-9./]{0,40}") {
            let _ = text.parse::<Faults>();
        }

        #[test]
        fn display_and_parse_agree(shares in proptest::collection::vec(0u32..10, 1..6)) {
            let texts = ["reset=before", "close", "length=more", "status=500", "drip=7B/s", "stall", "error"];
            let text: Vec<String> = shares.iter().zip(texts).map(|(share, kind)| format!("{kind}:{share}%")).collect();
            let faults: Faults = text.join(",").parse().unwrap();
            prop_assert_eq!(faults.to_string().parse::<Faults>().unwrap(), faults);
        }
    }
}
