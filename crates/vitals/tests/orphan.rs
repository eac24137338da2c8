//! A process whose parent went away stays in the tree of its subreaper. Alone in its file: the test's own process is
//! the root, and every child of it counts.

use std::process::Command;

use weir_model::record::Role;
use weir_vitals::clock::now;
use weir_vitals::{Watch, Watched};

/// CPU seconds of children this process has waited for.
fn waited_for() -> f64 {
    let stat = procfs::process::Process::myself().unwrap().stat().unwrap();
    (stat.cutime + stat.cstime) as f64 / procfs::ticks_per_second() as f64
}

#[test]
fn orphans_stay_in_the_tree() {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).unwrap();
    let before = waited_for();
    let root = Watched::below(Role::Origin, std::process::id());
    let watch = Watch::start(vec![root]).unwrap();
    watch.begin_window(now(), None).unwrap();
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    // The shell that is waited for ends at once; the one in the background is an orphan, and burns.
    let script = format!("sh -c '{burn}; sleep 1.3; {burn}' >/dev/null & echo $!");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let orphan: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let orphan = rustix::process::Pid::from_raw(orphan).unwrap();
    rustix::process::waitpid(Some(orphan), rustix::process::WaitOptions::empty()).expect("the orphan became ours");
    let window = watch.end_window().unwrap();
    let (truth, usage) = (waited_for() - before, &window.usage[0]);
    let seen = (usage.cpu_user_us + usage.cpu_system_us) as f64 / 1e6;
    assert!(truth > 0.05, "the orphan used {truth} s: too little to test with");
    assert!((seen - truth).abs() < 0.06, "seen {seen} s, the kernel says {truth} s");
    assert!(window.series.iter().any(|row| row.who == "origin" && row.processes.is_some_and(|n| n >= 1)));
}
