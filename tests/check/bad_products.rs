//! Products that fail where the kernel has a part in it: each becomes an error row with the evidence, and the run goes on. Other ways are
//! in `tests/world/tests/it/bad_products.rs`.

use crate::common::library::{Library, assert_says};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::common::{measurements, nothing_left, processes_touching, scratch, signal, until, weir};
use rustix::process::Signal;

#[test]
fn a_product_that_refuses_its_configuration_is_quoted() {
    let check = r#"check = ["{{ binary }}", "--check", "{{ dir }}/bad.conf"]"#;
    let script = r#"if [ "$1" = --check ]; then echo "line 1: what is a port?"; exit 1; fi"#;
    let library = Library::new("refuses", script, check, "300ms");
    assert_says(&library.error(), "check", &["refuses its configuration", "what is a port?"]);
}

#[test]
fn a_check_whose_supervisor_was_killed_says_nothing_of_the_configuration() {
    let check = r#"check = ["{{ binary }}", "--check"]"#;
    let library = Library::new("thinks", r#"if [ "$1" = --check ]; then sleep 1000; fi"#, check, "300ms");
    let child = library.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let trials = library.out().join("trials");
    let mut supervisor = None;
    until("a check", Duration::from_secs(30), || {
        let all = processes_touching(&trials);
        supervisor = all.iter().find(|(_, args)| args.contains("weir supervise")).map(|(pid, _)| *pid);
        supervisor.is_some() && all.iter().any(|(_, args)| args.contains("--check"))
    });
    signal(supervisor.expect("found"), Signal::KILL);
    let ended = child.wait_with_output().expect("waited for");
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    nothing_left(library.scratch.path(), Duration::from_secs(3));
    assert_says(&library.error_row(), "check", &["ended from outside", "supervisor"]);
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
