//! Products that fail in every way a product can: each becomes an error row with the evidence, and the run goes on.

use crate::common::library::{Library, assert_says};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::common::{measurements, nothing_left, processes_touching, scratch, signal, until, weir};
use rustix::process::Signal;
use serde_json::Value;

/// A Python server that answers as told, for products that do come up.
fn python(body: &str) -> String {
    format!(
        "exec python3 -u - \"$@\" <<'EOF'\nimport http.server, sys, socketserver\nclass H(http.server.BaseHTTPRequestHandler):\n    protocol_version = 'HTTP/1.1'\n    def log_message(self, *a): pass\n    def do_GET(self):\n{body}\nclass S(socketserver.ThreadingMixIn, http.server.HTTPServer):\n    daemon_threads = True\nS(('127.0.0.1', int(sys.argv[1])), H).serve_forever()\nEOF"
    )
}

#[test]
fn a_product_that_never_gets_ready_is_given_up() {
    let library = Library::new("sleeps", "echo dozing; sleep 1000", "", "300ms");
    assert_says(&library.error(), "ready", &["did not get ready within 1.5 s", "dozing"]);
}

/// One that takes connections and says nothing is given up as soon as one that takes none.
#[test]
fn a_product_that_accepts_and_never_answers_is_given_up() {
    let deaf = "exec python3 -u -c 'import socket, sys, time; s = socket.create_server((\"127.0.0.1\", int(sys.argv[1]))); print(\"deaf\"); time.sleep(1000)' \"$@\"";
    let library = Library::new("deaf", deaf, "", "300ms");
    assert_says(&library.error(), "ready", &["did not get ready within 1.5 s", "deaf"]);
    let all = measurements(&library.out());
    let took = all.iter().filter_map(|(_, m)| m["error"].is_object().then(|| m["took_s"].as_f64())?).next();
    assert!(took.expect("it took time") < 3.0, "{took:?}: no try outlasts `ready_within` by much");
}

#[test]
fn a_product_that_refuses_its_configuration_is_quoted() {
    let check = r#"check = ["{{ binary }}", "--check", "{{ dir }}/bad.conf"]"#;
    let script = r#"if [ "$1" = --check ]; then echo "line 1: what is a port?"; exit 1; fi"#;
    let library = Library::new("refuses", script, check, "300ms");
    assert_says(&library.error(), "check", &["refuses its configuration", "what is a port?"]);
}

#[test]
fn a_product_that_answers_wrongly_is_not_measured() {
    let wrong = python(
        "        if self.path == '/_weir/ready':\n            self.send_response(204); self.end_headers(); return\n        b = b'x' * 128\n        self.send_response(200); self.send_header('Content-Length', str(len(b))); self.send_header('Content-Type', 'text/plain; charset=us-ascii'); self.end_headers(); self.wfile.write(b)",
    );
    let library = Library::new("lies", &wrong, "", "300ms");
    let error = library.error();
    assert_eq!(error["stage"], "verify", "{error:#}");
}

#[test]
fn a_product_that_dies_in_mid_trial_is_an_error() {
    let proxy = python(
        "        import urllib.request, os, threading\n        if not hasattr(S, 'dying') and 'bytes' in self.path:\n            S.dying = True; threading.Timer(1.0, lambda: (sys.stderr.write('alas\\n'), os._exit(9))).start()\n        r = urllib.request.urlopen('http://127.0.0.1:' + sys.argv[2] + self.path)\n        b = r.read()\n        self.send_response(r.status)\n        [self.send_header(k, r.headers[k]) for k in ('Content-Type',) if r.headers[k]]\n        if r.status != 204: self.send_header('Content-Length', str(len(b)))\n        self.end_headers(); self.wfile.write(b)",
    );
    let library = Library::new("mortal", &proxy, "", "4s");
    assert_says(&library.error(), "load", &["exit status 9", "alas"]);
}

