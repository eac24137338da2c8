//! Installs products that a run can do without, one at a time: what cannot be installed is no error. `weir run` calls it, and `weir
//! products install` without names.

use std::collections::{BTreeMap, BTreeSet};

use weir_install::home::Home;
use weir_install::{self as install, InstallError, Installed, Step};
use weir_model::product::Product;
use weir_model::text::wrapped;

use super::install::{Context, Looked, confirm, failure, look, one_line, usable};
use crate::ask::{asked, can_be_asked};
use crate::exit::Failure;
use crate::out;

/// Result of installing products that a run can do without.
#[derive(Debug, Default)]
pub struct Attempt {
    /// What is installed now, by product name.
    pub here: BTreeMap<String, Installed>,
    /// Products that could not be installed, by name, each with the reason in one line.
    pub failed: BTreeMap<String, String>,
}

/// How steps are planned: with packages of the system or without.
type Plan = fn(&[&Product], &Home) -> Result<Vec<Step>, InstallError>;

/// Like [`ensure`](super::ensure), but one at a time, and a product that cannot be installed is not an error.
///
/// # Errors
/// When the user says no, or stops it.
pub fn attempt(products: &[&Product], home: &Home, yes: bool) -> Result<Attempt, Failure> {
    let planned = Planned::new(look(products, home), home, install::plan);
    if !planned.steps.is_empty() {
        remark!("{NOT_YET}");
        confirm(&planned.steps, yes)?;
    }
    planned.carry_out(home)
}

/// The same for a run, without a question where only weir's own folder changes. Packages of the system need a yes: of `--yes`, or of
/// who sits at a terminal. Without it, products come in ways that need none, and those that have no such way are not installed.
///
/// # Errors
/// When the user stops it.
pub fn attempt_unasked(products: &[&Product], home: &Home, yes: bool) -> Result<Attempt, Failure> {
    let looked = look(products, home);
    let wanting = if yes { BTreeMap::new() } else { wanting_packages(&looked, home) };
    let may = yes || (!wanting.is_empty() && may_install_packages(&wanting)?);
    let mut planned = Planned::new(looked, home, if may { install::plan } else { install::plan_own });
    for (name, why) in &mut planned.attempt.failed {
        if let Some(packages) = wanting.get(name) {
            *why = format!("it needs packages of the system ({packages}), which weir installs only if it may: --yes");
        }
    }
    if !planned.steps.is_empty() {
        remark!("{NOT_YET}");
        planned.steps.iter().for_each(|step| remark!("  - {step}"));
    }
    planned.carry_out(home)
}

const NOT_YET: &str = "Not all of them are installed yet. weir will:";

/// Products whose first way needs packages of the system, each with these.
fn wanting_packages((_, missing): &Looked<'_>, home: &Home) -> BTreeMap<String, String> {
    let packages = |(product, _): &(&Product, InstallError)| {
        let steps = install::plan(&[*product], home).ok()?;
        let packages = steps.iter().find_map(|step| match step {
            Step::Apt(step) => Some(step.packages.join(" ")),
            _ => None,
        })?;
        Some((product.name.clone(), packages))
    };
    missing.iter().filter_map(packages).collect()
}

/// Whether packages may be installed for these products. Where nobody can be asked, they may not, and standard error says so.
fn may_install_packages(wanting: &BTreeMap<String, String>) -> Result<bool, Failure> {
    let names: Vec<&str> = wanting.keys().map(String::as_str).collect();
    let packages: BTreeSet<&str> = wanting.values().flat_map(|packages| packages.split(' ')).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    let what = format!("packages of the system for {} ({})", names.join(", "), packages.join(" "));
    if can_be_asked() {
        return asked(&format!("Install {what}, too?"));
    }
    remark!("{}", wrapped(&format!("Without {what}: --yes would install them."), out::WIDTH, 2));
    Ok(false)
}

/// What is to be done for products, one at a time.
struct Planned<'p> {
    /// So far with what is there, and what cannot be installed.
    attempt: Attempt,
    possible: Vec<&'p Product>,
    steps: Vec<Step>,
    plan: Plan,
}

impl<'p> Planned<'p> {
    fn new((here, missing): Looked<'p>, home: &Home, plan: Plan) -> Planned<'p> {
        let attempt = Attempt { here, failed: BTreeMap::new() };
        let mut planned = Planned { attempt, possible: Vec::new(), steps: Vec::new(), plan };
        for (product, _) in missing {
            match plan(&[product], home) {
                Ok(more) => {
                    planned.steps.extend(more);
                    planned.possible.push(product);
                }
                Err(error) => drop(planned.attempt.failed.insert(product.name.clone(), one_line(&error))),
            }
        }
        planned
    }

    fn carry_out(self, home: &Home) -> Result<Attempt, Failure> {
        let Planned { mut attempt, possible, plan, .. } = self;
        let context = Context::new()?;
        for product in possible {
            match find_or_install(product, home, &context, plan) {
                Ok(installed) => drop(attempt.here.insert(product.name.clone(), installed)),
                Err(error @ InstallError::Interrupted) => return Err(failure(error)),
                Err(error) => {
                    let why = one_line(&error);
                    remark!("  {}: {why}", product.title);
                    attempt.failed.insert(product.name.clone(), why);
                }
            }
        }
        Ok(attempt)
    }
}

/// One product, installed if it is not.
fn find_or_install(product: &Product, home: &Home, context: &Context, plan: Plan) -> Result<Installed, InstallError> {
    context.run(&plan(&[product], home)?, home)?;
    usable(product, install::find(product, home)?)
}
