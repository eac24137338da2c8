//! The origin alone, for measuring it: `serve <address> <auto|io_uring|epoll> [cpu]`. Ends with its standard input,
//! and prints its counters then.

use std::io::Read;
use std::process::ExitCode;

use weir_origin::{Options, Origin};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = options(&arguments) else {
        eprintln!("usage: serve <address:port> <auto|io_uring|epoll> [cpu]");
        return ExitCode::FAILURE;
    };
    let origin = match Origin::start(options) {
        Ok(origin) => origin,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    eprintln!("{} on {}", origin.driver(), origin.addr());
    // The end of the input stops the server, whatever its cause.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    println!("{:#?}", origin.stop());
    ExitCode::SUCCESS
}

fn options(arguments: &[String]) -> Option<Options> {
    let (listen, driver, cpu) = match arguments {
        [listen, driver] => (listen, driver, None),
        [listen, driver, cpu] => (listen, driver, Some(cpu)),
        _ => return None,
    };
    let driver = driver.parse().ok()?;
    let cpus = cpu.map(|cpu| cpu.parse()).transpose().ok()?;
    Some(Options {
        listen: listen.parse().ok()?,
        threads: 1,
        cpus: cpus.into_iter().collect(),
        driver,
        ..Options::default()
    })
}
