//! A trial beside processes that are not weir's: the audit sees them. That it is silent where there are none is shown on recorded
//! rows alone (`weir_audit::other_processes`): nobody knows what else a machine that runs tests is doing.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{run_suite, scratch, suite};

const HEAD: &str = r#"title = "Beside others"
products = ["direct"]
profile = "tuned"
blocks = 1"#;

/// Little load, so that there is CPU for others.
const LOAD: &str = r#"name = "light"
kind = "open"
rate = 200
connections = 2
warmup = "0s"
duration = "2200ms""#;

/// Processes that do nothing but use a CPU each: until they are dropped, and in no case for more than 30 s of CPU.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: usize) -> Busy {
        let mut all = Busy(Vec::new());
        for _ in 0..count {
            let mut command = Command::new("sh");
            command.args(["-c", "ulimit -t 30; while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
            all.0.push(command.spawn().expect("a shell starts"));
        }
        all
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_trial_beside_busy_processes_is_suspect_and_says_why() {
    let scratch = scratch();
    // One for each CPU, so that the roles' have one.
    let busy = Busy::start(std::thread::available_parallelism().map_or(1, usize::from));
    let measured = run_suite(scratch.path(), &suite(HEAD, LOAD), 0, Duration::from_secs(60));
    drop(busy);
    assert_eq!(measured.len(), 1);
    let (folder, m) = &measured[0];
    let at = folder.display();
    let findings = m["findings"].as_array().expect("findings");
    let found =
        findings.iter().find(|f| f["check"] == "other-processes").unwrap_or_else(|| panic!("{at}: {findings:?}"));
    assert_eq!(found["severity"], "warning", "{at}");
    assert_ne!(m["verdict"], "valid", "{at}");
    let report = std::fs::read_to_string(scratch.path().join("run/report/report.md")).expect("a report");
    assert!(report.contains("other-processes"), "{report}");
}
