//! `weir keep` (hidden): the keeper of a product's process. See `weir_lab::keeper`.

use crate::exit::{Done, Exit, Failure};

/// Runs it.
pub fn main() -> Done {
    match weir_lab::keeper::keep().map_err(Failure::missing)? {
        0 => Ok(Exit::Ok),
        _ => Ok(Exit::Failed),
    }
}
