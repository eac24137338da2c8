//! Releases: served on this machine, rightly and wrongly, and archives that mean harm.

use std::env::consts::ARCH;
use std::io::Write;
use std::net::TcpListener;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::server::{Response, Server};
use super::*;
use crate::fetch::Route;

const SCRIPT: &str = "#!/bin/sh\necho thing 1.2.3\n";

impl InstallFolder {
    fn install(&self, release: &Install) -> Result<Vec<String>, InstallError> {
        self.install_by(release, Route::from_env())
    }

    /// What weir says while it installs.
    fn install_by(&self, release: &Install, route: Route) -> Result<Vec<String>, InstallError> {
        let of = product(vec![release.clone()]);
        let step = DownloadStep::new(&of, release, crate::place::of(&of, release, &self.home()).unwrap().unwrap());
        let step = step.unwrap().unwrap();
        self.carry_out(&step, Means { pip_options: Vec::new(), index: String::new(), route })
    }

    /// Asserts that it is installed and works.
    fn works(&self, release: &Install) {
        let installed = self.found(release).unwrap();
        assert_eq!((installed.version.as_str(), installed.from.as_str()), ("1.2.3", "release 1.2.3"));
    }

    /// Asserts that nothing stayed, and returns the message.
    fn refused(&self, release: &Install) -> String {
        let error = self.install(release).unwrap_err();
        assert!(self.kept().is_empty(), "{error}\nleft: {:?}", self.kept());
        assert!(!self.dir.path().join("evil").exists() && !self.home().path().join("evil").exists());
        error.to_string()
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn release(url: String, bytes: &[u8], binary: &str) -> Install {
    Install::Release {
        version: "1.2.3".to_owned(),
        url: BTreeMap::from([(ARCH.to_owned(), url)]),
        binary: binary.to_owned(),
        sha256: BTreeMap::from([(ARCH.to_owned(), sha256(bytes))]),
        build: Vec::new(),
        needs: Vec::new(),
        fetched: true,
    }
}

/// A tar file pressed by gzip, made by hand so that it can say anything.
struct Tar(Builder<GzEncoder<Vec<u8>>>);

impl Tar {
    fn new() -> Tar {
        Tar(Builder::new(GzEncoder::new(Vec::new(), Compression::fast())))
    }

    /// An entry under exactly this name, however bad.
    fn with(mut self, name: &str, kind: EntryType, mode: u32, to: &str, bytes: &[u8]) -> Tar {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(bytes.len() as u64);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.as_mut_bytes()[157..157 + to.len()].copy_from_slice(to.as_bytes());
        header.set_cksum();
        self.0.append(&header, bytes).unwrap();
        self
    }

    fn file(self, name: &str, text: &str) -> Tar {
        self.with(name, EntryType::Regular, 0o755, "", text.as_bytes())
    }

    fn link(self, name: &str, to: &str) -> Tar {
        self.with(name, EntryType::Symlink, 0o777, to, b"")
    }

    fn done(self) -> Vec<u8> {
        self.0.into_inner().unwrap().finish().unwrap()
    }
}

/// Served under this name, with the right hash.
fn offered(name: &str, bytes: Vec<u8>, binary: &str) -> (Server, Install) {
    let server = Server::saying(Response::Whole(bytes.clone()));
    let release = release(server.url(&format!("/v1.2.3/{name}")), &bytes, binary);
    (server, release)
}

#[test]
fn an_archive_is_fetched_checked_unpacked_and_found() {
    let bytes = Tar::new()
        .with("./thing-1.2.3/", EntryType::Directory, 0o755, "", b"")
        .file("./thing-1.2.3/bin/thing", SCRIPT)
        .with("./thing-1.2.3/README", EntryType::Regular, 0o644, "", b"read me")
        .link("./thing-1.2.3/bin/alias", "thing")
        .link("./thing-1.2.3/doc", "./README")
        .done();
    for name in ["thing.tar.gz", "thing.TGZ", "thing.tar.gz?download=1"] {
        let place = InstallFolder::new();
        let (_server, release) = offered(name, bytes.clone(), "thing-*/bin/thing");
        let lines = place.install(&release).unwrap();
        assert!(
            lines[0].starts_with("download http://127.0.0.1:") && lines[1] == format!("{} bytes", bytes.len()),
            "{lines:?}"
        );
        assert!(lines[2].contains("SHA-256 as expected"), "{lines:?}");
        place.works(&release);
        let folder = place.home().product("thing").join("release-1.2.3/thing-1.2.3");
        assert_eq!(fs::read_link(folder.join("bin/alias")).unwrap(), Path::new("thing"));
        let mode = |file: &str| fs::metadata(folder.join(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("README"), mode("bin/thing")), (0o644, 0o755));
        assert_eq!(place.install(&release).unwrap(), [""; 0], "the second time there is nothing to do");
    }
}

#[test]
fn zip_files_and_bare_programs_are_taken_too() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("dir/thing", zip::write::SimpleFileOptions::default().unix_permissions(0o755)).unwrap();
    zip.write_all(SCRIPT.as_bytes()).unwrap();
    let zip = zip.finish().unwrap().into_inner();
    for (name, bytes, binary) in [
        ("thing.zip", zip, "dir/thing"),
        ("thing-1.2.3-exec", SCRIPT.into(), "thing"),
        ("t", SCRIPT.into(), "bin/thing"),
    ] {
        let place = InstallFolder::new();
        let (_server, release) = offered(name, bytes, binary);
        place.install(&release).unwrap();
        place.works(&release);
    }
}

#[test]
fn lengths_need_not_be_told_and_addresses_may_lead_on() {
    let bytes = SCRIPT.as_bytes().to_vec();
    let served = bytes.clone();
    let server = Server::start(move |path| match path {
        "/moved" => Response::At("/further".to_owned()),
        "/further" => Response::At("./there".to_owned()),
        "/there" => Response::Chunked(served.clone()),
        "/around" => Response::At("/around".to_owned()),
        _ => Response::Status(404),
    });
    let place = InstallFolder::new();
    let moved = release(server.url("/moved"), &bytes, "thing");
    place.install(&moved).unwrap();
    place.works(&moved);
    let text = InstallFolder::new().refused(&release(server.url("/around"), &bytes, "thing"));
    assert!(text.contains("leads on and on"), "{text}");
}

#[test]
fn a_wrong_hash_is_refused_before_unpacking() {
    let place = InstallFolder::new();
    let bytes = Tar::new().file("thing", SCRIPT).done();
    let server = Server::saying(Response::Whole(bytes.clone()));
    let wrong = release(server.url("/thing.tar.gz"), b"something else", "thing");
    let text = place.refused(&wrong);
    for words in ["wrong SHA-256; refused", &sha256(&bytes), &sha256(b"something else"), &server.url("/thing.tar.gz")] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    // The second try, with the right one, works.
    let right = release(server.url("/thing.tar.gz"), &bytes, "thing");
    place.install(&right).unwrap();
    place.works(&right);
}

#[test]
fn what_does_not_come_says_where_from_and_what_to_do() {
    let bytes = vec![b'x'; 100_000];
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let half = Server::saying(Response::Half(bytes.clone()));
    let none = Server::saying(Response::Status(404));
    let broken = Server::saying(Response::Status(503));
    let away = Server::saying(Response::At("http://example.org/thing".to_owned()));
    for (url, words) in [
        (half.url("/half"), ["broke off of 100000 bytes", "(after 5"]),
        (none.url("/none"), ["the server answers 404", "not downloaded"]),
        (broken.url("/broken"), ["the server answers 503", "not downloaded"]),
        (format!("http://{free}/refused"), ["refused", "not downloaded"]),
        // Nobody is asked there.
        (away.url("/away"), ["it leads on to http://example.org/thing", "of this machine only"]),
        ("https://weir.invalid/thing".to_owned(), ["not downloaded", "weir.invalid"]),
    ] {
        let text = InstallFolder::new().refused(&release(url.clone(), &bytes, "thing"));
        for words in words.iter().chain(&[url.as_str(), "weir products use thing --binary <path>"]) {
            assert!(text.contains(words), "no {words} in {text}");
        }
    }
}

#[test]
fn a_server_that_stalls_does_not_keep_weir_from_stopping() {
    let place = InstallFolder::new();
    let server = Server::saying(Response::Stalls);
    let release = release(server.url("/slow"), b"", "thing");
    let stop = place.stop.clone();
    let began = Instant::now();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.set();
    });
    let text = place.refused(&release);
    assert!(text.starts_with("interrupted"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(30), "the server would have been waited for longer");
    stopper.join().unwrap();
}

