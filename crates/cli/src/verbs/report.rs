//! `weir report`: makes the report of a run again from its files. Called by `main`.

use std::path::PathBuf;

use weir_model::filter::Filter;
use weir_report::Part;

use crate::exit::{Exit, Failure, VerbResult};

/// Flags of `weir report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir report runs/20260102-101500-quick
  The tables in the terminal too:
    weir report runs/20260102-101500-quick --full
  A part of the run, with ranks and means of that part:
    weir report runs/20260102-101500-quick --only workload=tiny
  Who carries most?
    weir report runs/20260102-101500-quick --json | jq '.overall.rows[0]'

The report is report/report.html in the run's folder, with report.md for a
README, and the charts. It replaces the previous one. docs/report.md explains
how to read it.")]
pub struct Args {
    /// The run's folder; the run need not be finished.
    run: PathBuf,
    /// Only these products (name or name:profile) and the direct path.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    products: Vec<String>,
    /// Only these profiles (configurations).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    profile: Vec<String>,
    /// Only cases that match: product=, profile=, workload= or load=, with values separated by commas. May be repeated.
    #[arg(long, value_name = "KEY=VALUES")]
    only: Vec<String>,
    /// Print every table and finding, not only the answer.
    #[arg(long)]
    full: bool,
    /// Print the summary as JSON on standard output.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let only = args.only.iter().map(|text| Filter::parse(text)).collect::<Result<_, _>>().map_err(Failure::input)?;
    let shown = Part { products: args.products.clone(), profiles: args.profile.clone(), only };
    let run = weir_report::load_run(&args.run).map_err(Failure::input)?;
    let run = shown.of(run).map_err(Failure::input)?;
    let summary = weir_report::summary(&run);
    let made = make(&run, &summary)?;
    if args.json {
        super::print_json(&summary)?;
    } else {
        show(&summary, &made, args.full)?;
    }
    Ok(Exit::Ok)
}

/// Writes the report, with what was published of its suite.
pub fn make(run: &weir_report::Run, summary: &weir_report::Summary) -> Result<weir_report::Made, Failure> {
    let published = weir_published::sections(run, summary);
    weir_report::make_of(run, summary.clone(), published, &weir_report::Options::default()).map_err(Failure::missing)
}

/// Prints the answer: on one screen, or in full.
pub fn show(summary: &weir_report::Summary, made: &weir_report::Made, full: bool) -> Result<(), Failure> {
    let terminal = console::Term::stdout();
    let colour = console::colors_enabled();
    let width = |without_terminal| if terminal.is_term() { usize::from(terminal.size().1) } else { without_terminal };
    if full {
        output!("{}", weir_report::full_answer(summary, width(120), colour));
        output!("report: {}", made.html.display());
        output!("        {}", made.markdown.display());
    } else {
        output!("{}", weir_report::short_answer(summary, &made.html, width(80), colour).trim_end());
    }
    Ok(())
}
