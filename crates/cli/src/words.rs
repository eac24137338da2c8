//! Numbers and lists as people read them in columns: counts with commas, times in three digits, CPUs as ranges.

/// `1 thread`, `2 threads`, `1,000 requests`.
pub fn counted(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `478,584`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate a second in full: `119,646/s`; below ten a second with two decimals. Not a number is `-`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        r if !r.is_finite() => "-".to_owned(),
        r if r > 0.0 && r < 9.995 => format!("{r:.2}/s"),
        r => format!("{}/s", count(r.round().max(0.0) as u64)),
    }
}

/// Microseconds in always three digits, so that columns align: `65.5 us`, `2.50 ms`, `10.5 s`. Not a number is `-`.
pub fn time(us: f64) -> String {
    if !us.is_finite() {
        return "-".to_owned();
    }
    // Chosen after rounding, so that 999.7 us is 1.00 ms and never 1000 us.
    let (value, unit) = match us {
        _ if us < 999.5 => (us, "us"),
        _ if us < 999_500.0 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    };
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// CPUs as they are written in flags: `0-2,5`.
pub fn cpus(list: &[u32]) -> String {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words: Vec<String> =
        ranges.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    words.join(",")
}

/// Each row's cells padded to the widest of their column; the last column is not padded.
pub fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.iter().map(Vec::len).max().unwrap_or(0)).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().enumerate().map(|(i, cell)| format!("{cell:<w$}", w = widths[i]));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
}

/// Words beside a head, which wrap below themselves.
pub fn hanging(head: &str, text: &str, width: usize) -> String {
    let indent = head.chars().count();
    let lines = wrapped(text, width.saturating_sub(indent).max(20), 0);
    format!("{head}{}", lines.replace('\n', &format!("\n{:indent$}", "")))
}

/// Words in lines of at most `width` characters, all but the first with `indent` blanks before them.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.trim().is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{:indent$}{word}", ""));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_rates_are_exact_and_readable() {
        assert_eq!([count(0), count(999), count(1_000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [counted(1, "thread"), counted(0, "thread"), counted(64, "thread")],
            ["1 thread", "0 threads", "64 threads"]
        );
        assert_eq!([rate(0.0), rate(1.25), rate(80.4), rate(119_646.3)], ["0/s", "1.25/s", "80/s", "119,646/s"]);
        assert_eq!(rate(f64::NAN), "-");
    }

    #[test]
    fn times_have_three_digits_in_the_unit_that_fits() {
        let seen = [0.0, 0.5, 44.0, 65.52, 99.96, 752.4, 999.7, 2_500.0, 10_000.0, 399_000.0, 999_700.0, 10_500_000.0];
        let wanted = [
            "0.00 us", "0.50 us", "44.0 us", "65.5 us", "100 us", "752 us", "1.00 ms", "2.50 ms", "10.0 ms", "399 ms",
            "1.00 s", "10.5 s",
        ];
        assert_eq!(seen.map(time), wanted);
        assert_eq!(time(f64::INFINITY), "-");
    }

    #[test]
    fn cpus_are_written_as_flags_take_them() {
        assert_eq!([cpus(&[0]), cpus(&[0, 1]), cpus(&[5, 0, 2, 1]), cpus(&[])], ["0", "0-1", "0-2,5", ""]);
    }

    #[test]
    fn lines_wrap_between_words() {
        assert_eq!(wrapped("doctor: cpus, steal (x)", 14, 2), "doctor: cpus,\n  steal (x)");
        assert_eq!(wrapped("", 10, 2), "");
    }

    #[test]
    fn words_hang_beside_their_head() {
        assert_eq!(hanging("  a   ", "some words that are long", 27), "  a   some words that are\n      long");
    }

    #[test]
    fn columns_align_and_end_without_blanks() {
        let rows = [vec!["a".into(), "bcd".into(), "e".into()], vec!["abc".into(), "b".into(), String::new()]];
        assert_eq!(columns(&rows), ["a    bcd  e", "abc  b"]);
    }
}
