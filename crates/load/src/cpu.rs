//! The CPU time of the calling thread from two clocks: one separates user from system time, the other is cheap and
//! exact. Used by `worker::recorder` and `worker::busy_poll`.

/// User and system time of a thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub user_us: u64,
    pub system_us: u64,
}

impl CpuTime {
    /// Of the calling thread, from `getrusage(RUSAGE_THREAD)`. The kernel scales the two so that their sum is the
    /// scheduler's exact time; how it is split between them is sampled.
    pub(crate) fn of_this_thread() -> CpuTime {
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
    pub(crate) fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }

    /// Both.
    pub(crate) fn total_us(self) -> u64 {
        self.user_us + self.system_us
    }
}

/// CPU time of the calling thread so far, nanoseconds, exact.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec. The clock is every thread's own and cannot be missing.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn counts_work_and_not_sleep() {
        let start = CpuTime::of_this_thread();
        std::thread::sleep(Duration::from_millis(50));
        let slept = CpuTime::of_this_thread().since(start).total_us();
        let until = Instant::now() + Duration::from_millis(200);
        while Instant::now() < until {
            std::hint::black_box(0);
        }
        let worked = CpuTime::of_this_thread().since(start).total_us();
        assert!(worked > slept + 1_000, "slept {slept} us, worked {worked} us");
    }
}
