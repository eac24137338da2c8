//! `weir supervise` (hidden): the supervisor of a product's process. See `weir_host::supervisor`.

use crate::exit::{Done, Exit, Failure};

/// Runs it.
pub fn main() -> Done {
    match weir_host::supervisor::supervise().map_err(Failure::missing)? {
        0 => Ok(Exit::Ok),
        _ => Ok(Exit::Failed),
    }
}