#[test]
fn https_is_spoken_with_authorities_and_proxies_that_are_known() {
    let bytes = SCRIPT.as_bytes().to_vec();
    let served = bytes.clone();
    let server = Server::secure(move |path| match path {
        "/down" => Response::At("http://localhost:1/thing".to_owned()),
        _ => Response::Whole(served.clone()),
    });
    let thing = release(server.url("/thing"), &bytes, "thing");
    let place = InstallFolder::new();
    place.install_by(&thing, Route::trusting(&server.certificate, None)).unwrap();
    place.works(&thing);

    let text = InstallFolder::new().refused(&thing);
    assert!(text.contains("ertificate"), "nobody knows who signed it: {text}");
    let down = release(server.url("/down"), &bytes, "thing");
    let error = InstallFolder::new().install_by(&down, Route::trusting(&server.certificate, None)).unwrap_err();
    assert!(error.to_string().contains("leads on to http://localhost:1/thing: that is not https://"), "{error}");
}

#[test]
fn the_proxy_of_the_environment_is_asked_and_named_when_it_fails() {
    let proxy = Server::saying(Response::Status(502));
    let elsewhere = release("https://weir.invalid/thing".to_owned(), b"", "thing");
    let route = || Route::trusting(&proxy_certificate(), Some(&format!("http://{}", proxy.addr())));
    let text = InstallFolder::new().install_by(&elsewhere, route()).unwrap_err().to_string();
    assert_eq!(proxy.asked(), ["CONNECT weir.invalid:443 HTTP/1.1"]);
    assert!(text.contains(&format!("through the proxy {}", proxy.addr())), "{text}");

    // Not for what is on this machine.
    let (_server, here) = offered("thing", SCRIPT.into(), "thing");
    InstallFolder::new().install_by(&here, route()).unwrap();
    assert_eq!(proxy.asked().len(), 1);
}

