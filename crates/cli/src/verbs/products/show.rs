//! `weir products show`: prints one product of the library. Called by `verbs::products`.

use serde::Serialize;
use weir_install::home::Home;
use weir_install::quick_find;
use weir_model::product::{BuildTool, Install, Product, ProductKind, Source};
use weir_model::release::Age;
use weir_model::text::wrapped;
use weir_product::catalogue::Catalogue;

use super::list::Row;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;

/// Width of notes; other texts are often longer than a line, with paths and commands to copy.
const WIDTH: usize = 74;

#[derive(Debug, Serialize)]
struct ProductDetails<'a> {
    #[serde(flatten)]
    row: Row,
    home: &'a str,
    ways: Vec<String>,
    caches: bool,
    notes: &'a [String],
}

pub fn main(catalogue: &Catalogue, home: &Home, name: &str, json: bool) -> VerbResult {
    let product = catalogue.product(name, "weir products show").map_err(Failure::input)?;
    let found = match product.program().map(|_| quick_find(product, home)) {
        Some(Err(error)) if product.unagreed.is_none() && !error.is_missing() => return Err(Failure::missing(error)),
        found => found,
    };
    let details = ProductDetails {
        row: Row::of(product, found),
        home: &product.home,
        ways: ways(product),
        caches: product.caches,
        notes: &product.notes,
    };
    if json {
        return out::json(&details);
    }
    output!("{}: {}\n{}\n", product.title, product.about, product.home);
    let row = &details.row;
    let installed = match &row.binary {
        Some(binary) => format!("{}, {}", row.state(), binary.display()),
        None => row.state(),
    };
    let program = product.program().filter(|program| program.has_parts());
    let parts: Vec<&str> = program.iter().flat_map(|program| &program.parts).map(|part| part.name.as_str()).collect();
    let caches = if details.caches { "it answers from its own cache" } else { "" };
    let rows = [
        ("state", installed),
        ("age", row.age.as_ref().map(Age::words).unwrap_or_default()),
        ("why not", row.missing.join("\n")),
        ("install from", details.ways.join("\n")),
        ("image", product.image.clone().unwrap_or_default()),
        ("served at", product.served().map(|served| served.address.clone()).unwrap_or_default()),
        ("speaks", row.speaks.join(", ")),
        ("parts", parts.join(", ")),
        ("caches", caches.to_owned()),
    ];
    let notes = details.notes.iter().map(|note| ("note", wrapped(note, WIDTH, 0)));
    let rows = rows
        .into_iter()
        .chain(notes)
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| vec![name.to_owned(), text]);
    output!("{}", out::columns("ll", usize::MAX, &rows.collect::<Vec<_>>()));
    for profile in product.profiles.values() {
        output!("\nprofile {}: {}", profile.name, profile.about);
        for reason in &profile.reasons {
            output!("  {}\n      {}\n      {}", reason.setting, reason.why, reason.source);
        }
    }
    Ok(Exit::Ok)
}

fn ways(product: &Product) -> Vec<String> {
    match &product.kind {
        ProductKind::Direct | ProductKind::Served(_) => Vec::new(),
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
        Install::Build { tool: BuildTool::Npm, source: Source::Project(project), .. } => {
            format!("products/{name}/{project}, assembled here (npm)")
        }
        Install::Build { tool, source, .. } => match tool {
            BuildTool::Cargo => of("crate", source),
            BuildTool::Go => of("Go module", source),
            BuildTool::Maven => of("Maven", source),
            BuildTool::Npm => of("npm", source),
        },
        Install::Release { version, build, fetched, .. } => {
            let built = if build.is_empty() { "" } else { " in source, built here" };
            let never = if *fetched { "" } else { "; never fetched by weir's makers" };
            format!("the vendor's release {version}{built}, verified by its SHA-256{never}")
        }
        Install::Own { at, about } => {
            format!("a binary of yours: {about}, from {at}; then `weir products use {name} --binary <path>`")
        }
    }
}
