//! The packages that a registry would have: cargo makes them, and they have every file that their sources build in. Whether weir is
//! built and installed from them alone, `make package` tries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::scratch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

fn run(command: &mut Command) {
    let out = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Every file in a folder and below. Links are followed, as cargo does; what builds leave behind is not part of a project.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if !path.is_dir() {
            found.push(path);
        } else if !path.ends_with("target") && !path.ends_with("node_modules") {
            found.extend(files(&path));
        }
    }
    found.sort();
    found
}

/// The packages, unpacked: one folder each, named by crate and version.
fn unpacked(into: &Path) -> Vec<PathBuf> {
    let target = into.join("target");
    let mut cargo = Command::new(env!("CARGO"));
    let what = "--workspace --exclude weir-bench --exclude weir-fake-host --exclude weir-world --no-verify --allow-dirty --offline --quiet";
    run(cargo.arg("package").args(what.split(' ')).arg("--target-dir").arg(&target).current_dir(root()));
    let folder = into.join("unpacked");
    fs::create_dir(&folder).expect("made");
    let all = fs::read_dir(target.join("package")).expect("packages").map(|entry| entry.expect("an entry").path());
    for package in all.filter(|path| path.extension().is_some_and(|end| end == "crate")) {
        run(Command::new("tar").arg("xzf").arg(package).arg("-C").arg(&folder));
    }
    let mut folders: Vec<PathBuf> =
        fs::read_dir(&folder).expect("unpacked").map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    folders
}

/// Files and folders that a source builds in, by its text without the tests at its end.
fn built_in(package: &Path, source: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(source).expect("a source");
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let beside = source.parent().expect("a folder");
    let ways = [
        ("include_str!(\"", beside.to_owned()),
        ("include_bytes!(\"", beside.to_owned()),
        ("include_dir!(\"$CARGO_MANIFEST_DIR/", package.to_owned()),
        ("template(path = \"", package.join("templates")),
    ];
    let named = |(call, from): &(&str, PathBuf)| -> Vec<PathBuf> {
        text.split(call).skip(1).filter_map(|rest| Some(from.join(rest.split('"').next()?))).collect()
    };
    ways.iter().flat_map(named).collect()
}

/// The modules that a source declares for its tests alone: their files, and the folders where they may be instead.
fn test_modules(source: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(source).expect("a source");
    let declared = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| rest.lines().next()?.strip_suffix(';'));
    let names = declared.filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
    let stem = source.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let folder = source.with_file_name(if matches!(stem, "lib" | "main" | "mod") { "" } else { stem });
    names.flat_map(|name| [folder.join(format!("{name}.rs")), folder.join(name)]).collect()
}

#[test]
fn packages_have_every_file_that_is_built_in() {
    let scratch = scratch();
    let packages = unpacked(scratch.path());
    let crates = fs::read_dir(root().join("crates")).expect("crates").count();
    assert_eq!(packages.len(), crates, "{packages:?}");

    let (mut missing, mut named) = (Vec::new(), 0);
    for package in &packages {
        for text in ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(package.join(text).is_file(), "{} has no {text}", package.display());
        }
        let mut sources = files(&package.join("src"));
        sources.retain(|path| path.extension().is_some_and(|end| end == "rs"));
        let of_tests: Vec<PathBuf> = sources.iter().flat_map(|source| test_modules(source)).collect();
        sources.retain(|source| !of_tests.iter().any(|module| source.starts_with(module)));
        for path in sources.iter().flat_map(|source| built_in(package, source)) {
            named += 1;
            if !path.exists() {
                missing.push(path);
            }
        }
    }
    assert_eq!(missing, Vec::<PathBuf>::new(), "built in, and in no package");
    assert!(named > 60, "only {named} files found in the sources: are they still built in by the same calls?");
}

#[test]
fn products_suites_and_published_figures_are_whole_in_their_packages() {
    let scratch = scratch();
    let packages = unpacked(scratch.path());
    let package = |name: &str| {
        let folder = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
        packages.iter().find(|package| package.ends_with(&folder)).unwrap_or_else(|| panic!("no package {folder}"))
    };
    for (name, folder, from) in [
        ("weir-cli", "products", "products"),
        ("weir-cli", "suites", "suites"),
        ("weir-published", "figures", "suites/published"),
    ] {
        let from = root().join(from);
        let mut different = Vec::new();
        for file in files(&from) {
            let below = file.strip_prefix(&from).expect("below it");
            if fs::read(package(name).join(folder).join(below)).ok() != fs::read(&file).ok() {
                different.push(below.to_owned());
            }
        }
        assert_eq!(different, Vec::<PathBuf>::new(), "not in the package of {name}, or another file");
    }
}
