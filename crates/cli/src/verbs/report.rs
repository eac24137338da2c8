//! `weir report`: makes the report of a run again from its files. Called by `main`.

use std::path::PathBuf;

use crate::args::PartArgs;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;

/// Flags of `weir report`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/report.txt"))]
pub struct Args {
    /// The run's folder; the run need not be finished.
    run: PathBuf,
    #[command(flatten)]
    part: PartArgs,
    /// Print every table and finding, not only the answer.
    #[arg(long)]
    full: bool,
    /// Print the summary as JSON on standard output.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let run = weir_report::load_run(&args.run).map_err(Failure::input)?;
    let run = args.part.part().of(run).map_err(Failure::input)?;
    let summary = weir_report::summary(&run);
    let made = make(&run, &summary)?;
    show(&summary, &made, args.full, args.json)
}

/// Writes the report, with what was published of its suite.
pub fn make(run: &weir_report::Run, summary: &weir_report::Summary) -> Result<weir_report::Made, Failure> {
    let published = weir_published::sections(run, summary);
    weir_report::make_of(run, summary.clone(), published, &weir_report::Options::default()).map_err(Failure::missing)
}

/// Prints the answer: on one screen, in full, or as JSON.
pub fn show(summary: &weir_report::Summary, made: &weir_report::Made, full: bool, json: bool) -> VerbResult {
    let colour = console::colors_enabled();
    if json {
        return out::json(summary);
    }
    if full {
        output!("{}", weir_report::full_answer(summary, out::terminal_width(120), colour));
        output!("report: {}", made.html.display());
        output!("        {}", made.markdown.display());
    } else {
        output!("{}", weir_report::short_answer(summary, &made.html, out::terminal_width(80), colour).trim_end());
    }
    Ok(Exit::Ok)
}
