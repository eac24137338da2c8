//! Programs that run to completion, with bounded time and an empty standard input. All sources call it.
//!
//! [`ask`] collects a little output (version commands). [`run`] and [`run_supervised`] pass on every line and keep the last
//! ones. Commands that start many processes (compilers) run below a supervisor of the host, so that none outlives weir.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process_group};
use weir_host::stop::Stop;
use weir_host::supervisor::account;
pub(super) use weir_host::transport::command_line;
use weir_host::{Ended, Host, Process, ProgramSpec};
use weir_model::product::Signal;

use super::{InstallError, Notify, Progress};

/// Most of a version command's output that is looked at, for each of stdout and stderr.
pub(super) const RESPONSE_BYTES: u64 = 64 * 1024;
/// Most of a long response.
const LONG_RESPONSE_BYTES: u64 = 16 * 1024 * 1024;
/// Lines of a failed program that go into the error.
const TAIL_LINES: usize = 15;
/// Bytes without an end of line that are passed on as a line; `apt` and `pip` draw progress bars without ends of lines.
const LINE_BYTES: usize = 4096;
/// Between two looks at what it says and whether the user wants to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(2);

/// The words of a command line without quotes.
pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Why a question got no response.
#[derive(Debug)]
pub(super) enum NoResponse {
    /// It could not be started or read.
    Io(io::Error),
    /// It did not end in time.
    TooSlow(Duration),
}

/// Runs `command` in a process group of its own and returns its stdout, a new line, and its stderr. What runs longer
/// than `limit` is killed, with all it started.
pub(super) fn ask(command: &[String], limit: Duration) -> Result<String, NoResponse> {
    ask_for(command, limit, RESPONSE_BYTES, |mut program| program.spawn())
}

/// The same for long responses, such as a list of all packages.
pub(super) fn ask_much(command: &[String], limit: Duration) -> Result<String, NoResponse> {
    ask_for(command, limit, LONG_RESPONSE_BYTES, |mut program| program.spawn())
}

/// The same of a product's program, which may be anybody's: with the rights that products have, and this folder in reach.
pub(super) fn ask_product(command: &[String], folder: PathBuf, limit: Duration) -> Result<String, NoResponse> {
    ask_for(command, limit, RESPONSE_BYTES, |program| account::spawn(program, &[folder]))
}

fn ask_for(
    command: &[String],
    limit: Duration,
    most: u64,
    spawn: impl FnOnce(Command) -> io::Result<Child>,
) -> Result<String, NoResponse> {
    let deadline = Instant::now() + limit;
    let mut program = program(command);
    program.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(program).map_err(NoResponse::Io)?;
    let (sender, receiver) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|s| Box::new(s) as _), child.stderr.take().map(|s| Box::new(s) as _)];
    for (i, stream) in streams.into_iter().flatten().enumerate() {
        let sender = sender.clone();
        let read = move || {
            let mut bytes = Vec::new();
            // An error here is an end of the output like another; what was read before it counts.
            let _ = stream.take(most).read_to_end(&mut bytes);
            let _ = sender.send((i, bytes));
        };
        // Fails where the user may have no more threads.
        if let Err(error) = thread::Builder::new().spawn(read) {
            kill_group(&mut child);
            return Err(NoResponse::Io(error));
        }
    }
    drop(sender);
    let mut parts = [Vec::new(), Vec::new()];
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((i, bytes)) => parts[i] = bytes,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                kill_group(&mut child);
                return Err(NoResponse::TooSlow(limit));
            }
        }
    }
    // Both pipes are closed, on one side or the other: what does not end now has no reason to go on.
    if wait(&mut child, Duration::from_secs(1)).is_none() {
        kill_group(&mut child);
    }
    let shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let [out, err] = parts.map(|bytes| String::from_utf8_lossy(&bytes).chars().filter(shown).collect::<String>());
    Ok(format!("{out}\n{err}"))
}

/// What happens to a program when a stop is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnStop {
    /// It is killed with all processes it started, because it changes nothing outside of its folder.
    Kill,
    /// weir waits for it, because half of its work would leave the machine broken. Ctrl-C on a terminal reaches the program, too,
    /// and the program itself knows when it can end.
    Wait,
}

/// Runs `command`, passes each line it prints to `notify`, and fails unless it exits with 0 within `limit`.
pub(super) fn run(
    command: &[String],
    limit: Duration,
    on_stop: OnStop,
    stop: &Stop,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    let output = tempfile::NamedTempFile::new().map_err(InstallError::io(std::env::temp_dir()))?;
    let has_group = on_stop == OnStop::Kill;
    let mut program = program(command);
    if has_group {
        program.process_group(0);
    }
    let started = output.reopen().and_then(|out| {
        let child = program.stdout(out.try_clone()?).stderr(out).spawn()?;
        Ok(Box::new(Unsupervised { child, has_group }) as Box<dyn Process>)
    });
    let mut lines = Lines::of(output.path())?;
    let ended = match started {
        Ok(process) => follow(process, limit, on_stop, stop, &mut lines, notify)?,
        Err(error) => Err(error.to_string()),
    };
    ended.map_err(|outcome| lines.failure(command, outcome))
}

/// The same below a supervisor of the host, which is ended when a stop is requested.
pub(super) fn run_supervised(
    host: &dyn Host,
    spec: &ProgramSpec,
    limit: Duration,
    stop: &Stop,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    File::create(&spec.output).map_err(InstallError::io(&spec.output))?;
    let mut lines = Lines::of(&spec.output)?;
    let ended = match host.start(spec) {
        Ok(process) => follow(process, limit, OnStop::Kill, stop, &mut lines, notify)?,
        Err(error) => Err(error.to_string()),
    };
    ended.map_err(|outcome| lines.failure(&spec.argv, outcome))
}

