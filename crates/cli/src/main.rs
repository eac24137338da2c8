//! The program `weir`: it dispatches to one file per verb in [`verbs`] and knows nothing of the work itself. Users call
//! it, and the lab starts it for the roles of a trial.

// Elsewhere nobody needs all that the verbs share.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[macro_use(output, remark)]
extern crate weir_load_cli;

mod args;
mod verbs;

// What only the verbs that measure need.
#[cfg(target_os = "linux")]
mod agree;
#[cfg(target_os = "linux")]
mod ask;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod run_metrics;

use weir_load_cli::{exit, out};
#[cfg(target_os = "linux")]
use weir_load_cli::{progress, telemetry};

fn main() -> std::process::ExitCode {
    args::full_files_are_errors();
    let cli = args::Cli::read();
    match cli.verb {
        args::Verb::Measuring(verb) => verb.main(),
        args::Verb::Report(args) => verbs::report::main(&args),
        args::Verb::Site(args) => verbs::site::main(&args),
        args::Verb::Compare(args) => verbs::compare::main(&args),
        args::Verb::History(args) => verbs::history::main(&args),
        args::Verb::Help(args) => verbs::help::main(&args),
        args::Verb::Completions(args) => verbs::help::completions(&args),
        args::Verb::Man(args) => verbs::help::man(&args),
    }
    .unwrap_or_else(|failure| failure.report())
    .into()
}
