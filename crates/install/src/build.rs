//! Products that are compiled or assembled here: crates, Go modules, Maven and npm projects. Plans and steps call it.
//!
//! Each build is one call of the language's package manager, with versions and hashes from its lock file or its registry.
//! Downloads stay in the package manager's cache, the result goes to weir's folder, and intermediate files are removed. npm runs
//! no scripts of packages; cargo, go and Maven run the build scripts of theirs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_host::ProgramSpec;
use weir_host::files::free_bytes;
use weir_model::product::{BuildTool, Install, Need, Product, RustNeed, Source};

use super::child::{self, words};
use super::place::{self, InstallFolder};
use super::toolchain::{self, Toolchain};
use super::{InstallContext, InstallError, Notify, Progress, lookup, project, tools};

/// The longest builds take ten minutes on two cores; what takes this long hangs.
const LIMIT: Duration = Duration::from_secs(3 * 3600);
/// The output of the tool while it works.
const OUTPUT: &str = "output";
/// The same in the folder of what was built.
const LOG: &str = ".weir-build.log";
/// A disk with less room is full.
const FULL: u64 = 1 << 20;

/// Something to build.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildStep {
    /// The product that wants it.
    product: Box<Product>,
    tool: BuildTool,
    source: Source,
    /// Pattern of the program's path in the folder it is built in.
    binary: String,
    features: Vec<String>,
    rust: Option<RustNeed>,
    env: BTreeMap<String, String>,
    needs: Vec<Need>,
    /// Where it goes.
    place: InstallFolder,
}

/// One command that builds.
#[derive(Debug)]
pub(super) struct Job {
    /// Arguments; the first is the program.
    pub command: Vec<String>,
    /// Where it runs.
    pub dir: PathBuf,
    /// Variables set on top of the user's own.
    pub set: Vec<(String, String)>,
    /// The folder of which only the program is kept; `None` when all of what was made is in its place already.
    pub keep_from: Option<PathBuf>,
}

/// Variables of the user or of an outer cargo that would change the program or where it is put.
fn unset(tool: BuildTool) -> &'static [&'static str] {
    match tool {
        BuildTool::Cargo => &[
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
            "CARGO_INSTALL_ROOT",
        ],
        BuildTool::Go => &["GOOS", "GOARCH"],
        BuildTool::Maven | BuildTool::Npm => &[],
    }
}

impl BuildStep {
    /// The step for one of a product's sources, which goes to `place`; `None` when nothing is built.
    pub(super) fn new(product: &Product, install: &Install, place: InstallFolder) -> Option<BuildStep> {
        let Install::Build { tool, source, binary, features, rust, env, needs } = install.clone() else { return None };
        let needs = tools::needs(tool, &needs);
        Some(BuildStep { product: Box::new(product.clone()), tool, source, binary, features, rust, env, needs, place })
    }

    /// Name of the product that wants it.
    pub fn product(&self) -> &str {
        &self.product.name
    }

    /// The tools that it needs; cargo is not among them where the product names a compiler, with which it comes.
    pub(super) fn needs(&self) -> Vec<Need> {
        self.needs.iter().filter(|need| self.rust.is_none() || need.program != "cargo").cloned().collect()
    }

    /// The compiler that it needs.
    pub(super) fn rust(&self) -> Option<&RustNeed> {
        self.rust.as_ref()
    }

    /// How many packages its lock file names, and what they are called.
    fn locked(&self) -> Option<(usize, &'static str)> {
        let Source::Project(name) = &self.source else { return None };
        let entries = |file, begin| project::lines_with(&self.product, name, file, begin);
        match self.tool {
            // One of them is the project itself.
            BuildTool::Cargo => Some((entries("Cargo.lock", "[[package]]")?.saturating_sub(1), "crates")),
            BuildTool::Npm => Some((entries("package-lock.json", "\"node_modules/")?, "packages")),
            BuildTool::Go | BuildTool::Maven => None,
        }
    }

