//! Numbers for people: three digits and a unit. Nothing here is read back; records hold the exact values.

/// Requests a second: `0.5/s`, `850/s`, `62.3k/s`, `1.2M/s`. Not a number is `-`.
pub fn human_rate(per_second: f64) -> String {
    with_unit(per_second, &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")], "")
}

/// Microseconds as a time: `3.4 us`, `34 us`, `1.23 ms`, `2.1 s`. Not a number is `-`.
pub fn human_us(us: f64) -> String {
    with_unit(us, &[(1e6, "s"), (1e3, "ms"), (1.0, "us")], " ")
}

/// Bytes in powers of 1024: `512 B`, `16 KiB`, `1.3 GiB`. Not a number is `-`.
pub fn human_bytes(bytes: f64) -> String {
    let gib = 1024.0 * 1024.0 * 1024.0;
    let units = [(gib * 1024.0, "TiB"), (gib, "GiB"), (1024.0 * 1024.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
    with_unit(bytes, &units, " ")
}

/// `value` in the largest of `units` (largest first) of which there is at least one, in three digits.
fn with_unit(value: f64, units: &[(f64, &str)], gap: &str) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    // Rounding happens before the unit is chosen, so that 999.9 us is "1 ms" and never "1000 us".
    let rounded = three_digits(value);
    let chosen = units.iter().find(|(size, _)| three_digits(rounded / size).abs() >= 1.0);
    let Some((size, name)) = chosen.or(units.last()) else {
        return rounded.to_string();
    };
    format!("{}{gap}{name}", three_digits(value / size))
}

/// `value` to three significant digits; what has more before its point keeps them all (1023 B).
fn three_digits(value: f64) -> f64 {
    let magnitude = value.abs();
    let step = match magnitude {
        m if m >= 100.0 => 1.0,
        m if m >= 10.0 => 10.0,
        m if m >= 1.0 => 100.0,
        _ => 1000.0,
    };
    // Adding 0.0 turns -0 into 0.
    (value * step).round() / step + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (us, text) in [
            (0.0, "0 us"),
            (0.25, "0.25 us"),
            (3.4, "3.4 us"),
            (34.0, "34 us"),
            (34.04, "34 us"),
            (345.6, "346 us"),
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
}
