//! The verbs that measure, and the flags that only they share: they need Linux. `args` has them in its table, and `main` calls them.

use std::ops::RangeBounds;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use weir_host::stop::Stop;
use weir_model::Filter;
use weir_model::filter::FilterKey;
use weir_model::load::DriverChoice;
use weir_model::units::{CpuList, HumanDuration};
use weir_product::catalogue::Catalogue;

use super::parse_filter;
use crate::exit::{Failure, VerbResult, wrong_value};
use crate::verbs;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Measuring {
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
    /// Compare two products in turns of milliseconds: finds one per cent
    Duet(Box<verbs::duet::Args>),
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

impl Measuring {
    /// Runs it.
    pub fn main(&self) -> VerbResult {
        match self {
            Measuring::Run(args) => verbs::run::main(args),
            Measuring::Load(args) => verbs::load::main(args),
            Measuring::Origin(args) => verbs::origin::main(args),
            Measuring::Products(args) => verbs::products::main(args),
            Measuring::Suites(args) => verbs::suites::main(args),
            Measuring::Doctor(args) => verbs::doctor::main(args),
            Measuring::Hosts(args) => verbs::hosts::main(args),
            Measuring::Duet(args) => verbs::duet::main(args),
            Measuring::Agent => verbs::agent::main(),
            Measuring::Client(args) => verbs::client::main(args),
            Measuring::Requester => verbs::client::requester(),
            Measuring::Supervise => verbs::client::supervise(),
            Measuring::Pod(args) => verbs::pod::main(args),
        }
    }
}

/// A file that becomes larger than the user allows (`ulimit -f`) is from now on an error of writing with a message, and not the end of
/// weir.
pub fn full_files_are_errors() {
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
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
    /// The folders.
    pub fn folders(&self) -> &[PathBuf] {
        &self.library
    }

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

/// Reads a length of time from a range. `wanted` says which.
pub fn parse_time(
    range: impl RangeBounds<Duration> + Clone,
    wanted: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| match text.parse() {
        Ok(HumanDuration(time)) if range.contains(&time) => Ok(time),
        Ok(_) => Err(wrong_value(format!("{text} is no such length"), wanted)),
        Err(error) => Err(error.to_string()),
    }
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
