//! All tests of the crate from outside, in one program: what is linked once is tested sooner.

#[path = "../../../report/tests/common/mod.rs"]
mod common;
#[path = "../common/rows.rs"]
mod rows;
#[path = "../common/run.rs"]
mod run;

mod figures;
mod report;
