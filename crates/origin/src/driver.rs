//! Makes the drivers of the workers, and finds out how many connections they can hold.
//!
//! [`crate::origin`] calls it at the start. This module does not know what is served.

use weir_net::{DescriptorKind, DriverKind, EpollDriver, SocketPlan, UringDriver};

use crate::options::{Options, OriginError};
use crate::origin::Serving;
use crate::session::Session;

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

/// Makes a driver on the calling thread and serves on it.
///
/// # Errors
/// When the driver or the service on it does not start.
pub(crate) fn serve_on<S: Session>(
    kind: DriverKind,
    descriptors: DescriptorKind,
    serving: Serving<'_, S>,
) -> Result<(), OriginError> {
    let failed = |source| OriginError::Driver { driver: kind, source };
    match kind {
        DriverKind::Uring => serving.run(UringDriver::with_descriptors(descriptors).map_err(failed)?, kind),
        DriverKind::Epoll => serving.run(EpollDriver::new().map_err(failed)?, kind),
    }
}
