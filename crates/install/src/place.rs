//! The folder of an installed product, which is either complete or absent. All sources but apt call it.
//!
//! The folder is `$WEIR_HOME/products/<name>/<source>-<version>/`, with a seal that is written last. An install works in a
//! temporary folder beside it and renames that at the end. An interrupted install leaves only a temporary folder, which the next
//! install removes. The hashes of all files are kept beside the seal: what was changed since is not what was installed.

use std::env::consts::ARCH;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use weir_model::product::{Install, Product, Source};
use weir_model::regular;
use weir_model::seal::Seal;

use super::{InstallError, lookup, project};
use crate::home::Home;

/// Written last, inside the folder: what is there is whole, and what it is. A second line says what compiled it, where that is known.
const SEAL: &str = ".weir-seal";
/// The SHA-256 of each file in the folder.
const SUMS: &str = ".weir-sums";
/// Begins the names of folders in the making.
const PARTIAL: &str = ".partial-";

/// A folder for one way to install, and what its seal says when it is that and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstallFolder {
    pub(super) folder: PathBuf,
    pub(super) seal: String,
}

/// The place of one way to install; `None` for ways whose binaries are elsewhere. The error says why there is none on
/// this machine.
pub(super) fn of(product: &Product, install: &Install, home: &Home) -> Result<Option<InstallFolder>, String> {
    let place = |version: &str, seal: String| {
        let folder = home.product(&product.name).join(format!("{}-{}", install.method(), plain(version)));
        Ok(Some(InstallFolder { folder, seal }))
    };
    let method = install.method();
    match install {
        Install::System { .. } | Install::Apt { .. } | Install::Own { .. } => Ok(None),
        Install::Wheel { version, sha256, .. } => place(version, for_here(sha256)?.clone()),
        Install::Release { version, sha256, build, .. } => {
            let built: String = build.iter().map(|command| format!(" {}", command.join(" "))).collect();
            place(version, format!("{}{built}", for_here(sha256)?))
        }
        Install::Build { source, features, rust, env, .. } => {
            let features = features.iter().map(|feature| format!(" +{feature}"));
            let made_by = rust.iter().map(|rust| format!(" ({rust})"));
            let env = env.iter().map(|(name, value)| format!(" {name}={value}"));
            let features: String = features.chain(made_by).chain(env).collect();
            match source {
                Source::Package { package, version } => {
                    place(version, format!("{method} {package} {version}{features}"))
                }
                Source::Project(name) => {
                    let digest = project::digest(product, name)
                        .ok_or_else(|| format!("the product's folder has no files below {name}/"))?;
                    let version = digest.get(..12).unwrap_or(&digest);
                    place(version, format!("{method} project {name} {digest}{features}"))
                }
            }
        }
    }
}

/// What is stated by architecture, for this one.
pub(super) fn for_here<T>(by_architecture: &std::collections::BTreeMap<String, T>) -> Result<&T, String> {
    by_architecture.get(ARCH).ok_or_else(|| {
        let known: Vec<&str> = by_architecture.keys().map(String::as_str).collect();
        format!("none for {ARCH}, only for {}", known.join(", "))
    })
}

/// A version as part of a folder's name. Product files can come from anybody.
pub(super) fn plain(version: &str) -> String {
    version.chars().map(|c| if c.is_ascii_alphanumeric() || ".+_-".contains(c) { c } else { '_' }).collect()
}

impl InstallFolder {
    /// The binary in there, or why there is none.
    pub(super) fn binary(&self, pattern: &str) -> Result<PathBuf, String> {
        let Ok(seal) = fs::read_to_string(self.folder.join(SEAL)) else {
            return Err(format!("not installed (nothing in {})", self.folder.display()));
        };
        let seal = seal.lines().next().unwrap_or_default().trim();
        if seal != self.seal {
            return Err(format!("{} holds something else ({seal})", self.folder.display()));
        }
        self.check()?;
        binary_in(&self.folder, pattern)
    }

    /// Whether the files are those that were installed. Only those that the file system calls changed since then are read: a product may
    /// have 200 MB, and nothing changes a file, not even with its old times, without that. An older weir noted no hashes.
    fn check(&self) -> Result<(), String> {
        let sums = self.folder.join(SUMS);
        let Ok(since) = sums.metadata().map(|about| changed(&about)) else { return Ok(()) };
        let mut seal =
            regular::read_text(&sums).map_err(|error| error.to_string()).and_then(|text| Seal::parse(&text))?;
        seal.retain(|name| self.folder.join(name).metadata().map_or(true, |about| changed(&about) > since));
        match seal.flaws(&self.folder).as_slice() {
            [] => Ok(()),
            [flaw, ..] => {
                Err(format!("{} is not what was installed: {}", self.folder.join(&flaw.file).display(), flaw.why))
            }
        }
    }

    /// What compiled the program in there, where that was noted.
    pub(super) fn built_with(&self) -> Option<String> {
        Some(fs::read_to_string(self.folder.join(SEAL)).ok()?.lines().nth(1)?.to_owned())
    }
}

/// When the file system last changed anything of a file, in seconds and nanoseconds.
fn changed(about: &fs::Metadata) -> (i64, i64) {
    (about.ctime(), about.ctime_nsec())
}

/// Notes in a folder in the making what compiled the program: the second line of its seal.
pub(super) fn note_built_with(out: &Path, compiler: &str) -> Result<(), InstallError> {
    let path = out.join(SEAL);
    fs::write(&path, format!("{compiler}\n")).map_err(InstallError::io(&path))
}

