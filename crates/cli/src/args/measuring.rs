//! The verbs that measure, and the flags that only they share: they need Linux. `args` has them in its table, and `main` calls them.

use std::path::PathBuf;

use clap::Subcommand;
use signal_hook::consts::SIGXFSZ;
use weir_load_cli::{load, origin};
use weir_model::Filter;
use weir_model::filter::FilterKey;
use weir_product::catalogue::Catalogue;

pub use weir_load_cli::process::{parse_cpus, stop_on_signal};
pub use weir_load_cli::values::{driver_values, parse_time};

use super::parse_filter;
use crate::exit::{Failure, VerbResult};
use crate::verbs;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Measuring {
    /// Run a suite: measure products, audit the numbers, write the report
    Run(Box<verbs::run::Args>),
    /// Generate load against any HTTP or key-value server (instead of wrk and hey)
    Load(Box<load::Args>),
    /// Run only the origin: a server with responses of any size and delay, and counters
    Origin(origin::Args),
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
    pub fn main(self) -> VerbResult {
        match self {
            Measuring::Run(args) => verbs::run::main(&args),
            Measuring::Load(args) => load::main(*args),
            Measuring::Origin(args) => origin::main(&args),
            Measuring::Products(args) => verbs::products::main(&args),
            Measuring::Suites(args) => verbs::suites::main(&args),
            Measuring::Doctor(args) => verbs::doctor::main(&args),
            Measuring::Hosts(args) => verbs::hosts::main(&args),
            Measuring::Duet(args) => verbs::duet::main(&args),
            Measuring::Agent => verbs::agent::main(),
            Measuring::Client(args) => verbs::client::main(&args),
            Measuring::Requester => verbs::client::requester(),
            Measuring::Supervise => verbs::client::supervise(),
            Measuring::Pod(args) => verbs::pod::main(&args),
        }
    }
}

/// A file that becomes larger than the user allows (`ulimit -f`) is from now on an error of writing with a message, and not the end of
/// weir.
pub fn full_files_are_errors() {
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
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
