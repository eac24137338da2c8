//! One file per verb. Each reads its flags, calls the crate that does the work, and prints the result. `main` calls
//! them.

pub mod client;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod help;
pub mod load;
pub mod man;
pub mod origin;
pub mod products;
pub mod report;
pub mod run;
pub mod suites;
pub mod supervise;

/// Prints a value as indented JSON.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), crate::exit::Failure> {
    let text = serde_json::to_string_pretty(value).map_err(crate::exit::Failure::missing)?;
    output!("{text}");
    Ok(())
}
