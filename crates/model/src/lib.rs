//! The data types that all other crates share: suites and products, the request to the load generator, and the records
//! that a trial leaves on disk; also the table of metrics, and the formats of numbers for people.
//!
//! People write `suite.toml` and `product.toml`. [`mod@file`] mirrors their text exactly as written, and the types of
//! [`suite`] and [`product`] hold only what is valid. Every error in between is an [`InputError`], which names the
//! file, the line, the key, what was found and what would be right.
//!
//! This crate knows nothing of processes, sockets, clocks or how a table looks.

pub mod as_published;
pub mod case_tests;
mod cases;
pub mod change;
pub mod clock;
pub mod coding;
pub mod condition;
pub mod counters;
pub mod cpu_time;
pub mod error;
pub mod fault;
pub mod file;
pub mod filter;
pub mod fit;
pub mod gateway;
pub mod keyvalue;
pub mod load;
pub mod metric;
pub mod objective;
pub mod origin;
pub mod owners;
pub mod placement;
pub mod product;
pub mod protocol;
mod question;
pub mod record;
pub mod regular;
pub mod release;
pub mod row;
#[cfg(test)]
mod sample;
mod scale;
pub mod seal;
pub mod select;
pub mod speed;
pub mod suite;
pub mod text;
pub mod topology;
pub mod units;
pub mod version;

pub use clock::At;
pub use condition::Condition;
pub use error::InputError;
pub use file::Catalogue;
pub use filter::Filter;
pub use placement::Placement;
pub use topology::Topology;

/// True for a value that files leave out, because it is the default.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
