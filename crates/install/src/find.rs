//! Finding an installed product, without changing anything.

use std::path::{Path, PathBuf};

use weir_model::product::{Install, Product, Program, Source};

use rayon::prelude::*;

use super::{FoundProgram, InstallError, Installed, apt, lookup, place, using, version};
use crate::home::Home;
use weir_product::render::RenderError;

/// Looks for `product`: what the user chose for it, else by each of its ways in order; the first whose binary says an
/// acceptable version wins. Never installs anything.
///
/// # Errors
/// When it is not there ([`InstallError::is_missing`]), or when the product's own file is wrong, or that which keeps the user's choice.
pub fn find(product: &Product, home: &Home) -> Result<Installed, InstallError> {
    let FoundProgram { binary, version, from } = quick_find(product, home)?;
    let unreadable = |error| unusable(product, vec![format!("{} cannot be read: {error}", binary.display())]);
    let sha256 = lookup::sha256(&binary).map_err(unreadable)?;
    let mut installed = Installed { binary, version, sha256, from };
    if using::changed(&product.name, &installed, home) {
        installed.from.push_str(", changed since it was chosen");
    }
    Ok(installed)
}

/// [`find`] without reading all of the binary, which takes a moment for large ones.
///
/// # Errors
/// As [`find`].
pub fn quick_find(product: &Product, home: &Home) -> Result<FoundProgram, InstallError> {
    if let Some(chosen) = using::chosen_program(product, home)? {
        return Ok(chosen);
    }
    let mut tried = Vec::new();
    for install in &program_of(product)?.installs {
        match probe(product, install, home)? {
            Ok(found) => return Ok(found),
            Err(why) => tried.push(format!("{}: {why}", label(install))),
        }
    }
    Err(unusable(product, tried))
}

/// The result of [`find`] or [`quick_find`] for each product, several at once: asking twenty binaries for their versions one after the
/// other takes seconds. Most of the time is spent waiting for a process to load, so there are more threads than CPUs.
pub fn at_once<R: Send>(products: &[&Product], ask: impl Fn(&Product) -> R + Send + Sync) -> Vec<R> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    match rayon::ThreadPoolBuilder::new().num_threads(cpus * 2).build() {
        Ok(pool) => pool.install(|| products.par_iter().map(|product| ask(product)).collect()),
        Err(_) => products.iter().map(|product| ask(product)).collect(),
    }
}

/// Where a program of `product` is, without running it, and so without its version, by which [`find`] may take another: what the user
/// chose, else the first of its ways by which one is there.
///
/// # Errors
/// When it is not there, or the user's choice cannot be read.
pub fn locate_any(product: &Product, home: &Home) -> Result<PathBuf, InstallError> {
    if let Some(own) = using::using(&product.name, home)? {
        return Ok(own.binary);
    }
    let mut tried = Vec::new();
    for install in product.program().into_iter().flat_map(|program| &program.installs) {
        match locate(product, install, home) {
            Ok(binary) => return Ok(binary),
            Err(why) => tried.push(format!("{}: {why}", label(install))),
        }
    }
    Err(unusable(product, tried))
}

fn unusable(product: &Product, tried: Vec<String>) -> InstallError {
    InstallError::Unusable { product: product.name.clone(), tried }
}

/// The program of a product that has one, and that weir may run. Whatever looks for a product or plans to install it begins here.
pub(super) fn program_of(product: &Product) -> Result<&Program, InstallError> {
    if let Some(library) = &product.unagreed {
        return Err(InstallError::Unagreed(library.folder.clone()));
    }
    product.program().ok_or_else(|| RenderError::NoProgram(product.name.clone()).into())
}

/// A source, in words.
pub(super) fn label(install: &Install) -> String {
    let method = install.method();
    match install {
        Install::System { binary } => format!("{method} ({binary})"),
        Install::Apt { package, .. } => format!("{method} {package}"),
        Install::Wheel { package, version, .. }
        | Install::Build { source: Source::Package { package, version }, .. } => {
            format!("{method} {package} {version}")
        }
        Install::Build { source: Source::Project(project), .. } => format!("{method} project {project}"),
        Install::Release { version, .. } => format!("{method} {version}"),
        Install::Own { .. } => method.to_owned(),
    }
}

/// Looks for the product of one source. The inner error says why it cannot be used.
pub(super) fn probe(
    product: &Product,
    install: &Install,
    home: &Home,
) -> Result<Result<FoundProgram, String>, InstallError> {
    let program = program_of(product)?;
    let read = |binary: PathBuf| {
        let version = version::read(product, program.version.at_least.as_deref(), &binary, version::LIMIT)?;
        let from = || origin(product, program, install, &binary, home);
        Ok(version.map(|version| FoundProgram { from: from(), version, binary: binary.clone() }))
    };
    locate(product, install, home).map_or_else(|why| Ok(Err(why)), read)
}

/// The binary of one way to install, or why there is none.
pub(super) fn locate(product: &Product, install: &Install, home: &Home) -> Result<PathBuf, String> {
    match install {
        Install::System { binary } => {
            return lookup::on_path(binary).ok_or_else(|| "not in PATH, nor in the usual folders".to_owned());
        }
        Install::Apt { binary, .. } if lookup::is_executable(binary) => return Ok(binary.clone()),
        Install::Apt { binary, .. } => return Err(format!("not installed (no {})", binary.display())),
        Install::Own { at, about } => {
            let name = &product.name;
            return Err(format!("none given; {about}, from {at}; then: weir products use {name} --binary <path>"));
        }
        _ => {}
    }
    match (place::of(product, install, home)?, install.binary_inside()) {
        (Some(place), Some(pattern)) => place.binary(pattern),
        _ => Err("not installed".to_owned()),
    }
}

/// What is found in PATH is mostly what a package put there: the record then says which package, and its full version.
fn origin(product: &Product, program: &Program, install: &Install, binary: &Path, home: &Home) -> String {
    let place = place::of(product, install, home).ok().flatten();
    let built_with = place.and_then(|place| place.built_with()).map(|with| format!(", built with {with}"));
    let built_with = built_with.unwrap_or_default();
    if let Some(name) = install.project() {
        let digest = super::project::digest(product, name).unwrap_or_default();
        return format!("{} {}{built_with}", label(install), digest.get(..12).unwrap_or_default());
    }
    if install.binary_inside().is_some() {
        return format!("{}{built_with}", label(install));
    }
    let real = binary.canonicalize().ok();
    let package = program.installs.iter().find_map(|install| match install {
        Install::Apt { package, binary } if binary.canonicalize().ok() == real => Some(package),
        _ => None,
    });
    let packaged = package.and_then(|package| Some(format!("apt {package} {}", apt::installed_version(package)?)));
    packaged.unwrap_or_else(|| "system".to_owned())
}
