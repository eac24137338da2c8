//! Which driver the workers get, how many workers there are, and what holds their connections.
//!
//! This module does not know what is served.

use weir_model::load::DriverChoice;
use weir_net::{Choice, EpollDriver, Holding, Kind, Plan, UringDriver};

use crate::options::{Options, OriginError};
use crate::origin::Serving;

/// Finds out which driver is to be had, once for all workers.
///
/// # Errors
/// When the one that was ordered is not.
pub(crate) fn choose(choice: DriverChoice) -> Result<Kind, OriginError> {
    let choice = match choice {
        DriverChoice::Auto => Choice::Auto,
        DriverChoice::Uring => Choice::Uring,
        DriverChoice::Epoll => Choice::Epoll,
    };
    Ok(weir_net::probe(choice)?)
}

/// How many connections there is room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Worker threads.
    pub(crate) workers: usize,
    /// What holds their connections.
    pub(crate) holding: Holding,
    /// Connections that fit.
    pub(crate) most: u64,
    /// Connections that were asked for.
    pub(crate) wanted: Option<u64>,
}

impl Room {
    /// As the options want it, as far as the kernel allows. Raises the soft limit of descriptors.
    pub(crate) fn of(kind: Kind, options: &Options) -> Room {
        let capacity = weir_net::capacity(kind);
        let wanted = options.connections.map(u64::from);
        let workers = options.workers();
        let alone = Room { workers, holding: Holding::Descriptors, most: capacity.most(0), wanted };
        match options.connections.map(|connections| capacity.plan(connections as usize)) {
            Some(Some(Plan { drivers, holding: Holding::Table })) => {
                let workers = workers.max(drivers);
                Room { workers, holding: Holding::Table, most: capacity.most(workers), wanted }
            }
            Some(None) if capacity.per_ring > 0 => {
                Room { holding: Holding::Table, most: capacity.most(workers), ..alone }
            }
            _ => alone,
        }
    }

    /// What a user can do for more.
    pub(crate) fn advice(&self, kind: Kind) -> &'static str {
        match (kind, self.holding) {
            (_, Holding::Table) => "--connections or --threads makes room for more, and so does a higher `ulimit -n`",
            (Kind::Uring, Holding::Descriptors) => {
                "--connections makes room for more, and so does a higher `ulimit -n`"
            }
            (Kind::Epoll, Holding::Descriptors) => "a higher `ulimit -n` makes room for more",
        }
    }
}

/// Makes a driver on the calling thread and serves on it.
///
/// # Errors
/// When it does not start.
pub(crate) fn serve_on(kind: Kind, holding: Holding, serving: Serving<'_>) -> Result<(), OriginError> {
    let failed = |source| OriginError::Driver { driver: kind, source };
    match kind {
        Kind::Uring => serving.run(UringDriver::with_holding(holding).map_err(failed)?, kind),
        Kind::Epoll => serving.run(EpollDriver::new().map_err(failed)?, kind),
    }
}
