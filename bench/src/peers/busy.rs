//! Whether the machine is quiet enough to measure on, and what of its time others took.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use anyhow::bail;

/// A 1-minute load average from which on somebody else is at work. A benchmark's own load is in it for a minute
/// after its end.
const LOAD: f64 = 0.5;

/// Per cent of the last 10 s in which some task waited for a CPU.
const PRESSURE: f64 = 5.0;

/// What to do on a busy machine.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Measure even when the machine is busy, and say so in the file
    #[arg(long)]
    pub anyway: bool,
    /// Seconds to wait for the machine to become quiet
    #[arg(long, default_value_t = 300)]
    pub wait: u64,
}

impl Args {
    /// Why the machine is busy, if that is to be told and no reason to stop; empty when it is quiet.
    ///
    /// # Errors
    /// When it is busy and stays so.
    pub fn reasons(&self) -> anyhow::Result<Vec<String>> {
        if self.anyway {
            return Ok(reasons()?);
        }
        let reasons = wait(Duration::from_secs(self.wait))?;
        if !reasons.is_empty() {
            let why = reasons.join("; ");
            bail!("the machine is busy: {why}. Wait, or say --anyway; nothing was measured or written");
        }
        Ok(reasons)
    }
}

/// Why the machine is too busy; empty when it is not.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn reasons() -> io::Result<Vec<String>> {
    let load = fs::read_to_string("/proc/loadavg")?;
    // Without pressure information the load average has to do.
    let pressure = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    Ok(judge(&load, &pressure))
}

/// Waits until the machine is quiet, at most so long; then why it is not, empty when it is. What has just been built
/// is in the load average for some minutes.
fn wait(most: Duration) -> io::Result<Vec<String>> {
    let start = Instant::now();
    let mut told = false;
    loop {
        let reasons = reasons()?;
        if reasons.is_empty() || start.elapsed() >= most {
            return Ok(reasons);
        }
        if !told {
            eprintln!("{}; waiting for up to {} s", reasons.join("; "), most.as_secs());
            told = true;
        }
        std::thread::sleep(Duration::from_secs(2).min(most));
    }
}

fn judge(loadavg: &str, pressure: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    let load: Option<f64> = loadavg.split(' ').next().and_then(|load| load.parse().ok());
    if let Some(load) = load.filter(|load| *load > LOAD) {
        reasons.push(format!("the load average is {load:.2}, above {LOAD}"));
    }
    let some: Option<f64> = pressure
        .lines()
        .find(|line| line.starts_with("some"))
        .and_then(|line| line.split_once("avg10=")?.1.split(' ').next()?.parse().ok());
    if let Some(some) = some.filter(|some| *some > PRESSURE) {
        reasons.push(format!("tasks waited for a CPU in {some:.1} % of the last 10 s, above {PRESSURE} %"));
    }
    reasons
}

/// Time of all CPUs so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTime {
    /// Used by anybody, us.
    pub busy_us: f64,
    /// Taken by the machine's host, us.
    pub stolen_us: f64,
}

/// Reads it, to a hundredth of a second.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn cpu_time() -> io::Result<CpuTime> {
    parse_stat(&fs::read_to_string("/proc/stat")?).ok_or_else(|| io::Error::other("/proc/stat has no cpu line"))
}

fn parse_stat(text: &str) -> Option<CpuTime> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().filter_map(|tick| tick.parse().ok()).collect();
    let us = |at: usize| ticks.get(at).map(|ticks| ticks * 1e4);
    // user nice system idle iowait irq softirq steal
    Some(CpuTime { busy_us: us(0)? + us(1)? + us(2)? + us(5)? + us(6)?, stolen_us: us(7)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_is_quiet() {
        let pressure = "some avg10=0.00 avg60=9.80 avg300=9.68 total=1711667347\nfull avg10=0.00 avg60=0.00\n";
        assert!(judge("0.21 2.74 2.47 3/196 27511\n", pressure).is_empty());
        assert!(judge("0.21 2.74 2.47 3/196 27511\n", "").is_empty());
    }

    #[test]
    fn busy_says_why() {
        let pressure = "some avg10=94.36 avg60=60.80 avg300=39.68 total=1711667347\n";
        assert_eq!(judge("3.11 2.74 2.47 3/196 27511\n", pressure).len(), 2);
    }

    #[test]
    fn idle_time_is_not_busy() {
        let time = parse_stat("cpu  100 1 50 9999 5 2 3 7 0 0\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(time, CpuTime { busy_us: 1_560_000.0, stolen_us: 70_000.0 });
    }
}