/// The one file below `folder` that fits.
pub(super) fn binary_in(folder: &Path, pattern: &str) -> Result<PathBuf, String> {
    let found = lookup::matching(folder, pattern);
    match <[PathBuf; 1]>::try_from(found) {
        Ok([binary]) => Ok(binary),
        Err(found) => Err(format!("{} files in it fit `{pattern}`; one was wanted", found.len())),
    }
}

/// Makes a product's folder. `fill` gets a folder to work in, of which nothing stays, and one whose content becomes the
/// place that it returns. The caller holds the lock.
pub(super) fn make(
    parent: &Path,
    fill: impl FnOnce(&Path, &Path) -> Result<InstallFolder, InstallError>,
) -> Result<(), InstallError> {
    fs::create_dir_all(parent).map_err(InstallError::io(parent))?;
    let made = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(parent).map_err(InstallError::io(parent))?;
    let [work, out] = ["work", "out"].map(|name| made.path().join(name));
    for folder in [&work, &out] {
        fs::create_dir(folder).map_err(InstallError::io(folder))?;
    }
    let place = fill(&work, &out)?;
    let sums = Seal::of_folder(&out, &|name| name == SEAL).map_err(InstallError::io(&out))?;
    fs::write(out.join(SUMS), sums.to_text()).map_err(InstallError::io(&out))?;
    let seal = out.join(SEAL);
    let built_with = fs::read_to_string(&seal).unwrap_or_default();
    fs::write(&seal, format!("{}\n{built_with}", place.seal)).map_err(InstallError::io(&seal))?;
    if place.folder.exists() {
        // From something else of the same version, or broken by somebody.
        fs::remove_dir_all(&place.folder).map_err(InstallError::io(&place.folder))?;
    }
    fs::rename(&out, &place.folder).map_err(InstallError::io(&place.folder))
}

/// Removes what interrupted installs left, of any product. The caller holds the lock, so nobody works in there.
pub(super) fn sweep(home: &Home) {
    for product in entries(&home.path().join("products")).into_iter().chain([home.toolchains()]) {
        for folder in entries(&product) {
            let name = folder.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(PARTIAL)) {
                // What cannot be removed is in nobody's way: the next name is another.
                let _ = fs::remove_dir_all(folder);
            }
        }
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stays_one_name() {
        assert_eq!(plain("v2.11.4"), "v2.11.4");
        assert_eq!(plain("1.2/../../x"), "1.2_.._.._x");
    }

    #[test]
    fn a_fill_that_fails_leaves_nothing_and_one_that_works_a_sealed_folder() {
        let dir = tempfile::tempdir().unwrap();
        let place = InstallFolder { folder: dir.path().join("way-1"), seal: "thing".to_owned() };
        let fails = make(dir.path(), |work, out| {
            fs::write(work.join("much"), "x").unwrap();
            fs::write(out.join("half"), "x").unwrap();
            Err(InstallError::Interrupted)
        });
        assert!(fails.is_err());
        assert!(entries(dir.path()).is_empty());

        make(dir.path(), |work, out| {
            fs::write(work.join("much"), "x").unwrap();
            fs::write(out.join("program"), "x").unwrap();
            note_built_with(out, "rustc 1.85.0").map(|()| place.clone())
        })
        .unwrap();
        assert_eq!(place.built_with().as_deref(), Some("rustc 1.85.0"));
        assert_eq!(entries(dir.path()), std::slice::from_ref(&place.folder));
        assert_eq!(place.binary("program"), Ok(place.folder.join("program")));
        let other = InstallFolder { seal: "another".to_owned(), ..place.clone() };
        assert!(other.binary("program").unwrap_err().contains("something else (thing)"));
    }

    #[test]
    fn what_was_changed_since_is_not_what_was_installed() {
        let dir = tempfile::tempdir().unwrap();
        let place = InstallFolder { folder: dir.path().join("way-1"), seal: "thing".to_owned() };
        let install = || {
            make(dir.path(), |_, out| {
                fs::create_dir(out.join("lib")).unwrap();
                fs::write(out.join("program"), "as made").unwrap();
                fs::write(out.join("lib/one"), "part").unwrap();
                Ok(place.clone())
            })
            .unwrap()
        };
        let why = || place.binary("program").unwrap_err();
        install();
        // Its own files, made while it runs, are no change.
        fs::write(place.folder.join("lib/cache"), "x").unwrap();
        assert_eq!(place.binary("program"), Ok(place.folder.join("program")));
        let program = place.folder.join("program");
        let then = program.metadata().unwrap().modified().unwrap();
        fs::write(&program, "by you!").unwrap();
        fs::File::open(&program).unwrap().set_modified(then).unwrap();
        assert!(why().contains("program is not what was installed: it is not as"), "{}", why());
        fs::write(&program, "as made").unwrap();
        assert_eq!(place.binary("program"), Ok(program), "touched, and the same");
        fs::remove_file(place.folder.join("lib/one")).unwrap();
        assert!(why().contains("lib/one is not what was installed: it is missing"), "{}", why());
        install();
        assert!(place.binary("program").is_ok(), "installed again");
    }

    #[test]
    fn only_what_is_in_the_making_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        for folder in ["a/.partial-x/out", "a/way-1", "b/.partial-y"] {
            fs::create_dir_all(dir.path().join("products").join(folder)).unwrap();
        }
        sweep(&home);
        assert_eq!(entries(&home.product("a")), [home.product("a").join("way-1")]);
        assert!(entries(&home.product("b")).is_empty());
    }
}
