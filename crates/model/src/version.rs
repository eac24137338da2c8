//! Versions of programs, compared by their dotted numbers. Products, installs and reports use it.

/// Whether a version is lower than another, by its dotted numbers: 1.9 is below 1.10, and 1.22 is not below 1.22.0.
pub fn is_below(version: &str, wanted: &str) -> bool {
    numbers(version) < numbers(wanted)
}

/// The dotted numbers a version begins with, without zeros at the end.
fn numbers(version: &str) -> Vec<u64> {
    let dotted = version.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    // A number too large for 64 bits is nobody's version.
    let mut numbers: Vec<u64> = dotted.split('.').map(|part| part.parse().unwrap_or(0)).collect();
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(is_below("1.9.3", "1.10"));
        assert!(is_below("2.6.2", "2.6.12-1+deb12u4"));
        assert!(!is_below("1.22", "1.22.0") && !is_below("1.22.0", "1.22"));
        assert!(is_below("", "0.1"));
        assert!(is_below("2.99.99", "3.0"));
    }
}
