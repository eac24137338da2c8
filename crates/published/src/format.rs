//! Formats ranges and intervals as text. `tables` and `document_tables` use it.

use weir_model::text::short;
use weir_report::tables::Cell;
use weir_stats::Estimate;

/// An interval whose upper end is this many times the lower end is useless.
const BOUNDLESS: f64 = 1_000.0;

/// "0.36" or "0.28 to 0.46"; empty without values.
pub(super) fn range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match (short(least), short(most)) {
        _ if values.is_empty() => String::new(),
        (least, most) if least == most => least,
        (least, most) => format!("{least} to {most}"),
    }
}

/// "0.80-0.90" in units of `size`. Empty for one block, for a value compared with itself, and where both ends look the
/// same.
pub(super) fn interval(estimate: &Estimate, size: f64) -> String {
    if estimate.n < 2 || estimate.low >= estimate.high {
        return String::new();
    }
    if estimate.high > estimate.low.max(0.0) * BOUNDLESS {
        return "too few blocks for an interval".to_string();
    }
    let (low, high) = (short(estimate.low / size), short(estimate.high / size));
    if low == high { String::new() } else { format!("{low}\u{2013}{high}") }
}

/// A cell with an estimate in units of `size`, and its interval.
pub(super) fn estimate_cell(estimate: &Estimate, size: f64) -> Cell {
    Cell { detail: interval(estimate, size), ..Cell::number(short(estimate.value / size), estimate.value / size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_text() {
        assert_eq!([range(&[]), range(&[0.5, 0.5001]), range(&[2.0, 0.25])], ["", "0.500", "0.250 to 2.00"]);
        let estimate = Estimate { value: 1_500.0, low: 1_400.0, high: 1_600.0, n: 3, level: 0.75 };
        assert_eq!(interval(&estimate, 1_000.0), "1.40\u{2013}1.60");
        assert_eq!(interval(&Estimate { n: 1, ..estimate }, 1.0), "");
        assert_eq!(interval(&Estimate { low: 1e-9, high: 1e9, ..estimate }, 1.0), "too few blocks for an interval");
    }
}
