//! `weir load`: runs the load generator by itself. Called by `main`.

mod describe;
mod fail_if;
mod find_max;
mod flag_values;
mod flags;
mod format;
mod live;
mod request;
#[cfg(test)]
mod sample;
mod spec;
mod summary;
mod target;
mod tls;
mod urls;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use weir_load::{Distributions, LoadError, Outputs, Progress, StopFlag};
use weir_model::InputError;
use weir_model::load::{LoadResult, LoadSpec};

pub use self::flags::Args;
use self::format::Outcome;
use crate::args::stop_on_signal;
use crate::exit::{Failure, VerbResult};

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    live::colors(args.output.color);
    let spec = spec::load_spec(args)?;
    let title = spec::title(args);
    // Opened before anything is sent, so that a file that cannot be written does not cost the whole load.
    let hgrm = args.output.hgrm.as_deref().map(|path| create("--hgrm", path)).transpose()?;
    let stop = StopFlag::new();
    watch_signals(&stop).map_err(Failure::missing)?;
    if let Some(conditions) = &args.load.find_max {
        return find_max::main(args, conditions, &spec, &title, &stop);
    }
    let (result, distributions) = carry_out(args, &spec, &title, &stop)?;
    let outcome = Outcome { title: &title, spec: &spec, result: &result, distributions: &distributions };
    if let Some((mut file, path)) = hgrm {
        file.write_all(format::hgrm::file(outcome).as_bytes())
            .map_err(|e| Failure::missing(format!("--hgrm: {}: {e}", path.display())))?;
    }
    show(args, outcome)?;
    fail_if::exit_status(&args.answers.fail_if, &result)
}

/// Runs the load and shows its progress.
fn carry_out(
    args: &Args,
    spec: &LoadSpec,
    title: &str,
    stop: &StopFlag,
) -> Result<(LoadResult, Distributions), Failure> {
    let outputs = Outputs { hlog: args.output.hlog.clone(), series: args.output.csv.clone() };
    let mut live = live::Live::new(args.output.quiet, spec, title);
    let mut distributions = None;
    let result = weir_load::run(spec, &outputs, stop, &mut |progress| {
        live.update(&progress);
        if let Progress::Distributions(all) = progress {
            distributions = Some(*all);
        }
    });
    live.end();
    let result = result.map_err(|error| failure(&error))?;
    let distributions =
        distributions.ok_or_else(|| Failure::missing("the load ended without latency distributions"))?;
    Ok((result, distributions))
}

/// Prints the result in the format asked for.
fn show(args: &Args, outcome: Outcome<'_>) -> Result<(), Failure> {
    if args.output.json {
        return crate::out::json(outcome.result).map(drop);
    }
    if let Some(format) = args.output.format {
        output!("{}", format::text(format, outcome).trim_end_matches('\n'));
        return Ok(());
    }
    let blank = if args.output.quiet { "" } else { "\n" };
    output!("{blank}{}", summary::summary(outcome).trim_end());
    Ok(())
}

fn create<'a>(flag: &str, path: &'a Path) -> Result<(File, &'a Path), Failure> {
    let file = File::create(path)
        .map_err(|e| wrong(flag, format!("{}: {e}", path.display()), "a file that can be written"))?;
    Ok((file, path))
}

/// The exit status of a load that could not run, and what to do where the error does not say.
fn failure(error: &LoadError) -> Failure {
    match error {
        LoadError::Order(what) => Failure::input(what),
        LoadError::Stopped => Failure::interrupted(error),
        LoadError::NoConnection { .. } => Failure::missing(format!(
            "{error}\n  to fix it: start the server, or correct the address; --timeout limits the wait"
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
