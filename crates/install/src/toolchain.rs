//! The Rust that a product names, where the one in PATH does not fit: its version is looked up, and one that fits is kept in weir's
//! own folder. Plans and builds call it.
//!
//! Debian's packages are downloaded and unpacked, not installed, so that neither root nor a change of the system is needed; apt
//! checks them against its signed lists. Where no package fits, rustup brings a toolchain into the same folder. A folder is complete
//! or absent, as those of products are.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_model::product::RustNeed;

use super::build::{Job, run};
use super::child::{self, words};
use super::place::{self, InstallFolder};
use super::{InstallContext, InstallError, Notify, lookup, tools};
use crate::home::Home;

/// Responses of apt from its lists.
const RESPONSE: Duration = Duration::from_secs(30);
/// What is found in the folder of a toolchain, whichever means brought it.
const COMPILERS: [&str; 2] = ["usr/bin/rustc", "toolchains/*/bin/rustc"];

/// A compiler that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Toolchain {
    /// The folder of rustc and cargo.
    bin: PathBuf,
    /// Folders of the libraries that they need; none for one that is installed.
    lib: Vec<PathBuf>,
}

impl Toolchain {
    /// The program of that name.
    pub(super) fn program(&self, name: &str) -> String {
        self.bin.join(name).display().to_string()
    }

    /// The variables with which it is used.
    pub(super) fn set(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut set = vec![
            ("PATH".to_owned(), format!("{}:{path}", self.bin.display())),
            ("RUSTC".to_owned(), self.program("rustc")),
        ];
        if !self.lib.is_empty() {
            let lib: Vec<String> = self.lib.iter().map(|folder| folder.display().to_string()).collect();
            set.push(("LD_LIBRARY_PATH".to_owned(), lib.join(":")));
        }
        set
    }
}

/// A toolchain that is to be kept in weir's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolchainStep {
    need: RustNeed,
    /// In the order in which they are tried.
    means: Vec<Means>,
    /// Where toolchains are kept.
    parent: PathBuf,
}

/// What brings a toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Means {
    /// Packages and what they need beside what is installed, each as `name=version`; the version of the first.
    Debian { packages: Vec<String>, version: String },
    /// `rustup toolchain install`.
    Rustup { version: String },
}

impl fmt::Display for ToolchainStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.need)?;
        for (index, means) in self.means.iter().enumerate() {
            let or = if index == 0 { "" } else { ", or, where that fails, " };
            match means {
                Means::Debian { version, packages } => {
                    write!(f, "{or}apt-get download {} packages of {version}", packages.len())?;
                }
                Means::Rustup { version } => write!(f, "{or}rustup toolchain install {version}")?,
            }
        }
        write!(f, ", into {}; nothing is installed into the system", self.parent.display())
    }
}

/// A compiler that fits: the one in PATH, or one that is kept; else why there is none.
pub(super) fn find(need: &RustNeed, home: &Home) -> Result<Toolchain, String> {
    let in_path = lookup::on_path("rustc").filter(|_| lookup::on_path("cargo").is_some());
    let version = in_path.as_deref().and_then(tools::version_of);
    if let (Some(path), Some(_)) = (&in_path, version.as_ref().filter(|version| need.fits(version))) {
        let bin = path.parent().unwrap_or(Path::new("/")).to_owned();
        return Ok(Toolchain { bin, lib: Vec::new() });
    }
    kept(need, home).ok_or_else(|| match (in_path, version) {
        (None, _) => "rustc and cargo are not in PATH".to_owned(),
        (_, None) => "the rustc in PATH says no version".to_owned(),
        (_, Some(version)) => format!("the rustc in PATH is {version}"),
    })
}

