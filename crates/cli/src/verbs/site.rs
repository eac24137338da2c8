//! `weir site`: publishes many runs as one static site. Called by `main`.

use std::path::PathBuf;

use weir_model::text::counted;
use weir_report::{ReportError, SiteOptions};

use crate::exit::{Exit, Failure, VerbResult};
use crate::out;

/// Flags of `weir site`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/site.txt"))]
pub struct Args {
    /// Folders of runs, at any depth up to four, or runs.
    #[arg(required = true, value_name = "RUNS")]
    runs: Vec<PathBuf>,
    /// The folder of the site. An earlier site in it is replaced; anything else is refused.
    #[arg(long, value_name = "FOLDER", default_value = "public")]
    out: PathBuf,
    /// How many runs keep their whole report, about 1 MB each: of the newest runs of each suite on each machine, the newest.
    #[arg(long, value_name = "N", default_value_t = 10)]
    whole: usize,
    /// Print what was made as JSON on standard output.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let options = SiteOptions { extra: &weir_published::sections, whole: args.whole };
    let site = weir_report::site(&args.runs, &args.out, &options).map_err(|error| match error {
        ReportError::Io { .. } | ReportError::Draw { .. } => Failure::missing(error),
        other => Failure::input(other),
    })?;
    if args.json {
        return out::json(&site);
    }
    for skipped in &site.skipped {
        remark!("left out: {}", skipped.why);
    }
    output!(
        "{}, {} with the whole report; {}, {}, {}, {}",
        counted(site.runs as u64, "run"),
        site.whole,
        counted(site.questions as u64, "question"),
        counted(site.products as u64, "product"),
        counted(site.suites as u64, "suite"),
        counted(site.machines as u64, "machine"),
    );
    output!("site: {}", site.index.display());
    Ok(Exit::Ok)
}
