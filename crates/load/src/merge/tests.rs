use std::path::Path;

use proptest::prelude::*;
use weir_model::load::{ConnectionSpread, LoadSpec, Part, RequestSpec, Target};
use weir_model::suite::{Expect, LoadKind, Request};
use weir_net::DriverKind;

use super::*;
use crate::aggregate::Aggregate;
use crate::capacity::Resources;
use crate::clock::SECOND;
use crate::counts::RequestCounts;
use crate::headers::HeaderWatch;
use crate::interval::{Interval, Kinds, Phase};
use crate::plan::Plan;
use crate::protocol::Watches;
use crate::reasons::Reasons;
use crate::result::{Span, for_the_merge, result};
use crate::shared::WorkerResult;

const SECONDS: u64 = 2;

/// What a thread sent: second, kind of request, and nanoseconds from due to sent, to the first byte, and to the response.
type Sample = (u64, u32, u64, u64, u64);

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let lag = prop_oneof![Just(0u64), 0u64..3_000_000];
    proptest::collection::vec((0..=SECONDS, 0u32..2, lag, 0u64..1_000_000, 0u64..2_000_000_000), 0..40)
}

fn spec(threads: u32) -> LoadSpec {
    let target = Target::tcp("127.0.0.1:1".parse().unwrap(), "origin.test");
    let request = |path: &str| Request { path: path.into(), ..Request::get("/") };
    let mut spec = LoadSpec::new(target, request("/a"), Expect::default());
    spec.requests.push(RequestSpec { request: request("/b"), ..spec.requests[0].clone() });
    LoadSpec { connections: 20, threads, kind: LoadKind::Closed, duration_s: SECONDS as f64, ..spec }
}

/// What one client leaves whose threads sent this, and which has that part of the load.
fn client(threads: &[Vec<Sample>], whole: u32, part: Option<Part>, folder: &Path, host: &str) -> ClientOutput {
    let spec = LoadSpec { part, ..spec(whole) };
    let plan = Plan::new(&spec, &Resources::unlimited()).unwrap();
    let window = 5 * SECOND;
    let mut aggregate = Aggregate::new(plan.threads, true, true, 0);
    let mut outcomes = Vec::new();
    for (number, sent) in (0..).zip(threads) {
        let mut counts = RequestCounts::new(2);
        let mut connect = histo();
        for second in 0..=SECONDS {
            let mut interval = Interval::new(Kinds { requests: 2, open: true });
            (interval.phase, interval.second) = match second {
                SECONDS => (Phase::Drain, 0),
                _ => (Phase::Window, second as u32),
            };
            interval.start = window + second * SECOND;
            interval.end = interval.start + SECOND;
            interval.open = Some(2);
            for (_, kind, lag, first, took) in sent.iter().filter(|sample| sample.0 == second) {
                let due = interval.start;
                interval.sample(*kind, due, due + lag, due + lag + took, lag % 3 == 0);
                interval.first_byte(due + lag, due + lag + first.min(took), due + lag + took);
                interval.successful(due + took % SECOND);
                interval.counts.bytes_in += took % 1_000;
                counts.successful += 1;
                counts.of_request(*kind).unwrap().successful += 1;
                connect.saturating_record(*took);
            }
            if let Some(sample) = sent.first() {
                interval.counts.error(weir_model::load::ErrorKind::ALL[sample.1 as usize]);
                counts.error(Some(sample.1), weir_model::load::ErrorKind::Reset);
            }
            aggregate.take(&interval);
        }
        let mut by_connection = (ConnectionSpread::default(), histo());
        by_connection.0.record(sent.len() as u64);
        by_connection.1.saturating_record(sent.len() as u64 * 1_000_000);
        outcomes.push(WorkerResult {
            by_status: None,
            thread: number,
            before: RequestCounts::new(2),
            window: counts,
            connect,
            by_connection,
            used: 3,
            min_streams: 1,
            tls: None,
            quic: None,
            watches: Watches {
                headers: HeaderWatch::new(2),
                ids: None,
                codings: None,
                messages: Some(Box::new(crate::messages::tests::watched(sent.iter().map(|sample| sample.4)))),
                changes: None,
                reasons: Reasons::default(),
            },
            cpu_us: (sent.len() as u64, 7),
            busy_poll_us: 2,
            coalescing_us: 3.0,
            real_time: true,
            busy: sent.len() as f64 / 100.0,
        });
    }
    let unix_ns = 1_700_000_000_123_000_000;
    let span = Span { window, end: window + SECONDS * SECOND, unix_ns, cut_short: false };
    aggregate.close(span.window, span.end);
    let files = Outputs { hlog: Some(folder.join(format!("{host}.hlog"))), series: None };
    let mut log = aggregate.log.take().unwrap();
    if part.is_some() {
        log.push(for_the_merge(&span, &outcomes, &aggregate));
    }
    output::write_log(files.open().unwrap().hlog.as_mut().unwrap(), &log, window, unix_ns).unwrap();
    let result = result(&plan, DriverKind::Epoll, &span, aggregate, &outcomes, 4 * plan.threads);
    ClientOutput { host: host.to_owned(), result, log: files.hlog.unwrap() }
}

