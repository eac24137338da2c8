//! `weir history`: follows each case over many runs and prints from which run on it changed. Called by `main`.

use std::path::PathBuf;

use weir_compare::history::{FailOn, History, HistoryError, Options, Order, history, text, write_page};
use weir_model::metric::Metric;
use weir_model::text::{one_of, suggestion};

use crate::args::{PartArgs, choice, parse_count};
use crate::exit::{Exit, Failure, VerbResult, wrong_value};
use crate::out;
use crate::verbs::compare::{judged, level};

/// Flags of `weir history`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/history.txt"))]
pub struct Args {
    /// Run folders, or folders with runs in them.
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// The order of the runs.
    #[arg(long, value_name = "ORDER", default_value = "date", value_parser = choice(ORDERS))]
    by: Order,
    /// Which changes in the newest runs end with status 1.
    #[arg(long, value_name = "CHANGES", default_value = "worse", value_parser = choice(FAIL_ON))]
    fail_on: FailOn,
    /// So many runs at the end of a series are its newest.
    #[arg(long, value_name = "RUNS", default_value = "10", value_parser = parse_count(1..=u32::MAX))]
    newest: u32,
    #[command(flatten)]
    part: PartArgs,
    /// Only these numbers: capacity, rate, p50, p90, p99, p999, cpu, memory. With fewer numbers, smaller changes are found.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = number)]
    numbers: Vec<Metric>,
    /// The share of histories without a change in which none is found, over all numbers together.
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = level)]
    level: f64,
    /// The least change that counts, in per cent.
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = least)]
    least: f64,
    /// Divide numbers by those of this product in the same block: one that is the same in all runs.
    #[arg(long, value_name = "PRODUCT", default_value = "direct")]
    reference: String,
    /// Take numbers as measured, instead of dividing them.
    #[arg(long, conflicts_with = "reference")]
    absolute: bool,
    /// Include trials during which other processes used more than 5 % of the machine's CPU.
    #[arg(long)]
    busy: bool,
    /// Take machines that differ in nothing but their names for one, such as the runners of a CI service.
    #[arg(long)]
    any_host: bool,
    /// Write a page with a chart for each number; charts and data go into a folder charts beside it.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long)]
    json: bool,
}

const ORDERS: &[(&str, &str, Order)] = &[
    ("date", "when they began", Order::Date),
    ("version", "the version of each case's product, then the date", Order::Version),
    ("weir", "weir's version, then the date", Order::Weir),
    ("kernel", "the kernel's version, then the date", Order::Kernel),
];

const FAIL_ON: &[(&str, &str, FailOn)] = &[
    ("worse", "a change for the worse", FailOn::Worse),
    ("any", "any change", FailOn::Any),
    ("never", "none", FailOn::Never),
];

/// Runs it.
///
/// # Errors
/// Bad input: a wrong flag, a folder without runs, no run that can be used. A page that cannot be written.
pub fn main(args: &Args) -> VerbResult {
    let options = Options {
        by: args.by,
        level: args.level,
        least: 1.0 + args.least,
        newest: args.newest as usize,
        fail_on: args.fail_on,
        reference: args.reference.clone(),
        absolute: args.absolute,
        busy: args.busy,
        any_host: args.any_host,
        selection: args.part.part(),
        metrics: args.numbers.clone(),
    };
    let history = history(&args.folders, &options).map_err(|error| match error {
        HistoryError::Input(error) => Failure::input(error),
        HistoryError::Run(error) => Failure::input(error),
    })?;
    if let Some(file) = &args.html {
        write_page(&history, file, &command()).map_err(Failure::missing)?;
    }
    show(args, &history)?;
    Ok(exit_status(args, &history))
}

/// Reads the name of a number that runs are compared by.
fn number(text: &str) -> Result<Metric, String> {
    let names = || Metric::compared().map(|(_, compared)| compared.name);
    let found = Metric::compared().find(|(_, compared)| compared.name == text);
    found.map(|(metric, _)| metric).ok_or_else(|| {
        wrong_value(format!("{text:?} is not a number of a run{}", suggestion(text, names())), &one_of(names()))
    })
}

/// Reads `2` or `2%`, a share of at least 0.
fn least(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    percent.ok().filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0).ok_or_else(|| {
        wrong_value(format!("{text:?} is not a change"), "per cent between 0 and 100, such as 2 or 0.5%")
    })
}

/// The command as it was given.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| match word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word,
    });
    format!("weir {}", words.collect::<Vec<_>>().join(" "))
}

fn show(args: &Args, history: &History) -> VerbResult {
    if args.json {
        return out::json(history);
    }
    output!("{}", text(history, out::terminal_width(120), console::colors_enabled()).trim_end());
    if let Some(file) = &args.html {
        output!("Page: {}", file.display());
    }
    Ok(Exit::Ok)
}

/// The status, with the reasons on standard error where the output is for a program.
fn exit_status(args: &Args, history: &History) -> Exit {
    match args.json {
        true => judged(&history.alarms, None),
        false if history.alarms.is_empty() => Exit::Ok,
        false => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_per_cent_and_numbers_have_names() {
        assert_eq!([least("2"), least("0.5%"), least("0")], [Ok(0.02), Ok(0.005), Ok(0.0)]);
        for wrong in ["", "-1", "101", "nan", "few"] {
            assert!(least(wrong).expect_err(wrong).contains("such as 2"), "{wrong}");
        }
        assert_eq!(number("cpu"), Ok(Metric::Cpu));
        let wrong = number("cpus").expect_err("no such number");
        assert!(wrong.contains("did you mean \"cpu\"?") && wrong.contains("capacity"), "{wrong}");
    }
}
