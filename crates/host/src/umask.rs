//! What weir makes for others than its user, whatever the user's umask is: a root's products run as an account of their own.

use rustix::fs::Mode;
use rustix::process::umask;

/// Files and folders that this process makes are readable by all, until this is dropped.
#[derive(Debug)]
pub struct ReadableByAll(Mode);

impl ReadableByAll {
    /// From now on.
    #[expect(clippy::new_without_default, reason = "it changes the process")]
    pub fn new() -> ReadableByAll {
        ReadableByAll(umask(Mode::WGRP | Mode::WOTH))
    }
}

impl Drop for ReadableByAll {
    fn drop(&mut self) {
        umask(self.0);
    }
}