/// One that fits in weir's folder, by the version in its name.
fn kept(need: &RustNeed, home: &Home) -> Option<Toolchain> {
    let folders = fs::read_dir(home.toolchains()).ok()?.flatten().map(|entry| entry.path());
    let version = |folder: &Path| Some(folder.file_name()?.to_str()?.strip_prefix("rust-")?.to_owned());
    folders.into_iter().find_map(|folder| {
        let version = version(&folder).filter(|version| need.fits(version))?;
        let place = place_of(&folder, &version);
        let rustc = COMPILERS.iter().find_map(|pattern| place.binary(pattern).ok())?;
        let bin = rustc.parent()?.to_owned();
        // Of Debian's packages, the libraries are beside, or in `lib` itself, which a system has as a link to `usr/lib`; rustup's finds
        // its own.
        let libs = [bin.parent()?.join("lib"), folder.join("lib")];
        let folders =
            libs.iter().filter_map(|lib| fs::read_dir(lib).ok()).flatten().flatten().map(|entry| entry.path());
        let lib = folders.filter(|path| path.to_string_lossy().ends_with("-linux-gnu")).collect();
        Some(Toolchain { bin, lib })
    })
}

fn place_of(folder: &Path, version: &str) -> InstallFolder {
    InstallFolder { folder: folder.to_owned(), seal: format!("rust {version}") }
}

/// How one that fits can be had, or why it cannot.
pub(super) fn plan(need: &RustNeed, home: &Home) -> Result<ToolchainStep, String> {
    let (mut means, mut why) = (Vec::new(), Vec::new());
    match debian(need) {
        Ok(debian) => means.push(debian),
        Err(reason) => why.push(reason),
    }
    match lookup::on_path("rustup") {
        Some(_) => means.push(Means::Rustup { version: need.at_least.clone() }),
        None => why.push("rustup is not in PATH (https://rustup.rs brings it)".to_owned()),
    }
    if means.is_empty() {
        return Err(why.join("; "));
    }
    Ok(ToolchainStep { need: need.clone(), means, parent: home.toolchains() })
}

/// The packages of the first version that fits.
fn debian(need: &RustNeed) -> Result<Means, String> {
    let Some(first) = need.packages.first() else { return Err("no Debian package is known".to_owned()) };
    if ["apt-get", "apt-cache", "dpkg-deb"].iter().any(|program| lookup::on_path(program).is_none()) {
        return Err("there is no apt on this machine".to_owned());
    }
    let known = child::ask(&words(&format!("apt-cache madison {first}")), RESPONSE).unwrap_or_default();
    let versions: Vec<&str> = known.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
    let Some(version) = versions.iter().find(|version| need.fits(version)) else {
        let has = if versions.is_empty() { "none".to_owned() } else { versions.join(", ") };
        return Err(format!("apt's lists have {first} in version {has} (`apt-get update` brings new lists)"));
    };
    let wanted: Vec<String> = need.packages.iter().map(|package| format!("{package}={version}")).collect();
    let mut command = words("apt-get --print-uris -qq -y --no-install-recommends install --");
    command.extend(wanted.iter().cloned());
    let response = child::ask_much(&command, RESPONSE).unwrap_or_default();
    let packages: Vec<String> = response.lines().filter_map(package_of).collect();
    match packages.is_empty() {
        true => Err(format!("apt cannot say what {} needs", wanted.join(" "))),
        false => Ok(Means::Debian { packages, version: (*version).to_owned() }),
    }
}

/// `name=version` from a line such as `'http://…' libllvm19_1%3a19.1.7-3_amd64.deb 25913856 MD5Sum:…`.
fn package_of(line: &str) -> Option<String> {
    let file = line.strip_prefix('\'')?.split_whitespace().nth(1)?;
    let mut parts = file.strip_suffix(".deb")?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(format!("{name}={}", version.replace("%3a", ":")))
}

/// Brings it, by the first means that works. The caller holds the lock.
pub(super) fn install(
    step: &ToolchainStep,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    if find(&step.need, context.home).is_ok() {
        return Ok(());
    }
    let mut failed = Vec::new();
    for means in &step.means {
        match bring(step, means, context, notify) {
            Err(error @ InstallError::Failed { .. }) => failed.push(error.to_string()),
            result => return result,
        }
    }
    Err(InstallError::Message(format!("no {} can be had:\n  {}", step.need, failed.join("\n  "))))
}

