//! Finds out how many connections this process may have, and plans how to hold them.
//!
//! A process has a limit of descriptors, and often cannot raise it. The table of a ring holds as many sockets again,
//! and each ring has its own table. So a load above the limit is divided among several drivers whose sockets have no
//! descriptors.
//!
//! This module does not know ports, memory, or other limits of a load.

use crate::uring::{check, table_limit};
use crate::{DriverKind, raise_descriptor_limit};

/// Descriptors reserved for everything else that a process opens: rings, files, libraries, a few connections.
const SPARE: u64 = 256;

/// One in this many table entries is left free, because listeners that share a port do not share its connections
/// evenly: with 18,750 on average, the fullest of twenty has some 300 more.
const UNEVEN: u32 = 16;

/// What holds the connections of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DescriptorKind {
    /// Each connection has a descriptor.
    #[default]
    Regular,
    /// The ring's table holds the connections: none has a descriptor, as long as the table has room.
    Direct,
}

/// The limits of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Descriptors (`u64::MAX`: no limit).
    pub descriptors: u64,
    /// Connections that one driver can hold in its ring's table. Zero with epoll, and where the kernel does not
    /// support it (before Linux 6.13).
    pub per_ring: u32,
}

/// How connections will be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketPlan {
    /// The least number of drivers, and so of threads.
    pub drivers: usize,
    /// What holds the connections of each driver.
    pub descriptors: DescriptorKind,
}

/// Finds out the limits of this process with drivers of this kind. Raises the soft limit of descriptors to the hard
/// one, which also limits a ring's table. It sets up a ring to try it, which takes about a millisecond.
pub fn capacity(kind: DriverKind) -> Capacity {
    let (descriptors, _) = raise_descriptor_limit();
    let per_ring = if kind == DriverKind::Uring && check::check_table().is_ok() { table_limit() } else { 0 };
    Capacity { descriptors, per_ring }
}

impl Capacity {
    /// Plans how to hold `connections` at a time. `None` means that it is impossible; [`Capacity::max_connections`]
    /// then says how many are possible.
    pub fn plan(&self, connections: usize) -> Option<SocketPlan> {
        if connections as u64 <= self.by_descriptors() {
            return Some(SocketPlan { drivers: 1, descriptors: DescriptorKind::Regular });
        }
        let each = self.each_ring();
        (each > 0).then(|| SocketPlan { drivers: connections.div_ceil(each), descriptors: DescriptorKind::Direct })
    }

    /// The number of connections that `drivers` drivers can hold at a time.
    pub fn max_connections(&self, drivers: usize) -> u64 {
        self.by_descriptors().max(drivers as u64 * self.each_ring() as u64)
    }

    fn by_descriptors(&self) -> u64 {
        self.descriptors.saturating_sub(SPARE)
    }

    /// Connections of one ring, with room for uneven shares.
    fn each_ring(&self) -> usize {
        (self.per_ring - self.per_ring / UNEVEN) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Capacity = Capacity { descriptors: 20_000, per_ring: 20_000 };

    #[test]
    fn descriptors_are_used_first() {
        for connections in [0, 1, 64, 19_744] {
            assert_eq!(HERE.plan(connections), Some(SocketPlan { drivers: 1, descriptors: DescriptorKind::Regular }));
        }
        assert_eq!(HERE.plan(19_745), Some(SocketPlan { drivers: 2, descriptors: DescriptorKind::Direct }));
    }

    #[test]
    fn two_hundred_thousand_connections_need_eleven_rings() {
        assert_eq!(HERE.plan(200_000), Some(SocketPlan { drivers: 11, descriptors: DescriptorKind::Direct }));
        assert!(HERE.max_connections(11) >= 200_000);
    }

    #[test]
    fn without_tables_descriptors_are_the_limit() {
        let epoll = Capacity { per_ring: 0, ..HERE };
        assert_eq!(epoll.plan(19_745), None);
        assert_eq!(epoll.max_connections(100), 19_744);
        let unlimited = Capacity { descriptors: u64::MAX, per_ring: 0 };
        assert_eq!(unlimited.plan(1 << 30).map(|plan| plan.descriptors), Some(DescriptorKind::Regular));
    }

    #[test]
    fn capacity_of_this_machine() {
        let capacity = capacity(DriverKind::Uring);
        assert!(capacity.per_ring > 0, "a ring's table alone holds no sockets here; it takes Linux 6.13");
        assert!(capacity.descriptors >= u64::from(capacity.per_ring));
        assert_eq!(super::capacity(DriverKind::Epoll).per_ring, 0);
    }
}
