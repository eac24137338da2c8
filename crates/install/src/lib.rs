//! Getting products: looking for them, saying what would be done, and doing it.
//!
//! Three doors, in this order. [`find`] looks and never changes anything. [`plan`] says what is missing as [`Step`]s that
//! can be shown to the user. [`run_step`] does one of them. Nothing is remembered between calls but what the user
//! chose ([`Using`]): what is installed is what is on the disk, so that an install cut off anywhere is simply done again.
//!
//! Each way to install is a file of its own: [`apt`](AptStep), [`wheel`](WheelStep), [`release`](ReleaseStep) and, for
//! what is compiled or put together here, [`build`](BuildStep). All but apt's end in a folder of weir's own that is made
//! whole or not at all (`place`).
//!
//! This module knows no product by name, and neither runs products nor measures them; it asks a binary for its version.

mod apt;
mod build;
mod child;
mod digest;
mod error;
mod fetch;
mod find;
pub mod home;
mod lock;
mod lookup;
mod parallel;
mod place;
mod plan;
mod project;
mod release;
#[cfg(test)]
mod tests;
mod tools;
mod unpack;
mod using;
mod version;
mod wheel;

use std::path::{Path, PathBuf};

use weir_host::stop::Stop;
pub use weir_product::launch::Installed;

use crate::home::Home;

pub use apt::AptStep;
pub use build::BuildStep;
pub use error::InstallError;
pub use find::{find, find_all, quick_find, quick_find_all};
pub use plan::{Step, plan, plan_latest, run_step};
pub use release::ReleaseStep;
pub use using::{Latest, Own, Using, use_binary, use_no_binary, use_pinned, using};
pub use wheel::WheelStep;

/// A product's program as a look at it shows: [`Installed`] without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    /// The program.
    pub binary: PathBuf,
    /// What it says its version is.
    pub version: String,
    /// Where it comes from, as in [`Installed::from`].
    pub from: String,
}

/// What looking for a product came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T = Installed> {
    /// It can be run.
    Yes(T),
    /// It cannot.
    No {
        /// Each of the product's ways to be installed, and why it is no good as things are.
        tried: Vec<String>,
    },
}

/// What an install works with.
#[derive(Debug, Clone, Copy)]
pub struct InstallContext<'a> {
    /// weir's own folder, where products go.
    pub home: &'a Home,
    /// weir's own program, which also is the supervisor below which builds run (see [`weir_host::supervisor`]).
    pub weir: &'a Path,
    /// Looked at several times a second; when set, what runs is ended and nothing half-done stays.
    pub stop: &'a Stop,
}

/// What goes on while a step is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// What weir does next, in its own words.
    Action(&'a str),
    /// A line of a program that weir runs.
    Line(&'a str),
    /// Of a download.
    Bytes {
        /// Bytes that have come.
        done: u64,
        /// Bytes there will be, where the server says so.
        of: Option<u64>,
    },
    /// Nothing new; said several times a second, so that time can be shown.
    Tick,
}

/// Who is told.
pub type Notify<'a> = dyn FnMut(Progress<'_>) + 'a;
