//! The first ten minutes of a newcomer, as `docs/first-steps.md` shows them: its transcripts are carried out in a root folder that has
//! weir, a shell and nothing else (no home, locale, terminal, certificates, Python or package manager; loopback is the only network),
//! as root and as a user. What weir says must be what the page says, but for numbers. `tests/newcomer/trouble.md` has what goes wrong.
//!
//! In a block ```console, a line that begins with `$ ` is a command, and the lines below are what it says; `...` stands for any lines.
//! ```console emptied is carried out in the emptied root only, and ```console debian in that of `make newcomer` only, which is named by
//! `WEIR_NEWCOMER_ROOT` and has a real, minimal Debian. `WEIR_BLESS=1` writes what differs into the page.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{masked, needs_root, on_a_shared_machine, run_within};

/// A user who is not root.
const USER: u32 = 1000;

/// What stands before and after what a command says.
const MARK: &str = "-- weir newcomer --";

/// A command of a page and what it says.
struct Said {
    command: String,
    lines: Vec<String>,
    /// Of its first and past its last line in the page.
    at: std::ops::Range<usize>,
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The commands of a page that are for this kind of root.
fn transcript(page: &str, kind: &str) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    let mut inside = false;
    for (number, line) in page.lines().enumerate() {
        if let Some(fence) = line.strip_prefix("```") {
            let words: Vec<&str> = fence.split(' ').collect();
            inside = !inside && words[0] == "console" && words[1..].iter().all(|word| *word == kind);
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            all.push(Said { command: command.to_owned(), lines: Vec::new(), at: number + 1..number + 1 });
        } else if let Some(last) = all.last_mut().filter(|_| inside) {
            last.lines.push(line.to_owned());
            last.at.end = number + 1;
        }
    }
    all
}

/// Whether lines are as the page has them.
fn alike(wanted: &[String], found: &[String]) -> bool {
    match wanted.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if first == "..." => (0..=found.len()).any(|skip| alike(rest, &found[skip..])),
        Some((first, rest)) => {
            found.split_first().is_some_and(|(line, others)| plain(first) == plain(line) && alike(rest, others))
        }
    }
}

