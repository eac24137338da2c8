//! Servers that mean harm: the client neither crashes nor hangs nor keeps what they send, its counters balance, and no connection
//! outlives the load. One case is one way to misbehave. (In a program of its own: floods take the CPU from tests beside them.)

mod http1;
mod http2;
mod tls;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use weir_load::{LoadError, Outputs, StopFlag, run};
use weir_model::load::{DriverChoice, ErrorKind, LoadResult, LoadSpec, OfferedRate, Target};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};

const DRIVERS: [DriverChoice; 2] = [DriverChoice::Epoll, DriverChoice::IoUring];

fn constant(rate: f64) -> LoadKind<OfferedRate> {
    LoadKind::open(rate, Arrivals::Constant)
}

/// Runs it, and sees that every due request ended as exactly one thing.
fn load(spec: &LoadSpec) -> Result<LoadResult, LoadError> {
    let result = run(spec, &Outputs::default(), &StopFlag::new(), &mut |_| {})?;
    for counts in [&result.window, &result.total] {
        assert_eq!(counts.due, counts.right + counts.error_count() + counts.unsent, "{counts:?}");
    }
    assert_eq!(result.latency.count, result.window.due, "nothing due is an absence");
    Ok(result)
}

/// A connection as the server has it.
type Line<'a> = &'a mut TcpStream;

/// One way to misbehave on a connection. What it returns says nothing but that the connection is over.
type Harm = fn(Line<'_>) -> Option<()>;

/// Nothing goes on for longer than this in a case: far more than the timeouts, far less than for ever.
const LONGEST: Duration = Duration::from_secs(20);

/// Connections that a case may make: a client that tries again and again without a pause makes thousands.
const MOST_CONNECTIONS: u64 = 400;

struct Villain {
    addr: SocketAddr,
    made: Arc<AtomicU64>,
    open: Arc<AtomicU64>,
}

/// Serves every connection with the same harm, until the test process ends.
fn villain(harm: Harm) -> Villain {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let villain = Villain { addr: listener.local_addr().unwrap(), made: Arc::default(), open: Arc::default() };
    let (made, open) = (villain.made.clone(), villain.open.clone());
    std::thread::spawn(move || {
        for line in listener.incoming() {
            let Ok(mut line) = line else { return };
            made.fetch_add(1, Ordering::SeqCst);
            open.fetch_add(1, Ordering::SeqCst);
            let open = open.clone();
            let serve = move || {
                let bound = Some(LONGEST);
                if line.set_read_timeout(bound).and_then(|()| line.set_write_timeout(bound)).is_ok() {
                    let _ = line.set_nodelay(true);
                    let _ = harm(&mut line);
                }
                open.fetch_sub(1, Ordering::SeqCst);
            };
            std::thread::Builder::new().stack_size(256 * 1024).spawn(serve).unwrap();
        }
    });
    villain
}

/// Reads until the client goes away, which is what every harm ends with that does not close itself.
fn until_gone(line: Line<'_>) -> Option<()> {
    let mut bytes = [0; 16 * 1024];
    while line.read(&mut bytes).ok()? > 0 {}
    None
}

fn say(line: Line<'_>, bytes: &[u8]) -> Option<()> {
    line.write_all(bytes).ok()
}

/// A GET, 0.5 s long, with a timeout of 0.8 s.
fn order(addr: SocketAddr, kind: LoadKind<OfferedRate>) -> LoadSpec {
    let request = Request { method: "GET".into(), path: "/".into(), headers: vec![], body: vec![] };
    let spec = LoadSpec::new(Target::tcp(addr, "localhost"), request, Expect::default());
    LoadSpec { kind, connections: 3, duration_s: 0.5, timeout_s: 0.8, ..spec }
}

/// A case: its name, the harm, and the kinds of error of which one at least must be seen (none: no connection comes up).
struct Case {
    name: &'static str,
    harm: Harm,
    kinds: &'static [ErrorKind],
}

/// Cases that run at a time: each has a client and a server that want a CPU.
const AT_ONCE: usize = 6;

/// Runs the cases, each as a closed and as an open load, one of them on either driver.
fn suffer(cases: &[Case], change: fn(&mut LoadSpec)) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((number, case)) = take(cases, &next) {
                    for (kind, driver) in [LoadKind::Closed, constant(100.0)].into_iter().zip([number, number + 1]) {
                        suffer_one(case, kind, |spec| {
                            spec.driver = DRIVERS[driver % 2];
                            change(spec);
                        });
                    }
                }
            });
        }
    });
}

fn take<'c>(cases: &'c [Case], next: &AtomicUsize) -> Option<(usize, &'c Case)> {
    let number = next.fetch_add(1, Ordering::SeqCst);
    Some((number, cases.get(number)?))
}

fn suffer_one(case: &Case, kind: LoadKind<OfferedRate>, change: impl FnOnce(&mut LoadSpec)) {
    let villain = villain(case.harm);
    let mut spec = order(villain.addr, kind);
    change(&mut spec);
    let name = format!("{} ({:?}, {:?})", case.name, spec.kind, spec.driver);
    let begun = Instant::now();
    // Balances the counters, too.
    let outcome = load(&spec);
    assert!(begun.elapsed() < LONGEST, "{name}: it took {:?}", begun.elapsed());
    match outcome {
        Ok(result) => {
            let errors = &result.total.errors;
            assert_eq!(result.total.right, 0, "{name}: {:?}", result.total);
            // On a busy machine any of them may also be late.
            let late = |kind: &ErrorKind| matches!(kind, ErrorKind::Timeout | ErrorKind::ConnectTimeout);
            let expected = |kind: &ErrorKind| case.kinds.contains(kind);
            assert!(errors.keys().all(|kind| expected(kind) || late(kind)), "{name}: {errors:?}");
            assert!(errors.keys().any(expected), "{name}: {:?}", result.total);
        }
        Err(LoadError::NoConnection { kind, .. }) => {
            let late = kind == ErrorKind::ConnectTimeout;
            assert!(late || case.kinds.is_empty() || case.kinds.contains(&kind), "{name}: no connection, {kind:?}");
        }
        Err(other) => panic!("{name}: {other}"),
    }
    let made = villain.made.load(Ordering::SeqCst);
    assert!((1..=MOST_CONNECTIONS).contains(&made), "{name}: {made} connections");
    let gone_by = Instant::now() + Duration::from_secs(10);
    while villain.open.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < gone_by, "{name}: a connection outlives the load");
        std::thread::sleep(Duration::from_millis(5));
    }
}
