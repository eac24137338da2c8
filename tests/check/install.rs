//! Installing where only root can show what happens: a small disk, and packages of the system.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use crate::common::shop::{Server, Shop, THING, release, says, sha256, thing_sha256};
use crate::common::{needs_root, not_shown, run_within};

/// On a disk of its own that is too small, in a mount namespace that goes with the test.
#[test]
fn a_full_disk_is_named_and_with_room_a_second_try_works() {
    needs_root("mount a small disk");
    let big = [THING.as_bytes(), vec![b'#'; 2_000_000].as_slice()].concat();
    let server = Server::of(&big);
    let shop = Shop::with(&release(&server.url("/thing"), &sha256(&big)));
    let home = shop.path("home");
    std::fs::create_dir_all(&home).expect("made");
    let script = r#"
        home=$1; shift
        mount -t tmpfs -o size=1m tmpfs "$home" || exit 99
        "$@" && exit 98
        [ $? = 3 ] || exit 97
        find "$home" -name '.partial*' -o -name 'release*' | grep . && exit 96
        mount -o remount,size=64m "$home" || exit 95
        "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).arg(&home);
    command.args([env!("CARGO_BIN_EXE_weir"), "products", "install", "thing", "--yes"]);
    shop.furnish(&mut command);
    let ended = run_within(&mut command, Duration::from_secs(120));
    says(ended.expect(0), &["No space left on device", "room on that disk, or WEIR_HOME"]);
    says(&ended.stdout, &["1.2.3 (release 1.2.3)"]);
}

/// Somebody who is not root, and whom sudo does not help either.
#[test]
fn without_root_packages_are_named_with_the_command_and_other_ways_are_gone() {
    if !std::path::Path::new("/usr/bin/apt-get").exists() {
        not_shown("there is no apt-get on this machine");
    }
    let apt = "[[install]]\nmethod = \"apt\"\npackage = \"weir-no-such-package\"\nbinary = \"/nonexistent/thing\"\n";
    let server = Server::of(THING.as_bytes());
    let shop = Shop::with(apt);
    let nobody = |shop: &Shop| {
        let mut command = Command::new("setpriv");
        command.arg("--no-new-privs");
        if rustix::process::geteuid().is_root() {
            std::fs::create_dir_all(shop.path("home")).expect("made");
            for below in ["", "home"] {
                let open = PermissionsExt::from_mode(0o777);
                std::fs::set_permissions(shop.path(below), open).expect("opened");
            }
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.args([env!("CARGO_BIN_EXE_weir"), "products", "install", "thing", "--yes"]);
        shop.furnish(&mut command);
        run_within(&mut command, Duration::from_secs(120))
    };
    let ended = nobody(&shop);
    says(
        ended.expect(3),
        &[
            "thing is not installed, and weir knows no way to install it here",
            "apt weir-no-such-package: installing packages needs root",
            "run this and try again: sudo apt-get",
            "weir-no-such-package",
        ],
    );
    shop.product("thing", &format!("{apt}{}", release(&server.url("/thing"), &thing_sha256())));
    let ended = nobody(&shop);
    ended.expect(0);
    says(&ended.stdout, &["1.2.3 (release 1.2.3)"]);
}

/// Not agreed to: nothing is installed, and what would have been is said.
#[test]
fn a_missing_tool_of_the_systems_packages_is_asked_for() {
    needs_root("install packages");
    let needs = "{ program = \"weir-no-such-tool\", package = \"weir-no-such-package\" }";
    let shop = Shop::with(&format!(
        "[[install]]\nmethod = \"go\"\npackage = \"example.org/thing\"\nversion = \"v1.2.3\"\nbinary = \"bin/thing\"\nneeds = [{needs}]\n"
    ));
    shop.script("bin/go", "exit 9");
    shop.agree();
    let ended = shop.run(&["products", "install", "thing"]);
    says(ended.expect(3), &["apt-get install -y --no-install-recommends weir-no-such-package", "- go: build"]);
}
