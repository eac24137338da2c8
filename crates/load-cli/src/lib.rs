//! The programs behind `weir load` and `weir origin`: flags, live view, summary, metrics for other programs. All verbs also share its
//! exit statuses, output, progress and readers of flag values.
//!
//! This crate does not know how a load is made or served, nor what a run or a product is.

// Comments of flags are their help, which a terminal shows as it is.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

#[macro_use]
pub mod out;

pub mod exit;
pub mod topics;
pub mod values;

// What measures needs Linux.
#[cfg(target_os = "linux")]
pub mod load;
#[cfg(target_os = "linux")]
pub mod origin;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod progress;
#[cfg(target_os = "linux")]
pub mod telemetry;
