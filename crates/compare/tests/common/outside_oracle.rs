//! What must hold of any bytes that are read as a result of a load generator. The fuzz target and the tests use it.

use weir_compare::outside::{beside, parse};

/// Reads them. An error names the file; a result has only numbers that can be, and can be shown.
pub fn check(bytes: &[u8]) {
    match parse("result.txt", bytes) {
        Err(error) => {
            assert!(error.to_string().starts_with("result.txt:"), "{error}");
            assert!(!error.wanted.is_empty(), "{error}");
            // A parser's message may quote the file, which is free to have such words.
            let content = String::from_utf8_lossy(bytes);
            let types = ["f64", "u64", "struct ", "enum ", "variant"];
            assert!(types.iter().all(|name| content.contains(name) || !error.to_string().contains(name)), "{error}");
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
            assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
        }
        Ok(result) => {
            assert!(!result.numbers.is_empty());
            assert!(result.numbers.values().all(|value| value.is_finite() && *value >= 0.0), "{result:?}");
            let both = beside(result.clone(), result, &[]);
            assert!(both.numbers.iter().all(|number| number.before == number.after), "{both:?}");
            assert!(both.text(80, false).contains("one sample"), "{both:?}");
            assert!(both.markdown().contains("one sample"));
        }
    }
}
