//! Everything a user can get wrong has one message that says what was found and what would be right, an exit status
//! that scripts can use, and starts nothing.

use crate::common;
use std::path::Path;

use crate::common::shop::Shop;
use crate::common::{OriginUnderTest, run, run_within, scratch, suite, text, weir, words};

/// Runs weir, expects bad input, and expects every word in the message.
fn refused(args: &[&str], code: i32, words: &[&str]) {
    let ended = run(args);
    let said = ended.expect(code);
    for word in words {
        assert!(said.contains(word), "{args:?}: no {word:?} in:\n{said}");
    }
}

#[test]
fn unknown_names_are_refused_with_those_that_exist() {
    refused(&["run", "quik"], 2, &["quik", "did you mean \"quick\"?"]);
    refused(&["run", "quick", "--products", "direct,ngnix"], 2, &["ngnix", "did you mean \"nginx\"?"]);
    refused(&["run", "quick", "--profile", "fast"], 2, &["fast", "tuned"]);
    refused(&["run", "quick", "--only", "workload=huge"], 2, &["huge", "tiny"]);
    refused(&["run", "quick", "--only", "size=1"], 2, &["size", "workload"]);
    refused(&["products", "show", "ngnix"], 2, &["did you mean \"nginx\"?"]);
    refused(&["run", "quick", "--cpus", "proxy=999"], 2, &["may not use CPU 999", "0-"]);
    refused(&["run", "quick", "--cpus", "middle=0"], 2, &["middle", "client, proxy or origin"]);
    refused(&["run", "quick", "--blocks", "0"], 2, &["--blocks"]);
}

#[test]
fn flags_of_pods_are_for_pods_and_need_kubectl() {
    for (flag, value) in [("--image", "weir:2"), ("--namespace", "bench"), ("--context", "kind")] {
        for topology in ["local", "netns"] {
            let args = ["run", "quick", "--topology", topology, flag, value];
            refused(&args, 2, &[&format!("{flag}: {value}"), "together with --topology kubernetes"]);
        }
        assert!(run(&["run", "--help"]).stdout.contains(&format!("{flag} <")), "{flag}");
    }
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut command = weir(&["run", "quick", "--scale", "smoke", "--yes", "--topology", "kubernetes", "--out"]);
    command.arg(&out).env("PATH", scratch.path());
    let ended = run_within(&mut command, std::time::Duration::from_secs(30));
    let said = ended.expect(3);
    assert!(said.contains("no kubectl in PATH") && said.contains("reaches the cluster"), "{said}");
    assert!(!out.exists(), "nothing was started");
}

#[test]
fn parts_that_cannot_be_where_the_topology_has_them_are_refused_with_line_and_key() {
    let scratch = scratch();
    let file = scratch.path().join("hosts.toml");
    let path = file.to_str().expect("UTF-8").to_owned();
    let out = scratch.path().join("run");
    let host = |k: usize, roles: &str| {
        format!("[[host]]\nname = \"h{k}\"\nroles = [{roles}]\nssh = \"h{k}.test\"\naddress = \"10.0.0.{k}\"\n")
    };
    let refused_for = |roles: [&str; 3], product: &str, words: &[&str]| {
        let text: String = roles.iter().enumerate().map(|(k, roles)| host(k + 1, roles)).collect();
        std::fs::write(&file, text).expect("written");
        let out = out.to_str().expect("UTF-8");
        refused(
            &["run", "juno", "--products", product, "--scale", "smoke", "--topology", &path, "--out", out],
            2,
            words,
        );
    };
    let line = |line: usize| format!("{path}:{line}: host");
    let at = line(13) + "[2].roles: no product has a part store-9";
    refused_for(["\"client\"", "\"proxy\"", "\"proxy:store-9\""], "quorum", &[&at, "proxy:front"]);
    let at = line(13) + "[2].roles: quorum has no part replica-1";
    refused_for(
        ["\"client\"", "\"proxy\", \"proxy:store-1\"", "\"proxy:replica-1\""],
        "quorum",
        &[&at, "proxy:store-2"],
    );
    let at = line(1) + ": no host has the part store-2 of quorum";
    refused_for(
        ["\"client\"", "\"proxy:front\"", "\"proxy:store-1\""],
        "quorum",
        &[&at, "[\"proxy:store-2\"] at a host"],
    );
    let at = line(13) + "[2].roles: proxy:store-1 is a role of host[1], \"h2\", too";
    refused_for(["\"client\"", "\"proxy:store-1\"", "\"proxy:store-1\""], "quorum", &[&at, "each part at one host"]);
    let at = line(1) + ": no host has the role origin, and direct needs one";
    refused_for(["\"client\"", "\"proxy\"", "\"proxy:store-1\""], "direct,quorum", &[&at, "roles = [\"origin\"]"]);
    assert!(!out.exists(), "nothing was started");
}

