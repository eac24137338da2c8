//! How fast CPUs were, by a fixed calculation. Vitals measure it, the lab records it around a trial's windows, the audit compares.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::Role;

/// The speeds of a host's CPUs at one time, while weir's roles and the product were idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostSpeed {
    /// Its name.
    pub host: String,
    /// The CPUs of each role there.
    pub roles: BTreeMap<Role, Vec<u32>>,
    /// Each CPU of the roles, ascending.
    pub cpus: Vec<CpuSpeed>,
}

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuSpeed {
    /// Its number.
    pub cpu: u32,
    /// While the roles' other CPUs calculated nothing.
    pub alone: Speed,
    /// While all of them calculated: less where CPUs share a core, a cache or a frequency.
    pub together: Speed,
}

/// Calculations a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Of CPU time: what the CPU did when it had it.
    pub by_cpu: f64,
    /// Of wall time: less where others had the CPU meanwhile.
    pub by_wall: f64,
}

/// Mean speed of a role's CPUs in these readings, calculations a second of CPU time, others idle. `None` where none is known.
pub fn mean_of_role<'a>(readings: impl IntoIterator<Item = &'a HostSpeed>, role: Role) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for host in readings {
        let own = host.roles.get(&role).map_or(&[][..], Vec::as_slice);
        for cpu in host.cpus.iter().filter(|cpu| own.contains(&cpu.cpu)) {
            sum += cpu.alone.by_cpu;
            count += 1.0;
        }
    }
    (sum > 0.0).then(|| sum / count)
}

/// The speeds of a run's CPUs, block after block. Of one reading little follows: where a CPU shares its core with another guest, its
/// speed changes many times a minute. The mean of a block's readings says how fast the block was.
#[derive(Debug, Default)]
pub struct BlockSpeeds {
    blocks: Vec<Block>,
}

#[derive(Debug, Default)]
struct Block {
    number: u32,
    /// Sum and count of the readings of each CPU of each host.
    cpus: BTreeMap<(String, u32), (f64, u32)>,
}

/// A CPU that was faster or slower in the block under way than in those before.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The host.
    pub host: String,
    /// The CPU.
    pub cpu: u32,
    /// Mean speed in the block over that in all blocks before.
    pub ratio: f64,
}

/// Readings of a CPU on each side from which on their means are compared.
const LEAST_READINGS: u32 = 8;

impl BlockSpeeds {
    /// Adds the readings of a trial of this block. Trials come in the order in which they are measured.
    pub fn add(&mut self, number: u32, readings: &[Vec<HostSpeed>]) {
        if self.blocks.last().is_none_or(|last| last.number != number) {
            self.blocks.push(Block { number, ..Block::default() });
        }
        let Some(block) = self.blocks.last_mut() else { return };
        for host in readings.iter().flatten() {
            for cpu in &host.cpus {
                let (sum, count) = block.cpus.entry((host.host.clone(), cpu.cpu)).or_default();
                *sum += cpu.alone.by_cpu;
                *count += 1;
            }
        }
    }

    /// The largest change, up or down, of a CPU in the last block, by CPU time and alone. `None` while there is too little to compare.
    pub fn change(&self) -> Option<Change> {
        let (last, before) = self.blocks.split_last()?;
        let changes = last.cpus.iter().filter_map(|(key, &now)| {
            let each = before.iter().filter_map(|block| block.cpus.get(key));
            let then = each.fold((0.0, 0), |(sum, count), (more, times)| (sum + more, count + times));
            let ratio = mean(now)? / mean(then)?;
            (ratio.is_finite() && ratio > 0.0).then(|| Change { host: key.0.clone(), cpu: key.1, ratio })
        });
        changes.max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))
    }
}

fn mean((sum, count): (f64, u32)) -> Option<f64> {
    (count >= LEAST_READINGS).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, speeds: &[(u32, f64)]) -> HostSpeed {
        let speed = |by_cpu| Speed { by_cpu, by_wall: by_cpu };
        let cpu = |&(cpu, of): &(u32, f64)| CpuSpeed { cpu, alone: speed(of), together: speed(of / 2.0) };
        let roles = BTreeMap::from([(Role::Proxy, vec![1]), (Role::Origin, vec![0])]);
        HostSpeed { host: name.to_owned(), roles, cpus: speeds.iter().map(cpu).collect() }
    }

    #[test]
    fn a_role_has_the_mean_of_its_own_cpus() {
        let readings = [host("a", &[(0, 50.0), (1, 100.0)]), host("a", &[(0, 70.0), (1, 90.0)])];
        assert_eq!(mean_of_role(&readings, Role::Proxy), Some(95.0));
        assert_eq!(mean_of_role(&readings, Role::Origin), Some(60.0));
        assert_eq!(mean_of_role(&readings, Role::Client), None);
    }

    #[test]
    fn a_block_is_compared_with_all_before_it_by_host_and_cpu() {
        let mut run = BlockSpeeds::default();
        let before = vec![host("a", &[(0, 100.0), (1, 100.0)]), host("b", &[(0, 200.0)])];
        run.add(1, &vec![before.clone(); 4]);
        assert_eq!(run.change(), None, "one block");
        run.add(2, &vec![before; 4]);
        let after = vec![host("b", &[(0, 160.0)]), host("a", &[(0, 110.0), (2, 1.0)])];
        run.add(1, &vec![after.clone(); 7]);
        assert_eq!(run.change(), None, "too few readings");
        run.add(1, &[after]);
        assert_eq!(run.change(), Some(Change { host: "b".into(), cpu: 0, ratio: 0.8 }));
    }

    /// What a CPU does that shares its core: each third reading a fifth slower.
    #[test]
    fn readings_that_go_up_and_down_are_no_change() {
        let mut run = BlockSpeeds::default();
        for block in 1..4 {
            let reading = |n: u32| vec![host("a", &[(0, if n.is_multiple_of(3) { 80.0 } else { 100.0 })])];
            run.add(block, &(0..24).map(reading).collect::<Vec<_>>());
        }
        assert_eq!(run.change().map(|change| change.ratio), Some(1.0));
    }

    #[test]
    fn what_is_no_number_is_no_change() {
        let mut run = BlockSpeeds::default();
        run.add(1, &vec![vec![host("a", &[(0, 0.0)])]; 8]);
        run.add(2, &vec![vec![host("a", &[(0, 100.0)])]; 8]);
        assert_eq!(run.change(), None);
    }
}