fn bring(
    step: &ToolchainStep,
    means: &Means,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    let job = |command: Vec<String>, dir: &Path, set| Job { command, dir: dir.to_owned(), set, keep_from: None };
    place::make(&step.parent, |work, out| {
        match means {
            Means::Debian { packages, .. } => {
                let download = [words("apt-get -q download"), packages.clone()].concat();
                run(&job(download, work, Vec::new()), &[], work, context, notify)?;
                let mut archives = lookup::matching(work, "*.deb");
                archives.sort();
                for archive in archives {
                    let unpack = ["dpkg-deb", "--extract"].map(str::to_owned);
                    let paths = [&archive, out].map(|path| path.display().to_string());
                    run(&job([unpack, paths].concat(), work, Vec::new()), &[], work, context, notify)?;
                }
            }
            Means::Rustup { version } => {
                let command = words(&format!("rustup toolchain install {version} --profile minimal --no-self-update"));
                let set = vec![("RUSTUP_HOME".to_owned(), out.display().to_string())];
                run(&job(command, work, set), &["RUSTUP_TOOLCHAIN"], work, context, notify)?;
            }
        }
        let rustc = COMPILERS.iter().find_map(|pattern| place::binary_in(out, pattern).ok());
        // Debian's libraries are elsewhere until they have their place: the packages' version is the compiler's.
        let version = match means {
            Means::Debian { version, .. } => tools::first_version(version),
            Means::Rustup { .. } => rustc.as_deref().and_then(tools::version_of),
        };
        match version.filter(|version| rustc.is_some() && step.need.fits(version)) {
            Some(version) => Ok(place_of(&step.parent.join(format!("rust-{version}")), &version)),
            None => Err(InstallError::Message(format!("{means:?} brought no {}", step.need))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(below: Option<&str>) -> RustNeed {
        let packages = vec!["weir-no-such-package".to_owned()];
        RustNeed { at_least: "1.85".to_owned(), below: below.map(str::to_owned), packages }
    }

    #[test]
    fn a_package_is_read_from_what_apt_prints() {
        let line = "'http://example.org/libllvm19_19.1.7-3%7edeb12u1_amd64.deb' libllvm19_1%3a19.1.7-3~deb12u1_amd64.deb 9 MD5Sum:0";
        assert_eq!(package_of(line).as_deref(), Some("libllvm19=1:19.1.7-3~deb12u1"));
        assert_eq!(package_of("E: Unable to locate package x"), None);
    }

    #[test]
    fn one_in_weirs_folder_is_found_by_its_version_and_only_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let folder = home.toolchains().join("rust-1.85.0");
        let rustc = folder.join("usr/bin/rustc");
        for made in ["usr/bin", "usr/lib/x86_64-linux-gnu", "usr/lib/rustlib", "lib/x86_64-linux-gnu"] {
            fs::create_dir_all(folder.join(made)).unwrap();
        }
        super::super::tests::script(&rustc, "echo rustc 1.85.0");
        // No rustc that is in PATH is below 1.85.1 and not below 1.85.
        let need = need(Some("1.85.1"));
        assert_eq!(kept(&need, &home), None, "it has no seal");
        fs::write(folder.join(".weir-seal"), "rust 1.85.0\n").unwrap();
        let found = kept(&need, &home).expect("it is there");
        assert_eq!(found.program("rustc"), rustc.display().to_string());
        let set = found.set();
        let lib = ["usr/lib", "lib"].map(|lib| folder.join(lib).join("x86_64-linux-gnu").display().to_string());
        assert!(set.contains(&("LD_LIBRARY_PATH".to_owned(), lib.join(":"))), "{set:?}");
        let newer = RustNeed { at_least: "1.86".to_owned(), below: None, packages: Vec::new() };
        assert_eq!(kept(&newer, &home), None);
    }

    #[test]
    fn one_that_no_package_brings_says_so() {
        let why = debian(&need(None)).unwrap_err();
        assert!(why.contains("weir-no-such-package in version none") || why.contains("no apt"), "{why}");
        let step = ToolchainStep {
            need: need(Some("1.86")),
            means: vec![
                Means::Debian { packages: words("a=1 b=1"), version: "1.85.0+dfsg3".to_owned() },
                Means::Rustup { version: "1.85".to_owned() },
            ],
            parent: "/home/toolchains".into(),
        };
        assert_eq!(
            step.to_string(),
            "Rust 1.85 or later, below 1.86: apt-get download 2 packages of 1.85.0+dfsg3, or, where that fails, rustup toolchain \
             install 1.85, into /home/toolchains; nothing is installed into the system"
        );
    }
}
