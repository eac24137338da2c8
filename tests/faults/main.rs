//! Faults that are injected on purpose into real runs: each with the finding that has to name it, and the verdict. `make faults` runs
//! all of them and prints the matrix. It ends with 1 when a fault is missed or called by
//! a wrong name, or when an honest product is blamed.
//!
//! The same program is also the faulty proxy, what takes over its work, and the neighbour that uses a CPU, each started by its first
//! argument.

#[path = "../common/mod.rs"]
mod common;
mod matrix;
mod proxy;

use std::process::ExitCode;
use std::time::Duration;

use weir_world::misbehaviour::Fault;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["proxy", "--version"] => {
            println!("faulty 1.0.0");
            Ok(())
        }
        ["proxy", listen, origin, fault] => {
            proxy::serve(listen, origin, Fault::parse(fault).unwrap_or_else(|| panic!("no fault {fault}")))
        }
        ["store", listen, faults] => proxy::store(listen, faults),
        ["take-over", path] => proxy::take_over(path),
        ["burn", cpu, percent, ms] => {
            let [cpu, percent, ms] = [cpu, percent, ms].map(|text| text.parse().expect("a number"));
            proxy::burn(cpu as usize, percent, Duration::from_millis(ms))
        }
        ["breed", cpu, percent, ms] => {
            let [percent, ms] = [percent, ms].map(|text| text.parse().expect("a number"));
            proxy::breed(cpu, percent, Duration::from_millis(ms.into()))
        }
        // cargo's flags for tests are for the usual harness, which this is not; names select the faults of these names.
        _ if words.contains(&"--list") => Ok(()),
        _ => {
            let names = words.iter().filter(|word| !word.starts_with('-') && word.parse::<u32>().is_err());
            return matrix::run(&names.copied().collect::<Vec<_>>());
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", args[0]);
            ExitCode::FAILURE
        }
    }
}
