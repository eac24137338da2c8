//! What a thread or process asks of its host before it drives sockets: descriptors, a CPU, sharp timers.
//!
//! It does not know what for.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Raises the soft limit of open descriptors to the hard one and says both limits as they are afterwards
/// (`u64::MAX`: none). Failing to raise is no error: the caller sees what there is.
pub fn raise_descriptor_limit() -> (u64, u64) {
    let now = getrlimit(Resource::Nofile);
    let wish = Rlimit { current: now.maximum, maximum: now.maximum };
    // What is read below says whether it worked.
    let _ = setrlimit(Resource::Nofile, wish);
    let then = getrlimit(Resource::Nofile);
    (then.current.unwrap_or(u64::MAX), then.maximum.unwrap_or(u64::MAX))
}

/// Pins the calling thread to one CPU, by its number from zero.
///
/// # Errors
/// When there is no such CPU or this process may not use it.
pub fn pin_to_cpu(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    let cpu = cpu as usize;
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    set.set(cpu);
    sched_setaffinity(None, &set)?;
    Ok(())
}

/// Sets the calling thread's timer slack to 1 ns, so that a wait ends when it should and not up to 50 us
/// later. Drivers call it on the thread that makes them.
///
/// # Errors
/// When the kernel refuses (`prctl`, `PR_SET_TIMERSLACK`).
pub(crate) fn sharpen_timers() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    Ok(())
}
