//! Test functions, generic over the driver.

pub mod datagrams;
pub mod echo;
pub mod ends;
pub mod hostile;
pub mod limits;
pub mod send;
pub mod skip;
pub mod unix;
pub mod waits;
