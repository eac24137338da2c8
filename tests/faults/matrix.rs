//! The matrix of real runs: injects what `weir_world::faults` lists, and prints what weir found.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_host::placement::allowed_cpus;
use weir_model::Placement;
use weir_model::record::{Measurement, Role, Severity};
use weir_world::faults::{Beside, CASES, Case, Expected, GET, Load};

use crate::common::{Running, add_product, disturbance, measurements, nothing_left, processes_touching, weir, words};

/// What a machine explains that others use, too: no word about the product.
const OF_THE_MACHINE: &str = "client-room client-lag other-processes steal cpu-speed stalls vitals-late drift pauses \
    offered-load not-saturated spread";

/// A real product without a fault.
const fn honest(load: Load) -> Case {
    Case { name: "nginx", fault: "", workload: GET, load, beside: Beside::Nobody, expected: Expected::Clean }
}

const NGINX: [Case; 2] = [honest(Load::Open(4_000, 3)), honest(Load::Closed(3))];

/// What came of a case.
struct Outcome {
    verdict: String,
    findings: Vec<String>,
    /// What is wrong with that; empty when nothing is.
    wrong: String,
    /// A finding names the machine, where the case does not ask for it.
    disturbed: bool,
}

/// Runs the cases with these names, all without names, and prints the matrix.
pub fn run(names: &[&str]) -> ExitCode {
    let chosen = CASES.iter().chain(&NGINX).filter(|case| names.is_empty() || names.contains(&case.name));
    let (begun, mut missed, mut disturbed, mut count) = (Instant::now(), Vec::new(), 0, 0);
    for case in chosen {
        if count == 0 {
            println!("| fault | expected | verdict | found | |\n|---|---|---|---|---|");
        }
        let outcome = injected(case);
        let result = if outcome.wrong.is_empty() { "yes" } else { &outcome.wrong };
        println!(
            "| {} | {} | {} | {} | {result} |",
            case.name,
            expected(case),
            outcome.verdict,
            outcome.findings.join("; ")
        );
        count += 1;
        if !outcome.wrong.is_empty() {
            missed.push(case.name);
            disturbed += u32::from(outcome.disturbed);
        }
    }
    let took = begun.elapsed().as_secs();
    if count == 0 {
        return ExitCode::SUCCESS;
    }
    if missed.is_empty() {
        println!("\n{count} cases in {took} s: each fault was found by its name, and no honest product was blamed.");
        return ExitCode::SUCCESS;
    }
    println!("\n{count} cases in {took} s; {} were not judged as they had to be: {}.", missed.len(), missed.join(", "));
    if disturbed as usize == missed.len() {
        println!("DISTURBED: in each of them weir found that something else used the machine");
    }
    ExitCode::FAILURE
}

fn expected(case: &Case) -> String {
    match case.expected {
        Expected::Clean => "valid".to_owned(),
        Expected::Found(names, words, verdict) => {
            format!("{}: {} with “{}”", verdict.as_str(), names.join(" or "), words.join("” or “"))
        }
        Expected::Note(name, word) => format!("valid: noted {name} with “{word}”"),
        Expected::Failed(word) => format!("error: “{word}”"),
        Expected::Memory(bytes) => format!("a peak of {} MB", bytes / 1_000_000),
    }
}

/// By then the load has begun; connecting and the warm-up take longer.
const PAST_THE_START: Duration = Duration::from_millis(400);

/// Processes and a control group that end with this.
#[derive(Default)]
struct Helpers(Vec<Running>, Option<Group>);

