//! Formats numbers: three significant digits, groups of thousands, and a unit that fits the size.
//! The command line, reports, comparisons and findings use it.

/// `45123.4` is `45,100`, `0.01234` is `0.0123`, `12.3` stays. Three significant digits, no exponent.
pub fn short(x: f64) -> String {
    significant(x, 3)
}

/// Like [`short`], with another number of significant digits (1 to 15).
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

/// `1 thread`, `2 threads`, `1,000 requests`.
pub fn counted(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Requests a second: `0.5/s`, `850/s`, `62.3k/s`, `1.2M/s`. Not a number is `-`.
pub fn human_rate(per_second: f64) -> String {
    in_unit(per_second, &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")], false)
}

/// A rate a second in full: `119,646/s`; below ten a second with two decimals. Not a number is `-`.
pub fn full_rate(per_second: f64) -> String {
    match per_second {
        r if !r.is_finite() => "-".to_owned(),
        r if r > 0.0 && r < 9.995 => format!("{r:.2}/s"),
        r => format!("{}/s", count(r.round().max(0.0) as u64)),
    }
}

const TIMES: [(f64, &str); 3] = [(1e6, " s"), (1e3, " ms"), (1.0, " \u{b5}s")];

/// Microseconds as a time: `3.4 µs`, `34 µs`, `1.23 ms`, `2.1 s`. Not a number is `-`.
pub fn human_us(us: f64) -> String {
    in_unit(us, &TIMES, false)
}

/// Microseconds in always three digits, so that columns align: `65.5 µs`, `2.50 ms`, `10.5 s`. Not a number is `-`.
pub fn fixed_us(us: f64) -> String {
    in_unit(us, &TIMES, true)
}

/// Bytes in powers of 1024: `512 B`, `16 KiB`, `1.3 GiB`. Not a number is `-`.
pub fn human_bytes(bytes: f64) -> String {
    const KIB: f64 = 1024.0;
    let units = [(KIB.powi(4), " TiB"), (KIB.powi(3), " GiB"), (KIB.powi(2), " MiB"), (KIB, " KiB"), (1.0, " B")];
    in_unit(bytes, &units, false)
}

/// `value` in the largest of `units` (largest first) of which there is at least one, in three digits; `fixed` keeps zeros at
/// the end.
fn in_unit(value: f64, units: &[(f64, &str)], fixed: bool) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    // Rounded before the unit is chosen: 999.9 µs is 1 ms, never 1000 µs.
    let chosen = units.iter().find(|(size, _)| three_digits(value / size).abs() >= 1.0);
    let (size, name) = chosen.or(units.last()).copied().unwrap_or((1.0, ""));
    let value = three_digits(value / size);
    match value.abs() {
        _ if !fixed => format!("{value}{name}"),
        v if v >= 100.0 => format!("{value:.0}{name}"),
        v if v >= 10.0 => format!("{value:.1}{name}"),
        _ => format!("{value:.2}{name}"),
    }
}

/// `value` to three digits; what has more before its point keeps them all (1023 B).
fn three_digits(value: f64) -> f64 {
    let step = match value.abs() {
        m if m >= 99.95 => 1.0,
        m if m >= 9.995 => 10.0,
        m if m >= 1.0 => 100.0,
        _ => 1000.0,
    };
    // Adding 0.0 turns -0 into 0.
    (value * step).round() / step + 0.0
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

/// `0.0523` is `5.2 %`. Two significant digits, because a few blocks do not give more.
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

/// The smallest value above 0; a value that was not measured must not decide the unit.
pub fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min)
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
    /// Gibibytes, base bytes.
    pub const GIBIBYTES: Unit = Unit { name: "GiB", size: 1_073_741_824.0 };
    /// Mebibytes, base bytes.
    pub const MEBIBYTES: Unit = Unit { name: "MiB", size: 1_048_576.0 };
    /// Kibibytes, base bytes.
    pub const KIBIBYTES: Unit = Unit { name: "KiB", size: 1_024.0 };
    /// CPU time of the proxy for one response.
    pub const MICROS_PER_REQUEST: Unit = Unit { name: "\u{b5}s/request", size: 1.0 };
    /// Seconds.
    pub const SECONDS: Unit = Unit { name: "s", size: 1.0 };
    /// Of a ratio.
    pub const NONE: Unit = Unit { name: "", size: 1.0 };
    /// Cores.
    pub const CORES: Unit = Unit { name: "cores", size: 1.0 };

    /// The unit for durations of which `smallest_us` (µs) is the smallest that must stay readable.
    pub fn for_time(smallest_us: f64) -> Unit {
        if smallest_us >= 1_000.0 { Unit::MILLIS } else { Unit::MICROS }
    }

    /// The unit for the smallest of several durations above 0.
    pub fn for_least(all_us: impl Iterator<Item = f64>) -> Unit {
        Unit::for_time(least(all_us))
    }

    /// The unit for durations of all sizes: microseconds, unless some of them would take six digits.
    pub fn for_times(all_us: impl Iterator<Item = f64>) -> Unit {
        let (least, most) = all_us.fold((f64::INFINITY, 0.0_f64), |(a, b), us| (a.min(us), b.max(us)));
        if most >= 100_000.0 { Unit::MILLIS } else { Unit::for_time(least) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (us, text) in [
            (0.0, "0 µs"),
            (0.25, "0.25 µs"),
            (3.4, "3.4 µs"),
            (34.0, "34 µs"),
            (34.04, "34 µs"),
            (345.6, "346 µs"),
            (999.9, "1 ms"),
            (1234.0, "1.23 ms"),
            (999_999.0, "1 s"),
            (2_100_000.0, "2.1 s"),
            (3_600_000_000.0, "3600 s"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(human_us(us), text, "{us}");
        }
    }

    #[test]
    fn times_of_a_column_have_three_digits() {
        let seen = [0.0, 0.5, 44.0, 65.52, 99.96, 752.4, 999.7, 2_500.0, 10_000.0, 399_000.0, 999_700.0, 10_500_000.0];
        let wanted = [
            "0.00 µs", "0.50 µs", "44.0 µs", "65.5 µs", "100 µs", "752 µs", "1.00 ms", "2.50 ms", "10.0 ms", "399 ms",
            "1.00 s", "10.5 s",
        ];
        assert_eq!(seen.map(fixed_us), wanted);
        assert_eq!(fixed_us(f64::INFINITY), "-");
    }

    #[test]
    fn rates() {
        for (rate, text) in [
            (0.5, "0.5/s"),
            (850.0, "850/s"),
            (999.7, "1k/s"),
            (62_345.6, "62.3k/s"),
            (220_000.0, "220k/s"),
            (1_200_000.0, "1.2M/s"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(human_rate(rate), text, "{rate}");
        }
        assert_eq!([0.0, 1.25, 80.4, 119_646.3, f64::NAN].map(full_rate), ["0/s", "1.25/s", "80/s", "119,646/s", "-"]);
    }

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (512.0, "512 B"),
            (1023.0, "1023 B"),
            (11_268.0, "11 KiB"),
            (16_384.0, "16 KiB"),
            (1.3 * 1024.0 * 1024.0 * 1024.0, "1.3 GiB"),
            (-2048.0, "-2 KiB"),
        ] {
            assert_eq!(human_bytes(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 0, 64].map(|n| counted(n, "thread")), ["1 thread", "0 threads", "64 threads"]);
    }

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
