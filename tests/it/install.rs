//! Installing as a user does it: what is said and asked beforehand, what can go wrong, and that a second try works
//! however the first one ended.

use crate::common;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::shop::{Server, Shop, THING, names, release, says, thing_sha256};
use crate::common::{nothing_left, run_within, signal, until};
use rustix::process::Signal;

#[test]
fn what_will_be_done_is_said_and_asked_before_it_is_done() {
    let server = Server::of(THING.as_bytes());
    let url = server.url("/thing");
    let shop = Shop::with(&release(&url, &thing_sha256()));
    let folder = shop.path("home/products/thing/release-1.2.3");
    shop.agree();

    let ended = shop.run(&["products", "install", "thing"]);
    let said = ended.expect(3);
    let step = format!("  - download {url}, check its SHA-256, put it into {}", folder.display());
    says(said, &["Not installed yet: Thing. weir will:", &step, "there is no terminal to ask on", "--yes"]);
    assert!(!folder.exists(), "nothing was done");
    assert_eq!(shop.row()["installed"], serde_json::Value::Null);

    let ended = shop.install();
    says(ended.expect(0), &[&step, "SHA-256 as expected"]);
    says(&ended.stdout, &["1.2.3 (release 1.2.3)"]);
    shop.works("1.2.3", "release 1.2.3");
    assert_eq!(shop.kept(), ["release-1.2.3"]);
    assert_eq!(shop.install().expect(0), "", "the second time there is nothing to say");
    let ended = shop.run(&["products", "path", "thing"]);
    ended.expect(0);
    assert_eq!(ended.stdout.trim(), folder.join("thing").display().to_string());
}

/// weir's own folder changes without a question. Packages of the system need a yes, and a run goes on without them.
#[test]
fn a_run_asks_nothing_and_installs_no_packages_unasked() {
    let server = Server::of(THING.as_bytes());
    let shop = Shop::with(&release(&server.url("/thing"), &thing_sha256()));
    shop.product("other", "[[install]]\nmethod = \"apt\"\npackage = \"weir-none\"\nbinary = \"/nonexistent/other\"\n");
    shop.agree();
    for tool in ["apt-get", "dpkg-query"] {
        shop.script(&format!("bin/{tool}"), "exit 1");
    }
    shop.script("bin/sudo", "shift; exec \"$@\"");
    let run = |products: &str, code: i32, more: &[&str]| {
        let head = format!("title = \"Two\"\nblocks = 1\nprofile = \"stock\"\nproducts = [{products}]");
        let load = "name = \"closed\"\nkind = \"closed\"\nconnections = 4\nwarmup = \"1s\"\nduration = \"1s\"";
        let suite = shop.file("two.toml", &common::suite(&head, load)).display().to_string();
        let out = shop.path(&format!("run-{code}")).display().to_string();
        let ended = shop.run(&[&["run", &suite, "--out", &out], more].concat());
        (ended.expect(code).to_owned(), PathBuf::from(out))
    };
    let (said, out) = run("\"direct\", \"other\"", 3, &[]);
    says(&said, &["Without packages of the system for other (weir-none)", "--yes", "there is no product to measure"]);
    assert!(!out.exists(), "nothing was started");
    // The thing is no proxy: its trial fails, after it was installed.
    let (said, out) = run("\"direct\", \"thing\", \"other\"", 1, &[]);
    says(
        &said,
        &["weir will:\n  - download", "left out: other could not be installed: it needs packages", "weir-none"],
    );
    assert!(!said.contains("[y/N]") && out.exists(), "{said}");
    shop.works("1.2.3", "release 1.2.3");
    // Products that are named are all wanted.
    let (said, _) = run("\"direct\"", 3, &["--products", "direct,other"]);
    says(&said, &["there is no terminal to ask on", "to go on without asking: --yes"]);
}

