//! All tests of the crate from outside, in one program: what is linked once is tested sooner.

#[path = "../../../report/tests/common/golden.rs"]
mod golden;
#[path = "../common/made.rs"]
mod made;
#[path = "../common/outside_oracle.rs"]
mod outside_oracle;
#[path = "../../../report/tests/common/random.rs"]
mod random;

mod compare;
mod history;
mod outside;
