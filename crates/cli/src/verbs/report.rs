//! `weir report`: the report of a run, from its files alone.

use std::path::PathBuf;

use weir_model::filter::Filter;
use weir_report::Shown;

use crate::exit::{Done, Exit, Failure};

/// Flags of `weir report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir report runs/20260102-101500-quick
  A part of it, with ranks and means of that part:
    weir report runs/20260102-101500-quick --only workload=tiny
  Who carries most?
    weir report runs/20260102-101500-quick --json | jq '.overall.rows[0]'

The report is report/report.html in the run's folder, with report.md for a
README and the pictures. It replaces the one that was there; docs/report.md
explains it.")]
pub struct Args {
    /// The run's folder; it need not be finished.
    run: PathBuf,
    /// Only these products, name or name:profile, and the direct path.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    products: Vec<String>,
    /// Only these profiles (configurations).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    profile: Vec<String>,
    /// Only cases that match: product=, profile=, workload= or load=, with a comma between values. May be repeated.
    #[arg(long, value_name = "KEY=VALUES")]
    only: Vec<String>,
    /// Print the summary as JSON on standard output.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    let only = args.only.iter().map(|text| Filter::parse(text)).collect::<Result<_, _>>().map_err(Failure::input)?;
    let shown = Shown { products: args.products.clone(), profiles: args.profile.clone(), only };
    let run = weir_report::load_run(&args.run).map_err(Failure::input)?;
    let run = shown.of(run).map_err(Failure::input)?;
    let summary = weir_report::summary(&run);
    let made = make(&run, &summary)?;
    if args.json {
        super::print_json(&summary)?;
    } else {
        show(&summary, &made)?;
    }
    Ok(Exit::Ok)
}

/// Writes the report, with what was published of its suite.
pub fn make(run: &weir_report::Run, summary: &weir_report::Summary) -> Result<weir_report::Made, Failure> {
    let published = weir_published::sections(run, summary);
    weir_report::make_of(run, summary.clone(), published, &weir_report::Options::default()).map_err(Failure::missing)
}

/// Prints the tables and where the report is.
pub fn show(summary: &weir_report::Summary, made: &weir_report::Made) -> Result<(), Failure> {
    let terminal = console::Term::stdout();
    let width = if terminal.is_term() { usize::from(terminal.size().1) } else { 120 };
    say!("{}", weir_report::text_tables(summary, width, console::colors_enabled()));
    say!("report: {}", made.html.display());
    say!("        {}", made.markdown.display());
    Ok(())
}
