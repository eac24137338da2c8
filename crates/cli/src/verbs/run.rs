//! `weir run`: runs a suite. Called by `main`.

pub mod available;
pub mod budget;
mod document;
mod dry_run;
pub mod prepare;
mod progress;
pub mod remote;
pub mod resolve;
mod versions;

use std::collections::BTreeSet;
use std::path::PathBuf;

use available::Availability;
use document::Repeated;
use prepare::Conditions;
use progress::{RunProgress, Show};
use resolve::{ResolvedSuite, SuiteRequest};
use weir_host::placement::allowed_cpus;
use weir_lab::hosts::PartHost;
use weir_lab::journal::JournalError;
use weir_lab::run::{Outcome, Run, Setup, TOPOLOGY};
use weir_model::Placement;
use weir_model::load::DriverChoice;
use weir_model::record::{Finding, Role, Severity, Skipped};
use weir_model::text::wrapped;
use weir_model::units::CpuList;
use weir_product::catalogue::Catalogue;

use crate::agree;
use crate::args::{driver_values, parse_cpus, stop_on_signal};
use crate::ask;
use crate::exit::{Exit, Failure, VerbResult, wrong_value};
use crate::library::catalogue;
use crate::progress::minutes;
use crate::run_metrics::RunMetrics;
use crate::telemetry::{Telemetry, TelemetryArgs};
use crate::verbs::products::Order;
use crate::verbs::topology::{self, TopologyArgs};

/// Flags of `weir run`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/run.txt"))]
pub struct Args {
    #[command(flatten)]
    request: SuiteRequest,
    /// The run's folder [default: runs/<time>-<suite>].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Continue the run in this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["suite", "products", "profile", "only", "blocks", "out", "seed", "origin", "cpus", "topology", "image", "namespace", "context", "driver", "scale", "objective", "budget", "strict", "as_published"])]
    resume: Option<PathBuf>,
    /// With --resume: run trials that failed again, too.
    #[arg(long, requires = "resume")]
    retry_errors: bool,
    /// CPUs of a role, such as client=0, proxy=2-3 or origin=1. May be repeated [default: disjoint where possible].
    #[arg(long, value_name = "ROLE=LIST", value_parser = parse_role_cpus)]
    cpus: Vec<(Role, Vec<u32>)>,
    #[command(flatten)]
    topology: TopologyArgs,
    /// I/O driver of client and origin.
    #[arg(long, default_value = "auto", value_parser = driver_values())]
    driver: DriverChoice,
    /// A folder whose products/ and suites/ extend or replace the built-in ones. May be repeated.
    #[arg(long, value_name = "FOLDER")]
    library: Vec<PathBuf>,
    /// Do not ask: install what is missing, packages of the system too, run what a --library names, and measure on a busy machine.
    #[arg(long, short = 'y')]
    yes: bool,
    /// List the trials in order with the time they take, and start nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print every table and finding at the end, not only the answer.
    #[arg(long)]
    full: bool,
    /// Print the summary as JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Print a line for each trial.
    #[arg(long, short = 'v', conflicts_with = "quiet")]
    verbose: bool,
    /// Show no progress.
    #[arg(long, short = 'q')]
    quiet: bool,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

/// Reads `proxy=2-3`.
pub fn parse_role_cpus(text: &str) -> Result<(Role, Vec<u32>), String> {
    let (role, list) =
        text.split_once('=').ok_or_else(|| wrong_value("it has no =", "ROLE=LIST, such as proxy=2-3"))?;
    let role = match role {
        "client" => Role::Client,
        "proxy" => Role::Proxy,
        "origin" => Role::Origin,
        other => return Err(wrong_value(format!("there is no role \"{other}\""), "client, proxy or origin")),
    };
    Ok((role, parse_cpus(list)?))
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let mut catalogue = catalogue(&args.library)?;
    let recorded = args.resume.as_ref().map(|folder| folder.join(TOPOLOGY)).filter(|file| file.is_file());
    let topology = match &recorded {
        Some(file) => args.topology.read_again(file)?,
        None => args.topology.read()?,
    };
    let placement = placement(&args.cpus);
    let resolve = |catalogue: &Catalogue| match &args.resume {
        Some(folder) => ResolvedSuite::recorded(folder, catalogue),
        None => {
            let cores = topology::has_cpus_of_this_machine(&topology).then_some(placement.proxy.len());
            ResolvedSuite::resolve(&args.request, cores, catalogue, &mut Availability::new())
        }
    };
    let mut resolved = resolve(&catalogue)?;
    topology.carries(&resolved.suite).map_err(Failure::input)?;
    args.topology.check_parts(&topology, recorded.as_deref(), catalogue.products(), &resolved.products)?;
    if args.dry_run {
        agree::say_unagreed(&catalogue, resolved.products.keys());
        let repeated = if args.request.as_published { Repeated::new(&resolved, &topology, &placement)? } else { None };
        return dry_run::show(&resolved, repeated.as_ref(), args.resume.as_deref(), args.json);
    }
    if agree::ensure(&mut catalogue, resolved.products.keys(), args.yes.into())? {
        resolved = resolve(&catalogue)?;
    }
    let folder =
        args.resume.clone().or_else(|| args.out.clone()).unwrap_or_else(|| default_folder(&resolved.suite.name));
    let order = Order { libraries: &args.library, demand: resolved.demand(), consent: args.yes.into() };
    let conditions = Conditions {
        topology: &topology,
        weir: args.topology.binary(&topology)?,
        folder: &folder,
        placement,
        driver: args.driver,
        order,
    };
    let setup =
        conditions.setup(resolved, |resolved, reached, hosts| prepare::install(resolved, order, reached, hosts))?;
    let suite = setup.suite.clone();
    if !args.quiet && args.resume.is_none() {
        let expected = setup.suite.takes(&setup.skipped, &resolve::overheads(&setup.products));
        remark!("{}: {}, about {}", setup.suite.name, setup.suite.title, minutes(expected));
        setup.scaled.iter().for_each(|line| remark!("  {line}"));
        Skipped::sentences(&setup.skipped).iter().for_each(|line| remark!("  {line}"));
        let versions = versions::notes(&setup.suite, &setup.products, &setup.installed);
        versions.iter().for_each(|line| remark!("  {line}"));
        print_machine(&setup);
    }
    if let Some(others) = busy_with(&setup.doctor) {
        remark!("this machine is busy now ({others}): trials beside other processes are suspect");
        if !args.yes && ask::can_be_asked() && !ask::asked("Measure all the same?")? {
            return Err(Failure::missing("nothing was measured: wait until `weir doctor` finds the machine quiet"));
        }
    }
    let telemetry = Telemetry::open(&args.telemetry)?;
    let stop = stop_on_signal()?;
    let run = match &args.resume {
        Some(folder) => Run::resume(folder, setup, args.retry_errors),
        None => Run::create(&folder, setup),
    }
    .map_err(|error| match error {
        JournalError::Changed { .. } | JournalError::Exists(_) => Failure::input(error),
        _ => Failure::missing(error),
    })?;
    for aside in run.set_aside() {
        remark!("{} is measured again: {}", aside.folder, aside.why);
    }
    if args.resume.is_some() && run.complete() {
        remark!("all {} trials of this run are finished; making its report again", run.planned());
    }
    let folder = run.folder().to_owned();
    let outcome = {
        let show = match (args.quiet, args.verbose) {
            (true, _) => Show::Nothing,
            (false, true) => Show::Trials,
            (false, false) => Show::Status,
        };
        let mut progress = RunMetrics::new(telemetry, RunProgress::new(show, &suite));
        let outcome = run.execute(&stop, &mut progress);
        progress.into_telemetry().map_or(Ok(()), Telemetry::finish)?;
        outcome
    };
    let outcome =
        outcome.map_err(|error| Failure::missing(format!("{error}\n  finished trials are in {}", folder.display())))?;
    conclude(args, &outcome)
}

/// Where a run goes whose user named no folder.
pub fn default_folder(suite: &str) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    PathBuf::from("runs").join(format!("{now}-{suite}"))
}

