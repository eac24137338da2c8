//! Files of `/proc` that are opened once and read many times.
//!
//! A file of a process stays bound to that process: when it ends, reading fails, also after its number has been
//! given to another. So an open file is cheaper than a path and cannot mistake one process for another.
//!
//! Called by all samplers. Does not know what the bytes mean.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Whether an error means that a process, a thread or one of its files does not exist. That is not a failure: it has
/// ended, or this kernel has no such file.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    let none = [rustix::io::Errno::NOENT, rustix::io::Errno::SRCH];
    none.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// A file of `/proc` that stays open.
#[derive(Debug)]
pub(crate) struct OpenFile(OwnedFd);

impl OpenFile {
    /// Opens for reading. Paths are relative to `dir`.
    pub fn open_at(dir: impl AsFd, path: &str) -> io::Result<OpenFile> {
        Ok(OpenFile(openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens for reading, by absolute path.
    pub fn open(path: &str) -> io::Result<OpenFile> {
        OpenFile::open_at(CWD, path)
    }
}

/// The buffer that all files are read into, and the number of reads.
#[derive(Debug)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
    /// Always empty: only its capacity is used, as the buffer that directories are listed into.
    entries: Vec<u8>,
    /// Files read and directories listed.
    pub reads: u64,
    /// Whether this kernel reports the children of a thread (CONFIG_PROC_CHILDREN; all distributions' kernels do).
    pub has_children_files: bool,
}

impl Reader {
    /// A reader whose buffer grows when a file needs it.
    pub fn new() -> Reader {
        let has_children_files = std::path::Path::new("/proc/thread-self/children").exists();
        Reader { buffer: vec![0; 16 * 1024], entries: Vec::with_capacity(16 * 1024), reads: 0, has_children_files }
    }

    /// Reads a file that the kernel returns in one piece (all but `children` and tables of sockets).
    pub fn whole(&mut self, file: &OpenFile) -> io::Result<&[u8]> {
        self.read(file, true)
    }

    /// Reads a file that the kernel may return in pieces.
    pub fn pieces(&mut self, file: &OpenFile) -> io::Result<&[u8]> {
        self.read(file, false)
    }

    fn read(&mut self, file: &OpenFile, whole: bool) -> io::Result<&[u8]> {
        self.reads += 1;
        let mut filled = 0;
        loop {
            let got = rustix::io::pread(&file.0, &mut self.buffer[filled..], filled as u64)?;
            filled += got;
            if got == 0 || (whole && filled < self.buffer.len()) {
                return Ok(&self.buffer[..filled]);
            }
            if filled == self.buffer.len() {
                self.buffer.resize(2 * filled, 0);
            }
        }
    }

    /// Calls `each` with every numeric name in a directory that is kept open.
    pub fn numbers_in(&mut self, dir: &OwnedFd, mut each: impl FnMut(u32)) -> io::Result<()> {
        self.names_in(dir, |name| {
            if let Some(number) = crate::parse::number(name.to_bytes()) {
                each(u32::try_from(number).unwrap_or(u32::MAX));
            }
        })
    }

    /// Counts the entries of a directory that is kept open, `.` and `..` not among them.
    pub fn count_in(&mut self, dir: &OwnedFd) -> io::Result<u64> {
        let mut count = 0;
        self.names_in(dir, |name| count += u64::from(!matches!(name.to_bytes(), b"." | b"..")))?;
        Ok(count)
    }

    fn names_in(&mut self, dir: &OwnedFd, mut each: impl FnMut(&CStr)) -> io::Result<()> {
        self.reads += 1;
        rustix::fs::seek(dir, rustix::fs::SeekFrom::Start(0))?;
        let mut entries = rustix::fs::RawDir::new(dir, self.entries.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            each(entry?.file_name());
        }
        Ok(())
    }
}
