//! The table of verbs, and the flags that several verbs share. `main` parses the command line with it; `verbs::help` prints
//! from it.

// What measures needs Linux. Elsewhere the same verbs say so.
#[cfg_attr(not(target_os = "linux"), path = "args/elsewhere.rs")]
mod measuring;

#[cfg(all(test, target_os = "linux"))]
#[path = "args/elsewhere.rs"]
mod elsewhere;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use weir_model::Filter;

pub use self::measuring::*;
use crate::exit::{Exit, value_error};
use crate::verbs;
pub use weir_load_cli::values::{choice, parse_count};

/// Benchmarks proxies, API gateways and load balancers, and checks that its numbers are true.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = include_str!("../help/weir.txt")
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

impl Cli {
    /// Reads the command line; ends weir where it asks for help or is wrong. Where it is empty, that is bad input like any
    /// other, but what a newcomer needs is not all verbs.
    pub fn read() -> Cli {
        if std::env::args_os().len() < 2 {
            remark!("{}", include_str!("../help/start.txt").trim_end());
            std::process::exit(Exit::Input as i32);
        }
        let mut command = Cli::command();
        if std::env::args_os().any(|word| word == "-h") {
            // Headings would not leave the short help on one screen.
            command = command.mut_subcommand("load", |load| {
                let url = load.get_positionals().next().map(|url| url.get_id().clone());
                load.mut_args(|arg| {
                    if Some(arg.get_id()) == url.as_ref() { arg } else { arg.help_heading(None::<&'static str>) }
                })
            });
        }
        let matches = command.try_get_matches_from_mut(std::env::args_os());
        let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
        cli.unwrap_or_else(|error| for_users(error, &command).exit())
    }
}

/// The error without suggesting verbs that only weir calls.
fn for_users(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if let Some(ContextValue::Strings(verbs)) = error.get(ContextKind::SuggestedSubcommand) {
        let shown = |verb: &&String| command.find_subcommand(verb).is_some_and(|verb| !verb.is_hide_set());
        let verbs: Vec<String> = verbs.iter().filter(shown).cloned().collect();
        let left = if verbs.is_empty() { ContextValue::None } else { ContextValue::Strings(verbs) };
        error.insert(ContextKind::SuggestedSubcommand, left);
    }
    error
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Those that measure.
    #[command(flatten)]
    Measuring(Measuring),
    /// Make the report of a run again from its files
    Report(verbs::report::Args),
    /// Publish many runs as a static site: by question, product, suite and run
    Site(verbs::site::Args),
    /// Compare two runs: what changed, by how much, and how sure that is
    Compare(verbs::compare::Args),
    /// Follow cases over many runs: what changed, and from which run on
    History(Box<verbs::history::Args>),
    /// Print the help of a verb, or of a topic: weir help load tls
    Help(verbs::help::Args),
    /// Print a completion script for a shell
    Completions(verbs::help::CompletionArgs),
    /// Print or write man pages
    Man(verbs::help::ManArgs),
}

/// The flags that select a part of a recorded run.
#[derive(Debug, Clone, clap::Args)]
pub struct PartArgs {
    /// Only these products (name or name:profile) and the direct path.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    products: Vec<String>,
    /// Only these profiles (configurations), such as tuned.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    profile: Vec<String>,
    /// Only cases that match: product=, profile=, workload= or load=, with values separated by commas. May be repeated.
    #[arg(long, value_name = "KEY=VALUES", value_parser = parse_filter)]
    only: Vec<Filter>,
}

impl PartArgs {
    pub fn part(&self) -> weir_report::Part {
        let Self { products, profile, only } = self.clone();
        weir_report::Part { products, profiles: profile, only }
    }
}

/// Reads an `--only`.
pub fn parse_filter(text: &str) -> Result<Filter, String> {
    Filter::parse(text).map_err(value_error)
}