/// Nothing of a library of the user's runs before they agreed: looking neither asks nor fails, and all else is refused where nobody
/// can be asked.
#[test]
fn nothing_of_a_library_runs_before_the_user_agreed() {
    let system = "[[install]]\nmethod = \"system\"\nbinary = \"thing\"\n";
    let shop = Shop::with(system);
    // In the place of one that is built in.
    shop.product("caddy", system);
    // As root, weir asks the thing for its version as another user, who cannot write into the shop.
    let open = common::scratch();
    std::fs::set_permissions(open.path(), PermissionsExt::from_mode(0o777)).expect("opened");
    let (ran, out) = (open.path().join("ran"), shop.path("run"));
    let binary = shop.script("bin/thing", &format!("touch '{}'; echo thing 1.2.3", ran.display()));
    let (binary, out_text) = (binary.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    let head = "title = \"Two\"\nblocks = 1\nprofile = \"stock\"\nproducts = [\"direct\", \"thing\", \"caddy\"]";
    let load = "name = \"closed\"\nkind = \"closed\"\nconnections = 4\nwarmup = \"200ms\"\nduration = \"200ms\"";
    shop.file("library/suites/two.toml", &common::suite(head, load));
    let looks: [(&[&str], &str); 6] = [
        (&["products", "list"], "thing"),
        (&["products", "list", "--outdated"], "thing version unknown"),
        (&["products", "show", "caddy"], "state version unknown"),
        (&["products", "path", "thing"], binary),
        (&["suites", "show", "two"], "caddy, thing: version unknown"),
        (&["run", "two", "--dry-run"], "caddy, thing: version unknown"),
    ];
    let look = || {
        for (args, words) in looks {
            let ended = shop.run(args);
            ended.expect(0);
            // Lines are broken to the terminal's width.
            let said: Vec<&str> = ended.stdout.split_whitespace().chain(ended.stderr.split_whitespace()).collect();
            says(&said.join(" "), &[words, "you have not agreed yet that weir runs the programs of the library"]);
            assert!(!ran.exists(), "{args:?}");
        }
    };
    let refused = || {
        let run: &[&str] = &["run", "two", "--out", out_text];
        let others: [&[&str]; 4] = [
            &["products", "install", "thing"],
            &["products", "use", "thing", "--binary", binary],
            &["products", "test", "thing"],
            &["duet", "direct:stock", "thing:stock", "--out", out_text],
        ];
        for args in others.into_iter().chain([run]) {
            let ended = shop.run(args);
            let said = ended.expect(3);
            says(
                said,
                &["- thing: [\"{{ binary }}\", \"--version\"], [\"{{ binary }}\"]", "- caddy: ", "with your rights"],
            );
            says(
                said,
                &["names programs to run, and there is no terminal to ask on", "to go on without asking: --yes"],
            );
            assert!(!ran.exists() && !out.exists(), "{args:?}");
        }
    };
    let at_a_terminal = |response: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", "a=$1; shift; echo $a | script -qec \"$*\" /dev/null", "sh", response]);
        command.args([env!("CARGO_BIN_EXE_weir"), "products", "install", "thing"]);
        shop.furnish(&mut command);
        run_within(&mut command, Duration::from_secs(60))
    };
    look();
    refused();
    let ended = at_a_terminal("n");
    assert_eq!(ended.code(), Some(3), "{ended:#?}");
    says(&ended.stdout, &["Run them? [y/N]", "nothing of it was run"]);
    assert!(!ran.exists());
    // What is built in needs no agreement.
    shop.run(&["run", "two", "--products", "direct", "--out", shop.path("direct").to_str().expect("UTF-8")]).expect(0);
    assert!(!ran.exists());

    // The thing is no proxy: its trials fail.
    let said = shop.run(&["run", "two", "--yes", "--out", out_text]);
    says(said.expect(1), &["weir will run what the library", "- thing: "]);
    assert!(ran.exists() && out.exists());
    let listed = shop.run(&["products", "list"]);
    assert!(!listed.expect(0).contains("agreed") && listed.stdout.contains("1.2.3 (system)"), "{listed:#?}");
    assert!(!shop.run(&["products", "install", "thing"]).expect(0).contains("weir will run"), "it is asked for once");

    // A changed library is another one, until it is as it was.
    std::fs::remove_file(&ran).expect("removed");
    std::fs::remove_dir_all(&out).expect("removed");
    let file = "library/products/thing/product.toml";
    let before = std::fs::read_to_string(shop.path(file)).expect("there");
    shop.file(file, &format!("{before}#"));
    look();
    refused();
    let ended = at_a_terminal("y");
    assert_eq!((ended.code(), ran.exists()), (Some(0), true), "{ended:#?}");
    std::fs::remove_file(&ran).expect("removed");
    shop.file(file, &before);
    let path = shop.run(&["products", "path", "thing"]);
    assert!(path.expect(0).is_empty() && ran.exists(), "{path:#?}");
}