#[test]
fn a_wrong_suite_file_is_refused_with_line_and_key() {
    let scratch = scratch();
    let path = scratch.path().join("wrong.toml");
    let head = "title = \"Wrong\"\nblocks = 1\nproducts = [\"direct\"]\nprofile = \"tuned\"";
    let load = "name = \"capacity\"\nkind = \"closed\"\nconnections = 1\nwarmup = \"1 parsec\"\nduration = \"1s\"";
    std::fs::write(&path, suite(head, load).replace("path", "pth")).expect("written");
    let path = path.to_str().expect("UTF-8");
    let (key, unit) = (format!("{path}:11"), format!("{path}:18"));
    refused(&["run", path], 2, &[&key, "pth", "did you mean \"path\"?", &unit, "warmup", "parsec", "ms"]);
    refused(&["run", "no-such.toml"], 2, &["no-such.toml"]);
}

#[test]
fn a_taken_port_is_said_to_be_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("bound").to_string();
    refused(&["origin", "--listen", &addr], 3, &[&addr, "in use"]);
}

#[test]
fn a_target_that_refuses_connections_is_said_to() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let ended = run(&["load", &format!("http://{free}/"), "-d", "1s", "--timeout", "1s", "-q"]);
    assert!(matches!(ended.code(), Some(1 | 3)), "{ended:?}");
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("refused"), "{ended:?}");
}

#[test]
fn load_with_failed_requests_ends_with_one() {
    let origin = OriginUnderTest::start(&[]);
    let ended = run(&["load", &origin.url("/status/503"), "-n", "50", "-c", "2", "-q", "--json"]);
    ended.expect(1);
    assert_eq!(ended.json()["window"]["errors"]["bad_status"], 50);
    let ended = run(&["load", &origin.url("/status/503"), "-n", "50", "-c", "2", "-q", "--expect-status", "503"]);
    ended.expect(0);
}

#[test]
fn too_few_descriptors_are_seen_before_anything_starts() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut command = std::process::Command::new("prlimit");
    command.arg("--nofile=300:300").arg(env!("CARGO_BIN_EXE_weir"));
    command.args(words("run quick --scale smoke --yes --out"));
    command.arg(&out).env("WEIR_HOME", common::home());
    let ended = run_within(&mut command, std::time::Duration::from_secs(30));
    let said = ended.expect(2);
    assert!(said.contains("descriptors") && said.contains("ulimit -Hn"), "{said}");
    assert!(!out.exists(), "nothing was started");
    command = std::process::Command::new("prlimit");
    command.arg("--nofile=100:100").arg(env!("CARGO_BIN_EXE_weir"));
    command.args(words("load http://127.0.0.1:1/ -c 500 -q --driver epoll"));
    let ended = run_within(&mut command, std::time::Duration::from_secs(30));
    assert!(ended.stderr.contains("500 connections need") && ended.stderr.contains("ulimit -Hn"), "{ended:?}");
    assert_ne!(ended.code(), Some(0));
}

#[test]
fn folders_that_cannot_be_used_are_refused() {
    let scratch = scratch();
    let full = scratch.path().join("full");
    std::fs::create_dir(&full).expect("made");
    std::fs::write(full.join("thesis.txt"), "mine").expect("written");
    let into = |out: &Path| {
        let mut command = weir(&words("run quick --scale smoke --yes --products direct --out"));
        run_within(command.arg(out), std::time::Duration::from_secs(60))
    };
    let ended = into(&full);
    assert!(ended.expect(2).contains("not empty"), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(full.join("thesis.txt")).expect("still there"), "mine");
    let ended = into(Path::new("/proc/weir"));
    assert!(ended.expect(3).contains("/proc"), "{}", ended.stderr);
    let odd = scratch.path().join("50%");
    let ended = into(&odd);
    assert!(ended.expect(2).contains("has '%' in it"), "{}", ended.stderr);
    assert!(!odd.exists(), "nothing was started");
    refused(&["run", "--resume", scratch.path().to_str().expect("UTF-8")], 2, &["not a run folder"]);
    refused(&["report", scratch.path().to_str().expect("UTF-8")], 2, &[scratch.path().to_str().expect("UTF-8")]);
}

