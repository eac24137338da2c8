//! Tables that are written into a page which people write, between two comments that name them.

use std::path::Path;

use anyhow::Context;

/// Puts `text` into the place that the file has for it: between `<!-- bench: NAME -->` and `<!-- bench: end -->`. A file that
/// is not there, or has no such place, stays as it is.
///
/// # Errors
/// When the file cannot be read or written.
pub fn fill(file: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let page = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    match filled(&page, name, text) {
        Some(page) => std::fs::write(file, page).with_context(|| file.display().to_string()),
        None => Ok(()),
    }
}

fn filled(page: &str, name: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(&format!("<!-- bench: {name} -->\n"))?;
    let at = rest.find("<!-- bench: end -->")?;
    Some(format!("{before}<!-- bench: {name} -->\n\n{}\n\n{}", text.trim(), &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_place_changes() {
        let page = "a\n<!-- bench: x -->\nold\n<!-- bench: end -->\nb\n<!-- bench: y -->\n<!-- bench: end -->\n";
        let once = filled(page, "x", "| new |\n").unwrap();
        assert!(
            once.starts_with("a\n<!-- bench: x -->\n\n| new |\n\n<!-- bench: end -->\nb\n<!-- bench: y -->\n"),
            "{once}"
        );
        assert_eq!(filled(&once, "x", "| new |\n").unwrap(), once);
        assert!(filled(page, "z", "").is_none());
    }

    #[test]
    fn no_file_no_harm() {
        fill(Path::new("/nonexistent/page.md"), "x", "y").unwrap();
    }
}
