//! The program `peers`: runs load generators and origins in turn, and writes their cost beside weir's into
//! `RESULTS.md`. Developers run it; see `bench/README.md`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use weir_bench::peers::{compare, many, profile};

#[derive(Parser)]
#[command(about = "Compares what load generators and origins cost, weir's among them")]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    compare: compare::Compare,
}

#[derive(Subcommand)]
enum Verb {
    /// Opens very many connections, and measures what each costs
    Many(many::Args),
    /// Shows where the CPU time of clients and origins goes
    Profile(profile::Args),
    /// Writes RESULTS.md anew from RESULTS.csv and RESULTS.json
    Write {
        /// The file to write
        #[arg(long, default_value = "bench/RESULTS.md")]
        out: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    weir_bench::raise_descriptor_limit();
    match args.verb {
        None => compare::main(&args.compare),
        Some(Verb::Many(args)) => many::main(&args),
        Some(Verb::Profile(args)) => profile::main(&args),
        Some(Verb::Write { out }) => compare::write(&out),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn flags_are_consistent() {
        super::Args::command().debug_assert();
    }
}
