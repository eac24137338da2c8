//! weir killed in the middle of a trial: nothing stays behind, finished trials are whole, `--resume` does the rest.

use crate::common;
use crate::common::interrupted::{
    HEAD, LOAD, TRIALS, resume_and_check, start, suite, unchanged, until_in_mid_trial, whole,
};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{
    after_shell, kill_all, measurements, needs_root, nginx_of, not_shown, nothing_left, processes_touching, run_within,
    scratch, signal, until, wait_within, weir,
};
use rustix::process::Signal;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// `nohup` starts programs so that a SIGHUP is ignored, and they have to leave it at that.
#[test]
fn a_hangup_that_weir_was_started_to_ignore_stays_ignored() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let run = weir(&["run", suite(scratch.path()).to_str().expect("UTF-8"), "--yes", "--out"]);
    let mut child = after_shell("trap '' HUP", &run)
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh starts");
    until_in_mid_trial(&out);
    signal(child.id(), Signal::HUP);
    until("a fourth trial finished", Duration::from_secs(60), || measurements(&out).len() >= 4);
    signal(child.id(), Signal::TERM);
    let status = wait_within(&mut child, Duration::from_secs(30));
    assert_eq!(status.code(), Some(130), "{status}");
    nothing_left(&out, Duration::from_secs(2));
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_how_to_go_on() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut command =
        weir(&["run", suite(scratch.path()).to_str().expect("UTF-8"), "--yes", "--out", out.to_str().expect("UTF-8")]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    until_in_mid_trial(&out);
    signal(child.id(), Signal::INT);
    let ended = child.wait_with_output().expect("waited for");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("weir run --resume"), "{said}");
    nothing_left(&out, Duration::from_secs(2));
    assert!(out.join("report/report.md").is_file(), "the report of what there is");
    let before = whole(&out);
    resume_and_check(&out, &before);
}

