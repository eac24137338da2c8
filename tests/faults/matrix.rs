//! The matrix: what is injected, how it has to be called, and what weir found.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_host::placement::allowed_cpus;
use weir_model::Placement;

use crate::common::{add_product, disturbance, measurements, nothing_left, processes_touching, suite, weir};

/// Who is disturbed beside the product.
#[derive(Clone, Copy)]
enum Neighbour {
    None,
    /// A process uses so many per cent of the proxy's CPU.
    OnProxy(u64),
    /// The same, for one second in the middle of the window.
    OnProxyOneSecond(u64),
    /// The same, by children that live for 20 ms each.
    ShortLivedOnProxy(u64),
    /// On the client's CPU.
    OnClient(u64),
    /// This role is stopped for 200 ms of each second.
    Stopped(&'static str),
    /// The agent, which samples, is stopped for a second in which the window begins.
    AgentStopped,
}

/// What has to come of it.
#[derive(Clone, Copy)]
enum Wanted {
    /// No finding but those of a busy machine.
    Clean,
    /// One of these findings, which says one of these words, and at least this verdict.
    Finding(&'static [&'static str], &'static [&'static str], Verdict),
    /// This finding, which says this word, and no verdict against the product.
    Noted(&'static str, &'static str),
    /// The record says that the product used at least so many bytes of memory at most.
    PeakMemory(f64),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Suspect,
    Invalid,
}

struct Case {
    name: &'static str,
    /// What the faulty proxy is told; empty for a product of weir's library with that name.
    proxy: &'static str,
    load: Load,
    neighbour: Neighbour,
    wanted: Wanted,
}

#[derive(Clone, Copy)]
enum Load {
    /// 16 connections, seconds of the window.
    Closed(u32),
    /// Requests a second, seconds of the window.
    Open(u32, u32),
}

use Verdict::{Invalid, Suspect};
use Wanted::{Clean, Finding};

const CONSERVATION: &[&str] = &["conservation-requests"];
const STEADY: &[&str] = &["drift"];
const STILL: &[&str] = &["pauses", "stalls"];
const CROWDED: &[&str] = &["other-processes"];
const OUTSIDE: &[&str] = &["unexplained-work"];

/// What a machine explains that others use, too: no word about the product.
const OF_THE_MACHINE: &[&str] = &[
    "client-room",
    "client-lag",
    "other-processes",
    "steal",
    "cpu-speed",
    "stalls",
    "vitals-late",
    "drift",
    "pauses",
    "offered-load",
    "not-saturated",
    "spread",
];

const fn case(name: &'static str, proxy: &'static str, load: Load, wanted: Wanted) -> Case {
    Case { name, proxy, load, neighbour: Neighbour::None, wanted }
}

impl Case {
    /// With a neighbour.
    const fn beside(self, neighbour: Neighbour) -> Case {
        Case { neighbour, ..self }
    }
}

/// Enough for what is counted, and little enough that nobody is hurried.
const COUNTED: Load = Load::Open(4_000, 3);

