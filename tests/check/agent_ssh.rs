//! `weir agent` over the system's OpenSSH, on machines of its own: brought there once, speaking, and gone afterwards, whatever
//! goes wrong.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::machines::{Machine, Machines, Setup};
use crate::common::{processes_touching, scratch, signal, until};
use rustix::process::Signal;
use weir_host::agent::connect::{Agents, Connect};
use weir_host::transport::Binary;
use weir_host::{Host, HostError, ProgramSpec, RoleSpec};
use weir_model::record::Role;
use weir_model::topology::{HostSpec, Reach};

const LONG: Duration = Duration::from_secs(40);

fn connect(machines: &Machines, machine: &Machine, run: &str) -> Result<Arc<dyn Host>, String> {
    let weir = Binary::of(Path::new(env!("CARGO_BIN_EXE_weir"))).expect("a program");
    let agents = Agents { weir, run: run.into(), who: "tester@control".into(), lease: true };
    let spec = HostSpec {
        name: machine.name.clone(),
        roles: vec![Role::Proxy],
        parts: Vec::new(),
        reach: Reach::Ssh { destination: machine.name.clone(), config: Some(machines.config()) },
        address: Some(machine.address.into()),
        cpus: None,
        rate: None,
    };
    machines.inside(|| agents.connect(&spec, &[])).map_err(|error| error.to_string())
}

/// Nothing of weir's is left but its binary, which is kept.
fn is_clean(machine: &Machine) -> bool {
    let run = machine.file(Path::new("/run"));
    let ours = |name: std::ffi::OsString| name.to_string_lossy().starts_with("weir");
    let left = std::fs::read_dir(run).expect("a folder").flatten().any(|entry| ours(entry.file_name()));
    !left && machine.processes().is_empty()
}

fn binaries(machine: &Machine) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(machine.home.join("weir/bin")) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// A program that forks, and an origin at the machine's address.
fn start_two(host: &dyn Host) -> (Box<dyn weir_host::Process>, Arc<dyn weir_host::RoleProcess>) {
    let work = host.facts().work.clone().expect("a folder of its own");
    let argv = ["/bin/sh", "-c", "sleep 1234 & setsid sleep 1234 & echo begun; wait"].map(String::from).into();
    let env = host.facts().env.clone();
    let spec = ProgramSpec { argv, env, dir: work.clone(), output: work.join("log"), ..ProgramSpec::default() };
    let process = host.start(&spec).expect("started");
    let listen = host.free_ports(host.facts().traffic(), 1).expect("free")[0].to_string();
    let args = ["origin", "--with-parent", "--listen", &listen].map(String::from).into();
    let spec = RoleSpec { name: "origin".into(), args, output: work.join("origin.log"), hold: false };
    let origin = host.start_role(&spec).expect("started");
    assert!(origin.receive(LONG).expect("a report").contains(&listen));
    (process, origin)
}

#[test]
fn weir_is_brought_once_and_works_there() {
    let ahead = Setup { clock_ahead_s: 1_000, ..Setup::default() };
    let machines = Machines::start(&[ahead]);
    let machine = machines.get(0);
    let host = connect(&machines, machine, "a").expect("reached");
    let copied = binaries(machine);
    assert_eq!(copied.len(), 1, "{copied:?}");
    let made = |path: &Path| std::fs::metadata(path).expect("there").modified().expect("a time");
    let first = made(&copied[0]);

    let (process, origin) = start_two(&*host);
    let work = host.facts().work.clone().expect("a folder");
    assert!(work.starts_with("/run/"), "{}", work.display());
    let reading = host.read_clock().expect("read");
    assert!(reading.offset_ns.abs_diff(1_000_000_000_000) < 1_000_000_000, "{reading:?}");
    assert!(origin.ask("counters", LONG).expect("a response").contains("counters"));
    until("the program's first word", LONG, || host.last_lines(&work.join("log"), 1) == "begun");
    let large: Vec<u8> = (0..3_000_000_u32).map(|number| (number / 3) as u8).collect();
    host.write(&work.join("t/large"), &large, true).expect("written");
    let here = scratch();
    host.fetch(&work.join("t"), here.path()).expect("fetched");
    assert_eq!(std::fs::read(here.path().join("large")).expect("here"), large);
    let missing = host.read(Path::new("/no/such/file")).expect_err("missing").to_string();
    assert_eq!(missing, "/no/such/file: No such file or directory (os error 2) (on host m1)");
    assert!(machine.processes().len() >= 5, "{:?}", machine.processes());

    let refused = connect(&machines, machine, "b").expect_err("held");
    assert!(refused.starts_with("the host m1 is in use by run a of tester@control since "), "{refused}");

    drop((process, origin));
    drop(host);
    until("an empty machine", LONG, || is_clean(machine));
    drop(connect(&machines, machine, "b").expect("reached again"));
    assert_eq!((binaries(machine), made(&copied[0])), (copied.clone(), first), "not copied twice");
    until("an empty machine", LONG, || is_clean(machine));
}

