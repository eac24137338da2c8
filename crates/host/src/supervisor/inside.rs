//! The supervisor process itself: what `weir supervise` runs.
//!
//! It is single-threaded and sleeps in `poll`, but for a look at the output's length four times a second, so that it costs the product
//! no CPU time. It also has to be single-threaded
//! because `PR_SET_PDEATHSIG` follows the *thread* that forked.
//!
//! What happens after a SIGKILL of:
//!
//! - weir: its end of standard input closes; the supervisor kills the tree and ends.
//! - the supervisor, or both at once: in a PID namespace (see `namespace`) the kernel kills the tree.
//!
//! Where there is no namespace:
//!
//! - the supervisor: the kernel kills the product, and weir kills what the product had started (see `adopt`).
//! - both at once: the kernel kills the product. What the product had started stays until the next start of weir, which knows it
//!   by its mark (see `mark`). A setuid binary, or one with file capabilities, stays too, because its `exec` clears
//!   `PR_SET_PDEATHSIG`.

use std::io::{BufRead, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::account::{self, Rights};
use super::adopt::become_subreaper;
use super::disk;
use super::mark;
use super::output::{EVERY, Output};
use super::tree::{QUIET_SCANS, descendants};
use super::{Report, append_to};
use crate::host::{Disturbance, Ended, ProgramSpec};
use crate::placement::affinity_mask;

/// Runs the supervisor: reads a [`ProgramSpec`] from standard input, starts it, and stays until it has ended or standard
/// input closes. Returns the exit status for the process.
///
/// # Errors
/// When the spec cannot be read or the kernel refuses what a supervisor needs.
pub fn supervise() -> std::io::Result<i32> {
    become_subreaper()?;
    mark::set(mark::SUPERVISOR)?;
    let children_end = sigchld_fd()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let mut spec: ProgramSpec = serde_json::from_str(&line)?;
    let child = match prepare(&mut spec).and_then(|()| start(&spec)) {
        Ok(child) => child,
        Err(error) => {
            report(&Report::NotStarted(error.to_string()));
            return Ok(1);
        }
    };
    report(&Report::Started(child.id()));
    let mut output = if spec.keeps_output { None } else { Output::open(&spec.output) };
    let ended = watch(&spec, child, &children_end, &mut output)?;
    if let Some(Err(error)) = output.map(Output::end) {
        eprintln!("weir: cannot shorten this output: {error}");
    }
    report(&Report::Ended(ended));
    Ok(0)
}

/// Mounts what the program sees, and gives it its folder.
fn prepare(spec: &mut ProgramSpec) -> std::io::Result<()> {
    let told = |error: std::io::Error| {
        std::io::Error::new(error.kind(), format!("it cannot be given an account of its own: {error}"))
    };
    account::reveal(spec).map_err(told)?;
    spec.disk.as_ref().map_or(Ok(()), disk::mount)?;
    account::give(spec).map_err(told)
}

/// Signals that products react to. They are reset, because a signal that weir was started to ignore (by `nohup`) would stay
/// ignored in the product, and a shell cannot undo that.
const SIGNALS: [NixSignal; 6] = [
    NixSignal::SIGHUP,
    NixSignal::SIGINT,
    NixSignal::SIGQUIT,
    NixSignal::SIGTERM,
    NixSignal::SIGUSR1,
    NixSignal::SIGUSR2,
];

fn start(spec: &ProgramSpec) -> std::io::Result<Child> {
    let Some((program, args)) = spec.argv.split_first() else {
        return Err(std::io::Error::other("there is no program to start"));
    };
    let output = append_to(&spec.output)?;
    let rights = spec.confined.as_ref().map(Rights::of);
    let mask = affinity_mask(&spec.cpus);
    let pin = !spec.cpus.is_empty();
    let nice = i32::from(spec.nice);
    let supervisor = rustix::process::getpid();
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(&spec.env)
        .current_dir(&spec.dir)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    // SAFETY: between fork and exec only system calls are made, on values copied into the closure; nothing
    // allocates or locks.
    unsafe {
        command.pre_exec(move || {
            if pin {
                rustix::thread::sched_setaffinity(None, &mask)?;
            }
            if nice > 0 {
                rustix::process::nice(nice)?;
            }
            mark::set(mark::PROGRAM)?;
            rights.map_or(Ok(()), Rights::take)?;
            // Not before, because who becomes another user loses it.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The supervisor may have died before the line above took effect.
            if rustix::process::getppid() != Some(supervisor) {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            SigSet::empty().thread_set_mask()?;
            for signal in SIGNALS {
                nix::sys::signal::signal(signal, SigHandler::SigDfl)?;
            }
            Ok(())
        });
    }
    command.spawn()
}

/// Waits until the process ends, weir asks for a stop, or weir itself ends.
fn watch(
    spec: &ProgramSpec,
    child: Child,
    children_end: &SignalFd,
    output: &mut Option<Output>,
) -> std::io::Result<Ended> {
    let mut tree = Tree { main: Pid::from_child(&child), end: None };
    // It was killed on request, and may be started again.
    let mut down = false;
    let stdin = std::io::stdin();
    let mut listening = true;
    let mut deadline: Option<Instant> = None;
    let mut forced = false;
    loop {
        tree.reap();
        if let Some(end) = tree.end.filter(|_| !down) {
            let left_over = tree.kill_all();
            return Ok(Ended { code: end.code(), signal: end.signal(), forced, left_over, lost: false });
        }
        let wait = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if wait == Some(Duration::ZERO) {
            forced = true;
            deadline = None;
            tree.signal_main(Signal::KILL);
            continue;
        }
        let look = output.as_ref().map(|_| EVERY);
        let timeout = wait.into_iter().chain(look).min();
        let timeout = timeout.map(|d| Timespec { tv_sec: d.as_secs() as i64, tv_nsec: d.subsec_nanos() as i64 });
        let mut fds = [PollFd::new(children_end, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds[..if listening { 2 } else { 1 }], timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        output.iter_mut().for_each(Output::limit);
        let (ended, sent) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if ended {
            while let Ok(Some(_)) = children_end.read_signal() {}
        }
        if sent {
            match read_control() {
                Some(Control::Stop(_)) if down => return Ok(ENDED_BY_REQUEST),
                Some(Control::Stop(grace)) => {
                    // A stopped process would never see the signal.
                    tree.signal_all(Signal::CONT);
                    deadline = Some(Instant::now() + grace);
                    tree.signal_main(Signal::TERM);
                }
                Some(Control::Signal(signal)) => tree.signal_main(signal),
                Some(Control::Disturb(what)) => {
                    if let Err(error) = disturb(spec, what, &mut tree, &mut down) {
                        // Standard error is the program's output.
                        eprintln!("weir: {} failed: {error}", what.as_str());
                    }
                }
                // A program that is down has no end to wait for.
                None if down => return Ok(ENDED_BY_REQUEST),
                // weir has ended, or wants an immediate end. The closed pipe stays readable, so it is not polled again.
                None => {
                    listening = false;
                    forced = true;
                    deadline = None;
                    tree.kill_all();
                }
            }
        }
    }
}

/// The end of a program that was killed on request and not started again.
const ENDED_BY_REQUEST: Ended =
    Ended { code: None, signal: Some(libc::SIGKILL), forced: false, left_over: 0, lost: false };

/// Provokes a fault, or ends one.
fn disturb(spec: &ProgramSpec, what: Disturbance, tree: &mut Tree, down: &mut bool) -> std::io::Result<()> {
    let no_disk = || std::io::Error::other("the program has no disk of its own");
    match what {
        Disturbance::Kill => {
            *down = true;
            tree.kill_all();
        }
        Disturbance::Start if *down => {
            let child = start(spec)?;
            (tree.main, tree.end, *down) = (Pid::from_child(&child), None, false);
        }
        Disturbance::Start => {}
        Disturbance::Freeze => tree.signal_all(Signal::STOP),
        Disturbance::Thaw => tree.signal_all(Signal::CONT),
        Disturbance::FillDisk => disk::fill(spec.disk.as_ref().ok_or_else(no_disk)?)?,
        Disturbance::FreeDisk => disk::free(spec.disk.as_ref().ok_or_else(no_disk)?)?,
    }
    Ok(())
}

/// The process and its descendants, all of which are, or become, children of the supervisor.
struct Tree {
    main: Pid,
    /// The main process's exit status, once it was reaped.
    end: Option<ExitStatus>,
}

impl Tree {
    /// Reaps everything that has ended.
    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.end = Some(ExitStatus::from_raw(status.as_raw())),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                // No child has ended, or there is none at all.
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Sends nothing after the process was reaped, because its pid may belong to another process by then.
    fn signal_main(&self, signal: Signal) {
        if self.end.is_none() {
            let _ = rustix::process::kill_process(self.main, signal);
        }
    }

    /// Sends every descendant a signal. A process that is being forked meanwhile is found by the second scan.
    fn signal_all(&self, signal: Signal) {
        let mut told = Vec::new();
        for _ in 0..QUIET_SCANS {
            for pid in descendants(std::process::id()).into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
                if !told.contains(&pid) {
                    let _ = rustix::process::kill_process(pid, signal);
                    told.push(pid);
                }
            }
        }
    }

    /// Kills every descendant, repeatedly until none is left, because a process may fork during the scan. The number of attempts
    /// is bounded, because a process in an uninterruptible wait cannot be killed. Returns how many there were.
    fn kill_all(&mut self) -> u32 {
        let me = std::process::id();
        let (mut killed, mut quiet) = (0, 0);
        for _ in 0..1_000 {
            let left = descendants(me);
            quiet = if left.is_empty() { quiet + 1 } else { 0 };
            if quiet == QUIET_SCANS {
                break;
            }
            killed = killed.max(left.len() as u32);
            for pid in left.into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            self.reap();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.reap();
        killed
    }
}

/// A request from weir to the supervisor.
enum Control {
    /// End the process within this time.
    Stop(Duration),
    /// Send the process a signal.
    Signal(Signal),
    /// Provoke a fault, or end one.
    Disturb(Disturbance),
}

/// Reads a line with milliseconds, with the word `signal` and its number, or with a disturbance; `None` at end of file. It reads byte by byte, so
/// that nothing stays in a buffer that `poll` does not see.
fn read_control() -> Option<Control> {
    let mut text = String::new();
    let mut byte = [0u8; 1];
    loop {
        match rustix::io::read(std::io::stdin().as_fd(), &mut byte) {
            Ok(0) => return None,
            Ok(_) if byte[0] == b'\n' => return parse_control(text.trim()),
            Ok(_) => text.push(byte[0] as char),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn parse_control(line: &str) -> Option<Control> {
    match line.strip_prefix("signal ") {
        Some(number) => Signal::from_named_raw(number.parse().ok()?).map(Control::Signal),
        None => match line.parse() {
            Ok(what) => Some(Control::Disturb(what)),
            Err(_) => line.parse().ok().map(Duration::from_millis).map(Control::Stop),
        },
    }
}

/// Becomes readable when a child has ended.
fn sigchld_fd() -> std::io::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(NixSignal::SIGCHLD);
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        // A failed write means that weir has ended, which the closed standard input also shows.
        let _ = writeln!(std::io::stdout(), "{line}");
        let _ = std::io::stdout().flush();
    }
}
