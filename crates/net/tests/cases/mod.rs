//! Test functions, generic over the driver.

pub mod echo;
