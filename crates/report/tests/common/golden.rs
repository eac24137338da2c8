//! Texts that somebody has looked at, kept in `tests/golden`.

use std::fs;
use std::path::Path;

/// Compares with a file in `tests/golden`; `WEIR_BLESS=1` writes it instead.
pub fn golden(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&file, text).unwrap();
        return;
    }
    let wanted = fs::read_to_string(&file).unwrap_or_default();
    let differs = wanted.lines().zip(text.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or_else(|| wanted.lines().count().min(text.lines().count()));
    assert!(
        wanted == text,
        "{name} differs from line {} on:\n  golden: {:?}\n  now:    {:?}\nlook at it, then bless it with WEIR_BLESS=1",
        line + 1,
        wanted.lines().nth(line),
        text.lines().nth(line)
    );
}
