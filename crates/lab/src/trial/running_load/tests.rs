//! Each transition of a load, on a fake host whose time passes only when somebody waits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_fake_host::{FakeHost, FakeRole};
use weir_model::load::{Counts, LoadNumbers, LoadResult, LoadSecond, ProbeKind, Target};
use weir_model::suite::{Expect, Request, Tls};
use weir_product::launch::Launcher;
use weir_product::tls::RunTls;

use super::*;
use crate::fixture;
use crate::plan::plan;
use crate::trial::{TrialContext, TrialSpec};
use weir_host::stop::Stop;

const SECOND: Duration = Duration::from_secs(1);

/// A clock that only sleeping moves.
#[derive(Debug, Default)]
struct Stepped(AtomicU64);

impl Clock for Stepped {
    fn now(&self) -> At {
        let mono_ns = self.0.load(Ordering::Relaxed);
        At { mono_ns, unix_ns: mono_ns }
    }

    fn sleep(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// A load, what its client reports next, and what it was sent.
struct Bench {
    context: TrialContext,
    clock: Arc<Stepped>,
    reports: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
}

fn json(report: &ClientReport) -> String {
    serde_json::to_string(report).expect("JSON")
}

impl Bench {
    /// A client that reports this in response to each line that it is sent; at first it is connected.
    fn new(replies: Vec<ClientReport>) -> Bench {
        let clock = Arc::new(Stepped::default());
        let reports: Arc<Mutex<Vec<String>>> = Arc::new(Mutex::new(replies.iter().rev().map(json).collect()));
        let left = Arc::clone(&reports);
        let role = move |_: &_| {
            let left = Arc::clone(&left);
            let reply = move |_: &str| left.lock().expect("not poisoned").pop().unwrap_or_default();
            FakeRole { reports: [json(&ClientReport::Ready)].into(), responses: Some(Box::new(reply)), running: None }
        };
        let host = FakeHost::new(|_| Default::default(), role).with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let host: Arc<dyn Host> = Arc::new(host);
        let tls = RunTls::new(Tls::default()).expect("a certificate");
        let launcher = Launcher { host: Arc::clone(&host), tls, installed: Default::default() };
        let context = TrialContext {
            origin_launcher: launcher.clone(),
            launcher,
            hosts: Hosts::one(&host),
            placement: Default::default(),
            driver: Default::default(),
            products: Default::default(),
            origin: None,
            seed: 1,
            response_key: [0; 2],
            load_numbers: LoadNumbers::new(1),
            speeds: Default::default(),
            tests: Default::default(),
        };
        Bench { context, clock, reports, folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Follows a load of this schedule with `steps`.
    fn with_load(&self, schedule: Schedule, steps: impl FnOnce(RunningLoad<'_>)) {
        let suite = fixture::suite(1, 1, 1);
        let planned = plan(&suite, 1, &[]).remove(0);
        let (workload, load) = (&suite.workloads[0], &suite.loads[0]);
        let folder = self.folder.path();
        let trial = TrialSpec { planned: &planned, workload, load, rate: None, folder, watched: None, chain: None };
        let target = Target::tcp(std::net::SocketAddr::from(([127, 0, 0, 1], 9)), "a");
        let spec = ClientSpec::from(LoadSpec::new(target, Request::get("/"), Expect::default()));
        let (mut origin, mut running) = (RunningOrigin::absent(), None);
        let requester = Requester::here(self.context.launcher.tls.clone());
        let backend = Backend { origin: &mut origin, running: &mut running, requester: &requester };
        let stop = Stop::new();
        let (product, context) = (fixture::direct(), &self.context);
        let trial = Trial { context, spec: &trial, product: &product, stop: &stop };
        let load = RunningLoad::start(trial, &spec, folder, 60 * SECOND, schedule, backend);
        steps(load.expect("started").watch(&[]).expect("watched"));
    }
}

/// A load that is measured for a second after a second of warm-up.
const MEASURED: Schedule = Schedule::Measured { warmup: SECOND, length: Some(SECOND) };

fn done() -> ClientReport {
    ClientReport::Done(Box::new(LoadResult { window_s: 1.0, window: Counts::default(), ..LoadResult::default() }))
}

/// What the load passes on next.
fn next(load: &mut RunningLoad<'_>) -> Option<ClientReport> {
    load.receive().expect("no failure")
}

#[test]
fn a_measured_load_goes_through_all_phases_in_order() {
    let bench = Bench::new(vec![ClientReport::Warmup(LoadSecond::default()), ClientReport::WindowEnd, done()]);
    bench.with_load(MEASURED, |mut load| {
        assert_eq!(load.phase, Phase::Connecting);
        let start = load.soon();
        assert!(next(&mut load).is_none(), "it is started, and nobody is told");
        let begin = start.plus(SECOND);
        assert_eq!(load.phase, Phase::WarmingUp { window: Some(begin) });
        assert!(matches!(next(&mut load), Some(ClientReport::Warmup(_))));
        assert_eq!(load.phase, Phase::WarmingUp { window: Some(begin) });

        bench.clock.sleep(bench.clock.left(begin) - Duration::from_nanos(1));
        assert_eq!(load.phase.due_window(bench.clock.now()), None, "not before its time");
        bench.clock.sleep(Duration::from_nanos(1));
        let told = next(&mut load);
        assert!(matches!(told, Some(ClientReport::WindowStart { unix_ms: 1_100 })), "{told:?}");
        assert_eq!(load.phase, Phase::Window);
        load.begin_window().expect("it was sent ahead");

        load.send(ClientCommand::End).expect("sent");
        assert!(matches!(next(&mut load), Some(ClientReport::WindowEnd)));
        assert_eq!(load.phase, Phase::Draining);
        load.end_window().expect("a window");
        load.send(ClientCommand::End).expect("sent");
        assert!(matches!(next(&mut load), Some(ClientReport::Done(_))));
        assert_eq!(load.phase, Phase::Done);
        assert_eq!(load.end().expect("nothing died"), (Vec::new(), None));
    });
}

#[test]
fn a_load_that_starts_together_with_another_waits_for_its_caller() {
    let bench = Bench::new(vec![]);
    bench.with_load(MEASURED, |mut load| {
        load.start_together();
        let start = load.soon();
        load.begin(start).expect("not yet");
        assert!(!load.is_ready() && load.phase == Phase::Connecting, "its clients are not connected");
        assert!(next(&mut load).is_none());
        assert!(load.is_ready());
        load.begin(start).expect("sent");
        assert_eq!(load.phase, Phase::WarmingUp { window: Some(start.plus(SECOND)) });
        assert!(!load.is_ready());
    });
}

#[test]
fn a_warm_up_starts_by_itself_and_has_no_window() {
    let bench = Bench::new(vec![ClientReport::Second(LoadSecond::default()), done()]);
    bench.with_load(Schedule::Unmeasured, |mut load| {
        assert!(next(&mut load).is_none());
        assert_eq!(load.phase, Phase::WarmingUp { window: None });
        bench.clock.sleep(10 * SECOND);
        assert!(matches!(next(&mut load), Some(ClientReport::Second(_))), "and not a window");
        load.send(ClientCommand::End).expect("sent");
        assert!(matches!(next(&mut load), Some(ClientReport::Done(_))));
    });
}

#[test]
fn a_load_ends_at_its_time_limit_and_on_request() {
    let bench = Bench::new(vec![]);
    bench.with_load(MEASURED, |mut load| {
        assert!(next(&mut load).is_none());
        bench.clock.sleep(60 * SECOND);
        let failure = load.receive().expect_err("too late").to_string();
        assert_eq!(failure, "the client was not done after 60 s");
        load.trial.stop.set();
        assert!(matches!(load.receive(), Err(Failure::Stopped)));
    });
    assert!(bench.reports.lock().expect("not poisoned").is_empty());
}

/// Every transition that a report makes; all others leave the phase as it is.
#[test]
fn a_report_moves_a_load_only_where_it_belongs() {
    let begin = At { mono_ns: 5, unix_ns: 5 };
    let (early, planned) = (Phase::WarmingUp { window: None }, Phase::WarmingUp { window: Some(begin) });
    let all = [Phase::Connecting, Phase::Ready, early, planned, Phase::Window, Phase::Draining, Phase::Done];
    let row = LoadSecond::default;
    let trial = ClientReport::Trial { number: 0, kind: ProbeKind::Confirm, rate: None };
    let failed = ClientReport::Failed("no route".to_owned());
    let cases: [(ClientReport, &[(Phase, Phase)]); 9] = [
        (ClientReport::Connecting { open: 1, of: 2 }, &[]),
        (ClientReport::Ready, &[(Phase::Connecting, Phase::Ready)]),
        (ClientReport::Warmup(row()), &[(Phase::Connecting, early)]),
        (ClientReport::WindowStart { unix_ms: 0 }, &[(Phase::Connecting, Phase::Window), (early, Phase::Window)]),
        (ClientReport::Second(row()), &[]),
        (
            ClientReport::WindowEnd,
            &[(early, Phase::Draining), (planned, Phase::Draining), (Phase::Window, Phase::Draining)],
        ),
        (trial, &all.map(|phase| (phase, Phase::Connecting))),
        (done(), &all.map(|phase| (phase, Phase::Done))),
        (failed, &all.map(|phase| (phase, Phase::Done))),
    ];
    for (report, moves) in cases {
        for phase in all {
            let wanted = moves.iter().find(|(from, _)| *from == phase).map_or(phase, |(_, to)| *to);
            assert_eq!(phase.after(&report), wanted, "{report:?} in {phase:?}");
        }
    }
}