    /// Writes what is to be built into the folder `work`, and says how it is built. What has its place already goes to `out`.
    fn job(&self, work: &Path, out: &Path) -> Result<Job, InstallError> {
        let project = work.join("project");
        let text = |path: &Path| path.display().to_string();
        let job =
            |command: Vec<String>, dir: &Path| Job { command, dir: dir.to_owned(), set: Vec::new(), keep_from: None };
        if let Source::Project(name) = &self.source {
            // npm's program runs from where its packages are.
            let to = if self.tool == BuildTool::Npm { out } else { &project };
            project::write(&self.product, name, to)?;
        }
        Ok(match (self.tool, &self.source) {
            (BuildTool::Cargo, Source::Package { package, version }) => {
                let which = format!("--no-track --version {version}");
                let root = [text(out)];
                let arguments = words(&which).into_iter().chain(self.features()).chain([package.clone()]);
                let command = words("cargo install --locked --root").into_iter().chain(root).chain(arguments);
                Job { set: cargo_set(&work.join("target")), ..job(command.collect(), work) }
            }
            (BuildTool::Cargo, Source::Project(_)) => {
                let command = words("cargo build --release --locked").into_iter().chain(self.features()).collect();
                Job {
                    set: cargo_set(&project.join("target")),
                    keep_from: Some(project.clone()),
                    ..job(command, &project)
                }
            }
            (BuildTool::Go, Source::Package { package, version }) => {
                let bin = out.join(Path::new(&self.binary).parent().unwrap_or(Path::new("bin")));
                let set = variables([("GOBIN", text(&bin)), ("GOWORK", "off".to_owned())]);
                Job { set, ..job(words(&format!("go install -v -trimpath {package}@{version}")), work) }
            }
            (BuildTool::Go, Source::Project(_)) => {
                let to = [text(&out.join(&self.binary)), ".".to_owned()];
                let command = words("go build -v -trimpath -o").into_iter().chain(to).collect();
                Job { set: variables([("GOWORK", "off".to_owned())]), ..job(command, &project) }
            }
            (BuildTool::Maven, _) => {
                Job { keep_from: Some(project.clone()), ..job(words("mvn -B -Dstyle.color=never package"), &project) }
            }
            (BuildTool::Npm, _) => job(words("npm ci --omit=dev --ignore-scripts --no-audit --no-fund"), out),
        })
    }

    fn features(&self) -> Vec<String> {
        match self.features.is_empty() {
            true => Vec::new(),
            false => vec!["--features".to_owned(), self.features.join(",")],
        }
    }
}

fn cargo_set(target: &Path) -> Vec<(String, String)> {
    variables([
        ("CARGO_TARGET_DIR", target.display().to_string()),
        ("CARGO_TERM_PROGRESS_WHEN", "never".to_owned()),
        ("CARGO_TERM_COLOR", "never".to_owned()),
    ])
}

fn variables<const N: usize>(set: [(&str, String); N]) -> Vec<(String, String)> {
    set.map(|(name, value)| (name.to_owned(), value)).into()
}

impl fmt::Display for BuildStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.source {
            Source::Package { package, version } => format!("{package} {version}"),
            Source::Project(project) => format!("products/{}/{project}", self.product.name),
        };
        match self.tool {
            BuildTool::Cargo => write!(f, "cargo: build {what} from source")?,
            BuildTool::Go => write!(f, "go: build {what} from source")?,
            BuildTool::Maven => write!(f, "mvn package: build {what}")?,
            BuildTool::Npm => write!(f, "npm ci --ignore-scripts: put {what} together")?,
        }
        match self.locked() {
            Some((count, what)) => write!(f, ", with up to {count} {what} to download")?,
            None => write!(f, ", and download what it is made of")?,
        }
        write!(f, ", into {}", self.place.folder.display())
    }
}

/// Builds the product unless it is installed. The caller holds the lock.
pub(super) fn install(
    step: &BuildStep,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    if step.place.binary(&step.binary).is_ok() {
        return Ok(());
    }
    // A step before this one may have brought them; it may also have brought old ones.
    let cannot =
        |why: &dyn fmt::Display| InstallError::Message(format!("{} cannot be built: {why}", step.product.name));
    if let Some(lack) = tools::missing_tools(&step.needs()).first() {
        return Err(cannot(lack));
    }
    let rust = step.rust().map(|need| toolchain::find(need, context.home).map_err(|why| cannot(&why))).transpose()?;
    place::make(&context.home.product(&step.product.name), |work, out| {
        let job = step.job(work, out)?.with(rust.as_ref(), &step.env);
        run(&job, unset(step.tool), work, context, notify)?;
        let wrong = |why: String| InstallError::Failed {
            command: child::command_line(&job.command),
            outcome: format!("went well, and yet did not make the program: {why}"),
            tail: String::new(),
        };
        if let Some(from) = &job.keep_from {
            keep(from, &place::binary_in(from, &step.binary).map_err(wrong)?, out)?;
        }
        place::binary_in(out, &step.binary).map_err(wrong)?;
        let log = out.join(LOG);
        fs::rename(work.join(OUTPUT), &log).map_err(InstallError::io(&log))?;
        if step.tool == BuildTool::Cargo {
            let rustc = rust.as_ref().map_or("rustc".to_owned(), |rust| rust.program("rustc"));
            let set = rust.as_ref().map(Toolchain::set).unwrap_or_default();
            if let Some(compiler) = tools::compiler_line(rustc, &set) {
                place::note_built_with(out, &compiler)?;
            }
        }
        Ok(step.place.clone())
    })
}