/// Without numbers, and with one blank where columns depend on them.
fn plain(line: &str) -> String {
    masked(line).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A root folder to be entered.
struct Root {
    folder: PathBuf,
    kind: &'static str,
}

impl Root {
    fn new(scratch: &Path) -> Root {
        match std::env::var_os("WEIR_NEWCOMER_ROOT") {
            Some(folder) => Root { folder: folder.into(), kind: "debian" },
            None => {
                let folder = scratch.join("root");
                emptied(&folder);
                Root { folder, kind: "emptied" }
            }
        }
    }

    /// Says each command to one shell in a new folder of the root, and returns what is said to each.
    fn tell(&self, commands: &[String], user: u32) -> Vec<Vec<String>> {
        let work = self.folder.join("work");
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).expect("made");
        std::os::unix::fs::chown(&work, Some(user), Some(user)).unwrap_or_else(|e| assert!(user == 0, "{e}"));
        let mut script = String::from("cd /work\n");
        for command in commands {
            // What goes on in the background says its first line before the next command.
            let wait = if command.ends_with('&') { "sleep 1" } else { "" };
            script.push_str(&format!("echo '{MARK}'\nexec </dev/null 2>&1\n{command}\n{wait}\n"));
        }
        let file = self.folder.join("work.sh");
        fs::write(&file, script).expect("written");
        let ended = run_within(&mut self.entered(user), Duration::from_secs(120));
        let text = ended.stdout.split_once(MARK).unwrap_or_else(|| panic!("nothing was said: {ended:#?}")).1;
        text.split(MARK).map(|said| said.trim_matches('\n').lines().map(str::to_owned).collect()).collect()
    }

    /// A shell that reads the user's commands there, in namespaces of its own, with an empty environment.
    fn entered(&self, user: u32) -> Command {
        let mut command = Command::new("unshare");
        if !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        // In a namespace of a user who is not root outside, groups cannot be set.
        let become_user = if user == 0 { String::new() } else { format!("--userspec={user}:{user} ") };
        let enter = format!(
            "set -e; mount -t proc proc proc; mount --rbind /sys sys
             for one in null zero full random urandom; do : >> dev/$one; mount --bind /dev/$one dev/$one; done
             ip link set lo up
             exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot {become_user}. /bin/sh /work.sh"
        );
        command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", &enter]);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A root with weir, busybox' shell, and an nginx that nothing finds by itself.
fn emptied(root: &Path) {
    for folder in
        ["bin", "dev", "etc", "home/anna", "opt", "proc", "root", "sys", "tmp", "var/lib/nginx", "var/log/nginx"]
    {
        fs::create_dir_all(root.join(folder)).expect("made");
    }
    for open in ["tmp", "home/anna", "var/lib/nginx", "var/log/nginx"] {
        fs::set_permissions(root.join(open), fs::Permissions::from_mode(0o777)).expect("opened");
    }
    let users = "root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\n";
    fs::write(root.join("etc/passwd"), users).expect("written");
    fs::write(root.join("etc/group"), "root:x:0:\nanna:x:1000:\nnogroup:x:65534:\n").expect("written");
    program(root, Path::new(env!("CARGO_BIN_EXE_weir")), "bin/weir");
    program(root, Path::new("/bin/busybox"), "bin/busybox");
    program(root, Path::new("/usr/sbin/nginx"), "opt/nginx");
    for name in ["sh", "cat", "sleep", "ls", "sed"] {
        symlink("busybox", root.join("bin").join(name)).expect("linked");
    }
}

/// Copies a program with the libraries that it loads.
fn program(root: &Path, from: &Path, to: &str) {
    fs::copy(from, root.join(to)).unwrap_or_else(|e| panic!("{}, of the test packages: {e}", from.display()));
    let said = Command::new("ldd").arg(from).output().expect("ldd runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let libraries: BTreeSet<&str> = said.split_whitespace().filter(|word| word.starts_with('/')).collect();
    for library in libraries {
        let to = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("below the root")).expect("made");
        fs::copy(library, to).expect("copied");
    }
}

/// Carries out a page's transcript; loads end sooner than the page says.
fn carried_out(page: &str, user: u32) {
    on_a_shared_machine(|scratch| carried_out_once(page, user, &Root::new(scratch)));
}

fn carried_out_once(page: &str, user: u32, root: &Root) {
    let path = repository(page);
    let text = fs::read_to_string(&path).expect("the page");
    let transcript = transcript(&text, root.kind);
    assert!(transcript.len() >= 3, "{page} has a transcript");
    let ordered = |said: &Said| {
        said.command.replace("weir load http://127.0.0.1:8080/", "weir load http://127.0.0.1:8080/ -d 1s")
    };
    let commands: Vec<String> = transcript.iter().map(ordered).collect();
    let found = root.tell(&commands, user);
    assert_eq!(found.len(), commands.len(), "each command says something of its own: {found:#?}");
    let differ: Vec<(&Said, &Vec<String>)> =
        transcript.iter().zip(&found).filter(|(said, found)| !alike(&said.lines, found)).collect();
    if std::env::var_os("WEIR_BLESS").is_some() {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (said, found) in differ.iter().rev() {
            lines.splice(said.at.clone(), (*found).clone());
        }
        fs::write(&path, lines.join("\n") + "\n").expect("written");
        return;
    }
    let differ: Vec<String> = differ
        .iter()
        .map(|(said, found)| {
            format!("$ {}\n{}\n-- and not --\n{}", said.command, found.join("\n"), said.lines.join("\n"))
        })
        .collect();
    assert!(differ.is_empty(), "{page}; WEIR_BLESS=1 writes it anew:\n{}", differ.join("\n\n"));
}

#[test]
fn the_first_steps_are_as_the_page_shows_them() {
    carried_out("docs/first-steps.md", 0);
}

#[test]
fn a_user_who_is_not_root_takes_the_same_steps() {
    needs_root("become another user");
    carried_out("docs/first-steps.md", USER);
}

#[test]
fn what_goes_wrong_is_said() {
    carried_out("tests/newcomer/trouble.md", 0);
}

#[test]
fn transcripts_are_compared_as_their_page_says() {
    let page = "```console\n$ a\nx 1 ms\n...\nz\n$ b\n```\n```\n$ no\n```\n```console emptied\n$ c\n```\n";
    let commands = |kind| transcript(page, kind).iter().map(|said| said.command.clone()).collect::<Vec<_>>();
    assert_eq!(
        (commands("emptied"), commands("debian")),
        (vec!["a".into(), "b".into(), "c".into()], vec!["a".into(), "b".into()])
    );
    let a = &transcript(page, "debian")[0];
    assert_eq!(a.at, 2..5);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for right in ["x 22 ms\nz", "x 2 ms\ny\ny\nz"] {
        assert!(alike(&a.lines, &lines(right)), "{right}");
    }
    for wrong in ["x 22 ms", "y 2 ms\nz", "x 2 ms\nz\nz z", ""] {
        assert!(!alike(&a.lines, &lines(wrong)), "{wrong}");
    }
}
