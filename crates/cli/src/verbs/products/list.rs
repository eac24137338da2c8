//! `weir products list`: prints the products of the library and whether each is installed. Called by `verbs::products`.

use std::path::PathBuf;

use serde::Serialize;
use weir_install::home::Home;
use weir_install::{FoundProgram, InstallError, at_once, quick_find};
use weir_model::product::Product;
use weir_model::release::Age;
use weir_product::catalogue::Catalogue;

use super::proxies;
use crate::exit::{Exit, VerbResult};
use crate::out;

/// A product on this machine.
#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub title: String,
    pub about: String,
    pub speaks: Vec<&'static str>,
    pub profiles: Vec<String>,
    pub installed: Option<String>,
    pub from: Option<String>,
    pub binary: Option<PathBuf>,
    pub missing: Vec<String>,
    /// How old the installed version is; `None`: it is not installed, or no date is known of the product.
    pub age: Option<Age>,
    /// Whether weir may ask a binary for its version.
    #[serde(skip)]
    may_ask: bool,
}

impl Row {
    /// `found` is `None` for a product without a program. An error is a reason for which it is missing.
    pub fn of(product: &Product, found: Option<Result<FoundProgram, InstallError>>) -> Row {
        let (program, missing) = match found {
            None => (None, Vec::new()),
            Some(Ok(program)) => (Some(program), Vec::new()),
            Some(Err(error)) => (None, error.tried()),
        };
        Row {
            name: product.name.clone(),
            title: product.title.clone(),
            about: product.about.clone(),
            speaks: product.speaks.iter().map(|protocol| protocol.as_str()).collect(),
            profiles: product.profiles.keys().cloned().collect(),
            installed: program.as_ref().map(|program| program.version.clone()),
            from: program.as_ref().map(|program| program.from.clone()),
            age: program.as_ref().and_then(|program| product.released.age(&program.version)),
            binary: program.map(|program| program.binary),
            missing,
            may_ask: product.unagreed.is_none(),
        }
    }

    /// Its version and where that is from, that it is unknown, or that it is not installed.
    pub fn state(&self) -> String {
        match (&self.installed, &self.from) {
            (Some(version), Some(from)) => format!("{version} ({from})"),
            _ if self.missing.is_empty() => "needs nothing".to_owned(),
            _ if !self.may_ask => "version unknown".to_owned(),
            _ => "not installed".to_owned(),
        }
    }
}

pub fn main(catalogue: &Catalogue, home: &Home, json: bool) -> VerbResult {
    show(&catalogue.products().values().collect::<Vec<_>>(), home, json)
}

/// The products that are installed, or may be, with how old each version is.
pub fn ages(catalogue: &Catalogue, home: &Home, json: bool) -> VerbResult {
    let rows = rows(&catalogue.products().values().collect::<Vec<_>>(), home);
    let rows: Vec<Row> = rows.into_iter().filter(|row| row.installed.is_some() || !row.may_ask).collect();
    if json {
        return out::json(&rows);
    }
    let words = |row: &Row| row.age.as_ref().map_or("release dates unknown".to_owned(), Age::words);
    let cells = |row: &Row| vec![row.name.clone(), row.state(), words(row)];
    output!("{}", out::columns("lll", usize::MAX, &rows.iter().map(cells).collect::<Vec<_>>()));
    Ok(Exit::Ok)
}

/// Shows these.
pub fn show(products: &[&Product], home: &Home, json: bool) -> VerbResult {
    let rows = rows(products, home);
    if json {
        return out::json(&rows);
    }
    let cells = |row: Row| vec![row.name.clone(), row.state(), row.about];
    let width = out::terminal_width(usize::MAX);
    output!("{}", out::columns("lll", width, &rows.into_iter().map(cells).collect::<Vec<_>>()));
    Ok(Exit::Ok)
}

/// Asks several binaries at once for their versions. An error of one product stays with that product.
fn rows(products: &[&Product], home: &Home) -> Vec<Row> {
    let mut found = at_once(&proxies(products.iter().copied()), |product| quick_find(product, home)).into_iter();
    let row = |product: &&Product| match product.program() {
        None => Row::of(product, None),
        Some(_) => Row::of(product, found.next()),
    };
    products.iter().map(row).collect()
}
