//! `weir hosts`: looks at the hosts of a topology before a run, and removes what killed runs left there. Called by `main`.

mod check;
mod clean;
mod show;

use clap::Subcommand;

use super::topology::TopologyArgs;
use crate::exit::VerbResult;

/// Flags of `weir hosts`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/hosts.txt"))]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say of each host and of each pair what a run would meet there: CPUs, limits, clocks, products, round trip, bandwidth
    #[command(after_help = include_str!("../../help/hosts-check.txt"))]
    Check {
        #[command(flatten)]
        which: TopologyArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove what killed runs left, and the copies of weir on other hosts
    #[command(after_help = include_str!("../../help/hosts-clean.txt"))]
    Clean {
        #[command(flatten)]
        which: TopologyArgs,
    },
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    match &args.verb {
        Verb::Check { which, json } => check::main(which, *json),
        Verb::Clean { which } => clean::main(which),
    }
}
