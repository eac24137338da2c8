//! weir killed in the middle of a trial: nothing stays behind, finished trials are whole, `--resume` does the rest. The simulated
//! world crashes at every write of the journal; here the kernel does it once.

use std::time::Duration;

use crate::common::interrupted::{TRIALS, resume_and_check, start, suite, until_in_mid_trial, whole};
use crate::common::{machine, nothing_left, scratch, signal, wait_within};
use rustix::process::Signal;

#[test]
fn sigkill_leaves_nothing_and_resume_completes() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let machine = machine();
    let mut child = start(&out, &suite(scratch.path()));
    until_in_mid_trial(&out);
    signal(child.id(), Signal::KILL);
    wait_within(&mut child, Duration::from_secs(5));
    nothing_left(&out, Duration::from_secs(5));
    drop(machine);
    let before = whole(&out);
    assert!((2..TRIALS).contains(&before.len()), "{} trials were finished", before.len());
    resume_and_check(&out, &before);
}
