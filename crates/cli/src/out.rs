//! Writes results to standard output and everything else to standard error. Used by every verb.
//!
//! A closed pipe (`weir products list | head -1`) is not an error. A full disk under `weir ... > file` is.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

use crate::exit::Failure;

/// Writes a line of the result.
///
/// # Errors
/// When standard output cannot be written, unless its reader has closed it.
pub fn result(line: Arguments<'_>) -> Result<(), Failure> {
    write_line(&mut std::io::stdout().lock(), line)
        .map_err(|e| Failure::missing(format!("cannot write the result to standard output: {e}")))
}

/// Writes a line for the person watching. Errors are ignored: there is nowhere to report them.
pub fn remark(line: Arguments<'_>) {
    let _ = write_line(&mut std::io::stderr().lock(), line);
}

fn write_line(to: &mut impl Write, line: Arguments<'_>) -> std::io::Result<()> {
    match writeln!(to, "{line}").and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// `println!` for results: returns early with a [`Failure`] when standard output cannot be written.
macro_rules! output {
    () => { output!("") };
    ($($words:tt)*) => { $crate::out::result(format_args!($($words)*))? };
}

/// `eprintln!` that a closed standard error does not break.
macro_rules! remark {
    ($($words:tt)*) => { $crate::out::remark(format_args!($($words)*)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ends(ErrorKind);

    impl Write for Ends {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_error_and_a_full_disk_is() {
        assert!(write_line(&mut Ends(ErrorKind::BrokenPipe), format_args!("x")).is_ok());
        assert!(write_line(&mut Ends(ErrorKind::StorageFull), format_args!("x")).is_err());
        let mut text = Vec::new();
        assert!(write_line(&mut text, format_args!("{} lines", 2)).is_ok());
        assert_eq!(text, b"2 lines\n");
    }
}
