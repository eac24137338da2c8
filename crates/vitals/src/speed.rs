//! How fast CPUs are: a short fixed calculation on each. Hosts call it. It does not know what else runs.

use std::hint::black_box;
use std::io;
use std::sync::{Barrier, PoisonError, RwLock};
use std::thread;

use rustix::thread::{CpuSet, sched_setaffinity};
use weir_model::speed::{CpuSpeed, Speed};

use crate::clock::{mono_ns, own_cpu_ns};

/// Steps of a calculation: about 0.7 ms on a CPU of 2.6 GHz.
const STEPS: u32 = 100_000;

/// It is repeated for this long, ns, and at least so often. The shortest counts: what else runs only makes it longer. Beside compilers
/// the shortest of 15 ms repeats itself far better than the mean or a single one.
const REPEATS_NS: u64 = 15_000_000;
const LEAST_TIMES: u32 = 3;

/// Words of the memory that it works in: 256 KiB, more than a first-level cache and less than most second-level ones.
const WORDS: usize = 32 * 1024;

/// Measures each CPU, first one after another, then all at a time. It takes some 10 ms for each CPU.
///
/// # Errors
/// When one of them may not be used, or no thread can be made.
pub fn speeds(cpus: &[u32]) -> io::Result<Vec<CpuSpeed>> {
    let alone = cpus.iter().map(|cpu| Ok(measured(&[*cpu])?.remove(0))).collect::<io::Result<Vec<Speed>>>()?;
    let together = if cpus.len() < 2 { alone.clone() } else { measured(cpus)? };
    let both = alone.into_iter().zip(together);
    Ok(cpus.iter().zip(both).map(|(&cpu, (alone, together))| CpuSpeed { cpu, alone, together }).collect())
}

/// Measures CPUs at one time, with a thread on each.
fn measured(cpus: &[u32]) -> io::Result<Vec<Speed>> {
    let begin = &Barrier::new(cpus.len());
    // Whether all threads could be started: without one of them the others would wait for ever.
    let complete = &RwLock::new(false);
    thread::scope(|scope| {
        let mut all_here = complete.write().unwrap_or_else(PoisonError::into_inner);
        let start = |&cpu: &u32| thread::Builder::new().spawn_scoped(scope, move || on_cpu(cpu, begin, complete));
        let threads = cpus.iter().map(start).collect::<io::Result<Vec<_>>>()?;
        *all_here = true;
        drop(all_here);
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))).collect()
    })
}

fn on_cpu(cpu: u32, begin: &Barrier, complete: &RwLock<bool>) -> io::Result<Speed> {
    let mut set = CpuSet::new();
    let pinned = match (cpu as usize) < CpuSet::MAX_CPU {
        true => {
            set.set(cpu as usize);
            sched_setaffinity(None, &set).map_err(io::Error::from)
        }
        false => Err(io::ErrorKind::InvalidInput.into()),
    };
    let mut memory = vec![1_u64; WORDS];
    if !*complete.read().unwrap_or_else(PoisonError::into_inner) {
        return Err(io::ErrorKind::Interrupted.into());
    }
    // Before the error is returned: the others wait.
    begin.wait();
    pinned?;
    let (mut least_cpu, mut least_wall) = (u64::MAX, u64::MAX);
    let mut times = 0;
    let until = mono_ns() + REPEATS_NS;
    while times < LEAST_TIMES || mono_ns() < until {
        times += 1;
        memory.fill(1);
        let (wall, cpu) = (mono_ns(), own_cpu_ns());
        black_box(calculate(&mut memory));
        least_cpu = least_cpu.min(own_cpu_ns().saturating_sub(cpu));
        least_wall = least_wall.min(mono_ns().saturating_sub(wall));
    }
    let a_second = |ns: u64| 1e9 / ns.max(1) as f64;
    Ok(Speed { by_cpu: a_second(least_cpu), by_wall: a_second(least_wall) })
}

/// A chain in which each step needs the one before: shifts, a product, and a word of memory that the step chooses.
fn calculate(memory: &mut [u64]) -> u64 {
    let mut x = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..STEPS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let word = &mut memory[x as usize % WORDS];
        x = x.wrapping_add(*word).wrapping_mul(0x2545_F491_4F6C_DD1D) | 1;
        *word = x;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calculation_is_the_same_each_time() {
        let [first, second] = [(); 2].map(|()| calculate(&mut vec![1; WORDS]));
        assert_eq!(first, second);
        assert_ne!(first, calculate(&mut vec![2; WORDS]), "memory is a part of it");
    }

    #[test]
    fn each_cpu_has_a_speed_and_one_that_is_not_there_is_an_error() {
        let set = rustix::thread::sched_getaffinity(None).expect("known");
        let own: Vec<u32> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect();
        let speeds = speeds(&own).expect("may be used");
        assert_eq!(speeds.iter().map(|speed| speed.cpu).collect::<Vec<_>>(), own);
        for speed in speeds.iter().flat_map(|speed| [speed.alone, speed.together]) {
            assert!(speed.by_cpu > 0.1 && speed.by_wall > 0.1 && speed.by_cpu < 1e6, "{speed:?}");
            assert!(speed.by_wall < speed.by_cpu * 1.5, "wall time is no less than CPU time: {speed:?}");
        }
        assert!(super::speeds(&[own[0], 1_000_000]).is_err());
    }
}
