//! How many connections the drivers of an origin can hold. This module does not know what is served.

use weir_net::{DescriptorKind, DriverKind, SocketPlan};

use crate::options::Options;

/// How many connections there is room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimit {
    /// Worker threads.
    pub(crate) workers: usize,
    /// What holds their connections.
    pub(crate) descriptors: DescriptorKind,
    /// Connections that fit.
    pub(crate) most: u64,
    /// Connections that the options ask for.
    pub(crate) wanted: Option<u64>,
}

impl ConnectionLimit {
    /// The limit that the options ask for, as far as the kernel allows it. Raises the soft limit of descriptors.
    pub(crate) fn of(kind: DriverKind, options: &Options) -> ConnectionLimit {
        let capacity = weir_net::capacity(kind);
        let wanted = options.connections.map(u64::from);
        let workers = options.workers();
        let alone = ConnectionLimit {
            workers,
            descriptors: DescriptorKind::Regular,
            most: capacity.max_connections(0),
            wanted,
        };
        match options.connections.map(|connections| capacity.plan(connections as usize)) {
            Some(Some(SocketPlan { drivers, descriptors: DescriptorKind::Direct })) => {
                let workers = workers.max(drivers);
                ConnectionLimit {
                    workers,
                    descriptors: DescriptorKind::Direct,
                    most: capacity.max_connections(workers),
                    wanted,
                }
            }
            Some(None) if capacity.per_ring > 0 => ConnectionLimit {
                descriptors: DescriptorKind::Direct,
                most: capacity.max_connections(workers),
                ..alone
            },
            _ => alone,
        }
    }

    /// What a user can do to get more connections.
    pub(crate) fn advice(&self, kind: DriverKind) -> &'static str {
        match (kind, self.descriptors) {
            (_, DescriptorKind::Direct) => {
                "--connections or --threads makes room for more, and so does a higher `ulimit -n`"
            }
            (DriverKind::Uring, DescriptorKind::Regular) => {
                "--connections makes room for more, and so does a higher `ulimit -n`"
            }
            (DriverKind::Epoll, DescriptorKind::Regular) => "a higher `ulimit -n` makes room for more",
        }
    }
}
