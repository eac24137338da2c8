//! Which I/O driver a load uses.

use weir_model::load::DriverChoice;

use crate::error::LoadError;

/// A driver this crate can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DriverKind {
    /// epoll.
    Epoll,
}

impl DriverKind {
    /// The name in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DriverKind::Epoll => "epoll",
        }
    }
}

/// io_uring if asked for, or if it works here and nothing else was asked for.
pub(crate) fn choose(choice: DriverChoice) -> Result<DriverKind, LoadError> {
    match choice {
        DriverChoice::Epoll | DriverChoice::Auto => Ok(DriverKind::Epoll),
        DriverChoice::Uring => {
            Err(LoadError::Driver { name: "io_uring", source: std::io::Error::from(std::io::ErrorKind::Unsupported) })
        }
    }
}