/// The clients of a load whose threads are dealt out like that.
fn dealt(threads: &[Vec<Sample>], sizes: &[usize], folder: &Path) -> Vec<ClientOutput> {
    let mut first = 0;
    let mut clients = Vec::new();
    for size in sizes.iter().copied() {
        let end = threads.len().min(first + size);
        if first < end {
            let part = Part { first_thread: first as u32, threads: (end - first) as u32 };
            let host = format!("client-{}", clients.len());
            clients.push(client(&threads[first..end], threads.len() as u32, Some(part), folder, &host));
        }
        first = end;
    }
    clients
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_parts_found_is_what_the_whole_would_have(
        threads in proptest::collection::vec(samples(), 1..6),
        sizes in proptest::collection::vec(1usize..4, 6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let whole = client(&threads, threads.len() as u32, None, folder.path(), "whole");
        let clients = dealt(&threads, &sizes, folder.path());
        let files = Outputs { hlog: Some(folder.path().join("latency.hlog")), series: Some(folder.path().join("load.csv")) };
        let merged = merge(&clients, &files).unwrap();
        prop_assert_eq!(merged.hosts.len(), clients.len());
        prop_assert_eq!(&LoadResult { hosts: Vec::new(), ..merged }, &whole.result);
        let bytes = |path: &Path| fs::read(path).unwrap();
        prop_assert!(bytes(&files.hlog.unwrap()) == bytes(&whole.log), "the histograms differ");
    }
}

fn two(folder: &Path) -> Vec<ClientOutput> {
    let threads: Vec<Vec<Sample>> =
        (1..=2).map(|n| vec![(0, 0, 0, 10, n * 1_000_000), (1, 1, 5_000, 10, 2_000_000)]).collect();
    dealt(&threads, &[1, 1], folder)
}

fn refused(clients: &[ClientOutput]) -> String {
    let error = merge(clients, &Outputs::default()).unwrap_err();
    assert!(matches!(error, LoadError::Merge { .. }), "{error}");
    error.to_string()
}

#[test]
fn a_client_keeps_what_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let clients = two(folder.path());
    let merged = merge(&clients, &Outputs::default()).unwrap();
    for (host, client) in merged.hosts.iter().zip(&clients) {
        assert_eq!((&host.host, &host.lag, host.successful), (&client.host, &client.result.lag, 2));
        assert_eq!(host.thread_busy, client.result.thread_busy);
    }
    assert_eq!(merged.series[0].connections_open, Some(4));
    assert_eq!(merged.series[1].lag_max_us, 5.119, "the worst of all");
}

#[test]
fn a_log_that_lacks_something_is_not_merged() {
    let folder = tempfile::tempdir().unwrap();
    let clients = two(folder.path());
    let log = &clients[1].log;
    let whole = fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let first = lines.iter().position(|line| line.starts_with("Tag=")).unwrap();
    let without = |line: usize| format!("{}\n", [&lines[..line], &lines[line + 1..]].concat().join("\n"));

    fs::write(log, without(first)).unwrap();
    let text = refused(&clients);
    assert!(
        text.starts_with("the client on client-1: ") && text.contains("client-1.hlog: it has 1 samples of latency"),
        "{text}"
    );
    assert!(text.contains("the client counted 2; expected: the whole output of one part"), "{text}");

    let connect = lines.iter().position(|line| line.starts_with("Tag=connect")).unwrap();
    fs::write(log, without(connect)).unwrap();
    assert!(refused(&clients).contains("0 samples of connect, and the client counted 2"));

    fs::write(log, whole.replace("Tag=handshake", "Tag=surprise")).unwrap();
    assert!(refused(&clients).contains("a tag \"surprise\""));

    fs::write(log, &whole[..whole.len() - 20]).unwrap();
    assert!(refused(&clients).contains("broken"));

    fs::remove_file(log).unwrap();
    assert!(refused(&clients).contains("No such file"));
}

#[test]
fn another_loads_client_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut clients = two(folder.path());
    clients[1].result.offered_rate = Some(1.0);
    assert!(refused(&clients).contains("of another load"));
    assert!(matches!(merge(&[], &Outputs::default()), Err(LoadError::InvalidSpec(_))));
}
