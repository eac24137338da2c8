//! All tests of the crate from outside but one, in one program: what is linked once is tested sooner.

mod watch;