impl Job {
    /// The same with a compiler of weir's own and the product's variables.
    fn with(mut self, rust: Option<&Toolchain>, env: &BTreeMap<String, String>) -> Job {
        if let (Some(rust), Some(program)) = (rust, self.command.first_mut()) {
            *program = rust.program(program);
        }
        self.set.extend(rust.into_iter().flat_map(Toolchain::set));
        self.set.extend(env.clone());
        self
    }
}

/// Runs it to its end. `work` is a folder that is removed afterwards, where its output goes.
pub(super) fn run(
    job: &Job,
    unset: &[&str],
    work: &Path,
    context: InstallContext<'_>,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    notify(Progress::Action(&child::command_line(&job.command)));
    let scraps = work.join("tmp");
    fs::create_dir_all(&scraps).map_err(InstallError::io(&scraps))?;
    let spec = ProgramSpec {
        argv: argv(job),
        env: environment(job, unset, &scraps),
        dir: job.dir.clone(),
        output: work.join(OUTPUT),
        ..ProgramSpec::default()
    };
    child::run_supervised(context.host, &spec, LIMIT, context.stop, notify).map_err(|error| match error {
        // Programs report a full disk in different ways, or not at all, because their output goes to that disk.
        InstallError::Failed { .. } if free_bytes(work).is_ok_and(|bytes| bytes < FULL) => {
            InstallError::Io { path: work.to_owned(), error: std::io::ErrorKind::StorageFull.into() }
        }
        InstallError::Failed { outcome, tail, .. } => {
            InstallError::Failed { command: child::command_line(&job.command), outcome, tail }
        }
        other => other,
    })
}

/// The program by its path: weir looks in more folders than the supervisor's `exec` does.
fn argv(job: &Job) -> Vec<String> {
    let mut argv = job.command.clone();
    let path = argv.first().and_then(|program| lookup::on_path(program));
    if let (Some(program), Some(path)) = (argv.first_mut(), path.as_ref().and_then(|path| path.to_str())) {
        path.clone_into(program);
    }
    argv
}

/// The user's environment, so that the user's proxies, registries and mirrors apply. The temporary folder is one that is removed
/// with the rest, because a killed compiler leaves files in it.
fn environment(job: &Job, unset: &[&str], scraps: &Path) -> BTreeMap<String, String> {
    let users =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut environment: BTreeMap<String, String> = users.filter(|(name, _)| !unset.contains(&name.as_str())).collect();
    environment.insert("TMPDIR".to_owned(), scraps.display().to_string());
    environment.extend(job.set.iter().cloned());
    environment
}

/// Keeps only the program, at the same relative path.
pub(super) fn keep(from: &Path, binary: &Path, out: &Path) -> Result<(), InstallError> {
    let to = out.join(binary.strip_prefix(from).unwrap_or(binary));
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(InstallError::io(parent))?;
    }
    fs::rename(binary, &to).map_err(InstallError::io(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_settings_stay_except_those_that_make_another_program() {
        let set = variables([("GOBIN", "/there".to_owned())]);
        let job = Job { command: words("sh"), dir: "/".into(), set, keep_from: None };
        let environment = environment(&job, &["PATH"], Path::new("/scraps"));
        assert_eq!(environment.get("TMPDIR").map(String::as_str), Some("/scraps"));
        assert_eq!(environment.get("GOBIN").map(String::as_str), Some("/there"));
        assert!(!environment.contains_key("PATH"));
        assert!(argv(&job)[0].ends_with("/sh"), "{:?}", argv(&job));
    }
}
