//! Supervisors with real processes: however a process ends, nothing of it stays behind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_host::supervisor::account::{ACCOUNT, possible as account_possible};
use weir_host::supervisor::{StartError, Supervised, descendants, end_left_behind, pid_namespaces};
use weir_host::{Confined, Disk, Disturbance, Ended, Process, ProgramSpec};
use weir_model::product::{Capability, Signal as ProductSignal};

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// The example `supervise`. It is built here, because `cargo test --test it` alone does not build examples. It has the features of the
/// whole workspace: with others, cargo would compile this crate a second time.
fn supervisor() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        // <target>/<profile>/deps/<this test>
        let this = std::env::current_exe().expect("this test");
        let profile = this.ancestors().nth(2).expect("a profile's folder");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--workspace", "--example", "supervise", "--manifest-path"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
        cargo.arg("--target-dir").arg(profile.parent().expect("the target folder"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo runs").success(), "{cargo:?}");
        profile.join("examples/supervise")
    };
    BUILT.get_or_init(build).clone()
}

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A spec that runs a bash script in this folder.
    fn spec(&self, script: &str) -> ProgramSpec {
        ProgramSpec {
            argv: ["bash", "-c", script].map(String::from).to_vec(),
            env: BTreeMap::from([("PATH".into(), std::env::var("PATH").expect("a path"))]),
            dir: self.0.path().to_owned(),
            output: self.0.path().join("output.log"),
            ..ProgramSpec::default()
        }
    }

    fn start(&self, script: &str) -> Supervised {
        Supervised::start(&supervisor(), &self.spec(script)).expect("bash starts")
    }

    fn output(&self) -> String {
        std::fs::read_to_string(self.0.path().join("output.log")).unwrap_or_default()
    }

    /// Waits until the script has written `n` lines.
    fn lines(&self, n: usize) -> Vec<String> {
        until("the script's lines", || self.output().lines().count() >= n);
        self.output().lines().map(str::to_owned).collect()
    }

    /// The pids that the script has written, one a line, of processes that live below this supervisor.
    fn pids(&self, n: usize, supervisor: u32) -> Vec<u32> {
        self.lines(n).iter().map(|line| outside(line, supervisor)).collect()
    }
}

/// The pid here of a living process that has this one where it runs, below this supervisor (proc_pid_status(5), `NSpid`).
fn outside(inside: &str, supervisor: u32) -> u32 {
    let is_it = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("NSpid:") && line.split_whitespace().last() == Some(inside))
    };
    let below = descendants(supervisor);
    below.iter().copied().find(is_it).unwrap_or_else(|| panic!("{inside} is not below {supervisor}: {below:?}"))
}

/// A main process that stays, a child, and a daemon: forked twice, in a session of its own, its parent gone.
const DAEMON: &str = "(setsid bash -c 'echo $$; exec sleep 300' &) ; sleep 300 & echo $! ; echo $$ ; wait";

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Neither there nor a zombie.
fn gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).expect("a pid"), Signal::KILL).expect("signalled");
}

fn exited(code: i32) -> Ended {
    Ended { code: Some(code), signal: None, forced: false, left_over: 0, lost: false }
}

#[test]
fn a_daemon_is_gone_after_stop_and_after_drop() {
    for stop in [true, false] {
        let scratch = Scratch::new();
        let supervised = scratch.start(DAEMON);
        let supervisor = supervised.root();
        let pids = scratch.pids(3, supervisor);
        if stop {
            let ended = Box::new(supervised).stop(LONG);
            assert_eq!((ended.signal, ended.forced), (Some(Signal::TERM.as_raw()), false));
            assert_eq!(ended.left_over, 2, "the child and the daemon");
        } else {
            drop(supervised);
        }
        assert!(pids.iter().chain([&supervisor]).all(|pid| gone(*pid)), "stopped: {stop}; {pids:?}");
    }
}

