//! What the end-to-end tests share: weir run as a user runs it, folders that vanish, and a look for what stayed behind.

#![allow(dead_code)] // Each test program uses its own part of this.

pub mod interrupted;
pub mod kubernetes;
pub mod library;
pub mod machines;
pub mod recorded;
pub mod records;
pub mod shop;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How one call of weir ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("standard output is not JSON ({e}):\n{self:#?}"))
    }

    /// Asserts the exit status and returns what was said on standard error.
    pub fn expect(&self, code: i32) -> &str {
        assert_eq!(self.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        &self.stderr
    }
}

/// weir with arguments. Products installed by weir go to one folder for all tests, so that each is got only once.
pub fn weir(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).env("WEIR_HOME", home()).stdin(Stdio::null());
    command
}

/// weir's own folder during tests, inside the target folder.
pub fn home() -> PathBuf {
    binary().parent().expect("the binary is in a folder").join("weir-test-home")
}

/// Cargo tells it to tests, and not to an example, which uses a part of this.
pub fn binary() -> &'static Path {
    option_env!("CARGO_BIN_EXE_weir").map_or_else(|| unreachable!("this is a test"), Path::new)
}

/// What a test holds while weir measures, or while an agent has the lease: a machine is one run's at a time, and weir refuses a second.
pub fn machine() -> MutexGuard<'static, ()> {
    static LEASE: Mutex<()> = Mutex::new(());
    LEASE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs to the end, at most `within`. Runs wait for each other.