const CASES: &[Case] = &[
    case("honest", "honest", COUNTED, Clean),
    case("honest-closed", "honest", Load::Closed(3), Clean),
    case("nginx", "", COUNTED, Clean),
    case("nginx-closed", "", Load::Closed(3), Clean),
    case("cache", "cache", COUNTED, Finding(CONSERVATION, &["cach"], Invalid)),
    case("revalidate", "revalidate", COUNTED, Finding(CONSERVATION, &["cach"], Invalid)),
    case("cache-and-twice", "cache-and-twice", COUNTED, Finding(CONSERVATION, &["cach"], Invalid)),
    case("coalesce", "coalesce", Load::Closed(3), Finding(CONSERVATION, &["shared", "coalesc"], Invalid)),
    case("forge", "forge", COUNTED, Finding(CONSERVATION, &["forg"], Invalid)),
    case("forge-all", "forge-all", COUNTED, Finding(CONSERVATION, &["forg"], Invalid)),
    case("strip", "strip", COUNTED, Finding(CONSERVATION, &["strip", "took", "without"], Suspect)),
    case("mirror", "mirror", COUNTED, Finding(CONSERVATION, &["mirror", "twice", "more than once"], Invalid)),
    case("retry", "retry=20", COUNTED, Finding(CONSERVATION, &["retri", "twice", "more than once"], Invalid)),
    case("corrupt", "corrupt=2000", COUNTED, Finding(&["wrong-answers"], &["body"], Invalid)),
    case("corrupt-once", "corrupt=20000", Load::Open(4_000, 4), Finding(&["wrong-answers"], &["body"], Suspect)),
    case("refuse", "refuse=500", COUNTED, Finding(&["refusals"], &["503"], Suspect)),
    case("refuse a few", "refuse=5000", COUNTED, Clean),
    case("reset", "reset=500", COUNTED, Finding(&["refusals"], &["reset"], Suspect)),
    case("step-4", "step=4", Load::Closed(12), Finding(STEADY, &[""], Suspect)),
    case("step-6", "step=6", Load::Closed(12), Finding(STEADY, &[""], Suspect)),
    case("step-8", "step=8", Load::Closed(12), Finding(STEADY, &[""], Suspect)),
    case("step-11", "step=11", Load::Closed(12), Finding(STEADY, &[""], Suspect)),
    case("step-up-6", "step-up=6", Load::Closed(12), Finding(STEADY, &[""], Suspect)),
    case("step-of-2", "step=1", Load::Closed(2), Finding(STEADY, &[""], Suspect)),
    case("ramp", "ramp", Load::Closed(12), Finding(STEADY, &[""], Suspect)),
    case("stall-closed", "stall", Load::Closed(5), Finding(STILL, &["product"], Suspect)),
    case("stall-open", "stall", Load::Open(2_000, 5), Finding(STILL, &["product"], Suspect)),
    case("pause", "pause=2", Load::Closed(12), Finding(&["pauses"], &["product"], Invalid)),
    case("frozen", "freeze=1", Load::Closed(2), Finding(&["errors"], &["waited in vain"], Invalid)),
    case("hand-over", "hand-over=SOCKET", COUNTED, Finding(OUTSIDE, &["take-over", "faults"], Invalid)),
    case("elsewhere", "elsewhere=CLIENT_CPU", COUNTED, Finding(&["affinity"], &["CPU"], Invalid)),
    case("anywhere", "anywhere", COUNTED, Finding(&["affinity"], &["CPU"], Suspect)),
    case("spike", "spike", COUNTED, Wanted::PeakMemory(600e6)),
    case("log", "log", COUNTED, Finding(&["disk-writes"], &[""], Suspect)),
    case("header", "header=1", COUNTED, Finding(&["headers"], &["x-added"], Suspect)),
    case("gzip", "gzip", COUNTED, Wanted::Noted("compresses", "gzip")),
    case("30 % of the product's CPU", "honest", Load::Closed(3), Finding(CROWDED, &["burner"], Suspect))
        .beside(Neighbour::OnProxy(30)),
    case("60 % of it for a second", "honest", Load::Closed(12), Finding(CROWDED, &["burner"], Suspect))
        .beside(Neighbour::OnProxyOneSecond(60)),
    case("30 % of it by short-lived children", "honest", Load::Closed(3), Finding(CROWDED, &["burner"], Suspect))
        .beside(Neighbour::ShortLivedOnProxy(30)),
    case("30 % of the client's CPU", "honest", Load::Closed(3), Finding(CROWDED, &["burner"], Suspect))
        .beside(Neighbour::OnClient(30)),
    case("client stopped", "honest", Load::Closed(5), Finding(&["stalls"], &["the client stood"], Invalid))
        .beside(Neighbour::Stopped("client")),
    case("client stopped, open", "honest", Load::Open(2_000, 5), Finding(&["stalls"], &["the client stood"], Invalid))
        .beside(Neighbour::Stopped("client")),
    case("origin stopped", "honest", Load::Closed(5), Finding(&["stalls"], &["the origin stood"], Invalid))
        .beside(Neighbour::Stopped("origin")),
    case("origin stopped, open", "honest", Load::Open(2_000, 5), Finding(&["stalls"], &["the origin stood"], Invalid))
        .beside(Neighbour::Stopped("origin")),
    case("samples late", "honest", Load::Open(2_000, 3), Finding(&["vitals-late"], &["late"], Invalid))
        .beside(Neighbour::AgentStopped),
];

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
    let chosen = CASES.iter().filter(|case| names.is_empty() || names.contains(&case.name));
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
    match case.wanted {
        Clean => "valid".to_owned(),
        Finding(names, words, verdict) => {
            let verdict = if verdict == Invalid { "invalid" } else { "suspect" };
            let words: Vec<String> =
                words.iter().filter(|word| !word.is_empty()).map(|word| format!("“{word}”")).collect();
            let mut text = format!("{verdict}: {}", names.join(" or "));
            if !words.is_empty() {
                let _ = write!(text, " with {}", words.join(" or "));
            }
            text
        }
        Wanted::Noted(name, word) => format!("valid: noted {name} with “{word}”"),
        Wanted::PeakMemory(bytes) => format!("a peak of {:.0} MB", bytes / 1e6),
    }
}

