//! Time, threads and chance are arguments: what the simulated world runs reads no clock, does not sleep, starts no thread and draws
//! nothing without a seed. The files that may are named here, each with its reason.

use std::fs;
use std::path::{Path, PathBuf};

const CRATES: [&str; 6] = ["wire", "net", "quic", "load", "origin", "lab"];

const FORBIDDEN: &str =
    "Instant::now SystemTime::now thread::sleep thread::spawn thread::Builder monotonic_ns( rand::rng";

/// Files, or folders that end with a slash, and why they may.
const ALLOWED: [(&str, &str); 10] = [
    ("net/src/host.rs", "it asks the kernel for what a driver tells"),
    ("net/src/uring/", "a driver has the kernel's time"),
    ("net/src/uring.rs", "a driver has the kernel's time"),
    ("net/src/epoll/", "a driver has the kernel's time"),
    ("net/src/epoll.rs", "a driver has the kernel's time"),
    ("quic/src/endpoint.rs", "an instant to count from: its library takes instants, and there is no other way to one"),
    ("load/src/threads.rs", "it starts the threads in which the turns of a client are taken"),
    ("origin/src/origin.rs", "it starts the threads in which the turns of an origin are taken"),
    ("origin/src/stall_watch.rs", "it looks from outside whether a thread stood still"),
    ("origin/src/pause.rs", "it stops a thread on purpose"),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Lines of code that have a forbidden word: their numbers and the words. Comments and items for tests have none.
fn forbidden(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let code = line.trim_start();
        if code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test") {
            // The item ends on a line that ends a statement, or closes a brace, as far in as the attribute.
            let indent = line.len() - code.len();
            let ends = |line: &str| {
                let code = line.trim_start();
                line.len() - code.len() == indent && (code.starts_with('}') || code.ends_with([';', '}', ',']))
            };
            lines.find(|(_, line)| ends(line));
        } else if !code.starts_with("//") {
            let code = code.split(" // ").next().unwrap_or(code);
            let words = FORBIDDEN.split(' ').filter(|word| code.contains(word));
            found.extend(words.map(|word| (number + 1, word)));
        }
    }
    found
}

/// Rust files below a folder, but those that are all test.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        if path.is_dir() && name != "tests" {
            sources(&path, files);
        } else if name.ends_with(".rs") && !["tests.rs", "sample.rs"].contains(&name) {
            files.push(path);
        }
    }
}

#[test]
fn turns_read_no_clock_and_start_no_thread() {
    let mut wrong = Vec::new();
    for name in CRATES {
        let mut files = Vec::new();
        sources(&crates().join(name).join("src"), &mut files);
        assert!(!files.is_empty(), "{name} has no source");
        for file in files {
            let path = file.strip_prefix(crates()).expect("below it").to_str().expect("UTF-8").to_owned();
            if ALLOWED.iter().any(|(one, _)| path == *one || (one.ends_with('/') && path.starts_with(one))) {
                continue;
            }
            let text = fs::read_to_string(&file).expect("read");
            wrong.extend(forbidden(&text).into_iter().map(|(line, word)| format!("crates/{path}:{line}: {word}")));
        }
    }
    assert!(wrong.is_empty(), "what has to come as an argument:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_forbidden_is_seen_in_code_alone() {
    let text = "//! Instant::now\nuse std::time::Instant;\nfn a() {\n    let b = Instant::now(); // thread::sleep\n    thread::Builder::new()\n        .name(c)\n        .spawn(d);\n}\n\
        #[cfg(test)]\nuse std::thread::spawn;\n#[cfg(test)]\nmod tests {\n    fn e() {\n        std::thread::sleep(f);\n    }\n}\n\
        impl G {\n    #[cfg(test)]\n    fn h() -> u64 {\n        monotonic_ns()\n    }\n\n    fn i() -> u64 {\n        monotonic_ns()\n    }\n}\nlet j = rand::rng();\n";
    let found = forbidden(text);
    assert_eq!(found, [(4, "Instant::now"), (5, "thread::Builder"), (24, "monotonic_ns("), (27, "rand::rng")]);
    assert_eq!(forbidden("/// SystemTime::now\nfn a(now: u64) {}\n"), []);
}
