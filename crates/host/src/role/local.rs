//! A role on this machine: a child process with its pipes. [`crate::local::LocalHost`] starts it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;

use crate::host::{ReceiveError, RoleProcess};

/// How long a role may take to end when its standard input is closed, before it is killed.
pub(super) const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// A child process. Dropping it ends it.
#[derive(Debug)]
pub struct LocalRole {
    pid: u32,
    child: Mutex<Child>,
    /// Dropped to end the process.
    stdin: Mutex<Option<ChildStdin>>,
    lines: Mutex<Receiver<String>>,
}

/// Locks even if a thread panicked with the lock: the data stays valid.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LocalRole {
    /// Starts it.
    ///
    /// # Errors
    /// What the system said.
    pub fn start(program: &Path, args: &[String], output: &Path) -> std::io::Result<LocalRole> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(output)?;
        let mut other_lines = log.try_clone()?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C at the terminal must reach only weir, which then ends its roles in order.
            .process_group(0)
            .spawn()?;
        let stdin = child.stdin.take();
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if serde_json::from_str::<IgnoredAny>(&line).is_err() {
                        // Lines that are not JSON go to the log.
                        let _ = writeln!(other_lines, "{line}");
                    } else if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(LocalRole { pid: child.id(), child: Mutex::new(child), stdin: Mutex::new(stdin), lines: Mutex::new(lines) })
    }
}

impl RoleProcess for LocalRole {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn alive(&self) -> bool {
        matches!(locked(&self.child).try_wait(), Ok(None))
    }

    fn send(&self, line: &str) -> std::io::Result<()> {
        let mut stdin = locked(&self.stdin);
        let stdin = stdin.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{line}")?;
        stdin.flush()
    }

    fn receive(&self, within: Duration) -> Result<String, ReceiveError> {
        locked(&self.lines).recv_timeout(within).map_err(|error| match error {
            RecvTimeoutError::Timeout => ReceiveError::Timeout,
            RecvTimeoutError::Disconnected => ReceiveError::Ended,
        })
    }

    fn end(&self) {
        *locked(&self.stdin) = None;
        let deadline = Instant::now() + ENDS_WITHIN;
        while Instant::now() < deadline {
            if !self.alive() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut child = locked(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for LocalRole {
    fn drop(&mut self) {
        self.end();
    }
}
