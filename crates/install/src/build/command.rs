//! The command of each build method, and which part of its result is kept. A build step calls it.

use std::path::{Path, PathBuf};

use weir_model::product::{Install, Source};

use super::{BuildStep, InstallError, Job, project};

/// How a product is built.
pub(super) struct BuildCommand {
    pub(super) job: Job,
    /// The folder of which only the program is kept; `None` when all of what was made is in its place already.
    pub(super) keep_from: Option<PathBuf>,
}

/// Variables of the user or of an outer cargo that would change the program or where it is put.
const NOT_FOR_CARGO: &[&str] =
    &["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_INSTALL_ROOT"];
const NOT_FOR_GO: &[&str] = &["GOOS", "GOARCH"];

/// Writes what is to be built into the folder `work`, and says how it is built. What has its place already goes to `out`.
pub(super) fn of(step: &BuildStep, work: &Path, out: &Path) -> Result<BuildCommand, InstallError> {
    let project = |name: &str, to: &Path| project::write(&step.product, name, to);
    let source = work.join("project");
    let job = |command: Vec<String>, dir: &Path| Job { command, dir: dir.to_owned(), set: Vec::new(), unset: &[] };
    match &step.install {
        Install::Crate { source: Source::Package { package, version }, features, .. } => {
            let version = step.place.is_some().then_some(version.as_str());
            let set = cargo_set(work.join("target"));
            let job = job(cargo_install(package, version, features, out), work);
            Ok(BuildCommand { job: Job { set, unset: NOT_FOR_CARGO, ..job }, keep_from: None })
        }
        Install::Crate { source: Source::Project(name), features, .. } => {
            project(name, &source)?;
            let mut command = words(&["cargo", "build", "--release", "--locked"]);
            command.extend(with_features(features));
            let set = cargo_set(source.join("target"));
            Ok(BuildCommand {
                job: Job { set, unset: NOT_FOR_CARGO, ..job(command, &source) },
                keep_from: Some(source),
            })
        }
        Install::Go { source: Source::Package { package, version }, binary, .. } => {
            let version = if step.place.is_some() { version.as_str() } else { "latest" };
            let command = words(&["go", "install", "-v", "-trimpath", &format!("{package}@{version}")]);
            let bin = out.join(Path::new(binary).parent().unwrap_or(Path::new("bin")));
            let set = vec![("GOBIN", bin.display().to_string()), ("GOWORK", "off".to_owned())];
            Ok(BuildCommand { job: Job { set, unset: NOT_FOR_GO, ..job(command, work) }, keep_from: None })
        }
        Install::Go { source: Source::Project(name), binary, .. } => {
            project(name, &source)?;
            let to = out.join(binary).display().to_string();
            let command = words(&["go", "build", "-v", "-trimpath", "-o", &to, "."]);
            let set = vec![("GOWORK", "off".to_owned())];
            Ok(BuildCommand { job: Job { set, unset: NOT_FOR_GO, ..job(command, &source) }, keep_from: None })
        }
        Install::Maven { project: name, .. } => {
            project(name, &source)?;
            let command = words(&["mvn", "-B", "-Dstyle.color=never", "package"]);
            Ok(BuildCommand { job: job(command, &source), keep_from: Some(source) })
        }
        Install::Npm { project: name, .. } => {
            // It runs from where its packages are.
            project(name, out)?;
            let command = ["npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
            Ok(BuildCommand { job: job(words(&command), out), keep_from: None })
        }
        other => Err(InstallError::Definition {
            product: step.product.name.clone(),
            key: "install.method".to_owned(),
            message: format!("{} is not built", super::super::find::label(other)),
        }),
    }
}

/// The newest is tracked by cargo, so that its version can be read afterwards.
fn cargo_install(package: &str, version: Option<&str>, features: &[String], out: &Path) -> Vec<String> {
    let mut command = words(&["cargo", "install", "--locked", "--root", &out.display().to_string()]);
    if let Some(version) = version {
        command.extend(words(&["--no-track", "--version", version]));
    }
    command.extend(with_features(features));
    command.push(package.to_owned());
    command
}

fn with_features(features: &[String]) -> Vec<String> {
    match features.is_empty() {
        true => Vec::new(),
        false => vec!["--features".to_owned(), features.join(",")],
    }
}

fn cargo_set(target: PathBuf) -> Vec<(&'static str, String)> {
    vec![
        ("CARGO_TARGET_DIR", target.display().to_string()),
        ("CARGO_TERM_PROGRESS_WHEN", "never".to_owned()),
        ("CARGO_TERM_COLOR", "never".to_owned()),
    ]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
