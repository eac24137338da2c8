//! `weir products show`.

use serde::Serialize;
use weir_install::home::Home;
use weir_install::{self as install, Found};
use weir_model::product::{Install, Product, ProductKind, Source};
use weir_product::catalogue::Catalogue;

use super::list::Row;
use crate::exit::{Done, Exit, Failure};
use weir_model::text::wrapped;

pub const HELP: &str = "\
With --json, the object of `weir products list` and besides home, ways (how it can be
installed, in the order they are tried), caches and notes.

Examples:
  weir products show nginx
  weir products show nginx --json";

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    row: Row,
    home: String,
    ways: Vec<String>,
    caches: bool,
    notes: Vec<String>,
}

pub fn main(catalogue: &Catalogue, home: &Home, name: &str, json: bool) -> Done {
    let product = catalogue.product(name, "weir products show").map_err(Failure::input)?;
    let found = match product.kind {
        ProductKind::Direct => Found::No { tried: Vec::new() },
        ProductKind::Proxy(_) => install::glance(product, home).map_err(Failure::missing)?,
    };
    let shown = Shown {
        row: Row::of(product, found),
        home: product.home.clone(),
        ways: ways(product),
        caches: product.caches,
        notes: product.notes.clone(),
    };
    if json {
        crate::verbs::print_json(&shown)?;
        return Ok(Exit::Ok);
    }
    say!("{}: {}\n{}\n", product.title, product.about, product.home);
    state(&shown, name)?;
    say!("speaks     {}", shown.row.speaks.join(", "));
    if shown.caches {
        say!("caches     it answers from a cache of its own");
    }
    for note in &shown.notes {
        say!("note       {}", wrapped(note, 88, 11));
    }
    for profile in product.profiles.values() {
        say!("\nprofile {}: {}", profile.name, profile.about);
        for reason in &profile.reasons {
            say!("  {}\n      {}\n      {}", reason.setting, reason.why, reason.source);
        }
    }
    Ok(Exit::Ok)
}

fn state(shown: &Shown, name: &str) -> Result<(), Failure> {
    match (&shown.row.installed, &shown.row.from, &shown.row.binary) {
        (Some(version), Some(from), Some(binary)) => {
            say!("installed  {version} ({from}), {}", binary.display());
            say!("           ways to get it, in the order they are tried:");
        }
        _ if shown.ways.is_empty() => say!("installed  needs nothing"),
        _ => {
            say!("installed  no:");
            for why in &shown.row.missing {
                say!("             {why}");
            }
            say!("           `weir products install {name}` tries:");
        }
    }
    for way in &shown.ways {
        say!("             {way}");
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
        Install::System { binary } => format!("{binary} already on the machine"),
        Install::Apt { package, .. } => format!("apt package {package}"),
        Install::Wheel { package, version, .. } => format!("wheel {package} {version}, checked against its SHA-256"),
        Install::Crate { source, .. } => of("crate", source),
        Install::Go { source, .. } => of("Go module", source),
        Install::Maven { project, .. } => format!("products/{name}/{project}, built here (Maven)"),
        Install::Npm { project, .. } => format!("products/{name}/{project}, put together here (npm)"),
        Install::Release { version, .. } => {
            format!("the makers' release {version}, checked against its SHA-256")
        }
        Install::Own { at, about } => {
            format!("a binary of yours: {about}, from {at}; then `weir products use {name} --binary <path>`")
        }
    }
}
