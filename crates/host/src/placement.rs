//! Which CPUs this process may use, and keeping threads and processes on some of them. `weir run`, the lab and the
//! supervisor call it. This module does not know what runs on the CPUs; `weir_model::placement` divides them.

use rustix::thread::CpuSet;

/// CPUs this process may run on, ascending.
pub fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return vec![0];
    };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect()
}

/// Restricts the calling thread, and what it starts from now on, to these CPUs. An empty list changes nothing.
///
/// # Errors
/// When none of them exists or may be used.
pub fn restrict_to(cpus: &[u32]) -> std::io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    Ok(rustix::thread::sched_setaffinity(None, &affinity_mask(cpus))?)
}

/// The CPUs as a mask for system calls.
pub(crate) fn affinity_mask(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    // The set panics beyond its end; no such CPU can be among those a process may use.
    for cpu in cpus.iter().filter(|cpu| (**cpu as usize) < CpuSet::MAX_CPU) {
        set.set(*cpu as usize);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_cannot_exist_are_an_error_and_no_panic() {
        assert!(restrict_to(&[1_000_000]).is_err());
    }
}
