//! `weir load`: runs the load generator by itself. Called by `main`.

mod describe;
mod find_max;
mod flag_values;
mod flags;
mod format;
mod keyvalue;
mod live;
mod recorded;
mod remarks;
mod request;
#[cfg(test)]
pub(crate) mod sample;
mod spec;
mod summary;
mod tls;
mod urls;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use console::style;
use weir_load::{Distributions, LoadError, Outputs, Progress, StopFlag};
use weir_model::condition::Condition;
use weir_model::load::{ErrorKind, LoadResult, LoadSpec};

pub use self::flags::Args;
use self::format::Outcome;
use crate::exit::{Exit, Failure, VerbResult};
use crate::process::stop_on_signal;
use crate::telemetry::{Telemetry, load::LoadMetrics};

/// Runs it.
pub fn main(mut args: Args) -> VerbResult {
    args.take_schemes()?;
    let args = &args;
    live::colors(args.output.color);
    let spec::Ordered { spec, note } = spec::load_spec(args)?;
    let title = spec::title(args);
    // Opened before anything is sent, so that a file that cannot be written does not cost the whole load.
    let hgrm = args.output.hgrm.as_deref().map(|path| create("--hgrm", path)).transpose()?;
    let telemetry = Telemetry::open(&args.telemetry)?;
    let stop = watch_signals()?;
    note.iter().for_each(|note| remark!("{note}"));
    if let Some(conditions) = &args.load.find_max {
        return find_max::main(args, conditions, &spec, &title, &stop);
    }
    let (result, distributions) = carry_out(args, &spec, &title, &stop, telemetry.as_ref())?;
    let outcome = Outcome { title: &title, spec: &spec, result: &result, distributions: &distributions };
    telemetry.map_or(Ok(()), Telemetry::finish)?;
    if let Some((mut file, path)) = hgrm {
        file.write_all(format::percentiles(outcome).as_bytes())
            .map_err(|e| Failure::missing(format!("--hgrm: {}: {e}", path.display())))?;
    }
    show(args, outcome)?;
    exit_status(&args.responses.fail_if, &result)
}

/// Runs the load and shows its progress.
fn carry_out(
    args: &Args,
    spec: &LoadSpec,
    title: &str,
    stop: &StopFlag,
    telemetry: Option<&Telemetry>,
) -> Result<(LoadResult, Distributions), Failure> {
    let outputs = Outputs { hlog: args.output.hlog.clone(), series: args.output.csv.clone() };
    let mut live = live::Live::new(args.output.quiet, spec, title);
    let mut metrics = LoadMetrics::new(spec);
    let mut distributions = None;
    let result = weir_load::run(spec, &outputs, stop, &mut |progress| {
        live.update(&progress);
        if let Some(telemetry) = telemetry {
            metrics.update(&progress, telemetry);
        }
        if let Progress::Distributions(all) = progress {
            distributions = Some(*all);
        }
    });
    drop(live);
    let mut result = result.map_err(|error| failure(&error))?;
    // A load without an end is stopped as ordered.
    result.cut_short &= !spec.is_endless();
    let distributions =
        distributions.ok_or_else(|| Failure::missing("the load ended without latency distributions"))?;
    Ok((result, distributions))
}

/// Prints the result in the format asked for.
fn show(args: &Args, outcome: Outcome<'_>) -> Result<(), Failure> {
    if args.output.json || args.output.format.is_some() {
        remarks::remarks(outcome).iter().for_each(|line| remark!("remark: {line}"));
    }
    if args.output.json {
        return crate::out::json(outcome.result).map(drop);
    }
    if let Some(format) = args.output.format {
        output!("{}", format::text(format, outcome, &args.responses.fail_if).trim_end_matches('\n'));
        return Ok(());
    }
    let blank = if args.output.quiet { "" } else { "\n" };
    let text = if args.output.full { summary::full(outcome) } else { summary::summary(outcome) };
    output!("{blank}{}", text.trim_end());
    Ok(())
}

fn create<'a>(flag: &str, path: &'a Path) -> Result<(File, &'a Path), Failure> {
    let file = File::create(path)
        .map_err(|e| Failure::wrong(flag, format!("{}: {e}", path.display()), "a file that can be written"))?;
    Ok((file, path))
}

/// The exit status of a load that could not run, and what to do where the error does not say.
fn failure(error: &LoadError) -> Failure {
    match error {
        LoadError::InvalidSpec(what) => Failure::input(what.to_string()),
        LoadError::Stopped => Failure::interrupted(error),
        LoadError::NoConnection { kind, .. } => Failure::to_fix(
            error,
            match kind {
                ErrorKind::Tls => {
                    "address a port that speaks TLS; give the certificate that it may ask for (--cert, --key)"
                }
                ErrorKind::Protocol => {
                    "begin the URL with the scheme of what the server speaks, and the login that it asks for, if any"
                }
                _ => "start the server, or correct the address; --timeout limits the wait",
            },
        ),
        _ => Failure::missing(error),
    }
}

