//! Installing products: finding them, planning what is missing, and installing it.
//!
//! There are three entry points: [`find`] looks for a product and never changes anything; [`plan`] returns [`Step`]s that can be shown
//! to the user; and [`run_step`] runs one of them. An [`Installer`] does the three for a product, here or on another
//! machine. Only the user's choice ([`Using`]) is remembered, and which libraries weir may run programs of ([`agreed`]). The state is
//! what is on the disk, so an interrupted install is simply repeated.
//!
//! Each source of products is a file of its own: [`apt`](AptStep), [`download`](DownloadStep) for releases and
//! wheels and, for what is compiled here, [`build`](BuildStep). All but apt install into a folder of weir's own that is complete or absent
//! (`place`).
//!
//! This crate knows no product by name, and neither runs nor measures products. It asks a binary only for its version.

pub mod agreed;
mod apt;
mod build;
mod child;
mod download;
mod error;
mod fetch;
mod find;
pub mod home;
mod index;
mod installer;
mod lock;
mod lookup;
mod place;
mod plan;
mod project;
#[cfg(test)]
mod tests;
mod toolchain;
mod tools;
mod unpack;
mod using;
mod version;

use std::path::PathBuf;

use weir_host::Host;
use weir_host::stop::Stop;
pub use weir_product::launch::Installed;

use crate::home::Home;

pub use apt::AptStep;
pub use build::BuildStep;
pub use download::DownloadStep;
pub use error::InstallError;
pub use find::{at_once, find, locate_any, quick_find};
pub use installer::{Installer, Inventory, LocalInstaller, PlannedStep, RemoteInstaller, Request, serve, versions};
pub use plan::{Step, Want, plan, run_step};
pub use toolchain::ToolchainStep;
pub use using::{Own, own_binary, use_binary, use_no_binary, using};

/// A product's program as [`quick_find`] finds it: [`Installed`] without the hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    /// The program.
    pub binary: PathBuf,
    /// What it says its version is.
    pub version: String,
    /// Where it comes from, as in [`Installed::from`].
    pub from: String,
}

/// What an install works with.
#[derive(Debug, Clone, Copy)]
pub struct InstallContext<'a> {
    /// weir's own folder, where products go.
    pub home: &'a Home,
    /// The machine on which builds run, below a supervisor.
    pub host: &'a dyn Host,
    /// Checked several times a second. When set, the step ends and leaves nothing unfinished behind.
    pub stop: &'a Stop,
}

/// Progress of a step.
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
    /// Nothing new. Sent several times a second, so that the elapsed time can be shown.
    Tick,
}

/// Callback for the progress of a step.
pub type Notify<'a> = dyn FnMut(Progress<'_>) + 'a;
