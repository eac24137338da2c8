//! The table of verbs, and the flags that several verbs share. `main` parses the command line with it; `verbs::help` prints
//! from it.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use weir_host::stop::Stop;
use weir_model::Filter;
use weir_model::filter::FilterKey;
use weir_model::load::DriverChoice;
use weir_model::units::CpuList;
use weir_product::catalogue::Catalogue;

use crate::exit::{Exit, Failure, value_error, wrong_value};
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
    /// Run a suite: measure products, audit the numbers, write the report
    Run(Box<verbs::run::Args>),
    /// Generate load against any HTTP or key-value server (instead of wrk and hey)
    Load(Box<verbs::load::Args>),
    /// Run only the origin: a server with answers of any size and delay, and counters
    Origin(verbs::origin::Args),
    /// List, show, install and test products
    Products(verbs::products::Args),
    /// List and show suites
    Suites(verbs::suites::Args),
    /// Check this machine for what would spoil a measurement, and say how to fix it
    Doctor(verbs::doctor::Args),
    /// Check the hosts of a topology and what lies between them, and clean them up
    Hosts(verbs::hosts::Args),
    /// Make the report of a run again from its files
    Report(verbs::report::Args),
    /// Publish many runs as a static site: by question, product, suite and run
    Site(verbs::site::Args),
    /// Compare two runs: what changed, by how much, and how sure that is
    Compare(verbs::compare::Args),
    /// Follow cases over many runs: what changed, and from which run on
    History(Box<verbs::history::Args>),
    /// Compare two products in turns of milliseconds: finds one per cent
    Duet(Box<verbs::duet::Args>),
    /// Print the help of a verb, or of a topic: weir help load tls
    Help(verbs::help::Args),
    /// Print a completion script for a shell
    Completions(verbs::help::CompletionArgs),
    /// Print or write man pages
    Man(verbs::help::ManArgs),
    /// weir on another host, at the other end of a transport
    #[command(hide = true)]
    Agent,
    /// The client process of a trial
    #[command(hide = true)]
    Client(verbs::client::Args),
    /// Sends weir's own requests of a trial
    #[command(hide = true)]
    Requester,
    /// The supervisor process of a product
    #[command(hide = true)]
    Supervise,
    /// The first processes of a pod
    #[command(hide = true, subcommand)]
    Pod(verbs::pod::Args),
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

/// Reads the name of an I/O driver. The help lists the names.
pub fn driver_values() -> impl TypedValueParser<Value = DriverChoice> {
    PossibleValuesParser::new([
        PossibleValue::new("auto").help("io_uring where the kernel supports it, else epoll"),
        PossibleValue::new("io_uring").alias("uring").help("io_uring, or fail"),
        PossibleValue::new("epoll").help("epoll"),
    ])
    .try_map(|name| name.parse::<DriverChoice>())
}

/// Flags of `weir products` and `weir suites`, before or behind their verbs.
#[derive(Debug, clap::Args)]
pub struct LibraryArgs {
    /// A folder whose products/ and suites/ extend or replace the built-in ones.
    #[arg(long, value_name = "FOLDER", global = true)]
    library: Vec<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long, global = true)]
    pub json: bool,
}

impl LibraryArgs {
    /// The products and suites.
    ///
    /// # Errors
    /// What is wrong in a folder.
    pub fn catalogue(&self) -> Result<Catalogue, Failure> {
        crate::library::catalogue(&self.library)
    }

    /// The same for a verb that is about these products alone: the files of others may be wrong.
    ///
    /// # Errors
    /// What is wrong in a folder or in the files of these.
    pub fn catalogue_for(&self, products: &[String]) -> Result<Catalogue, Failure> {
        let catalogue = crate::library::with_broken(&self.library)?;
        catalogue.sound_are(products).map_err(Failure::input)?;
        Ok(catalogue)
    }
}

/// The flags that select a part of a suite.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Select {
    /// Only these products, in this order: name, name:profile, or all (every product that is or can be installed).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub products: Option<Vec<String>>,
    /// Profiles (configurations) to run every product under, such as stock,tuned.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub profile: Option<Vec<String>>,
    /// Only cases that match: product=, profile=, workload= (or payload=) or load=, with values separated by commas; * matches
    /// anything. May be repeated.
    #[arg(long, value_name = "KEY=VALUES", value_parser = parse_filter)]
    pub only: Vec<Filter>,
}

impl Select {
    /// Whether a load is asked for by name.
    pub fn names_loads(&self) -> bool {
        self.only.iter().any(|filter| filter.key == FilterKey::Load)
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

/// Reads `0-3,8` and checks that this process may use them.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, String> {
    let cpus = text.parse::<CpuList>().map_err(|e| wrong_value(e.found, &e.wanted))?.into_vec();
    let allowed = weir_host::placement::allowed_cpus();
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(wrong_value(format!("weir may not use CPU {cpu}"), &CpuList::text(&allowed))),
        None => Ok(cpus),
    }
}

/// Reads the name of a header in which names of requests may stand.
pub fn parse_header_name(text: &str) -> Result<String, String> {
    weir_model::load::name_header(text).map_err(|(found, wanted)| wrong_value(found, wanted))
}

/// Reads `name: value`.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(wrong_value(format!("\"{text}\" is not a header"), "'name: value'")),
    }
}

/// A request to stop that the first Ctrl-C, SIGTERM or SIGHUP makes; a second one ends weir at once (supervisors and roles then clean
/// up). A SIGHUP that weir was started to ignore, by `nohup`, stays ignored.
///
/// # Errors
/// When the system takes no handler.
pub fn stop_on_signal() -> Result<Stop, Failure> {
    let stop = Stop::new();
    let hangup = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.flag()).map_err(Failure::missing)?;
        signal_hook::flag::register(signal, stop.flag()).map_err(Failure::missing)?;
    }
    Ok(stop)
}

/// Whether the process ignores a signal, by the mask that the kernel shows.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
