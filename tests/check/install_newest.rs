//! Which version is measured and which installed: a newer one before an old one of the distribution, a release that cannot be fetched
//! gives way, a crate that names its compiler, and a profile that an old binary fits or does not.

use std::env::consts::ARCH;
use std::process::Command;

use crate::common::shop::{GO, Server, Shop, makes, names, says, sha256};
use crate::common::{run_within, words};

/// A source in an archive, which a script builds; its bytes and their SHA-256.
fn source(shop: &Shop) -> (Vec<u8>, String) {
    shop.file("source/thing-1.2.3/build.sh", &makes("out/thing", "1.2.3"));
    let archive = shop.path("thing.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).args(["-C", "source", "thing-1.2.3"]).current_dir(shop.scratch.path());
    assert!(tar.status().expect("tar runs").success());
    let bytes = std::fs::read(archive).expect("made");
    let sum = sha256(&bytes);
    (bytes, sum)
}

fn release(url: &str, sha256: &str) -> String {
    format!(
        "[[install]]\nmethod = \"release\"\nversion = \"1.2.3\"\nurl = {{ {ARCH} = \"{url}\" }}\nsha256 = {{ {ARCH} = \"{sha256}\" }}\n\
         build = [[\"sh\", \"build.sh\"]]\nbinary = \"thing-1.2.3/out/thing\"\n"
    )
}

#[test]
fn a_release_in_source_is_built_and_only_the_program_is_kept() {
    let shop = Shop::with("");
    let (archive, sha256) = source(&shop);
    let server = Server::of(&archive);
    shop.product("thing", &release(&server.url("/thing.tar.gz"), &sha256));
    let ended = shop.install();
    says(ended.expect(0), &["check its SHA-256, build it by `sh build.sh` into"]);
    shop.works("1.2.3", "release 1.2.3");
    let folder = shop.path("home/products/thing/release-1.2.3");
    assert_eq!(names(&folder), [".weir-seal", ".weir-sums", "thing-1.2.3"]);
    assert_eq!(names(&folder.join("thing-1.2.3")), ["out"], "nothing of the source stays");
    assert_eq!(shop.install().expect(0), "", "it is not built twice");
}

#[test]
fn a_release_that_cannot_be_fetched_gives_way_and_a_wrong_hash_does_not() {
    let shop = Shop::with("");
    let (archive, sha256) = source(&shop);
    shop.script("bin/go", &makes("$GOBIN/thing", "1.2.3"));
    shop.product("thing", &format!("{}{GO}", release("http://127.0.0.1:1/thing.tar.gz", &sha256)));
    let ended = shop.install();
    says(ended.expect(0), &["where that fails, go: build example.org/thing", "not downloaded", "so instead:"]);
    shop.works("1.2.3", "go example.org/thing/cmd/thing v1.2.3");

    let other = Shop::with("");
    let server = Server::of(&archive);
    other.script("bin/go", &makes("$GOBIN/thing", "1.2.3"));
    other.product("thing", &format!("{}{GO}", release(&server.url("/thing.tar.gz"), &"0".repeat(64))));
    says(other.install().expect(3), &["wrong SHA-256"]);
    assert_eq!(other.row()["installed"], serde_json::Value::Null);
}

#[test]
fn an_old_one_in_path_is_measured_until_the_newer_one_is_asked_for() {
    let shop = Shop::with(&format!("{GO}[[install]]\nmethod = \"system\"\nbinary = \"thing\"\n"));
    shop.script("bin/thing", "echo thing 1.1.0");
    shop.script("bin/go", &makes("$GOBIN/thing", "1.2.3"));
    shop.works("1.1.0", "system");
    let ended = shop.install();
    says(ended.expect(0), &["older than the version that the product's file names", "go: build"]);
    shop.works("1.2.3", "go example.org/thing/cmd/thing v1.2.3");
    assert_eq!(shop.install().expect(0), "");
}

#[test]
fn a_crate_is_built_by_the_compiler_that_it_names() {
    let rust = "[[install]]\nmethod = \"crate\"\npackage = \"thing\"\nversion = \"1.2.3\"\nbinary = \"bin/thing\"\n\
                rust = { at_least = \"1.60\", below = \"1.61\", packages = [\"weir-no-such-rustc\"] }\nenv = { WEIR_TOLD = \"1\" }\n";
    let shop = Shop::with(rust);
    shop.script("bin/rustc", "echo rustc 1.95.0");
    shop.script("bin/cargo", "echo the wrong cargo; exit 9");
    shop.script("bin/cc", "exit 0");
    let mut without = shop.weir(&["products", "install", "thing", "--yes"]);
    without.env("PATH", format!("{}:/usr/bin:/bin", shop.path("bin").display()));
    let ended = run_within(&mut without, std::time::Duration::from_secs(60));
    let wanted = "it needs Rust 1.60 or later, below 1.61: the rustc in PATH is 1.95.0, and none can be had: ";
    says(ended.expect(3), &[wanted, "rustup is not in PATH"]);

    let cargo = makes("$4/bin/thing", "1.2.3");
    let toolchain = format!(
        "bin=$RUSTUP_HOME/toolchains/1.60/bin; mkdir -p $bin; \
         printf '#!/bin/sh\\necho rustc 1.60.4\\n' > $bin/rustc; \
         cat > $bin/cargo <<'END'\n#!/bin/sh\ntest \"$WEIR_TOLD\" = 1 || exit 8\n{cargo}\nEND\nchmod +x $bin/rustc $bin/cargo"
    );
    shop.script("bin/rustup", &toolchain);
    let ended = shop.install();
    says(ended.expect(0), &["Rust 1.60 or later, below 1.61: rustup toolchain install 1.60, into"]);
    shop.works("1.2.3", "crate thing 1.2.3, built with rustc 1.60.4");
    assert_eq!(names(&shop.path("home/toolchains")), ["rust-1.60.4"]);
}

#[test]
fn an_own_binary_of_the_published_version_fits_the_profile_as_published_alone() {
    let shop = Shop::with("[[install]]\nmethod = \"own\"\nwhere = \"https://example.org/\"\nabout = \"thing\"\n");
    let file = shop.path("library/products/thing/product.toml");
    let text = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(
        &file,
        format!("{text}at_least = \"2\"\n[profile.as-published]\nabout = \"then\"\nat_least = \"0.9\"\n"),
    )
    .expect("written");
    shop.agree();
    let use_it = |version: &str| {
        let binary = shop.script(&format!("own/thing-{version}"), &format!("echo thing {version}"));
        shop.run(&["products", "use", "thing", "--binary", binary.to_str().expect("text")])
    };
    says(use_it("0.8").expect(2), &["is version 0.8; at least 0.9 is wanted"]);
    use_it("0.9.1").expect(0);
    let ended = shop.run(&words("run quick --products thing:stock --scale smoke --yes --only workload=*tiny"));
    let why =
        "thing:stock needs version 2 or later under this profile, and is 0.9.1 here, which is enough for as-published";
    says(ended.expect(3), &[why]);
    says(shop.run(&["products", "test", "thing", "--profile", "stock"]).expect(3), &["no version that is here fits"]);
}
