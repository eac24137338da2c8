//! Which version the newest turned out to be, read from what was built.

use std::path::Path;
use std::time::Duration;

use weir_model::product::Install;

use super::super::using::package_of;
use super::super::{InstallError, Latest, child, find, place};
use super::BuildStep;

pub(super) fn of(step: &BuildStep, out: &Path) -> Result<Latest, InstallError> {
    let (source, package) = package_of(&step.install).unwrap_or_default();
    let version = match &step.install {
        Install::Crate { .. } => from_cargo(out, package),
        _ => from_go(out, find::pattern(&step.install).unwrap_or_default()),
    };
    let version = version.ok_or_else(|| InstallError::Failed {
        command: format!("{source} {package}"),
        outcome: "was built, and its version cannot be read".to_owned(),
        tail: String::new(),
    })?;
    let folder = format!("{source}-latest-{}", place::plain(&version));
    Ok(Latest { source: source.to_owned(), package: package.to_owned(), version, folder })
}

/// cargo notes what it installed below a root: `"sozu 2.3.3 (registry+…)" = ["sozu"]`.
fn from_cargo(out: &Path, package: &str) -> Option<String> {
    let text = std::fs::read_to_string(out.join(".crates.toml")).ok()?;
    let table: toml::Table = text.parse().ok()?;
    let mut installed = table.get("v1")?.as_table()?.keys();
    installed.find_map(|key| {
        let mut words = key.split(' ');
        (words.next() == Some(package)).then(|| words.next().map(str::to_owned))?
    })
}

/// go writes the module's version into what it builds: `mod github.com/caddyserver/caddy/v2 v2.11.4 h1:…`, with tabs.
fn from_go(out: &Path, pattern: &str) -> Option<String> {
    let binary = place::binary_in(out, pattern).ok()?;
    let command = ["go", "version", "-m"].map(str::to_owned);
    let mut command = command.to_vec();
    command.push(binary.display().to_string());
    let answer = child::ask(&command, Duration::from_secs(30)).ok()?;
    let module = answer.lines().map(str::trim).find(|line| line.starts_with("mod\t"))?;
    Some(module.split('\t').nth(2)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_note_says_the_version() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(from_cargo(dir.path(), "thing"), None);
        let note = "[v1]\n\"other 9.0.0 (registry+https://example.org)\" = [\"other\"]\n\
                    \"thing 2.3.4 (registry+https://example.org)\" = [\"thing\"]\n";
        std::fs::write(dir.path().join(".crates.toml"), note).unwrap();
        assert_eq!(from_cargo(dir.path(), "thing").as_deref(), Some("2.3.4"));
        assert_eq!(from_cargo(dir.path(), "thin"), None);
    }
}
