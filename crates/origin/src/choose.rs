//! Which driver the workers get.
//!
//! This module does not know what is served.

use weir_model::load::DriverChoice;
use weir_net::{Choice, EpollDriver, Kind, UringDriver};

use crate::options::OriginError;
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

/// Makes a driver on the calling thread and serves on it.
///
/// # Errors
/// When it does not start.
pub(crate) fn serve_on(kind: Kind, serving: Serving<'_>) -> Result<(), OriginError> {
    let failed = |source| OriginError::Driver { driver: kind, source };
    match kind {
        Kind::Uring => serving.run(UringDriver::new().map_err(failed)?, kind),
        Kind::Epoll => serving.run(EpollDriver::new().map_err(failed)?, kind),
    }
}
