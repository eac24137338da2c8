//! The table of verbs, and the flags that several verbs share. `main` parses the command line with it; `verbs::help` prints
//! from it.

// What measures needs Linux. Elsewhere the same verbs say so.
#[cfg_attr(not(target_os = "linux"), path = "args/elsewhere.rs")]
mod measuring;

#[cfg(all(test, target_os = "linux"))]
#[path = "args/elsewhere.rs"]
mod elsewhere;

use std::ops::RangeInclusive;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use weir_model::Filter;
use weir_model::units::{Count, UnitError};

pub use self::measuring::*;
use crate::exit::{Exit, value_error, wrong_value};
use crate::verbs;

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

/// Reads one of a few values: the name of each on the command line, what the help says of it, and the value.
pub fn choice<T: Clone + Send + Sync + 'static>(
    all: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = all.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|given| {
        let chosen = all.iter().find(|(name, ..)| *name == given);
        chosen.map(|(.., value)| value.clone()).ok_or("not one of the values")
    })
}

/// Reads a whole number from a range, such as 1000, 20k or 1.5M.
pub fn parse_count<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: TryFrom<u64> + Into<u64> + Copy,
{
    let (least, most): (u64, u64) = ((*range.start()).into(), (*range.end()).into());
    move |text| {
        let wanted = match most {
            ..10_000 => format!("a whole number from {least} to {most}"),
            10_000..=1_000_000 => format!("a whole number from {least} to {most}, such as 1000 or 2k"),
            _ => format!("a whole number of at least {least}, such as 1000, 20k or 1.5M"),
        };
        let Count(count) = text.parse().map_err(|error: UnitError| wrong_value(error.found, &wanted))?;
        let found = if count < least { "is too few" } else { "is too many" };
        let fits = T::try_from(count).ok().filter(|_| (least..=most).contains(&count));
        fits.ok_or_else(|| wrong_value(format!("{text:?} {found}"), &wanted))
    }
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
