//! Asks products what they do with what HTTP asks of a proxy. Not how fast.
//!
//! [`CHECKS`] lists the questions. A question is a [`Check`] in a file of `checks`, and is put to a [`testbed::Testbed`]: a product in
//! front of weir's origin, which is real ([`real::RealTestbed`]) or, in tests, a thread that misbehaves as told. The result is a
//! [`Cell`]. A product that cannot do a thing gets that cell and never fails the run; one that crashes is started again for the
//! next question. It is told to use one worker and may run on every CPU, or it could not be seen to use more than one.
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
