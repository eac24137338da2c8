//! `weir report`: makes the report of a run again from its files. Called by `main`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use weir_model::row;
use weir_report::formats::{self, Better};

use crate::args::PartArgs;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;

/// Flags of `weir report`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/report.txt"))]
pub struct Args {
    /// The run's folder; the run need not be finished. [default: the newest in runs/]
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    #[command(flatten)]
    part: PartArgs,
    /// Print every table and finding, not only the answer.
    #[arg(long)]
    full: bool,
    /// Print the summary as JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Print the numbers or the verdicts in a format that CI services read.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["json", "full"])]
    format: Option<FormatArg>,
}

/// Formats of a run for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// github-action-benchmark's customBiggerIsBetter (JSON): rates
    GithubBigger,
    /// github-action-benchmark's customSmallerIsBetter (JSON): latencies, CPU, memory
    GithubSmaller,
    /// JUnit XML: each product of each workload and load a test case
    Junit,
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let folder = args.run.clone().map_or_else(|| newest(Path::new("runs")), Ok)?;
    let run = weir_report::load_run(&folder).map_err(Failure::input)?;
    let run = args.part.part().of(run).map_err(Failure::input)?;
    let summary = weir_report::summary(&run);
    if let Some(format) = args.format {
        output!("{}", text(format, &summary).trim_end());
        return Ok(intact(&summary));
    }
    show(&summary, &make(&run, &summary)?, args.full, args.json)
}

/// The run that was begun last, of those in a folder.
fn newest(folder: &Path) -> Result<PathBuf, Failure> {
    let begun = |entry: std::fs::DirEntry| {
        let run = entry.path();
        Some((run.join("run.toml").metadata().ok()?.modified().ok()?, run))
    };
    let runs = std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(begun);
    runs.max().map(|(_, run)| run).ok_or_else(|| {
        let found = format!("no run is named, and there is none in {}/", folder.display());
        Failure::wrong("weir report", found, "the folder of a run; `weir run quick` makes one")
    })
}

fn text(format: FormatArg, summary: &weir_report::Summary) -> String {
    match format {
        FormatArg::GithubBigger => formats::github_of_run(summary, Better::Bigger),
        FormatArg::GithubSmaller => formats::github_of_run(summary, Better::Smaller),
        FormatArg::Junit => formats::junit_of_run(summary),
    }
}

/// Writes the report, with what was published of its suite.
pub fn make(run: &weir_report::Run, summary: &weir_report::Summary) -> Result<weir_report::Made, Failure> {
    let published = weir_published::sections(run, summary);
    weir_report::make_of(run, summary.clone(), published, weir_report::ChartFiles::Raster).map_err(Failure::missing)
}

/// Prints the answer: on one screen, in full, or as JSON.
pub fn show(summary: &weir_report::Summary, made: &weir_report::Made, full: bool, json: bool) -> VerbResult {
    let colour = console::colors_enabled();
    if json {
        out::json(summary)?;
        return Ok(intact(summary));
    }
    if full {
        output!("{}", weir_report::full_answer(summary, out::terminal_width(120), colour));
        output!("report: {}", made.html.display());
        output!("        {}", made.markdown.display());
    } else {
        output!("{}", weir_report::short_answer(summary, &made.html, out::terminal_width(80), colour).trim_end());
    }
    Ok(intact(summary))
}

/// The status: files that are not as weir wrote them are a failure, said on standard error.
fn intact(summary: &weir_report::Summary) -> Exit {
    let [first, rest @ ..] = summary.broken.as_slice() else { return Exit::Ok };
    let more = if rest.is_empty() { String::new() } else { format!(" (and {} more files, in the report)", rest.len()) };
    remark!("weir: {}: {}{more}", first.file, first.why);
    match first.file.as_str() {
        row::FILE => {
            remark!("  no number in the report is from there; `weir run --resume` writes it anew from the trials");
        }
        file if file.starts_with("trials/") => {
            remark!("  no number of such a trial is shown; `weir run --resume` measures it again");
        }
        _ => {}
    }
    Exit::Failed
}