pub fn run_within(command: &mut Command, within: Duration) -> Ended {
    let _machine = command.get_args().any(|arg| arg == "run" || arg == "duet").then(machine);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let stdout = drain(child.stdout.take().expect("piped"));
    let stderr = drain(child.stderr.take().expect("piped"));
    let status = wait_within(&mut child, within);
    Ended { status, stdout: stdout.join().expect("read"), stderr: stderr.join().expect("read") }
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A path as a word of a command line.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Products and suites of the repository.
pub fn catalogue() -> weir_product::catalogue::Catalogue {
    let mut catalogue = weir_product::catalogue::Catalogue::default();
    catalogue
        .overlay(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .expect("products and suites of the repository are valid");
    catalogue
}

/// Copies the files of a product of the repository.
pub fn copy_product(name: &str, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../products").join(name);
    for entry in std::fs::read_dir(from).expect("its folder").flatten().filter(|entry| entry.path().is_file()) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// Runs to the end, at most two minutes.
pub fn run(args: &[&str]) -> Ended {
    run_within(&mut weir(args), Duration::from_secs(120))
}

fn drain(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for a child; kills it and fails the test when it takes longer.
pub fn wait_within(child: &mut Child, within: Duration) -> ExitStatus {
    let deadline = Instant::now() + within;
    loop {
        if let Some(status) = child.try_wait().expect("waited for") {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("not done within {within:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a child that has ended said on its standard error.
pub fn said(child: &mut Child) -> String {
    let mut text = String::new();
    let _ = child.stderr.take().expect("piped").read_to_string(&mut text);
    text
}

/// Waits until `done` says so; fails the test after `within`.
pub fn until(what: &str, within: Duration, done: impl FnMut() -> bool) {
    assert!(comes(within, done), "{what}: not within {within:?}");
}

/// Whether `done` says so in time.
fn comes(within: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + within;
    while !done() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// The same for what a run brings about: the run's end fails the test at once, with what it said into the file `words`.
pub fn until_in(run: &mut Child, words: &Path, what: &str, within: Duration, mut done: impl FnMut() -> bool) {
    let said = || std::fs::read_to_string(words).unwrap_or_default();
    let came = comes(within, || {
        let is_done = done();
        let ended = if is_done { None } else { run.try_wait().expect("waited for") };
        assert!(ended.is_none(), "{what}: the run ended before, with {}: {}", ended.unwrap_or_default(), said());
        is_done
    });
    if !came {
        let _ = run.kill();
        panic!("{what}: not within {within:?}: {}", said());
    }
}

/// A folder for one test, gone afterwards.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("weir-e2e-").tempdir().expect("a temporary folder")
}

/// A suite of one workload (GET of 128 bytes) and one load. `head` are the keys of `[suite]` besides its question, `load`
/// those of the load.
pub fn suite(head: &str, load: &str) -> String {
    format!(
        r#"
[suite]
question = "Does it work?"
{head}

[[workload]]
name = "tiny"
path = "/bytes/128"
expect = {{ status = 200, size = 128 }}

[[load]]
{load}
"#
    )
}

/// The file of a product that is never started, with these ways to be installed and one profile.
pub fn made_up(title: &str, profile: &str, installs: &str) -> String {
    let tables = format!(
        r#"{installs}
[version]
command = ["{{{{ binary }}}}", "--version"]
pattern = 'thing (\d+(?:\.\d+)*)'
at_least = "1"
[process]
command = ["{{{{ binary }}}}"]
[profile.{profile}]
about = "as it is"
"#
    );
    product_file(title, &tables)
}

/// A product's file with these tables behind `[product]`.
pub fn product_file(title: &str, tables: &str) -> String {
    let about = "about = \"a thing\"\nhome = \"https://example.org/\"\nspeaks = [\"http/1.1\"]\n";
    format!("[product]\ntitle = \"{title}\"\n{about}{tables}")
}

/// Adds a product with one template to the library folder `library` below `folder`.
pub fn add_product(folder: &Path, name: &str, toml: &str, template: (&str, &str)) {
    let folder = folder.join("library/products").join(name);
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("product.toml"), toml).expect("written");
    std::fs::write(folder.join(template.0), template.1).expect("written");
}

/// Pids of processes that have `marker` in their arguments, their working folder or an open file's path.
pub fn processes_touching(marker: &Path) -> Vec<(u32, String)> {
    let marker = marker.to_str().expect("UTF-8");
    let me = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != me)
        .filter_map(|pid| {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            let touches = arguments.contains(marker) || links_to(pid, marker);
            touches.then_some((pid, arguments))
        })
        .collect()
}

fn links_to(pid: u32, marker: &str) -> bool {
    let under = |path: PathBuf| path.to_str().is_some_and(|p| p.starts_with(marker));
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(under);
    let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return cwd };
    cwd || fds.flatten().any(|fd| std::fs::read_link(fd.path()).is_ok_and(under))
}

/// Asserts that nothing of a run is left running; gives processes that are just ending a moment.
pub fn nothing_left(marker: &Path, within: Duration) {
    let deadline = Instant::now() + within;
    loop {
        let left = processes_touching(marker);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left behind after {within:?}: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a suite as it is written, with the products added to `folder`, into `run` below it: it ends with this status and
/// leaves nothing running. Its measurements.
pub fn run_suite(folder: &Path, suite: &str, code: i32, within: Duration) -> Vec<(PathBuf, Value)> {
    let (file, out, library) = (folder.join("suite.toml"), folder.join("run"), folder.join("library"));
    std::fs::write(&file, suite).expect("written");
    let mut command = weir(&["run", "--scale", "full", "--yes", "-q"]);
    command.arg(&file).arg("--out").arg(&out);
    if library.exists() {
        command.arg("--library").arg(library);
    }
    run_within(&mut command, within).expect(code);
    nothing_left(&out, Duration::from_secs(2));
    measurements(&out)
}

/// Every measurement.json of a run, by folder name, in order.
pub fn measurements(run: &Path) -> Vec<(PathBuf, Value)> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(run.join("trials")).expect("trials").flatten().map(|e| e.path()).collect();
    folders.sort();
    folders
        .into_iter()
        .filter_map(|folder| {
            let text = std::fs::read_to_string(folder.join("measurement.json")).ok()?;
            let value =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: half a measurement: {e}", folder.display()));
            Some((folder, value))
        })
        .collect()
}

/// Findings that name the machine, and neither a product nor weir: it stood still, or something else used its CPUs.
const DISTURBANCES: [&str; 4] = ["other-processes", "stalls", "steal", "vitals-late"];

/// A test of what real runs measure, in a folder of its own. When it fails and weir found in the records below that folder that the
/// machine disturbed a trial, it says so: by that line `make check` knows that the test has shown nothing.
pub fn on_a_shared_machine(test: impl FnOnce(&Path)) {
    let scratch = scratch();
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(scratch.path())));
    let Err(why) = ended else { return };
    if let Some(trial) = disturbed(scratch.path()) {
        eprintln!("DISTURBED: {trial}");
    }
    std::panic::resume_unwind(why);
}

/// Ends a test that this machine cannot carry out. It fails: `make test` skips nothing, and `make check` reads why nothing was shown.
pub fn not_shown(why: impl std::fmt::Display) -> ! {
    panic!("NOT SHOWN: {why}");
}

/// Only root can do `what`.
pub fn needs_root(what: &str) {
    if !rustix::process::geteuid().is_root() {
        not_shown(format_args!("only root can {what}"));
    }
}

/// A trial below a folder with a finding that names the machine, and that finding.
fn disturbed(folder: &Path) -> Option<String> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if entry.file_name() != "measurement.json" {
            return entry.file_type().ok()?.is_dir().then(|| disturbed(&path))?;
        }
        let record: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        Some(format!("{}: {}", record["case"], disturbance(&record)?["message"]))
    })
}

/// A finding of a trial that names the machine.
pub fn disturbance(record: &Value) -> Option<&Value> {
    let findings = record["findings"].as_array()?;
    findings.iter().find(|finding| DISTURBANCES.iter().any(|name| finding["check"] == *name))
}

/// Makes the count of successful responses that of the rate, as weir asks of every record.
pub fn balance(measurement: &mut Value) {
    let load = &mut measurement["load"];
    let counted = load["rate"].as_f64().expect("a rate") * load["window_s"].as_f64().expect("a time");
    load["window"]["successful_in_window"] = (counted as u64).into();
}

/// Rows of measurements.csv.
pub fn csv_rows(run: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(run.join("measurements.csv")).expect("measurements.csv");
    reader.deserialize().map(|row| row.expect("a whole row")).collect()
}

/// Sends a signal to a process that the test started.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("signalled");
}

