//! The examples for CI services, step by step: the files are read as the services read them, and their commands are run in a real
//! repository of two commits, with real products. Only the service itself is made up: `gh` is a script that keeps what it is told, and
//! GitLab's API is a server of this test.

use crate::common;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{Ended, copy_product, run_within, scratch};
use serde_json::Value;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// A repository as the example has it: nginx by another name, built from a script. The second commit does more for each request.
struct Repository {
    scratch: tempfile::TempDir,
    base: String,
}

impl Repository {
    fn new() -> Repository {
        let repository = Repository { scratch: scratch(), base: String::new() };
        let (top, bin) = (repository.top(), repository.scratch.path().join("bin"));
        let product = top.join("ci/weir/products/gateway");
        fs::create_dir_all(&bin).expect("made");
        copy_product("nginx", &product);
        let gate = top.join("ci/weir-gate");
        fs::copy(Path::new(EXAMPLES).join("ci/weir-gate"), &gate).expect("copied");
        // A test need not be sure to a few per cent, and the machine is not quiet.
        program(&bin.join("weir"), &format!("exec {} \"$@\" --busy --slice 1s", env!("CARGO_BIN_EXE_weir")));
        program(&bin.join("gh"), "printf '%s\\n' \"$@\" >gh.told; cat \"${@: -1}\" >gh.comment");
        fs::write(
            top.join("Makefile"),
            "build:\n\tmkdir -p build && cp gateway.sh build/gateway && chmod +x build/gateway\n",
        )
        .expect("written");
        fs::write(top.join(".gitignore"), "build/\nweir-out/\ngh.*\n").expect("written");
        repository.source("");
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.commit("the first one");
        let base = repository.git(&["rev-parse", "HEAD"]);
        Repository { base, ..repository }
    }

    fn top(&self) -> PathBuf {
        self.scratch.path().join("repository")
    }

    /// The product: nginx, with `work` done for each request.
    fn source(&self, work: &str) {
        let text = format!(
            "#!/bin/sh\nconf=\nfor word; do case $word in *.conf) conf=$word ;; esac; done\n\
             [ -z \"$conf\" ] || sed -i 's#^        location /#{work}        location /#' \"$conf\"\nexec nginx \"$@\"\n"
        );
        fs::write(self.top().join("gateway.sh"), text).expect("written");
    }

    fn dearer(&self) {
        self.source(&"        if ($request_id ~ \"[g-z]$\") { set $slow 1; }\\n".repeat(60));
        self.commit("does more");
    }

    fn git(&self, args: &[&str]) -> String {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let output = Command::new("git").args(who).args(args).current_dir(self.top()).output().expect("git runs");
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Runs a step's script at the top of the repository, as the services do.
    fn step(&self, script: &str, environment: &[(&str, &str)]) -> Ended {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.scratch.path().join("bin");
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", script]).current_dir(self.top()).envs(environment.iter().copied());
        // nginx's own folder, too: it is no user's PATH everywhere.
        shell.env("PATH", format!("{}:{path}:/usr/sbin", bin.display())).env("WEIR_HOME", common::home());
        run_within(&mut shell, Duration::from_secs(400))
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.top().join(name)).unwrap_or_default()
    }
}

fn program(path: &Path, script: &str) {
    fs::write(path, format!("#!/usr/bin/env bash\n{script}\n")).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

fn yaml(name: &str) -> Value {
    let text = fs::read_to_string(Path::new(EXAMPLES).join("ci").join(name)).expect("there");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn githubs_workflow_comments_and_fails_on_a_sure_regression() {
    let workflow = yaml("github.yml");
    let steps = workflow["jobs"]["duet"]["steps"].as_array().expect("steps").clone();
    let named = |name: &str| steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("no step {name}"));
    let script = |name: &str| named(name)["run"].as_str().expect("a script").to_owned();
    let repository = Repository::new();
    repository.dearer();
    let ended = repository.step(&script("Compare"), &[("BASE", &repository.base)]);
    let told = ended.expect(1);
    assert!(told.contains("alarm: cpu +") && told.contains("building head"), "{told}");
    repository.step(&script("Comment"), &[("PR", "7"), ("GITHUB_STEP_SUMMARY", "gh.summary")]).expect(0);
    let comment = repository.text("gh.comment");
    assert!(
        comment.contains("| cpu | ") && comment.contains("sure: worse") && comment.contains("cpu +3%"),
        "{comment}"
    );
    assert!(comment.contains("### gateway=base/build/gateway (A) and gateway=head/build/gateway (B)"), "{comment}");
    assert!(comment.contains(&format!("A is {}", &repository.base[..7])), "{comment}");
    assert_eq!(repository.text("gh.summary"), comment);
    assert!(repository.text("gh.told").starts_with("pr\ncomment\n7\n"), "{}", repository.text("gh.told"));
    assert!(repository.top().join("weir-out/duet/result.json").is_file(), "what the artifact has");
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1, "nothing stays in the repository");
}

