//! What weir says, word for word: help texts, and the summary of a load with its numbers masked. Also that what it
//! says fits a terminal, and that a reader who leaves early breaks nothing.
//!
//! `WEIR_BLESS=1 cargo test -p weir-cli --test it words::` writes the texts anew; read the difference before you commit it.

use crate::common;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{OriginUnderTest, masked, run, weir};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/words").join(format!("{name}.txt"))
}

/// Compares with the text kept, or keeps it.
fn same(name: &str, said: &str) {
    let path = golden(name);
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
        std::fs::write(&path, said).expect("written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(said, kept, "{} differs; WEIR_BLESS=1 writes it anew", path.display());
}

#[test]
fn help_is_as_kept_and_has_examples() {
    let verbs = "weir, run, load, origin, products, products list, products show, products install, products use, \
                 products path, products test, suites, suites list, suites show, doctor, hosts, hosts check, hosts clean, \
                 help, completions, man, report, site, compare, history, duet";
    for verb in verbs.split(", ") {
        let verb: Vec<&str> = verb.split(' ').filter(|word| *word != "weir").collect();
        let ended = run(&[&verb[..], &["--help"]].concat());
        ended.expect(0);
        let text = &ended.stdout;
        assert!(text.contains("Examples:"), "{verb:?} has no examples:\n{text}");
        let (options, examples) = text.split_once("Examples:").expect("asserted");
        for line in examples.lines() {
            assert!(line.chars().count() <= 80, "{verb:?}: wider than 80 columns: {line}");
        }
        assert!(!options.contains("  \n\n\n"), "{verb:?}");
        same(&format!("help-{}", if verb.is_empty() { "weir".to_owned() } else { verb.join("-") }), text);
    }
}

#[test]
fn without_arguments_weir_says_what_to_do_in_ten_lines() {
    let ended = run(&[]);
    let said = ended.expect(2);
    assert_eq!(ended.stdout, "");
    assert!(said.lines().count() <= 10 && said.lines().all(|line| line.chars().count() <= 80), "{said}");
    same("start", said);
    // Every line that names a command names one that is there, and that needs no flag.
    let commands: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("  weir ")).collect();
    assert_eq!(commands.len(), 4);
    for command in commands {
        let words: Vec<&str> = command.split("  ").next().expect("a first part").split(' ').collect();
        assert!(words.len() <= 2 && !words.iter().any(|word| word.starts_with('-')), "{command}");
        run(&[words.as_slice(), &["--help"]].concat()).expect(0);
    }
}

#[test]
fn each_topic_of_a_load_is_as_kept() {
    for topic in ["load", "find-max", "request", "key-value", "responses", "connections", "tls", "output"] {
        let ended = run(&["help", "load", topic]);
        ended.expect(0);
        for line in ended.stdout.lines() {
            assert!(line.chars().count() <= 100, "{topic}: wider than 100 columns: {line}");
        }
        same(&format!("topic-{topic}"), &ended.stdout);
    }
    // The same words as of the flag.
    assert_eq!(run(&["help", "load"]).stdout.trim(), run(&["load", "--help"]).stdout.trim());
    let ended = run(&["help", "load", "tsl"]);
    assert!(ended.expect(2).contains("expected: load, find-max,"), "{}", ended.stderr);
    run(&["help", "keep"]).expect(2);
}

#[test]
fn the_short_help_of_a_load_fits_a_screen() {
    let ended = run(&["load", "-h"]);
    ended.expect(0);
    assert!(ended.stdout.lines().count() <= 24, "{}", ended.stdout);
    for line in ended.stdout.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
    same("help-load-short", &ended.stdout);
}

#[test]
fn shells_and_man_pages_know_every_verb_that_is_shown() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = run(&["completions", shell]);
        ended.expect(0);
        for word in ["find-max", "products", "origin", "fail-if"] {
            assert!(ended.stdout.contains(word), "{shell} does not know {word}");
        }
    }
    let scratch = common::scratch();
    run(&["man", scratch.path().to_str().expect("UTF-8")]).expect(0);
    for page in ["weir.1", "weir-load.1", "weir-products-install.1"] {
        let text = std::fs::read_to_string(scratch.path().join(page)).expect("written");
        assert!(text.contains(".TH weir"), "{page}");
    }
    assert!(run(&["man"]).stdout.contains(".TH weir 1"));
    assert!(run(&["man", "/no/such/folder"]).expect(2).contains("/no/such/folder"));
}

