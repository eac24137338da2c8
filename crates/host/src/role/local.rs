//! A role on this machine: a child process with its pipes. [`crate::local::LocalHost`] starts it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;

use crate::host::{ReceiveError, RoleProcess};
use crate::lock::locked;

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
    asked: Arc<Questions>,
}

/// What was asked, and a sign that something was answered.
type Questions = (Mutex<Asked>, Condvar);

/// Questions in the order in which they were asked; the responses come in the same order.
#[derive(Debug, Default)]
struct Asked {
    next: u64,
    /// Asked and not answered. `None`: nobody waits for this response any more.
    pending: VecDeque<Option<u64>>,
    /// Answered and not taken.
    responses: BTreeMap<u64, String>,
    /// No response will come any more.
    ended: bool,
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
        let asked = Arc::<Questions>::default();
        let answered = Arc::clone(&asked);
        if let Some(stdout) = child.stdout.take() {
            let pass = move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if serde_json::from_str::<IgnoredAny>(&line).is_err() {
                        // Lines that are not JSON go to the log.
                        let _ = writeln!(other_lines, "{line}");
                    } else if let Some(line) = not_a_response(&answered, line)
                        && sender.send(line).is_err()
                    {
                        break;
                    }
                }
                locked(&answered.0).ended = true;
                answered.1.notify_all();
            };
            if let Err(error) = std::thread::Builder::new().name("weir-lines".into()).spawn(pass) {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        }
        Ok(LocalRole {
            pid: child.id(),
            child: Mutex::new(child),
            stdin: Mutex::new(stdin),
            lines: Mutex::new(lines),
            asked,
        })
    }

    /// Asks, without waiting for the response. Returns the number by which [`LocalRole::response`] finds it.
    pub(super) fn request(&self, line: &str) -> std::io::Result<u64> {
        // Locked until it is noted, so that the response cannot come before.
        let mut asked = locked(&self.asked.0);
        self.send(line)?;
        let number = asked.next;
        asked.next += 1;
        asked.pending.push_back(Some(number));
        Ok(number)
    }

    /// The response to a question. When it does not come in time, nobody gets it.
    pub(super) fn response(&self, number: u64, within: Duration) -> Result<String, ReceiveError> {
        let (asked, answered) = &*self.asked;
        let waits = |asked: &mut Asked| !asked.ended && !asked.responses.contains_key(&number);
        let waited = answered.wait_timeout_while(locked(asked), within, waits);
        let mut asked = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some(response) = asked.responses.remove(&number) {
            return Ok(response);
        }
        asked.pending.iter_mut().filter(|one| **one == Some(number)).for_each(|one| *one = None);
        Err(if asked.ended { ReceiveError::Ended } else { ReceiveError::Timeout })
    }
}

/// Puts a line where the one who asked for it finds it; gives it back if nobody did.
fn not_a_response((asked, answered): &Questions, line: String) -> Option<String> {
    let mut asked = locked(asked);
    let Some(first) = asked.pending.pop_front() else { return Some(line) };
    if let Some(number) = first {
        asked.responses.insert(number, line);
        answered.notify_all();
    }
    None
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

    fn ask(&self, line: &str, within: Duration) -> Result<String, ReceiveError> {
        let number = self.request(line).map_err(|_| ReceiveError::Ended)?;
        self.response(number, within)
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