/// The first Ctrl-C ends the window early and keeps what was measured.
fn watch_signals() -> Result<StopFlag, Failure> {
    let (stop, requested) = (StopFlag::new(), stop_on_signal()?);
    let set = stop.clone();
    let watch = move || {
        while !requested.is_requested() {
            std::thread::sleep(Duration::from_millis(50));
        }
        set.set();
    };
    std::thread::Builder::new().spawn(watch).map_err(Failure::missing)?;
    Ok(stop)
}

/// The exit status of a load. `--fail-if` decides, if it was given. Otherwise a request without a successful response fails, a response
/// with another request's ID, and a window without requests. Prints the reasons.
///
/// # Errors
/// None; the type is that of verbs.
fn exit_status(fail_if: &[Condition], result: &LoadResult) -> VerbResult {
    let reasons = reasons(fail_if, result);
    reasons.iter().for_each(|reason| remark!("{} failed: {reason}", style("weir:").red().bold().for_stderr()));
    if result.cut_short {
        return Ok(Exit::Interrupted);
    }
    let wrong_ids = result.request_ids.iter().any(|ids| ids.wrong().next().is_some());
    let failed = fail_if.is_empty() && (result.window.error_count() + result.window.unsent > 0 || wrong_ids);
    Ok(if failed || !reasons.is_empty() { Exit::Failed } else { Exit::Ok })
}

/// That there was nothing to measure; conditions that hold, with what was measured; and conditions that cannot be judged: those
/// must not pass silently.
fn reasons(fail_if: &[Condition], result: &LoadResult) -> Vec<String> {
    let total = &result.total;
    let nothing = (result.window.due == 0 && !result.cut_short).then(|| {
        let errors = if total.errors.is_empty() { "none" } else { &result.list_errors(&total.errors) };
        format!(
            "no request was due in the window; {} before it, {} successful; errors: {errors}",
            total.sent, total.successful
        )
    });
    let judged = fail_if.iter().filter_map(|condition| match condition.value_of(result) {
        None => Some(format!("{}, so --fail-if '{condition}' cannot be judged", condition.finding(result))),
        Some(_) => condition.holds(result).then(|| format!("{} (--fail-if '{condition}')", condition.finding(result))),
    });
    nothing.into_iter().chain(judged).collect()
}

#[cfg(test)]
mod tests {
    use weir_model::load::RequestIdCounts;

    use super::*;

    #[test]
    fn what_to_do_without_a_connection_follows_from_the_error() {
        for (kind, action) in [
            (ErrorKind::Tls, "--cert"),
            (ErrorKind::Protocol, "the scheme of what the server speaks"),
            (ErrorKind::ConnectRefused, "start the server"),
        ] {
            let target = "127.0.0.1:1".parse().expect("an address");
            let error = LoadError::NoConnection { target, kind, seconds: 1.0, attempts: 1, detail: String::new() };
            assert!(failure(&error).to_string().contains(action), "{kind:?}");
        }
    }

    #[test]
    fn conditions_decide_where_there_are_some() {
        let list = |text: &str| Condition::list(text).expect("conditions");
        let (plain, failing) = (sample::plain().result, sample::failing().result);
        assert_eq!(exit_status(&[], &plain).expect("judged"), Exit::Ok);
        assert_eq!(exit_status(&[], &failing).expect("judged"), Exit::Failed);
        assert_eq!(exit_status(&list("errors>10%"), &failing).expect("judged"), Exit::Ok);
        assert_eq!(exit_status(&list("errors>10%, p99>1ms"), &failing).expect("judged"), Exit::Failed);
        let cut = LoadResult { cut_short: true, ..plain.clone() };
        assert_eq!(exit_status(&list("p99>1ms"), &cut).expect("judged"), Exit::Interrupted);
        for (wrong, exit) in [(0, Exit::Ok), (272, Exit::Failed)] {
            let names = Some(RequestIdCounts { own: 9_728, coalesced: wrong, ..RequestIdCounts::default() });
            let ids = LoadResult { request_ids: names, ..plain.clone() };
            assert_eq!(exit_status(&[], &ids).expect("judged"), exit);
            assert_eq!(exit_status(&list("errors>10%"), &ids).expect("judged"), Exit::Ok);
        }
        assert_eq!(reasons(&list("p99>1ms"), &plain), ["p99 is 1.04 ms (--fail-if 'p99>1ms')"]);
        let mut nothing = plain.clone();
        nothing.window = weir_model::load::Counts::default();
        (nothing.total.sent, nothing.total.successful, nothing.total.errors) =
            (9, 2, [(ErrorKind::NotReplicated, 7)].into());
        assert_eq!(exit_status(&[], &nothing).expect("judged"), Exit::Failed);
        let said = "no request was due in the window; 9 before it, 2 successful; errors: not_replicated 7";
        assert_eq!(reasons(&[], &nothing), [said]);
        let unknown = reasons(&list("handshake.p99>1ms"), &plain);
        assert!(unknown[0].contains("was not measured") && unknown[0].contains("cannot be judged"), "{unknown:?}");
    }
}
