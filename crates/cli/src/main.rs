//! The program `weir`: it dispatches to one file per verb in [`verbs`] and knows nothing of the work itself. Users call
//! it, and the lab starts it for the roles of a trial.
//!
//! The crates, from top to bottom; each uses only those below it (`docs/architecture.md`):
//!
//! - [`lab`](../weir_lab/index.html): plans, trials, blocks, the journal
//! - [`conformance`](../weir_conformance/index.html): tests of products over the wire
//! - [`compare`](../weir_compare/index.html): changes between two runs, or over many
//! - [`published`](../weir_published/index.html): figures of published documents next to ours
//! - [`report`](../weir_report/index.html): tables, charts and pages of a run
//! - [`audit`](../weir_audit/index.html): checks of a measurement
//! - [`install`](../weir_install/index.html): installing products
//! - [`product`](../weir_product/index.html): a product's configuration, start, readiness, end
//! - [`host`](../weir_host/index.html): processes and files of a host
//! - [`vitals`](../weir_vitals/index.html): CPU, memory and sockets as the kernel counts them
//! - [`load-cli`](../weir_load_cli/index.html): `weir load` and `weir origin`
//! - [`search`](../weir_search/index.html): the search for the highest rate
//! - [`load`](../weir_load/index.html): the load generator
//! - [`requests`](../weir_requests/index.html): readers of files with requests
//! - [`origin`](../weir_origin/index.html): the server behind the proxy
//! - [`net`](../weir_net/index.html): the I/O drivers
//! - [`wire`](../weir_wire/index.html): protocols as sans-IO state machines
//! - [`stats`](../weir_stats/index.html): intervals, ratios, ranks, change points
//! - [`model`](../weir_model/index.html): the types that all others share

// Comments of flags are their help, which a terminal shows as it is.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]
// Elsewhere nobody needs all that the verbs share.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[macro_use(output, remark)]
extern crate weir_load_cli;

mod args;
mod verbs;

// What only the verbs that measure need.
#[cfg(target_os = "linux")]
mod agree;
#[cfg(target_os = "linux")]
mod ask;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod run_metrics;

use weir_load_cli::{exit, out};
#[cfg(target_os = "linux")]
use weir_load_cli::{progress, telemetry};

fn main() -> std::process::ExitCode {
    args::full_files_are_errors();
    let cli = args::Cli::read();
    match cli.verb {
        args::Verb::Measuring(verb) => verb.main(),
        args::Verb::Report(args) => verbs::report::main(&args),
        args::Verb::Site(args) => verbs::site::main(&args),
        args::Verb::Compare(args) => verbs::compare::main(&args),
        args::Verb::History(args) => verbs::history::main(&args),
        args::Verb::Help(args) => verbs::help::main(&args),
        args::Verb::Completions(args) => verbs::help::completions(&args),
        args::Verb::Man(args) => verbs::help::man(&args),
    }
    .unwrap_or_else(|failure| failure.report())
    .into()
}
