//! `weir load`: the load generator alone.

mod flags;
mod order;
mod parse;
mod request;
mod show;
mod summary;
mod target;
mod tls;
mod urls;

use std::time::Duration;

use weir_load::{LoadError, Outputs, StopFlag};
use weir_model::InputError;

pub use self::flags::Args;
use crate::args::stop_on_signal;
use crate::exit::{Done, Exit, Failure};

/// Runs it.
pub fn main(args: &Args) -> Done {
    let spec = order::order(args)?;
    let title = order::title(args);
    let stop = StopFlag::new();
    watch_signals(&stop).map_err(Failure::missing)?;
    let outputs = Outputs { hlog: args.output.hlog.clone(), series: args.output.csv.clone() };
    let mut live = show::Live::new(args.output.quiet, &spec, &title);
    let result = weir_load::run(&spec, &outputs, &stop, &mut |progress| live.see(&progress));
    live.end();
    let result = result.map_err(|error| failure(&error))?;
    if args.output.json {
        super::print_json(&result)?;
    } else {
        let blank = if args.output.quiet { "" } else { "\n" };
        say!("{blank}{}", summary::summary(&result, &spec, &title).trim_end());
    }
    if result.cut_short {
        return Ok(Exit::Interrupted);
    }
    if args.answers.fail_if.is_empty() {
        let failed = result.window.error_count() + result.window.unsent;
        return Ok(if failed == 0 { Exit::Ok } else { Exit::Failed });
    }
    let reasons: Vec<String> = args
        .answers
        .fail_if
        .iter()
        .filter(|c| c.holds(&result))
        .map(|c| format!("{}, and {c} fails", c.finding(&result)))
        .collect();
    reasons.iter().for_each(|reason| remark!("failed: {reason}"));
    Ok(if reasons.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Which status a load that did not come about has, and what to do where the error alone does not say.
fn failure(error: &LoadError) -> Failure {
    match error {
        LoadError::Order(what) => Failure::input(what),
        LoadError::Stopped => Failure::interrupted(error),
        LoadError::NoConnection { .. } => Failure::missing(format!(
            "{error}\n  to mend it: start what should listen there, or correct the address; --timeout bounds the wait"
        )),
        _ => Failure::missing(error),
    }
}

/// Bad input in a flag.
fn wrong(flag: &str, found: String, wanted: &str) -> Failure {
    Failure::input(InputError { source: flag.to_owned(), line: None, key: None, found, wanted: wanted.to_owned() })
}

/// The first Ctrl-C ends the window early and keeps what was measured.
fn watch_signals(stop: &StopFlag) -> std::io::Result<()> {
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    stop_on_signal(&flag)?;
    let stop = stop.clone();
    std::thread::spawn(move || {
        while !flag.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.set();
    });
    Ok(())
}
