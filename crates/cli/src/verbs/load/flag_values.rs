//! Parsers of flag values with a notation of their own: changing rates, TLS versions, hashes. Their errors name what
//! was found and what would be right. Used by `verbs::load::flags`.

use weir_model::condition::Condition;
use weir_model::load::{Step, TlsVersion};
use weir_model::units::{HumanDuration, Rate};

/// `FROM..TO`: requests a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSpan(pub f64, pub f64);

/// `1000x10s,2000x10s`.
#[derive(Debug, Clone, PartialEq)]
pub struct StepList(pub Vec<Step>);

/// Oldest and newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions(pub TlsVersion, pub TlsVersion);

/// `p99<5ms, errors<0.1%`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionList(pub Vec<Condition>);

/// Reads `FROM..TO`. Either may be 0, not both.
pub fn ramp(text: &str) -> Result<RateSpan, String> {
    let right = "two rates would be right, such as 100..20k";
    let (from, to) = text.split_once("..").ok_or_else(|| format!("\"{text}\" has no \"..\"; {right}"))?;
    let (from, to) = (rate(from)?, rate(to)?);
    if from == 0.0 && to == 0.0 {
        return Err(format!("\"{text}\" is no load; {right}"));
    }
    Ok(RateSpan(from, to))
}

/// Reads `RATExTIME,RATExTIME`.
pub fn steps(text: &str) -> Result<StepList, String> {
    let steps = text.split(',').map(step).collect::<Result<Vec<Step>, String>>()?;
    if steps.iter().all(|step| step.rate == 0.0) {
        return Err(format!("\"{text}\" is no load; at least one rate above 0 would be right"));
    }
    Ok(StepList(steps))
}

fn step(text: &str) -> Result<Step, String> {
    let right = "a rate and a time would be right, such as 1000x10s";
    let (rate_text, time) = text.split_once('x').ok_or_else(|| format!("\"{text}\" has no \"x\"; {right}"))?;
    let time: HumanDuration = time.parse().map_err(|e| format!("{e}"))?;
    if time.0.is_zero() {
        return Err(format!("\"{text}\" takes no time; {right}"));
    }
    Ok(Step { rate: rate(rate_text)?, for_s: time.0.as_secs_f64() })
}

/// A rate that may be 0.
fn rate(text: &str) -> Result<f64, String> {
    if text.trim() == "0" {
        return Ok(0.0);
    }
    text.parse::<Rate>().map(Rate::per_second).map_err(|e| e.to_string())
}

/// Reads `1.2`, `1.3` or `1.2..1.3`.
pub fn versions(text: &str) -> Result<Versions, String> {
    let one = |part: &str| match part.trim() {
        "1.2" => Ok(TlsVersion::Tls12),
        "1.3" => Ok(TlsVersion::Tls13),
        other => Err(format!("\"{other}\" is no version of TLS that weir speaks; 1.2, 1.3 or 1.2..1.3 would be right")),
    };
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (one(from)?, one(to)?);
    if from > to {
        return Err(format!("\"{text}\" ends before it begins; 1.2..1.3 would be right"));
    }
    Ok(Versions(from, to))
}

/// Reads an XXH3-64 as hexadecimal digits, with or without `0x`.
pub fn hash(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(format!(
            "\"{text}\" is no XXH3-64; up to 16 hexadecimal digits would be right, as `xxhsum -H3` prints them"
        ));
    }
    u64::from_str_radix(digits, 16).map_err(|e| e.to_string())
}

/// Reads one or several conditions.
pub fn conditions(text: &str) -> Result<ConditionList, String> {
    Condition::list(text).map(ConditionList).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_rates_are_read() {
        assert_eq!(ramp("100..20k"), Ok(RateSpan(100.0, 20_000.0)));
        assert_eq!(ramp("0..1000/s"), Ok(RateSpan(0.0, 1_000.0)));
        let two = steps("1000x10s,0x500ms").expect("right");
        assert_eq!(two.0, [Step { rate: 1_000.0, for_s: 10.0 }, Step { rate: 0.0, for_s: 0.5 }]);
        for wrong in ["100", "0..0", "a..b", "..", "1..-2"] {
            assert!(ramp(wrong).expect_err(wrong).contains("would be right"), "{wrong}");
        }
        for wrong in ["", "1000", "1000x", "1000x10", "x10s", "0x1s", "1000x0s", "1000x1s,"] {
            assert!(steps(wrong).expect_err(wrong).contains("would be right"), "{wrong}");
        }
    }

    #[test]
    fn versions_and_hashes_are_read() {
        assert_eq!(versions("1.2"), Ok(Versions(TlsVersion::Tls12, TlsVersion::Tls12)));
        assert_eq!(versions("1.2..1.3"), Ok(Versions(TlsVersion::Tls12, TlsVersion::Tls13)));
        for wrong in ["1.1", "1.3..1.2", "", "13"] {
            assert!(versions(wrong).expect_err(wrong).contains("would be right"), "{wrong}");
        }
        assert_eq!(hash("0x00000000000000ff"), Ok(255));
        assert_eq!(hash("DEADbeef"), Ok(0xdead_beef));
        for wrong in ["", "0x", "xyz", "11112222333344445", "+1"] {
            assert!(hash(wrong).expect_err(wrong).contains("would be right"), "{wrong}");
        }
    }
}