#[test]
fn a_program_gets_its_niceness() {
    let own = String::from_utf8(Command::new("nice").output().expect("nice runs").stdout).expect("a number");
    let own: i32 = own.trim().parse().expect("a number");
    for nice in [0, 3] {
        let scratch = Scratch::new();
        let spec = ProgramSpec { nice, ..scratch.spec("nice; nice; exec sleep 300") };
        let supervised = Supervised::start(&supervisor(), &spec).expect("bash starts");
        let expected = (own + i32::from(nice)).min(19).to_string();
        assert_eq!(scratch.lines(2), [expected.as_str(); 2]);
        Box::new(supervised).stop(LONG);
    }
}

/// Many processes die while the others are still being killed. The end of the main process must not get lost, or the
/// supervisor would wait for it for ever.
#[test]
fn many_processes_are_gone_after_drop() {
    for _ in 0..10 {
        let scratch = Scratch::new();
        let supervised = scratch.start("for i in $(seq 60); do sleep 300 & done; echo ready; wait");
        scratch.lines(1);
        let supervisor = supervised.root();
        let begun = Instant::now();
        drop(supervised);
        assert!(gone(supervisor));
        assert!(begun.elapsed() < Duration::from_secs(8), "the supervisor went by itself: {:?}", begun.elapsed());
    }
}

/// Another process that holds a supervised one. The test cannot kill itself, and if it lost a supervisor, it would take the
/// processes of other tests for orphans.
struct Holder {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

/// What holds a supervised process, in all ways that this system has.
struct Rights {
    /// What goes before its arguments.
    before: &'static [&'static str],
    namespaces: bool,
}

/// Everything that this process may do, and that without PID namespaces.
fn all_rights() -> Vec<Rights> {
    let own = Rights { before: &[], namespaces: pid_namespaces().is_ok() };
    match own.namespaces {
        true => vec![own, Rights { before: &["setpriv", "--bounding-set=-sys_admin"], namespaces: false }],
        false => vec![own],
    }
}

