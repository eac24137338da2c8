//! A test that prints the text of every finding into one golden file, so that the texts are reviewed together. It runs
//! with this crate's tests; nothing else uses it.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_model::change::ChangeRecord;
use weir_model::counters::{AddressCounters, ContentCounters, RequestIdCounters};
use weir_model::gateway::{AccessLog, Filter};
use weir_model::load::{
    ErrorKind, HeaderChange, HeaderSamples, Lateness, Quantiles, QuicResult, RequestIdCounts, SearchEnd, SearchLimit,
    SearchResult, Stalls, TlsResult,
};
use weir_model::protocol::Application;
use weir_model::record::{Finding, HostClock, Role, Severity, Warmup};
use weir_model::speed::Change;
use weir_model::suite::Protocol;

use super::fixture::{Trial, filtered, good, search, three_hosts};
use super::{
    RateIntent, affinity, bottleneck, clocks, codings, control, control_switched_off, cpu_speed, expiry, fairness,
    messages, never_steady, other_processes, quota, unexplained_work,
};

fn with_tls(trial: &mut Trial, version: &str, suite: &str) {
    trial.protocol = Protocol::all().last().expect("one");
    let (versions, suites) = ([(version.to_owned(), 64)].into(), [(suite.to_owned(), 64)].into());
    trial.load.tls = Some(TlsResult { handshakes: 64, versions, suites, ..TlsResult::default() });
}

fn late(trial: &mut Trial) {
    let micros = |p50_us, p99_us| Quantiles { p50_us, p99_us, ..Quantiles::default() };
    trial.load.latency = micros(300.0, 1_500.0);
    trial.load.lateness =
        Some(Lateness { lag: micros(12.0, 900.0), latency: micros(290.0, 1_000.0), p99_to_us: 1_020.0 });
}

/// Origins with so many requests each.
fn pool(requests: &[u64]) -> Vec<AddressCounters> {
    requests.iter().map(|requests| AddressCounters { requests: *requests, ..AddressCounters::default() }).collect()
}

/// Sets the IDs of responses (all others are their own) and, at the origin, the distinct and the repeated IDs.
fn with_ids(trial: &mut Trial, responses: RequestIdCounts, (distinct, again): (u64, u64)) {
    let own = 10_000 - responses.count_of_another() - responses.forged - responses.missing;
    trial.load.request_ids = Some(RequestIdCounts { own, ..responses });
    let named = distinct + again;
    trial.origin.request_ids =
        RequestIdCounters { identified: named, distinct, repeated: again, ..RequestIdCounters::default() };
    trial.origin.requests = named;
}