#[test]
fn a_wrong_hash_is_refused_and_the_right_one_works() {
    let server = Server::of(THING.as_bytes());
    let wrong = "ab".repeat(32);
    let shop = Shop::with(&release(&server.url("/thing"), &wrong));
    let ended = shop.install();
    says(ended.expect(3), &["wrong SHA-256; refused", &wrong, &thing_sha256(), &server.url("/thing")]);
    assert_eq!(shop.kept(), [""; 0]);
    shop.product("thing", &release(&server.url("/thing"), &thing_sha256()));
    shop.install().expect(0);
    shop.works("1.2.3", "release 1.2.3");
}

#[test]
fn without_a_network_the_address_and_the_ways_out_are_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let url = format!("http://{free}/thing");
    let shop = Shop::with(&release(&url, &thing_sha256()));
    let ended = shop.install();
    says(ended.expect(3), &[&url, "not downloaded", "refused", "https_proxy", "weir products use thing --binary"]);
    assert_eq!(shop.kept(), [""; 0]);
}

/// The proxy answers with the thing itself, which is no way to be a proxy.
#[test]
fn releases_come_through_the_proxy_of_the_environment() {
    let proxy = Server::of(b"");
    let shop = Shop::with(&release("https://weir.invalid/thing", &thing_sha256()));
    let mut command = shop.weir(&["products", "install", "thing", "--yes"]);
    command.env_remove("ALL_PROXY").env_remove("all_proxy").env_remove("NO_PROXY").env_remove("no_proxy");
    let ended = run_within(command.env("HTTPS_PROXY", proxy.url("/")), Duration::from_secs(120));
    let through =
        format!("through the proxy {}, which the environment names", proxy.url("").trim_start_matches("http://"));
    says(ended.expect(3), &["https://weir.invalid/thing: not downloaded", &through]);
}