/// Clusters have one home for all machines, and process numbers that repeat.
#[test]
fn machines_with_one_home_are_brought_weir_at_the_same_time() {
    let home = scratch();
    let setup = Setup { weir_home: Some(home.path().to_owned()), ..Setup::default() };
    let machines = Machines::start(&vec![setup; 4]);
    let reached: Vec<_> = std::thread::scope(|threads| {
        let connect = |index| {
            threads.spawn({
                let machines = &machines;
                move || connect(machines, machines.get(index), "a")
            })
        };
        let threads: Vec<_> = (0..4).map(connect).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for host in reached {
        drop(host.expect("reached"));
    }
    let left: Vec<_> = std::fs::read_dir(home.path().join("bin")).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_killed_ssh_is_a_lost_host_and_leaves_nothing_there() {
    let machines = Machines::start(&[Setup::default()]);
    let machine = machines.get(0);
    let host = connect(&machines, machine, "a").expect("reached");
    let (mut process, origin) = start_two(&*host);
    let ours = processes_touching(&machines.config());
    assert_eq!(ours.len(), 1, "one connection a host: {ours:?}");
    signal(ours[0].0, Signal::KILL);
    until("the loss", LONG, || host.lost().is_some());
    let why = host.lost().expect("lost");
    assert_eq!(why, "the connection ended without a goodbye; ssh ended with signal: 9 (SIGKILL)");
    assert!(process.ended().is_some() && !origin.alive());
    assert!(matches!(host.read_clock(), Err(HostError::Lost { .. })));
    until("an empty machine", LONG, || is_clean(machine));
    // The same run comes back, and finds the host as new.
    let again = connect(&machines, machine, "a").expect("reached again");
    drop(start_two(&*again));
}

#[test]
fn a_link_that_is_down_is_silence_on_both_sides() {
    let machines = Machines::start(&[Setup::default()]);
    let machine = machines.get(0);
    let host = connect(&machines, machine, "a").expect("reached");
    let (mut process, _origin) = start_two(&*host);
    let begun = Instant::now();
    machines.link(machine, "down");
    until("the loss", LONG, || host.lost().is_some());
    assert!(begun.elapsed() > Duration::from_secs(6), "{:?}", begun.elapsed());
    let why = host.lost().expect("lost");
    assert!(why.starts_with("nothing was heard of it for 8 s; ssh was killed"), "{why}");
    assert!(process.ended().is_some());
    until("the end of all processes there", LONG, || machine.processes().is_empty());
    machines.link(machine, "up");
    // The folder that was left goes with the next agent.
    drop(connect(&machines, machine, "b").expect("reached again"));
    until("an empty machine", LONG, || is_clean(machine));
}

#[test]
fn machines_that_cannot_be_used_say_why() {
    let small = Setup { home_bytes: 8 * 1024 * 1024, ..Setup::default() };
    let machines = Machines::start(&[Setup::default(), small, Setup::default()]);
    let refused = |index: usize| connect(&machines, machines.get(index), "a").expect_err("of no use");

    machines.get(0).replace_program("uname", "#!/bin/sh\necho Linux riscv64\n");
    let said = refused(0);
    let expected = "the host m1 is Linux riscv64, and this weir is for Linux x86_64\n  expected: a weir built for it (--weir FILE)";
    assert_eq!(said, expected);
    assert_eq!(binaries(machines.get(0)), [] as [PathBuf; 0], "not copied");

    let said = refused(1);
    assert!(said.contains("No space left on device") && said.contains("weir was not copied whole to"), "{said}");
    assert_eq!(binaries(machines.get(1)), [] as [PathBuf; 0], "nothing half is left");

    machines.change_host_key(machines.get(2));
    let said = refused(2);
    assert!(said.contains("Host key verification failed."), "{said}");
    assert!(said.ends_with("\n  expected: `ssh m3 true` works without questions"), "{said}");
    for index in 0..3 {
        until("an empty machine", LONG, || is_clean(machines.get(index)));
    }
}
