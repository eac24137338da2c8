//! `weir products path`: prints the path of a product's binary. Called by `verbs::products`.

use weir_install::home::Home;
use weir_install::{self as install, Found};
use weir_product::catalogue::Catalogue;

use crate::exit::{Exit, Failure, VerbResult};

pub const HELP: &str = "Examples:\n  weir products path haproxy\n  $(weir products path haproxy) -vv";

pub fn main(catalogue: &Catalogue, home: &Home, name: &str) -> VerbResult {
    let product = super::with_program(catalogue, name, "weir products path")?;
    match install::quick_find(product, home).map_err(Failure::missing)? {
        Found::Yes(seen) => output!("{}", seen.binary.display()),
        Found::No { tried } => {
            let mend = match super::release_elsewhere(product) {
                Some(release) => format!("weir products install {name}, or {release}"),
                None => format!("weir products install {name}"),
            };
            let tried = tried.join("\n  ");
            return Err(Failure::missing(format!(
                "{} is not installed:\n  {tried}\n  to mend it: {mend}",
                product.title
            )));
        }
    }
    Ok(Exit::Ok)
}