/// A control group that is removed once its processes have ended.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Gives the processes of a program half of a CPU, in a control group of their own. `None` where that may not be done.
fn half_a_cpu(program: &Path) -> Option<Group> {
    let root = Path::new("/sys/fs/cgroup");
    let (above, limits): (PathBuf, &[(&str, &str)]) = if root.join("cgroup.controllers").exists() {
        std::fs::write(root.join("cgroup.subtree_control"), "+cpu").ok()?;
        (root.to_owned(), &[("cpu.max", "50000 100000")])
    } else {
        (root.join("cpu"), &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "50000")])
    };
    let group = Group(above.join(format!("weir-faults-{}", std::process::id())));
    std::fs::create_dir(&group.0).ok()?;
    limits.iter().try_for_each(|(file, limit)| std::fs::write(group.0.join(file), limit)).ok()?;
    let mut own = processes_touching(program).into_iter().filter(|(_, args)| args.contains("proxy"));
    own.try_for_each(|(pid, _)| std::fs::write(group.0.join("cgroup.procs"), pid.to_string())).ok()?;
    Some(group)
}

impl Helpers {
    fn start(&mut self, program: &Path, args: &[&str]) {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(Running(command.spawn().expect("it starts")));
    }
}

/// One run of weir with the fault.
fn injected(case: &Case) -> Outcome {
    // On a disk: a folder in memory would hide what is written.
    let scratch = tempfile::Builder::new().prefix("faults-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let folder = scratch.path();
    let own = std::env::current_exe().expect("this program");
    for name in ["faulty", "burner", "take-over"] {
        symlink(&own, folder.join(name)).expect("linked");
    }
    let placement = Placement::automatic(&allowed_cpus());
    let (client_cpu, proxy_cpu) = (placement.client[0], placement.proxy[0]);
    let mut helpers = Helpers::default();
    let socket = folder.join("socket");
    if case.fault.starts_with("hand-over") {
        helpers.start(&folder.join("take-over"), &["take-over", socket.to_str().expect("UTF-8")]);
    }
    let fault =
        case.fault.replace("SOCKET", socket.to_str().expect("UTF-8")).replace("CLIENT_CPU", &client_cpu.to_string());
    let product = if case.fault.is_empty() { "nginx" } else { "faulty" };
    add_product(folder, "faulty", &definition(case, &fault), ("none.j2", ""));
    let out = folder.join("run");
    let mut weir = start(case, product, folder, &out);
    let seconds = case.load.seconds();
    let burner = |helpers: &mut Helpers, how: &str, cpu: u32, percent: u64, ms: u64| {
        let words = [how.to_owned(), cpu.to_string(), percent.to_string(), ms.to_string()];
        helpers.start(&folder.join("burner"), &words.each_ref().map(String::as_str));
    };
    let cpu = |role: Role| if role == Role::Client { client_cpu } else { proxy_cpu };
    match case.beside {
        Beside::Nobody => {}
        Beside::Burner(role, percent, 1) => {
            client(&out, &mut weir);
            std::thread::sleep(Duration::from_secs(u64::from(seconds) / 2));
            burner(&mut helpers, "burn", cpu(role), percent, 1_000);
        }
        Beside::Burner(role, percent, seconds) => burner(&mut helpers, "burn", cpu(role), percent, seconds * 1_000),
        Beside::ShortLived(percent) => burner(&mut helpers, "breed", proxy_cpu, percent, 60_000),
        Beside::Stopped(role) => {
            client(&out, &mut weir);
            // A client that is stopped while it is told when to start refuses to measure at all.
            std::thread::sleep(PAST_THE_START);
            stop_now_and_then(&out, role.as_str(), Duration::from_millis(200), Duration::from_secs(1), &mut weir);
        }
        Beside::StoppedOften(role) => {
            client(&out, &mut weir);
            std::thread::sleep(PAST_THE_START);
            stop_now_and_then(&out, role.as_str(), Duration::from_millis(5), Duration::from_millis(10), &mut weir);
        }
        Beside::Quota(_) => {
            client(&out, &mut weir);
            helpers.1 = half_a_cpu(&folder.join("faulty"));
        }
        Beside::SamplersStopped => {
            let agent = client(&out, &mut weir).and_then(parent);
            std::thread::sleep(PAST_THE_START);
            if let Some(agent) = agent {
                crate::common::signal(agent, Signal::STOP);
                std::thread::sleep(Duration::from_secs(1));
                crate::common::signal(agent, Signal::CONT);
            }
        }
    }
    let status = crate::common::wait_within(&mut weir, Duration::from_secs(60));
    drop(helpers);
    nothing_left(&out, Duration::from_secs(5));
    let measured = if out.join("trials").is_dir() { measurements(&out) } else { Vec::new() };
    match measured.first() {
        Some((_, measurement)) => judged(case, measurement),
        None => Outcome {
            verdict: "none".to_owned(),
            findings: Vec::new(),
            wrong: format!("weir ended with {status} and measured nothing"),
            disturbed: false,
        },
    }
}

fn start(case: &Case, product: &str, folder: &Path, out: &Path) -> Child {
    let file = folder.join("fault.toml");
    std::fs::write(&file, case.suite(product, 16)).expect("written");
    std::fs::create_dir_all(folder.join("library/products")).expect("made");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = weir(&["run", "--scale", "full", "--yes", "-q", "--library"]);
    command.arg(folder.join("library")).arg(&file).arg("--out").arg(out).env("PATH", path);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir starts")
}

/// The faulty proxy, or store, as a product.
fn definition(case: &Case, fault: &str) -> String {
    let text = include_str!("faulty.toml");
    match case.store() {
        Some(faults) => text
            .replace(
                "speaks = [\"http/1.1\"]\nfeatures = [\"key-auth\", \"compression\"]",
                "speaks = [\"redis\"]\nstore = true",
            )
            .replace(r#""proxy", "{{ listen"#, r#""store", "{{ listen"#)
            .replace(r#""{{ origin_host }}:{{ origin_port }}", "#, "")
            .replace("FAULT", faults),
        None => text.replace("FAULT", fault),
    }
}

/// Waits for the load's client.
fn client(out: &Path, weir: &mut Child) -> Option<u32> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline && weir.try_wait().is_ok_and(|ended| ended.is_none()) {
        if let Some(pid) = role(out, "client") {
            return Some(pid);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn role(out: &Path, name: &str) -> Option<u32> {
    let wanted = format!("weir {name}");
    processes_touching(out).into_iter().find(|(_, args)| args.contains(&wanted)).map(|(pid, _)| pid)
}

/// Stops a role for so long of each time `every`, until the client has ended. The times are counted from the first one: this thread wakes
/// late while the role runs, for then both CPUs are busy, and in time while it is stopped. Pauses one behind the other would stop it less.
fn stop_now_and_then(out: &Path, name: &str, length: Duration, every: Duration, weir: &mut Child) {
    let Some(pid) = role(out, name) else { return };
    let tell =
        |signal| rustix::process::kill_process(rustix::process::Pid::from_raw(pid as i32).expect("a pid"), signal);
    while weir.try_wait().is_ok_and(|ended| ended.is_none()) && role(out, "client").is_some() {
        let second = Instant::now();
        let mut due = second;
        while due.duration_since(second) < Duration::from_secs(1) {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if tell(Signal::STOP).is_err() {
                return;
            }
            std::thread::sleep(length);
            let _ = tell(Signal::CONT);
            // Two stops without a pause would be another fault.
            due = (due + every).max(Instant::now() + (every - length) / 2);
        }
    }
}

fn judged(case: &Case, record: &Value) -> Outcome {
    let found: Measurement = serde_json::from_value(record.clone()).expect("a measurement");
    let named: &[&str] = if let Expected::Found(names, ..) = case.expected { names } else { &[] };
    let blamed = found.findings.iter().filter(|one| one.severity != Severity::Note);
    let findings = blamed.map(|one| format!("{} ({})", one.check, shortened(&one.message))).collect();
    let disturbed = disturbance(record).is_some_and(|finding| !named.iter().any(|name| finding["check"] == **name));
    let wrong = case.judge(&found, &words(OF_THE_MACHINE));
    Outcome { verdict: found.verdict.as_str().to_owned(), findings, wrong, disturbed }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(90) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
