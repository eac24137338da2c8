//! `weir duet`: compares two products, profiles or binaries under load in short turns. Called by `main`.

mod progress;
mod question;
mod side;
mod text;

use std::path::PathBuf;
use std::time::Duration;

use weir_compare::FailIf;
use weir_lab::duet::judged::{LEVEL, Verdict, metrics};
use weir_lab::duet::{Asked, DUET_SCHEMA, Duet, Ended, Outcome};
use weir_model::load::DriverChoice;
use weir_model::record::Role;
use weir_model::text::percent;
use weir_model::topology::Topology;
use weir_model::units::HumanDuration;

use crate::agree;
use crate::args::{driver_values, parse_count, stop_on_signal};
use crate::ask::Consent;
use crate::exit::{Exit, Failure, VerbResult, wrong_value};
use crate::library::catalogue;
use crate::out;
use crate::verbs::compare::{alarm, condition, judged};
use crate::verbs::products::{Demand, Order};
use crate::verbs::run::prepare::Conditions;
use crate::verbs::run::resolve::ResolvedSuite;
use crate::verbs::run::{default_folder, parse_role_cpus, placement, print_machine};
use crate::verbs::topology;
use progress::DuetProgress;
use question::Question;
use side::Side;

/// Flags of `weir duet`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/duet.txt"))]
pub struct Args {
    /// The first product: name, name:profile, name=/path/to/its/binary, or name:profile=/path.
    #[arg(value_name = "A", value_parser = Side::parse)]
    a: Side,
    /// The second, which is compared with the first.
    #[arg(value_name = "B", value_parser = Side::parse)]
    b: Side,
    /// What is asked of both: SUITE/WORKLOAD, or a workload of the suite quick.
    #[arg(long, value_name = "WORKLOAD", default_value = "tiny")]
    workload: String,
    /// capacity (as fast as responses come), or a rate that both can carry, such as 5000 or 20k/s.
    #[arg(long, value_name = "LOAD", default_value = "capacity", value_parser = question::parse_load)]
    load: question::LoadChoice,
    /// Connections of the load.
    #[arg(long, short = 'c', value_name = "N", default_value_t = 64, value_parser = parse_count(1..=100_000u32))]
    connections: u32,
    /// The smallest difference that matters: the duet ends when it is sure of one, or sure that there is none so large.
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = parse_find)]
    find: f64,
    /// Longest time.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::verbs::run::budget::parse)]
    budget: Duration,
    /// Measured length of a pair of slices, which have half of it each; rounded up to whole turns.
    #[arg(long, value_name = "TIME", default_value = question::SLICE, value_parser = question::parse_slice)]
    slice: Duration,
    /// How long one has load before it is the other's turn. Longer than a response takes.
    #[arg(long, value_name = "TIME", default_value = question::TURN, value_parser = question::parse_turn)]
    turn: Duration,
    /// Unmeasured load on each product after each of its starts, for those that need time to get fast.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: HumanDuration,
    /// Exit with 1 when a number of B is surely, and by estimate this much, worse than A's, such as 'cpu +3%' or 'capacity -5%'.
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = condition)]
    fail_if: Vec<FailIf>,
    /// Count slices, too, during which something else used the machine.
    #[arg(long)]
    busy: bool,
    /// The folder for its files [default: runs/<time>-duet].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// CPUs of a role, such as client=0, proxy=2-3 or origin=1. May be repeated [default: disjoint where possible].
    #[arg(long, value_name = "ROLE=LIST", value_parser = parse_role_cpus)]
    cpus: Vec<(Role, Vec<u32>)>,
    /// I/O driver of client and origin.
    #[arg(long, default_value = "auto", value_parser = driver_values())]
    driver: DriverChoice,
    /// A folder whose products/ and suites/ extend or replace the built-in ones. May be repeated.
    #[arg(long, value_name = "FOLDER")]
    library: Vec<PathBuf>,
    /// Seed of the order of slices [default: random, and recorded].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Do not ask: install what is missing, and run what a --library names.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Print the result as Markdown, for a pull request.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Show no progress.
    #[arg(long, short = 'q')]
    quiet: bool,
}

