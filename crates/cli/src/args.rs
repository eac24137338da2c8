//! The table of verbs, and the flags that several verbs share. `main` parses the command line with it; `verbs::help`,
//! `verbs::man` and `verbs::completions` print from it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use weir_model::load::DriverChoice;

use crate::verbs;

/// Benchmarks proxies, API gateways and load balancers, and checks that its numbers are true.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  weir run quick                  measure six products and write a report
  weir run quick --scale smoke    check in seconds that everything works
  weir load http://127.0.0.1:8080/ -c 64 -d 10s
  weir doctor                     find what would spoil a measurement here

Exit status:
  0    success
  1    done, but something in it failed
  2    bad input; nothing was started
  3    something is missing: a product, a permission, disk space
  130  interrupted; finished measurements are kept"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

impl Cli {
    /// Reads the command line; ends weir where it asks for help or is wrong.
    pub fn read() -> Cli {
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
        Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a suite: measure products, audit the numbers, write the report
    Run(Box<verbs::run::Args>),
    /// Generate load against any HTTP server (instead of wrk, wrk2 and hey)
    Load(Box<verbs::load::Args>),
    /// Run only the origin: a server with answers of any size and delay, and counters
    Origin(verbs::origin::Args),
    /// List, show, install and test products
    Products(verbs::products::Args),
    /// List and show suites
    Suites(verbs::suites::Args),
    /// Check this machine for what would spoil a measurement, and say how to fix it
    Doctor(verbs::doctor::Args),
    /// Make the report of a run again from its files
    Report(verbs::report::Args),
    /// Compare two runs: what changed, by how much, and how sure that is
    Compare(verbs::compare::Args),
    /// Print the help of a verb, or of a topic: weir help load tls
    Help(verbs::help::Args),
    /// Print a completion script for a shell
    Completions(verbs::completions::Args),
    /// Print or write man pages
    Man(verbs::man::Args),
    /// The client process of a trial
    #[command(hide = true)]
    Client(verbs::client::Args),
    /// The supervisor process of a product
    #[command(hide = true)]
    Supervise,
}

/// I/O drivers by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DriverArg {
    /// io_uring where the kernel supports it, else epoll
    #[default]
    Auto,
    /// io_uring, or fail
    #[value(name = "io_uring", alias = "uring")]
    Uring,
    /// epoll
    Epoll,
}

impl From<DriverArg> for DriverChoice {
    fn from(arg: DriverArg) -> DriverChoice {
        match arg {
            DriverArg::Auto => DriverChoice::Auto,
            DriverArg::Uring => DriverChoice::Uring,
            DriverArg::Epoll => DriverChoice::Epoll,
        }
    }
}

/// CPUs as one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

/// Reads `0-3,8` and checks that this process may use them.
pub fn parse_cpus(text: &str) -> Result<CpuList, String> {
    let cpus: weir_model::units::CpuList = text.parse().map_err(|e| format!("{e}"))?;
    let allowed = weir_host::placement::allowed_cpus();
    let cpus = cpus.into_vec();
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => {
            Err(format!("weir may not use CPU {cpu}; it may use {}", weir_model::units::CpuList::text(&allowed)))
        }
        None => Ok(CpuList(cpus)),
    }
}

/// Sets `flag` at the first Ctrl-C or SIGTERM; a second one ends weir at once (supervisors and roles then clean up).
pub fn stop_on_signal(flag: &Arc<AtomicBool>) -> std::io::Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(())
}
