//! Many runs for a site: made-up ones, and copies of one with another name, date, machine or version. Copies share the trials of the
//! first, so that a thousand are written in a second.

use std::fs;
use std::path::{Path, PathBuf};

use weir_model::record::Environment;

use super::{write_blocks, write_json};

/// What is otherwise in a copy.
pub struct Copy<'a> {
    pub name: &'a str,
    pub host: &'a str,
    /// RFC 3339.
    pub started: &'a str,
    /// Version of the product `alder`.
    pub version: &'a str,
}

/// Writes a run of one block to copy.
pub fn write_base(folder: &Path) -> PathBuf {
    let base = folder.join("base");
    write_blocks(&base, 1, usize::MAX);
    base
}

/// A folder under another name.
fn share(folder: &Path, link: &Path) {
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder, link).unwrap();
    #[cfg(windows)]
    std::os::windows::fs::symlink_dir(folder, link).unwrap();
}

/// Copies a run into `folder`.
pub fn copy(base: &Path, folder: &Path, copy: &Copy<'_>) -> PathBuf {
    let run = folder.join(copy.name);
    fs::create_dir_all(&run).unwrap();
    share(&base.join("trials"), &run.join("trials"));
    fs::copy(base.join("run.toml"), run.join("run.toml")).unwrap();
    let mut environment: Environment =
        serde_json::from_slice(&fs::read(base.join("environment.json")).unwrap()).unwrap();
    environment.host = copy.host.to_owned();
    environment.started = copy.started.to_owned();
    let alder = environment.products.iter_mut().find(|facts| facts.name == "alder").unwrap();
    alder.version = copy.version.to_owned();
    write_json(&run.join("environment.json"), &environment);
    run
}

/// Three runs of one suite on two machines, the newest on `small` with another version, and one of another suite that asks the same by
/// other names, in the folder `runs`.
pub fn write_several(folder: &Path) -> PathBuf {
    let base = write_base(folder);
    let runs = folder.join("runs");
    for (name, host, started, version) in [
        ("20260102-030405-trees", "small", "2026-01-02T03:04:05Z", "2.4.1"),
        ("20260103-030405-trees", "large", "2026-01-03T03:04:05Z", "2.4.1"),
        ("20260104-030405-trees", "small", "2026-01-04T03:04:05Z", "2.5.0"),
        ("20260105-030405-bushes", "small", "2026-01-05T03:04:05Z", "2.5.0"),
    ] {
        copy(&base, &runs, &Copy { name, host, started, version });
    }
    let file = runs.join("20260105-030405-bushes/run.toml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text
        .replace("name = \"trees\"", "name = \"bushes\"")
        .replace("title = \"Small responses\"", "title = \"Tiny\"");
    fs::write(&file, text).unwrap();
    runs
}
