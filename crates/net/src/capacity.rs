//! How many connections this process may have, and how they are to be held.
//!
//! A process has a limit of descriptors, and often cannot raise it. A ring's table takes as many sockets again, and
//! each ring has its own. So beyond the limit a load is divided among as many drivers as it takes, whose sockets
//! have no descriptors.
//!
//! It does not know ports, memory, or what else limits a load.

use crate::uring::{check, table_limit};
use crate::{DriverKind, raise_descriptor_limit};

/// Descriptors kept for all else that a process opens: rings, files, libraries, a few connections.
const SPARE: u64 = 256;

/// Of a table's places, one in so many is left free, since listeners that share a port do not share its
/// connections evenly: with 18,750 on average the fullest of twenty has some 300 more.
const UNEVEN: u32 = 16;

/// What holds the connections of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DescriptorKind {
    /// Descriptors: each connection has one.
    #[default]
    Regular,
    /// The ring's table: no connection has a descriptor, as long as the table has room.
    Direct,
}

/// What this process may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Descriptors (`u64::MAX`: no limit).
    pub descriptors: u64,
    /// Connections that one driver can hold in its ring's table; zero with epoll, and where the kernel cannot
    /// (before Linux 6.13).
    pub per_ring: u32,
}

/// How connections are to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketPlan {
    /// Drivers, and so threads, at least.
    pub drivers: usize,
    /// What holds the connections, of each driver.
    pub descriptors: DescriptorKind,
}

/// Finds out what this process may have with drivers of this kind, and raises the soft limit of descriptors to the
/// hard one, which bounds a ring's table, too. Tries a ring, so it takes a millisecond or so.
pub fn capacity(kind: DriverKind) -> Capacity {
    let (descriptors, _) = raise_descriptor_limit();
    let per_ring = if kind == DriverKind::Uring && check::check_table().is_ok() { table_limit() } else { 0 };
    Capacity { descriptors, per_ring }
}

impl Capacity {
    /// How to hold `connections` at a time; `None` when there is no way, and then [`Capacity::max_connections`] says how
    /// many there may be.
    pub fn plan(&self, connections: usize) -> Option<SocketPlan> {
        if connections as u64 <= self.by_descriptors() {
            return Some(SocketPlan { drivers: 1, descriptors: DescriptorKind::Regular });
        }
        let each = self.each_ring();
        (each > 0).then(|| SocketPlan { drivers: connections.div_ceil(each), descriptors: DescriptorKind::Direct })
    }

    /// Connections that `drivers` drivers can have at a time.
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
    fn descriptors_are_used_while_they_last() {
        for connections in [0, 1, 64, 19_744] {
            assert_eq!(HERE.plan(connections), Some(SocketPlan { drivers: 1, descriptors: DescriptorKind::Regular }));
        }
        assert_eq!(HERE.plan(19_745), Some(SocketPlan { drivers: 2, descriptors: DescriptorKind::Direct }));
    }

    #[test]
    fn two_hundred_thousand_take_eleven_rings() {
        assert_eq!(HERE.plan(200_000), Some(SocketPlan { drivers: 11, descriptors: DescriptorKind::Direct }));
        assert!(HERE.max_connections(11) >= 200_000);
    }

    #[test]
    fn without_tables_there_are_as_many_as_descriptors() {
        let epoll = Capacity { per_ring: 0, ..HERE };
        assert_eq!(epoll.plan(19_745), None);
        assert_eq!(epoll.max_connections(100), 19_744);
        let unlimited = Capacity { descriptors: u64::MAX, per_ring: 0 };
        assert_eq!(unlimited.plan(1 << 30).map(|plan| plan.descriptors), Some(DescriptorKind::Regular));
    }

    #[test]
    fn this_machine_says_what_it_can() {
        let capacity = capacity(DriverKind::Uring);
        if capacity.per_ring == 0 {
            eprintln!("THE TABLE IS NOT TESTED: this kernel cannot hold sockets in it alone");
        }
        assert!(capacity.descriptors >= u64::from(capacity.per_ring));
        assert_eq!(super::capacity(DriverKind::Epoll).per_ring, 0);
    }
}
