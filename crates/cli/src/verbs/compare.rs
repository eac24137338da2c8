//! `weir compare`: compares two runs and prints what changed, or lays two results of load generators side by side. Called by
//! `main`.

use std::path::{Path, PathBuf};

use weir_compare::{ComparedRun, Comparison, FailIf, Options, compare, markdown, outside, text};
use weir_report::Part;

use crate::args::PartArgs;
use crate::exit::{Exit, Failure, VerbResult, value_error, wrong_value};
use crate::out;

/// Flags of `weir compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// The folder of the run before, or a file with one result of a load generator (see below).
    before: PathBuf,
    /// The folder of the run after, or such a file.
    after: PathBuf,
    /// Exit with 1 when a number surely became this much worse, such as 'capacity -5%' or 'p99 +10%'.
    ///
    /// Numbers: capacity, rate, p50, p90, p99, p999, cpu, memory. An alarm is a change that is significant at --level, corrected for
    /// the number of claims, and estimated to be at least this large. May be repeated.
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = condition)]
    fail_if: Vec<FailIf>,
    #[command(flatten)]
    part: PartArgs,
    /// Confidence level of all claims together, between 0.5 and 0.9999.
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = level)]
    level: f64,
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

/// The examples, and the files that can be read.
fn after_help() -> String {
    let files: String = outside::readable().map(|title| format!("  {title}\n")).collect();
    include_str!("../../help/compare.txt").replace("{files}\n", &files)
}

/// Runs it.
///
/// # Errors
/// Bad input: a wrong flag, a folder that is no run, two runs with nothing in common.
pub fn main(args: &Args) -> VerbResult {
    match (args.before.is_file(), args.after.is_file()) {
        (true, true) => return results(args),
        (false, false) => {}
        (of_before, _) => {
            let (file, folder) = if of_before { (&args.before, &args.after) } else { (&args.after, &args.before) };
            let found = format!("{} is a file, and {} is not", file.display(), folder.display());
            return Err(Failure::wrong("weir compare", found, "two runs, or two files with a result each"));
        }
    }
    let options = Options {
        level: args.level,
        absolute: args.absolute,
        busy: args.busy,
        selection: args.part.part(),
        fail_if: args.fail_if.clone(),
    };
    let read = |folder: &Path| {
        let run = ComparedRun::read(folder).map_err(Failure::input)?;
        match run.run.broken.first() {
            None => Ok(run),
            Some(broken) => {
                let (source, found) = (folder.join(&broken.file), &broken.why);
                Err(Failure::wrong(source.display().to_string(), found, "a run whose files are as weir wrote them"))
            }
        }
    };
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let comparison = compare(&before, &after, &options).map_err(Failure::input)?;
    show(args, &comparison)?;
    Ok(exit_status(&comparison))
}

/// Two results of load generators side by side.
fn results(args: &Args) -> VerbResult {
    let of_runs = [
        (args.part.part() != Part::default(), "--products, --profile and --only"),
        (args.absolute, "--absolute"),
        (args.busy, "--busy"),
    ];
    if let Some((_, flag)) = of_runs.into_iter().find(|(given, _)| *given) {
        return Err(Failure::wrong(flag, "two files have one result each", "two runs, or no such flag"));
    }
    let read = |path| outside::read(path).map_err(Failure::input);
    let beside = outside::beside(read(&args.before)?, read(&args.after)?, &args.fail_if);
    if args.json {
        out::json(&beside)?;
    } else if args.markdown {
        output!("{}", beside.markdown().trim_end());
    } else {
        output!("{}", beside.text(out::terminal_width(120), console::colors_enabled()).trim_end());
    }
    Ok(judged(&[], (!args.fail_if.is_empty()).then_some("the output says why")))
}

/// Reads a `--fail-if`.
pub fn condition(text: &str) -> Result<FailIf, String> {
    text.parse().map_err(value_error)
}

/// Reads `0.95` or `95%`.
pub fn level(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    share.ok().filter(|share| (0.5..=0.9999).contains(share)).ok_or_else(|| {
        wrong_value(format!("{text:?} is not a level"), "a share between 0.5 and 0.9999, such as 0.95 or 99%")
    })
}

fn show(args: &Args, comparison: &Comparison) -> VerbResult {
    if args.json {
        return out::json(comparison);
    }
    let text = match args.markdown {
        true => markdown(comparison),
        false => text(comparison, out::terminal_width(120), console::colors_enabled()),
    };
    output!("{}", text.trim_end());
    Ok(Exit::Ok)
}

/// The status of a comparison, with the reasons on standard error where the output itself is for a program or a page.
fn exit_status(comparison: &Comparison) -> Exit {
    let outcomes = &comparison.conditions;
    let alarms = outcomes.iter().flat_map(|of| of.alarms.iter().map(|one| alarm(&one.message, &of.condition)));
    let unjudged = outcomes.iter().any(|of| !of.unjudged.is_empty());
    judged(&alarms.collect::<Vec<_>>(), unjudged.then_some("the output says why"))
}

/// An alarm of a condition, in words.
pub fn alarm(message: &str, condition: &FailIf) -> String {
    format!("{message} (--fail-if '{condition}')")
}

/// Names the alarms, or why a condition could not be judged, on standard error, and returns the status.
pub fn judged(alarms: &[String], unjudged: Option<&str>) -> Exit {
    for alarm in alarms {
        remark!("{} alarm: {alarm}", console::style("weir:").red().bold().for_stderr());
    }
    match unjudged {
        _ if !alarms.is_empty() => Exit::Failed,
        Some(why) => {
            remark!("weir: a --fail-if could not be judged; {why}");
            Exit::Missing
        }
        None => Exit::Ok,
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
            assert!(level(wrong).expect_err(wrong).contains("such as 0.95"), "{wrong}");
        }
    }
}
