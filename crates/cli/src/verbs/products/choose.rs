//! `weir products use`: chooses the user's own binary, or the pinned version again. Called by `verbs::products`.

use std::path::PathBuf;

use weir_install::home::Home;
use weir_install::{quick_find, use_binary, use_no_binary, use_pinned};
use weir_product::catalogue::Catalogue;

use super::list::Row;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;

/// Flags of `weir products use`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../../help/products-use.txt"))]
#[command(group(clap::ArgGroup::new("choice").required(true).args(["binary", "none", "pinned"])))]
pub struct Args {
    /// The product's name (see `weir products list`)
    pub(super) product: String,
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

pub fn main(args: &Args, catalogue: &Catalogue, home: &Home, json: bool) -> VerbResult {
    let product = super::with_program(catalogue, &args.product, "weir products use")?;
    let name = product.name.as_str();
    let changed = match &args.binary {
        Some(binary) => use_binary(product, binary, home).map(|_| true).map_err(Failure::input)?,
        None if args.none => use_no_binary(name, home).map_err(Failure::missing)?,
        None => use_pinned(name, home).map_err(Failure::missing)?,
    };
    if !changed {
        remark!("nothing to undo: {name} already is what its file says");
    }
    let row = Row::of(product, Some(Ok(quick_find(product, home).map_err(Failure::missing)?)));
    if json {
        return out::json(&row);
    }
    match row.installed {
        Some(_) => output!("{name} is {} from now on", row.state()),
        None => output!("{name} is not installed; to fix it: weir products install {name}"),
    }
    Ok(Exit::Ok)
}
