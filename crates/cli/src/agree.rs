//! The user's agreement that weir runs what a library of theirs names: asked for once, and known again by the library's hash. Verbs
//! that only look do not ask, and run nothing of it.

use std::collections::{BTreeMap, BTreeSet};

use weir_install::home::Home;
use weir_install::{InstallError, agreed};
use weir_model::product::{Library, Product, Program};
use weir_model::text::{hanging, wrapped};
use weir_product::catalogue::Catalogue;

use crate::ask::{self, Consent};
use crate::exit::Failure;
use crate::out;

/// Makes sure that weir may run these products, of which some may be unknown: asks for each of their libraries, unless the user agreed beforehand.
/// Whether there was any to ask for.
///
/// # Errors
/// When the user says no, or cannot be asked.
pub fn ensure<'n>(
    catalogue: &mut Catalogue,
    names: impl IntoIterator<Item = &'n String>,
    consent: Consent,
) -> Result<bool, Failure> {
    let libraries: BTreeSet<Library> =
        products(catalogue, names).filter_map(|product| product.unagreed.clone()).collect();
    for library in &libraries {
        ask_for(library, catalogue, consent)?;
        catalogue.agree(|other| other.sha256 == library.sha256);
        let home = Home::from_env().map_err(Failure::input)?;
        if let Err(error) = agreed::remember(library, &home) {
            remark!("weir: it will be asked for again, because it cannot be noted: {error}");
        }
    }
    Ok(!libraries.is_empty())
}

/// Says of which of these products the version is unknown because weir may not run them yet, and why.
pub fn say_unagreed<'n>(catalogue: &Catalogue, names: impl IntoIterator<Item = &'n String>) {
    let mut by_library: BTreeMap<&Library, BTreeSet<&str>> = BTreeMap::new();
    for product in products(catalogue, names) {
        if let Some(library) = &product.unagreed {
            by_library.entry(library).or_default().insert(&product.name);
        }
    }
    for (library, names) in by_library {
        let names: Vec<&str> = names.into_iter().collect();
        let why = InstallError::Unagreed(library.folder.clone());
        remark!("{}", wrapped(&format!("weir: {}: {why}", names.join(", ")), out::WIDTH, 2));
    }
}

fn products<'c, 'n>(
    catalogue: &'c Catalogue,
    names: impl IntoIterator<Item = &'n String>,
) -> impl Iterator<Item = &'c Product> {
    names.into_iter().filter_map(|name| catalogue.products().get(name))
}

/// Shows what each product of a library names, and asks.
fn ask_for(library: &Library, catalogue: &Catalogue, consent: Consent) -> Result<(), Failure> {
    let folder = library.folder.display();
    remark!("weir will run what the library {folder} names, with your rights:");
    let of_library = |product: &&Product| product.unagreed.as_ref().is_some_and(|own| own.sha256 == library.sha256);
    for product in catalogue.products().values().filter(of_library) {
        let named = product.program().map(named).unwrap_or_default();
        remark!("{}", hanging(&format!("  - {}: ", product.name), &named.join(", "), out::WIDTH));
    }
    ask::agreed("Run them?", &format!("the library {folder} names programs to run"), "nothing of it was run", consent)
}

/// The commands of a program, and what is built of it. All is escaped as in its file, so that it does not draw on the terminal.
fn named(program: &Program) -> Vec<String> {
    let commands = program.commands().map(|command| format!("{command:?}"));
    let builds = program.installs.iter().filter_map(|install| Some((install.project()?, install.method())));
    commands.chain(builds.map(|(project, method)| format!("a build of {project:?} ({method})"))).collect()
}
