//! Own parsers of the `/proc` files that are read every second.
//!
//! They take bytes, allocate nothing and never panic: what is missing or malformed is `None`. The general crate reads
//! files that are read once, and `stat`, once a process; here its strings and maps would cost more than the kernel's work. The samplers call
//! them.
//!
//! Nothing here opens a file.

pub(crate) mod cgroup;
pub(crate) mod host;
pub(crate) mod process;

/// Lines without their ends.
pub(crate) fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split(|&b| b == b'\n')
}

/// Words between blanks.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

/// A decimal number without sign; `None` when it is not one or does not fit.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |sum, digit| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// The number after `key` (with its colon) on the line that begins with it.
pub(crate) fn keyed(text: &[u8], key: &[u8]) -> Option<u64> {
    lines(text).find_map(|line| number(words(line.strip_prefix(key)?).next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"-1"), None);
        assert_eq!(number(b"1 "), None);
    }

    #[test]
    fn keyed_lines() {
        let text = b"Pss_Dirty:  3 kB\nPss:               295 kB\n";
        assert_eq!(keyed(text, b"Pss:"), Some(295));
        assert_eq!(keyed(text, b"Rss:"), None);
        assert_eq!(keyed(b"Pss:\n", b"Pss:"), None);
    }
}
