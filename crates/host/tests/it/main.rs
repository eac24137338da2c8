//! All tests of the crate from outside but those of network namespaces, in one program: what is linked once is tested sooner.

#[path = "../common/frames_oracle.rs"]
mod frames_oracle;

mod agent;
mod frames;
mod supervisor;
