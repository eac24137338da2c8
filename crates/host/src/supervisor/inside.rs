//! The supervisor process itself: what `weir supervise` runs.
//!
//! It is single-threaded and sleeps in `poll`, so that it costs the product no CPU time. It also has to be single-threaded
//! because `PR_SET_PDEATHSIG` follows the *thread* that forked.
//!
//! What happens after a SIGKILL of:
//!
//! - weir: its end of standard input closes; the supervisor kills the tree and ends.
//! - the supervisor: the kernel kills the product, and weir kills what the product had started (see `adopt`).
//! - both at once: the kernel kills the product. What the product had started stays, as it would without a supervisor.
//!
//! A setuid binary, or one with file capabilities, is not killed by the kernel, because its `exec` clears `PR_SET_PDEATHSIG`.

use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::Report;
use super::adopt::become_subreaper;
use super::tree::{QUIET_SCANS, descendants};
use crate::host::{Ended, ProgramSpec};
use crate::placement::affinity_mask;

/// Runs the supervisor: reads a [`ProgramSpec`] from standard input, starts it, and stays until it has ended or standard
/// input closes. Returns the exit status for the process.
///
/// # Errors
/// When the spec cannot be read or the kernel refuses what a supervisor needs.
pub fn supervise() -> std::io::Result<i32> {
    become_subreaper()?;
    let children_end = sigchld_fd()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let spec: ProgramSpec = serde_json::from_str(&line)?;
    let child = match start(&spec) {
        Ok(child) => child,
        Err(error) => {
            report(&Report::NotStarted(error.to_string()));
            return Ok(1);
        }
    };
    report(&Report::Started(child.id()));
    let ended = watch(child, &children_end)?;
    report(&Report::Ended(ended));
    Ok(0)
}

/// Signals that products react to. They are reset, because a signal that weir was started to ignore (by `nohup`) would stay
/// ignored in the product, and a shell cannot undo that.
const SIGNALS: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

fn start(spec: &ProgramSpec) -> std::io::Result<Child> {
    let Some((program, args)) = spec.argv.split_first() else {
        return Err(std::io::Error::other("there is no program to start"));
    };
    let output = OpenOptions::new().create(true).append(true).open(&spec.output)?;
    let mask = affinity_mask(&spec.cpus);
    let pin = !spec.cpus.is_empty();
    let nice = i32::from(spec.nice);
    let supervisor = std::process::id();
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
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // The supervisor may have died before the line above took effect.
            if libc::getppid() as u32 != supervisor {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            if pin && libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &mask) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // -1 can be a valid priority, but not when weir's own niceness is 0 or more and `nice` is above 0.
            if nice > 0 && libc::nice(nice) == -1 {
                return Err(std::io::Error::last_os_error());
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            if libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            for signal in SIGNALS {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command.spawn()
}

/// Waits until the process ends, weir asks for a stop, or weir itself ends.
fn watch(child: Child, children_end: &OwnedFd) -> std::io::Result<Ended> {
    let mut tree = Tree { main: Pid::from_child(&child), end: None };
    let stdin = std::io::stdin();
    let mut listening = true;
    let mut deadline: Option<Instant> = None;
    let mut forced = false;
    loop {
        tree.reap();
        if let Some(end) = tree.end {
            let left_over = tree.kill_all();
            return Ok(Ended { code: end.code(), signal: end.signal(), forced, left_over });
        }
        let wait = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if wait == Some(Duration::ZERO) {
            forced = true;
            deadline = None;
            tree.signal_main(Signal::KILL);
            continue;
        }
        let timeout = wait.map(|d| Timespec { tv_sec: d.as_secs() as i64, tv_nsec: d.subsec_nanos() as i64 });
        let mut fds = [PollFd::new(children_end, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds[..if listening { 2 } else { 1 }], timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (ended, sent) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if ended {
            drain(children_end);
        }
        if sent {
            match read_control() {
                Some(Control::Stop(grace)) => {
                    deadline = Some(Instant::now() + grace);
                    tree.signal_main(Signal::TERM);
                }
                Some(Control::Signal(signal)) => tree.signal_main(signal),
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
}

/// Reads a line with milliseconds, or with the word `signal` and its number; `None` at end of file. It reads byte by byte, so
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
        None => line.parse().ok().map(Duration::from_millis).map(Control::Stop),
    }
}

fn sigchld_fd() -> std::io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before use; the descriptor returned is owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn drain(fd: &OwnedFd) {
    let mut buffer = [0u8; 512];
    // SAFETY: reads into a buffer of the length given; the descriptor is non-blocking.
    while unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        // A failed write means that weir has ended, which the closed standard input also shows.
        let _ = writeln!(std::io::stdout(), "{line}");
        let _ = std::io::stdout().flush();
    }
}
