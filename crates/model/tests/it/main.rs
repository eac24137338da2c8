//! All tests of the crate from outside, in one program: what is linked once is tested sooner.

mod bad;
mod round_trip;
mod schema;
