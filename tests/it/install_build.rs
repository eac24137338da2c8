//! Products that are built here: by the real cargo where nothing has to be downloaded, and by scripts in the place of
//! cargo, go, Maven and npm, which note how they were called.

use crate::common;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use crate::common::shop::{GO, Shop, makes, names, says};
use crate::common::{after_shell, nothing_left, processes_touching, run_within, signal, until};
use rustix::process::Signal;

const CRATE: &str = "[[install]]\nmethod = \"crate\"\nproject = \"program\"\nbinary = \"target/release/thing\"\n";

/// A program without dependencies, with its lock file.
fn program(shop: &Shop, version: &str) {
    let at = |name: &str| format!("library/products/thing/program/{name}");
    shop.file(&at("Cargo.toml"), "[package]\nname = \"thing\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n");
    shop.file(&at("Cargo.lock"), "version = 4\n\n[[package]]\nname = \"thing\"\nversion = \"0.1.0\"\n");
    shop.file(&at("src/main.rs"), &format!("fn main() {{ println!(\"thing {version}\"); }}\n"));
}

/// A tool that notes its arguments, folder and some of its environment, and then does as told.
fn tool(shop: &Shop, name: &str, body: &str) {
    let note = shop.path("note");
    let script = format!(
        "{{ echo \"$(basename \"$0\") $*\"; pwd; env | grep -E '^(GO|CARGO_T|TMPDIR|RUSTFLAGS|http_proxy)' | sort; }} >> '{}'\n{body}",
        note.display()
    );
    shop.script(&format!("bin/{name}"), &script);
}

fn note(shop: &Shop) -> String {
    std::fs::read_to_string(shop.path("note")).expect("it was called")
}

#[test]
fn a_project_is_built_once_and_anew_when_it_changed() {
    let shop = Shop::with(CRATE);
    program(&shop, "1.2.3");
    let ended = shop.install();
    says(ended.expect(0), &["cargo: build products/thing/program from source, with up to 0 crates to download"]);
    shop.works("1.2.3", "crate project program ");
    let [first] = &shop.kept()[..] else { panic!("{:?}", shop.kept()) };
    let folder = shop.path("home/products/thing").join(first);
    assert!(first.len() == "crate-".len() + 12 && first.starts_with("crate-"), "{first}");
    assert_eq!(names(&folder), [".weir-build.log", ".weir-seal", ".weir-sums", "target"]);
    assert_eq!(names(&folder.join("target/release")), ["thing"], "of what was built only the program stays");
    assert_eq!(shop.install().expect(0), "");

    program(&shop, "1.2.4");
    assert_eq!(shop.row()["installed"], serde_json::Value::Null, "it is another program now");
    shop.install().expect(0);
    shop.works("1.2.4", "crate project program ");
    assert_eq!(shop.kept().len(), 2);
}

/// The products of a weir that is root run as another account.
#[test]
fn what_is_installed_others_may_read_whatever_the_umask_is() {
    let shop = Shop::with(CRATE);
    program(&shop, "1.2.3");
    let install = shop.weir(&["products", "install", "thing", "--yes"]);
    run_within(&mut after_shell("umask 077", &install), Duration::from_secs(120)).expect(0);
    let [first] = &shop.kept()[..] else { panic!("{:?}", shop.kept()) };
    let folder = shop.path("home/products/thing").join(first);
    for path in [folder.clone(), folder.join("target/release"), folder.join("target/release/thing")] {
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o055, 0o055, "{}: {mode:o}", path.display());
    }
}

#[test]
fn a_build_that_fails_shows_the_command_and_its_last_lines() {
    let shop = Shop::with(CRATE);
    program(&shop, "1.2.3");
    shop.file("library/products/thing/program/src/main.rs", "fn main() { flux() }\n");
    let ended = shop.install();
    says(ended.expect(3), &["cargo build --release --locked: exit status 101", "cannot find function `flux`"]);
    assert_eq!(shop.kept(), [""; 0]);
    program(&shop, "1.2.3");
    shop.install().expect(0);
    shop.works("1.2.3", "crate project program ");
}

