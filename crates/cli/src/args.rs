//! Flags that several verbs share, and the table of verbs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use weir_model::load::DriverChoice;

use crate::verbs;

/// Benchmarks proxies, API gateways and load balancers, and proves that its numbers are true.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  weir run quick                  measure six products, write a report
  weir run quick --scale smoke    in seconds: does everything work here?
  weir load http://127.0.0.1:8080/ -c 64 -d 10s
  weir doctor                     what here would spoil a measurement

Exit status:
  0    all went well
  1    done, and something in it failed
  2    bad input; nothing was started
  3    something is missing: a product, a permission, room on the disk
  130  interrupted; what was measured is kept"
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
    /// Carry out a suite: measure products, audit the numbers, write the report
    Run(Box<verbs::run::Args>),
    /// Make load only, against any HTTP server (instead of wrk, wrk2 and hey)
    Load(Box<verbs::load::Args>),
    /// Serve only: answers of any size and delay, and counts of what came
    Origin(verbs::origin::Args),
    /// List, show, install and find products
    Products(verbs::products::Args),
    /// List and show suites
    Suites(verbs::suites::Args),
    /// Say what of this machine would spoil a measurement, and what mends it
    Doctor(verbs::doctor::Args),
    /// Make the report of a run again, from its files alone
    Report(verbs::report::Args),
    /// Say what changed between two runs, by how much, and how sure that is
    Compare(verbs::compare::Args),
    /// Long help of a verb, or of a topic: weir help load tls
    Help(verbs::help::Args),
    /// Print what a shell needs to complete verbs and flags
    Completions(verbs::completions::Args),
    /// Print or write man pages
    Man(verbs::man::Args),
    /// The client's process of a trial
    #[command(hide = true)]
    Client(verbs::client::Args),
    /// The supervisor's process of a product
    #[command(hide = true)]
    Supervise,
}

/// I/O drivers by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DriverArg {
    /// io_uring where the kernel has what is needed, else epoll
    #[default]
    Auto,
    /// io_uring or fail
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
        Some(cpu) => Err(format!(
            "there is no CPU {cpu} here that weir may use; there are {}",
            weir_model::units::CpuList::text(&allowed)
        )),
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
