//! What a thread or process needs from its host before it drives sockets: descriptors, a CPU, exact timers, the time.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Raises the soft limit of open descriptors to the hard one. Returns both limits as they are afterwards (`u64::MAX`:
/// none). A failure to raise it is not an error: the caller sees the limits.
pub fn raise_descriptor_limit() -> (u64, u64) {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: now.maximum, maximum: now.maximum };
    // The limits read below show whether it worked.
    let _ = setrlimit(Resource::Nofile, raised);
    let then = getrlimit(Resource::Nofile);
    (then.current.unwrap_or(u64::MAX), then.maximum.unwrap_or(u64::MAX))
}

/// See [`crate::Driver::wake_latency`]: the timer's interrupt, the exit from the CPU's idle state and the scheduler take 20 us in the
/// median and 50 to 100 us at the 99th percentile on a virtual machine.
pub(crate) const WAKE_LATENCY: u64 = 50_000;

/// The reading of `CLOCK_MONOTONIC`, nanoseconds, the same for all processes of a machine. A u64 lasts 584 years, and the clock starts
/// at boot. It does not go through [`std::time::Instant`], which reads the same clock and spends some 60 more instructions on
/// converting to seconds and nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec. Every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The reading of `CLOCK_REALTIME`, nanoseconds since the epoch of Unix.
pub fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// A driver's clock, to be read where the driver is not at hand.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The kernel's.
    Kernel,
    /// That of a node in a simulated world.
    #[cfg(feature = "sim")]
    World(crate::sim::SimClock),
}

impl Clock {
    /// See [`crate::Io::now`].
    #[inline]
    pub fn now(&self) -> u64 {
        match self {
            Clock::Kernel => monotonic_ns(),
            #[cfg(feature = "sim")]
            Clock::World(clock) => clock.now(),
        }
    }

    /// See [`crate::Io::unix_now`].
    #[inline]
    pub fn unix_now(&self) -> u64 {
        match self {
            Clock::Kernel => unix_ns(),
            #[cfg(feature = "sim")]
            Clock::World(clock) => clock.unix_now(),
        }
    }
}

/// User and system time of a thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Microseconds in the program.
    pub user_us: u64,
    /// Microseconds in the kernel.
    pub system_us: u64,
}

impl CpuTime {
    /// Reads it of the calling thread, from `getrusage(RUSAGE_THREAD)`. The kernel scales the two so that their sum is the
    /// scheduler's exact time; how it is split between them is sampled.
    pub(crate) fn read() -> CpuTime {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a live rusage.
        let failed = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0;
        if failed {
            // Only a bad pointer or selector can fail, and both are constants here.
            return CpuTime::default();
        }
        // SAFETY: all zeros is a valid rusage, and the call has filled it.
        let usage = unsafe { usage.assume_init() };
        let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        CpuTime { user_us: us(usage.ru_utime), system_us: us(usage.ru_stime) }
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }

    /// Both parts, microseconds.
    pub fn total_us(self) -> u64 {
        self.user_us + self.system_us
    }
}

/// CPU time of the calling thread so far, nanoseconds, exact.
pub(crate) fn thread_cpu_ns() -> u64 {
    // rustix reads the kernel's shared page itself, which valgrind hides, and `bench/instructions` counts with valgrind.
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec. The clock is every thread's own and cannot be missing.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Pins the calling thread to one CPU, given by its number from zero.
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

/// How a thread shares its CPU with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulingClass {
    /// It takes turns with all other processes (`SCHED_OTHER`).
    Ordinary,
    /// It runs as soon as it has work, before all ordinary processes of its CPU (`SCHED_FIFO`, priority 1). Threads of this class take
    /// turns when they wait or yield. The thread must not use up its CPU: kernels before 6.12 stop such threads for the last 50 ms of a
    /// second that was all theirs.
    RealTime,
    /// It runs before threads of the class above, too (`SCHED_FIFO`, priority 2): for a thread that only reads a clock.
    RealTimeWatch,
}

/// Puts the calling thread into a class.
///
/// # Errors
/// When the kernel does not allow it (`CAP_SYS_NICE`, or `RLIMIT_RTPRIO` of the priority).
pub fn set_scheduling_class(class: SchedulingClass) -> io::Result<()> {
    let (policy, sched_priority) = match class {
        SchedulingClass::Ordinary => (libc::SCHED_OTHER, 0),
        SchedulingClass::RealTime => (libc::SCHED_FIFO, 1),
        SchedulingClass::RealTimeWatch => (libc::SCHED_FIFO, 2),
    };
    let param = libc::sched_param { sched_priority };
    // SAFETY: the pointer is to a live parameter; 0 is the calling thread.
    crate::socket::check(unsafe { libc::sched_setscheduler(0, policy, &param) }).map(drop)
}

/// Sets the calling thread's timer slack to 1 ns, so that a wait ends on time and not up to 50 µs later. Drivers call
/// it on the thread that makes them.
///
/// # Errors
/// When the kernel refuses (`prctl`, `PR_SET_TIMERSLACK`).
pub(crate) fn set_timer_slack() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    Ok(())
}