#[test]
fn every_finding_says_what_was_reviewed() {
    type Fault = fn(&mut Trial);
    let faults: &[(&str, Fault)] = &[
        ("the load was ended early", |t| (t.load.cut_short, t.load.window_s) = (true, 0.42)),
        ("nothing was answered", |t| t.load.window.successful_in_window = 0),
        ("another origin", |t| t.has_counters = false),
        ("no origin", |t| (t.has_counters, t.store) = (false, true)),
        ("a product that others have started", |t| t.usage.retain(|usage| usage.role != Role::Proxy)),
        ("wrong data", |t| t.load.total.errors = [(ErrorKind::Lost, 3), (ErrorKind::Stale, 1)].into()),
        ("messages that are lost, and streams cut short", |t| {
            *t = messages::tests::streams(0, |c| (c.lost, c.altered, c.cut_short) = (3, 1, 2));
        }),
        ("messages that come together", |t| *t = messages::tests::streams(570, |_| ())),
        ("messages that come together without a product", |t| {
            *t = messages::tests::streams(570, |_| ());
            t.proxied = false;
        }),
        ("cancelled streams whose origin is not told", |t| *t = messages::tests::cancelled(150, 120)),
        ("cancelled streams whose origin is not told, without a product", |t| {
            *t = messages::tests::cancelled(0, 0);
            t.proxied = false;
        }),
        ("a cache", |t| t.origin.requests = 12),
        ("a cache, and requests without a response", |t| {
            t.origin.requests = 12;
            t.load.total.statuses = [(200, 9_900)].into();
        }),
        ("a product that is a cache", |t| (t.caches, t.origin.requests) = (true, 12)),
        ("a product that replicates", |t| (t.replicates, t.origin.requests) = (true, 44_000)),
        ("TLS as meant", |t| with_tls(t, "TLS 1.3", "TLS_AES_128_GCM_SHA256")),
        ("other TLS than meant", |t| with_tls(t, "TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")),
        ("other TLS, as the vendor has it", |t| {
            with_tls(t, "TLS 1.3", "TLS_AES_256_GCM_SHA384");
            t.levelled = false;
        }),
        ("datagrams that are lost", |t| {
            t.load.quic = Some(QuicResult { packets_out: 20_000, packets_lost: 400, ..QuicResult::default() });
        }),
        ("datagrams that come alone, and find no room", |t| {
            let (datagrams_in, trains_in) = (30_000, 30_000);
            (t.load.streams, t.requests) = (32, Some(10_000));
            t.load.quic = Some(QuicResult {
                datagrams_in,
                trains_in,
                datagrams_out: 20_000,
                refused: 7,
                ..QuicResult::default()
            });
        }),
        ("a retry", |t| t.origin.requests = 10_001),
        ("mirroring", |t| t.origin.requests = 20_000),
        ("a tenth cached and a tenth sent twice", |t| {
            with_ids(t, RequestIdCounts { cached: 1_000, ..RequestIdCounts::default() }, (9_000, 1_000));
        }),
        ("a cache that revalidates", |t| {
            with_ids(t, RequestIdCounts { cached: 9_999, reused: 9_998, ..RequestIdCounts::default() }, (10_000, 0))
        }),
        ("responses that were exchanged", |t| {
            with_ids(t, RequestIdCounts { coalesced: 272, ..RequestIdCounts::default() }, (10_000, 0))
        }),
        ("responses that are one behind", |t| {
            with_ids(t, RequestIdCounts { cached: 900, ..RequestIdCounts::default() }, (10_000, 0))
        }),
        ("responses coalesced", |t| {
            with_ids(t, RequestIdCounts { coalesced: 4_000, ..RequestIdCounts::default() }, (6_000, 0))
        }),
        ("another's responses, clocks apart", |t| {
            with_ids(t, RequestIdCounts { of_another: 4_000, ..RequestIdCounts::default() }, (6_000, 0));
        }),
        ("forged IDs", |t| with_ids(t, RequestIdCounts { forged: 9_999, ..RequestIdCounts::default() }, (1, 0))),
        ("requests that a filter refuses, and sends on", |t| {
            t.gateway = filtered(Filter::KeyAuth, None);
            t.load.total.statuses = [(200, 9_900), (401, 100)].into();
            with_ids(t, RequestIdCounts { missing: 100, ..RequestIdCounts::default() }, (10_000, 0))
        }),
        ("a limit of rates that lets more pass", |t| {
            (t.gateway, t.load.window_s) = (filtered(Filter::RateLimit, Some(50)), 2.0);
        }),
        ("names taken from responses", |t| {
            with_ids(t, RequestIdCounts { missing: 10_000, ..RequestIdCounts::default() }, (10_000, 0))
        }),
        ("names taken from requests", |t| {
            with_ids(t, RequestIdCounts { missing: 10_000, ..RequestIdCounts::default() }, (0, 0));
            t.origin.requests = 10_000;
        }),
        ("the product's own responses, by ID", |t| {
            with_ids(t, RequestIdCounts { missing: 10_000, ..RequestIdCounts::default() }, (0, 0));
        }),
        ("mirroring, by ID", |t| with_ids(t, RequestIdCounts::default(), (10_000, 10_000))),
        ("a retry, by ID", |t| with_ids(t, RequestIdCounts::default(), (10_000, 1))),
        ("a product that is a cache, by ID", |t| {
            t.caches = true;
            with_ids(t, RequestIdCounts { cached: 9_988, ..RequestIdCounts::default() }, (12, 0));
        }),
        ("a stranger at the origin, by ID", |t| {
            with_ids(t, RequestIdCounts::default(), (10_000, 0));
            t.origin.requests = 10_007;
        }),
        ("a stranger at the origin", |t| (t.proxied, t.origin.connections_used) = (false, 70)),
        ("requests without their bodies, and some cut off", |t| {
            t.origin.contents = ContentCounters { shortened: 9_990, unfinished: 7, ..ContentCounters::default() };
        }),
        ("requests with another body, another query, and without a cookie", |t| {
            t.origin.contents = ContentCounters { target: 10_000, headers: 12, body: 3, ..ContentCounters::default() };
        }),
        ("longer bodies, and responses before them", |t| {
            t.origin.contents = ContentCounters { lengthened: 2, ..ContentCounters::default() };
            t.load.total.early = 400;
        }),
        ("a cache that asks otherwise", |t| {
            t.caches = true;
            t.origin.contents = ContentCounters { target: 50, ..ContentCounters::default() };
        }),
        ("names that are cut off", |t| {
            t.origin.contents = ContentCounters { unchecked: 10_000, ..ContentCounters::default() };
        }),
        ("request bodies that are dropped, of a load without IDs", |t| t.load.request_body_bytes = Some(300_000)),
        ("compression", |t| t.load.total.body_bytes = 400_000),
        ("short connections downstream", |t| (t.load.total.connections, t.load.total.closed_by_peer) = (1_064, 990)),
        ("one error", |t| t.load.window.errors = [(ErrorKind::Reset, 1)].into()),
        ("some errors", |t| t.load.window.errors = [(ErrorKind::Reset, 10), (ErrorKind::Timeout, 5)].into()),
        ("many errors", |t| t.load.window.errors = [(ErrorKind::Timeout, 2_500)].into()),
        ("refusals", |t| {
            t.load.window.errors = [(ErrorKind::BadStatus, 47), (ErrorKind::Reset, 2)].into();
            t.load.window.statuses = [(200, 9_951), (429, 7), (503, 40)].into();
        }),
        ("a wrong response", |t| t.load.total.errors = [(ErrorKind::WrongBody, 1)].into()),
        ("half a response", |t| t.load.total.errors = [(ErrorKind::Truncated, 5)].into()),
        ("wrong responses", |t| t.load.total.errors = [(ErrorKind::WrongBody, 6), (ErrorKind::BadStatus, 3)].into()),
        ("a header that came", |t| {
            let (name, is) = ("x-cache".to_owned(), Some("HIT".to_owned()));
            let change = HeaderChange { name, was: None, is, at_s: 1.2, samples: 9 };
            t.load.headers = Some(HeaderSamples { sampled: 20, changes: vec![change], ..HeaderSamples::default() });
        }),
        ("an open load not carried", |t| {
            (t.load.offered_rate, t.load.window.successful_in_window, t.load.window.unsent) =
                (Some(12_345.0), 9_000, 7);
        }),
        ("an open load not carried, on purpose", |t| {
            (t.load.offered_rate, t.load.window.successful_in_window) = (Some(12_345.0), 9_000);
            t.rate_intent = RateIntent::TooMuch;
        }),
        ("an open load carried that was meant not to be", |t| {
            (t.load.offered_rate, t.rate_intent) = (Some(10_000.0), RateIntent::TooMuch);
        }),
        ("too many requests for their time", |t| t.requests = Some(100_000)),
        ("responses of the product's own that were not", |t| t.by_product = true),
        ("a search that the client limited", |t| {
            t.search = Some(search(SearchEnd::Found, Some(SearchLimit::Client)));
        }),
        ("a search without time", |t| t.search = Some(search(SearchEnd::Budget, Some(SearchLimit::Target)))),
        ("a search without time or failures", |t| {
            t.search = Some(SearchResult { failed_from: None, ..search(SearchEnd::Budget, None) });
        }),
        ("a level that changes", |t| {
            t.load.tenths = (0..200).map(|tenth| if tenth < 60 { 700 } else { 1_000 }).collect()
        }),
        ("pauses", |t| t.load.tenths = (0..20).map(|tenth| if tenth % 10 < 2 { 3 } else { 1_000 }).collect()),
        ("requests in no latency", |t| t.load.latency.count = 5_000),
        ("a full client", |t| t.load.thread_busy = vec![0.2, 0.97]),
        ("a full client, direct", |t| (t.load.thread_busy, t.proxied) = (vec![0.97], false)),
        ("a full CPU of client and origin", |t| (t.usage[0].cores_busy, t.usage[2].cores_busy) = (0.5, 0.45)),
        ("full CPUs of client and origin", |t| {
            (t.placement.client, t.placement.origin) = (vec![0, 2], vec![0, 2]);
            (t.usage[0].cores_busy, t.usage[2].cores_busy) = (1.0, 0.9);
        }),
        ("a late client", late),
        ("a late client, direct", |t| {
            late(t);
            t.proxied = false;
        }),
        ("a client that was stopped", |t| t.load.stalls = Stalls { count: 3, total_us: 620_000, longest_us: 210_000 }),
        ("an origin that was stopped", |t| t.origin.stalls = Stalls { count: 1, total_us: 24_000, longest_us: 24_000 }),
        ("a machine that stood still", |t| {
            t.load.stalls = Stalls { count: 3, total_us: 92_000, longest_us: 41_000 };
            t.origin.stalls = Stalls { count: 2, total_us: 80_000, longest_us: 45_000 };
        }),
        ("late samples", |t| t.vitals_late_s = 0.07),
        ("a product that shares its CPUs", |t| t.placement.proxy = vec![0]),
        ("a quota of CPU time", |t| t.owners = quota::tests::held(0.5)),
        ("a product that runs half of the time", |t| *t = bottleneck::tests::used([0.15, 0.5, 0.1])),
        ("connections on one of two workers", |t| *t = fairness::tests::spread([250.0, 1_000.0, 1_050.0, 1_100.0])),
        ("a product beyond its CPUs", |t| t.usage[1].cores_busy = 1.5),
        ("a product on others' CPUs", |t| t.owners = affinity::tests::strays(0.3, 0.2)),
        ("a product that may run on others' CPUs", |t| t.owners = affinity::tests::strays(0.3, 0.01)),
        ("a helper that holds the connections", |t| t.owners = unexplained_work::tests::held()),
        ("a product without work", |t| t.usage[1].cpu_system_us = 0),
        ("an access log", |t| t.usage[1].disk_written_bytes = Some(1_234_567)),
        ("a connection a request upstream", |t| t.origin.connections_accepted = 9_000),
        ("a product that compresses", |t| *t = codings::tests::coded(9_999)),
        ("compression that was accepted, and came from nobody", |t| *t = codings::tests::coded(0)),
        ("a filter that is to compress, and does not always", |t| {
            *t = codings::tests::coded(9_999);
            t.gateway = filtered(Filter::Compression, None);
        }),
        ("an idle origin", |t| t.origin.addresses = pool(&[6_000, 0, 4_000])),
        ("a POST that was sent twice", |t| {
            with_ids(t, RequestIdCounts::default(), (10_000, 1));
            t.not_idempotent = true;
        }),
        ("an access log with gaps", |t| t.access_log = Some(AccessLog { lines: 9_900, bytes: 990_000 })),
        ("a route that changes, and a request that fails", |t| {
            t.changes = Some(ChangeRecord { began_s: vec![0.5], ..ChangeRecord::default() });
            t.load.window.errors = [(ErrorKind::Reset, 1)].into();
        }),
        ("an uneven pool", |t| t.origin.addresses = pool(&[5_000, 2_000, 3_000])),
    ];
    let mut text = String::new();
    let mut add = |name: &str, findings: Vec<Finding>| {
        text.push_str(&format!("{name}\n"));
        for f in findings {
            let severity = match f.severity {
                Severity::Note => "note",
                Severity::Warning => "warning",
                Severity::Fatal => "fatal",
            };
            text.push_str(&format!("  {severity} {}: {}\n    {}\n", f.check, f.message, f.remedy));
        }
    };
    for &(name, inject) in faults {
        let mut trial = good();
        inject(&mut trial);
        add(name, trial.all());
    }
    let mut trial = good();
    trial.origin.connections_accepted = 200;
    add("some connections upstream", trial.all());
    trial = good();
    trial.series[0].cpu_steal = Some(0.05);
    add("a thief", trial.all());
    trial = good();
    trial.owners = other_processes::tests::beside(0.3, 0.9);
    add("a neighbour", trial.all());
    trial.owners = other_processes::tests::beside(0.0, 0.9);
    add("a neighbour that is not seen", trial.all());
    (trial.owners, trial.series) = (other_processes::tests::beside(0.02, 0.6), other_processes::tests::second(0.6));
    add("a neighbour for a second", trial.all());
    let of_hosts: [(&str, Fault); 8] = [
        ("segments sent again", |t| {
            (t.series[1].tcp_segments_sent, t.series[1].tcp_retransmits) = (Some(300_000), Some(1_234));
        }),
        ("packets dropped", |t| (t.series[2].tcp_segments_sent, t.series[2].net_drops) = (Some(10_000), Some(250))),
        ("a full listen queue of the product", |t| t.series[0].listen_overflows = Some(7)),
        ("segments sent again between namespaces", |t| {
            t.hosts.iter_mut().for_each(|host| host.machine = "one".into());
            (t.series[0].tcp_segments_sent, t.series[0].tcp_retransmits) = (Some(300_000), Some(1_234));
        }),
        ("a full listen queue elsewhere", |t| {
            (t.series[2].listen_overflows, t.series[2].net_drops) = (Some(7), Some(50));
        }),
        ("a full link", |t| t.series[1].net_in_bytes = Some(118_000_000)),
        ("interrupts of the network", |t| t.hosts[0].facts.links[0].queue_cpus = vec![0, 1]),
        ("another kind of client", |t| {
            let mut other = t.hosts[1].clone();
            other.facts.kernel = "Linux 5.4".into();
            t.hosts.push(other);
        }),
    ];
    for (name, inject) in of_hosts {
        let mut trial = three_hosts();
        inject(&mut trial);
        add(name, trial.all());
    }
    let clock = |host: &str, error_us| HostClock { host: host.to_owned(), error_us, drift_us: 100.0 };
    add(
        "clocks that disagree",
        clocks(&[clock("client-1", 900.0), clock("client-2", 21_000.0)], 2, 2.0).into_iter().collect(),
    );
    for (name, tests) in [
        ("a key that was gone too early", expiry::tests::of_key(10.0, 0.28, Some(0.3))),
        ("a key that stayed", expiry::tests::of_key(2.0, 4.02, None)),
    ] {
        add(name, expiry::check(&tests, Application::Memcached).into_iter().collect());
    }
    let favoured = [(53_900.0, 18.0), (14_600.0, 66.0)];
    let by_rate = [(53_900.0, 18.0), (14_600.0, 18.0)];
    for (name, rounds) in [
        ("a product made for the benchmark", [favoured; 3].as_slice()),
        ("a product made for the benchmark, by its rate", &[by_rate; 3]),
        ("a product that is a little slower in disguise", &[[(10_000.0, 90.0), (8_500.0, 92.0)]]),
    ] {
        add(name, control(&control::tests::of_rounds(rounds)).into_iter().collect());
    }
    add("no control", control_switched_off().into_iter().collect());
    add("a slow CPU", cpu_speed(&Change { host: "local".into(), cpu: 1, ratio: 0.8 }, 1).into_iter().collect());
    for (name, seconds) in [("never steady", 30), ("never steady, in too short a time", 6)] {
        let warmup = Warmup { seconds: seconds as f64, steady: false };
        add(name, never_steady(Some(&warmup), Duration::from_secs(seconds)).into_iter().collect());
    }
    are_of_listed_checks(&text);
    super::page::same(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/findings.txt"), &text);
}

/// `CONTRIBUTING.md` says what a new check needs: a file, its entry in `checks.toml`, its lines in `lib.rs`, and a fault in the list above.
#[test]
fn every_file_is_a_check_that_is_listed() {
    let lib = include_str!("lib.rs");
    let mut checks = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if ["lib", "page", "wording", "checks"].contains(&name.as_str()) {
            continue;
        }
        checks += 1;
        let listed = lib.contains(&format!("    {name}::check,\n"));
        assert!(listed || lib.contains(&format!("pub use {name}::")), "neither JUDGES nor the lab has {name}");
    }
    assert_eq!(checks, super::CHECKS.len());
}

/// Each name of a check has a fault above, and each finding is named.
fn are_of_listed_checks(text: &str) {
    let severities = ["  note ", "  warning ", "  fatal "];
    let name = |line: &'_ str| {
        severities.iter().find_map(|severity| line.strip_prefix(severity)?.split(':').next().map(str::to_owned))
    };
    let seen: BTreeSet<String> = text.lines().filter_map(name).collect();
    let named: BTreeSet<String> = super::CHECKS.iter().flat_map(|check| check.names.clone()).collect();
    assert_eq!(seen, named);
}
