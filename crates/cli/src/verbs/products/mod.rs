//! `weir products`: lists, installs and tests products, with one file per subcommand. Called by `main`.

mod install;
mod list;
mod path;
mod progress;
mod show;
mod test;
mod use_binary;

use std::path::PathBuf;

use clap::Subcommand;
use weir_install::home::Home;
use weir_model::product::{Install, Product, ProductKind};

use crate::exit::{Failure, VerbResult};
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
    /// A folder whose products/ and suites/ extend or replace the built-in ones.
    #[arg(long, value_name = "FOLDER", global = true)]
    library: Vec<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List all products, and whether they are installed
    #[command(after_help = list::HELP)]
    List,
    /// Show how to install a product, its profiles and the reasons for their settings
    #[command(after_help = show::HELP)]
    Show {
        /// The product's name (see `weir products list`)
        product: String,
    },
    /// Install products, after showing what will be done
    #[command(after_help = install::HELP)]
    Install(install::Args),
    /// Measure a binary of your own, or the pinned version again
    #[command(after_help = use_binary::HELP)]
    Use(use_binary::Args),
    /// Test how products handle HTTP, and print a matrix
    Test(test::Args),
    /// Print the path of a product's binary
    #[command(after_help = path::HELP)]
    Path {
        /// The product's name (see `weir products list`)
        product: String,
    },
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let catalogue = catalogue(&args.library)?;
    let home = Home::from_env().map_err(Failure::missing)?;
    match &args.what {
        What::List => list::main(&catalogue, &home, args.json),
        What::Show { product } => show::main(&catalogue, &home, product, args.json),
        What::Install(install) => install::main(install, &catalogue, &home, args.json),
        What::Use(choice) => use_binary::main(choice, &catalogue, &home, args.json),
        What::Test(test) => test::main(test, &catalogue, &home, args.json),
        What::Path { product } => path::main(&catalogue, &home, product),
    }
}

/// A product that has a binary.
fn with_program<'c>(
    catalogue: &'c weir_product::catalogue::Catalogue,
    name: &str,
    asked_in: &str,
) -> Result<&'c Product, Failure> {
    let product = catalogue.product(name, asked_in).map_err(Failure::input)?;
    match product.kind {
        ProductKind::Proxy(_) => Ok(product),
        ProductKind::Direct => Err(Failure::input(format!(
            "{} is not a proxy and has no binary\n  expected: a product with a version in `weir products list`",
            product.name
        ))),
    }
}

/// Where the vendor's release is, when weir cannot install it.
fn release_elsewhere(product: &Product) -> Option<String> {
    let ProductKind::Proxy(program) = &product.kind else { return None };
    program.installs.iter().find_map(|install| match install {
        Install::Own { at, about } => Some(format!("{about}, from {at}")),
        _ => None,
    })
}