#[test]
fn an_origin_that_goes_away_is_an_error_and_the_run_goes_on() {
    let library = Library::new("sleeps", "sleep 1000", "", "3s");
    let mut command = weir(&["run", "bad", "--yes", "--products", "direct:stock,nginx:stock"]);
    command.env("PATH", library.path());
    command.arg("--library").arg(library.scratch.path().join("library")).arg("--out").arg(library.out());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let trials = library.out().join("trials");
    let mut victim = None;
    until("an origin in mid-trial", Duration::from_secs(30), || {
        let measuring = processes_touching(&trials).iter().any(|(_, args)| args.contains("weir client"));
        victim = processes_touching(&trials).into_iter().find(|(_, args)| args.contains("weir origin"));
        measuring && victim.is_some()
    });
    std::thread::sleep(Duration::from_millis(800));
    signal(victim.expect("found").0, Signal::KILL);
    let ended = child.wait_with_output().expect("waited for");
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    let all = measurements(&library.out());
    assert_eq!(all.len(), 2);
    let errors: Vec<&Value> = all.iter().map(|(_, m)| &m["error"]).filter(|e| e.is_object()).collect();
    assert_eq!(errors.len(), 1, "the other trial went well");
    assert_says(errors[0], "load", &["origin"]);
}

/// Ends one of weir's own processes in the bad product's trial, once there is one with such arguments beside a process with others.
fn error_after_the_end_of(library: &Library, own: &str, beside: &str) -> Value {
    let child = library.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let trials = library.out().join("trials");
    let mut victim = None;
    until("the moment", Duration::from_secs(30), || {
        let all = processes_touching(&trials);
        let is_there = all.iter().any(|(_, args)| args.contains(beside));
        victim = all.into_iter().find(|(_, args)| args.contains(own));
        is_there && victim.is_some()
    });
    signal(victim.expect("found").0, Signal::KILL);
    let ended = child.wait_with_output().expect("waited for");
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    nothing_left(library.scratch.path(), Duration::from_secs(3));
    library.error_row()
}

#[test]
fn an_origin_that_goes_away_before_the_product_is_ready_is_not_the_products_fault() {
    let library = Library::new("waits", "sleep 1000", "", "300ms");
    assert_says(&error_after_the_end_of(&library, "weir origin", "bin-waits"), "load", &["the origin went away"]);
}

#[test]
fn a_check_whose_supervisor_was_killed_says_nothing_of_the_configuration() {
    let check = r#"check = ["{{ binary }}", "--check"]"#;
    let library = Library::new("thinks", r#"if [ "$1" = --check ]; then sleep 1000; fi"#, check, "300ms");
    let error = error_after_the_end_of(&library, "weir supervise", "--check");
    assert_says(&error, "check", &["ended from outside", "supervisor"]);
}

/// It would write gigabytes until it is given up.
#[test]
fn an_endless_output_keeps_its_beginning_and_its_end() {
    let library = Library::new("talks", "echo first words; yes 'and on and on'", "", "300ms");
    assert_says(&library.error(), "ready", &["did not get ready", "and on and on"]);
    let all = measurements(&library.out());
    let folder = &all.iter().find(|(_, m)| m["error"].is_object()).expect("a row").0;
    let output = std::fs::read_to_string(folder.join("product/output.log")).expect("text");
    assert!(output.len() < 8 << 20, "{} bytes", output.len());
    assert!(output.starts_with("first words\n") && output.contains("\n[weir: "), "{}", &output[..100]);
}

/// A disk that fills up in mid-run: one message, and every finished trial is whole.
#[test]
fn a_full_disk_ends_the_run_and_loses_nothing() {
    let scratch = scratch();
    let disk = scratch.path().join("disk");
    std::fs::create_dir(&disk).expect("made");
    let mounted = Mounted::tmpfs(&disk, "80m");
    let out = mounted.0.join("run");
    let args = ["run", "quick", "--scale", "smoke", "--blocks", "40", "--products", "direct", "--yes", "-q", "--out"];
    let mut command = weir(&args);
    let child = command.arg(&out).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("weir starts");
    until("two finished trials", Duration::from_secs(30), || {
        out.join("trials").is_dir() && measurements(&out).len() >= 2
    });
    fill(&mounted.0);
    let ended = child.wait_with_output().expect("waited for");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("the disk is full") && said.contains("--resume"), "{said}");
    assert!(measurements(&out).len() >= 2, "half a measurement would have failed to parse");
    nothing_left(&out, Duration::from_secs(3));
}

fn fill(dir: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(dir.join("ballast")).expect("made");
    let block = vec![1u8; 64 * 1024];
    while file.write_all(&block).is_ok() {}
    while file.write_all(&block[..1]).is_ok() {}
}

/// A small file system, unmounted at the end. Needs root, as the products' installation does.
struct Mounted(PathBuf);

impl Mounted {
    fn tmpfs(at: &Path, size: &str) -> Mounted {
        let status = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .status()
            .expect("mount runs");
        assert!(status.success(), "this test mounts a small tmpfs and needs root for it");
        Mounted(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
