//! The conformance run: what each product, in each profile, does with what HTTP asks of a proxy. Not how fast.
//!
//! [`table::CHECKS`] has every question. A question is one file in `checks` and is put through a [`testbed::Testbed`], a product in front of
//! weir's origin: real ([`real::RealTestbed`]) or, in tests, a thread that misbehaves as told. Its answer is a [`Cell`]. A product that
//! cannot do a thing gets that cell, never a failure of the run, and one that dies of a question is restarted for the next.
//!
//! The product is told to use one worker and is free to run on every CPU: otherwise it could not be seen to use more than one.
//!
//! `weir products test` calls this crate. It does not know what a trial is, or how a cell is shown.

mod cell;
mod checks;
mod client;
mod crosstalk;
#[cfg(test)]
mod fake;
mod real;
mod run;
mod table;
mod testbed;

pub use cell::{Cell, Verdict};
pub use run::{ProductReport, Progress, TestSpec, launcher, test};
pub use table::{CHECKS, Check, check};