#[test]
fn gitlabs_job_writes_a_note_and_fails_on_a_sure_regression() {
    let job = yaml("gitlab.yml")["weir"].clone();
    let lines = |key: &str| {
        let lines = job[key].as_array().unwrap_or_else(|| panic!("no {key}"));
        lines.iter().map(|line| line.as_str().expect("a command").to_owned()).collect::<Vec<_>>().join("\n")
    };
    let repository = Repository::new();
    repository.dearer();
    repository.step(&lines("script"), &[("CI_MERGE_REQUEST_DIFF_BASE_SHA", &repository.base)]).expect(1);
    let (url, asked) = api();
    let environment = [
        ("CI_API_V4_URL", url.as_str()),
        ("CI_PROJECT_ID", "5"),
        ("CI_MERGE_REQUEST_IID", "9"),
        ("WEIR_TOKEN", "a-secret"),
    ];
    repository.step(&lines("after_script"), &environment).expect(0);
    let asked = asked.recv_timeout(Duration::from_secs(10)).expect("a request");
    assert!(asked.starts_with("POST /api/v4/projects/5/merge_requests/9/notes HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("PRIVATE-TOKEN: a-secret\r\n") && asked.contains("sure%3A+worse"), "{asked}");
}

/// A server that takes one request: its address, and what came.
fn api() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/api/v4", listener.local_addr().expect("an address"));
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("curl comes");
        socket.set_read_timeout(Some(Duration::from_secs(2))).expect("set");
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        let whole = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            let (head, body) = text.split_once("\r\n\r\n")?;
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            (length == Some(body.len())).then_some(text.clone())
        };
        while let Ok(count @ 1..) = socket.read(&mut piece) {
            text.extend_from_slice(&piece[..count]);
            if let Some(whole) = whole(&text) {
                let _ = tell.send(whole);
                let _ = socket.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
                return;
            }
        }
    });
    (url, told)
}

#[test]
fn the_gate_lets_pass_what_is_not_surely_worse_and_says_what_is_wrong() {
    let repository = Repository::new();
    fs::write(repository.top().join("README"), "words\n").expect("written");
    repository.commit("no change");
    let usual = "ci/weir-gate --product gateway --binary build/gateway --library ci/weir --budget 6s";
    let base = repository.base.clone();
    let ended = repository.step(&format!("{usual} --base {base} --out out/a -- make build"), &[]);
    ended.expect(0);
    assert!(repository.text("out/a/weir.md").contains("| cpu | "), "{ended:#?}");
    for (line, code, wanted) in [
        (format!("{usual} --base {base} --out out/a -- make build"), 2, "out/a/duet is there already"),
        (format!("{usual} --base nowhere --out out/b -- make build"), 2, "there is no commit nowhere"),
        (format!("{usual} --base {base} --out out/c -- make nothing"), 2, "the build of base failed"),
        (format!("{usual} --base {base} --out out/d -- true"), 2, "made no program build/gateway"),
        (format!("{usual} --base {base} --out out/e"), 2, "no command to build with"),
        (format!("ci/weir-gate --product gateway --base {base} -- make build"), 2, "--binary and --base are needed"),
        (format!("{usual} --base {base} --find 3 --out out/f -- make build"), 2, "per cent between 0.1% and 100%"),
    ] {
        let ended = repository.step(&line, &[]);
        assert!(ended.expect(code).contains(wanted), "{line}: {}", ended.stderr);
    }
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_night_measures_looks_back_and_publishes() {
    let scratch = scratch();
    let bin = scratch.path().join("bin");
    fs::create_dir(&bin).expect("made");
    program(&bin.join("weir"), &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_weir")));
    let night = || {
        let mut script = Command::new(Path::new(EXAMPLES).join("nightly/weir-nightly"));
        script.arg(scratch.path().join("bench")).args(["quick", "--scale", "smoke", "--products", "direct,nginx"]);
        script.args(["--only", "workload=tiny", "--only", "load=capacity"]);
        let path = std::env::var("PATH").unwrap_or_default();
        script.env("PATH", format!("{}:{path}", bin.display())).env("WEIR_HOME", common::home());
        run_within(&mut script, Duration::from_secs(200))
    };
    for runs in 1..=2 {
        night().expect(0);
        let index = fs::read_to_string(scratch.path().join("bench/public/index.html")).expect("a site");
        assert!(index.contains("nginx"), "{index}");
        assert_eq!(fs::read_dir(scratch.path().join("bench/runs")).expect("runs").count(), runs);
    }
    // A second one at the same time would disturb the first.
    let lock = fs::File::open(scratch.path().join("bench/.lock")).expect("there");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    assert!(night().expect(3).contains("another one is at work"));
}