/// What stands in the place of a run's file may be no file: a reader of a FIFO waits for ever, and a device has no end.
#[test]
fn a_run_whose_files_are_none_is_read_and_said_to_be_broken() {
    let scratch = scratch();
    let folder = scratch.path().join("run");
    let out = folder.to_str().expect("UTF-8");
    let only = ["--only", "workload=tiny", "--only", "load=capacity"];
    let args =
        ["run", "quick", "--scale", "smoke", "--blocks", "2", "--products", "direct", "--yes", "-q", "--out", out];
    run(&[&args[..], &only].concat()).expect(0);
    let measured = common::measurements(&folder);
    let fifo = |path: &Path| {
        std::fs::remove_file(path).expect("removed");
        nix_fifo(path);
    };
    fifo(&measured[0].0.join("load.csv"));
    fifo(&measured[0].0.join("latency.hlog"));
    let zero = measured[1].0.join("measurement.json");
    std::fs::remove_file(&zero).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", &zero).expect("linked");
    for args in [&["report", out][..], &["compare", out, out], &["history", out]] {
        let mut limited = std::process::Command::new("prlimit");
        limited.arg("--as=2000000000").arg(env!("CARGO_BIN_EXE_weir")).args(args).env("WEIR_HOME", common::home());
        let ended = run_within(&mut limited, std::time::Duration::from_secs(30));
        assert!(matches!(ended.code(), Some(0..=3)), "{args:?}: {ended:#?}");
    }
    let report = std::fs::read_to_string(folder.join("report/report.md")).expect("a report");
    assert!(report.contains("not a regular file"), "{report}");
    fifo(&folder.join("run.toml"));
    fifo(&folder.join("environment.json"));
    let ended = run_within(&mut weir(&["report", out]), std::time::Duration::from_secs(30));
    assert!(ended.expect(1).contains(": not a regular file (and "), "{ended:#?}");
    for verb in [&["compare", out, out][..], &["history", out], &["run", "--resume", out, "--yes"]] {
        let ended = run_within(&mut weir(verb), std::time::Duration::from_secs(30));
        assert!(matches!(ended.code(), Some(0..=3)), "{verb:?}: {ended:#?}");
    }
}

fn nix_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
    assert!(made.success(), "{}", path.display());
}

const OWN: &str = r#"[[install]]
method = "own"
where = "our build server, the newest job"
about = "the file ours""#;

/// `where` is for people. A product whose file is wrong stands in the way of nothing but itself.
#[test]
fn a_broken_product_breaks_itself_alone() {
    let shop = Shop::with("");
    shop.product("ours", OWN);
    shop.file("library/products/broken/product.toml", "[product]\ntitel = 1\n");
    let library = shop.path("library");
    let library = text(&library);
    let ended = run(&["products", "show", "ours", "--library", library]);
    ended.expect(0);
    assert!(ended.stdout.contains("the file ours, from our build server, the newest job"), "{}", ended.stdout);
    let ended = run(&["products", "list", "--library", library]);
    assert!(ended.expect(0).contains("not listed:") && ended.stdout.contains("ours"), "{ended:#?}");
    refused(&["products", "show", "broken", "--library", library], 2, &["broken/product.toml", "titel"]);
    refused(&["run", "quick", "--dry-run", "--library", library], 2, &["broken/product.toml", "titel"]);
}

#[test]
fn a_relative_folder_of_weirs_own_is_refused() {
    let ended = run_within(weir(&["products", "list"]).env("WEIR_HOME", "here"), std::time::Duration::from_secs(30));
    let said = ended.expect(2);
    assert!(said.contains("WEIR_HOME: here is a relative path") && said.contains("absolute path"), "{said}");
}

#[test]
fn yes_needs_nothing_to_be_asked() {
    let ended = run(&["products", "test", "-y", "--checks"]);
    ended.expect(0);
}

/// Where the user may have few processes, weir says what it could not do. Root may have as many as there are.
#[test]
fn a_limit_of_processes_is_said_and_no_panic() {
    let scratch = scratch();
    let binary = scratch.path().join("weir");
    std::fs::copy(env!("CARGO_BIN_EXE_weir"), &binary).expect("copied");
    let home = scratch.path().join("home");
    std::fs::create_dir(&home).expect("made");
    for path in [scratch.path(), &home, &binary] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("open to all");
    }
    for limit in 1..=10 {
        // A user of no other process.
        let script = format!("ulimit -u {limit}; exec setpriv --reuid=54321 --regid=54321 --clear-groups \"$@\"");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(&binary).args(["products", "install", "caddy", "-y"]);
        let ended = run_within(command.env("WEIR_HOME", &home).env("HOME", &home), std::time::Duration::from_secs(60));
        assert!(matches!(ended.code(), Some(0..=3)), "limit {limit}: {ended:#?}");
        assert!(!ended.stderr.contains("panicked"), "limit {limit}: {}", ended.stderr);
    }
}
