//! `weir agent` as a process on this machine: it ends with everything below it, however it or its transport ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{machine, nothing_left, processes_touching, scratch, signal, until, wait_within, weir};
use rustix::process::Signal;
use serde_json::json;
use weir_host::agent::connect::{Agents, Connect};
use weir_host::agent::frame::{Frame, FrameReader, FrameWriter};
use weir_host::agent::{Hello, VERSION};
use weir_host::transport::Binary;
use weir_host::{Host, HostError, ProgramSpec, RoleProcess, RoleSpec};
use weir_model::topology::Topology;

const LONG: Duration = Duration::from_secs(30);

fn agents(run: &str) -> Agents {
    let weir = Binary::of(Path::new(env!("CARGO_BIN_EXE_weir"))).expect("a program");
    Agents { weir, run: run.into(), who: "tester@here".into(), lease: false }
}

fn connect() -> Arc<dyn Host> {
    agents("a").connect(&Topology::local().hosts()[0], &[]).expect("this machine")
}

/// A program that forks and an origin, both in this folder.
fn start_two(host: &dyn Host, folder: &Path) -> (Box<dyn weir_host::Process>, Arc<dyn RoleProcess>) {
    let sleep = folder.join("sleeper");
    if !sleep.exists() {
        std::os::unix::fs::symlink("/bin/sleep", &sleep).expect("linked");
    }
    let line = format!("{0} 1000 & setsid {0} 1000 & wait", sleep.display());
    let argv = ["/bin/sh", "-c", &line].map(String::from).into();
    let env = host.facts().env.clone();
    let spec = ProgramSpec { argv, env, dir: folder.into(), output: folder.join("log"), ..ProgramSpec::default() };
    let process = host.start(&spec).expect("started");
    let listen = host.free_ports([127, 0, 0, 1].into(), 1).expect("free")[0].to_string();
    let args = ["origin", "--with-parent", "--listen", &listen].map(String::from).into();
    let role = RoleSpec { name: "origin".into(), args, output: folder.join("origin.log"), hold: true };
    let origin = host.start_role(&role).expect("started");
    assert!(origin.receive(LONG).expect("a report").contains("listening"));
    until("both sleepers", LONG, || sleepers(folder).len() == 2);
    (process, origin)
}

fn sleepers(folder: &Path) -> Vec<(u32, String)> {
    let own = folder.join("sleeper").display().to_string();
    processes_touching(folder).into_iter().filter(|(_, args)| args.starts_with(&own)).collect()
}

fn gone(pid: u32) -> bool {
    !PathBuf::from(format!("/proc/{pid}")).exists()
}

/// Pid of the agent above a process that it started.
fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("it has a parent");
    line.trim().parse().expect("a pid")
}

#[test]
fn programs_and_roles_run_below_it_and_end_with_a_goodbye() {
    let folder = scratch();
    let host = connect();
    let (process, origin) = start_two(&*host, folder.path());
    let agent = parent(process.root());
    assert_eq!(parent(origin.pid()), agent);
    assert_ne!(agent, std::process::id());
    assert!(origin.ask("counters", LONG).expect("a response").contains("counters"));
    assert_eq!(host.facts().work, None, "this disk is its own");
    let checks = host.call("doctor", json!(folder.path()), &mut |_| {}).expect("examined");
    assert!(checks.as_array().expect("a list").len() > 5, "{checks}");
    let products = json!({"products": ["nginx", "direct"]});
    let found = host.call("find", products.clone(), &mut |_| {}).expect("looked for");
    assert!(found["here"]["nginx"]["binary"].is_string() && found["missing"] == json!({}), "{found}");
    assert_eq!(host.call("plan", products.clone(), &mut |_| {}).expect("planned"), json!([]));
    assert_eq!(host.call("install", products, &mut |_| {}).expect("nothing to do"), found);
    let unknown = host.call("find", json!({"products": ["nginz"]}), &mut |_| {}).expect_err("none").to_string();
    assert!(unknown.contains("nginx"), "{unknown}");
    let missing = host.call("breakfast", json!(null), &mut |_| {}).expect_err("not offered").to_string();
    assert_eq!(missing, "weir offers no breakfast on its hosts");
    drop(host);
    assert!(gone(agent) && gone(process.root()) && gone(origin.pid()));
    nothing_left(folder.path(), LONG);
}

#[test]
fn killed_with_a_program_and_a_role_below_it_it_leaves_no_process() {
    let folder = scratch();
    let host = connect();
    let (mut process, origin) = start_two(&*host, folder.path());
    let agent = parent(process.root());
    signal(agent, Signal::KILL);
    until("the loss", LONG, || host.lost().is_some());
    let why = host.lost().expect("lost");
    assert_eq!(why, "the connection ended without a goodbye; weir ended with signal: 9 (SIGKILL)");
    assert!(process.ended().is_some() && !origin.alive());
    until("the program's end", LONG, || sleepers(folder.path()).is_empty());
    until("the role's and the supervisor's end", LONG, || gone(origin.pid()) && gone(process.root()));
    nothing_left(folder.path(), LONG);
}

