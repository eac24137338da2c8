//! The supervisor alone, as `weir supervise` runs it, and `hold`, a parent that can be killed. The tests of this crate run it.

use std::path::Path;
use std::process::ExitCode;

use weir_host::Process;
use weir_host::supervisor::{Supervised, supervise};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("supervise") => supervise().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)),
        Some("hold") => hold(Path::new(&arguments[0]), &arguments[2]),
        _ => ExitCode::from(2),
    }
}

/// Starts what the spec (JSON) says, writes the supervisor's pid to standard output, and waits until it has ended.
fn hold(me: &Path, spec: &str) -> ExitCode {
    let spec = serde_json::from_str(spec).expect("a spec");
    let mut supervised = Supervised::start(me, &spec).expect("started");
    println!("{}", supervised.root());
    while supervised.wait(std::time::Duration::from_millis(100)).is_none() {}
    println!("{}", supervised.ended().expect("it has ended"));
    // Everything has ended now, before drop. The test checks that, and then closes standard input to end this process.
    let _ = std::io::stdin().read_line(&mut String::new());
    ExitCode::SUCCESS
}
