//! The programs and headers that building needs: whether they are here, new enough, and which package brings them. Plans
//! and builds call it.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use weir_model::product::{BuildTool, Need};

use super::{child, lookup};

/// A JVM that starts on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// A needed program that is missing or too old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingTool {
    pub(super) need: Need,
    /// The version found, when it is here and too old.
    found: Option<String>,
}

impl std::fmt::Display for MissingTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MissingTool { need: Need { program, package, at_least }, found } = self;
        match (found, at_least) {
            (Some(found), Some(wanted)) => write!(f, "{program} is version {found}; at least {wanted} is wanted")?,
            (None, Some(wanted)) => write!(f, "{program} is not in PATH; version {wanted} or later is wanted")?,
            (_, None) if is_header(program) => write!(f, "the header {program} is not in {}", INCLUDE.join(" or "))?,
            (_, None) => write!(f, "{program} is not in PATH")?,
        }
        let elsewhere = match program.as_str() {
            "cargo" => Some("rustup from https://rustup.rs"),
            "go" => Some("the archive from https://go.dev/dl"),
            "node" | "npm" => Some("the archive from https://nodejs.org"),
            _ => None,
        };
        let mut ways = Vec::new();
        ways.extend(package.as_ref().map(|package| format!("sudo apt-get install {package}")));
        ways.extend(elsewhere.map(str::to_owned));
        match ways.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", ways.join(", or ")),
        }
    }
}

/// What building with a tool needs: what it always does, and what the product's file adds or says more exactly.
pub(super) fn needs(tool: BuildTool, more: &[Need]) -> Vec<Need> {
    let always: &[(&str, &str)] = match tool {
        // rustc links with the system's C compiler.
        BuildTool::Cargo => &[("cargo", "cargo"), ("cc", "build-essential")],
        BuildTool::Go => &[("go", "golang-go")],
        BuildTool::Maven => &[("mvn", "maven"), ("javac", "default-jdk-headless")],
        BuildTool::Npm => &[("npm", "npm"), ("node", "nodejs")],
    };
    let need = |(program, package): &(&str, &str)| Need {
        program: (*program).to_owned(),
        package: Some((*package).to_owned()),
        at_least: None,
    };
    let mut all: Vec<Need> = always.iter().map(need).collect();
    for need in more {
        match all.iter_mut().find(|known| known.program == need.program) {
            Some(known) => *known = Need { package: need.package.clone().or(known.package.take()), ..need.clone() },
            None => all.push(need.clone()),
        }
    }
    all
}

/// What a compiler says of itself in its first line, such as `rustc 1.85.0 (4d91de4e4 2025-02-17)`.
/// `set` are the variables with which it is called.
pub(super) fn compiler_line(rustc: String, set: &[(String, String)]) -> Option<String> {
    let set = set.iter().map(|(name, value)| format!("{name}={value}"));
    let command: Vec<String> =
        std::iter::once("env".to_owned()).chain(set).chain([rustc, "--version".to_owned()]).collect();
    let response = child::ask(&command, LIMIT).ok()?;
    response.lines().map(str::trim).find(|line| line.starts_with("rustc ")).map(str::to_owned)
}

/// Those of `needs` that are missing or too old.
pub(super) fn missing_tools(needs: &[Need]) -> Vec<MissingTool> {
    needs.iter().filter_map(missing_tool).collect()
}

fn missing_tool(need: &Need) -> Option<MissingTool> {
    let path = if is_header(&need.program) { header(&need.program) } else { lookup::on_path(&need.program) };
    let found = match (path, &need.at_least) {
        (None, _) => None,
        (Some(_), None) => return None,
        (Some(path), Some(wanted)) => match version_of(&path) {
            Some(found) if !weir_model::version::is_below(&found, wanted) => return None,
            found => found.or(Some("unknown".to_owned())),
        },
    };
    Some(MissingTool { need: need.clone(), found })
}

