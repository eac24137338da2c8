//! Lists, ranges and intervals in words. Knows numbers and names, nothing of what they are.

pub(super) use weir_model::text::list;
use weir_stats::Estimate;

use weir_model::text::short;

/// An interval whose ends are so many times apart says nothing.
const BOUNDLESS: f64 = 1_000.0;

/// "0.36", "0.28 to 0.46"; empty for nothing.
pub(super) fn range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (least_words, most_words) = (short(least), short(most));
    match values {
        [] => String::new(),
        _ if least_words == most_words => least_words,
        _ => format!("{least_words} to {most_words}"),
    }
}

/// "0.85 (0.80-0.90)"; of one block only the value.
pub(super) fn with_interval(estimate: &Estimate, size: f64) -> String {
    let value = short(estimate.value / size);
    match interval(estimate, size) {
        interval if interval.is_empty() => value,
        interval => format!("{value} ({interval})"),
    }
}

/// "0.80-0.90"; empty for one block, for something compared with itself, and where no digit would differ.
pub(super) fn interval(estimate: &Estimate, size: f64) -> String {
    if estimate.n < 2 || estimate.low >= estimate.high {
        return String::new();
    }
    if estimate.high > estimate.low.max(0.0) * BOUNDLESS {
        return "too few blocks for an interval".to_string();
    }
    let (low, high) = (short(estimate.low / size), short(estimate.high / size));
    // Ends that look alike say less than nothing: the number has all the digits that are shown.
    if low == high { String::new() } else { format!("{low}\u{2013}{high}") }
}

/// A few names in full, of many the number: "in all 8 cases", "on a and b".
pub(super) fn cases(names: &[String], of: usize) -> String {
    if names.len() == of && of > 2 { format!("in all {of} cases") } else { format!("on {}", list(names)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_numbers() {
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!([range(&[]), range(&[0.5, 0.5001]), range(&[2.0, 0.25])], ["", "0.500", "0.250 to 2.00"]);
        let estimate = Estimate { value: 1_500.0, low: 1_400.0, high: 1_600.0, n: 3, level: 0.75 };
        assert_eq!(with_interval(&estimate, 1_000.0), "1.50 (1.40\u{2013}1.60)");
        assert_eq!(with_interval(&Estimate { n: 1, ..estimate }, 1.0), "1,500");
        let wide = Estimate { low: 1e-9, high: 1e9, ..estimate };
        assert_eq!(with_interval(&wide, 1.0), "1,500 (too few blocks for an interval)");
        let names = ["a", "b", "c"].map(str::to_string);
        assert_eq!([cases(&names, 3), cases(&names, 5)], ["in all 3 cases", "on a, b and c"]);
    }
}
