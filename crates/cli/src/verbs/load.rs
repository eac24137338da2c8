//! `weir load`: the load generator alone.

mod show;
mod summary;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use weir_load::{LoadError, Outputs, StopFlag};
use weir_model::load::{LoadSpec, Shape, Target};
use weir_model::suite::{Arrivals, Expect, Request};
use weir_model::units::{HumanDuration, Rate};

use crate::args::{CpuList, DriverArg, parse_cpus, stop_on_signal};
use crate::exit::{Done, Exit, Failure};

/// Flags of `weir load`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  As fast as answers come, like wrk:
    weir load http://127.0.0.1:8080/ -c 64 -d 10s
  5,000 due a second, whatever the answers do, like wrk2:
    weir load http://127.0.0.1:8080/ --rate 5000 --arrivals poisson
  So many requests, like hey:
    weir load http://127.0.0.1:8080/ -n 100000 -c 250
  With a body:
    weir load http://127.0.0.1:8080/echo -m POST --body-file body.bin \\
      -H 'content-type: text/plain'
  For a script (docs/records.md, \"The client's account\"):
    weir load http://127.0.0.1:8080/ --json -q > result.json

Latency counts from when a request was due. Answers with a status of 200 to
399 are right, unless --expect-status says otherwise. Exit status 1 when any
request got no right answer.")]
pub struct Args {
    /// http://host[:port][/path][?query]
    url: String,
    /// Connections, all open before the clock starts.
    #[arg(long, short = 'c', value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// How long to measure.
    #[arg(long, short = 'd', value_name = "TIME", default_value = "10s")]
    duration: HumanDuration,
    /// Send so many requests, instead of for so long.
    #[arg(long, short = 'n', value_name = "N", conflicts_with_all = ["rate", "duration", "warmup"], value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Open load: requests due a second, such as 5000 or 20k/s.
    #[arg(long, short = 'R', value_name = "RATE")]
    rate: Option<Rate>,
    /// How the requests of --rate are spaced.
    #[arg(long, value_enum, default_value_t = ArrivalsArg::Constant, requires = "rate")]
    arrivals: ArrivalsArg,
    /// Load before the clock starts, not measured.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    warmup: HumanDuration,
    /// How long an answer or a connection may take.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    timeout: HumanDuration,
    /// Method of the request.
    #[arg(long, short = 'm', value_name = "METHOD", default_value = "GET")]
    method: String,
    /// A header of the request. May be repeated.
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Body of every request.
    #[arg(long, short = 'b', value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,
    /// Body of every request, from a file.
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// The only status that is right.
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999))]
    expect_status: Option<u16>,
    /// The only size of an answer's body that is right, in bytes.
    #[arg(long, value_name = "BYTES")]
    expect_size: Option<u64>,
    /// A new connection for every request.
    #[arg(long)]
    close: bool,
    /// Worker threads.
    #[arg(long, short = 't', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,
    /// CPUs to pin the workers to, such as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<CpuList>,
    /// How to talk to the kernel.
    #[arg(long, value_enum, default_value_t = DriverArg::Auto)]
    driver: DriverArg,
    /// Seed of Poisson arrivals.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Write the latencies as an HdrHistogram log.
    #[arg(long, value_name = "FILE")]
    hlog: Option<PathBuf>,
    /// Write a CSV file with one row a second.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Show nothing while it runs.
    #[arg(long, short = 'q')]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArrivalsArg {
    /// Equal gaps
    Constant,
    /// Exponential gaps: independent users
    Poisson,
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    let spec = spec(args)?;
    let stop = StopFlag::new();
    watch_signals(&stop).map_err(Failure::missing)?;
    let outputs = Outputs { hlog: args.hlog.clone(), series: args.csv.clone() };
    let mut live = show::Live::new(args.quiet, &spec, &args.url);
    let result = weir_load::run(&spec, &outputs, &stop, &mut |progress| live.see(&progress));
    live.end();
    let result = result.map_err(|error| failure(&error))?;
    if args.json {
        super::print_json(&result)?;
    } else {
        let blank = if args.quiet { "" } else { "\n" };
        say!("{blank}{}", summary::summary(&result, &spec, &args.url).trim_end());
    }
    Ok(match (result.cut_short, result.window.error_count() + result.window.unsent) {
        (true, _) => Exit::Interrupted,
        (false, 0) => Exit::Ok,
        (false, _) => Exit::Failed,
    })
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

fn spec(args: &Args) -> Result<LoadSpec, Failure> {
    let target = target::parse(&args.url).map_err(Failure::input)?;
    let shape = match (args.requests, args.rate) {
        (Some(requests), _) => Shape::Count { requests },
        (None, Some(rate)) => Shape::Open {
            rate: rate.per_second(),
            arrivals: match args.arrivals {
                ArrivalsArg::Constant => Arrivals::Constant,
                ArrivalsArg::Poisson => Arrivals::Poisson,
            },
        },
        (None, None) => Shape::Closed,
    };
    let seconds = |time: HumanDuration| time.0.as_secs_f64();
    let request = Request {
        method: args.method.to_uppercase(),
        path: target.path,
        headers: args.header.iter().map(|h| header(h)).collect::<Result<_, _>>()?,
        body: body(args)?,
    };
    let expect = Expect { status: args.expect_status, size: args.expect_size, ..Expect::default() };
    Ok(LoadSpec {
        shape,
        connections: args.connections,
        threads: args.threads.min(args.connections),
        cpus: args.cpus.clone().map(|c| c.0).unwrap_or_default(),
        warmup_s: if args.requests.is_some() { 0.0 } else { seconds(args.warmup) },
        // A counted load ends with its count; a day is only a bound.
        duration_s: if args.requests.is_some() { 86_400.0 } else { seconds(args.duration) },
        timeout_s: seconds(args.timeout),
        seed: args.seed,
        driver: args.driver.into(),
        connection_close: args.close,
        ..LoadSpec::new(Target::tcp(target.addr, target.authority), request, expect)
    })
}

fn header(text: &str) -> Result<(String, String), Failure> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(Failure::input(format!("-H: \"{text}\" is not a header\n  would be right: 'name: value'"))),
    }
}

fn body(args: &Args) -> Result<Vec<u8>, Failure> {
    match (&args.body, &args.body_file) {
        (Some(text), _) => Ok(text.clone().into_bytes()),
        (None, Some(path)) => {
            std::fs::read(path).map_err(|e| Failure::input(format!("--body-file: {}: {e}", path.display())))
        }
        (None, None) => Ok(Vec::new()),
    }
}
