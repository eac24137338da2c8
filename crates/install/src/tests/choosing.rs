//! A binary of the user's.

use super::*;
use crate::{Want, plan, use_binary, use_no_binary, using};

fn why_not(product: &Product, home: &Home) -> String {
    find(product, home).unwrap_err().tried().join("\n")
}

/// A home, a binary of version 1.2.3, and one of version 9.9.
fn two_binaries() -> (TempDir, Home, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home"));
    let (theirs, mine) = (dir.path().join("theirs"), dir.path().join("mine"));
    script(&theirs, "echo thing 1.2.3");
    script(&mine, "echo thing 9.9");
    (dir, home, theirs, mine)
}

#[test]
fn a_binary_of_the_users_comes_first_until_it_is_undone() {
    let (_dir, home, theirs, mine) = two_binaries();
    let product = product(vec![system(&theirs)]);

    let installed = use_binary(&product, &mine, &home).unwrap();
    assert_eq!((installed.version.as_str(), installed.from), ("9.9", format!("own {}", mine.display())));
    let seen = find(&product, &home).unwrap();
    assert_eq!((&seen.binary, seen.version.as_str(), seen.sha256), (&mine, "9.9", installed.sha256.clone()));
    let own = using("thing", &home).unwrap().expect("written down");
    assert_eq!((own.binary, own.version, own.sha256), (mine.clone(), "9.9".to_owned(), installed.sha256));
    assert_eq!(plan(&[&product], &home, Want::Present).unwrap(), [], "nothing is to be installed");

    // Built anew at the same place: measured as it is, and said.
    script(&mine, "echo thing 9.10");
    let seen = find(&product, &home).unwrap();
    assert_eq!(
        (seen.version.as_str(), seen.from),
        ("9.10", format!("own {}, changed since it was chosen", mine.display()))
    );

    assert!(use_no_binary("thing", &home).unwrap());
    assert!(!use_no_binary("thing", &home).unwrap(), "the second time there is nothing to undo");
    let seen = find(&product, &home).unwrap();
    assert_eq!(seen.binary, theirs);
}

#[test]
fn what_was_chosen_and_is_gone_is_not_replaced_by_something_else() {
    let (_dir, home, theirs, mine) = two_binaries();
    let product = product(vec![system(&theirs)]);
    use_binary(&product, &mine, &home).unwrap();
    fs::remove_file(&mine).unwrap();
    let text = why_not(&product, &home);
    for words in [mine.to_str().unwrap(), "there is no such file", "weir products use thing --none"] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    assert!(matches!(plan(&[&product], &home, Want::Present), Err(InstallError::Chosen { .. })));
}

#[test]
fn a_binary_that_is_not_one_is_refused_and_nothing_is_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home"));
    let file = |name: &str, body: &str| {
        let path = dir.path().join(name);
        script(&path, body);
        path
    };
    let plain = dir.path().join("plain");
    fs::write(&plain, "x").unwrap();
    let mut product = product(Vec::new());
    program_of(&mut product).version.at_least = Some("2".to_owned());
    for (path, words) in [
        (file("old", "echo thing 1.9"), ["is version 1.9; at least 2 is wanted", "version 2 or later"]),
        (file("other", "echo other 5"), ["says no version that fits", "a binary of Thing"]),
        (file("fails", "exit 3"), ["it says: nothing", "a binary of Thing"]),
        (dir.path().join("none"), ["there is no such file", "the path of the program itself"]),
        (dir.path().to_owned(), ["is a folder", "the path of the program itself"]),
        (plain, ["is not executable", "chmod +x"]),
    ] {
        let text = use_binary(&product, &path, &home).unwrap_err().to_string();
        for words in words.iter().chain(&["cannot be used as thing", path.to_str().unwrap()]) {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
    }
    assert_eq!(using("thing", &home).unwrap(), None);
}

/// A jar is no program of its own: another runs it.
#[test]
fn what_another_program_runs_need_not_be_executable() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home"));
    let jar = dir.path().join("thing.jar");
    fs::write(&jar, "echo thing 1.2.3 by $0").unwrap();
    let mut product = product(Vec::new());
    program_of(&mut product).version.command = ["sh", "{{ binary }}", "--version"].map(str::to_owned).to_vec();
    assert_eq!(use_binary(&product, &jar, &home).unwrap().version, "1.2.3");
    program_of(&mut product).version.command[0] = "weir-no-such-java".to_owned();
    let text = why_not(&product, &home);
    assert!(text.contains(&format!("weir-no-such-java, which runs {}, is not in PATH", jar.display())), "{text}");
}