/// Any will do.
fn proxy_certificate() -> Vec<u8> {
    Server::secure(|_| Response::Status(500)).certificate.clone()
}

#[test]
fn names_and_links_that_lead_outside_refuse_the_whole_archive() {
    let good = || Tar::new().file("thing", SCRIPT);
    for (archive, words) in [
        (good().file("../evil", "x"), "leads outside"),
        (good().file("/tmp/weir-evil", "x"), "leads outside"),
        (good().file("a/../../evil", "x"), "leads outside"),
        (good().link("evil", "/etc/passwd"), "outside of the folder"),
        (good().link("evil", "../.."), "outside of the folder"),
        (good().link("a/b/c", "../../../x"), "which is not in it"),
        // Each is inside by its name; together they lead out.
        (good().link("a/b/c/l", "../../..").link("m", "a/b/c/l/.."), "outside of the folder"),
        // Folders would be made wherever the first leads, before anybody looks where that is.
        (good().link("d", "../../../..").link("d/evil/x", "y"), "lies behind a link"),
        (good().link("s", "..").file("s/evil", "x"), ""),
        (good().with("hard", EntryType::Link, 0o755, "thing", b""), "hard link"),
        (good().with("device", EntryType::Char, 0o755, "", b""), "neither file, folder nor link"),
        (good().with("fifo", EntryType::Fifo, 0o755, "", b""), "neither file, folder nor link"),
    ] {
        let place = InstallFolder::new();
        let (_server, release) = offered("thing.tar.gz", archive.done(), "thing");
        let text = place.refused(&release);
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(!Path::new("/tmp/weir-evil").exists());
}

#[test]
fn broken_and_empty_archives_are_refused() {
    let whole = Tar::new().file("thing", &SCRIPT.repeat(5000)).done();
    let nothing = Tar::new().done();
    for (name, bytes, words) in [
        ("a.tar.gz", whole[..whole.len() / 2].to_vec(), ""),
        ("a.tar.gz", b"no archive at all".to_vec(), ""),
        ("a.tar.gz", nothing.clone(), "0 files in it fit `thing`"),
        ("a.zip", nothing, ""),
    ] {
        let place = InstallFolder::new();
        let (_server, release) = offered(name, bytes, "thing");
        let text = place.refused(&release);
        assert!(text.contains(words) && text.contains(name), "no {words:?} in {text}");
    }
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    // A header that promises 4 GB, with nothing behind it.
    let mut header = Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_mode(0o644);
    header.set_size(4 << 30);
    header.set_cksum();
    let mut raw = GzEncoder::new(Vec::new(), Compression::fast());
    raw.write_all(header.as_bytes()).unwrap();
    let place = InstallFolder::new();
    let (_server, release) = offered("bomb.tar.gz", raw.finish().unwrap(), "thing");
    let text = place.refused(&release);
    assert!(text.contains("unpacks to more than"), "{text}");
}

#[test]
fn what_cannot_be_had_on_this_machine_is_said_before_anything_is_fetched() {
    let home = Home::at("/nonexistent");
    let step = |install: &Install| {
        let product = product(vec![install.clone()]);
        let place = crate::place::of(&product, install, &home)?.expect("releases have one");
        DownloadStep::new(&product, install, place).unwrap()
    };
    let why = |install: &Install| step(install).unwrap_err();
    let good = release("https://example.org/thing.tar.gz".to_owned(), b"", "thing");
    assert!(step(&good).is_ok());
    let Install::Release { url, sha256, .. } = good.clone() else { panic!("it is one") };
    let changed = |url: BTreeMap<String, String>, sha256: BTreeMap<String, String>| match good.clone() {
        Install::Release { version, binary, build, needs, fetched, .. } => {
            Install::Release { version, url, binary, sha256, build, needs, fetched }
        }
        other => other,
    };
    let other = BTreeMap::from([("pdp11".to_owned(), "x".to_owned())]);
    let elsewhere = changed(url.clone(), other.clone());
    assert_eq!(why(&elsewhere), format!("none for {ARCH}, only for pdp11"));
    let elsewhere = changed(other, sha256);
    assert_eq!(why(&elsewhere), format!("none for {ARCH}, only for pdp11"));
    let text = why(&release("http://example.org/thing.tar.gz".to_owned(), b"", "thing"));
    assert!(text.contains("this machine only"), "{text}");
    let text = why(&release("https://example.org/thing.tar.xz".to_owned(), b"", "thing"));
    assert!(text.contains("cannot unpack .tar.xz; .tar.gz"), "{text}");
}