impl Holder {
    fn new(rights: &Rights, spec: &ProgramSpec) -> Holder {
        let program = supervisor();
        let mut argv = rights.before.iter().map(Path::new).chain([program.as_path()]);
        let mut child = Command::new(argv.next().expect("never empty"))
            .args(argv)
            .arg("hold")
            .arg(serde_json::to_string(spec).expect("JSON"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example starts");
        let said = BufReader::new(child.stdout.take().expect("piped"));
        Holder { child, said }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    /// The supervisor's pid, which it says first.
    fn supervisor(&mut self, rights: &Rights) -> u32 {
        let pid = self.line().parse().expect("a pid");
        let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).expect("it lives");
        assert_eq!(namespace(pid) != namespace(std::process::id()), rights.namespaces);
        pid
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_daemon_is_gone_after_its_supervisors_parent_was_killed() {
    for rights in all_rights() {
        let scratch = Scratch::new();
        let mut holder = Holder::new(&rights, &scratch.spec(DAEMON));
        let supervisor = holder.supervisor(&rights);
        let pids = scratch.pids(3, supervisor);
        assert!(!pids.iter().any(|pid| gone(*pid)));
        kill(holder.child.id());
        until("everything is gone", || pids.iter().all(|pid| gone(*pid)));
        // The supervisor itself may fall to this test, which is a subreaper when another test has supervised something.
        until("the supervisor has ended", || gone(supervisor) || is_zombie(supervisor));
    }
}

/// A main process that holds much memory takes a while to die, and its children are zombies of its own meanwhile: they
/// must be reaped when they come to the supervisor's parent.
#[test]
fn all_is_gone_after_its_supervisor_was_killed_however_slowly_it_dies() {
    let slow = "big=$(head -c 200000000 /dev/zero | tr '\\0' a); sleep 300 & echo $! ; echo $$ ; wait";
    for (script, count) in [(DAEMON, 3), (slow, 2)] {
        for rights in all_rights() {
            let scratch = Scratch::new();
            let mut holder = Holder::new(&rights, &scratch.spec(script));
            let supervisor = holder.supervisor(&rights);
            let pids = scratch.pids(count, supervisor);
            kill(supervisor);
            assert_eq!(holder.line(), weir_host::Ended::LOST.to_string());
            assert!(pids.iter().all(|pid| gone(*pid)), "gone and reaped when it is said: {pids:?} of {script}");
        }
    }
}

/// Nobody is left who could end it but the kernel.
#[test]
fn a_daemon_is_gone_after_its_supervisor_and_the_parent_were_killed_at_once() {
    for rights in all_rights().into_iter().filter(|rights| rights.namespaces) {
        for round in 0..20 {
            let scratch = Scratch::new();
            let mut holder = Holder::new(&rights, &scratch.spec(DAEMON));
            let supervisor = holder.supervisor(&rights);
            let pids = scratch.pids(3, supervisor);
            let both = [holder.child.id(), supervisor];
            // Either of them first.
            for at in [round % 2, (round + 1) % 2] {
                kill(both[at]);
            }
            until("everything is gone", || pids.iter().all(|pid| gone(*pid)));
        }
    }
}

/// Where the kernel does not end it, the next weir does, and nothing else: neither what has a supervisor, nor what nobody marked.
#[test]
fn a_daemon_that_was_left_behind_is_ended_by_the_next_weir_alone() {
    for rights in all_rights().into_iter().filter(|rights| !rights.namespaces) {
        let (scratch, other) = (Scratch::new(), Scratch::new());
        let mut holder = Holder::new(&rights, &scratch.spec(DAEMON));
        let mut of_other = Holder::new(&rights, &other.spec(DAEMON));
        let supervisors = [&mut holder, &mut of_other].map(|holder| holder.supervisor(&rights));
        let pids = scratch.pids(3, supervisors[0]);
        let supervised = other.pids(3, supervisors[1]);
        let mut unmarked = Command::new("sleep").arg("300").spawn().expect("sleep starts");
        for pid in [holder.child.id(), supervisors[0]] {
            kill(pid);
        }
        // The main process ends by the kernel, the child and the daemon stay.
        let lives = |pid: &&u32| !gone(**pid) && !is_zombie(**pid);
        until("the main process has ended", || pids.iter().filter(lives).count() == 2);
        let stay: Vec<u32> = pids.iter().copied().filter(|pid| lives(&pid)).collect();
        let ended = end_left_behind();
        assert!(stay.iter().all(|pid| ended.contains(&format!("sleep (pid {pid})"))), "{stay:?}: {ended:?}");
        let left: Vec<&u32> = pids.iter().filter(lives).collect();
        assert!(left.is_empty(), "{left:?} of {pids:?} stay; ended: {ended:?}");
        assert!(supervised.iter().all(|pid| lives(&pid)), "what another weir holds stays: {supervised:?}, {ended:?}");
        assert!(unmarked.try_wait().expect("it is there").is_none(), "what weir did not start stays");
        unmarked.kill().expect("killed");
        unmarked.wait().expect("reaped");
    }
}

#[test]
fn a_process_that_ignores_sigterm_is_killed_after_grace_and_reported() {
    let scratch = Scratch::new();
    let supervised = scratch.start("trap '' TERM; echo $$; while true; do sleep 0.05; done");
    let pid = scratch.pids(1, supervised.root())[0];
    let begun = Instant::now();
    let ended = Box::new(supervised).stop(Duration::from_millis(300));
    assert!(begun.elapsed() >= Duration::from_millis(300), "it was given time");
    assert_eq!((ended.code, ended.signal, ended.forced), (None, Some(Signal::KILL.as_raw()), true));
    assert!(gone(pid));
}

#[test]
fn exit_codes_and_signals_are_reported() {
    let scratch = Scratch::new();
    assert_eq!(scratch.start("exit 7").wait(LONG), Some(exited(7)));
    assert_eq!(exited(7).to_string(), "exit status 7");
    let killed = scratch.start("kill -SEGV $$").wait(LONG).expect("ended");
    assert_eq!((killed.code, killed.signal, killed.forced), (None, Some(Signal::SEGV.as_raw()), false));
    assert_eq!(killed.to_string(), "signal 11");
    let graceful = scratch.start("trap 'exit 3' TERM; echo ready; while true; do sleep 0.05; done");
    scratch.lines(1);
    let ended = Box::new(graceful).stop(LONG);
    assert_eq!((ended.code, ended.forced), (Some(3), false));
}

#[test]
fn a_running_process_has_not_ended() {
    let scratch = Scratch::new();
    let mut supervised = scratch.start("echo $$; exec sleep 300");
    assert_eq!(supervised.ended(), None);
    assert_eq!(scratch.pids(1, supervised.root()), descendants(supervised.root()));
    let begun = Instant::now();
    assert_eq!(supervised.wait(Duration::from_millis(50)), None);
    assert!(begun.elapsed() >= Duration::from_millis(50));
}

#[test]
fn output_is_appended_and_the_environment_is_that_of_the_spec() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.path().join("output.log"), "before\n").expect("written");
    let mut spec = scratch.spec("");
    spec.argv = ["/usr/bin/env".into()].to_vec();
    spec.env = BTreeMap::from([("B".into(), "two words".into()), ("A".into(), "1".into())]);
    let ended = Supervised::start(&supervisor(), &spec).expect("env starts").wait(LONG);
    assert_eq!(ended, Some(exited(0)));
    assert_eq!(scratch.output(), "before\nA=1\nB=two words\n");
    let errors = scratch.start("echo oops >&2; pwd").wait(LONG);
    assert_eq!(errors, Some(exited(0)));
    let folder = scratch.0.path().canonicalize().expect("a folder");
    assert!(scratch.output().ends_with(&format!("oops\n{}\n", folder.display())), "{}", scratch.output());
}

#[test]
fn cpus_are_pinned_and_no_signal_is_blocked() {
    let allowed = weir_host::placement::allowed_cpus();
    let last = *allowed.last().expect("a CPU");
    let scratch = Scratch::new();
    let mut spec = scratch.spec("grep -E '^(Cpus_allowed_list|SigBlk)' /proc/$$/status");
    spec.cpus = vec![last];
    Supervised::start(&supervisor(), &spec).expect("bash starts").wait(LONG).expect("ended");
    let field = |name: &str| {
        let output = scratch.output();
        let line = output.lines().find(|line| line.starts_with(name)).expect("a field").to_owned();
        line.split_whitespace().nth(1).expect("a value").to_owned()
    };
    assert_eq!(field("Cpus_allowed_list"), last.to_string());
    assert_eq!(u64::from_str_radix(&field("SigBlk"), 16), Ok(0), "the supervisor's blocked SIGCHLD is not inherited");
}

#[test]
fn a_program_that_cannot_be_started_yields_the_reason() {
    let scratch = Scratch::new();
    let mut spec = scratch.spec("");
    spec.argv = vec!["/no/such/program".into()];
    match Supervised::start(&supervisor(), &spec) {
        Err(error @ StartError::Program { .. }) => {
            assert!(error.to_string().starts_with("/no/such/program did not start: No such file"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    spec.argv.clear();
    assert!(matches!(Supervised::start(&supervisor(), &spec), Err(StartError::Program { .. })));
    match Supervised::start(Path::new("/bin/false"), &scratch.spec("true")) {
        Err(StartError::Supervisor(error)) => assert_ne!(error.to_string(), ""),
        other => panic!("no supervisor: {other:?}"),
    }
}

/// As under `nohup`.
#[test]
fn a_signal_that_weir_was_started_to_ignore_reaches_the_process() {
    let scratch = Scratch::new();
    let spec = scratch.spec("trap 'exit 7' HUP; echo $$; while :; do sleep 0.05; done");
    let before = &["bash", "-c", "trap '' HUP; exec \"$@\"", "bash"];
    let mut holder = Holder::new(&Rights { before, namespaces: true }, &spec);
    let supervisor: u32 = holder.line().parse().expect("a pid");
    let main = scratch.pids(1, supervisor)[0];
    kill_process(Pid::from_raw(main as i32).expect("a pid"), Signal::HUP).expect("signalled");
    until("it has ended", || gone(main));
    assert_eq!(holder.line(), "exit status 7");
}

#[test]
fn a_signal_reaches_the_process_and_no_other() {
    let scratch = Scratch::new();
    let mut supervised = scratch.start(
        "trap 'echo reloaded' HUP; trap 'echo graceful; exit 7' QUIT
         (trap 'echo wrong' HUP QUIT; echo child; while :; do sleep 0.1; done) &
         echo ready; while :; do sleep 0.1; done",
    );
    scratch.lines(2);
    supervised.signal(ProductSignal::Hup).expect("the supervisor listens");
    until("the first signal", || scratch.output().contains("reloaded"));
    assert_eq!(supervised.ended(), None);
    supervised.signal(ProductSignal::Quit).expect("the supervisor listens");
    let ended = supervised.wait(LONG).expect("it ended");
    assert_eq!((ended.code, ended.forced), (Some(7), false));
    let output = scratch.output();
    assert!(output.contains("graceful") && !output.contains("wrong"), "{output}");
}

/// A line each tenth of a second.
const TICKS: &str = "echo $$; while sleep 0.1; do echo tick; done";

#[test]
fn a_killed_program_counts_as_running_and_starts_again() {
    let scratch = Scratch::new();
    let mut supervised = scratch.start(&format!("sleep 300 & {TICKS}"));
    let first = outside(&scratch.lines(2)[0], supervised.root());
    supervised.disturb(Disturbance::Kill, None).expect("its supervisor listens");
    until("the program's end", || gone(first));
    assert!(descendants(supervised.root()).is_empty(), "its children, too");
    assert_eq!(supervised.ended(), None);
    let said = scratch.output().lines().count();
    supervised.disturb(Disturbance::Start, None).expect("its supervisor listens");
    let second = outside(&scratch.lines(said + 2)[said], supervised.root());
    assert!(first != second && !gone(second));
    let ended = Box::new(supervised).stop(LONG);
    assert_eq!((ended.signal, ended.forced), (Some(Signal::TERM.as_raw()), false));
    assert!(gone(second));
}

#[test]
fn a_killed_program_can_be_stopped_and_can_outlive_no_one() {
    for stop in [true, false] {
        let scratch = Scratch::new();
        let mut supervised = scratch.start(TICKS);
        let pid = outside(&scratch.lines(1)[0], supervised.root());
        supervised.disturb(Disturbance::Kill, None).expect("its supervisor listens");
        until("the program's end", || gone(pid));
        let supervisor = supervised.root();
        match stop {
            true => assert!(!Box::new(supervised).stop(LONG).forced, "nothing was left to force"),
            false => drop(supervised),
        }
        assert!(gone(supervisor));
    }
}

#[test]
fn a_frozen_program_goes_on_and_can_be_stopped() {
    let scratch = Scratch::new();
    let mut supervised = scratch.start(TICKS);
    scratch.lines(2);
    supervised.disturb(Disturbance::Freeze, None).expect("its supervisor listens");
    let still =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "));
    until("all of it is stopped", || descendants(supervised.root()).iter().all(still));
    let said = scratch.output();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(scratch.output(), said);
    supervised.disturb(Disturbance::Thaw, None).expect("its supervisor listens");
    scratch.lines(said.lines().count() + 1);
    supervised.disturb(Disturbance::Freeze, None).expect("its supervisor listens");
    until("all of it is stopped", || descendants(supervised.root()).iter().all(still));
    assert!(!Box::new(supervised).stop(LONG).forced);
}

#[test]
fn a_disk_of_its_own_is_filled_and_freed() {
    let scratch = Scratch::new();
    let at = scratch.0.path().join("data");
    let script = "for n in $(seq 1000); do echo x > data/$n 2> /dev/null && [ -s data/$n ] && echo wrote || echo full; sleep 0.05; done";
    let spec = ProgramSpec { disk: Some(Disk { at: at.clone(), size: 4 << 20 }), ..scratch.spec(script) };
    let mut supervised =
        Supervised::start(&supervisor(), &spec).expect("this system gives a program a disk of its own");
    let says = |what: &str| scratch.output().lines().last() == Some(what);
    until("a write", || says("wrote"));
    supervised.disturb(Disturbance::FillDisk, None).expect("its supervisor listens");
    until("a full disk", || says("full"));
    supervised.disturb(Disturbance::FreeDisk, None).expect("its supervisor listens");
    until("a write again", || says("wrote"));
    assert_eq!(std::fs::read_dir(&at).expect("there").count(), 0, "it is mounted for the program alone");
    Box::new(supervised).stop(LONG);
}

/// A product in a folder that only root may enter, with what it reads and what it must not read beside it.
struct Closed {
    scratch: Scratch,
    spec: ProgramSpec,
}

fn closed(script: &str, capabilities: &[Capability]) -> Closed {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.0.path().join(name);
    for folder in ["own", "installed/bin", "installed/lib", "others"] {
        std::fs::create_dir_all(at(folder)).expect("made");
    }
    for (name, text) in [("own/key.pem", "key"), ("installed/lib/part", "part"), ("others/file", "theirs")] {
        std::fs::write(at(name), text).expect("written");
    }
    std::fs::set_permissions(at("own/key.pem"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
    std::fs::copy("/bin/bash", at("installed/bin/tool")).expect("copied");
    std::fs::set_permissions(scratch.0.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("closed");
    let tool = at("installed/bin/tool").display().to_string();
    let spec = ProgramSpec {
        argv: [tool.as_str(), "-c", script].map(String::from).to_vec(),
        dir: at("own"),
        output: at("own/output.log"),
        confined: Some(Confined { reads: vec![at("others")], capabilities: capabilities.to_vec(), account: None }),
        ..scratch.spec("")
    };
    Closed { scratch, spec }
}

impl Closed {
    /// What it said until it ended.
    fn said(&self, spec: &ProgramSpec) -> String {
        let mut supervised = Supervised::start(&supervisor(), spec).expect("it starts");
        supervised.wait(LONG).expect("it ends");
        std::fs::read_to_string(&spec.output).expect("its output")
    }
}

/// Weir can give products an account.
fn as_root() {
    account_possible().unwrap_or_else(|why| panic!("NOT SHOWN: {why}"));
}

const RIGHTS: &str = "grep -E '^(Uid|Groups|CapEff|CapPrm|CapAmb|NoNewPrivs)' /proc/self/status";

#[test]
#[ignore = "needs root: make check PART=root"]
fn a_product_of_root_has_an_account_without_rights_and_sees_only_what_is_its_own() {
    as_root();
    let root = closed(RIGHTS, &[]);
    let said = root.said(&ProgramSpec { confined: None, ..root.spec.clone() });
    assert!(said.contains("Uid:\t0") && said.contains("NoNewPrivs:\t0"), "a build stays who weir is: {said}");

    let script = format!(
        "{RIGHTS}; echo home $HOME tmp $TMPDIR; cat key.pem ../installed/lib/part ../others/file; echo; ls -d ../*; \
         touch made && echo made; touch ../others/x || echo kept; touch /etc/weir-x || echo safe; \
         echo again >> /proc/self/fd/1"
    );
    let product = closed(&script, &[]);
    std::fs::write(product.scratch.0.path().join("secret"), "secret").expect("written");
    let mut spec = product.spec.clone();
    spec.env.insert("TMPDIR".into(), product.scratch.0.path().display().to_string());
    let said = product.said(&spec);
    for wanted in [
        format!("Uid:\t{ACCOUNT}\t{ACCOUNT}\t{ACCOUNT}\t{ACCOUNT}"),
        "Groups:\t \n".into(),
        "CapPrm:\t0000000000000000".into(),
        "CapEff:\t0000000000000000".into(),
        "NoNewPrivs:\t1".into(),
        format!("home {} tmp\n", spec.dir.display()),
        "keyparttheirs\n../installed\n../others\n../own\nmade\n".into(),
        "kept\n".into(),
        "safe\n".into(),
        "again\n".into(),
    ] {
        assert!(said.contains(&wanted), "{wanted:?}: {said}");
    }
    let owner = |name: &str| {
        let about = std::fs::symlink_metadata(product.scratch.0.path().join(name)).expect("it is there");
        std::os::unix::fs::MetadataExt::uid(&about)
    };
    assert_eq!((owner("own/key.pem"), owner("own/made"), owner("others/file")), (ACCOUNT, ACCOUNT, 0));
}

#[test]
#[ignore = "needs root: make check PART=root"]
fn a_product_has_the_capabilities_that_it_asks_for_and_no_others() {
    as_root();
    let product = closed(RIGHTS, &[Capability::NetBindService, Capability::NetAdmin]);
    let said = product.said(&product.spec);
    for set in ["CapPrm", "CapEff", "CapAmb"] {
        assert!(said.contains(&format!("{set}:\t0000000000001400")), "{said}");
    }
}

/// Root's umask may be closed to all others: folders that are only on the way to what a product needs are not.
#[test]
#[ignore = "needs root: make check PART=root"]
fn a_product_reaches_what_it_needs_whatever_the_umask_is() {
    as_root();
    let mut product = closed("id -u; cat key.pem", &[]);
    let deep = product.scratch.0.path().join("a/b/own");
    std::fs::create_dir_all(&deep).expect("made");
    std::fs::write(deep.join("key.pem"), "key").expect("written");
    product.spec.output = deep.join("output.log");
    product.spec.dir = deep;
    let before = &["sh", "-c", "umask 077; exec \"$@\"", "sh"];
    let mut holder = Holder::new(&Rights { before, namespaces: true }, &product.spec);
    holder.line();
    holder.line();
    let said = std::fs::read_to_string(&product.spec.output).expect("its output");
    assert_eq!(said, format!("{ACCOUNT}\nkey"));
}

/// Whoever weir is, what a product executes gets no rights from its file.
#[test]
fn without_an_account_a_product_gains_no_rights_either() {
    let product = closed(&format!("id -u; {RIGHTS}"), &[]);
    let rights = Rights { before: &["setpriv", "--bounding-set=-sys_admin"], namespaces: false };
    let mut holder = Holder::new(&rights, &product.spec);
    holder.line();
    holder.line();
    let said = std::fs::read_to_string(&product.spec.output).expect("its output");
    let own = rustix::process::geteuid().as_raw();
    assert!(said.starts_with(&format!("{own}\n")) && said.contains("NoNewPrivs:\t1"), "{said}");
}

/// A product's folder is the product's: what weir writes there goes to no file of others.
#[test]
#[ignore = "needs root: make check PART=root"]
fn links_that_a_product_makes_are_not_followed() {
    as_root();
    let product = closed("ln -s ../others/file link; rm output.log; ln -s ../others/file output.log; sleep 0.4", &[]);
    let mut supervised = Supervised::start(&supervisor(), &product.spec).expect("it starts");
    supervised.wait(LONG).expect("it ends");
    let host = weir_host::LocalHost::new(supervisor());
    let link = product.spec.dir.join("link");
    weir_host::Host::write(&host, &link, b"weir's", false).expect("written in the link's place");
    assert_eq!(std::fs::read_to_string(&link).expect("a file"), "weir's");
    let again = Supervised::start(&supervisor(), &product.spec);
    assert!(again.is_err(), "its output is a link now");
    let theirs = std::fs::read_to_string(product.scratch.0.path().join("others/file")).expect("there");
    assert_eq!(theirs, "theirs");
    std::fs::remove_file(product.spec.dir.join("output.log")).expect("removed");
    drop(Supervised::start(&supervisor(), &product.spec).expect("it starts"));
    let about = std::fs::metadata(product.scratch.0.path().join("others/file")).expect("there");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&about), 0, "what a link leads to stays its owner's");
}
