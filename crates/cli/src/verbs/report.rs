//! `weir report`: the report of a run, from its files alone.

use std::path::PathBuf;

use crate::exit::{Done, Exit, Failure};

/// Flags of `weir report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir report runs/20260102-101500-quick
  weir report runs/20260102-101500-quick --json | jq '.tables[0].rows[0]'")]
pub struct Args {
    /// The run's folder; it need not be finished.
    run: PathBuf,
    /// Print the summary as JSON on standard output.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    let run = weir_report::load_run(&args.run).map_err(Failure::input)?;
    let summary = weir_report::summary(&run);
    let made = weir_report::make(&args.run, &weir_report::Options::default()).map_err(Failure::missing)?;
    if args.json {
        super::print_json(&summary)?;
    } else {
        show(&summary, &made)?;
    }
    Ok(Exit::Ok)
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
