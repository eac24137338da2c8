//! A load from the command line, for measuring weir itself:
//! `load <ip:port> <path> <connections> <seconds> [rate|closed] [cpu] [auto|epoll|io_uring] [threads]`.
//!
//! Prints the rate, the percentiles and the CPU time a request; with `WEIR_JSON=1` the whole result, with `WEIR_ROWS=1` its
//! rows. `WEIR_CLOSE=1` makes a new connection for every request.

use std::net::SocketAddr;

use weir_load::{Outputs, Progress, StopFlag, run};
use weir_model::load::{LoadSpec, Target};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};

const USAGE: &str =
    "load <ip:port> <path> <connections> <seconds> [rate|closed] [cpu|any] [auto|epoll|io_uring] [threads]";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let get = |i: usize, default: &'static str| args.get(i).map_or(default, String::as_str);
    let target: SocketAddr = args.first().ok_or(USAGE)?.parse()?;
    let kind = match get(4, "closed") {
        "closed" => LoadKind::Closed,
        rate => LoadKind::open(rate.parse()?, Arrivals::Constant),
    };
    let cpus = match get(5, "any") {
        "any" => vec![],
        list => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
    };
    let request = Request { method: "GET".into(), path: get(1, "/").into(), headers: vec![], body: vec![] };
    let spec = LoadSpec {
        kind,
        connections: get(2, "64").parse()?,
        threads: get(7, "1").parse()?,
        cpus,
        warmup_s: 1.0,
        duration_s: get(3, "5").parse()?,
        timeout_s: 5.0,
        seed: 1,
        driver: get(6, "auto").parse()?,
        connection_close: std::env::var_os("WEIR_CLOSE").is_some(),
        ..LoadSpec::new(Target::tcp(target, target.to_string()), request, Expect::default())
    };
    let outputs = Outputs::default();
    let result = run(&spec, &outputs, &StopFlag::new(), &mut |progress| {
        if let (Progress::Second(row), true) = (progress, std::env::var_os("WEIR_ROWS").is_some()) {
            println!("{row:?}");
        }
    })?;
    if std::env::var_os("WEIR_JSON").is_some() {
        println!("{}", serde_json::to_string_pretty(&result)?);
    }
    let requests = result.window.right_in_window.max(1) as f64;
    println!(
        "{} {:.0}/s right={} errors={} unsent={} p50={:.0}us p99={:.0}us max={:.0}us lag99={:.0}us cpu={:.3}us/req \
         (user {:.3}, system {:.3}) busy={:.3?}",
        result.driver,
        result.rate,
        result.window.right,
        result.window.error_count(),
        result.window.unsent,
        result.latency.p50_us,
        result.latency.p99_us,
        result.latency.max_us,
        result.lag.p99_us,
        (result.cpu_us.0 + result.cpu_us.1) as f64 / requests,
        result.cpu_us.0 as f64 / requests,
        result.cpu_us.1 as f64 / requests,
        result.thread_busy,
    );
    Ok(())
}
