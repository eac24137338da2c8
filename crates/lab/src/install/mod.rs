//! Getting products: looking for them, saying what would be done, and doing it.
//!
//! Three doors, in this order. [`find`] looks and never changes anything. [`plan`] says what is missing as [`Step`]s that
//! can be shown to the user. [`carry_out`] does one of them. Nothing is remembered between calls: what is installed is
//! what is on the disk, so that an install cut off anywhere is simply done again.
//!
//! This module knows no product by name, and neither runs products nor measures them; it asks a binary for its version.

mod apt;
mod child;
mod digest;
mod error;
mod find;
mod lock;
mod lookup;
mod plan;
#[cfg(test)]
mod tests;
mod unpack;
mod version;
mod wheel;

use std::path::PathBuf;

pub use apt::AptStep;
pub use error::InstallError;
pub use find::find;
pub use plan::{Step, carry_out, plan};
pub use wheel::WheelStep;

/// A product's program as it is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The program.
    pub binary: PathBuf,
    /// What it says its version is.
    pub version: String,
    /// SHA-256 of the program, lower-case hexadecimal.
    pub sha256: String,
    /// Where it comes from, for the record: `system`, `apt <package> <version>` or `wheel <package> <version>`.
    pub from: String,
}

/// What looking for a product came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It can be run.
    Yes(Installed),
    /// It cannot.
    No {
        /// Each of the product's ways to be installed, and why it is no good as things are.
        tried: Vec<String>,
    },
}
