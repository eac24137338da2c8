//! `weir products`: what can be measured, whether it is here, and how it gets here. One file a subcommand.

mod choose;
mod install;
mod list;
mod path;
mod progress;
mod show;
mod test;

use std::path::PathBuf;

use clap::Subcommand;
use weir_install::home::Home;
use weir_model::product::{Install, Product, ProductKind};

use crate::exit::{Done, Failure};
use crate::library::catalogue;

pub use install::{Attempt, attempt, ensure};

/// Flags of `weir products`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir products list
  weir products show nginx
  weir products install nginx haproxy --yes
  weir products use nginx --binary /opt/nginx/sbin/nginx
  weir products test nginx haproxy
  $(weir products path haproxy) -vv")]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// A folder whose products/ and suites/ are laid over those built in.
    #[arg(long, value_name = "FOLDER", global = true)]
    library: Vec<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// All of them: what each is, and whether it is installed
    #[command(after_help = list::HELP)]
    List,
    /// Everything weir knows of one: how to get it, its profiles and their reasons
    #[command(after_help = show::HELP)]
    Show {
        /// The product's name (see `weir products list`)
        product: String,
    },
    /// Install products; says what it will do, and asks
    #[command(after_help = install::HELP)]
    Install(install::Args),
    /// Measure a binary of your own instead, or the pinned version again
    #[command(after_help = choose::HELP)]
    Use(choose::Args),
    /// What they do with what HTTP asks of a proxy, as a matrix
    Test(test::Args),
    /// Print the path of one's binary
    #[command(after_help = path::HELP)]
    Path {
        /// The product's name (see `weir products list`)
        product: String,
    },
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    let catalogue = catalogue(&args.library)?;
    let home = Home::from_env().map_err(Failure::missing)?;
    match &args.what {
        What::List => list::main(&catalogue, &home, args.json),
        What::Show { product } => show::main(&catalogue, &home, product, args.json),
        What::Install(install) => install::main(install, &catalogue, &home, args.json),
        What::Use(choose) => choose::main(choose, &catalogue, &home, args.json),
        What::Test(test) => test::main(test, &catalogue, &home, args.json),
        What::Path { product } => path::main(&catalogue, &home, product),
    }
}

/// One that has a program.
fn with_program<'c>(
    catalogue: &'c weir_product::catalogue::Catalogue,
    name: &str,
    asked_in: &str,
) -> Result<&'c Product, Failure> {
    let product = catalogue.product(name, asked_in).map_err(Failure::input)?;
    match product.kind {
        ProductKind::Proxy(_) => Ok(product),
        ProductKind::Direct => Err(Failure::input(format!(
            "{} is no proxy and has no binary\n  would be right: one of those in `weir products list` with a version",
            product.name
        ))),
    }
}

/// Where its makers' release is, when weir cannot get it for the user.
fn release_elsewhere(product: &Product) -> Option<String> {
    let ProductKind::Proxy(program) = &product.kind else { return None };
    program.installs.iter().find_map(|install| match install {
        Install::Own { at, about } => Some(format!("{about}, from {at}")),
        _ => None,
    })
}
