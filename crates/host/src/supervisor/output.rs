//! Keeps what a program writes to its output from filling the disk. The supervisor calls it while the program runs and at its end.
//!
//! The program writes to the file itself, so its output costs nobody but the program. When the file grows too long, the blocks of its
//! middle are given back to the file system (`fallocate`, `FALLOC_FL_PUNCH_HOLE`), and at the end the hole is replaced by a line that says
//! how much is missing. Rejected: a pipe, whose reader takes CPU time and whose fullness would stop the program; a limit of the file's
//! size, which ends the program (`SIGXFSZ`).
//!
//! Where the file system has no holes, such as NFS, the output has no limit.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};

/// How much is kept of the beginning, and at least of the end, bytes. A multiple of every file system's blocks.
const KEPT: u64 = 1 << 20;

/// How often the supervisor looks.
pub const EVERY: Duration = Duration::from_millis(250);

/// The file of a program's output.
#[derive(Debug)]
pub struct Output {
    file: File,
    /// What lies between the beginning that is kept and here was given back.
    freed_to: u64,
}

impl Output {
    /// The output at this path; `None` where it is no file, which then cannot grow.
    pub fn open(path: &Path) -> Option<Output> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path).ok()?;
        file.metadata().ok()?.is_file().then_some(Output { file, freed_to: KEPT })
    }

    /// Gives back what is neither beginning nor end, if it is much.
    pub fn limit(&mut self) {
        let Ok(metadata) = self.file.metadata() else { return };
        let end = metadata.len().saturating_sub(KEPT) / KEPT * KEPT;
        if end > self.freed_to {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if fallocate(&self.file, hole, self.freed_to, end - self.freed_to).is_ok() {
                self.freed_to = end;
            }
        }
    }

    /// The program has ended: puts a line in the place of what was given back.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn end(mut self) -> std::io::Result<()> {
        self.limit();
        if self.freed_to == KEPT {
            return Ok(());
        }
        let mut last = Vec::new();
        self.file.seek(SeekFrom::Start(self.freed_to))?;
        self.file.read_to_end(&mut last)?;
        self.file.seek(SeekFrom::Start(KEPT))?;
        let missing = self.freed_to - KEPT;
        write!(
            self.file,
            "\n[weir: {missing} bytes of output are left out here; the first and the last MiB are kept]\n"
        )?;
        self.file.write_all(&last)?;
        let length = self.file.stream_position()?;
        self.file.set_len(length)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_middle_of_a_long_output_is_given_back_and_named() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut program = OpenOptions::new().append(true).open(file.path()).expect("opens");
        let mut output = Output::open(file.path()).expect("a file");
        let (mut line, mut written) = (0u32, 0);
        while written < 20 * KEPT {
            writeln!(program, "line {line:07}").expect("written");
            (line, written) = (line + 1, written + 13);
            if line.is_multiple_of(50_000) {
                output.limit();
            }
        }
        let taken = file.as_file().metadata().expect("there").blocks() * 512;
        assert!(taken < 5 * KEPT, "{taken} bytes on disk");
        output.end().expect("ends");
        let text = std::fs::read_to_string(file.path()).expect("no hole is left");
        assert!(text.len() as u64 <= 4 * KEPT, "{}", text.len());
        let missing = written - (text.len() as u64 - notice(&text).len() as u64);
        assert!(
            notice(&text).contains(&format!("[weir: {missing} bytes of output are left out here")),
            "{}",
            notice(&text)
        );
        assert!(text.starts_with("line 0000000\n") && text.ends_with(&format!("line {:07}\n", line - 1)));
    }

    fn notice(text: &str) -> &str {
        let begin = text.find("\n[weir: ").expect("it is there");
        let length = text[begin + 1..].find('\n').expect("a line");
        &text[begin..begin + length + 2]
    }

    #[test]
    fn a_short_output_stays_as_it_is() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), vec![b'x'; (KEPT * 3 / 2) as usize]).expect("written");
        Output::open(file.path()).expect("a file").end().expect("ends");
        assert_eq!(file.as_file().metadata().expect("there").len(), KEPT * 3 / 2);
        assert!(Output::open(Path::new("/dev/null")).is_none());
    }
}
