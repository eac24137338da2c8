//! `weir doctor`: what of this machine would spoil a measurement, and the command that mends it.

use std::path::PathBuf;

use console::style;
use weir_vitals::doctor::{Check, Status};

use crate::exit::{Done, Exit, Failure};

/// Flags of `weir doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir doctor
  weir doctor --json | jq '.[] | select(.status != \"ok\")'

Exit status 1 when something is bad: a measurement here would not be worth
much. Warnings alone are 0.")]
pub struct Args {
    /// The folder whose disk the runs go to.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    runs: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    if !args.runs.is_dir() {
        return Err(Failure::input(format!(
            "--runs: there is no folder {}\n  would be right: the folder that runs will be written to",
            args.runs.display()
        )));
    }
    let checks = examine(&args.runs);
    if args.json {
        super::print_json(&checks)?;
    } else {
        for check in &checks {
            tell(check)?;
        }
        let count = |status| checks.iter().filter(|c| c.status == status).count();
        say!(
            "\n{} good, {} to know of, {} bad, {} unknown",
            count(Status::Ok),
            count(Status::Warn),
            count(Status::Bad),
            count(Status::Unknown)
        );
    }
    Ok(if checks.iter().any(|c| c.status == Status::Bad) { Exit::Failed } else { Exit::Ok })
}

/// What the kernel says, and what weir's own driver says when it really tries.
pub fn examine(runs: &std::path::Path) -> Vec<Check> {
    let mut checks = weir_vitals::doctor::examine(runs);
    checks.push(driver_check());
    checks
}

fn driver_check() -> Check {
    let why = "the io_uring driver costs client and origin about a third less CPU a request than epoll".to_owned();
    let name = "io-driver".to_owned();
    match weir_net::probe(weir_net::DriverPreference::Uring) {
        Ok(_) => {
            Check { name, status: Status::Ok, seen: "io_uring with everything weir needs".into(), why, mend: None }
        }
        Err(error) => Check {
            name,
            status: Status::Warn,
            seen: format!("epoll: {error}"),
            why,
            mend: Some("sysctl -w kernel.io_uring_disabled=0, or a kernel from 6.0 on".into()),
        },
    }
}

fn tell(check: &Check) -> Result<(), Failure> {
    let mark = match check.status {
        Status::Ok => style("ok     ").green(),
        Status::Warn => style("warn   ").yellow(),
        Status::Bad => style("bad    ").red(),
        Status::Unknown => style("unknown").dim(),
    };
    say!("{mark} {:<22} {}", check.name, check.seen);
    if check.status != Status::Ok {
        say!("{:31}{}", "", style(&check.why).dim());
        if let Some(mend) = &check.mend {
            say!("{:31}to mend it: {mend}", "");
        }
    }
    Ok(())
}

/// For `environment.json`: what was not good when the run began.
pub fn findings(checks: &[Check]) -> Vec<weir_model::record::Finding> {
    checks.iter().filter(|c| matches!(c.status, Status::Warn | Status::Bad)).filter_map(Check::finding).collect()
}
