//! `weir suites`: what can be run.

mod list;
mod load_words;
mod matrix;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::run::budget;
use crate::exit::Done;
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
    /// A folder whose suites/ and products/ are laid over those built in.
    #[arg(long, value_name = "FOLDER", global = true)]
    library: Vec<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// All of them: title, and trials and time of --scale fit
    #[command(after_help = "Examples:\n  weir suites list\n  weir suites list --json")]
    List,
    /// What one measures, how long that takes, and what of it this machine cannot
    #[command(after_help = "\
Examples:
  weir suites show quick
  What is left of it, and how long that takes:
    weir suites show monolake --profile tuned --only 'workload=https-*'
  How it would be shortened to ten minutes:
    weir suites show loggly --budget 10m
  weir suites show my-suite.toml --json")]
    Show {
        /// A suite's name, or the path of a .toml file
        suite: String,
        #[command(flatten)]
        select: Select,
        /// Time that --scale fit is made to fit into [default: 20m]
        #[arg(long, value_name = "TIME", value_parser = budget::parse)]
        budget: Option<Duration>,
    },
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    let catalogue = catalogue(&args.library)?;
    match &args.what {
        What::List => list::list(&catalogue, args.json),
        What::Show { suite, select, budget } => show::show(&catalogue, suite, select, *budget, args.json),
    }
}
