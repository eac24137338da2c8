//! Products that are compiled or assembled here: crates, Go modules, Maven and npm projects. Plans and steps call it.
//!
//! Each build is one call of the language's package manager, with versions and hashes from its lock file or its registry.
//! Downloads stay in the package manager's cache, the result goes to weir's folder, and intermediate files are removed. npm runs
//! no scripts of packages; cargo, go and Maven run the build scripts of theirs.

mod command;
mod newest;
mod run;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use weir_model::product::{Install, Need, Product, Source};

use super::place::{self, InstallFolder};
use super::{InstallContext, InstallError, Latest, Notify, project, tools};
use crate::home::Home;

/// Something to build.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildStep {
    /// The product that wants it.
    product: Box<Product>,
    /// Its way to be installed.
    install: Install,
    /// Where it goes; `None` for the newest version, whose folder is named by what it turns out to be.
    place: Option<InstallFolder>,
}

/// One command of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Job {
    /// Arguments; the first is the program.
    command: Vec<String>,
    /// Where it runs.
    dir: PathBuf,
    /// Variables set on top of the user's own.
    set: Vec<(&'static str, String)>,
    /// Variables taken away.
    unset: &'static [&'static str],
}

impl BuildStep {
    /// The step for one of a product's ways to be installed, or why there is none; `None` when nothing is built that way.
    pub(super) fn new(
        product: &Product,
        install: &Install,
        home: &Home,
        newest: bool,
    ) -> Option<Result<BuildStep, String>> {
        if !matches!(install, Install::Crate { .. } | Install::Go { .. } | Install::Maven { .. } | Install::Npm { .. })
        {
            return None;
        }
        let place = match newest {
            true => Ok(None),
            false => place::of(product, install, home),
        };
        Some(place.map(|place| BuildStep { product: Box::new(product.clone()), install: install.clone(), place }))
    }

    /// Name of the product that wants it.
    pub fn product(&self) -> &str {
        &self.product.name
    }

    pub(super) fn needs(&self) -> Vec<Need> {
        tools::needs(&self.install)
    }

    /// (lock file, how each of its entries begins), and what an entry is.
    fn locked(&self) -> Option<(usize, &'static str)> {
        let (name, file, marker, what) = match &self.install {
            Install::Crate { source: Source::Project(name), .. } => (name, "Cargo.lock", "[[package]]", "crates"),
            Install::Npm { project: name, .. } => (name, "package-lock.json", "\"node_modules/", "packages"),
            _ => return None,
        };
        // The npm lock's entry for the project itself has another name.
        let own = usize::from(file != "Cargo.lock");
        Some((project::locked(&self.product, name, file, marker)? + own, what))
    }
}

impl fmt::Display for BuildStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.product.name;
        let newest = self.place.is_none();
        let of = |source: &Source| match source {
            Source::Package { package, .. } if newest => format!("the newest {package}"),
            Source::Package { package, version } => format!("{package} {version}"),
            Source::Project(project) => format!("products/{name}/{project}"),
        };
        match &self.install {
            Install::Crate { source, .. } => write!(f, "cargo: build {} from source", of(source))?,
            Install::Go { source, .. } => write!(f, "go: build {} from source", of(source))?,
            Install::Maven { project, .. } => write!(f, "mvn package: build products/{name}/{project}")?,
            Install::Npm { project, .. } => {
                write!(f, "npm ci --ignore-scripts: put products/{name}/{project} together")?;
            }
            _ => {}
        }
        match self.locked() {
            Some((count, what)) => write!(f, ", with up to {count} {what} to download")?,
            None => write!(f, ", and download what it is made of")?,
        }
        match &self.place {
            Some(place) => write!(f, ", into {}", place.folder.display()),
            None => write!(f, "; no version and no hash is pinned"),
        }
    }
}

/// Builds the product unless it is installed. Returns what was built when that was the newest version. The caller holds the
/// lock.
pub(super) fn install(
    step: &BuildStep,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<Option<Latest>, InstallError> {
    let pattern = super::find::pattern(&step.install).unwrap_or_default();
    if step.place.as_ref().is_some_and(|place| place.binary(pattern).is_ok()) {
        return Ok(None);
    }
    // A step before this one may have brought them; it may also have brought old ones.
    if let Some(lack) = tools::missing_tools(&step.needs()).first() {
        return Err(InstallError::Tool { product: step.product.name.clone(), lack: lack.to_string() });
    }
    let mut latest = None;
    place::make(&context.home.product(&step.product.name), |work, out| {
        let build = command::of(step, work, out)?;
        run::run(&build.job, work, context, notify)?;
        if let Some(from) = &build.keep_from {
            keep(from, out, pattern, &build.job)?;
        }
        place::binary_in(out, pattern).map_err(|why| wrong(&build.job, why))?;
        match &step.place {
            Some(place) => Ok(place.clone()),
            None => Ok(latest.insert(newest::of(step, out)?).place(&step.product.name, context.home)),
        }
    })?;
    Ok(latest)
}

/// Keeps only the program, at the same relative path.
fn keep(from: &Path, out: &Path, pattern: &str, job: &Job) -> Result<(), InstallError> {
    let binary = place::binary_in(from, pattern).map_err(|why| wrong(job, why))?;
    let to = out.join(binary.strip_prefix(from).unwrap_or(&binary));
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(InstallError::io(parent))?;
    }
    fs::rename(&binary, &to).map_err(InstallError::io(&to))
}

fn wrong(job: &Job, why: String) -> InstallError {
    InstallError::Failed {
        command: super::child::command_line(&job.command),
        outcome: format!("went well, and yet did not make the program: {why}"),
        tail: String::new(),
    }
}