/// In the middle of a build of something that has started something else.
fn building(shop: &Shop) -> std::process::Child {
    let sleeper = shop.script("library/sleeper", "sleep 600");
    tool(shop, "go", &format!("echo compiling; '{}' & wait", sleeper.display()));
    let mut command = shop.weir(&["products", "install", "thing", "--yes"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("weir starts");
    until("a build", Duration::from_secs(60), || {
        processes_touching(&shop.path("library")).iter().any(|(_, args)| args.contains("sleeper"))
    });
    child
}

#[test]
fn ctrl_c_ends_a_build_with_all_it_started() {
    let shop = Shop::with(GO);
    let child = building(&shop);
    signal(child.id(), Signal::INT);
    let ended = child.wait_with_output().expect("waited for");
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    nothing_left(shop.scratch.path(), Duration::from_secs(5));
    assert_eq!(shop.kept(), [""; 0]);
    tool(&shop, "go", &makes("$GOBIN/thing", "1.2.3"));
    shop.install().expect(0);
    shop.works("1.2.3", "go example.org/thing/cmd/thing v1.2.3");
}

#[test]
fn a_killed_weir_takes_its_build_along_and_a_second_try_works() {
    let shop = Shop::with(GO);
    let mut child = building(&shop);
    signal(child.id(), Signal::KILL);
    child.wait().expect("waited for");
    nothing_left(shop.scratch.path(), Duration::from_secs(10));
    assert!(shop.kept()[0].starts_with(".partial-"));
    tool(&shop, "go", &makes("$GOBIN/thing", "1.2.3"));
    shop.install().expect(0);
    shop.works("1.2.3", "go example.org/thing/cmd/thing v1.2.3");
    assert_eq!(shop.kept(), ["go-v1.2.3"]);
}

#[test]
fn a_go_module_is_installed_at_its_version_with_the_users_proxy() {
    let shop = Shop::with(GO);
    tool(&shop, "go", &makes("$GOBIN/thing", "1.2.3"));
    let mut command = shop.weir(&["products", "install", "thing", "--yes"]);
    command.env("GOPROXY", "https://proxy.example.org").env("http_proxy", "http://p:1").env("GOARCH", "pdp11");
    let ended = common::run_within(&mut command, Duration::from_secs(120));
    says(ended.expect(0), &["go: build example.org/thing/cmd/thing v1.2.3 from source"]);
    shop.works("1.2.3", "go example.org/thing/cmd/thing v1.2.3");
    let note = note(&shop);
    let called =
        ["go install -v -trimpath example.org/thing/cmd/thing@v1.2.3", "GOWORK=off", "GOBIN=", "/.partial-", "TMPDIR="];
    says(&note, &called);
    says(&note, &["GOPROXY=https://proxy.example.org", "http_proxy=http://p:1"]);
    assert!(!note.contains("GOARCH"), "{note}");
}

#[test]
fn a_crate_is_installed_at_its_version_with_its_features_and_no_flags_of_the_users() {
    let shop = Shop::with(
        "[[install]]\nmethod = \"crate\"\npackage = \"thing\"\nversion = \"1.2.3\"\nbinary = \"bin/thing\"\nfeatures = [\"a\", \"b\"]\n",
    );
    // cargo install --locked --root <out> ...
    tool(&shop, "cargo", &makes("$4/bin/thing", "1.2.3"));
    let mut command = shop.weir(&["products", "install", "thing", "--yes"]);
    let ended = common::run_within(command.env("RUSTFLAGS", "-Copt-level=0"), Duration::from_secs(120));
    ended.expect(0);
    shop.works("1.2.3", "crate thing 1.2.3");
    let note = note(&shop);
    says(&note, &["--no-track --version 1.2.3 --features a,b thing\n", "CARGO_TARGET_DIR="]);
    assert!(!note.contains("RUSTFLAGS"), "{note}");
    assert_eq!(shop.kept(), ["crate-1.2.3"]);
}

#[test]
fn of_a_maven_project_only_the_jar_stays() {
    let shop = Shop::with("[[install]]\nmethod = \"maven\"\nproject = \"program\"\nbinary = \"target/thing-*.jar\"\n");
    shop.file("library/products/thing/program/pom.xml", "<project/>");
    tool(
        &shop,
        "mvn",
        &format!(
            "echo packaging; test -f pom.xml || exit 4; touch target-other; {}",
            makes("target/thing-1.2.jar", "1.2.3")
        ),
    );
    shop.script("bin/javac", "echo javac 17.0.1");
    let ended = shop.install();
    says(ended.expect(0), &["mvn package: build products/thing/program"]);
    shop.works("1.2.3", "maven project program ");
    says(&note(&shop), &["mvn -B -Dstyle.color=never package\n"]);
    let folder = shop.path("home/products/thing").join(&shop.kept()[0]);
    assert_eq!(names(&folder), [".weir-build.log", ".weir-seal", ".weir-sums", "target"]);
    let log = std::fs::read_to_string(folder.join(".weir-build.log")).expect("there");
    assert_eq!(log, "packaging\n", "what the tool printed");
    assert_eq!(names(&folder.join("target")), ["thing-1.2.jar"]);
}

#[test]
fn an_npm_project_keeps_its_packages_and_runs_none_of_their_scripts() {
    let shop = Shop::with("[[install]]\nmethod = \"npm\"\nproject = \"program\"\nbinary = \"server\"\n");
    let at = |name: &str| format!("library/products/thing/program/{name}");
    shop.file(&at("package.json"), "{}");
    shop.file(
        &at("package-lock.json"),
        "{ \"packages\": {\n \"\": {},\n \"node_modules/a\": {},\n \"node_modules/b\": {}\n} }",
    );
    shop.file(&at("server"), "#!/bin/sh\necho thing 1.2.3");
    tool(&shop, "npm", "mkdir -p node_modules/a; chmod +x server");
    shop.script("bin/node", "echo v18.0.0");
    let ended = shop.install();
    says(ended.expect(0), &["npm ci --ignore-scripts", "up to 2 packages to download"]);
    shop.works("1.2.3", "npm project program ");
    says(&note(&shop), &["npm ci --omit=dev --ignore-scripts --no-audit --no-fund\n"]);
    let folder = shop.path("home/products/thing").join(&shop.kept()[0]);
    assert_eq!(
        names(&folder),
        [".weir-build.log", ".weir-seal", ".weir-sums", "node_modules", "package-lock.json", "package.json", "server"]
    );
}

#[test]
fn missing_and_old_tools_are_named_before_anything_is_done() {
    let needs = |need: &str| format!("{GO}needs = [{need}]\n");
    let shop = Shop::with(&needs("{ program = \"weir-no-such-tool\" }"));
    tool(&shop, "go", "exit 9");
    says(shop.install().expect(3), &["thing is not installed", "go example.org", "weir-no-such-tool is not in PATH"]);

    shop.script("bin/weir-tool", "[ \"$1\" = --version ] && echo weir-tool 2.9.1");
    shop.product("thing", &needs("{ program = \"weir-tool\", at_least = \"2.10\" }"));
    says(shop.install().expect(3), &["weir-tool is version 2.9.1; at least 2.10 is wanted"]);
    assert!(!shop.path("note").exists(), "go was not called");

    shop.product("thing", &needs("{ program = \"weir-tool\", at_least = \"2.9\" }"));
    tool(&shop, "go", &makes("$GOBIN/thing", "1.2.3"));
    shop.install().expect(0);
    shop.works("1.2.3", "go ");
}

#[test]
fn a_tool_that_makes_nothing_is_told_so() {
    let shop = Shop::with(GO);
    tool(&shop, "go", "true");
    let ended = shop.install();
    says(
        ended.expect(3),
        &["go install", "went well, and yet did not make the program", "0 files in it fit `bin/thing`"],
    );
    assert_eq!(shop.kept(), [""; 0]);
    let permissions = std::fs::metadata(shop.path("home")).expect("there").permissions();
    assert_eq!(permissions.mode() & 0o700, 0o700);
}
