//! `weir site`: publishes many runs as one static site. Called by `main`.

use std::path::PathBuf;

use weir_model::text::{counted, human_bytes};
use weir_report::{ReportError, SiteOptions};

use crate::exit::{Exit, Failure, VerbResult, wrong_value};
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
    /// Where the site will be published: the links of its feed are then absolute, as some feed readers need.
    #[arg(long, value_name = "URL", value_parser = parse_url, default_value = "", hide_default_value = true)]
    url: String,
    /// Print what was made as JSON on standard output.
    #[arg(long)]
    json: bool,
}

fn parse_url(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    if !text.is_empty() && (address.is_empty() || address.contains(char::is_whitespace)) {
        return Err(wrong_value(
            format!("\"{text}\" is no address of a site"),
            "one such as https://example.org/bench/",
        ));
    }
    Ok(if text.is_empty() || text.ends_with('/') { text.to_owned() } else { format!("{text}/") })
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let options = SiteOptions { extra: &weir_published::sections, whole: args.whole, url: args.url.clone() };
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
    output!(
        "site: {} ({}, {})",
        site.index.display(),
        counted(site.files as u64, "file"),
        human_bytes(site.bytes as f64)
    );
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_ends_with_a_slash() {
        assert_eq!(parse_url("https://a.example/b").as_deref(), Ok("https://a.example/b/"));
        assert_eq!(parse_url("http://a.example/").as_deref(), Ok("http://a.example/"));
        for wrong in ["a.example", "https://", "ftp://a.example/", "https://a b/"] {
            assert!(parse_url(wrong).is_err_and(|error| error.contains("expected: one such as")), "{wrong}");
        }
    }
}
