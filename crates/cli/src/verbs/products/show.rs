//! `weir products show`: prints one product of the library. Called by `verbs::products`.

use serde::Serialize;
use weir_install::home::Home;
use weir_install::{self as install, Found};
use weir_model::product::{Install, Product, ProductKind, Source};
use weir_product::catalogue::Catalogue;

use super::list::Row;
use crate::exit::{Exit, Failure, VerbResult};
use weir_model::text::wrapped;

pub const HELP: &str = "\
With --json, the object of `weir products list` with home, ways (how it can be
installed, in order of preference), caches and notes.

Examples:
  weir products show nginx
  weir products show nginx --json";

#[derive(Debug, Serialize)]
struct ProductDetails {
    #[serde(flatten)]
    row: Row,
    home: String,
    ways: Vec<String>,
    caches: bool,
    notes: Vec<String>,
}

pub fn main(catalogue: &Catalogue, home: &Home, name: &str, json: bool) -> VerbResult {
    let product = catalogue.product(name, "weir products show").map_err(Failure::input)?;
    let found = match product.kind {
        ProductKind::Direct => Found::No { tried: Vec::new() },
        ProductKind::Proxy(_) => install::quick_find(product, home).map_err(Failure::missing)?,
    };
    let details = ProductDetails {
        row: Row::of(product, found),
        home: product.home.clone(),
        ways: ways(product),
        caches: product.caches,
        notes: product.notes.clone(),
    };
    if json {
        crate::verbs::print_json(&details)?;
        return Ok(Exit::Ok);
    }
    output!("{}: {}\n{}\n", product.title, product.about, product.home);
    state(&details, name)?;
    output!("speaks     {}", details.row.speaks.join(", "));
    if details.caches {
        output!("caches     it answers from its own cache");
    }
    for note in &details.notes {
        output!("note       {}", wrapped(note, 88, 11));
    }
    for profile in product.profiles.values() {
        output!("\nprofile {}: {}", profile.name, profile.about);
        for reason in &profile.reasons {
            output!("  {}\n      {}\n      {}", reason.setting, reason.why, reason.source);
        }
    }
    Ok(Exit::Ok)
}

fn state(details: &ProductDetails, name: &str) -> Result<(), Failure> {
    match (&details.row.installed, &details.row.from, &details.row.binary) {
        (Some(version), Some(from), Some(binary)) => {
            output!("installed  {version} ({from}), {}", binary.display());
            output!("           ways to install it, in order of preference:");
        }
        _ if details.ways.is_empty() => output!("installed  needs nothing"),
        _ => {
            output!("installed  no:");
            for why in &details.row.missing {
                output!("             {why}");
            }
            output!("           `weir products install {name}` tries:");
        }
    }
    for way in &details.ways {
        output!("             {way}");
    }
    Ok(())
}

fn ways(product: &Product) -> Vec<String> {
    match &product.kind {
        ProductKind::Direct => Vec::new(),
        ProductKind::Proxy(program) => program.installs.iter().map(|way| describe(way, &product.name)).collect(),
    }
}

fn describe(way: &Install, name: &str) -> String {
    let of = |what: &str, source: &Source| match source {
        Source::Package { package, version } => format!("{what} {package} {version}, built here"),
        Source::Project(project) => format!("products/{name}/{project}, built here ({what})"),
    };
    match way {
        Install::System { binary } => format!("{binary}, already on the machine"),
        Install::Apt { package, .. } => format!("apt package {package}"),
        Install::Wheel { package, version, .. } => format!("wheel {package} {version}, verified by its SHA-256"),
        Install::Crate { source, .. } => of("crate", source),
        Install::Go { source, .. } => of("Go module", source),
        Install::Maven { project, .. } => format!("products/{name}/{project}, built here (Maven)"),
        Install::Npm { project, .. } => format!("products/{name}/{project}, assembled here (npm)"),
        Install::Release { version, .. } => {
            format!("the vendor's release {version}, verified by its SHA-256")
        }
        Install::Own { at, about } => {
            format!("a binary of yours: {about}, from {at}; then `weir products use {name} --binary <path>`")
        }
    }
}
