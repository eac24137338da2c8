//! The hidden verb of weir's pods: `weir pod copy PATH` puts weir where the product's container sees it, `weir pod idle` is that
//! container's first process. See `weir_host::kubernetes`.

use std::path::PathBuf;

use clap::Subcommand;
use weir_host::files::FileError;
use weir_host::kubernetes::{copy_weir, idle};

use crate::exit::{Exit, Failure, VerbResult};

/// What a pod's process does.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Copy weir to a path
    Copy {
        /// The path.
        to: PathBuf,
    },
    /// Stay until agents are gone
    Idle,
}

/// Does it.
///
/// # Errors
/// When weir cannot be copied.
pub fn main(args: &Args) -> VerbResult {
    match args {
        Args::Copy { to } => copy_weir(to).map_err(FileError::at(to)).map_err(Failure::missing)?,
        Args::Idle => idle(),
    }
    Ok(Exit::Ok)
}
