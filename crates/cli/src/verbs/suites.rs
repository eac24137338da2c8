//! `weir suites`: what can be run.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;
use weir_lab::run::Run;
use weir_model::suite::{Load, LoadKind, RateSpec, Scale, Suite, Tls};
use weir_model::units::human_rate;

use crate::exit::{Done, Exit, Failure};
use crate::library::catalogue;
use crate::progress::minutes;

/// Flags of `weir suites`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir suites list
  weir suites show quick
  weir suites show my-suite.toml --json")]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// A folder whose suites/ and products/ are laid over those built in.
    #[arg(long, value_name = "FOLDER", global = true)]
    library: Vec<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// All of them: trials, time and title
    #[command(after_help = "Examples:\n  weir suites list\n  weir suites list --json")]
    List,
    /// What one measures, and how long it takes
    #[command(after_help = "Examples:\n  weir suites show quick\n  weir suites show my-suite.toml --json")]
    Show {
        /// A suite's name, or the path of a .toml file
        suite: String,
    },
}

#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    title: String,
    trials: usize,
    seconds: u64,
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    let catalogue = catalogue(&args.library)?;
    match &args.what {
        What::List => {
            let mut listed = Vec::new();
            for name in catalogue.suites().keys() {
                let suite = catalogue.suite(name).map_err(Failure::input)?;
                listed.push(Listed {
                    name: name.clone(),
                    title: suite.title.clone(),
                    trials: trials(&suite),
                    seconds: Run::expected(&suite, &[]).as_secs_f64().round() as u64,
                });
            }
            if args.json {
                super::print_json(&listed)?;
            } else {
                for one in listed {
                    let time = minutes(std::time::Duration::from_secs(one.seconds));
                    say!("{:<24} {:>4} trials {:>7}  {}", one.name, one.trials, time, one.title);
                }
            }
        }
        What::Show { suite } => {
            let suite = crate::library::suite(&catalogue, suite)?;
            if args.json {
                super::print_json(&serde_json::json!({
                    "name": suite.name, "title": suite.title, "question": suite.question, "blocks": suite.blocks,
                    "trials": trials(&suite), "seconds": Run::expected(&suite, &[]).as_secs_f64().round() as u64, "toml": suite.to_toml(),
                }))?;
            } else {
                show(&suite)?;
            }
        }
    }
    Ok(Exit::Ok)
}

fn trials(suite: &Suite) -> usize {
    suite.entries.len() * suite.workloads.len() * suite.loads.len() * suite.blocks as usize
}

fn show(suite: &Suite) -> Result<(), Failure> {
    say!("{}: {}\n{}\n", suite.name, suite.title, suite.question);
    say!("products");
    for entry in &suite.entries {
        say!("  {:<22} {}", entry.product, entry.profile);
    }
    say!("workloads");
    for workload in &suite.workloads {
        let request = format!("{} {} {}", workload.protocol.as_str(), workload.request.method, workload.request.path);
        say!("  {:<22} {request:<36} {}", workload.name, workload.title);
    }
    if suite.workloads.iter().any(|workload| workload.protocol.is_tls()) {
        let Tls { key, versions: (oldest, newest), resumption } = suite.tls;
        let versions = if oldest == newest {
            newest.as_str().to_owned()
        } else {
            format!("{} to {}", oldest.as_str(), newest.as_str())
        };
        say!("TLS\n  {versions}, key {}, {} resumption", key.as_str(), if resumption { "with" } else { "without" });
    }
    say!("loads");
    for load in &suite.loads {
        say!("  {:<22} {:<36} {}", load.name, describe(load), load.title);
    }
    say!();
    for scale in [Scale::Smoke, Scale::Fit, Scale::Full] {
        let (scaled, _) = suite.at_scale(scale);
        let name = format!("--scale {}", scale.as_str());
        say!("{name:<16} {} trials, about {}", trials(&scaled), minutes(Run::expected(&scaled, &[])));
    }
    Ok(())
}

fn describe(load: &Load) -> String {
    let kind = match &load.kind {
        LoadKind::Closed => "closed".to_owned(),
        LoadKind::Count { requests } => format!("{requests} requests, closed"),
        LoadKind::Search { objective } => {
            let words: Vec<String> = objective.iter().map(ToString::to_string).collect();
            format!("highest rate with {}", words.join(", "))
        }
        LoadKind::Open { rate: RateSpec::Table(_), arrivals } => {
            format!("open, rates by workload and product, {}", format!("{arrivals:?}").to_lowercase())
        }
        LoadKind::Open { rate: RateSpec::Fixed(rate), arrivals } => {
            format!("open {} {}", human_rate(*rate), format!("{arrivals:?}").to_lowercase())
        }
        LoadKind::Open { rate: RateSpec::Share { share, of, load }, arrivals } => format!(
            "open {:.0} % of {} {load}, {}",
            share * 100.0,
            format!("{of:?}").to_lowercase(),
            format!("{arrivals:?}").to_lowercase()
        ),
    };
    let streams = if load.streams > 1 { format!(" of {} streams", load.streams) } else { String::new() };
    format!("{kind}, {} connections{streams}, {:.1} s", load.connections, load.duration.as_secs_f64())
}
