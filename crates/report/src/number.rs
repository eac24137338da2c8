//! Numbers as people read them: three significant digits, thousands separated, a unit fit for the size.
//! Knows nothing of where a number comes from.

/// `45123.4` is `45,100`, `0.01234` is `0.0123`, `12.3` stays. Three significant digits, no exponent.
pub fn short(x: f64) -> String {
    significant(x, 3)
}

/// The same with another number of significant digits (1 to 15).
pub fn significant(x: f64, digits: i32) -> String {
    if !x.is_finite() {
        return "\u{2013}".to_string();
    }
    if x == 0.0 {
        return "0".to_string();
    }
    let rounded = round_to(x, digits);
    let magnitude = rounded.abs().log10().floor() as i32;
    let decimals = (digits - 1 - magnitude).clamp(0, 12) as usize;
    let text = format!("{rounded:.decimals$}");
    // 1.00 says "three digits are known"; a whole number of hundreds does not need decimals at all.
    group_thousands(&text)
}

/// A count, all digits: `1234567` is `1,234,567`.
pub fn count(n: u64) -> String {
    group_thousands(&n.to_string())
}

/// `x` rounded to so many significant digits.
fn round_to(x: f64, digits: i32) -> f64 {
    let magnitude = x.abs().log10().floor() as i32;
    let shift = digits - 1 - magnitude;
    // A power of ten is exact up to 22, its inverse is not: so divide where the shift is negative.
    if shift >= 0 {
        let scale = 10f64.powi(shift);
        (x * scale).round() / scale
    } else {
        let scale = 10f64.powi(-shift);
        (x / scale).round() * scale
    }
}

/// Commas between groups of three digits of the whole part.
fn group_thousands(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::with_capacity(whole.len() + whole.len() / 3);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

/// `0.0523` is `5.2 %`. Two significant digits: what follows from a few blocks is not known better.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "\u{2013}".to_string();
    }
    format!("{} %", significant(share * 100.0, 2))
}

/// Seconds as a window's length: `20 s`, `1.5 s`, `2 min`.
pub fn seconds(s: f64) -> String {
    if s >= 120.0 && (s % 60.0).abs() < 0.5 {
        format!("{} min", count((s / 60.0).round() as u64))
    } else if (s - s.round()).abs() < 0.05 {
        format!("{} s", count(s.round().max(0.0) as u64))
    } else {
        format!("{} s", significant(s, 2))
    }
}

/// A unit to divide by, so that a column or an axis has readable numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// As written after the number or in a header.
    pub name: &'static str,
    /// How many of the base unit are one of these.
    pub size: f64,
}

impl Unit {
    /// Requests a second.
    pub const PER_SECOND: Unit = Unit { name: "requests/s", size: 1.0 };
    /// Microseconds, base microseconds.
    pub const MICROS: Unit = Unit { name: "\u{b5}s", size: 1.0 };
    /// Milliseconds, base microseconds.
    pub const MILLIS: Unit = Unit { name: "ms", size: 1_000.0 };
    /// Mebibytes, base bytes.
    pub const MEBIBYTES: Unit = Unit { name: "MiB", size: 1_048_576.0 };
    /// Kibibytes, base bytes.
    pub const KIBIBYTES: Unit = Unit { name: "KiB", size: 1_024.0 };
    /// CPU time of the proxy for one answer.
    pub const MICROS_PER_REQUEST: Unit = Unit { name: "\u{b5}s/request", size: 1.0 };
    /// Cores.
    pub const CORES: Unit = Unit { name: "cores", size: 1.0 };

    /// For durations of which `smallest_us` is the least that must stay readable.
    pub fn for_time(smallest_us: f64) -> Unit {
        if smallest_us >= 1_000.0 { Unit::MILLIS } else { Unit::MICROS }
    }

    /// For the least of several durations that is none of nothing.
    pub fn for_least(all_us: impl Iterator<Item = f64>) -> Unit {
        Unit::for_time(all_us.filter(|us| *us > 0.0).fold(f64::INFINITY, f64::min))
    }

    /// For durations of every size together: microseconds, unless some of them would take six digits.
    pub fn for_times(all_us: impl Iterator<Item = f64>) -> Unit {
        let (least, most) = all_us.fold((f64::INFINITY, 0.0_f64), |(a, b), us| (a.min(us), b.max(us)));
        if most >= 100_000.0 { Unit::MILLIS } else { Unit::for_time(least) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_separators() {
        for (x, text) in [
            (45_123.4, "45,100"),
            (1_234_567.0, "1,230,000"),
            (999.6, "1,000"),
            (12.34, "12.3"),
            (1.0, "1.00"),
            (0.012_34, "0.0123"),
            (0.0, "0"),
            (-4_512.0, "-4,510"),
            (9.996, "10.0"),
            (f64::NAN, "\u{2013}"),
        ] {
            assert_eq!(short(x), text, "{x}");
        }
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(percent(0.0523), "5.2 %");
    }

    #[test]
    fn a_unit_that_keeps_the_least_readable() {
        let of = |all: &[f64]| Unit::for_least(all.iter().copied());
        assert_eq!(of(&[900.0, 5_000.0]), Unit::MICROS);
        assert_eq!(of(&[0.0, 5_000.0]), Unit::MILLIS, "no time is none that was measured");
    }

    #[test]
    fn lengths_of_windows() {
        assert_eq!(seconds(20.0), "20 s");
        assert_eq!(seconds(1.5), "1.5 s");
        assert_eq!(seconds(180.0), "3 min");
    }
}