/// Waits for the end and passes on the lines until then. The inner error is how the program failed.
fn follow(
    mut process: Box<dyn Process>,
    limit: Duration,
    on_stop: OnStop,
    stop: &Stop,
    lines: &mut Lines,
    notify: &mut Notify<'_>,
) -> Result<Result<(), String>, InstallError> {
    let deadline = Instant::now() + limit;
    loop {
        let ended = process.wait(POLL_INTERVAL);
        if !lines.pass(notify) {
            notify(Progress::Tick);
        }
        match ended {
            Some(_) if stop.is_requested() => return Err(InstallError::Interrupted),
            Some(Ended { code: Some(0), .. }) => return Ok(Ok(())),
            Some(ended) => return Ok(Err(ended.to_string())),
            None if stop.is_requested() && on_stop == OnStop::Kill => {
                process.stop(GRACE);
                return Err(InstallError::Interrupted);
            }
            None if Instant::now() >= deadline => {
                process.stop(GRACE);
                return Ok(Err(format!("took longer than {} s and was ended", limit.as_secs())));
            }
            None => {}
        }
    }
}

/// A child process without a supervisor. A package manager must not be killed when weir is.
#[derive(Debug)]
struct Unsupervised {
    child: Child,
    /// It leads a process group, which is killed with it.
    has_group: bool,
}

impl Process for Unsupervised {
    fn root(&self) -> u32 {
        self.child.id()
    }

    fn wait(&mut self, within: Duration) -> Option<Ended> {
        wait(&mut self.child, within)
    }

    fn signal(&mut self, _signal: Signal) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn stop(mut self: Box<Self>, _grace: Duration) -> Ended {
        match self.has_group {
            true => kill_group(&mut self.child),
            false => drop(self.child.kill()),
        }
        let status = self.child.wait().unwrap_or_default();
        Ended { code: status.code(), signal: status.signal(), forced: true, left_over: 0, lost: false }
    }
}

fn program(command: &[String]) -> Command {
    let mut words = command.iter();
    let mut program = Command::new(words.next().map_or("", String::as_str));
    program.args(words).stdin(Stdio::null());
    program
}

fn wait(child: &mut Child, within: Duration) -> Option<Ended> {
    let deadline = Instant::now() + within;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(Ended {
                code: status.code(),
                signal: status.signal(),
                forced: false,
                left_over: 0,
                lost: false,
            });
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the child's process group and reaps the child.
fn kill_group(child: &mut Child) {
    // Fails when all of it is gone already, which is what is wanted.
    let _ = kill_process_group(Pid::from_child(child), rustix::process::Signal::KILL);
    let _ = child.wait();
}

/// The lines of a growing file.
struct Lines {
    file: File,
    begun: Vec<u8>,
    last: VecDeque<String>,
}

impl Lines {
    fn of(path: &Path) -> Result<Lines, InstallError> {
        let file = File::open(path).map_err(InstallError::io(path))?;
        Ok(Lines { file, begun: Vec::new(), last: VecDeque::new() })
    }

    /// Passes on the lines that were completed since; whether there were any.
    fn pass(&mut self, notify: &mut Notify<'_>) -> bool {
        // What cannot be read now is read next time.
        let _ = self.file.read_to_end(&mut self.begun);
        let end = match self.begun.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if self.begun.len() < LINE_BYTES => return false,
            None => self.begun.len(),
        };
        let whole: Vec<u8> = self.begun.drain(..end).collect();
        let mut any = false;
        for line in String::from_utf8_lossy(&whole).lines() {
            // Of a line that was drawn over, the last state; and nothing that would change the terminal's.
            let line = line.trim_end().rsplit('\r').next().unwrap_or_default();
            let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
            if line.is_empty() {
                continue;
            }
            any = true;
            notify(Progress::Line(&line));
            if self.last.len() == TAIL_LINES {
                self.last.pop_front();
            }
            self.last.push_back(line);
        }
        any
    }

    /// The error of a program that failed, with its last lines.
    fn failure(mut self, command: &[String], outcome: String) -> InstallError {
        // Its last words may have no end of line.
        let _ = self.file.read_to_end(&mut self.begun);
        self.begun.push(b'\n');
        self.pass(&mut |_| ());
        let tail: Vec<String> = self.last.iter().map(|line| format!("    {line}")).collect();
        InstallError::Failed { command: command_line(command), outcome, tail: tail.join("\n") }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_response_has_no_escapes_for_a_terminal() {
        let command = ["printf", "a\\033[2Jb\\r\\n\\tc\\007"].map(str::to_owned);
        assert_eq!(ask(&command, Duration::from_secs(10)).unwrap(), "a[2Jb\n\tc\n");
    }

    #[test]
    fn lines_are_passed_once_they_are_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut lines = Lines::of(file.path()).unwrap();
        let mut seen = Vec::new();
        for (text, wanted) in [("one\ntw", &["one"][..]), ("", &[]), ("o\n\n  three  \n", &["two", "  three"])] {
            file.as_file().write_all(text.as_bytes()).unwrap();
            seen.clear();
            lines.pass(&mut |progress| {
                if let Progress::Line(line) = progress {
                    seen.push(line.to_owned());
                }
            });
            assert_eq!(seen, wanted);
        }
        file.as_file().write_all(b"alas").unwrap();
        let text = lines.failure(&["x y".to_owned()], "exit status 1".to_owned()).to_string();
        assert_eq!(text, "'x y': exit status 1; its last lines:\n    one\n    two\n      three\n    alas");
    }
}