/// Processes that end with this.
/// By then the load has begun; connecting and the warm-up take longer.
const PAST_THE_START: Duration = Duration::from_millis(400);

#[derive(Default)]
struct Helpers(Vec<Child>);

impl Helpers {
    fn start(&mut self, program: &Path, args: &[&str]) {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn().expect("it starts"));
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
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
    if case.proxy.starts_with("hand-over") {
        helpers.start(&folder.join("take-over"), &["take-over", socket.to_str().expect("UTF-8")]);
    }
    let fault =
        case.proxy.replace("SOCKET", socket.to_str().expect("UTF-8")).replace("CLIENT_CPU", &client_cpu.to_string());
    let product = if case.proxy.is_empty() { "nginx" } else { "faulty" };
    if product == "faulty" {
        add_product(folder, product, &definition(&fault), ("none.j2", ""));
    }
    let out = folder.join("run");
    let mut weir = start(case, product, folder, &out);
    let seconds = case.load.seconds();
    let burner = |helpers: &mut Helpers, how: &str, cpu: u32, percent: u64, ms: u64| {
        let words = [how.to_owned(), cpu.to_string(), percent.to_string(), ms.to_string()];
        helpers.start(&folder.join("burner"), &words.each_ref().map(String::as_str));
    };
    match case.neighbour {
        Neighbour::None => {}
        Neighbour::OnProxy(percent) => burner(&mut helpers, "burn", proxy_cpu, percent, 60_000),
        Neighbour::ShortLivedOnProxy(percent) => burner(&mut helpers, "breed", proxy_cpu, percent, 60_000),
        Neighbour::OnClient(percent) => burner(&mut helpers, "burn", client_cpu, percent, 60_000),
        Neighbour::OnProxyOneSecond(percent) => {
            client(&out, &mut weir);
            std::thread::sleep(Duration::from_secs(u64::from(seconds) / 2));
            burner(&mut helpers, "burn", proxy_cpu, percent, 1_000);
        }
        Neighbour::Stopped(role) => {
            client(&out, &mut weir);
            // A client that is stopped while it is told when to start refuses to measure at all.
            std::thread::sleep(PAST_THE_START);
            stop_now_and_then(&out, role, &mut weir);
        }
        Neighbour::AgentStopped => {
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

impl Load {
    fn seconds(self) -> u32 {
        match self {
            Load::Closed(seconds) | Load::Open(_, seconds) => seconds,
        }
    }
}

fn start(case: &Case, product: &str, folder: &Path, out: &Path) -> Child {
    let kind = match case.load {
        Load::Closed(_) => "kind = \"closed\"".to_owned(),
        Load::Open(rate, _) => format!("kind = \"open\"\nrate = {rate}"),
    };
    let load = format!(
        "name = \"load\"\n{kind}\nconnections = 16\nwarmup = \"500ms\"\nduration = \"{}s\"",
        case.load.seconds()
    );
    let head = format!("title = \"A fault\"\nblocks = 1\nseed = 1\nproducts = [\"{product}\"]\nprofile = \"tuned\"");
    let file = folder.join("fault.toml");
    let mut text = suite(&head, &load);
    if case.proxy == "gzip" {
        text = text.replace("[[workload]]", "[[workload]]\naccept_encoding = \"gzip\"");
    }
    std::fs::write(&file, text).expect("written");
    std::fs::create_dir_all(folder.join("library/products")).expect("made");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = weir(&["run", "--scale", "full", "--yes", "-q", "--library"]);
    command.arg(folder.join("library")).arg(&file).arg("--out").arg(out).env("PATH", path);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir starts")
}

/// The faulty proxy as a product.
fn definition(fault: &str) -> String {
    format!(
        r#"
[product]
title = "Faulty"
about = "A proxy with a fault"
home = "https://example.org/"
speaks = ["http/1.1"]
[[install]]
method = "system"
binary = "faulty"
[version]
command = ["{{{{ binary }}}}", "proxy", "--version"]
pattern = 'faulty (\d+\.\d+\.\d+)'
[process]
command = ["{{{{ binary }}}}", "proxy", "{{{{ listen_host }}}}:{{{{ listen_port }}}}", "{{{{ origin_host }}}}:{{{{ origin_port }}}}", "{fault}"]
ready_within = "5s"
stop_within = "1s"
[profile.tuned]
about = "With the fault"
codings = ["gzip"]
files = {{ "none" = "none.j2" }}
"#
    )
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

/// Stops a role for 200 ms of each second, until the client has ended.
fn stop_now_and_then(out: &Path, name: &str, weir: &mut Child) {
    let Some(pid) = role(out, name) else { return };
    let tell =
        |signal| rustix::process::kill_process(rustix::process::Pid::from_raw(pid as i32).expect("a pid"), signal);
    while weir.try_wait().is_ok_and(|ended| ended.is_none()) && role(out, "client").is_some() {
        if tell(Signal::STOP).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
        let _ = tell(Signal::CONT);
        std::thread::sleep(Duration::from_millis(800));
    }
}

fn judged(case: &Case, measurement: &Value) -> Outcome {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let verdict = text(&measurement["verdict"]);
    let all = || measurement["findings"].as_array().into_iter().flatten();
    // Notes tell, and do not blame.
    let findings: Vec<(String, String)> = all()
        .filter(|finding| finding["severity"] != "note")
        .map(|finding| (text(&finding["check"]), format!("{} {}", text(&finding["message"]), text(&finding["remedy"]))))
        .collect();
    let named: &[&str] = if let Finding(names, ..) = case.wanted { names } else { &[] };
    let others: Vec<&str> = findings
        .iter()
        .map(|(check, _)| check.as_str())
        .filter(|check| !named.contains(check) && !OF_THE_MACHINE.contains(check) && !follows(case, check))
        .collect();
    let at_least = match verdict.as_str() {
        "suspect" => Some(Suspect),
        "invalid" => Some(Invalid),
        _ => None,
    };
    let wrong = match case.wanted {
        _ if verdict == "error" => format!("an error: {}", measurement["error"]["message"]),
        _ if !others.is_empty() => format!("called {}", others.join(", ")),
        Clean => String::new(),
        Wanted::Noted(name, word) => {
            let noted = |finding: &&Value| finding["check"] == name && text(&finding["message"]).contains(word);
            if all().any(|finding| noted(&finding)) { String::new() } else { "missed".to_owned() }
        }
        Finding(_, words, least) => {
            let says = |told: &str| words.iter().any(|word| told.to_lowercase().contains(&word.to_lowercase()));
            match findings.iter().find(|(check, _)| named.contains(&check.as_str())) {
                None => "missed".to_owned(),
                Some(_) if !findings.iter().any(|(check, told)| named.contains(&check.as_str()) && says(told)) => {
                    "found, by other words".to_owned()
                }
                Some(_) if at_least < Some(least) => format!("found, and only {verdict}"),
                Some(_) => String::new(),
            }
        }
        Wanted::PeakMemory(bytes) => match peak(measurement) {
            peak if peak >= bytes => String::new(),
            peak => format!("missed: {:.0} MB", peak / 1e6),
        },
    };
    let findings = findings.into_iter().map(|(check, told)| format!("{check} ({})", shortened(&told))).collect();
    let disturbed =
        disturbance(measurement).is_some_and(|finding| !named.iter().any(|name| finding["check"] == **name));
    Outcome { verdict, findings, wrong, disturbed }
}

/// What is cached, shared or sent twice moves other bytes, and its work explains fewer requests.
fn follows(case: &Case, check: &str) -> bool {
    matches!(check, "conservation-bytes" | "unexplained-work") && named_conservation(case)
}

fn named_conservation(case: &Case) -> bool {
    matches!(case.wanted, Finding(names, ..) if names == CONSERVATION)
}

/// Bytes of the product's memory at most, as the record has them.
fn peak(measurement: &Value) -> f64 {
    let proxy = measurement["usage"].as_array().into_iter().flatten().find(|usage| usage["role"] == "proxy");
    let fields = proxy.and_then(Value::as_object).into_iter().flatten();
    fields
        .filter(|(name, _)| name.contains("rss") || name.contains("memory") || name.contains("peak"))
        .filter_map(|(_, value)| value.as_f64())
        .fold(0.0, f64::max)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(90) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
