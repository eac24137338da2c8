//! Which driver a worker gets.

use weir_model::load::DriverChoice;
use weir_net::EpollDriver;

use crate::options::OriginError;
use crate::origin::Serving;

/// Makes the driver that was chosen, on the calling thread, and serves on it.
///
/// # Errors
/// When the driver is not to be had.
pub fn with_driver(choice: DriverChoice, serving: Serving<'_>) -> Result<(), OriginError> {
    let _ = choice;
    let driver = EpollDriver::new().map_err(|source| OriginError::Driver {
        driver: "epoll",
        source,
    })?;
    serving.run(driver)
}
