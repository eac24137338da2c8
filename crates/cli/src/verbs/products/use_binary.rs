//! `weir products use`: chooses the user's own binary, or the pinned version again. Called by `verbs::products`.

use std::path::PathBuf;

use serde::Serialize;
use weir_install as install;
use weir_install::home::Home;
use weir_product::catalogue::Catalogue;

use super::list::Row;
use crate::exit::{Exit, Failure, VerbResult};

pub const HELP: &str = "\
The choice is kept in products/<name>/use.toml of weir's own folder and applies to
every run from then on. The binary must print a version that the product's file
accepts; where it comes from is in every run's records.

Examples:
  Your own build, or the vendor's download, unpacked:
    weir products use nginx --binary ~/nginx/objs/nginx
  No longer:
    weir products use nginx --none
  The pinned version again, after `weir products install caddy --latest`:
    weir products use caddy --pinned";

/// Flags of `weir products use`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("choice").required(true).args(["binary", "none", "pinned"])))]
pub struct Args {
    /// The product's name (see `weir products list`)
    product: String,
    /// Measure this binary from now on.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Stop using a binary of your own.
    #[arg(long)]
    none: bool,
    /// Use the pinned version instead of the one that --latest installed.
    #[arg(long)]
    pinned: bool,
}

/// What is measured from now on; null when nothing is installed.
#[derive(Debug, Serialize)]
struct Current {
    name: String,
    installed: Option<String>,
    from: Option<String>,
    binary: Option<PathBuf>,
}

pub fn main(args: &Args, catalogue: &Catalogue, home: &Home, json: bool) -> VerbResult {
    let product = super::with_program(catalogue, &args.product, "weir products use")?;
    let name = product.name.as_str();
    let was = match &args.binary {
        Some(binary) => install::use_binary(product, binary, home).map(|_| true).map_err(Failure::input)?,
        None if args.none => install::use_no_binary(name, home).map_err(Failure::missing)?,
        None => install::use_pinned(name, home).map_err(Failure::missing)?,
    };
    if !was {
        remark!("nothing to undo: {name} already is what its file says");
    }
    let row = Row::of(product, install::quick_find(product, home).map_err(Failure::missing)?);
    if json {
        crate::verbs::print_json(&Current {
            name: row.name,
            installed: row.installed,
            from: row.from,
            binary: row.binary,
        })?;
        return Ok(Exit::Ok);
    }
    match (row.installed, row.from) {
        (Some(version), Some(from)) => output!("{name} is {version} ({from}) from now on"),
        _ => output!("{name} is not installed; to fix it: weir products install {name}"),
    }
    Ok(Exit::Ok)
}
