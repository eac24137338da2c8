//! Makes the I/O driver of a worker and runs the worker on it. Called by `run`.

use weir_net::{DescriptorKind, DriverKind, EpollDriver, UringDriver};

use crate::error::LoadError;
use crate::protocol::Protocol;
use crate::worker::Worker;

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
        DriverKind::Uring => worker.run(&mut UringDriver::with_descriptors(descriptors).map_err(cannot)?),
        DriverKind::Epoll => worker.run(&mut EpollDriver::new().map_err(cannot)?),
    }
    .map_err(|source| LoadError::DriverFailed { driver: kind, source })
}
