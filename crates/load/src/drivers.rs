//! Chooses the I/O driver of a load and runs a worker on it. Called by `run`.

use weir_model::load::DriverChoice;
use weir_net::{DescriptorKind, Driver, DriverKind, DriverPreference, EpollDriver, UringDriver, probe};

use crate::error::LoadError;
use crate::protocol::Protocol;
use crate::worker::Worker;

/// io_uring if asked for, or if it works here and nothing else was asked for.
///
/// # Errors
/// [`LoadError::NoDriver`] when io_uring was asked for and does not work here.
pub(crate) fn choose(choice: DriverChoice) -> Result<DriverKind, LoadError> {
    let choice = match choice {
        DriverChoice::Auto => DriverPreference::Auto,
        DriverChoice::Uring => DriverPreference::Uring,
        DriverChoice::Epoll => DriverPreference::Epoll,
    };
    Ok(probe(choice)?)
}

/// Makes the driver on the calling thread, which will use it, and works.
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
