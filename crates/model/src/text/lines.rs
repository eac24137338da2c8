//! Wraps lines of plain text. The verbs of the command line and the tables of reports use it.

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
    fn lines_wrap_between_words() {
        assert_eq!(wrapped("doctor: cpus, steal (x)", 14, 2), "doctor: cpus,\n  steal (x)");
        assert_eq!(wrapped("", 10, 2), "");
    }

    #[test]
    fn words_hang_beside_their_head() {
        assert_eq!(hanging("  a   ", "some words that are long", 27), "  a   some words that are\n      long");
    }
}