/// Kills processes, those that are still there: one may have ended with the one above it.
pub fn kill_all(pids: impl IntoIterator<Item = u32>) {
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(pid as i32).expect("a pid");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// nginx's processes of a run.
pub fn nginx_of(run: &Path) -> Vec<u32> {
    let all = processes_touching(&run.join("trials")).into_iter();
    all.filter(|(_, args)| args.starts_with("nginx: ")).map(|(pid, _)| pid).collect()
}

/// The command, started by a shell that does something to itself first, such as `umask 077`.
pub fn after_shell(first: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{first}; exec \"$@\""), "sh"]).arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// The address from `weir origin --json`'s first line.
pub struct OriginUnderTest {
    pub child: Child,
    pub addr: String,
}

impl OriginUnderTest {
    pub fn start(extra: &[&str]) -> OriginUnderTest {
        let mut args = vec!["origin", "--listen", "127.0.0.1:0", "--json"];
        args.extend(extra);
        OriginUnderTest::started(weir(&args))
    }

    /// One that this command starts, which asks for an address and JSON.
    pub fn started(mut command: Command) -> OriginUnderTest {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("weir origin starts");
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(child.stdout.take().expect("piped"));
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("a line");
        let word: Value = serde_json::from_str(&line).expect("JSON");
        let addr = word["listening"].as_str().expect("an address").to_owned();
        // Keep the pipe open for as long as the origin lives: it prints its counters at the end.
        std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = stdout.read_to_string(&mut rest);
        });
        OriginUnderTest { child, addr }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }
}

impl Drop for OriginUnderTest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs weir load quietly and returns the JSON; it must have ended with this status.
pub fn load_result(code: i32, args: &[&str]) -> Value {
    let ended = run(&[&["load", "-q", "--json"], args].concat());
    ended.expect(code);
    ended.json()
}

/// A load in which everything went well: what was due was sent and rightly answered.
pub fn all_right(args: &[&str]) -> Value {
    let result = load_result(0, args);
    let window = &result["window"];
    assert!(window["due"].as_u64() > Some(0), "{result:#}");
    assert_eq!(window["due"], window["successful"], "{result:#}");
    assert_eq!(window["errors"], serde_json::json!({}), "{result:#}");
    result
}

pub fn number(value: &Value, path: &str) -> f64 {
    let found = value.pointer(path).unwrap_or_else(|| panic!("no {path} in {value:#}"));
    found.as_f64().unwrap_or_else(|| panic!("{path} is {found}"))
}

impl OriginUnderTest {
    /// The URL of an origin that was started with --tls.
    pub fn https(&self, path: &str) -> String {
        format!("https://{}{path}", self.addr)
    }
}

/// Numbers become `#`, and blanks before them one, so that only words and their order are compared.
pub fn masked(text: &str) -> String {
    let mut out = String::new();
    let mut in_number = false;
    for c in text.chars() {
        let part = c.is_ascii_digit() || (in_number && matches!(c, '.' | ','));
        if part && !in_number {
            while out.ends_with("  ") {
                out.pop();
            }
            out.push('#');
        }
        if !part {
            out.push(c);
        }
        in_number = part;
    }
    // Units depend on the machine's speed; a comma that followed a number belongs to the words.
    for unit in [" µs", " ms", " s", " B", " KiB", " MiB", " GiB"] {
        let number = format!("#{unit}");
        let mut parts = out.split(&number);
        let first = parts.next().unwrap_or_default().to_owned();
        // "# successful" begins with no unit.
        out = parts.fold(first, |done, rest| {
            done + if rest.starts_with(char::is_alphabetic) { &number } else { "# U" } + rest
        });
    }
    out
}