/// Where compilers look for the headers of libraries that are installed.
const INCLUDE: [&str; 2] = ["/usr/local/include", "/usr/include"];

fn is_header(name: &str) -> bool {
    name.ends_with(".h")
}

fn header(name: &str) -> Option<PathBuf> {
    INCLUDE.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// The version that a program says by the first of the usual questions that it understands.
pub(super) fn version_of(path: &Path) -> Option<String> {
    ["--version", "-version", "version"].into_iter().find_map(|question| {
        let command = [path.display().to_string(), question.to_owned()];
        first_version(&child::ask(&command, LIMIT).ok()?)
    })
}

/// The first number, with what follows it after points, that stands where versions stand: `libprotoc 3.21.12`,
/// `openjdk version "17.0.12"`, `go1.24.2` and `v18.19.0`, but not the 86 of `x86_64`.
pub(super) fn first_version(text: &str) -> Option<String> {
    static VERSION: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"(?m)(?:^|[\s"'(/]|\bv|\bgo)(\d+(?:\.\d+)*)"#).ok());
    Some(VERSION.as_ref()?.captures(text)?.get(1)?.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_say() {
        for (text, version) in [
            ("libprotoc 3.21.12", "3.21.12"),
            ("openjdk version \"17.0.12\" 2024-07-16", "17.0.12"),
            ("openjdk 21 2023-09-19", "21"),
            ("go version go1.24.2 linux/amd64", "1.24.2"),
            ("v18.19.0", "18.19.0"),
            ("x86_64-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0", "12.2.0"),
            ("Apache Maven 3.8.7", "3.8.7"),
            ("cargo 1.90.0 (840b83a10 2025-07-30)", "1.90.0"),
        ] {
            assert_eq!(first_version(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(first_version("Unrecognized option: --version"), None);
    }

    #[test]
    fn what_the_product_says_of_a_tool_counts() {
        let more = Need { program: "cargo".into(), package: None, at_least: Some("1.85".into()) };
        let protoc = Need { program: "protoc".into(), package: Some("protobuf-compiler".into()), at_least: None };
        let needs = needs(BuildTool::Cargo, &[more, protoc.clone()]);
        assert_eq!(needs.len(), 3);
        assert_eq!((needs[0].package.as_deref(), needs[0].at_least.as_deref()), (Some("cargo"), Some("1.85")));
        assert_eq!(needs[2], protoc);
    }

    #[test]
    fn what_is_missing_or_old_says_found_and_wanted() {
        let need = |program: &str, at_least: Option<&str>| Need {
            program: program.into(),
            package: Some("a-package".into()),
            at_least: at_least.map(str::to_owned),
        };
        let lacks =
            missing_tools(&[need("sh", None), need("weir-no-such-tool", None), need("weir-no-such-tool", Some("3"))]);
        assert_eq!(
            lacks.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "weir-no-such-tool is not in PATH (sudo apt-get install a-package)",
                "weir-no-such-tool is not in PATH; version 3 or later is wanted (sudo apt-get install a-package)"
            ]
        );
        let lacks = missing_tools(&[need("stdio.h", None), need("weir/no-such-header.h", None)]);
        assert_eq!(
            lacks.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "the header weir/no-such-header.h is not in /usr/local/include or /usr/include (sudo apt-get install a-package)"
            ]
        );
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("tool");
        super::super::tests::script(&tool, "[ \"$1\" = -version ] || exit 1; echo tool 2.9.1");
        let tool = tool.to_str().unwrap();
        assert_eq!(missing_tools(&[need(tool, Some("2.9"))]), []);
        let [old] = &missing_tools(&[need(tool, Some("2.10"))])[..] else { panic!("it is too old") };
        assert_eq!(
            old.to_string(),
            format!("{tool} is version 2.9.1; at least 2.10 is wanted (sudo apt-get install a-package)")
        );
    }
}
