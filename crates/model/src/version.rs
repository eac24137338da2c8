//! Versions of programs, compared by their dotted numbers. Products, installs, reports and histories use it.

use std::cmp::Ordering;

/// Whether a version is lower than another, by its dotted numbers: 1.9 is below 1.10, and 1.22 is not below 1.22.0.
pub fn is_below(version: &str, wanted: &str) -> bool {
    numbers(version) < numbers(wanted)
}

/// The order in which readers expect names with numbers in them, such as versions and kernels: digits count as the number that they are,
/// everything else by its characters. 1.9 comes before 1.10, `Linux 6.9.0` before `Linux 6.12.0`, `1.2` before `1.2-rc1`.
pub fn order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (digits_a, digits_b) = (leading_digits(a), leading_digits(b));
        let (by, rest) = if digits_a > 0 && digits_b > 0 {
            let number = |text: &str, digits: usize| text[..digits].parse::<u128>().unwrap_or(u128::MAX);
            (number(a, digits_a).cmp(&number(b, digits_b)), (digits_a, digits_b))
        } else {
            let (first_a, first_b) = (a.chars().next(), b.chars().next());
            let Some((own, other)) = first_a.zip(first_b) else { return first_a.cmp(&first_b) };
            (own.cmp(&other), (own.len_utf8(), other.len_utf8()))
        };
        if by.is_ne() {
            return by;
        }
        (a, b) = (&a[rest.0..], &b[rest.1..]);
    }
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
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
    fn names_are_in_the_order_of_their_numbers() {
        let ordered = ["", "1.2", "1.2-rc1", "1.9", "1.10", "1.10.1", "Linux 6.9.0", "Linux 6.12.0", "Linux \u{e9}"];
        for (at, a) in ordered.iter().enumerate() {
            for (other, b) in ordered.iter().enumerate() {
                assert_eq!(order(a, b), at.cmp(&other), "{a:?} {b:?}");
            }
        }
        let long = "9".repeat(60);
        assert_eq!(order(&long, &long), Ordering::Equal);
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(is_below("1.9.3", "1.10"));
        assert!(is_below("2.6.2", "2.6.12-1+deb12u4"));
        assert!(!is_below("1.22", "1.22.0") && !is_below("1.22.0", "1.22"));
        assert!(is_below("", "0.1"));
        assert!(is_below("2.99.99", "3.0"));
    }
}
