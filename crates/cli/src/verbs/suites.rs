//! `weir suites`: lists and shows suites. Called by `main`.

mod describe_load;
mod list;
mod matrix;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::run::budget;
use crate::exit::VerbResult;
use crate::library::catalogue;
use crate::select::Select;

/// Flags of `weir suites`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir suites list
  weir suites show monolake
  weir suites show my-suite.toml --json")]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// A folder whose suites/ and products/ extend or replace the built-in ones.
    #[arg(long, value_name = "FOLDER", global = true)]
    library: Vec<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List all suites with the trials and time of --scale fit
    #[command(after_help = "Examples:\n  weir suites list\n  weir suites list --json")]
    List,
    /// Show what a suite measures, how long that takes, and what cannot run here
    #[command(after_help = "\
Examples:
  weir suites show quick
  A part of it, and how long that takes:
    weir suites show monolake --profile tuned --only 'workload=https-*'
  How it is shortened to ten minutes:
    weir suites show loggly --budget 10m
  weir suites show my-suite.toml --json")]
    Show {
        /// A suite's name, or the path of a .toml file
        suite: String,
        #[command(flatten)]
        select: Select,
        /// Budget for --scale fit [default: 20m]
        #[arg(long, value_name = "TIME", value_parser = budget::parse)]
        budget: Option<Duration>,
    },
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let catalogue = catalogue(&args.library)?;
    match &args.what {
        What::List => list::list(&catalogue, args.json),
        What::Show { suite, select, budget } => show::show(&catalogue, suite, select, *budget, args.json),
    }
}
