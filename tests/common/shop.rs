//! A library folder with one made-up product, a home of weir's with nothing in it, tools that are scripts, and a server
//! on this machine: what tests of installing need.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::{Ended, made_up, run_within, scratch, weir};

/// A script that says it is version 1.2.3 of the thing.
pub const THING: &str = "#!/bin/sh\necho thing 1.2.3\n";

/// A way to be installed: by go, at a version.
pub const GO: &str = "[[install]]\nmethod = \"go\"\npackage = \"example.org/thing/cmd/thing\"\nversion = \"v1.2.3\"\nbinary = \"bin/thing\"\n";

pub struct Shop {
    pub scratch: tempfile::TempDir,
}

impl Shop {
    /// With the product `thing`, which has these ways to be installed.
    pub fn with(installs: &str) -> Shop {
        let shop = Shop { scratch: scratch() };
        std::fs::create_dir_all(shop.path("bin")).expect("made");
        shop.product("thing", installs);
        shop
    }

    /// (Re)writes a product of the library.
    pub fn product(&self, name: &str, installs: &str) {
        self.file(&format!("library/products/{name}/product.toml"), &made_up("Thing", "stock", installs));
    }

    /// A path below the scratch folder.
    pub fn path(&self, below: &str) -> PathBuf {
        self.scratch.path().join(below)
    }

    pub fn file(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("below something")).expect("made");
        std::fs::write(&path, text).expect("written");
        path
    }

    /// An executable script; those in `bin/` are found before the machine's own.
    pub fn script(&self, below: &str, body: &str) -> PathBuf {
        let path = self.file(below, &format!("#!/bin/sh\n{body}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        path
    }

    /// weir with this library and this home.
    pub fn weir(&self, args: &[&str]) -> Command {
        let mut command = weir(args);
        self.furnish(&mut command);
        command
    }

    /// Gives a command what weir is told by arguments and environment.
    pub fn furnish(&self, command: &mut Command) {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        command.arg("--library").arg(self.path("library")).env("WEIR_HOME", self.path("home")).env("PATH", path);
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        run_within(&mut self.weir(args), Duration::from_secs(120))
    }

    /// `weir products install thing --yes`.
    pub fn install(&self) -> Ended {
        self.run(&["products", "install", "thing", "--yes"])
    }

    /// Agrees that weir runs what the library names, as it is now.
    pub fn agree(&self) {
        self.run(&["products", "show", "thing", "--yes"]).expect(0);
    }

    /// The product's row of `weir products list --json`.
    pub fn row(&self) -> serde_json::Value {
        let ended = self.run(&["products", "list", "--json", "--yes"]);
        ended.expect(0);
        let rows = ended.json();
        rows.as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "thing")).expect("its row").clone()
    }

    /// Asserts that it is installed from there, and works.
    pub fn works(&self, version: &str, from: &str) {
        let row = self.row();
        assert_eq!(row["installed"], version, "{row:#}");
        assert!(row["from"].as_str().is_some_and(|told| told.starts_with(from)), "{row:#}");
        assert_eq!(row["missing"], serde_json::json!([]));
    }

    /// Names of what is in the product's folder of weir's home.
    pub fn kept(&self) -> Vec<String> {
        names(&self.path("home/products/thing"))
    }
}

/// SHA-256 of [`THING`].
pub fn thing_sha256() -> String {
    sha256(THING.as_bytes())
}

/// As sha256sum prints it.
pub fn sha256(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().expect("made");
    std::fs::write(file.path(), bytes).expect("written");
    let out = Command::new("sha256sum").arg(file.path()).output().expect("sha256sum runs");
    String::from_utf8_lossy(&out.stdout)[..64].to_owned()
}

/// A way to be installed: from this address, with this hash.
pub fn release(url: &str, sha256: &str) -> String {
    let arch = std::env::consts::ARCH;
    format!(
        "[[install]]\nmethod = \"release\"\nversion = \"1.2.3\"\nbinary = \"thing\"\n\
         url = {{ {arch} = \"{url}\" }}\nsha256 = {{ {arch} = \"{sha256}\" }}\n"
    )
}

/// The body of a tool: a program of this version at the path in the variable.
pub fn makes(path: &str, version: &str) -> String {
    format!(
        r##"mkdir -p "$(dirname "{path}")"; printf "#!/bin/sh\necho thing {version}\n" > "{path}"; chmod +x "{path}""##
    )
}

/// Names in a folder, sorted; none when it is not there.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Asserts that every word is in what weir said.
pub fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
}

/// Serves one file, and with `/stalls` begins to, and says no more.
pub struct Server {
    addr: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn of(body: &[u8]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("bound");
        let ends = Arc::new(AtomicBool::new(false));
        let (flag, body) = (ends.clone(), body.to_vec());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    return;
                }
                let (flag, body) = (flag.clone(), body.clone());
                std::thread::spawn(move || serve(stream, &body, &flag));
            }
        });
        Server { addr, ends, thread: Some(thread) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut stream: TcpStream, body: &[u8], ends: &AtomicBool) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    if first.contains("/stalls") {
        stream.write_all(&body[..body.len() / 2]).ok()?;
        while !ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        return None;
    }
    stream.write_all(body).ok()
}