/// The CPUs of the roles, where the user named some of them.
pub fn placement(named: &[(Role, Vec<u32>)]) -> Placement {
    let mut placement = Placement::automatic(&allowed_cpus());
    named.iter().for_each(|(role, cpus)| placement.set(*role, cpus.clone()));
    placement
}

/// Prints where the roles run and what the doctor found, before the first trial.
pub fn print_machine(setup: &Setup) {
    let p = &setup.placement;
    remark!(
        "CPUs: client {}, proxy {}, origin {}",
        CpuList::text(&p.client),
        CpuList::text(&p.proxy),
        CpuList::text(&p.origin)
    );
    for (part, PartHost { host, .. }) in &setup.hosts.parts {
        let cpus = CpuList::text(&setup.hosts.cpus(Role::Proxy, host, p));
        remark!("  part {part} on {}: {cpus}", host.facts().name);
    }
    for role in p.sharing_with_proxy() {
        remark!("  the {} shares CPUs with the proxy, so every number includes both", role.as_str());
    }
    if !setup.doctor.is_empty() {
        let names: BTreeSet<&str> = setup.doctor.iter().map(|f| f.check.trim_start_matches("doctor-")).collect();
        let names: Vec<&str> = names.into_iter().collect();
        remark!("{}", wrapped(&format!("doctor: {} (`weir doctor` explains)", names.join(", ")), 80, 2));
    }
}

/// The processes that use the machine now, and how much of it, as the doctor saw them.
fn busy_with(doctor: &[Finding]) -> Option<&str> {
    let is_busy = |one: &&Finding| one.check == "doctor-other-processes" && one.severity >= Severity::Warning;
    doctor.iter().find(is_busy)?.message.split(". ").next()
}

/// The report, the table, and how it ended.
fn conclude(args: &Args, outcome: &Outcome) -> VerbResult {
    // A run that is stopped before its first trial ends has no report.
    let mut shown = Exit::Ok;
    if outcome.finished > 0 {
        let run = weir_report::load_run(&outcome.folder).map_err(Failure::missing)?;
        let summary = weir_report::summary(&run);
        let made = super::report::make(&run, &summary)?;
        shown = super::report::show(&summary, &made, args.full, args.json)?;
    }
    if outcome.stopped {
        remark!(
            "stopped after {} of {} trials; continue with: weir run --resume {}",
            outcome.finished,
            outcome.planned,
            outcome.folder.display()
        );
        return Ok(Exit::Interrupted);
    }
    if outcome.errors > 0 {
        remark!("{} of {} trials failed; the report says why", outcome.errors, outcome.planned);
        return Ok(Exit::Failed);
    }
    Ok(shown)
}