/// Speaks to an agent by hand, and falls silent without closing anything.
struct Speaker {
    child: Child,
    frames: FrameWriter<std::process::ChildStdin>,
}

impl Speaker {
    fn start(hello: &Hello) -> Speaker {
        let mut child = weir(&["agent"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("weir starts");
        let frames = FrameWriter::new(child.stdin.take().expect("piped"));
        let mut speaker = Speaker { child, frames };
        speaker.say(json!({"hello": hello}));
        speaker
    }

    fn say(&mut self, message: serde_json::Value) {
        self.frames.write(&Frame::new(message.to_string().into_bytes(), &[])).expect("it listens");
    }
}

fn hello(lease: bool) -> Hello {
    let (run, who) = ("by-hand".into(), "tester@here".into());
    Hello { version: VERSION.into(), run, who, name: "m1".into(), own_disk: true, lease, ..Hello::default() }
}

/// Neither side's pipe is closed, and nobody reads what it says: only its watchdog can end it.
#[test]
fn silence_ends_it_and_everything_below_it() {
    let folder = scratch();
    let mut speaker = Speaker::start(&hello(false));
    let args = ["origin", "--with-parent", "--listen", "127.0.0.1:0"];
    let output = folder.path().join("origin.log");
    let role = json!({"name": "origin", "args": args, "output": output, "hold": false});
    speaker.say(json!({"request": [1, {"start_role": [2, role]}]}));
    let sleeper = json!({"argv": ["/bin/sleep", "1000"], "env": {}, "dir": folder.path(), "output": output, "cpus": [], "nice": 0});
    speaker.say(json!({"request": [3, {"start": [4, sleeper]}]}));
    let begun = Instant::now();
    let agent = speaker.child.id();
    until("role and program", LONG, || weir_host::supervisor::descendants(agent).len() >= 3);
    let below = weir_host::supervisor::descendants(agent);
    let status = wait_within(&mut speaker.child, LONG);
    assert_eq!(status.code(), Some(4));
    assert!(begun.elapsed() > Duration::from_secs(6), "{:?}", begun.elapsed());
    until("their end", LONG, || below.iter().all(|pid| gone(*pid)));
}

#[test]
fn nothing_that_is_printed_breaks_its_frames() {
    let mut speaker = Speaker::start(&hello(false));
    let mut frames = FrameReader::new(speaker.child.stdout.take().expect("piped"));
    let first = frames.read().expect("a frame");
    let first: serde_json::Value = serde_json::from_slice(first.text()).expect("JSON");
    let work = PathBuf::from(first["welcome"]["work"].as_str().expect("a folder of its own"));
    assert!(work.is_dir());
    let agent = speaker.child.id();
    let at = |fd: u32| std::fs::read_link(format!("/proc/{agent}/fd/{fd}")).expect("open");
    assert_eq!(at(1), at(2), "what is printed goes to standard error");
    assert_eq!(at(0), PathBuf::from("/dev/null"));
    speaker.say(json!("bye"));
    let mut last = String::new();
    while let Ok(frame) = frames.read() {
        last = String::from_utf8_lossy(frame.text()).into_owned();
    }
    assert_eq!(last, "\"gone\"");
    assert_eq!(wait_within(&mut speaker.child, LONG).code(), Some(0));
    assert!(!work.exists());
}

#[test]
fn a_host_of_another_run_is_refused_and_what_a_killed_agent_left_is_removed() {
    let _machine = machine();
    let lease = |run| Agents { lease: true, ..agents(run) };
    let local = Topology::local();
    let spec = &local.hosts()[0];
    let first = lease("first").connect(spec, &[]).expect("free");
    let refused = lease("second").connect(spec, &[]).expect_err("held");
    let HostError::Failed(said) = refused else { panic!("{refused}") };
    assert!(said.starts_with("the host local is in use by run first of tester@here since "), "{said}");
    drop(first);
    drop(lease("second").connect(spec, &[]).expect("free again"));

    let mut speaker = Speaker::start(&hello(true));
    let mut frames = FrameReader::new(speaker.child.stdout.take().expect("piped"));
    let welcome: serde_json::Value = serde_json::from_slice(frames.read().expect("a frame").text()).expect("JSON");
    let work = PathBuf::from(welcome["welcome"]["work"].as_str().expect("a folder of its own"));
    std::fs::File::create(work.join("file")).expect("made").write_all(b"left").expect("written");
    signal(speaker.child.id(), Signal::KILL);
    wait_within(&mut speaker.child, LONG);
    assert!(work.exists());
    drop(lease("third").connect(spec, &[]).expect("free"));
    assert!(!work.exists(), "removed by the next");
}
