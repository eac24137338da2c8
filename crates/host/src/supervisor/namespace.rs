//! A PID namespace for a supervisor, which is its first process: when that ends, however it ends, the kernel kills everything in the
//! namespace, and only then does anybody see the supervisor end. [`super::Supervised`] starts supervisors so where this may be done
//! (`CAP_SYS_ADMIN`, and nothing that forbids the mount).
//!
//! Its processes have two numbers. Outside (weir, vitals, the user's `ps`) they are processes as any others. Inside, for the
//! supervisor and its program, they have other numbers, and a `/proc` of the namespace in which those are right: a program that reads
//! `/proc/<its own pid>` finds itself. No number of inside is used outside. weir knows the supervisor by its number outside, and
//! finds all else by the parent links below it; signals go through the supervisor.
//!
//! Rejected: an init between supervisor and program, or above the supervisor (one process more in the tree that is measured); user
//! namespaces for those who are not root (files would have other owners); a control group's `cgroup.kill` (somebody must be left to
//! write to it).
//!
//! It does not know what a supervisor does.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, open, readlinkat_raw};

/// What an attempt ends with that would have succeeded.
const POSSIBLE: i32 = libc::ECANCELED;

/// Whether this process may give programs a PID namespace; if not, what the system said. It is tried once.
///
/// # Errors
/// As said.
pub fn possible() -> Result<(), &'static str> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    TRIED.get_or_init(attempt).as_ref().copied().map_err(String::as_str)
}

/// Does everything but start a program.
fn attempt() -> Result<(), String> {
    let mut command = Command::new("/");
    // SAFETY: as in `spawn`.
    unsafe { command.pre_exec(|| enter().and(Err(io::Error::from_raw_os_error(POSSIBLE)))) };
    match spawn_first(command) {
        Err(error) if error.raw_os_error() == Some(POSSIBLE) => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("a folder was executed".to_owned()),
    }
}

/// Starts a command as the first process of a PID namespace of its own.
///
/// # Errors
/// What the system said.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    // SAFETY: between fork and exec only system calls are made, on values on the stack; nothing allocates or locks.
    unsafe { command.pre_exec(enter) };
    spawn_first(command)
}

/// In a thread, because it is the thread's next child that is the first in the namespace, and because a thread that has done this
/// can make no threads any more.
fn spawn_first(mut command: Command) -> io::Result<Child> {
    in_thread(move || {
        unshare(CloneFlags::CLONE_NEWPID)?;
        command.spawn()
    })
}

/// Starts a child in a thread that ends then: namespaces and rights are a thread's, and a child's that it starts.
///
/// # Errors
/// What the system said.
pub(super) fn in_thread(spawn: impl FnOnce() -> io::Result<Child> + Send + 'static) -> io::Result<Child> {
    let thread = std::thread::Builder::new().name("weir-namespace".into()).spawn(spawn)?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Mounts of this thread's own: what is mounted outside later comes here, and nothing goes there.
///
/// # Errors
/// What the system said.
pub(super) fn separate_mounts() -> io::Result<()> {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    Ok(mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?)
}

/// The first process of the namespace, before it executes anything: numbers as outside, and the `/proc` that belongs to them.
fn enter() -> io::Result<()> {
    number_from_here();
    separate_mounts()?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    Ok(mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)?)
}

/// Numbers inside go on from this process's own outside, where the kernel can do that (`ns_last_pid`). If they all began with 2, then
/// two programs that name files in /tmp by their pid, as Java does, would have the same.
fn number_from_here() {
    let mut digits = [0u8; 20];
    // It shows the number outside as long as `/proc` is the one of outside; `ns_last_pid` is of the namespace anyway.
    let length = readlinkat_raw(CWD, c"/proc/self", &mut digits);
    let last = open(c"/proc/sys/kernel/ns_last_pid", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    if let (Ok(length), Ok(last)) = (length, last) {
        let _ = rustix::io::write(last, &digits[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a shell in a namespace of its own says.
    fn said(script: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(std::process::Stdio::piped());
        let said = spawn(command).expect("sh starts").wait_with_output().expect("it ends");
        String::from_utf8(said.stdout).expect("text")
    }

    #[test]
    #[ignore = "needs root: make check PART=root"]
    fn a_namespace_has_numbers_and_a_proc_of_its_own() {
        possible().unwrap_or_else(|why| panic!("NOT SHOWN: {why}"));
        assert_eq!(said("echo $$"), "1\n");
        let both = said("sh -c 'exec readlink /proc/self' & echo $!; wait");
        let both: Vec<&str> = both.lines().collect();
        assert_eq!(both[0], both[1], "a process finds itself by its own number");
        assert_eq!(said("ls -d /proc/[0-9]*").lines().next(), Some("/proc/1"));
        assert!(Command::new("sh").arg("-c").arg("[ $$ != 1 ]").status().expect("sh starts").success(), "only there");
    }

    #[test]
    #[ignore = "needs root: make check PART=root"]
    fn two_namespaces_do_not_number_alike() {
        possible().unwrap_or_else(|why| panic!("NOT SHOWN: {why}"));
        let last = std::path::Path::new("/proc/sys/kernel/ns_last_pid");
        assert!(last.exists(), "NOT SHOWN: this kernel has no {}", last.display());
        let first_child = || said("sh -c 'echo $$' & wait");
        assert_ne!(first_child(), first_child());
    }
}
