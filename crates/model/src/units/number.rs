//! Splits `1.5s` into a number and a unit, and multiplies without losing a digit.
//! The parsers of durations and sizes beside it use it.

/// `text` as the longest leading run of digits and points, and the rest, both without surrounding blanks.
pub(super) fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}

/// Why a decimal number could not be scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Not digits with at most one point between them.
    NotANumber,
    /// The product has a fraction: `0.5B`.
    Fraction,
    /// The product does not fit.
    TooLarge,
}

/// `number` x `unit`, exact. `number` is digits with at most one point between them.
pub(super) fn scaled(number: &str, unit: u64) -> Result<u64, Scale> {
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) | Some(("", _)) => return Err(Scale::NotANumber),
        Some(parts) => parts,
        None => (number, ""),
    };
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return Err(Scale::NotANumber);
    }
    let fraction = fraction.trim_end_matches('0');
    let places = u32::try_from(fraction.len()).map_err(|_| Scale::Fraction)?;
    let parse = |digits: &str| match digits {
        "" => Ok(0),
        digits => digits.parse::<u128>().map_err(|_| Scale::TooLarge),
    };
    let divisor = 10u128.checked_pow(places).ok_or(Scale::Fraction)?;
    let unit = u128::from(unit);
    let part = parse(fraction)?.checked_mul(unit).ok_or(Scale::Fraction)?;
    if part % divisor != 0 {
        return Err(Scale::Fraction);
    }
    parse(whole)?
        .checked_mul(unit)
        .and_then(|n| n.checked_add(part / divisor))
        .and_then(|n| u64::try_from(n).ok())
        .ok_or(Scale::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(scaled("1.5", 1000), Ok(1500));
        assert_eq!(scaled("0.001", 1000), Ok(1));
        assert_eq!(scaled("1.10", 10), Ok(11));
        assert_eq!(scaled("0.0001", 1000), Err(Scale::Fraction));
        assert_eq!(scaled("18446744073709551615", 1), Ok(u64::MAX));
        assert_eq!(scaled("18446744073709551616", 1), Err(Scale::TooLarge));
        for wrong in ["", ".", "1.", ".5", "1.2.3"] {
            assert_eq!(scaled(wrong, 1000), Err(Scale::NotANumber), "{wrong:?}");
        }
    }
}
