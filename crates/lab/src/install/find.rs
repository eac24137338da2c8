//! Looking for a product, without changing anything.

use std::path::{Path, PathBuf};

use weir_model::product::{Install, Product, ProductKind, Program};

use super::{Found, InstallError, Installed, apt, digest, lookup, version, wheel};
use crate::home::Home;
use crate::render::RenderError;

/// Looks for `product` by each of its ways in order; the first whose binary says an acceptable version wins. Never
/// installs anything.
///
/// # Errors
/// Only when the product's own file is wrong. What is wrong with this machine is in [`Found::No`].
pub fn find(product: &Product, home: &Home) -> Result<Found, InstallError> {
    let program = program_of(product)?;
    let mut tried = Vec::new();
    for install in &program.installs {
        match look(product, program, install, home)? {
            Ok(installed) => return Ok(Found::Yes(installed)),
            Err(why) => tried.push(format!("{}: {why}", label(install))),
        }
    }
    Ok(Found::No { tried })
}

/// The program of a product that has one.
pub(super) fn program_of(product: &Product) -> Result<&Program, InstallError> {
    match &product.kind {
        ProductKind::Proxy(program) => Ok(program),
        ProductKind::Direct => Err(RenderError::NoProgram { product: product.name.clone() }.into()),
    }
}

/// A way to install, in words.
pub(super) fn label(install: &Install) -> String {
    match install {
        Install::System { binary } => format!("system ({binary})"),
        Install::Apt { package, .. } => format!("apt {package}"),
        Install::Wheel { package, version, .. } => format!("wheel {package} {version}"),
        Install::Crate { .. } => "crate".to_owned(),
        Install::Go { .. } => "go".to_owned(),
        Install::Maven { project, .. } => format!("maven {project}"),
        Install::Npm { project, .. } => format!("npm {project}"),
        Install::Release { version, .. } => format!("release {version}"),
        Install::Own { .. } => "own".to_owned(),
    }
}

fn look(
    product: &Product,
    program: &Program,
    install: &Install,
    home: &Home,
) -> Result<Result<Installed, String>, InstallError> {
    let binary = match locate(product, install, home) {
        Ok(binary) => binary,
        Err(why) => return Ok(Err(why)),
    };
    let version = match version::read(product, &program.version, &binary, version::LIMIT)? {
        Ok(version) => version,
        Err(why) => return Ok(Err(why)),
    };
    let sha256 = match digest::of_file(&binary) {
        Ok(sha256) => sha256,
        Err(error) => return Ok(Err(format!("{} cannot be read: {error}", binary.display()))),
    };
    let from = origin(program, install, &binary);
    Ok(Ok(Installed { binary, version, sha256, from }))
}

/// The binary of one way to install, or why there is none.
pub(super) fn locate(product: &Product, install: &Install, home: &Home) -> Result<PathBuf, String> {
    match install {
        Install::System { binary } => {
            lookup::on_path(binary).ok_or_else(|| "not in PATH, nor in the usual folders".to_owned())
        }
        Install::Apt { binary, .. } if lookup::is_executable(binary) => Ok(binary.clone()),
        Install::Apt { binary, .. } => Err(format!("not installed (no {})", binary.display())),
        Install::Wheel { version, binary, sha256, .. } => {
            let folder = home.product(&product.name).join(version);
            wheel::installed(&folder, binary, sha256)
        }
        Install::Crate { .. }
        | Install::Go { .. }
        | Install::Maven { .. }
        | Install::Npm { .. }
        | Install::Release { .. }
        | Install::Own { .. } => Err("this weir cannot do that yet".to_owned()),
    }
}

/// What is found in PATH is mostly what a package put there: the record then says which package, and its full version.
fn origin(program: &Program, install: &Install, binary: &Path) -> String {
    if let Install::Wheel { package, version, .. } = install {
        return format!("wheel {package} {version}");
    }
    let real = binary.canonicalize().ok();
    let package = program.installs.iter().find_map(|install| match install {
        Install::Apt { package, binary } if binary.canonicalize().ok() == real => Some(package),
        _ => None,
    });
    let packaged = package.and_then(|package| Some(format!("apt {package} {}", apt::installed_version(package)?)));
    packaged.unwrap_or_else(|| "system".to_owned())
}
