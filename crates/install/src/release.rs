//! The vendor's own download: fetched, compared with the hash in the product's file, and only then unpacked. Plans and steps
//! call it.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use weir_model::product::{Install, Product};

use super::fetch::{self, Route, fetch};
use super::place::{self, InstallFolder};
use super::unpack::{self, ArchiveKind, UnpackError};
use super::{InstallContext, InstallError, Notify, Progress};
use crate::home::Home;

/// A release to fetch and unpack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseStep {
    /// Name of the product that wants it.
    pub product: String,
    /// Its version.
    pub version: String,
    /// From where, for this architecture.
    pub url: String,
    /// SHA-256 of what is there.
    pub sha256: String,
    /// Where it will be.
    pub folder: PathBuf,
    /// Path of the program inside the archive.
    binary: String,
}

impl fmt::Display for ReleaseStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReleaseStep { url, folder, .. } = self;
        let then = match ArchiveKind::of(file_name(url)) {
            ArchiveKind::Plain => "put it",
            _ => "unpack it",
        };
        write!(f, "download {url}, check its SHA-256, {then} into {}", folder.display())
    }
}

impl ReleaseStep {
    /// The step for one of a product's ways to be installed, or why there is none on this machine; `None` when it is no
    /// release.
    pub(super) fn new(product: &Product, install: &Install, home: &Home) -> Option<Result<ReleaseStep, String>> {
        let Install::Release { version, url, binary, sha256 } = install else { return None };
        let step = || {
            let place = place::of(product, install, home)?.ok_or("it has no folder")?;
            let url = place::for_here(url)?;
            fetch::allowed(url).map_err(|why| format!("{url}: {why}"))?;
            if let Some(end) = unpack::unknown_archive(file_name(url)) {
                return Err(format!("{url}: weir cannot unpack {end}; .tar.gz, .tgz and .zip would be right"));
            }
            Ok(ReleaseStep {
                product: product.name.clone(),
                version: version.clone(),
                url: url.clone(),
                sha256: place::for_here(sha256)?.clone(),
                folder: place.folder,
                binary: binary.clone(),
            })
        };
        Some(step())
    }
}

/// Fetches and unpacks it, unless it is there already. The caller holds the lock.
pub(super) fn install(
    step: &ReleaseStep,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    install_by(step, Route::from_env(), context, notify)
}

/// The same, by another route.
pub(super) fn install_by(
    step: &ReleaseStep,
    route: Route,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    let place = InstallFolder { folder: step.folder.clone(), seal: step.sha256.clone() };
    if place.binary(&step.binary).is_ok() {
        return Ok(());
    }
    let name = file_name(&step.url);
    let parent = context.home.product(&step.product);
    place::make(&parent, |work, out| {
        let file = work.join("download");
        notify(Progress::Action(&format!("download {}", step.url)));
        let fetched = fetch(&step.url, &file, route, &step.remedy(), context.stop, notify)?;
        if !fetched.sha256.eq_ignore_ascii_case(&step.sha256) {
            return Err(InstallError::Hash {
                file: format!("{} ({} bytes)", step.url, fetched.bytes),
                found: fetched.sha256,
                wanted: step.sha256.clone(),
            });
        }
        notify(Progress::Action(&format!("{name}: SHA-256 as expected")));
        let archive = |why: String| InstallError::Archive { file: step.url.clone(), why };
        match ArchiveKind::of(name) {
            ArchiveKind::Plain => put(&file, out, &step.binary)?,
            kind => unpack::unpack(&file, kind, out).map_err(|refused| match refused {
                UnpackError::Invalid(why) => archive(why),
                UnpackError::Io(error) => InstallError::Io { path: out.to_owned(), error },
            })?,
        }
        let binary = place::binary_in(out, &step.binary).map_err(archive)?;
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).map_err(InstallError::io(&binary))?;
        Ok(place)
    })?;
    Ok(())
}

impl ReleaseStep {
    fn remedy(&self) -> String {
        format!(
            "a network (a proxy is taken from https_proxy); or fetch it by other means, and `weir products use {} --binary <path>`",
            self.product
        )
    }
}

/// The download is the program itself.
fn put(file: &std::path::Path, out: &std::path::Path, name: &str) -> Result<(), InstallError> {
    let to = out.join(name);
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(InstallError::io(parent))?;
    }
    fs::rename(file, &to).map_err(InstallError::io(&to))
}

/// The last component of an address, without what asks the server for more.
fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_by_the_address() {
        assert_eq!(file_name("https://example.org/a/x-1.2.tar.gz?download=1#y"), "x-1.2.tar.gz");
        assert_eq!(file_name("https://example.org/"), "");
    }
}