/// Reads `3%` as the ratio that it is above 1.
fn parse_find(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok());
    number.filter(|percent| (0.1..=100.0).contains(percent)).map(|percent| percent / 100.0).ok_or_else(|| {
        wrong_value(format!("{text:?} is no difference to look for"), "per cent between 0.1% and 100%, such as 3%")
    })
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let mut catalogue = catalogue(&args.library)?;
    let consent = Consent::from(args.yes);
    agree::ensure(&mut catalogue, [&args.a.product, &args.b.product], consent)?;
    let Question { suite, products } = Question::of(args, &catalogue)?;
    let load = &suite.loads[0];
    for one in &args.fail_if {
        if !metrics(load).contains(&one.metric) {
            let measured: Vec<&str> = metrics(load).iter().map(|metric| metric.compared_name()).collect();
            return Err(Failure::wrong("--fail-if", format!("this load does not measure {one}"), measured.join(", ")));
        }
    }
    let least = weir_lab::duet::pair_takes(load);
    if args.budget < least {
        let found = format!("a pair of slices takes about {:.1} s", least.as_secs_f64());
        return Err(Failure::wrong("--budget", found, "more time, or a shorter --slice"));
    }
    let folder = args.out.clone().unwrap_or_else(|| default_folder("duet"));
    let topology = Topology::local();
    let order = Order { libraries: &args.library, demand: Demand::All, consent };
    let conditions = Conditions {
        topology: &topology,
        weir: topology::own_binary()?,
        folder: &folder,
        placement: placement(&args.cpus),
        driver: args.driver,
        order,
    };
    let resolved = ResolvedSuite { suite, scaled: Vec::new(), skipped: Vec::new(), products, lenient: false };
    let setup = conditions.setup(resolved, |resolved, _, _| {
        let installed = side::installed([&args.a, &args.b], &resolved, consent)?;
        Ok((resolved, installed))
    })?;
    let asked = Asked {
        schema: DUET_SCHEMA,
        labels: [args.a.label(), args.b.label()],
        find: args.find,
        budget_s: args.budget.as_secs_f64(),
        turn_s: args.turn.as_secs_f64(),
        warmup_s: args.warmup.0.as_secs_f64(),
        busy: args.busy,
    };
    if !args.quiet {
        remark!("{}", text::question(&asked, &setup.suite));
        print_machine(&setup);
    }
    let stop = stop_on_signal()?;
    let duet = Duet::create(&folder, setup, asked).map_err(|error| match error {
        weir_lab::journal::JournalError::Exists(_) => Failure::input(error),
        _ => Failure::missing(error),
    })?;
    let outcome = {
        let mut progress = DuetProgress::new(args.quiet);
        duet.execute(&stop, &mut |event| progress.notify(event))
    };
    let outcome =
        outcome.map_err(|error| Failure::missing(format!("{error}\n  finished slices are in {}", folder.display())))?;
    match (args.json, args.markdown) {
        (true, _) => drop(out::json(&outcome)?),
        (_, true) => output!("{}", text::markdown(&outcome)),
        _ => output!("{}", text::result(&outcome)),
    }
    Ok(exit(&outcome, &args.fail_if))
}

/// How it ends, with the reasons on standard error.
fn exit(outcome: &Outcome, fail_if: &[FailIf]) -> Exit {
    if let Some(error) = &outcome.error {
        remark!("weir: {}\n  {}\n  to fix it: {}", error.message, error.evidence, error.remedy);
        return Exit::Failed;
    }
    let (mut alarms, mut unjudged) = (Vec::new(), false);
    for condition in fail_if {
        match outcome.changes.iter().find(|change| change.metric == condition.metric) {
            Some(change) if change.verdict == Verdict::Sure && condition.reached(change.ratio.value) => {
                alarms.push(alarm(&text::change(change), condition));
            }
            Some(change) => unjudged |= !change.ratio.high.is_finite(),
            None => unjudged = true,
        }
    }
    if alarms.is_empty() && outcome.ended == Some(Ended::Stopped) {
        return Exit::Interrupted;
    }
    let too_few = format!("too few slices counted for a claim at {}", percent(LEVEL));
    judged(&alarms, unjudged.then_some(&too_few))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_per_cent() {
        assert_eq!(parse_find("3%"), Ok(0.03));
        assert_eq!(parse_find("0.5 %"), Ok(0.005));
        for wrong in ["", "3", "0%", "-3%", "101%", "nan%", "many%"] {
            assert!(parse_find(wrong).expect_err(wrong).contains("such as 3%"), "{wrong}");
        }
    }
}
