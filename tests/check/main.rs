//! The end-to-end tests of `make check`, a module each, one test at a time: they measure. `tests/parts.toml` names the parts.

#[path = "../common/mod.rs"]
mod common;

mod account;
mod agent_ssh;
mod bad_products;
mod ci;
mod conformance;
mod duet;
mod emulated;
mod hosts;
mod install;
mod install_newest;
mod keyvalue;
mod killed;
mod kubernetes;
mod load;
mod machines;
mod newcomer;
mod other_origin;
mod packages;
mod parts;
mod protocols;
mod proxy_protocol;
mod published_suites;
mod quick;
mod series;
mod served;
mod spread_stores;
mod telemetry;
mod terraform;
mod topologies;
