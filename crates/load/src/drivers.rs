//! Chooses the I/O driver of a load and runs a worker on it. Called by `run`.

use weir_model::load::DriverChoice;
use weir_net::{DescriptorKind, Driver, DriverKind, DriverPreference, EpollDriver, UringDriver, probe};

use crate::error::LoadError;
use crate::protocol::Protocol;
use crate::worker::Worker;

/// Chooses io_uring if it was requested, or if it works here and no other driver was requested.
///
/// # Errors
/// [`LoadError::NoDriver`] when io_uring was requested and does not work here.
pub(crate) fn choose(choice: DriverChoice) -> Result<DriverKind, LoadError> {
    let choice = match choice {
        DriverChoice::Auto => DriverPreference::Auto,
        DriverChoice::Uring => DriverPreference::Uring,
        DriverChoice::Epoll => DriverPreference::Epoll,
    };
    Ok(probe(choice)?)
}

/// Makes the driver on the calling thread and runs the worker on it.
///
/// # Errors
/// What the kernel refused.
pub(crate) fn work<P: Protocol>(
    kind: DriverKind,
    descriptors: DescriptorKind,
    worker: Worker<P>,
) -> Result<(), LoadError> {
    let cannot = |source| LoadError::Driver { driver: kind, source };
    match kind {
        DriverKind::Uring => work_on(UringDriver::with_descriptors(descriptors).map_err(cannot)?, worker),
        DriverKind::Epoll => work_on(EpollDriver::new().map_err(cannot)?, worker),
    }
    .map_err(|source| LoadError::DriverFailed { driver: kind, source })
}

fn work_on<D: Driver, P: Protocol>(mut driver: D, worker: Worker<P>) -> std::io::Result<()> {
    worker.run(&mut driver)
}
