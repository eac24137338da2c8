//! Machines to try things on, where there is only one: starts some of the machines that the end-to-end tests use, each a
//! network namespace with an sshd, writes a topology with a role for each, and runs a command where they are reached:
//!
//! ```text
//! cargo build --release -p weir-cli
//! cargo run --release -p weir-cli --example machines -- 3 target/release/weir run quick --topology HOSTS
//! ```
//!
//! `HOSTS` among the arguments stands for the topology's file. `ssh m1` works in the command, too, so that a shell will do.
//! The first machine is a client, the second the proxy, the third the origin, and all others are clients. They have this
//! machine's disk, CPUs (divided as for a run without a topology) and products. When the command has ended, all are removed.

#[path = "../../../tests/common/mod.rs"]
mod common;

use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use common::machines::{Machines, Setup};
use signal_hook::consts::{SIGINT, SIGTERM};
use weir_host::placement::allowed_cpus;
use weir_install::home::Home;
use weir_model::Placement;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let count = args.next().and_then(|count| count.parse::<usize>().ok()).filter(|count| (3..=200).contains(count));
    let command: Vec<String> = args.collect();
    let (Some(count), Some((program, arguments))) = (count, command.split_first()) else {
        eprintln!("usage: machines N COMMAND [ARGUMENT | HOSTS]..., with 3 machines or more");
        return ExitCode::from(2);
    };
    // The command gets them, too, and ends. The machines go after it.
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).expect("a handler");
    }
    let products = Home::from_env().expect("a folder").path().to_owned();
    let setup = Setup { weir_home: Some(products), ..Setup::default() };
    let machines = Machines::start(&vec![setup; count]);

    let cpus = Placement::automatic(&allowed_cpus());
    let first = [("client", &*cpus.client), ("proxy", &*cpus.proxy), ("origin", &*cpus.origin)];
    let roles: Vec<(&str, &[u32])> = first.into_iter().chain(std::iter::repeat(first[0])).take(count).collect();
    let topology = machines.topology(&roles);
    let file = machines.folder().join("hosts.toml");
    std::fs::write(&file, &topology).expect("written");
    eprintln!("HOSTS is {}:\n\n{topology}", file.display());
    let file = file.display().to_string();
    let arguments = arguments.iter().map(|argument| if argument == "HOSTS" { &file } else { argument });
    let status = machines.control(program).args(arguments).stdin(Stdio::inherit()).status();
    match status.expect("nsenter is there").code() {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::FAILURE,
    }
}
