//! Loads against small servers on loopback.

mod counts;
mod echo;
mod failures;
mod freeze;
mod http2;
mod http2_server;
mod keyvalue;
mod keyvalue_server;
mod options;
mod parts;
mod server;
mod stopping;
mod streams;
mod tls;

use weir_model::load::{Counts, DriverChoice, LoadResult, LoadSpec, OfferedRate, Target};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};

use crate::{LoadError, Outputs, StopFlag, run};
use server::Server;

/// Both drivers, where the test is cheap enough to run twice.
const DRIVERS: [DriverChoice; 2] = [DriverChoice::Epoll, DriverChoice::IoUring];

/// For tests that mostly wait: all cases at once.
fn at_once<T: Clone + Send + Sync>(cases: &[T], test: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let test = &test;
            scope.spawn(move || test(case.clone()));
        }
    });
}

fn order(server: &Server, kind: LoadKind<OfferedRate>) -> LoadSpec {
    order_to(server.addr, kind)
}

fn order_to(addr: std::net::SocketAddr, kind: LoadKind<OfferedRate>) -> LoadSpec {
    let request = Request { method: "GET".into(), path: "/".into(), headers: vec![], body: vec![] };
    let target = Target::tcp(addr, addr.to_string());
    LoadSpec { kind, connections: 4, timeout_s: 2.0, ..LoadSpec::new(target, request, Expect::default()) }
}

fn constant(rate: f64) -> LoadKind<OfferedRate> {
    LoadKind::open(rate, Arrivals::Constant)
}

fn load(spec: &LoadSpec) -> Result<LoadResult, LoadError> {
    let result = run(spec, &Outputs::default(), &StopFlag::new(), &mut |_| {})?;
    balanced(&result);
    let most = spec.max_connections.unwrap_or(spec.connections);
    let open = result.series.iter().filter_map(|row| row.connections_open);
    assert!(open.clone().all(|open| open <= most), "{:?} of {most}", open.collect::<Vec<_>>());
    Ok(result)
}

/// What holds of every load, whatever happened to it.
fn balanced(result: &LoadResult) {
    for counts in [&result.window, &result.total] {
        assert_eq!(
            counts.due,
            counts.right + counts.error_count() + counts.unsent,
            "every due request ends as exactly one thing: {counts:?}"
        );
    }
    assert_eq!(result.latency.count, result.window.due, "nothing due is an absence");
    assert_eq!(result.lag.count, result.window.due);
    assert_eq!(result.service.count, result.window.sent);
    let by_status: u64 = result.by_status.values().map(|latency| latency.count).sum();
    assert!(by_status == result.latency.count || result.by_status.is_empty(), "{:?}", result.by_status);
    let sum = |f: fn(&weir_model::load::LoadSecond) -> u64| result.series.iter().map(f).sum::<u64>();
    assert_eq!(sum(|row| row.due), result.window.due);
    assert_eq!(sum(|row| row.right), result.window.right_in_window);
    assert_eq!(sum(|row| row.bytes_in), result.window.bytes_in);
    assert!(result.tenths.iter().sum::<u64>() <= result.window.right_in_window);
    let whole = (result.window_s * 10.0 + 1e-6).floor() as usize;
    // Of several clients, until the first was done.
    let part = result.window.due == 0 || !result.hosts.is_empty();
    assert!(result.tenths.len() == whole || part, "{} {}", result.tenths.len(), result.window_s);
    let length: f64 = result.series.iter().map(|row| row.length_s).sum();
    assert!((length - result.window_s).abs() < 1e-6, "{length} {}", result.window_s);
}

fn errors(counts: &Counts) -> Vec<(&'static str, u64)> {
    let name = |(kind, n): (&weir_model::load::ErrorKind, &u64)| (kind.as_str(), *n);
    counts.errors.iter().map(name).collect()
}