/// Starts an install that will not end by itself, and waits until it is in the middle of it.
fn stalled(shop: &Shop) -> std::process::Child {
    let mut command = shop.weir(&["products", "install", "thing", "--yes"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("weir starts");
    until("half a download", Duration::from_secs(60), || {
        let made = shop.kept().into_iter().find(|name| name.starts_with(".partial-"));
        made.is_some_and(|name| {
            let file = shop.path("home/products/thing").join(name).join("work/download");
            std::fs::metadata(file).is_ok_and(|meta| meta.len() > 0)
        })
    });
    child
}

#[test]
fn ctrl_c_leaves_nothing_and_a_second_try_works() {
    let server = Server::of(THING.as_bytes());
    let shop = Shop::with(&release(&server.url("/stalls"), &thing_sha256()));
    let child = stalled(&shop);
    signal(child.id(), Signal::INT);
    let ended = child.wait_with_output().expect("waited for");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    says(&said, &["interrupted", "a second try starts afresh"]);
    assert_eq!(shop.kept(), [""; 0]);
    nothing_left(shop.scratch.path(), Duration::from_secs(3));
    shop.product("thing", &release(&server.url("/thing"), &thing_sha256()));
    shop.install().expect(0);
    shop.works("1.2.3", "release 1.2.3");
}

#[test]
fn what_a_kill_leaves_is_swept_by_the_second_try() {
    let server = Server::of(THING.as_bytes());
    let shop = Shop::with(&release(&server.url("/stalls"), &thing_sha256()));
    let mut child = stalled(&shop);
    signal(child.id(), Signal::KILL);
    assert_eq!(child.wait().expect("waited for").signal(), Some(9));
    assert!(shop.kept()[0].starts_with(".partial-"), "{:?}", shop.kept());
    assert_eq!(shop.row()["installed"], serde_json::Value::Null, "half done is not installed");
    shop.product("thing", &release(&server.url("/thing"), &thing_sha256()));
    shop.install().expect(0);
    shop.works("1.2.3", "release 1.2.3");
    assert_eq!(shop.kept(), ["release-1.2.3"]);
}

#[test]
fn a_home_that_cannot_be_written_is_named() {
    let server = Server::of(THING.as_bytes());
    let shop = Shop::with(&release(&server.url("/thing"), &thing_sha256()));
    shop.file("home", "a file where a folder would have to be");
    let ended = shop.install();
    says(ended.expect(3), &[shop.path("home").to_str().expect("UTF-8"), "WEIR_HOME set to a folder"]);
}

#[test]
fn a_binary_of_the_users_is_chosen_and_undone() {
    let server = Server::of(THING.as_bytes());
    let own = "[[install]]\nmethod = \"own\"\nwhere = \"https://example.org/releases\"\nabout = \"the archive thing-1.tgz\"\n";
    let shop = Shop::with(&format!("{}{own}", release(&server.url("/thing"), &thing_sha256())));
    let mine = shop.script("mine", "echo thing 4.5");
    let mine = mine.to_str().expect("UTF-8");

    shop.agree();
    let ended = shop.run(&["products", "show", "thing"]);
    ended.expect(0);
    // Lines are broken to the terminal's width.
    let shown = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    says(&shown, &["the archive thing-1.tgz, from https://example.org/releases", "use thing --binary <path>"]);
    let ended = shop.run(&["products", "path", "thing"]);
    says(ended.expect(3), &["Thing is not installed", "the archive thing-1.tgz, from https://example.org/releases"]);

    let ended = shop.run(&["products", "use", "thing", "--binary", mine]);
    ended.expect(0);
    says(&ended.stdout, &[&format!("thing is 4.5 (own {mine}) from now on")]);
    shop.works("4.5", "own ");
    let kept = std::fs::read_to_string(shop.path("home/products/thing/use.toml")).expect("kept");
    says(&kept, &["[own]", mine, "version = \"4.5\"", "sha256 = \""]);
    assert_eq!(shop.install().expect(0), "", "there is nothing to install");

    let old = shop.script("old", "echo thing 0.9");
    let ended = shop.run(&["products", "use", "thing", "--binary", old.to_str().expect("UTF-8")]);
    says(ended.expect(2), &["is version 0.9; at least 1 is wanted", "a binary of Thing that says version 1 or later"]);
    shop.works("4.5", "own ");

    std::fs::remove_file(mine).expect("removed");
    let ended = shop.install();
    says(ended.expect(3), &["thing is set to", mine, "there is no such file", "weir products use thing --none"]);

    shop.run(&["products", "use", "thing", "--none"]).expect(0);
    says(shop.run(&["products", "use", "thing", "--none"]).expect(0), &["nothing to undo"]);
    shop.install().expect(0);
    shop.works("1.2.3", "release 1.2.3");
    shop.run(&["products", "use", "thing"]).expect(2);
    says(shop.run(&["products", "use", "direct", "--none"]).expect(2), &["no binary"]);
}

#[test]
fn of_all_products_those_that_cannot_be_got_are_named_and_the_others_installed() {
    let server = Server::of(THING.as_bytes());
    let shop = Shop::with(&release(&server.url("/thing"), &thing_sha256()));
    shop.product("other", &release(&server.url("/thing"), &"ab".repeat(32)));
    shop.product(
        "nowhere",
        "[[install]]\nmethod = \"own\"\nwhere = \"https://example.org/\"\nabout = \"the archive\"\n",
    );
    // Those built in are not wanted here: a home with a choice that is no good keeps each from being installed.
    let ended = shop.run(&["products", "list", "--json"]);
    for row in ended.json().as_array().expect("rows") {
        let name = row["name"].as_str().expect("a name");
        if !["thing", "other", "nowhere"].contains(&name) {
            shop.file(
                &format!("home/products/{name}/use.toml"),
                "[own]\nbinary = \"/nonexistent\"\nversion = \"1\"\nsha256 = \"\"\n",
            );
        }
    }
    let ended = shop.run(&["products", "install", "--yes"]);
    let said = ended.expect(1);
    says(said, &["weir: not installed: other: ", "wrong SHA-256; refused", "weir: not installed: nowhere: "]);
    says(said, &["the archive, from https://example.org/", "weir products use nowhere --binary <path>"]);
    shop.works("1.2.3", "release 1.2.3");
}

#[test]
fn what_is_wrong_with_one_product_is_said_of_that_one() {
    let server = Server::of(THING.as_bytes());
    let shop = Shop::with(&release(&server.url("/thing"), &thing_sha256()));
    shop.product("other", &release(&server.url("/thing"), &thing_sha256()));
    shop.run(&["products", "install", "thing", "other", "--yes"]).expect(0);
    shop.file("home/products/other/use.toml", "[mine]\n");
    shop.works("1.2.3", "release 1.2.3");
    let ended = shop.run(&["products", "path", "other"]);
    says(ended.expect(3), &["home/products/other/use.toml: ", "expected: that file removed"]);
}

/// Versions are asked several at once: one after the other would take as long as all of them together.
#[test]
fn a_list_does_not_wait_for_one_product_after_the_other() {
    let shop = Shop::with("[[install]]\nmethod = \"system\"\nbinary = \"slow\"\n");
    shop.script("bin/slow", "sleep 0.5; echo thing 1.2.3");
    for n in 0..11 {
        shop.product(&format!("thing-{n}"), "[[install]]\nmethod = \"system\"\nbinary = \"slow\"\n");
    }
    let began = Instant::now();
    let row = shop.row();
    let took = began.elapsed();
    assert_eq!(row["installed"], "1.2.3");
    assert!(took < Duration::from_millis(12 * 500), "{took:?}");
    assert_eq!(names(&shop.path("home")), ["libraries"], "looking changes nothing but what was agreed to");
}

#[test]
fn a_binary_of_the_wrong_version_says_found_and_wanted() {
    let shop = Shop::with("[[install]]\nmethod = \"system\"\nbinary = \"thing\"\n");
    let old = shop.script("bin/thing", "echo thing 0.9.9");
    let ended = shop.install();
    let found = format!("system (thing): {} is version 0.9.9; at least 1 is wanted", old.display());
    says(ended.expect(3), &["thing is not installed", &found]);
    shop.script("bin/thing", "echo thing 1.0");
    shop.install().expect(0);
    shop.works("1.0", "system");
}

#[test]
fn a_wrong_product_file_is_refused_with_line_and_key() {
    let shop = Shop::with("[[install]]\nmethod = \"release\"\nversio = \"1\"\n");
    let ended = shop.install();
    says(ended.expect(2), &["library/products/thing/product.toml:", "versio", "did you mean \"version\"?"]);
    shop.product("thing", &release("http://example.org/thing", &thing_sha256()));
    says(shop.install().expect(2), &["product.toml:", "http://example.org/thing", "https://"]);
    shop.product("thing", &release("https://example.org/thing", "abc"));
    says(shop.install().expect(2), &["product.toml:", "64"]);
}
