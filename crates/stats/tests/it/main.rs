//! All tests of the crate from outside, in one program: what is linked once is tested sooner.

#[path = "../common/mod.rs"]
mod common;

mod agreement;
mod by_hand;
mod change;
mod coverage;
mod divisive;
mod knee;
mod properties;
mod sequential;
mod steady;
mod unpaired;
