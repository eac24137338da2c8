//! The program `weir`: it dispatches to one file per verb in [`verbs`] and knows nothing of the work itself. Users call
//! it, and the lab starts it for the roles of a trial.

#[macro_use]
mod out;

mod agree;
mod args;
mod ask;
mod exit;
mod library;
mod progress;
mod telemetry;
mod verbs;

fn main() -> std::process::ExitCode {
    // A file that becomes larger than the user allows (`ulimit -f`) is then an error of writing with a message, and not the end of weir.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    let cli = args::Cli::read();
    match cli.verb {
        args::Verb::Run(args) => verbs::run::main(&args),
        args::Verb::Load(args) => verbs::load::main(&args),
        args::Verb::Origin(args) => verbs::origin::main(&args),
        args::Verb::Products(args) => verbs::products::main(&args),
        args::Verb::Suites(args) => verbs::suites::main(&args),
        args::Verb::Doctor(args) => verbs::doctor::main(&args),
        args::Verb::Hosts(args) => verbs::hosts::main(&args),
        args::Verb::Report(args) => verbs::report::main(&args),
        args::Verb::Site(args) => verbs::site::main(&args),
        args::Verb::Compare(args) => verbs::compare::main(&args),
        args::Verb::History(args) => verbs::history::main(&args),
        args::Verb::Duet(args) => verbs::duet::main(&args),
        args::Verb::Help(args) => verbs::help::main(&args),
        args::Verb::Completions(args) => verbs::help::completions(&args),
        args::Verb::Man(args) => verbs::help::man(&args),
        args::Verb::Agent => verbs::agent::main(),
        args::Verb::Client(args) => verbs::client::main(&args),
        args::Verb::Requester => verbs::client::requester(),
        args::Verb::Supervise => verbs::client::supervise(),
        args::Verb::Pod(args) => verbs::pod::main(&args),
    }
    .unwrap_or_else(|failure| failure.report())
    .into()
}
