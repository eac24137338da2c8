//! The end-to-end tests of `make test`, a module each: texts, files, and a short part of everything that is real.
//!
//! No test here is skipped or tried again. What a machine may lack (root, Kubernetes, another compiler) is asked in the program `check`.

#[path = "../common/mod.rs"]
mod common;

mod agent;
mod architecture;
mod bad_input;
mod bad_products;
mod ci;
mod compare;
mod deploy;
mod document_details;
mod history;
mod install;
mod install_build;
mod killed;
mod load;
mod load_shown;
mod pictures;
mod prose;
mod published_suites;
mod quick;
mod sentences;
mod terraform;
mod tidy;
mod words;
