//! `weir doctor`: checks this machine for what would distort a measurement, and prints the commands that fix it. Called
//! by `main`; `verbs::run` records its findings with each run.

use std::path::PathBuf;

use console::style;
use weir_vitals::doctor::{Check, Status};

use crate::exit::{Exit, Failure, VerbResult};
use crate::out;

/// Flags of `weir doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/doctor.txt"))]
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
        let found = format!("there is no folder {}", args.runs.display());
        return Err(Failure::wrong("--runs", found, "the folder that runs will be written to"));
    }
    super::topology::end_left_behind();
    let checks = examine(&args.runs);
    if args.json {
        out::json(&checks)?;
    } else {
        let count = |status| checks.iter().filter(|c| c.status == status).count();
        let [ok, warn, bad, unknown] = [Status::Ok, Status::Warn, Status::Bad, Status::Unknown].map(count);
        output!("{}", out::columns("lll", usize::MAX, &checks.iter().map(row).collect::<Vec<_>>()));
        output!("\n{ok} ok, {warn} warnings, {bad} bad, {unknown} unknown");
    }
    Ok(if checks.iter().any(|c| c.status == Status::Bad) { Exit::Failed } else { Exit::Ok })
}

/// The kernel's settings, whether the io_uring driver works here, and what becomes of products when weir is killed.
pub fn examine(runs: &std::path::Path) -> Vec<Check> {
    let mut checks = weir_vitals::doctor::examine(runs);
    checks.push(driver_check());
    checks.push(namespace_check());
    checks.push(account_check());
    checks
}

fn driver_check() -> Check {
    let why = "io_uring costs client and origin about a third less CPU per request than epoll".to_owned();
    let name = "io-driver".to_owned();
    match weir_net::probe(Some(weir_net::DriverKind::Uring)) {
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

/// Neither is wrong: the next start of weir does what the kernel does not.
fn namespace_check() -> Check {
    let seen = match weir_host::supervisor::pid_namespaces() {
        Ok(()) => "yes: the kernel ends a product with weir, however weir is killed".to_owned(),
        Err(why) => format!("no ({why}): what a kill of all of weir at once leaves, its next start ends"),
    };
    let why = "A product's workers that stay hold its port and take CPU time.".to_owned();
    Check { name: "pid-namespaces".to_owned(), status: Status::Ok, seen, why, mend: None }
}

/// Who is not root cannot give products less than they have themselves.
fn account_check() -> Check {
    let seen = weir_host::supervisor::account::described();
    let status = if seen.starts_with("root") { Status::Warn } else { Status::Ok };
    let why = "Products, some of which come from third parties, may do what their account may.".to_owned();
    Check { name: "product-account".to_owned(), status, seen, why, mend: None }
}

/// Its status, its name, and what was seen; of one that is not right also why that matters, and what would help.
fn row(check: &Check) -> Vec<String> {
    let status = match check.status {
        Status::Ok => style("ok").green(),
        Status::Warn => style("warn").yellow(),
        Status::Bad => style("bad").red(),
        Status::Unknown => style("unknown").dim(),
    };
    let mut seen = check.seen.clone();
    if check.status != Status::Ok {
        seen += &format!("\n{}", style(&check.why).dim());
        seen += &check.mend.as_ref().map(|mend| format!("\nto fix it: {mend}")).unwrap_or_default();
    }
    vec![status.to_string(), check.name.clone(), seen]
}

/// The problems at the start of a run, for `environment.json`.
pub fn findings(checks: &[Check]) -> Vec<weir_model::record::Finding> {
    checks.iter().filter(|c| matches!(c.status, Status::Warn | Status::Bad)).filter_map(Check::finding).collect()
}
