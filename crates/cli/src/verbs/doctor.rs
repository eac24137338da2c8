//! `weir doctor`: checks this machine for what would distort a measurement, and prints the commands that fix it. Called
//! by `main`; `verbs::run` records its findings with each run.

use std::path::PathBuf;

use console::style;
use weir_vitals::doctor::{Check, Status};

use crate::exit::{Exit, Failure, VerbResult};

/// Flags of `weir doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir doctor
  weir doctor --json | jq '.[] | select(.status != \"ok\")'

Exit status 1 when something is bad, so that measurements here would be worth
little; 0 otherwise, even with warnings.")]
pub struct Args {
    /// The folder that runs will be written to.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    runs: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    if !args.runs.is_dir() {
        return Err(Failure::input(format!(
            "--runs: there is no folder {}\n  expected: the folder that runs will be written to",
            args.runs.display()
        )));
    }
    let checks = examine(&args.runs);
    if args.json {
        super::print_json(&checks)?;
    } else {
        for check in &checks {
            print(check)?;
        }
        let count = |status| checks.iter().filter(|c| c.status == status).count();
        output!(
            "\n{} ok, {} warnings, {} bad, {} unknown",
            count(Status::Ok),
            count(Status::Warn),
            count(Status::Bad),
            count(Status::Unknown)
        );
    }
    Ok(if checks.iter().any(|c| c.status == Status::Bad) { Exit::Failed } else { Exit::Ok })
}

/// The kernel's settings, and whether the io_uring driver works here.
pub fn examine(runs: &std::path::Path) -> Vec<Check> {
    let mut checks = weir_vitals::doctor::examine(runs);
    checks.push(driver_check());
    checks
}

fn driver_check() -> Check {
    let why = "io_uring costs client and origin about a third less CPU per request than epoll".to_owned();
    let name = "io-driver".to_owned();
    match weir_net::probe(weir_net::DriverPreference::Uring) {
        Ok(_) => {
            Check { name, status: Status::Ok, seen: "io_uring with everything that weir needs".into(), why, mend: None }
        }
        Err(error) => Check {
            name,
            status: Status::Warn,
            seen: format!("epoll: {error}"),
            why,
            mend: Some("sysctl -w kernel.io_uring_disabled=0, or a kernel of version 6.0 or later".into()),
        },
    }
}

fn print(check: &Check) -> Result<(), Failure> {
    let mark = match check.status {
        Status::Ok => style("ok     ").green(),
        Status::Warn => style("warn   ").yellow(),
        Status::Bad => style("bad    ").red(),
        Status::Unknown => style("unknown").dim(),
    };
    output!("{mark} {:<22} {}", check.name, check.seen);
    if check.status != Status::Ok {
        output!("{:31}{}", "", style(&check.why).dim());
        if let Some(mend) = &check.mend {
            output!("{:31}to fix it: {mend}", "");
        }
    }
    Ok(())
}

/// The problems at the start of a run, for `environment.json`.
pub fn findings(checks: &[Check]) -> Vec<weir_model::record::Finding> {
    checks.iter().filter(|c| matches!(c.status, Status::Warn | Status::Bad)).filter_map(Check::finding).collect()
}
