//! One file per verb. Each reads its flags, calls the crate that does the work, and prints the result. `main` calls
//! them.

pub mod compare;
pub mod help;
pub mod history;
pub mod report;
pub mod site;

// Those that measure, and their parts.
#[cfg(target_os = "linux")]
pub mod agent;
#[cfg(target_os = "linux")]
pub mod client;
#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
pub mod duet;
#[cfg(target_os = "linux")]
pub mod hosts;
#[cfg(target_os = "linux")]
pub mod pod;
#[cfg(target_os = "linux")]
pub mod products;
#[cfg(target_os = "linux")]
pub mod run;
#[cfg(target_os = "linux")]
pub mod suites;
#[cfg(target_os = "linux")]
pub mod topology;
