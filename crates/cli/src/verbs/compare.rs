//! `weir compare`: compares two runs and prints what changed. Called by `main`.

use std::path::PathBuf;

use weir_compare::{ComparedRun, Comparison, FailIf, Options, Selection, compare, markdown, text};
use weir_model::{Filter, InputError};

use crate::exit::{Exit, Failure, VerbResult};

/// Flags of `weir compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  What changed from the first to the second:
    weir compare runs/20260102-101500-quick runs/20260103-101500-quick
  In CI, fail when a product surely lost 5 % of its capacity or more:
    weir compare before after --fail-if 'capacity -5%' --only load=capacity
  Several conditions; any of them is an alarm:
    weir compare before after --fail-if 'p99 +10%' --fail-if 'cpu +5%'
  For a pull request:
    weir compare before after --markdown > comment.md

Exit status:
  0    no alarm
  1    an alarm: a --fail-if surely holds
  2    bad input: not a run, no case in common, a wrong flag
  3    no alarm, but a --fail-if could not be judged: too few blocks, a busy
       machine, failed trials, or a case that differs between the runs

Runs of 5 blocks or more can show changes that matter; runs of 1 block, none.
docs/compare.md explains the method.")]
pub struct Args {
    /// The folder of the run before.
    before: PathBuf,
    /// The folder of the run after.
    after: PathBuf,
    /// Exit with 1 when a number surely became this much worse, such as 'capacity -5%' or 'p99 +10%'.
    ///
    /// Numbers: capacity, rate, p50, p90, p99, p999, cpu, memory. An alarm is a change that is significant at --level, corrected for
    /// the number of claims, and estimated to be at least this large. May be repeated.
    #[arg(long, value_name = "CHANGE", value_delimiter = ',')]
    fail_if: Vec<String>,
    /// Only these products: name or name:profile.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    products: Option<Vec<String>>,
    /// Only these profiles, such as tuned.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    profile: Option<Vec<String>>,
    /// Only cases that match: product=, profile=, workload= or load=, with values separated by commas. May be repeated.
    #[arg(long, value_name = "KEY=VALUES")]
    only: Vec<String>,
    /// Confidence level of all claims together, between 0.5 and 0.9999.
    #[arg(long, value_name = "SHARE", default_value = "0.95")]
    level: String,
    /// Compare numbers as measured, instead of dividing them by those of the direct path in the same block.
    #[arg(long)]
    absolute: bool,
    /// Include trials during which other processes used more than 5 % of the machine's CPU.
    #[arg(long)]
    busy: bool,
    /// Print JSON on standard output.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print markdown for a pull request on standard output.
    #[arg(long)]
    markdown: bool,
}

/// Runs it.
///
/// # Errors
/// Bad input: a wrong flag, a folder that is no run, two runs with nothing in common.
pub fn main(args: &Args) -> VerbResult {
    // Flags first: they are wrong whatever is in the runs.
    let options = options(args).map_err(Failure::input)?;
    let before = ComparedRun::read(&args.before).map_err(Failure::input)?;
    let after = ComparedRun::read(&args.after).map_err(Failure::input)?;
    let comparison = compare(&before, &after, &options).map_err(Failure::input)?;
    show(args, &comparison)?;
    Ok(exit_status(&comparison))
}

fn options(args: &Args) -> Result<Options, InputError> {
    Ok(Options {
        level: level(&args.level)?,
        absolute: args.absolute,
        busy: args.busy,
        selection: Selection {
            products: args.products.clone(),
            profiles: args.profile.clone(),
            only: args.only.iter().map(|text| Filter::parse(text)).collect::<Result<_, _>>()?,
        },
        fail_if: args.fail_if.iter().map(|text| text.parse::<FailIf>()).collect::<Result<_, _>>()?,
    })
}

/// Reads `0.95` or `95%`.
fn level(text: &str) -> Result<f64, InputError> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    share.ok().filter(|share| (0.5..=0.9999).contains(share)).ok_or_else(|| InputError {
        source: "--level".to_owned(),
        line: None,
        key: None,
        found: format!("{text:?} is not a level"),
        wanted: "a share between 0.5 and 0.9999, such as 0.95 or 99%".to_owned(),
    })
}

fn show(args: &Args, comparison: &Comparison) -> Result<(), Failure> {
    if args.json {
        return super::print_json(comparison);
    }
    if args.markdown {
        output!("{}", markdown(comparison).trim_end());
        return Ok(());
    }
    let terminal = console::Term::stdout();
    let width = if terminal.is_term() { usize::from(terminal.size().1) } else { 120 };
    output!("{}", text(comparison, width, console::colors_enabled()).trim_end());
    Ok(())
}

/// The status, with the reasons on standard error where the output itself is for a program or a page.
fn exit_status(comparison: &Comparison) -> Exit {
    let (mut alarm, mut unjudged) = (false, false);
    for judged in &comparison.conditions {
        let condition = &judged.condition;
        for one in &judged.alarms {
            alarm = true;
            remark!(
                "{} alarm: {} (--fail-if '{condition}')",
                console::style("weir:").red().bold().for_stderr(),
                one.message
            );
        }
        unjudged |= !judged.unjudged.is_empty();
    }
    match (alarm, unjudged) {
        (true, _) => Exit::Failed,
        (false, true) => {
            remark!("weir: a --fail-if could not be judged; the output says why");
            Exit::Missing
        }
        (false, false) => Exit::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_shares_or_per_cent() {
        assert_eq!(level("0.95"), Ok(0.95));
        assert_eq!(level("99%"), Ok(0.99));
        for wrong in ["", "95", "1", "0.49", "nan", "-0.9", "many"] {
            let message = level(wrong).expect_err(wrong).to_string();
            assert!(message.starts_with("--level: ") && message.contains("such as 0.95"), "{message}");
        }
    }
}
