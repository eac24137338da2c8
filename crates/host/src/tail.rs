//! The last lines of a file that a child process wrote, for error messages. Hosts, installs and supervisors call it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How many bytes are read from the end.
const WINDOW: u64 = 16 * 1024;

/// Characters kept of one line, because a product may dump its whole state into one line.
const LONGEST_LINE: usize = 400;

/// The last `lines` lines, without control characters (a product's output goes to terminals and pages). Empty when
/// there is no such file or nothing in it.
pub fn last_lines(path: &Path, lines: usize) -> String {
    let Ok(mut file) = File::open(path) else {
        return String::new();
    };
    let length = file.metadata().map(|m| m.len()).unwrap_or(0);
    let mut bytes = Vec::new();
    if file.seek(SeekFrom::Start(length.saturating_sub(WINDOW))).is_err() || file.read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| clean(line)).collect::<Vec<_>>().join("\n")
}

fn clean(line: &str) -> String {
    let mut kept: String = line.chars().filter(|c| !c.is_control() || *c == '\t').take(LONGEST_LINE + 1).collect();
    if kept.chars().count() > LONGEST_LINE {
        kept.pop();
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end_and_drops_control_characters() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "one\n\ntwo\n\u{1b}[31mthree\u{7}\n").expect("written");
        assert_eq!(last_lines(file.path(), 2), "two\n[31mthree");
        assert_eq!(last_lines(Path::new("/nonexistent"), 2), "");
        std::fs::write(file.path(), "é".repeat(9_000)).expect("written");
        assert_eq!(last_lines(file.path(), 2), format!("{}…", "é".repeat(LONGEST_LINE)));
    }
}
