//! Processes pinned to a CPU, and what the kernel says that they used.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// What a process that has ended used and said.
#[derive(Debug)]
pub struct Ended {
    /// User and system CPU of the process and all its threads, us.
    pub cpu_us: f64,
    /// From start to end.
    pub wall: Duration,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Starts a program on one CPU only.
///
/// # Errors
/// When the CPU is not there or the program cannot be started.
pub fn spawn_on(cpu: usize, command: &mut Command) -> anyhow::Result<Child> {
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(cpu);
    // Children inherit the thread's affinity.
    sched_setaffinity(None, &only).with_context(|| format!("CPU {cpu}"))?;
    let child = command.spawn();
    sched_setaffinity(None, &before)?;
    child.with_context(|| format!("{} cannot be started", command.get_program().display()))
}

/// Runs a program on one CPU to its end and tells what it used. `folder` takes what it prints.
///
/// # Errors
/// When it cannot be started, takes longer than `most`, or ends with a status other than 0.
pub fn run_on(cpu: usize, command: &mut Command, folder: &Path, most: Duration) -> anyhow::Result<Ended> {
    start_on(cpu, command, folder)?.end(most)
}

/// Starts a program on one CPU; `folder` takes what it prints.
///
/// # Errors
/// When it cannot be started.
pub fn start_on(cpu: usize, command: &mut Command, folder: &Path) -> anyhow::Result<Running> {
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let start = Instant::now();
    let child = spawn_on(cpu, command)?;
    Ok(Running { child, start, name: command.get_program().display().to_string(), out, err })
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    start: Instant,
    name: String,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, at most so long since its start.
    ///
    /// # Errors
    /// When it takes longer, or ends with a status other than 0.
    pub fn end(mut self, most: Duration) -> anyhow::Result<Ended> {
        let name = &self.name;
        let (status, cpu_us) = loop {
            if let Some(ended) = try_wait4(self.child.id())? {
                break ended;
            }
            if self.start.elapsed() > most {
                self.child.kill()?;
                self.child.wait()?;
                bail!("{name} did not end within {} s", most.as_secs());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let wall = self.start.elapsed();
        let text = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (stdout, stderr) = (text(&self.out)?, text(&self.err)?);
        if status != 0 {
            let why = stderr.lines().chain(stdout.lines()).find(|line| !line.trim().is_empty()).unwrap_or_default();
            bail!("{name} ended with wait status {status}: {why}");
        }
        Ok(Ended { cpu_us, wall, stdout, stderr })
    }
}

/// The wait status and CPU (us) of a child that has ended.
fn try_wait4(pid: u32) -> io::Result<Option<(i32, f64)>> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both live during the call; zeroed usage is valid where the kernel writes none.
    let (got, usage) = unsafe {
        let got = libc::wait4(pid as i32, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (got, usage.assume_init())
    };
    match got {
        0 => Ok(None),
        1.. => Ok(Some((status, micros(usage.ru_utime) + micros(usage.ru_stime)))),
        _ => Err(io::Error::last_os_error()),
    }
}

fn micros(time: libc::timeval) -> f64 {
    time.tv_sec as f64 * 1e6 + time.tv_usec as f64
}

/// CPU that a living process and its children have used so far, us: the time its threads were on a CPU, by the
/// kernel's scheduler, to the nanosecond. Threads that have ended are not counted; servers keep theirs.
///
/// # Errors
/// When the process is gone.
pub fn cpu_so_far_us(pid: u32) -> io::Result<f64> {
    let mut sum = 0.0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?.path();
        sum += on_cpu_us(&fs::read_to_string(thread.join("schedstat"))?)?;
        for child in fs::read_to_string(thread.join("children"))?.split_whitespace() {
            if let Ok(child) = child.parse() {
                sum += cpu_so_far_us(child)?;
            }
        }
    }
    Ok(sum)
}

/// The process among `pid` and its children that has used most CPU so far.
///
/// # Errors
/// When the process is gone.
pub fn busiest(pid: u32) -> io::Result<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let mut found = (pid, own_us(pid)?);
    for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
        let us = own_us(child)?;
        if us > found.1 {
            found = (child, us);
        }
    }
    Ok(found.0)
}

fn own_us(pid: u32) -> io::Result<f64> {
    let mut sum = 0.0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        sum += on_cpu_us(&fs::read_to_string(thread?.path().join("schedstat"))?)?;
    }
    Ok(sum)
}

fn on_cpu_us(schedstat: &str) -> io::Result<f64> {
    let nanos: Option<f64> = schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map(|nanos| nanos / 1e3).ok_or_else(|| io::Error::other("a schedstat file without numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_pinned_read_and_accounted() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "grep Cpus_allowed_list /proc/self/status; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done >&2"]);
        let ended = run_on(0, &mut command, folder.path(), Duration::from_secs(60)).unwrap();
        assert_eq!(ended.stdout.split_whitespace().last(), Some("0"));
        assert_eq!(ended.stderr, "done\n");
        assert!(ended.cpu_us > 5_000.0, "{}", ended.cpu_us);
    }

    #[test]
    fn failing_and_hanging_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let run = |script: &str, most: u64| {
            run_on(0, Command::new("sh").args(["-c", script]), folder.path(), Duration::from_millis(most))
        };
        assert!(run("echo why >&2; exit 3", 60_000).unwrap_err().to_string().contains("why"));
        assert!(run("exec sleep 60", 50).unwrap_err().to_string().contains("did not end"));
    }

    #[test]
    fn own_cpu_grows() {
        // The threads of other tests end meanwhile and take theirs with them, so that it may take a while.
        let before = cpu_so_far_us(std::process::id()).unwrap();
        let end = std::time::Instant::now() + Duration::from_secs(60);
        let mut x = 1_u64;
        while cpu_so_far_us(std::process::id()).unwrap() <= before {
            assert!(std::time::Instant::now() < end, "it does not grow");
            for i in 0..5_000_000_u64 {
                x = std::hint::black_box(x.wrapping_mul(i | 1));
            }
        }
        assert!(busiest(std::process::id()).unwrap() > 0);
        assert_eq!(on_cpu_us("41422 141904 3\n").unwrap(), 41.422);
        assert!(on_cpu_us("\n").is_err());
    }
}
