//! Formats numbers as wrk does: two decimals and a unit, which changes at 85 % of the next unit. Called by `wrk`.

/// Microseconds: `231.94us`, `3.65ms`, `1.20s`, `1.50m`.
pub fn time_us(us: f64) -> String {
    if us >= 1e6 { scaled(us / 1e6, 60.0, "s", &["m"], 2) } else { scaled(us, 1e3, "us", &["ms"], 2) }
}

/// Seconds as a whole number: `10s`, `2m`.
pub fn time_s(seconds: f64) -> String {
    scaled(seconds, 60.0, "s", &["m"], 0)
}

/// A count in thousands: `78.36k`.
pub fn metric(n: f64) -> String {
    scaled(n, 1e3, "", &["k", "M", "G", "T"], 2)
}

/// A count in powers of 1024: `34.08M`.
pub fn binary(n: f64) -> String {
    scaled(n, 1024.0, "", &["K", "M", "G", "T"], 2)
}

fn scaled(mut n: f64, scale: f64, base: &str, units: &[&str], decimals: usize) -> String {
    let mut unit = base;
    for next in units {
        if n < scale * 0.85 {
            break;
        }
        n /= scale;
        unit = next;
    }
    format!("{n:.decimals$}{unit}")
}

/// A figure in a column: right-aligned, with a unit of less than two letters padded behind, so that points align.
pub fn cell(text: &str, width: usize) -> String {
    let letters = text.bytes().rev().take(2).filter(u8::is_ascii_alphabetic).count();
    let pad = 2 - letters;
    format!("{text:>w$}{:pad$}", "", w = width - pad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_wrk_changes_them() {
        assert_eq!([time_us(231.94), time_us(849.0), time_us(850.0)], ["231.94us", "849.00us", "0.85ms"]);
        assert_eq!([time_us(999_999.0), time_us(1.2e6), time_us(60e6)], ["1000.00ms", "1.20s", "1.00m"]);
        assert_eq!([time_s(1.0), time_s(30.0), time_s(90.0), time_s(120.0)], ["1s", "30s", "2m", "2m"]);
        assert_eq!([metric(849.0), metric(78_360.0), metric(2e6)], ["849.00", "78.36k", "2.00M"]);
        assert_eq!([binary(1023.0), binary(870.0), binary(35_735_470.0)], ["1.00K", "870.00", "34.08M"]);
    }

    #[test]
    fn cells_align_by_their_points() {
        assert_eq!(
            [cell("67.00us", 10), cell("3.65s", 10), cell("12.00", 10)],
            ["   67.00us", "    3.65s ", "   12.00  "]
        );
    }
}
