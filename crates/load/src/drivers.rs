//! Which I/O driver a load uses, and its worker on it.

use weir_model::load::DriverChoice;
use weir_net::{Choice, Driver, EpollDriver, Holding, Kind, UringDriver, probe};

use crate::error::LoadError;
use crate::worker::Worker;

/// io_uring if asked for, or if it works here and nothing else was asked for.
///
/// # Errors
/// [`LoadError::NoDriver`] when io_uring was asked for and does not work here.
pub(crate) fn choose(choice: DriverChoice) -> Result<Kind, LoadError> {
    let choice = match choice {
        DriverChoice::Auto => Choice::Auto,
        DriverChoice::Uring => Choice::Uring,
        DriverChoice::Epoll => Choice::Epoll,
    };
    Ok(probe(choice)?)
}

/// Makes the driver on the calling thread, which will use it, and works.
///
/// # Errors
/// What the kernel refused.
pub(crate) fn work(kind: Kind, holding: Holding, worker: Worker) -> Result<(), LoadError> {
    let cannot = |source| LoadError::Driver { driver: kind, source };
    match kind {
        Kind::Uring => work_on(UringDriver::with_holding(holding).map_err(cannot)?, worker),
        Kind::Epoll => work_on(EpollDriver::new().map_err(cannot)?, worker),
    }
    .map_err(|source| LoadError::DriverFailed { driver: kind, source })
}

fn work_on<D: Driver>(mut driver: D, worker: Worker) -> std::io::Result<()> {
    worker.run(&mut driver)
}
