//! All tests of the crate from outside, in one program.

mod add_a_product;
