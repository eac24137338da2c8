//! `weir suites`: lists and shows suites. Called by `main`.

mod list;
mod show;

use std::time::Duration;

use clap::Subcommand;

use super::run::budget;
use crate::args::{LibraryArgs, Select};
use crate::exit::VerbResult;

/// Flags of `weir suites`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/suites.txt"))]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    library: LibraryArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List all suites with the trials and time of --scale fit
    #[command(after_help = include_str!("../../help/suites-list.txt"))]
    List,
    /// Print a suite as a file, how long it takes at each scale, and what cannot run here
    #[command(after_help = include_str!("../../help/suites-show.txt"))]
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
    let (catalogue, json) = (args.library.catalogue()?, args.library.json);
    match &args.verb {
        Verb::List => list::list(&catalogue, json),
        Verb::Show { suite, select, budget } => show::show(&catalogue, suite, select, *budget, json),
    }
}
