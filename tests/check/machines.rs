//! The machines that tests of SSH run on: each is one of its own, its faults are real, and nothing of them stays.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::common::machines::Machines;
use crate::common::{Ended, processes_touching, run_within, signal, until};

fn run(command: &mut Command) -> Ended {
    run_within(command, Duration::from_secs(30))
}

#[test]
fn three_machines_answer_and_leave_nothing() {
    let machines = Machines::three();
    let folder = machines.config().parent().expect("a folder").to_owned();
    for index in 0..3 {
        let machine = machines.get(index);
        run(&mut machines.ssh(&machine.name, "true")).expect(0);
        let said =
            run(&mut machines.ssh(&machine.name, "hostname; echo $HOME; echo $WEIR_HOME; cat > $TMPDIR/file; ls /run"));
        said.expect(0);
        let home = machine.home.display();
        assert_eq!(said.stdout, format!("{}\n{home}\n{home}/weir\nfile\nsshd\n", machine.name));
        assert!(machine.file(&PathBuf::from("/run/file")).exists());
        // sshd's own process of a connection ends a moment after it.
        until("the end of the connection", Duration::from_secs(20), || machine.processes().is_empty());
    }
    run(&mut machines.ssh("m1", "exit 37")).expect(37);
    let version = run(&mut machines.weir(&["--version"]));
    version.expect(0);
    assert!(version.stdout.starts_with("weir "), "{version:?}");

    let namespaces =
        || String::from_utf8(Command::new("ip").args(["netns"]).output().expect("ip runs").stdout).expect("text");
    let id =
        namespaces().lines().find_map(|line| Some(line.split_once("-control")?.0.to_owned())).expect("a namespace");
    drop(machines);
    assert!(!namespaces().contains(&id), "{}", namespaces());
    assert_eq!(processes_touching(&folder), []);
    assert!(!folder.exists());
}

#[test]
fn what_a_killed_ssh_leaves_is_seen_and_ends_with_the_machine() {
    let machines = Machines::three();
    let mut ssh = machines.ssh("m2", "exec sleep 1234").spawn().expect("started");
    // At first it is the shell that becomes it.
    let far = || machines.get(1).processes().into_iter().find(|(_, arguments)| arguments == "sleep 1234");
    until("the far process", Duration::from_secs(20), || far().is_some());
    let (pid, _) = far().expect("it stays");
    assert_eq!(machines.get(0).processes(), []);
    signal(ssh.id(), rustix::process::Signal::KILL);
    let _ = ssh.wait();
    drop(machines);
    until("its end", Duration::from_secs(5), || !PathBuf::from(format!("/proc/{pid}")).exists());
}
