//! `find`: what a binary has to say for itself.

use std::time::Instant;

use weir_host::supervisor::account;

use super::*;
use crate::home::Home;
use crate::{InstallError, Installed, find, version};

/// Looks for a thing whose binary is a script.
fn find_script(body: &str, change: impl FnOnce(&mut Program)) -> Result<Installed, InstallError> {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("thing");
    script(&binary, body);
    let mut product = product(vec![system(&binary)]);
    change(program_of(&mut product));
    find(&product, &Home::at(dir.path().join("home")))
}

fn why_not(found: Result<Installed, InstallError>) -> String {
    let error = found.unwrap_err();
    assert!(error.is_missing(), "{error}");
    error.tried().join("\n")
}

#[test]
fn the_version_is_read_from_either_stream() {
    for body in ["echo 'this is thing 1.2.3, built today'", "echo thing 1.2.3 >&2; exit 1"] {
        let Installed { version, sha256, from, binary } = find_script(body, |_| ()).unwrap();
        assert_eq!(version, "1.2.3");
        assert_eq!(sha256.len(), 64);
        assert_eq!(from, "system");
        assert!(binary.ends_with("thing"));
    }
}

#[test]
fn too_old_says_found_and_wanted() {
    let text = why_not(find_script("echo thing 1.9.3", |program| program.version.at_least = Some("1.10".to_owned())));
    assert!(text.starts_with("system ("), "{text}");
    assert!(text.ends_with("is version 1.9.3; at least 1.10 is wanted"), "{text}");
    let exactly = find_script("echo thing 1.10", |program| program.version.at_least = Some("1.10.0".to_owned()));
    assert!(exactly.is_ok());
}

#[test]
fn rubbish_is_shown() {
    let text = why_not(find_script("echo hello; echo world", |_| ()));
    assert!(text.contains("says no version that fits thing ") && text.ends_with("it says: hello world"), "{text}");
    let text = why_not(find_script("true", |_| ()));
    assert!(text.ends_with("it says: nothing"), "{text}");
    let text = why_not(find_script("head -c 10000000 /dev/zero", |_| ()));
    assert!(text.len() < 2000, "bounded");
}

#[test]
fn a_binary_that_hangs_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("thing");
    script(&binary, "sleep 600");
    let product = product(Vec::new());
    let began = Instant::now();
    let limit = Duration::from_millis(300);
    let why = version::read(&product, None, &binary, limit).unwrap().unwrap_err();
    assert!(why.ends_with("thing --version` did not end within 0.3 s"), "{why}");
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_binary_that_reads_stdin_gets_nothing() {
    let found = find_script("read line; echo thing 1.2.3 after $?", |_| ());
    assert!(found.is_ok());
}

#[test]
fn a_binary_that_cannot_run_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("thing");
    fs::write(&binary, [0x7f, b'E', b'L', b'F', 0, 0]).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let text = why_not(find(&product(vec![system(&binary)]), &Home::at(dir.path())));
    assert!(text.contains("does not run: "), "{text}");
}

/// Its folder is root's alone.
#[test]
fn a_binary_is_asked_with_the_rights_of_a_product() {
    let installed = find_script("echo thing 1.$(id -u)", |_| ()).unwrap();
    let own = || rustix::process::geteuid().as_raw();
    let user = account::possible().map_or_else(|_| own(), |()| account::ACCOUNT);
    assert_eq!(installed.version, format!("1.{user}"));
}

#[test]
fn every_way_is_tried_and_told() {
    let installs = vec![
        Install::System { binary: "weir-no-such-program".to_owned() },
        Install::Apt { package: "no-such".to_owned(), binary: "/nonexistent/thing".into() },
        Install::Wheel {
            package: "no-such".to_owned(),
            version: "1".to_owned(),
            binary: "*/thing".to_owned(),
            sha256: BTreeMap::from([("pdp11".to_owned(), "00".repeat(32))]),
        },
    ];
    let text = why_not(find(&product(installs), &Home::at("/nonexistent")));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "system (weir-no-such-program): not in PATH, nor in the usual folders");
    assert_eq!(lines[1], "apt no-such: not installed (no /nonexistent/thing)");
    assert_eq!(lines[2], format!("wheel no-such 1: none for {}, only for pdp11", std::env::consts::ARCH));
}

#[test]
fn a_later_way_makes_up_for_an_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    script(&old, "echo thing 0.1");
    script(&new, "echo thing 2.0");
    let apt = Install::Apt { package: "no-such-package".to_owned(), binary: new.clone() };
    let mut product = product(vec![system(&old), apt]);
    program_of(&mut product).version.at_least = Some("1".to_owned());
    let installed = find(&product, &Home::at(dir.path())).unwrap();
    assert_eq!(installed.binary, new);
    assert_eq!(installed.from, "system", "dpkg knows no such package");
}

#[test]
fn a_wrong_pattern_is_the_products_fault() {
    for (pattern, message) in [("thing (", "unclosed group"), ("thing", "0 groups in `thing`; exactly one is wanted")] {
        let error = find_script("echo thing 1", |program| program.version.pattern = pattern.to_owned()).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("thing, product.toml: version.pattern: "), "{text}");
        assert!(text.contains(message), "{text}");
    }
}
