//! Checks how products handle the parts of HTTP that matter for a proxy, and what stores of keys and values, and proxies
//! before them, owe their clients. It does not measure speed.
//! `weir products test` calls [`test()`] for each product.
//!
//! [`CHECKS`] lists the checks. A [`Check`] is a file in `checks`. It runs on a `testbed::Testbed`, a product in
//! front of weir's origins: a real product (`real::RealTestbed`) or, in tests, a fake. The result is a [`Cell`]. A
//! product that cannot do something gets that cell and never fails the run; a product that crashes is restarted for the
//! next check. Each product is told to use one worker but may use every CPU, because otherwise a second busy core could
//! not be seen.
//!
//! This crate does not know what a trial is, or how a cell is shown.

mod cell;
mod checks;
#[cfg(test)]
mod client_tests;
mod crosstalk;
#[cfg(test)]
mod fake;
mod real;
mod run;
mod table;
mod testbed;

pub use cell::{Cell, Verdict};
pub use run::{ProductReport, Progress, TestSpec, kinds, launcher, test, wanted};
pub use table::{AskedIn, CHECKS, Check, Kind, check};
