//! One file per verb. Each reads its flags, calls the crate that does the work, and prints the result. `main` calls
//! them.

pub mod agent;
pub mod client;
pub mod compare;
pub mod doctor;
pub mod duet;
pub mod help;
pub mod history;
pub mod hosts;
pub mod load;
pub mod origin;
pub mod pod;
pub mod products;
pub mod report;
pub mod run;
pub mod site;
pub mod suites;
pub mod topology;
