//! Runs a client as a process on one CPU, and reads the CPU time that the kernel charged to it. Servers run under
//! weir's supervisor instead ([`super::server`]).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use weir_host::placement::{allowed_cpus, restrict_to};

/// What a process used and printed.
#[derive(Debug)]
pub struct Ended {
    /// User and system CPU time of the process and all its threads, µs.
    pub cpu_us: f64,
    /// From start to end.
    pub wall: Duration,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A running client.
#[derive(Debug)]
pub struct Running {
    child: Child,
    start: Instant,
    name: String,
    /// Standard output and standard error.
    printed: [File; 2],
    /// CPU time of this program's ended children when it was started, µs.
    before_us: f64,
}

impl Running {
    /// Starts a program on one CPU. One at a time: the CPU time of another child that ends meanwhile would be counted too.
    ///
    /// # Errors
    /// When the CPU does not exist or the program cannot be started.
    pub fn start(command: &mut Command, cpu: u32) -> anyhow::Result<Running> {
        let printed = [tempfile::tempfile()?, tempfile::tempfile()?];
        command.stdin(Stdio::null()).stdout(printed[0].try_clone()?).stderr(printed[1].try_clone()?);
        let before_us = children_us()?;
        let all = allowed_cpus();
        // Children inherit the thread's affinity.
        restrict_to(&[cpu]).with_context(|| format!("CPU {cpu}"))?;
        let start = Instant::now();
        let child = command.spawn();
        restrict_to(&all)?;
        let name = command.get_program().display().to_string();
        let child = child.with_context(|| format!("{name} cannot be started"))?;
        Ok(Running { child, start, name, printed, before_us })
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, at most until `most` after its start. Calls `meanwhile` about every 10 ms.
    ///
    /// # Errors
    /// When it takes longer, or ends with a status other than 0.
    pub fn end(mut self, most: Duration, mut meanwhile: impl FnMut(Duration)) -> anyhow::Result<Ended> {
        let name = &self.name;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if self.start.elapsed() > most {
                bail!("{name} did not end within {} s", most.as_secs());
            }
            meanwhile(self.start.elapsed());
            std::thread::sleep(Duration::from_millis(10));
        };
        let (wall, cpu_us) = (self.start.elapsed(), children_us()? - self.before_us);
        let [stdout, stderr] = self.printed.each_mut().map(text);
        if !status.success() {
            let why = stderr.lines().chain(stdout.lines()).find(|line| !line.trim().is_empty()).unwrap_or_default();
            bail!("{name} ended with {status}: {why}");
        }
        Ok(Ended { cpu_us, wall, stdout, stderr })
    }
}

/// What was written to a file.
fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // A file without a name, which this process made.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without effect on a process that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of all ended children of this program, µs.
fn children_us() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64)
}

/// Finds a program in the folders of `PEERS_PATH`, of `PATH`, and where Debian has servers.
pub fn find(name: &str) -> Option<PathBuf> {
    let folders = |variable: &str| std::env::var_os(variable).unwrap_or_default();
    find_in(name, &[folders("PEERS_PATH"), folders("PATH"), "/usr/sbin".into()])
}

fn find_in(name: &str, paths: &[impl AsRef<OsStr>]) -> Option<PathBuf> {
    let folders = paths.iter().flat_map(std::env::split_paths);
    folders.map(|folder| folder.join(name)).find(|program| program.is_absolute() && program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, most: Duration) -> anyhow::Result<Ended> {
        Running::start(Command::new("sh").args(["-c", script]), 0)?.end(most, |_| {})
    }

    #[test]
    fn a_process_is_pinned_read_and_accounted() {
        let script = "grep Cpus_allowed_list /proc/self/status; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done >&2";
        let ended = run(script, Duration::from_secs(60)).unwrap();
        assert_eq!(ended.stdout.split_whitespace().last(), Some("0"));
        assert_eq!(ended.stderr, "done\n");
        assert!(ended.cpu_us > 5_000.0, "{}", ended.cpu_us);
    }

    #[test]
    fn failing_and_hanging_are_errors() {
        assert!(run("echo why >&2; exit 3", Duration::from_secs(60)).unwrap_err().to_string().contains("why"));
        assert!(run("exec sleep 60", Duration::from_millis(50)).unwrap_err().to_string().contains("did not end"));
    }

    #[test]
    fn programs_are_looked_for_in_order() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("sh"), "").unwrap();
        let here = folder.path().as_os_str();
        assert_eq!(find_in("sh", &[here, OsStr::new("/bin")]).unwrap(), folder.path().join("sh"));
        assert_eq!(find_in("sh", &[OsStr::new("/bin"), here]).unwrap(), PathBuf::from("/bin/sh"));
        assert!(find_in("sh", &[OsStr::new("")]).is_none());
    }
}
