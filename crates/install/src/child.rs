//! Child processes that run to completion, with bounded time and output, and an empty standard input. All sources call it.
//!
//! [`ask`] collects a little output (version commands). [`run`] passes on every line and keeps the last ones. Commands that
//! start many processes (compilers) run below a supervisor instead, see `build::run`.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{InstallError, Notify, Progress};
use weir_host::stop::Stop;

/// Most of a version command's output that is looked at, for each of stdout and stderr.
pub(super) const ANSWER_BYTES: u64 = 64 * 1024;
/// Most of a long answer.
const LONG_ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// Lines of a failed program that go into the error.
const TAIL_LINES: usize = 15;
/// Longest line passed on whole; `apt` and `pip` draw progress bars without ends of lines.
const LINE_BYTES: u64 = 4096;

/// Between two looks whether the user wants to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Why a question got no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// It could not be started or read.
    Io(io::Error),
    /// It did not end in time.
    TooSlow(Duration),
}

/// Runs `command` in a process group of its own and returns its stdout, a new line, and its stderr. What runs longer
/// than `limit` is killed, with all it started.
pub(super) fn ask(command: &[String], limit: Duration) -> Result<String, NoAnswer> {
    ask_for(command, limit, ANSWER_BYTES)
}

/// The same for long answers, such as a list of all packages.
pub(super) fn ask_much(command: &[String], limit: Duration) -> Result<String, NoAnswer> {
    ask_for(command, limit, LONG_ANSWER_BYTES)
}

fn ask_for(command: &[String], limit: Duration, most: u64) -> Result<String, NoAnswer> {
    let deadline = Instant::now() + limit;
    let mut child = spawn(program(command).process_group(0)).map_err(NoAnswer::Io)?;
    let (sender, receiver) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|s| Box::new(s) as _), child.stderr.take().map(|s| Box::new(s) as _)];
    for (i, stream) in streams.into_iter().flatten().enumerate() {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // An error here is an end of the output like another; what was read before it counts.
            let _ = stream.take(most).read_to_end(&mut bytes);
            let _ = sender.send((i, bytes));
        });
    }
    drop(sender);
    let mut parts = [Vec::new(), Vec::new()];
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((i, bytes)) => parts[i] = bytes,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                end(&mut child);
                return Err(NoAnswer::TooSlow(limit));
            }
        }
    }
    // Both pipes are closed, on one side or the other: what does not end now has no reason to go on.
    end_by(&mut child, deadline.min(Instant::now() + Duration::from_secs(1)));
    let [out, err] = parts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
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

/// Runs `command`, passes each line it prints to `watch`, and fails unless it exits with 0 within `limit`.
pub(super) fn run(
    command: &[String],
    limit: Duration,
    on_stop: OnStop,
    stop: &Stop,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    let deadline = Instant::now() + limit;
    let failed = |outcome: String, tail: &VecDeque<String>| InstallError::Failed {
        command: command_line(command),
        outcome,
        tail: tail.iter().map(|line| format!("    {line}\n")).collect::<String>().trim_end().to_owned(),
    };
    let mut tail = VecDeque::new();
    let mut program = program(command);
    if on_stop == OnStop::Kill {
        program.process_group(0);
    }
    let mut child = spawn(&mut program).map_err(|error| failed(error.to_string(), &tail))?;
    let (sender, receiver) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        pass_lines(out, sender.clone());
    }
    if let Some(err) = child.stderr.take() {
        pass_lines(err, sender.clone());
    }
    drop(sender);
    loop {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(line) => {
                notify(Progress::Line(&line));
                if tail.len() == TAIL_LINES {
                    tail.pop_front();
                }
                tail.push_back(line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => notify(Progress::Tick),
        }
        if stop.is_requested() && on_stop == OnStop::Kill {
            end(&mut child);
            return Err(InstallError::Interrupted);
        }
        if Instant::now() >= deadline {
            match on_stop {
                OnStop::Kill => end(&mut child),
                OnStop::Wait => {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
            return Err(failed(format!("took longer than {} s and was ended", limit.as_secs()), &tail));
        }
    }
    let status = child.wait();
    if stop.is_requested() {
        return Err(InstallError::Interrupted);
    }
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(outcome(status), &tail)),
        Err(error) => Err(failed(error.to_string(), &tail)),
    }
}

/// The command as a user would type it.
pub(super) fn command_line(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    let quoted = |argument: &String| match argument.chars().all(plain) && !argument.is_empty() {
        true => argument.clone(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn program(command: &[String]) -> Command {
    let mut words = command.iter();
    let mut program = Command::new(words.next().map_or("", String::as_str));
    program.args(words);
    program
}

fn spawn(command: &mut Command) -> io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

fn pass_lines(stream: impl Read + Send + 'static, sender: mpsc::Sender<String>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line), Ok(n) if n > 0) {
            // Of a line that was drawn over, the last state.
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end().rsplit('\r').next().unwrap_or_default().to_owned();
            if !text.is_empty() && sender.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
}

fn end_by(child: &mut Child, deadline: Instant) {
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            return end(child);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the child's process group and reaps the child.
fn end(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Fails when all of it is gone already, which is what is wanted.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = child.wait();
}

fn outcome(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
