//! Reads the configuration files that a run rendered for its products. The module knows where a trial keeps them, but not their syntax.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use weir_model::record::HostRecord;
use weir_model::suite::Entry;
use weir_model::text::grouped;

use crate::run::{BASELINE, Run, Trial, relative};

/// Folder of a trial that holds the product's files.
const FOLDER: &str = "product";

/// Files in it that are no configuration but weir's record of the process.
const RECORDS: [&str; 3] = ["output.log", "check.log", "exit.json"];

/// Bytes of a configuration that are shown.
const LONGEST: usize = 64 * 1024;

/// Files of a trial that are shown; more are what the product left behind, not its configuration.
const MOST: usize = 16;

/// One rendered file, shown once for all trials in which it was the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Product and profile.
    pub entry: Entry,
    /// As a reader knows it.
    pub label: String,
    /// Path of the first trial's file in the run folder.
    pub file: String,
    /// What stands in it.
    pub text: String,
    /// How many more trials had the same, but for ports and the trial folder's name.
    pub alike: usize,
}

/// Every configuration of the run, in the suite's order.
pub fn configurations(run: &Run) -> Vec<Rendered> {
    let mut all = Vec::new();
    for entry in run.suite.entries.iter().filter(|entry| entry.product != BASELINE) {
        for trial in run.trials.iter().filter(|trial| trial.is_of(entry)) {
            let folder = run.folder.join(&trial.folder).join(FOLDER);
            for path in files(&folder) {
                let Some(text) = read_text(&path) else { continue };
                // What all trials have alike, but for ports and the trial folder's name.
                let key = (entry, relative(&folder, &path), without_ports(&text.replace(own_name(trial), "")));
                all.push((key, (relative(&run.folder, &path), text)));
            }
        }
    }
    let rendered = |entry: &Entry, mut seen: Vec<(String, String)>| {
        let alike = seen.len() - 1;
        let (file, text) = seen.swap_remove(0);
        Rendered { entry: entry.clone(), label: run.label_of(entry), file, text, alike }
    };
    grouped(all).into_iter().map(|((entry, ..), seen)| rendered(entry, seen)).collect()
}

/// The name of a trial's folder.
fn own_name(trial: &Trial) -> &str {
    trial.folder.rsplit('/').next().unwrap_or_default()
}

/// The configuration of one trial: names of files and what stands in them, without ports and the paths of the trial's own
/// folder, so that those of two runs can be compared.
pub fn of_trial(run: &Run, trial: &Trial) -> Vec<(String, String)> {
    let folder = run.folder.join(&trial.folder).join(FOLDER);
    let own = own_name(trial);
    let hosts = run.environment.as_ref().map(|environment| environment.hosts.as_slice()).unwrap_or_default();
    let cleaned = |path: &PathBuf| {
        let text = without_folder(&read_text(path)?, own);
        Some((relative(&folder, path), without_ports(&with_hosts(&text, hosts))))
    };
    files(&folder).iter().filter_map(cleaned).collect()
}

/// The text without a trial folder's name and the path that stands before it.
fn without_folder(text: &str, own: &str) -> String {
    let before_path = |c: char| !(c.is_whitespace() || matches!(c, '"' | '\'' | '=' | '(' | ','));
    let mut parts: Vec<&str> = text.split(own).collect();
    let last = parts.pop().unwrap_or_default();
    parts.into_iter().map(|part| part.trim_end_matches(before_path)).chain([last]).collect()
}

/// The text with the names of hosts instead of their addresses, which another network has otherwise.
fn with_hosts(text: &str, hosts: &[HostRecord]) -> String {
    let mut addresses: Vec<(String, &str)> =
        hosts.iter().filter_map(|host| Some((host.address?.to_string(), host.name.as_str()))).collect();
    // 10.0.0.1 is the beginning of 10.0.0.12.
    addresses.sort_by_key(|(address, _)| std::cmp::Reverse(address.len()));
    addresses.iter().fold(text.to_owned(), |text, (address, name)| text.replace(address, name))
}

