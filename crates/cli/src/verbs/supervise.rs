//! `weir supervise` (hidden): the supervisor process of a product, started by the lab. See `weir_host::supervisor`.

use crate::exit::{Exit, Failure, VerbResult};

/// Runs it.
pub fn main() -> VerbResult {
    match weir_host::supervisor::supervise().map_err(Failure::missing)? {
        0 => Ok(Exit::Ok),
        _ => Ok(Exit::Failed),
    }
}