fn summary(name: &str, code: i32, args: &[&str]) -> String {
    let ended = run(args);
    ended.expect(code);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines.len() <= 23, "more than a screen of 24 lines with the prompt:\n{}", ended.stdout);
    for line in &lines {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
    assert!(ended.stderr.is_empty(), "-q, and yet: {}", ended.stderr);
    same(name, &masked(&ended.stdout));
    ended.stdout
}

#[test]
fn a_load_is_summed_up_on_one_screen() {
    let origin = OriginUnderTest::start(&[]);
    let url = |path: &str| origin.url(path);
    summary("load-count", 0, &["load", &url("/bytes/128?delay=5ms"), "-n", "60", "-c", "4", "-q", "--driver", "epoll"]);
    let wrong =
        summary("load-wrong", 1, &["load", &url("/status/404"), "-n", "50", "-c", "2", "-q", "--driver", "epoll"]);
    assert!(wrong.contains("no response was successful"), "{wrong}");
    let args = ["-n", "50", "-c", "2", "-q", "--driver", "epoll"];
    let redirects = summary("load-redirects", 0, &[["load", &url("/status/301")].as_slice(), &args].concat());
    assert!(redirects.contains("every response was a redirect (301), which weir does not follow"), "{redirects}");
    // Ten a second on one connection that takes 300 ms each cannot be carried, on any machine.
    let args = ["--rate", "10", "-c", "1", "-d", "2s", "--warmup", "0s", "--timeout", "1s", "-q", "--driver", "epoll"];
    let slow = summary("load-too-much", 1, &[["load", &url("/delay/300ms")].as_slice(), &args].concat());
    assert!(slow.contains("never sent") && slow.contains("did not carry"), "{slow}");
}

#[test]
fn a_reader_who_leaves_breaks_nothing() {
    for args in [["suites", "show", "quick"].as_slice(), &["products", "list", "--json"], &["load", "--help"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = weir(args).stdout(writer).stderr(Stdio::piped()).output().expect("weir runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(0) && said.is_empty(), "{args:?}: {:?}\n{said}", ended.status);
    }
}

#[test]
fn a_full_disk_under_the_result_is_said() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let ended = weir(&["suites", "list"]).stdout(full).stderr(Stdio::piped()).output().expect("weir runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("standard output") && said.contains("No space left"), "{said}");
}

#[test]
fn a_dry_run_lists_the_trials_and_starts_nothing() {
    let scratch = common::scratch();
    let out = scratch.path().join("run");
    let out_text = out.to_str().expect("UTF-8");
    let args = ["run", "quick", "--products", "direct,nginx", "--blocks", "2", "--seed", "7", "--dry-run"];
    let ended = run(&[args.as_slice(), &["--out", out_text]].concat());
    ended.expect(0);
    same("dry-run", &ended.stdout);
    assert!(!out.exists(), "nothing was started");
    let ended = run(&[args.as_slice(), &["--json"]].concat());
    ended.expect(0);
    let json = ended.json();
    assert_eq!(json["trials"].as_array().map(Vec::len), Some(16));
    assert_eq!(json["seed"], 7);
    assert!(json["trials"][0]["case"]["product"].is_string() && json["trials"][0]["seconds"].as_f64() > Some(1.0));
}

#[test]
fn common_mistakes_are_named() {
    for (args, code, words) in [
        (["products", "path", "direct"].as_slice(), 2, "no binary"),
        (&["origin", "--listen", "9000"], 2, "127.0.0.1:9000"),
        (&["origin", "--threads", "0"], 2, "--threads"),
        (&["doctor", "--runs", "/no/such/folder"], 2, "no folder /no/such/folder"),
        (&["products", "list", "--library", "/no/such/folder"], 2, "no folder /no/such/folder"),
        (&["suites", "show", "./no-such.toml"], 2, "no file ./no-such.toml"),
        (&["load", "http://127.0.0.1:1/", "-d", "0s", "-q"], 2, "expected"),
        (&["load", "juno://127.0.0.1:1", "--ops", "X:1", "-q"], 2, "\"X\" is no operation"),
        (&["load", "juno://127.0.0.1:1", "--ops", "G:1", "-q"], 2, "reads an empty store"),
        (&["load", "redis://127.0.0.1:1", "--keys", "uniform", "--key-count", "5", "-q"], 2, "at least 64 keys"),
        (&["load", "redis://127.0.0.1:1", "-n", "1", "-q"], 3, "connect_refused"),
    ] {
        let ended = run(args);
        let said = ended.expect(code);
        assert!(said.contains(words), "{args:?}: no {words:?} in:\n{said}");
        assert!(!said.contains("Some(") && !said.contains("[0"), "Debug output: {said}");
    }
}
