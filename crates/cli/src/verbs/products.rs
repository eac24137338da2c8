//! `weir products`: lists, installs and tests products, with one file per larger subcommand. Called by `main`.

mod choose;
mod install;
mod list;
mod show;
mod test;

use clap::Subcommand;
use weir_install::home::Home;
use weir_install::{locate_any, quick_find};
use weir_model::product::{Install, Product, ProductKind};
use weir_product::catalogue::Catalogue;

use crate::agree;
use crate::args::LibraryArgs;
use crate::ask::Consent;
use crate::exit::{Exit, Failure, VerbResult};

pub use install::{Demand, Order, ensure, failure, local, provide};

/// Flags of `weir products`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/products.txt"))]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    library: LibraryArgs,
    /// Do not ask: install what is missing, and run what a --library names.
    #[arg(long, short = 'y', global = true)]
    yes: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List all products, and whether they are installed
    #[command(after_help = include_str!("../../help/products-list.txt"))]
    List {
        /// How old each version is beside the newest that weir knows
        #[arg(long)]
        outdated: bool,
    },
    /// Show how to install a product, its profiles and the reasons for their settings
    #[command(after_help = include_str!("../../help/products-show.txt"))]
    Show {
        /// The product's name (see `weir products list`)
        product: String,
    },
    /// Install products, after showing what will be done
    Install(install::Args),
    /// Measure a binary of your own, or the installed one again
    Use(choose::Args),
    /// Test what products do with HTTP, or with keys and values, and print a matrix
    Test(test::Args),
    /// Print the path of a product's binary
    #[command(after_help = include_str!("../../help/products-path.txt"))]
    Path {
        /// The product's name (see `weir products list`)
        product: String,
    },
}

impl Verb {
    /// The products that it is about; none for all.
    fn named(&self) -> &[String] {
        match self {
            Verb::List { .. } => &[],
            Verb::Show { product } | Verb::Path { product } => std::slice::from_ref(product),
            Verb::Use(args) => std::slice::from_ref(&args.product),
            Verb::Install(args) => &args.products,
            Verb::Test(args) => &args.products,
        }
    }

    /// Whether it starts nothing.
    fn only_looks(&self) -> bool {
        match self {
            Verb::List { .. } | Verb::Show { .. } | Verb::Path { .. } => true,
            Verb::Test(args) => args.checks,
            Verb::Use(_) | Verb::Install(_) => false,
        }
    }
}

/// All products but those whose files are wrong, which standard error names.
fn listed(library: &LibraryArgs) -> Result<Catalogue, Failure> {
    let catalogue = library.catalogue_for(&[])?;
    for error in catalogue.broken().values().flatten() {
        remark!("weir: not listed: {error}");
    }
    Ok(catalogue)
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let (consent, json, library) = (Consent::from(args.yes), args.library.json, args.library.folders());
    let mut catalogue = match &args.verb {
        Verb::List { .. } => listed(&args.library)?,
        verb => match verb.named() {
            [] => args.library.catalogue()?,
            named => args.library.catalogue_for(named)?,
        },
    };
    let home = Home::from_env().map_err(Failure::input)?;
    let about = match args.verb.named() {
        [] => catalogue.products().keys().cloned().collect(),
        named => named.to_vec(),
    };
    if args.yes || !args.verb.only_looks() {
        agree::ensure(&mut catalogue, &about, consent)?;
    }
    match &args.verb {
        Verb::List { outdated } => {
            agree::say_unagreed(&catalogue, &about);
            if *outdated { list::ages(&catalogue, &home, json) } else { list::main(&catalogue, &home, json) }
        }
        Verb::Show { product } => show::main(&catalogue, &home, product, json),
        Verb::Install(args) => install::main(args, &catalogue, &home, consent, json),
        Verb::Use(args) => choose::main(args, &catalogue, &home, library, json),
        Verb::Test(args) => test::main(args, &catalogue, &home, consent, json),
        Verb::Path { product } => {
            agree::say_unagreed(&catalogue, &about);
            path(&catalogue, &home, product)
        }
    }
}

/// Prints the path of a product's binary.
fn path(catalogue: &Catalogue, home: &Home, name: &str) -> VerbResult {
    let product = with_program(catalogue, name, "weir products path")?;
    let found = match &product.unagreed {
        Some(_) => locate_any(product, home),
        None => quick_find(product, home).map(|found| found.binary),
    };
    match found {
        Ok(binary) => output!("{}", binary.display()),
        Err(error) if error.is_missing() => {
            let found = format!("{} is not installed:\n  {}", product.title, error.tried().join("\n  "));
            let release = release_elsewhere(product).map(|release| format!(", or {release}"));
            return Err(Failure::to_fix(found, format!("weir products install {name}{}", release.unwrap_or_default())));
        }
        Err(error) => return Err(Failure::missing(error)),
    }
    Ok(Exit::Ok)
}

/// A product that has a binary.
fn with_program<'c>(catalogue: &'c Catalogue, name: &str, asked_in: &str) -> Result<&'c Product, Failure> {
    let product = catalogue.product(name, asked_in).map_err(Failure::input)?;
    if product.program().is_none() {
        let found = match product.kind {
            ProductKind::Served(_) => format!("{name} is served already, and weir has no binary of it"),
            _ => format!("{name} is not a proxy and has no binary"),
        };
        return Err(Failure::wrong(asked_in, found, "a product with a version in `weir products list`"));
    }
    Ok(product)
}

/// Those with a program of their own.
fn proxies<'p>(products: impl IntoIterator<Item = &'p Product>) -> Vec<&'p Product> {
    products.into_iter().filter(|product| product.program().is_some()).collect()
}

/// The releases that nobody has fetched by the product's file.
fn never_fetched(product: &Product) -> Vec<String> {
    let installs = product.program().map(|program| program.installs.as_slice()).unwrap_or_default();
    let release = |install: &Install| match install {
        Install::Release { version, fetched: false, .. } => Some(format!("release {version}")),
        _ => None,
    };
    installs.iter().filter_map(release).collect()
}

/// Where the vendor's release is, when weir cannot install it.
fn release_elsewhere(product: &Product) -> Option<String> {
    product.program()?.installs.iter().find_map(|install| match install {
        Install::Own { at, about } => Some(format!("{about}, from {at}")),
        _ => None,
    })
}