/// weir, its agent, its roles and its supervisors at one instant, at many moments of a run: nobody is left to end the product and its
/// workers, but the kernel.
#[test]
fn sigkill_of_all_of_weir_at_once_leaves_no_process_and_no_port() {
    if let Err(why) = weir_host::supervisor::pid_namespaces() {
        not_shown(format_args!("no PID namespace: {why}"));
    }
    let load = LOAD.replace("1s", "20s");
    for round in 0..6 {
        let scratch = scratch();
        let (out, suite) = (scratch.path().join("run"), scratch.path().join("killed.toml"));
        std::fs::write(&suite, common::suite(&HEAD.replace(r#""direct", "nginx""#, r#""nginx""#), &load))
            .expect("written");
        let mut child = start(&out, &suite);
        let nginx = || nginx_of(&out);
        let origin = || processes_of(Path::new(WEIR), child.id()).iter().any(|(_, args)| args.contains(" origin "));
        until("a master with a worker", Duration::from_secs(60), || nginx().len() >= 2 && origin());
        std::thread::sleep(Duration::from_millis(100 * round));
        let ports: Vec<SocketAddr> = nginx_listens(&out);
        assert!(ports.iter().all(|addr| TcpStream::connect(addr).is_ok()) && !ports.is_empty(), "{ports:?}");
        let mut own = processes_of(Path::new(WEIR), child.id());
        assert!(own.iter().any(|(_, args)| args.trim_end().ends_with(" supervise")), "{own:?}");
        let first = round as usize % own.len();
        own.rotate_left(first);
        kill_all(own.iter().map(|(pid, _)| *pid));
        wait_within(&mut child, Duration::from_secs(5));
        nothing_left(&out, Duration::from_secs(5));
        // The kernel closes sockets after the last that is seen of a process.
        until("the end of all listeners", Duration::from_secs(5), || {
            ports.iter().all(|addr| TcpStream::connect(addr).is_err())
        });
    }
}

/// weir, all of weir, or one of its processes, killed at random moments, `WEIR_KILLS` times (`make nightly`: 100). Whatever it was, a run
/// is gone on with until it is finished, and finished trials stay as they are.
#[test]
fn runs_that_are_killed_at_random_moments_are_finished_in_the_end() {
    let kills: u32 = std::env::var("WEIR_KILLS").map_or(2, |count| count.parse().expect("WEIR_KILLS is a number"));
    let (mut killed, mut runs, mut kept) = (0, 0, 0);
    while killed < kills {
        let scratch = scratch();
        let (out, suite) = (scratch.path().join("run"), suite(scratch.path()));
        let mut before: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        while killed < kills {
            let mut child = go_on(&out, &suite);
            if !kill_at_random(&mut child) {
                break;
            }
            killed += 1;
            nothing_left(&out, Duration::from_secs(5));
            let after = if out.join("trials").is_dir() { right(&out) } else { BTreeMap::new() };
            unchanged(&before, &after);
            before = after;
        }
        let status = wait_within(&mut go_on(&out, &suite), Duration::from_secs(120));
        assert_eq!(status.code(), Some(0), "run {runs} is finished after {killed} kills");
        let after = right(&out);
        assert_eq!(after.len(), TRIALS);
        unchanged(&before, &after);
        nothing_left(&out, Duration::from_secs(2));
        runs += 1;
        kept += before.len();
    }
    println!(
        "{killed} kills; {runs} runs, all finished in the end; {kept} trials were finished before the last kill of their run"
    );
}

/// Starts a run, or goes on with it, where it was killed before it had begun from the beginning.
fn go_on(out: &Path, suite: &Path) -> Child {
    if !out.join("run.toml").exists() {
        let _ = std::fs::remove_dir_all(out);
        return start(out, suite);
    }
    let mut resume = weir(&["run", "--yes", "--retry-errors", "--resume"]);
    resume.arg(out).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir starts")
}

/// Kills something of weir within its first eight seconds, and waits for its end. Whether there was anything left to kill.
fn kill_at_random(child: &mut Child) -> bool {
    let random = |below: u64| RandomState::new().hash_one(0) % below;
    let at = Instant::now() + Duration::from_millis(random(8_000));
    while Instant::now() < at {
        if child.try_wait().expect("waited for").is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let own = processes_of(Path::new(WEIR), child.id());
    let chosen = match random(3) {
        0 => vec![child.id()],
        1 => own.iter().map(|(pid, _)| *pid).collect(),
        _ => vec![own[random(own.len() as u64) as usize].0],
    };
    kill_all(chosen);
    // A run whose supervisor or role was killed goes on.
    wait_within(child, Duration::from_secs(120));
    true
}

/// Finished trials without an error, which is measured again.
fn right(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let failed: Vec<PathBuf> =
        measurements(out).into_iter().filter(|(_, m)| m["verdict"] == "error").map(|(folder, _)| folder).collect();
    whole(out).into_iter().filter(|(folder, _)| !failed.contains(folder)).collect()
}

/// A user who may have no PID namespace: the kernel ends the product alone, and its workers stay on its port until the next start of
/// weir, which says what it ended.
#[test]
fn what_a_kill_of_all_of_weir_leaves_without_root_is_ended_by_the_next_start() {
    needs_root("become another user");
    let scratch = scratch();
    let (binary, home) = (scratch.path().join("weir"), scratch.path().join("home"));
    let (out, suite) = (home.join("run"), scratch.path().join("killed.toml"));
    std::fs::copy(WEIR, &binary).expect("copied");
    std::fs::create_dir(&home).expect("made");
    let head = HEAD.replace(r#""direct", "nginx""#, r#""nginx""#);
    std::fs::write(&suite, common::suite(&head, &LOAD.replace("1s", "20s"))).expect("written");
    for path in [scratch.path(), &home, &binary] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("open to all");
    }
    let of_user = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=54322", "--regid=54322", "--clear-groups"]).arg(&binary).args(args);
        command.env("WEIR_HOME", &home).env("HOME", &home).current_dir(&home);
        command
    };
    let words = [&suite, &out].map(|path| path.to_str().expect("UTF-8"));
    let mut run = of_user(&["run", words[0], "--yes", "--out", words[1]]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir starts");
    let nginx = || nginx_of(&out);
    until("a master with a worker", Duration::from_secs(60), || nginx().len() >= 2);
    let ports = nginx_listens(&out);
    kill_all(processes_of(&binary, child.id()).iter().map(|(pid, _)| *pid));
    wait_within(&mut child, Duration::from_secs(5));
    until("the end of the master", Duration::from_secs(5), || nginx().len() == 1);
    let worker = nginx()[0];
    assert!(ports.iter().all(|addr| TcpStream::connect(addr).is_ok()) && !ports.is_empty(), "{ports:?}");
    let ended = run_within(&mut of_user(&["doctor"]), Duration::from_secs(30));
    let said = format!("ended 1 process that an earlier weir left behind when it was killed: nginx (pid {worker})");
    assert!(ended.stderr.contains(&said), "{said}: {ended:#?}");
    nothing_left(&out, Duration::from_secs(5));
    assert!(ports.iter().all(|addr| TcpStream::connect(addr).is_err()), "{ports:?}");
    let ended = run_within(&mut of_user(&["doctor"]), Duration::from_secs(30));
    assert!(!ended.stderr.contains("left behind"), "{ended:#?}");
}

/// weir's own processes, the given one and those below it, with their arguments.
fn processes_of(binary: &Path, weir: u32) -> Vec<(u32, String)> {
    let is_weir = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary);
    let args = |pid| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = |pid| String::from_utf8_lossy(&args(pid)).replace('\0', " ");
    let below = weir_host::supervisor::descendants(weir).into_iter().filter(is_weir);
    std::iter::once(weir).chain(below).map(|pid| (pid, text(pid))).collect()
}

/// Where nginx listens, as the configurations of a run's trials say.
fn nginx_listens(out: &Path) -> Vec<SocketAddr> {
    let trials = std::fs::read_dir(out.join("trials")).expect("trials").flatten();
    let texts = trials.flat_map(|trial| {
        let files = std::fs::read_dir(trial.path().join("product")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_to_string(file.path()).ok())
    });
    let listens = |text: String| {
        let words =
            text.lines().filter_map(|line| line.trim().strip_prefix("listen ")?.split([' ', ';']).next()?.parse().ok());
        words.collect::<Vec<_>>()
    };
    texts.flat_map(listens).collect()
}

/// A supervisor that is killed itself takes its product with it, and the run goes on with an error row.
#[test]
fn a_killed_supervisor_takes_its_product_with_it() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut child = start(&out, &suite(scratch.path()));
    until_in_mid_trial(&out);
    let supervisor = processes_touching(&out.join("trials"))
        .into_iter()
        .find(|(_, args)| args.trim_end().ends_with("weir supervise"))
        .expect("a product in the middle of a trial has a supervisor");
    signal(supervisor.0, Signal::KILL);
    let status = wait_within(&mut child, Duration::from_secs(60));
    assert_eq!(status.code(), Some(1), "the run goes on and says that something failed");
    nothing_left(&out, Duration::from_secs(5));
    let errors: Vec<_> = measurements(&out).into_iter().filter(|(_, m)| m["verdict"] == "error").collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(measurements(&out).len(), TRIALS);
}

/// A finished run is not run again, and one that is not what it was is not gone on with.
#[test]
fn resume_of_a_finished_run_reports_again_and_of_a_changed_one_is_refused() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let folder = out.to_str().expect("UTF-8");
    let only = ["--only", "workload=tiny", "--only", "load=capacity"];
    let args =
        [&["run", "quick", "--scale", "smoke", "--products", "direct", "--yes", "-q", "--out", folder][..], &only]
            .concat();
    run_within(&mut weir(&args), Duration::from_secs(60)).expect(0);
    let before = whole(&out);
    std::fs::remove_file(out.join("report/report.html")).expect("removed");
    let resume = || run_within(&mut weir(&["run", "--resume", folder, "--yes"]), Duration::from_secs(60));
    let ended = resume();
    let said = ended.expect(0);
    assert!(said.contains("of this run are finished; making its report again"), "{said}");
    assert!(out.join("report/report.html").is_file());
    assert_eq!(whole(&out), before);

    let suite = out.join("run.toml");
    let text = std::fs::read_to_string(&suite).expect("read");
    std::fs::write(&suite, text.replace("connections = ", "connections = 1")).expect("edited");
    let ended = resume();
    let said = ended.expect(2);
    assert!(said.contains("run.toml: it is not as weir wrote it") && said.contains("undo the change"), "{said}");
    std::fs::write(&suite, text).expect("undone");
    resume().expect(0);
    edited_results_are_seen(&out, &before);
}

/// A number that somebody has edited is no number: the report says so, and the trial is measured again. That the old one is kept is in
/// `tests/world/tests/it/crash.rs`.
fn edited_results_are_seen(out: &Path, before: &BTreeMap<PathBuf, Vec<u8>>) {
    let folder = out.to_str().expect("UTF-8");
    let ended = |args: &[&str]| run_within(&mut weir(args), Duration::from_secs(60));
    let sums = || {
        let folders = measurements(out).into_iter().map(|(folder, _)| folder).chain([out.to_owned()]);
        folders.for_each(|folder| {
            let mut sha256sum = Command::new("sha256sum");
            sha256sum.args(["--check", "--quiet", "SHA256SUMS"]).current_dir(folder);
            run_within(&mut sha256sum, Duration::from_secs(10)).expect(0);
        });
    };
    sums();
    let (trial, text) = before.iter().next().expect("a trial");
    let faster = String::from_utf8(text.clone()).expect("UTF-8").replacen("\"rate\": ", "\"rate\": 9", 1);
    std::fs::write(trial.join("measurement.json"), faster).expect("edited");
    let report = ended(&["report", folder]);
    let said = report.expect(1);
    assert!(said.contains("measurement.json: it is not as weir wrote it") && said.contains("--resume"), "{said}");
    ended(&["compare", folder, folder]).expect(2);
    let resumed = ended(&["run", "--resume", folder, "--yes"]);
    let said = resumed.expect(0);
    assert!(said.contains("is measured again: measurement.json: it is not"), "{said}");
    sums();
    ended(&["report", folder]).expect(0);
}