/// The text without numbers of 4 or 5 digits after a colon, because each trial listens on other ports. Within one profile
/// no other such number can differ: templates receive only ports, folders, cores and connections.
fn without_ports(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at + 1);
        kept.push_str(before);
        let number = after.trim_start_matches([' ', '"']);
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        rest = if matches!(digits, 4 | 5) { &number[digits..] } else { after };
    }
    kept.push_str(rest);
    kept
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries.filter_map(Result::ok) {
            // Links are not followed: they may lead out of the run.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    let record = |path: &Path| RECORDS.iter().any(|name| path == folder.join(name));
    found.retain(|path| !record(path) && path.extension().is_none_or(|ending| ending != "log" && ending != "pid"));
    found.sort();
    found.truncate(MOST);
    found
}

/// `None` for a file that is not text, such as a key store or a cache, and for files of certificates and keys. Certificates
/// and keys inside a configuration are removed from it, because a report may be published.
fn read_text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(LONGEST as u64 + 1).read_to_end(&mut bytes).ok()?;
    if bytes.is_empty() || bytes.contains(&0) {
        return None;
    }
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]).into_owned();
    if text.trim_start().starts_with(BEGIN) {
        return None;
    }
    text = without_pem(&text);
    if bytes.len() > LONGEST {
        text.push_str("\n… cut off here\n");
    }
    Some(text)
}

/// What certificates and keys begin with in PEM.
const BEGIN: &str = "-----BEGIN ";

/// Replaces each certificate or key in the text by a remark. If one has no end, because the text was cut off, the rest of
/// the text is removed with it.
fn without_pem(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        kept.push_str(&rest[..at]);
        kept.push_str("(a certificate or key)");
        let end = rest[at..].find("-----END ").map(|end| at + end + "-----END ".len());
        rest = end.and_then(|end| Some(&rest[end + rest[end..].find("-----")? + 5..])).unwrap_or_default();
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let path = scratch.path().join("x");
        let shown = |text: &str| {
            std::fs::write(&path, text).expect("written");
            read_text(&path)
        };
        assert_eq!(shown("listen 1"), Some("listen 1".to_string()));
        let pem = |kind: &str| format!("-----BEGIN {kind}-----\nMII\n-----END {kind}-----");
        assert_eq!(shown(&pem("CERTIFICATE")), None);
        assert_eq!(shown(&pem("PRIVATE KEY")), None);
        let both = format!("a: |\n  {}\nb: \"{}\"\nc", pem("CERTIFICATE"), pem("RSA PRIVATE KEY").replace('\n', "\\n"));
        let remark = "(a certificate or key)";
        assert_eq!(shown(&both), Some(format!("a: |\n  {remark}\nb: \"{remark}\"\nc")));
        assert_eq!(shown("a -----BEGIN PRIVATE KEY-----\nMII"), Some(format!("a {remark}")));
    }

    #[test]
    fn the_folder_of_a_trial_does_not_make_files_differ() {
        let of =
            |run: &str| format!("pid \"/srv/{run}/trials/1-a/product/x.pid\";\nroot=/srv/{run}/trials/1-a;\nthe end");
        assert_eq!(without_folder(&of("one"), "1-a"), without_folder(&of("another"), "1-a"));
        assert_eq!(without_folder("listen 1", "1-a"), "listen 1");
    }

    #[test]
    fn addresses_of_hosts_do_not_make_files_differ() {
        let hosts = [("proxy", [10, 0, 0, 1]), ("origin-1", [10, 0, 0, 12])].map(|(name, address)| HostRecord {
            name: name.into(),
            address: Some(address.into()),
            ..HostRecord::default()
        });
        assert_eq!(with_hosts("listen 10.0.0.1:80; to 10.0.0.12:81", &hosts), "listen proxy:80; to origin-1:81");
    }

    #[test]
    fn ports_do_not_make_files_differ() {
        assert_eq!(without_ports("listen 127.0.0.1:21968;\nport_value: 16001 }"), "listen 127.0.0.1:;\nport_value: }");
        assert_eq!(without_ports("workers: 2\nsum: 123456 a:"), "workers: 2\nsum: 123456 a:");
    }
}
